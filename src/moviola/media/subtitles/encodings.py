"""The text of subtitle files, whatever their encoding.

Unicode is certain: by its mark, by zeros between ASCII letters, or since other bytes hardly ever are valid
UTF-8. Other encodings are judged by the letters that they make of a file: how likely each is in a language
that is written so. Signs of a wrong one are controls (U+0080 to U+009F), symbols inside a word, capitals
behind small letters, and letters that no language has beside the others.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import log

from moviola.errors import InvalidValue
from moviola.media.subtitles.languages import LANGUAGES

__all__ = ["Decoded", "decode", "require_encoding"]

# Without a byte order mark; all formats begin with ASCII.
_UTF_16 = {"utf-16-le": re.compile(rb"([^\0]\0){2}"), "utf-16-be": re.compile(rb"(\0[^\0]){2}")}
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32", codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16", codecs.BOM_UTF8: "utf-8-sig",
}  # fmt: skip
_BEYOND_ASCII = re.compile(rb"[^\n]*[\x80-\xff][^\n]*")
# Bytes that encodings are judged by.
_SAMPLE = 8192
# Logarithms of how likely a sign is: what no text has, what hardly any has, what is rare, and what is usual.
_NEVER, _HARDLY, _RARELY, _USUALLY = -14.0, -9.2, -7.0, -3.0
_PUNCTUATION = frozenset("“”„‚‘«»‹›¿¡°♪♫″₪€£،؟؛״\u00a0")
_BETWEEN_LETTERS = frozenset("’…–—·\u00ad׳'\u200c\u200d")
# How much rarer encodings are than that of Western Europe on Windows, by how their names begin; others are a
# little.
_RARER = {
    "cp1252": 0.0, "cp1258": 4.0, "mac_": 5.0, "iso": 3.0, "euc": 3.0, "cp4": 5.0, "cp7": 5.0, "cp85": 5.0,
    "cp86": 3.0,
}  # fmt: skip
_A_LITTLE = 1.0
# The language of the file's own name counts as much as four letters that hardly any text has, one of the
# names beside it as much as a rare one.
_NAMED, _BESIDE = 36.0, 6.0
# Below such a mean no language was found.
_LEAST, _LEAST_OF_IDEOGRAPHS = -5.5, -9.0
_SHOWN = {"cp": "windows-", "iso8859_": "iso-8859-", "koi8_": "koi8-", "mac_": "mac-"}


Hints = tuple[frozenset[str], frozenset[str]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, its encoding, whether this was chosen by its letters, neither given nor Unicode, and the number
    of letters that could not be decoded.
    """

    text: str
    encoding: str
    chosen: bool = False
    lost: int = 0


def require_encoding(name: str) -> str:
    """The name by which Python knows an encoding of text. Raises InvalidValue: an unknown one."""
    try:
        "".encode(name)
        return codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise InvalidValue(
            f"encoding {name!r:.100}: unknown; give one such as windows-1250, koi8-r, shift_jis"
        ) from error


def decode(
    data: bytes, *, encoding: str | None = None, hints: Callable[[], Hints] = lambda: (frozenset(),) * 2
) -> Decoded | None:
    """The text of a file; None where no encoding fits.

    Args:
        encoding: that of files that are not Unicode; None: the likeliest.
        hints: called for a file that is not Unicode: languages by its name, and by those of its neighbours.
    """
    if known := _unicode(data):
        return known
    chosen = encoding is None
    if encoding is None and (encoding := _likeliest(data, *hints())) is None:
        return None
    text = data.decode(encoding, errors="replace")
    if encoding == "cp1258":  # letters and marks, which other files have as one
        text = unicodedata.normalize("NFC", text)
    return Decoded(text, _shown(encoding), chosen, text.count("\ufffd"))


