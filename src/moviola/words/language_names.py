"""Names of languages, as files and people write them: codes of ISO 639, tags of BCP 47, names."""

from __future__ import annotations

from functools import cache

from moviola.errors import InvalidValue
from moviola.files.spelling import alike_in_spelling

__all__ = ["language_beside", "language_named", "language_title", "require_language"]

LANGUAGE_NAMES: dict[str, str] = {
    "en": "english englisch inglés ingles anglais inglese 英语 英文",
    "de": "german deutsch alemán aleman allemand tedesco 德语 德文",
    "fr": "french français francais vff vostfr französisch francés frances francese 法语 法文",
    "es": "spanish español espanol castellano castilian spanisch espagnol spagnolo 西班牙语 西班牙文",
    "es-419": "latino latinoamericano",
    "pt": "portuguese português portugues portugiesisch portugais portoghese 葡萄牙语 葡萄牙文",
    "pt-BR": "brazilian brasileiro pob ptbr pb",
    "it": "italian italiano italienisch italien 意大利语 意大利文",
    "nl": "dutch nederlands flemish niederländisch holländisch neerlandés holandés 荷兰语 荷兰文",
    "sv": "swedish svenska schwedisch sueco suédois 瑞典语 瑞典文",
    "da": "danish dansk dänisch danés danois 丹麦语 丹麦文",
    "no": "norwegian norsk bokmål bokmal nynorsk norwegisch noruego norvégien 挪威语 挪威文",
    "fi": "finnish suomi finnisch finlandés finés finnois 芬兰语 芬兰文",
    "is": "icelandic íslenska isländisch islandés 冰岛语",
    "ca": "catalan català catala valencian katalanisch catalán 加泰罗尼亚语",
    "gl": "galician galego galicisch gallego",
    "eu": "basque euskara baskisch vasco",
    "ga": "irish gaeilge irisch irlandés",
    "id": "indonesian indonesia indonesisch indonesio 印尼语",
    "ms": "malay melayu malaiisch malayo 马来语",
    "tl": "tagalog filipino",
    "pl": "polish polski polnisch polaco polonais polacco 波兰语 波兰文",
    "cs": "czech čeština cestina česky cesky tschechisch checo tchèque 捷克语 捷克文",
    "sk": "slovak slovenčina slovencina slovensky slowakisch eslovaco 斯洛伐克语",
    "hu": "hungarian magyar ungarisch húngaro hongrois 匈牙利语",
    "sl": "slovenian slovene slovenščina slovenscina slowenisch esloveno",
    "hr": "croatian hrvatski kroatisch croata 克罗地亚语",
    "bs": "bosnian bosanski bosnisch bosnio",
    "ro": "romanian română romana rumänisch rumano roumain 罗马尼亚语",
    "sq": "albanian shqip albanisch albanés",
    "lt": "lithuanian lietuvių lietuviu litauisch lituano",
    "lv": "latvian latviešu latviesu lettisch letón",
    "et": "estonian eesti estnisch estonio",
    "tr": "turkish türkçe turkce türkisch turco turc 土耳其语 土耳其文",
    "ru": "russian русский russisch ruso russe russo 俄语 俄文",
    "uk": "ukrainian українська ukrainisch ucraniano 乌克兰语",
    "be": "belarusian беларуская belarussisch bielorruso",
    "bg": "bulgarian български bulgarisch búlgaro 保加利亚语",
    "sr": "serbian srpski српски serbisch serbio 塞尔维亚语",
    "mk": "macedonian македонски mazedonisch macedonio",
    "el": "greek ελληνικά ellinika griechisch griego grec greco 希腊语 希腊文",
    "he": "hebrew עברית hebräisch hebreo hébreu 希伯来语",
    "ar": "arabic العربية arabisch árabe arabe arabo 阿拉伯语 阿拉伯文",
    "fa": "persian farsi فارسی persisch persa 波斯语",
    "th": "thai ไทย thailändisch tailandés 泰语 泰文",
    "vi": "vietnamese tiếng việt tieng viet vietnamesisch vietnamita 越南语 越南文",
    "ja": "japanese 日本語 jp jpn japanisch japonés japones japonais giapponese 日语 日文",
    "ko": "korean 한국어 kr koreanisch coreano coréen 韩语 韩文",
    "zh": "chinese 中文 chi mandarin cantonese chinesisch chino chinois cinese 汉语",
    "zh-Hans": "chs simplified 简体 chi_sim",
    "zh-Hant": "cht zht zt chi_tra traditional 繁體 繁体",
    "hi": "hindi हिन्दी 印地语",
    "ta": "tamil தமிழ் 泰米尔语",
    "te": "telugu తెలుగు",
    "bn": "bengali বাংলা bengalisch bengalí 孟加拉语",
    "ur": "urdu اردو 乌尔都语",
}
"""Names of languages that files bear and people give, in small, by their tags; the first in English, others
in the language itself, and in those of the page.
"""

# Words that stand beside the name of a language, and those that say a country or a script there.
_BESIDE = frozenset({"american", "canadian", "european", "latin", "neutral", "und"})
_COUNTRIES = {
    "latin": "419", "america": "", "american": "", "brazil": "BR", "brasil": "BR", "portugal": "PT",
    "spain": "ES", "españa": "ES", "mexico": "MX", "méxico": "MX", "argentina": "AR", "canada": "CA",
    "canadian": "CA", "france": "FR", "germany": "DE", "austria": "AT", "switzerland": "CH", "belgium": "BE",
    "taiwan": "TW", "hong": "", "kong": "HK", "china": "CN", "us": "US", "usa": "US", "united": "",
    "states": "US", "kingdom": "GB", "gb": "GB", "uk": "GB", "australia": "AU", "cyrillic": "Cyrl",
}  # fmt: skip
_NAMES = {name: code for code, names in LANGUAGE_NAMES.items() for name in names.split()}
_IN_LATIN_AMERICA = frozenset({"es", "pt"})
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


def language_beside(language: str, word: str) -> str | None:
    """A language with the country or the script that a word behind its name says, the language itself for a
    part of such words; None for other words.

    >>> language_beside("pt", "Brazil"), language_beside("en", "united"), language_beside("en", "cut")
    ('pt-BR', 'en', None)
    """
    said = _COUNTRIES.get(word.casefold())
    if said == "419" and language not in _IN_LATIN_AMERICA:
        said = "Latn"
    return said if said is None else f"{language}-{said}" if said and "-" not in language else language


def require_language(name: str, given: str) -> str:
    """The tag of a language that a person gives by a code or a name (:func:`language_named`); ``name`` says
    what it is for. Raises InvalidValue: no language; those that are spelt alike are offered.
    """
    if tag := language_named(given.strip()):
        return tag
    near = dict.fromkeys(
        language_title(_NAMES[one]) for one in alike_in_spelling(given.strip().casefold(), [*_NAMES])
    )
    remedy = f"did you mean {' or '.join(near)}?" if near else "give a code or a name, such as de or German"
    raise InvalidValue(f"{name} {given!r:.200}: no language; {remedy}")


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
