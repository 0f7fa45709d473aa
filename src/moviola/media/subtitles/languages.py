"""Languages of subtitle files: their names, their letters beyond ASCII, and encodings of their files.

Letters are in the order of their frequency, in small; encodings likewise, those of Windows first.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

__all__ = ["LANGUAGES", "Language", "language_named", "languages_in"]

_WEST = "cp1252 mac_roman cp850 cp437"
_CENTRE = "cp1250 iso8859_2 cp852 mac_latin2"
_BALTIC = "cp1257 iso8859_13 iso8859_4 cp775"
_GREEK = "cp1253 iso8859_7 cp737 cp869"
_VIETNAMESE = "đ\u0301\u0300ưôâơêă\u0323\u0309\u0303áàéèóòúùíìý"
_CYRILLIC = "cp1251 koi8_r iso8859_5 cp866 mac_cyrillic"


class Language(NamedTuple):
    """A language: names of it that files bear, in small, letters, encodings."""

    names: str
    letters: str = ""
    encodings: str = ""


LANGUAGES: dict[str, Language] = {
    "en": Language("english", "éï", _WEST),
    "de": Language("german deutsch", "üäöß", _WEST),
    "fr": Language("french français francais vff vostfr", "éèàêçùâîôûëïœæ", _WEST),
    "es": Language("spanish español espanol castellano castilian latino", "áóíéñúü", _WEST),
    "pt": Language("portuguese português portugues brazilian brasileiro", "ãçáéíóõêúâàô", _WEST),
    "it": Language("italian italiano", "àèùòìé", _WEST),
    "nl": Language("dutch nederlands flemish", "ëéïèöü", _WEST),
    "sv": Language("swedish svenska", "äåöé", _WEST),
    "da": Language("danish dansk", "øåæé", _WEST),
    "no": Language("norwegian norsk bokmål bokmal nynorsk", "øåæé", _WEST),
    "fi": Language("finnish suomi", "äöå", _WEST),
    "is": Language("icelandic íslenska", "áíðéóúþýöæ", _WEST),
    "ca": Language("catalan català catala valencian", "éèàçóíòúïü·", _WEST),
    "gl": Language("galician galego", "áóíéñúü", _WEST),
    "eu": Language("basque euskara", "ñü", _WEST),
    "ga": Language("irish gaeilge", "áéíóú", _WEST),
    "id": Language("indonesian indonesia"),
    "ms": Language("malay melayu"),
    "tl": Language("tagalog filipino"),
    "pl": Language("polish polski", "łęąóżśćńź", _CENTRE),
    "cs": Language("czech čeština cestina česky cesky", "íáěéčřšžýůúóťňď", _CENTRE),
    "sk": Language("slovak slovenčina slovencina slovensky", "áíéčýšžúľťôäňóďŕĺ", _CENTRE),
    "hu": Language("hungarian magyar", "áéöóőíüúű", _CENTRE),
    "sl": Language("slovenian slovene slovenščina slovenscina", "čšž", _CENTRE),
    "hr": Language("croatian hrvatski", "čšžćđ", _CENTRE),
    "bs": Language("bosnian bosanski", "čšžćđ", _CENTRE),
    "ro": Language("romanian română romana", "ăîâşţ", _CENTRE),
    "sq": Language("albanian shqip", "ëç", _WEST),
    "lt": Language("lithuanian lietuvių lietuviu", "ėųšžįąčūę", _BALTIC),
    "lv": Language("latvian latviešu latviesu", "āīēšņūļžčģķ", _BALTIC),
    "et": Language("estonian eesti", "äõüöšž", f"{_BALTIC} cp1252"),
    "tr": Language("turkish türkçe turkce", "ıüşğçöİâî", "cp1254 iso8859_9 cp857"),
    "ru": Language("russian русский", "оеаинтсрвлкмдпуяызьбгчйжхшюцщэфъё", _CYRILLIC),
    "uk": Language("ukrainian українська", "оаинвіретслкдмпуязьбгчйхжїцшюєщфґ", f"{_CYRILLIC} koi8_u"),
    "be": Language("belarusian беларуская", "аніеорсктвлдпмуязыьйгбчшжхёцюўфэ", f"{_CYRILLIC} koi8_u"),
    "bg": Language("bulgarian български", "аеиотнрсвлкдпмзягъубчцйжщхшфюь", _CYRILLIC),
    "sr": Language("serbian srpski српски", "аиоенсртујкдвмлпгзбчшцњжћљфхђџ", _CYRILLIC),
    "mk": Language("macedonian македонски", "аоеитнрсвкдлмпујзгбчцшжќњљфхѓџѕ", _CYRILLIC),
    "el": Language("greek ελληνικά ellinika", "ατοιενσρκπςυμλίόάγέδήωχθύώφβξζψϊϋΐΰ", _GREEK),
    "he": Language("hebrew עברית", "יוהלרבתמאשנעםדקחפסכגטצןזךףץ", "cp1255 iso8859_8 cp862"),
    "ar": Language("arabic العربية", "اليمونرتبةعدسفهكقأحجشطصىخإذضزثغئءظآؤ", "cp1256 iso8859_6 cp864"),
    "fa": Language("persian farsi فارسی", "ايردنهومتبسلكشزفگعخقجآپحطصچئژثضظءک", "cp1256"),
    "th": Language("thai ไทย", "านรอกเงมยลวดทสตะปบคหแจพชขใ่้ัิีุูื์็ไำโถซธณศผฟษฉญฝภฐ", "cp874"),
    "vi": Language("vietnamese tiếng việt tieng viet", _VIETNAMESE, "cp1258"),
    "ja": Language("japanese 日本語 jp jpn", "", "cp932 euc_jp"),
    "ko": Language("korean 한국어 kr", "", "cp949"),
    "zh": Language("chinese 中文 chs chi simplified mandarin cantonese 简体", "", "gb18030"),
    "zh-Hant": Language("cht traditional 繁體", "", "big5hkscs"),
    "hi": Language("hindi हिन्दी"),
    "ta": Language("tamil தமிழ்"),
    "te": Language("telugu తెలుగు"),
    "bn": Language("bengali বাংলা"),
    "ur": Language("urdu اردو", "", ""),
}  # fmt: skip
"""By their codes of ISO 639, those of most subtitle files."""

# Words that stand beside the name of a language.
_BESIDE = frozenset({"american", "canadian", "european", "latin", "neutral", "und"})
_NAMES = {name: code for code, language in LANGUAGES.items() for name in language.names.split()}
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


# Languages that have another name in :data:`LANGUAGES`, and those that share files.
_ALIKE = {"nb": ("no",), "nn": ("no",), "sh": ("hr", "bs", "sr"), "zh": ("zh", "zh-Hant")}
_LAST_WORDS = 4


def languages_in(stem: str) -> frozenset[str]:
    """Keys of :data:`LANGUAGES` that the last words of a file's name stand for.

    >>> sorted(languages_in("film.pl.forced")), sorted(languages_in("The film"))
    (['pl'], [])
    """
    words = re.split(r"[\s._,+()\[\]-]+", stem)[-_LAST_WORDS:]
    tags = filter(None, map(language_named, filter(None, words)))
    codes = (tag.partition("-")[0] for tag in tags)
    return frozenset(code for found in codes for code in _ALIKE.get(found, (found,)) if code in LANGUAGES)
