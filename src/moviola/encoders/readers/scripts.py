"""Scripts that a reader of text in pictures knows, by their names in ISO 15924."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from moviola.words import require_language

__all__ = ["PACKAGED", "SCRIPTS", "TESSERACT", "require_languages", "said_of", "script_of"]

TESSERACT = "tesseract"
"""Reader of text by a program of the system."""

SCRIPTS = {
    "Latn": "Latin", "Hans": "Chinese", "Hant": "Chinese (traditional)", "Jpan": "Japanese",
    "Cyrl": "Cyrillic", "Grek": "Greek", "Arab": "Arabic", "Hebr": "Hebrew", "Deva": "Devanagari",
    "Beng": "Bengali", "Taml": "Tamil", "Telu": "Telugu", "Thai": "Thai", "Kore": "Korean",
    "Geor": "Georgian", "Armn": "Armenian",
}  # fmt: skip
"""Names for people; others have their code."""

PACKAGED = ("Latn", "Hans", "Hant", "Jpan")
"""Those of PP-OCRv6, which the package ``rapidocr`` carries: of German, French, Spanish, Turkish, Vietnamese,
Chinese and Japanese it read .94 to 1.00 of the letters, of Greek .85, of Russian, Arabic, Hindi, Thai and
Korean none."""


def require_languages(given: str | None) -> tuple[str, ...]:
    """Languages (BCP 47) of an option, names or codes separated by commas. Raises InvalidValue: one is no
    language.
    """
    parts = dict.fromkeys(one.strip() for one in (given or "").split(",") if one.strip())
    return tuple(dict.fromkeys(map(_require_language, parts)))


def _require_language(one: str) -> str:
    from langcodes import Language

    with suppress(ValueError):  # Tesseract's own names (`chi_sim`) have parts that no tag has
        language = Language.get(one.replace("_", "-")).language
        if language and Language.get(language).is_valid():
            return one
    return require_language("text language", one)


def script_of(language: str) -> str:
    """The script that a language is usually written in."""
    from langcodes import Language

    return Language.get(language.replace("_", "-")).maximize().script or ""


def said_of(scripts: Iterable[str]) -> str:
    """Scripts by name, for people."""
    return ", ".join(SCRIPTS.get(script, script) for script in dict.fromkeys(scripts))
