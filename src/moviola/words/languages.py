"""The language of texts: as a tag of BCP 47 says it, or detected.

Nothing is guessed of less than a line: single words of one language are words of others, too.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import Any

from moviola.words.language_tags import base_language
from moviola.words.scripts import is_written_in, letters_of, script_language

__all__ = ["detected", "each_detected", "language_of_line"]

# Letters of a text of which the language is detected, and of a line that may be in another one than those
# around it; a letter of a script without spaces counts for several.
_LEAST, _LEAST_OF_LINE, _WORTH = 40, 16, 4
# The least probability of a language, and that of a line in another one than those around it.
_SURE, _OTHERWISE = 0.8, 0.95
# Among all languages, lines of several look like one of the rare ones.
LIKELY = frozenset({
    "am", "ar", "az", "be", "bg", "bn", "bs", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu",
    "fa", "fi", "fr", "ga", "gl", "gu", "he", "hi", "hr", "hu", "hy", "id", "is", "it", "ja", "ka",
    "kk", "km", "kn", "ko", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "my", "nb", "ne", "nl",
    "nn", "no", "pa", "pl", "ps", "pt", "ro", "ru", "si", "sk", "sl", "sq", "sr", "sv", "sw", "ta",
    "te", "th", "tl", "tr", "uk", "ur", "uz", "vi", "zh",
})  # fmt: skip
"""Languages that are detected."""
# Letters of a text that are looked at.
_MOST = 4_000


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(LIKELY & {*identifier.labels})
    return identifier


@lru_cache(maxsize=2_000)
def _guessed(text: str) -> tuple[str, float]:
    """The likeliest language of a text, and how likely it is."""
    language, probability = _identifier().classify(text)
    return ("" if language == "und" else str(language)), float(probability)


def _likeliest(line: str, among: Collection[str]) -> str:
    """The likeliest of some languages; none of less than a line."""
    fitting = {one for one in among if is_written_in(line, one)}
    if not fitting or _length(line) < _LEAST_OF_LINE:
        return ""
    return next(str(one) for one, _ in _identifier().rank(line) if one in fitting)


def _length(text: str) -> int:
    """Letters of a text and their marks, those of scripts without spaces for several."""
    return sum(unicodedata.category(one)[0] in "LM" for one in text) + (_WORTH - 1) * len(letters_of(text))


def detected(lines: Sequence[str]) -> str:
    """The language of lines of one text, empty where they are too short, or in none that is likely.

    >>> detected(["Die Kinder liefen über die Wiesen.", "Gestern sind wir gefahren."]), detected(["Winter"])
    ('de', '')
    """
    text = "\n".join(lines)[:_MOST]
    if _length(text) < _LEAST:
        return ""
    language, probability = _guessed(text)
    return language if probability >= _SURE and is_written_in(text, language) else ""


def each_detected(lines: Sequence[str], language: str = "") -> list[str]:
    """The language of each of some lines, which are mostly in one: in that which is given, or detected;
    others where their letters show it, or, with none given, all of a line does.

    Of lines in several languages those that do not show theirs are in the likeliest of the others'.
    """
    owns = [language_of_line(line) for line in lines] if not language else []
    whole = language or _of_most(lines, owns)
    if language:
        main = base_language(language)
        others = (script_language(line) or language_of_line(line) for line in lines)
        return [
            language if is_written_in(line, main) else other
            for line, other in zip(lines, others, strict=True)
        ]
    if not whole:
        return [own or _likeliest(line, set(owns) - {""}) for own, line in zip(owns, lines, strict=True)]
    # A language of few lines among many is more likely a wrong guess.
    counts = Counter(owns)
    return [
        own if own and (counts[own] > len(lines) / 20 or not is_written_in(line, whole)) else
        whole if is_written_in(line, whole) else script_language(line)
        for own, line in zip(owns, lines, strict=True)
    ]  # fmt: skip


def _of_most(lines: Sequence[str], owns: Sequence[str]) -> str:
    """The language of lines as a whole, if most of those that show one by themselves are in it."""
    whole, shown = detected(lines), Counter(filter(None, owns))
    return whole if 2 * shown[whole] >= shown.total() else ""


def language_of_line(line: str) -> str:
    """The language that a single line shows by itself, empty for less, or where it is not likely enough."""
    if _length(line) < _LEAST_OF_LINE:
        return ""
    language, probability = _guessed(line)
    if language and probability >= _OTHERWISE and is_written_in(line, language):
        return language
    return script_language(line)
