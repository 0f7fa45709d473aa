"""Words of a text, and other ways in which texts spell them: with and without an apostrophe, a hyphen, or
points between letters, ``oe`` for ö, numbers with and without signs between their thousands.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from moviola.words.scripts import RUN

__all__ = [
    "Written", "forms_of", "is_short_number", "joined_at", "joined_numbers", "numbers_in",
    "short_numbers_within", "words_at", "words_in",
]  # fmt: skip

JOINT = "ꞌ"
"""Replaces an apostrophe, or the point before cents, inside a term."""

_APOSTROPHES = "'\u2019\u02bc"
_OTHER_APOSTROPHES = re.compile("[\u2019\u02bc]")
# A letter or a digit; where all letters are ASCII's, no mark belongs to one.
_PLAIN = r"[^\W_]+"
# `OBrien`: a name whose apostrophe was left out.
_JOINED_NAME = re.compile(r"\b([ODLM])(?=[A-Z][a-z]{2})")
# Short words before an apostrophe, without which others say the same.
_ELIDED = re.compile(r"(?:[cdjlmnst]|qu|un|all|dall|dell|nell|sull|quest)'(?=\w{2})")
# What contractions without their apostrophe would be taken for.
_OTHER_WORDS = frozenset({"hell", "id", "ill", "its", "shed", "shell", "wed", "well", "were"})
_NUMBER = re.compile(r"(\d{1,3}(?:\D\d{3})+|\d+)(?:\D(\d{1,2}))?")
_UMLAUTS = {"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"}
# `1 299 000`, in lines alone.
_GROUPS = re.compile(r"(?<![\w.,])\d{1,3}(?: \d{3})+(?![\w.,]*\d)")
# `00:12;03`, `24/7`, `2024-11-30`, and `00 12 03`, as a clock in a picture is read.
_JOINED_NUMBERS = re.compile(r"\d+(?:[:;/\u2010-\u2013-]\d+)+|(?<!\d)\d\d(?:[ \t]\d\d)+(?!\d)")
_SHORT_NUMBER = re.compile(r"\d\d?")


# `U.S.A.`, which others write as one word.
_POINTED = re.compile(r"(?<![\w.])(?:[^\W\d_]\.){2,6}(?:[^\W\d_](?![\w.]))?(?!\w)")


@cache
def _letters() -> str:
    """Letters with vowel signs and the like, which belong to those before them; none is a letter itself."""
    marks = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
    return rf"(?:[^\W_]|[{marks}\u00ad\u200c\u200d])+"


@cache
def _word(plain: bool) -> re.Pattern[str]:
    """A word; ``plain``: of texts in ASCII, for which no table of marks is made."""
    own = _PLAIN if plain else _letters()
    return re.compile(rf"\d+(?:[.,{_APOSTROPHES}\u00a0\u202f]\d+)+(?!\w)|{own}(?:[{_APOSTROPHES}]{own})*")


@cache
def _hyphened() -> re.Pattern[str]:
    """`e-mail`, which others write as one word."""
    return re.compile(rf"(?<![\w-]){_letters()}(?:[-\u2010\u2011]{_letters()}){{1,3}}(?![\w-])")


class Written(NamedTuple):
    """A word where it stands in a text, and in lower case, without ``'s``."""

    start: int
    end: int
    word: str


def words_at(text: str) -> Iterator[Written]:
    """The words of a text, but for those of scripts without spaces: contractions, names with an apostrophe
    and numbers as one word each.
    """
    plain = text.isascii()
    spaced = text if plain else re.sub(RUN, lambda run: " " * len(run[0]), text)
    for found in _word(plain).finditer(spaced):
        yield Written(*found.span(), _in_small(found[0]))


@lru_cache(maxsize=100_000)
def _in_small(word: str) -> str:
    small = _OTHER_APOSTROPHES.sub("'", _JOINED_NAME.sub(r"\1'", word).lower())
    return unicodedata.normalize("NFC", small).removesuffix("'s")


def words_in(text: str) -> list[str]:
    """The distinct words of :func:`words_at`.

    >>> words_in("OBrien doesn't pay 1,299.00 for John's")
    ["o'brien", "doesn't", 'pay', '1,299.00', 'for', 'john']
    """
    return list(dict.fromkeys(written.word for written in words_at(text)))


def joined_at(text: str) -> Iterator[Written]:
    """What hyphens, or points between letters, part, as one word each.

    >>> " ".join(one.word for one in joined_at("an e-mail from the U.S.A. about co-operation"))
    'email cooperation usa'
    """
    if "-" not in text and "." not in text and text.isascii():
        return
    for pattern in (_hyphened(), _POINTED):
        for found in pattern.finditer(text):
            yield Written(*found.span(), _in_small(re.sub(r"[-\u2010\u2011.]", "", found[0])))


def numbers_in(text: str) -> list[str]:
    """Numbers of a text with blanks between their thousands."""
    return _GROUPS.findall(text)


def is_short_number(word: str) -> bool:
    """Whether a word has one or two digits and nothing else."""
    return _SHORT_NUMBER.fullmatch(word) is not None


def joined_numbers(text: str) -> list[str]:
    """Numbers of a text that signs, or blanks between two digits each, join: times, dates, counters."""
    return _JOINED_NUMBERS.findall(text)


def short_numbers_within(text: str) -> frozenset[str]:
    """Words of one or two digits that stand in a text only as parts of :func:`joined_numbers`.

    >>> sorted(short_numbers_within("take 7 of 2024-11-30, at 00:07:12"))
    ['00', '07', '11', '12', '30']
    """
    joined = [one.span() for one in _JOINED_NUMBERS.finditer(text)]
    short = [one for one in words_at(text) if is_short_number(one.word)] if joined else []
    within = {one for one in short if any(start <= one.start < end for start, end in joined)}
    return frozenset(one.word for one in within) - {one.word for one in short if one not in within}


def forms_of(word: str, language: str = "") -> list[str]:
    """The spellings by which a word of :func:`words_in` is compared.

    >>> forms_of("o'brien"), forms_of("she'll"), forms_of("köln"), forms_of("l'école")
    (['obrien'], ['sheꞌll'], ['köln', 'koeln'], ['lécole', 'école'])
    >>> forms_of("1,299.00"), forms_of("1299"), forms_of("3.5"), forms_of("istanbul'a", "tr")
    (['1299'], ['1299'], ['3ꞌ5'], ['istanbula', 'istanbul'])
    """
    if word[0].isdigit() and (number := _of_number(word)):
        return [number]
    forms = [word]
    if "'" in word:
        joined = word.replace("'", "")
        forms = [word.replace("'", JOINT) if joined in _OTHER_WORDS else joined]
        forms += [word[elided.end() :]] if (elided := _ELIDED.match(word)) else []
        forms += [word.partition("'")[0]] if language == "tr" else []
    forms += ["".join(_UMLAUTS.get(letter, letter) for letter in form) for form in forms]
    return list(dict.fromkeys(form.replace("'", JOINT) for form in forms if form))


def _of_number(word: str) -> str:
    """A number without signs between its thousands; cents only where there are some."""
    match = _NUMBER.fullmatch(word)
    if match is None:
        return ""
    digits, cents = re.sub(r"\D", "", match[1]), match[2] or ""
    return f"{digits}{JOINT}{cents}" if cents.strip("0") else digits