def _unicode(data: bytes) -> Decoded | None:
    """The text of a file in Unicode."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            text = data.decode(encoding, errors="replace")
            return Decoded(text, encoding.removesuffix("-sig"), lost=text.count("\ufffd"))
    for order, begins in _UTF_16.items():
        if begins.match(data):
            text = data.decode(order, errors="replace")
            return Decoded(text, order, lost=text.count("\ufffd"))
    text = data.decode("utf-8", errors="replace")
    lost = text.count("\ufffd")
    # Damage to a few letters does not make it another encoding.
    if lost and 2 * lost > len(text) - len(text.encode("ascii", errors="ignore")):
        return None
    return None if b"\x1b$" in data and not lost and text.isascii() else Decoded(text, "utf-8", lost=lost)


def _shown(encoding: str) -> str:
    """The name of an encoding as most programs have it."""
    if encoding.startswith("cp") and not encoding.startswith(("cp125", "cp874")):
        return encoding  # of DOS
    name = next(
        (encoding.replace(own, shown) for own, shown in _SHOWN.items() if encoding.startswith(own)), encoding
    )
    return name.replace("_", "-")


def _likeliest(data: bytes, named: frozenset[str], beside: frozenset[str]) -> str | None:
    """The encoding of a file by the letters that it makes of it."""
    if b"\x1b$" in data:  # which begins letters of Japanese in the midst of ASCII
        return "iso2022_jp"
    sample = b"\n".join(_BEYOND_ASCII.findall(data[: 64 * _SAMPLE]))
    if len(sample) > _SAMPLE:
        sample = sample[: sample.rfind(b"\n", 0, _SAMPLE) + 1 or _SAMPLE]
    found = []
    for encoding, languages in _languages_by_encoding().items():
        letters, others = _signs(sample.decode(encoding, errors="replace"))
        number = letters.total() + others.total()
        rest = sum(count * how_likely for how_likely, count in others.items())
        rest -= next((rarer for begin, rarer in _RARER.items() if encoding.startswith(begin)), _A_LITTLE)
        for language in languages:
            likely = rest + sum(count * _letter(language, letter) for letter, count in letters.items())
            hint = _NAMED * (language in named) + _BESIDE * (language in beside)
            least = _LEAST if LANGUAGES[language].letters else _LEAST_OF_IDEOGRAPHS
            if likely >= least * number:
                found.append((likely + hint, encoding))
    return max(found, key=lambda one: one[0])[1] if found else None


@cache
def _languages_by_encoding() -> dict[str, list[str]]:
    """Languages that are written in each encoding, the usual one first."""
    found: dict[str, list[str]] = {}
    for code, language in LANGUAGES.items():
        for encoding in language.encodings.split():
            found.setdefault(encoding, []).append(code)
    return found


def _signs(text: str) -> tuple[Counter[str], Counter[float]]:
    """Small letters beyond ASCII with their numbers, and how likely the other signs are, whatever the
    language.
    """
    letters: Counter[str] = Counter()
    others: Counter[float] = Counter()
    for (before, sign, after), count in Counter(
        zip(f" {text[:-1]}", text, f"{text[1:]} ", strict=True)
    ).items():
        if sign.isascii():
            continue
        kind = unicodedata.category(sign)
        if kind[0] in "LM":
            of_other_script = "\u0370" <= sign < "\u1e00" and any(
                n.isascii() and n.isalpha() for n in (before, after)
            )
            if of_other_script or (kind == "Lu" and before.islower()):
                others[_HARDLY] += count
            else:
                small = sign.lower()
                letters[small if len(small) == 1 else sign] += count
        elif kind in ("Cc", "Co", "Cn") or sign == "\ufffd":
            others[_NEVER] += count
        elif sign in _BETWEEN_LETTERS or "\u3000" <= sign < "\u3040" or sign >= "\uff00":
            others[_USUALLY] += count
        elif before.isalpha() and after.isalpha():
            others[_HARDLY] += count
        else:
            others[_USUALLY if sign in _PUNCTUATION else _RARELY] += count
    return letters, others


@cache
def _letter(language: str, letter: str) -> float:
    """Logarithm of how likely a letter is among those of a language beyond ASCII."""
    letters = LANGUAGES[language].letters
    if not letters:
        return _ideograph(language, letter)
    place = letters.find(letter)
    # The n-th of an alphabet about as often as 1 / (n + 1).
    return -log((place + 2) * sum(1 / (n + 2) for n in range(len(letters)))) if place >= 0 else _HARDLY


# For Japanese, Korean and Chinese: a standard's encoding, the first bytes that its common signs have in it,
# how likely one of these is, and one of the others.
_IDEOGRAPHS = {
    "ja": ("shift_jis", (0x88, 0x97), -9.0, -12.0),
    "ko": ("euc_kr", (0xB0, 0xC8), -7.2, -12.0),
    "zh": ("gb2312", (0xB0, 0xD7), -7.6, -11.0),
    "zh-Hant": ("big5", (0xA4, 0xC6), -7.8, -12.0),
}


def _ideograph(language: str, letter: str) -> float:
    if "\u3041" <= letter <= "\u30ff":
        return -4.8 if language == "ja" else -12.0
    standard, (first, last), common, other = _IDEOGRAPHS[language]
    try:
        return common if first <= letter.encode(standard)[0] <= last else other
    except UnicodeEncodeError:
        return _NEVER
