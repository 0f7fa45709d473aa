"""Tags of languages (BCP 47), compared: which cues are in a language that is named."""

from __future__ import annotations

from functools import cache

__all__ = ["base_language", "same_language"]

# Languages that are also called by the name of a wider one (ISO 639-3, macrolanguages).
_WIDER = {"nb": "no", "nn": "no", "yue": "zh"}


def base_language(tag: str) -> str:
    """The language of a tag of BCP 47 without its region or script.

    >>> base_language("pt-BR"), base_language("")
    ('pt', '')
    """
    return tag.partition("-")[0]


def same_language(one: str, other: str) -> bool:
    """Whether texts with two tags of BCP 47 may be in the same language, in either order: nothing that both
    say, language, script and region, differs. The empty tag is no language.

    A region shows the script (``zh-TW``: traditional); one of many countries (``es-419``) is any but that
    which the language comes from.

    >>> same_language("de-AT", "de"), same_language("de", "de-AT"), same_language("de-AT", "de-CH")
    (True, True, False)
    >>> same_language("zh-TW", "zh-Hant"), same_language("zh-TW", "zh-CN"), same_language("nb", "no")
    (True, False, True)
    """
    if one == other or not (one and other):
        return one == other
    if one.isalpha() and other.isalpha():  # nearly all
        return _WIDER.get(one, one) == other or _WIDER.get(other, other) == one
    (language, script, region), (its, its_script, its_region) = _parts(one), _parts(other)
    if not same_language(language, its) or (script and its_script and script != its_script):
        return False
    home = _home(language)
    for wide, narrow in ((region, its_region), (its_region, region)):
        if wide.isdigit():  # of many countries
            return not narrow or narrow.isdigit() or narrow != home
    return not (region and its_region) or region == its_region


@cache
def _parts(tag: str) -> tuple[str, str, str]:
    """Language, script and region, the latter two empty where nothing says them."""
    from langcodes import Language  # only here: most tags are a language alone

    said = Language.get(tag)
    script = said.script or (said.maximize().script if said.territory else "")
    return said.language or "", script or "", said.territory or ""


@cache
def _home(language: str) -> str:
    from langcodes import Language

    return Language.get(language).maximize().territory or ""
