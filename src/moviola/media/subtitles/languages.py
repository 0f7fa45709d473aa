"""Languages of subtitle files: their letters beyond ASCII, and encodings of their files.

Letters are in the order of their frequency, in small; encodings, too, those of Windows first.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from moviola.words import language_named

__all__ = ["LANGUAGES", "Language", "languages_in"]

_WEST = "cp1252 mac_roman cp850 cp437"
_CENTRE = "cp1250 iso8859_2 cp852 mac_latin2"
_BALTIC = "cp1257 iso8859_13 iso8859_4 cp775"
_GREEK = "cp1253 iso8859_7 cp737 cp869"
_VIETNAMESE = "đ\u0301\u0300ưôâơêă\u0323\u0309\u0303áàéèóòúùíìý"
_CYRILLIC = "cp1251 koi8_r iso8859_5 cp866 mac_cyrillic"


class Language(NamedTuple):
    """A language: letters, encodings."""

    letters: str = ""
    encodings: str = ""


LANGUAGES: dict[str, Language] = {
    "en": Language("éï", _WEST),
    "de": Language("üäöß", _WEST),
    "fr": Language("éèàêçùâîôûëïœæ", _WEST),
    "es": Language("áóíéñúü", _WEST),
    "pt": Language("ãçáéíóõêúâàô", f"{_WEST} cp860"),
    "it": Language("àèùòìé", _WEST),
    "nl": Language("ëéïèöü", _WEST),
    "sv": Language("äåöé", _WEST),
    "da": Language("øåæé", _WEST),
    "no": Language("øåæé", _WEST),
    "fi": Language("äöå", _WEST),
    "is": Language("áíðéóúþýöæ", _WEST),
    "ca": Language("éèàçóíòúïü·", _WEST),
    "gl": Language("áóíéñúü", _WEST),
    "eu": Language("ñü", _WEST),
    "ga": Language("áéíóú", _WEST),
    "id": Language(),
    "ms": Language(),
    "tl": Language(),
    "pl": Language("łęąóżśćńź", _CENTRE),
    "cs": Language("íáěéčřšžýůúóťňď", _CENTRE),
    "sk": Language("áíéčýšžúľťôäňóďŕĺ", _CENTRE),
    "hu": Language("áéöóőíüúű", _CENTRE),
    "sl": Language("čšž", _CENTRE),
    "hr": Language("čšžćđ", _CENTRE),
    "bs": Language("čšžćđ", _CENTRE),
    "ro": Language("ăîâşţ", _CENTRE),
    "sq": Language("ëç", _WEST),
    "lt": Language("ėųšžįąčūę", _BALTIC),
    "lv": Language("āīēšņūļžčģķ", _BALTIC),
    "et": Language("äõüöšž", f"{_BALTIC} cp1252"),
    "tr": Language("ıüşğçöİâî", "cp1254 iso8859_9 cp857"),
    "ru": Language("оеаинтсрвлкмдпуяызьбгчйжхшюцщэфъё", _CYRILLIC),
    "uk": Language("оаинвіретслкдмпуязьбгчйхжїцшюєщфґ", f"{_CYRILLIC} koi8_u cp1125"),
    "be": Language("аніеорсктвлдпмуязыьйгбчшжхёцюўфэ", f"{_CYRILLIC} koi8_u"),
    "bg": Language("аеиотнрсвлкдпмзягъубчцйжщхшфюь", _CYRILLIC),
    "sr": Language("аиоенсртујкдвмлпгзбчшцњжћљфхђџ", _CYRILLIC),
    "mk": Language("аоеитнрсвкдлмпујзгбчцшжќњљфхѓџѕ", _CYRILLIC),
    "el": Language("ατοιενσρκπςυμλίόάγέδήωχθύώφβξζψϊϋΐΰ", _GREEK),
    "he": Language("יוהלרבתמאשנעםדקחפסכגטצןזךףץ", "cp1255 iso8859_8 cp862"),
    "ar": Language("اليمونرتبةعدسفهكقأحجشطصىخإذضزثغئءظآؤ", "cp1256 iso8859_6 cp864"),
    "fa": Language("ايردنهومتبسلكشزفگعخقجآپحطصچئژثضظءک", "cp1256"),
    "th": Language("านรอกเงมยลวดทสตะปบคหแจพชขใ่้ัิีุูื์็ไำโถซธณศผฟษฉญฝภฐ", "cp874"),
    "vi": Language(_VIETNAMESE, "cp1258"),
    "ja": Language("", "cp932 euc_jp"),
    "ko": Language("", "cp949"),
    "zh": Language("", "gb18030"),
    "zh-Hant": Language("", "big5hkscs"),
    "hi": Language(),
    "ta": Language(),
    "te": Language(),
    "bn": Language(),
    "ur": Language("", ""),
}  # fmt: skip
"""By their codes of ISO 639, those of most subtitle files."""

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
