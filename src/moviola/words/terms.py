"""Terms: what lines, queries and names are compared by, and what the index of lines holds.

A word is folded, and stemmed in the language of its text (Snowball); the stem bears the language,
``haus·de``, so that a stem is not taken for a word of another one. Texts in a language without a stemmer give
folded words. Runs of letters without spaces give pairs of neighbours, and single letters, which weigh less. A
query is read in each language of a library, and a German word also finds the compounds of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby

from Stemmer import Stemmer

from moviola.words.folding import cased, fold, plain
from moviola.words.inflections import FURTHER_FORMS
from moviola.words.scripts import RUN, is_kana, pairs_of
from moviola.words.spellings import forms_of, joined_at, numbers_in, words_at, words_in

__all__ = [
    "COMPOUNDING", "MARK", "Asked", "AskedWord", "asked_of", "terms_of_text", "terms_of_word", "word_of_term",
    "written_as",
]  # fmt: skip

MARK = "·"
"""Between a stem and its language."""

STEMMERS = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en":
    "english", "eo": "esperanto", "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian",
    "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch", "no":
    "norwegian", "nb": "norwegian", "nn": "norwegian", "pl": "polish", "pt": "portuguese", "ro":
    "romanian", "ru": "russian", "sr": "serbian", "st": "sesotho", "sv": "swedish", "ta": "tamil", "tr":
    "turkish", "yi": "yiddish",
}  # fmt: skip
"""Snowball's stemmers by language."""

COMPOUNDING = frozenset({"de", "nl", "sv", "da", "no", "nb", "nn", "fi", "hu", "et"})
"""Languages that write compounds as one word."""

# Languages with a stemmer that are not written in Latin letters.
_OTHER_LETTERS = frozenset({"ar", "el", "fa", "hi", "hy", "ne", "ru", "ta", "yi"})
_LAST_LATIN = "\u036f"
# "al-", with "and", "in", "like", "then" and "for" before it.
_ARTICLES = ("وال", "بال", "كال", "فال", "ال", "لل")
_LEAST_ROOT = 3
_SIGNS = dict.fromkeys(code for code in range(128) if not chr(code).isalnum())


