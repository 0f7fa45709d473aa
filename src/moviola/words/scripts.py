"""Scripts: which are written without spaces, and which languages a script leaves.

In Chinese, Japanese, Thai, Lao, Khmer and Burmese, and in Korean, whose words grow by what is joined to them,
pairs of neighbouring letters stand in for words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

__all__ = ["RUN", "is_kana", "letters_of", "pairs_of", "script_language", "script_of"]

# Thai and Lao, Burmese, Khmer, kana, Han, Hangul; and the sign that lengthens a kana.
RUN = (
    "[\u0e01-\u0e4e\u0e80-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u3005\u3041-\u3096\u309d-\u309f"
    "\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
    "\u1100-\u11ff\uff66-\uffdc]+"  # Hangul in pieces, and letters of half the width
)
"""Pattern of a run of letters of these scripts; its table takes a thousandth of a second to make."""


def _runs(text: str) -> list[str]:
    return [] if text.isascii() else re.findall(RUN, text)


def pairs_of(text: str) -> list[str]:
    """Pairs of neighbouring letters of these scripts, in order; a letter alone is one, too."""
    runs = _runs(text)
    return [run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1))]


def letters_of(text: str) -> list[str]:
    """The letters of these scripts in a text, in order, marks that belong to others left out."""
    return [letter for run in _runs(text) for letter in run if unicodedata.category(letter)[0] == "L"]


def is_kana(letter: str) -> bool:
    """Whether a folded letter is one of kana."""
    return "\u3041" <= letter <= "\u309f" or letter == "\u30fc"


# Languages that a script leaves: the first by itself, where nothing else is known.
_SCRIPTS = {
    "LATIN": "", "GREEK": "el", "CYRILLIC": "", "ARABIC": "", "HEBREW": "he", "DEVANAGARI": "", "BENGALI": "",
    "TAMIL": "ta", "TELUGU": "te", "THAI": "th", "LAO": "lo", "KHMER": "km", "MYANMAR": "my", "HANGUL": "ko",
    "HIRAGANA": "ja", "KATAKANA": "ja", "CJK": "zh", "GEORGIAN": "ka", "ARMENIAN": "hy", "GUJARATI": "gu",
    "GURMUKHI": "pa", "KANNADA": "kn", "MALAYALAM": "ml", "SINHALA": "si", "ETHIOPIC": "am",
}  # fmt: skip
_WRITTEN_IN = {
    "CYRILLIC": {"ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "tg", "mn", "tt", "ba", "cv", "os"},
    "ARABIC": {"ar", "fa", "ur", "ps", "ug", "sd", "ckb", "ku", "arz"},
    "DEVANAGARI": {"hi", "mr", "ne", "sa", "bho"},
    "BENGALI": {"bn", "as"},
    "HEBREW": {"he", "yi"},
    "CJK": {"zh", "ja", "ko", "yue"},
    "HIRAGANA": {"ja"},
    "KATAKANA": {"ja"},
}


def script_of(text: str) -> str:
    """The script of most letters of a text, as Unicode names it; kana where there is some among Han."""
    counts = Counter(
        unicodedata.name(letter, "").partition(" ")[0]
        for letter in text
        if letter.isalpha() or ord(letter) > 0x900
    )
    known = Counter({script: count for script, count in counts.items() if script in _SCRIPTS})
    if not known:
        return ""
    (script, _), *_ = known.most_common(1)
    if script == "CJK" and (known["HIRAGANA"] or known["KATAKANA"]):
        return "HIRAGANA"
    return script


def script_language(text: str) -> str:
    """The language of a text by its script alone, empty where several are written in it."""
    return _SCRIPTS.get(script_of(text), "")


def is_written_in(text: str, language: str) -> bool:
    """Whether a language may be written in the script of most letters of a text."""
    script = script_of(text)
    if not script:
        return True
    if script in _WRITTEN_IN:
        return language in _WRITTEN_IN[script]
    if _SCRIPTS[script]:
        return language == _SCRIPTS[script]
    others = {one for ones in _WRITTEN_IN.values() for one in ones} | set(_SCRIPTS.values()) - {""}
    return language not in others - {"sr", "ku", "mn", "tt", "kk"}
