"""Names of languages, as files and people write them: codes of ISO 639, tags of BCP 47, names."""

from __future__ import annotations

from functools import cache

__all__ = ["LANGUAGE_NAMES", "language_named", "language_title"]

LANGUAGE_NAMES: dict[str, str] = {
    "en": "english",
    "de": "german deutsch",
    "fr": "french français francais vff vostfr",
    "es": "spanish español espanol castellano castilian latino",
    "pt": "portuguese português portugues brazilian brasileiro",
    "it": "italian italiano",
    "nl": "dutch nederlands flemish",
    "sv": "swedish svenska",
    "da": "danish dansk",
    "no": "norwegian norsk bokmål bokmal nynorsk",
    "fi": "finnish suomi",
    "is": "icelandic íslenska",
    "ca": "catalan català catala valencian",
    "gl": "galician galego",
    "eu": "basque euskara",
    "ga": "irish gaeilge",
    "id": "indonesian indonesia",
    "ms": "malay melayu",
    "tl": "tagalog filipino",
    "pl": "polish polski",
    "cs": "czech čeština cestina česky cesky",
    "sk": "slovak slovenčina slovencina slovensky",
    "hu": "hungarian magyar",
    "sl": "slovenian slovene slovenščina slovenscina",
    "hr": "croatian hrvatski",
    "bs": "bosnian bosanski",
    "ro": "romanian română romana",
    "sq": "albanian shqip",
    "lt": "lithuanian lietuvių lietuviu",
    "lv": "latvian latviešu latviesu",
    "et": "estonian eesti",
    "tr": "turkish türkçe turkce",
    "ru": "russian русский",
    "uk": "ukrainian українська",
    "be": "belarusian беларуская",
    "bg": "bulgarian български",
    "sr": "serbian srpski српски",
    "mk": "macedonian македонски",
    "el": "greek ελληνικά ellinika",
    "he": "hebrew עברית",
    "ar": "arabic العربية",
    "fa": "persian farsi فارسی",
    "th": "thai ไทย",
    "vi": "vietnamese tiếng việt tieng viet",
    "ja": "japanese 日本語 jp jpn",
    "ko": "korean 한국어 kr",
    "zh": "chinese 中文 chs chi simplified mandarin cantonese 简体",
    "zh-Hant": "cht traditional 繁體",
    "hi": "hindi हिन्दी",
    "ta": "tamil தமிழ்",
    "te": "telugu తెలుగు",
    "bn": "bengali বাংলা",
    "ur": "urdu اردو",
}
"""Names of languages that files bear, in small, by their codes of ISO 639; the first in English."""

# Words that stand beside the name of a language.
_BESIDE = frozenset({"american", "canadian", "european", "latin", "neutral", "und"})
_NAMES = {name: code for code, names in LANGUAGE_NAMES.items() for name in names.split()}
# Codes of ISO 639-3 without one of two letters that subtitle files bear.
_LONG_CODES = frozenset({"fil", "yue", "mul", "gsw", "nds", "ast"})


def language_named(word: str) -> str | None:
    """The language, as a tag of BCP 47, that a word of a file's name stands for: a code of ISO 639, perhaps
    with a region or script (``pt-BR``, ``zh_Hans``, ``ger``), or a name; empty for a word that only stands
    beside such a name (``neutral``), None of others.

    >>> language_named("pt_br"), language_named("ENG"), language_named("Deutsch"), language_named("cut")
    ('pt-BR', 'en', 'de', None)
    """
    word = word.casefold()
    if word in _NAMES:
        return _NAMES[word]
    return "" if word in _BESIDE else _tag_of(word)


@cache
def _tag_of(word: str) -> str | None:
    from langcodes import Language as Tag  # only here: most names have no language

    code, _, further = word.replace("_", "-").partition("-")
    if not (code.isascii() and code.isalpha() and 2 <= len(code) <= 3):
        return None
    try:
        known = Tag.get(code)
        tag = Tag.get(f"{code}-{further}") if further else known
    except ValueError:  # what follows is no region, but a track's name
        tag = known
    language = known.language or ""
    if not known.is_valid() or (len(language) > 2 and language not in _LONG_CODES):
        return None
    return tag.to_tag() if tag.is_valid() else language


def language_title(tag: str) -> str:
    """A tag of BCP 47 as English names it, the tag itself where no name is known.

    >>> language_title("de"), language_title("pt-BR"), language_title("ka"), language_title("")
    ('German', 'Portuguese (pt-BR)', 'ka', 'unknown')
    """
    if not tag:
        return "unknown"
    base = tag.partition("-")[0]
    names = LANGUAGE_NAMES.get(base, "").split()
    if not names:
        return tag
    return names[0].title() if tag == base else f"{names[0].title()} ({tag})"