@lru_cache(maxsize=10_000)
def _words_of(text: str, language: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """Where the words of a text stand, and their terms; those that signs part also as one."""
    words = (*words_at(text), *joined_at(text))
    return tuple((one.start, one.end, terms_of_word(one.word, language)) for one in words)


def terms_of_text(text: str, language: str) -> list[str]:
    """The terms of a text in a language, in order; of one in no known language those of English, too."""
    terms = [term for _, _, own in _words_of(text, language) for term in own]
    terms += [
        term for number in numbers_in(text) for term in terms_of_word(number.replace(" ", ""), language)
    ]
    return terms + pairs_of(fold(text))


@lru_cache(maxsize=200_000)
def terms_of_word(word: str, language: str) -> frozenset[str]:
    """The terms of a word of :func:`moviola.words.words_in` in a language; of none the folded word, and its
    stem as an English one.

    >>> sorted(terms_of_word("cyclists", "en")), sorted(terms_of_word("cyclists", ""))
    (['cyclist·en'], ['cyclists', 'cyclist·en'])
    """
    terms: set[str] = set()
    for form in map(cased, forms_of(word, language)):
        bare = _bare(form)
        if not language:
            terms |= {bare, _stem(bare, "en") if bare.isascii() else bare}
        elif language in STEMMERS and (bare[:1] > _LAST_LATIN) == (language in _OTHER_LETTERS):
            terms |= {_stem(form, language), *(_stem(one, language) for one in _roots(bare, language))}
        else:
            terms.add(bare)
    return frozenset(filter(None, terms))


def _roots(word: str, language: str) -> list[str]:
    if language == "ar":
        found = next((one for one in _ARTICLES if word.startswith(one)), "")
        if found and len(word) - len(found) >= _LEAST_ROOT:
            return [word[len(found) :]]
    if language == "el":  # endings are taken off one after the other
        return [word, word_of_term(_stem(word, language))]
    return [word]


def _stem(word: str, language: str) -> str:
    # A stemmer of its own: one may not serve two threads.
    stem = _bare(str(Stemmer(STEMMERS[language]).stemWord(word)))
    return f"{stem}{MARK}{language}" if stem else ""


def _bare(word: str) -> str:
    """A word of :func:`cased` as a term: signs, of which some letters consist (``⑴``), would part it."""
    return plain(word).translate(_SIGNS)


def word_of_term(term: str) -> str:
    """A term without its language."""
    return term.partition(MARK)[0]


@dataclass(frozen=True, slots=True)
class AskedWord:
    """A word that a query asks for, or a pair of letters.

    Attributes:
        text: as it is written, in lower case.
        terms: of it in all languages in which it is read; a text that has one of them holds the word.
        parts: terms of compounds of it, which say less.
    """

    text: str
    terms: frozenset[str]
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query asks of texts: words, pairs of letters, and letters, each once."""

    words: tuple[AskedWord, ...] = ()
    pairs: tuple[AskedWord, ...] = ()
    letters: tuple[str, ...] = ()

    @property
    def units(self) -> tuple[AskedWord, ...]:
        """The words and the pairs."""
        return (*self.words, *self.pairs)


def asked_of(words: Sequence[str], text: str, languages: Collection[str]) -> Asked:
    """What a query asks for, read in some languages besides none.

    ``words`` are those of :func:`moviola.words.words_in` that count; ``text`` is all of it.
    """
    from moviola.words.scripts import letters_of

    read = ("", *languages)

    def wanted(word: str) -> frozenset[str]:
        return frozenset().union(*(_terms_wanted(word, one) for one in read))

    whole: dict[str, frozenset[str]] = {}
    for joined in joined_at(text):
        parts = words_in(text[joined.start : joined.end])
        whole |= {part: whole.get(part, frozenset()) | wanted(joined.word) for part in parts}
    found = [AskedWord(word, wanted(word) | whole.get(word, frozenset())) for word in words]
    folded = fold(text)
    pairs = [AskedWord(pair, frozenset({pair})) for pair in dict.fromkeys(pairs_of(folded))]
    letters = dict.fromkeys(letters_of(folded))
    # Kana beside other letters are endings of words: "書く" is written "書いて", too.
    stems = [letter for letter in letters if not is_kana(letter)]
    return Asked(tuple(found), tuple(pairs), tuple(stems or letters))


def _terms_wanted(word: str, language: str) -> set[str]:
    """Terms of a word, which may itself be a stem of others: Spanish "mujer", which by itself would lose its
    end; and of its further forms.
    """
    further = FURTHER_FORMS[language](cased(word)) if language in FURTHER_FORMS else []
    terms = {term for form in (word, *further) for term in terms_of_word(form, language)}
    whole = _bare(cased(word))
    tagged = language and any(MARK in term for term in terms) and "'" not in word
    return terms | {f"{whole}{MARK}{language}"} if tagged and not word[0].isdigit() else terms


def written_as(text: str, language: str, terms: Collection[str]) -> list[str]:
    """The words of a text, as they are written, that have one of some terms; of runs of letters the longest
    stretches of such pairs.

    >>> written_as("Er hat drei alte Häuser", "de", {"haus·de"})
    ['Häuser']
    >>> written_as("我们去火车站", "zh", {"火车", "车站"})
    ['火车站']
    """
    wanted = frozenset(terms)
    found = [
        (start, text[start:end])
        for start, end, own in _words_of(text, language)
        if not wanted.isdisjoint(own)
    ]
    for run in re.finditer(RUN, text):
        found += [(run.start() + at, piece) for at, piece in _stretches(run[0], wanted)]
    return list(dict.fromkeys(word for _, word in sorted(found)))


def _stretches(run: str, wanted: frozenset[str]) -> list[tuple[int, str]]:
    """The longest stretches of a run of letters that wanted pairs or letters cover, and where they begin."""
    pieces = [fold(letter) for letter in run]
    folded = fold(run)
    held = [False] * (len(folded) + 1)
    for at in range(len(folded)):
        for length in (1, 2):
            if len(folded[at : at + length]) == length and folded[at : at + length] in wanted:
                held[at : at + length] = [True] * length
    if "".join(pieces) != folded:  # letters of half the width, whose marks are letters of their own
        return [(0, run)] if any(held) else []
    ends = [*accumulate(map(len, pieces))]
    marked = [any(held[end - len(piece) : end]) for end, piece in zip(ends, pieces, strict=True)]
    found: list[tuple[int, str]] = []
    for held_here, group in groupby(range(len(run)), key=marked.__getitem__):
        places = [*group]
        if held_here:
            found.append((places[0], run[places[0] : places[-1] + 1]))
    longest = max((len(piece) for _, piece in found), default=0)
    return [(at, piece) for at, piece in found if 2 * len(piece) > longest]
