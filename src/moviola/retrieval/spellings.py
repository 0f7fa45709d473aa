"""Words of a query, and other ways in which texts spell them: with and without an apostrophe, with ``ss`` for
ß, ``oe`` for ö, and numbers with and without signs between their thousands.

A spelling with a blank is a phrase: full-text indexes take what stands beside an apostrophe or a comma for
words of their own.
"""

from __future__ import annotations

import re
import unicodedata

from moviola.files.names import composed
from moviola.retrieval.phrases import spaced

__all__ = ["forms_of", "umlauts_of", "words_in"]

_APOSTROPHES = "'\u2019\u02bc"
# Vowel signs and the like, which belong to the letters before them; none of them is a letter itself.
_MARKS = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
_LETTERS = rf"(?:[^\W_]|[{_MARKS}])+"
_WORD = re.compile(
    rf"\d+(?:[.,{_APOSTROPHES}\u00a0\u202f]\d+)+(?!\w)|{_LETTERS}(?:[{_APOSTROPHES}]{_LETTERS})*"
)
# `OBrien`: a name whose apostrophe was left out.
_JOINED_NAME = re.compile(r"\b([ODLM])(?=[A-Z][a-z]{2})")
# Short words before an apostrophe, without which others say the same.
_ELIDED = re.compile(r"(?:[cdjlmnst]|qu|un|all|dall|dell|nell|sull|quest)'(?=\w{2})")
_WITHOUT_APOSTROPHE = re.compile(
    r"(?P<a>\w{2,}n)(?P<b>t)|(?P<c>you|they)(?P<d>re|ve|ll|d)|(?P<e>i)(?P<f>m|ve)|(?P<g>we)(?P<h>ve)"
    r"|(?P<i>it|that|there|who)(?P<j>ll|d)|(?P<k>[ol])(?P<l>[^\W\d_]{4,})"
)
# What contractions without their apostrophe would be taken for.
_OTHER_WORDS = frozenset({"hell", "id", "ill", "its", "shed", "shell", "wed", "well", "were"})
_NUMBER = re.compile(r"(\d{1,3}(?:\D\d{3})+|\d+)(?:\D(\d{1,2}))?")
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "æ": "ae", "ø": "oe", "å": "aa"}
# Letters of a word in which an umlaut may be spelt out: of "toe" nobody means "tö".
_LEAST = 4
_SPELT_OUT = re.compile("ae|oe|(?<![aäeq])ue")


def words_in(text: str) -> list[str]:
    """Distinct words of a text in lower case, but for those of scripts without spaces: contractions, names
    with an apostrophe and numbers as one word each, without ``'s``.

    >>> words_in("OBrien doesn't pay 1,299.00 for John's")
    ["o'brien", "doesn't", 'pay', '1,299.00', 'for', 'john']
    """
    found = _WORD.findall(spaced(_JOINED_NAME.sub(r"\1'", composed(text)).lower()))
    words = (re.sub(f"[{_APOSTROPHES}]", "'", word) for word in found)
    return list(dict.fromkeys(word.removesuffix("'s") for word in words))


def forms_of(word: str) -> list[str]:
    """A word of :func:`words_in` and its other spellings, the word first.

    >>> forms_of("o'brien"), forms_of("dont"), forms_of("köln")
    (["o'brien", 'obrien'], ['dont', 'don t'], ['köln', 'koeln'])
    >>> forms_of("1299"), forms_of("1,299.00")
    (['1299', '1 299'], ['1,299.00', '1299', '1 299', '1299 00'])
    """
    forms = [word, word.replace("ß", "ss"), word.replace("ss", "ß")]
    if word[0].isdigit():
        forms += _of_number(word)
    elif "'" in word:
        joined = word.replace("'", "")
        forms += [joined] if joined not in _OTHER_WORDS else []
        forms += [word[elided.end() :]] if (elided := _ELIDED.match(word)) else []
    elif apart := _WITHOUT_APOSTROPHE.fullmatch(word):
        forms.append(" ".join(filter(None, apart.groups())))
    spelt = "".join(_UMLAUTS.get(letter, letter) for letter in word)
    return list(dict.fromkeys([*forms, spelt]))


def _of_number(word: str) -> list[str]:
    """A number without signs between its thousands, and with a blank for each; cents only where there are
    some.
    """
    match = _NUMBER.fullmatch(word)
    if match is None:
        return []
    digits, cents = re.sub(r"\D", "", match[1]), match[2] or ""
    grouped = f"{int(digits):,}".replace(",", " ") if len(digits) > 3 and digits[0] != "0" else digits
    if cents.strip("0"):
        return [f"{digits} {cents}", f"{grouped} {cents}"]
    return [digits, grouped, *([f"{digits} {cents}"] if cents else [])]


def umlauts_of(word: str) -> str:
    """A word of at least four letters with umlauts where they are spelt out, ``köln`` for ``koeln``; empty
    where there are none.
    """
    letters = {"ae": "ä", "oe": "ö", "ue": "ü"}
    found = _SPELT_OUT.sub(lambda match: letters[match[0]], word)
    return found if found != word and len(word) >= _LEAST else ""
