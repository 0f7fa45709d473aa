"""How words of a query are read: what they exclude, and names of concepts that are none.

An encoder of pictures does not know "no": a street without cars is for it a street with cars. So "a street
without cars", "a cat, not a dog", "a man who isn't wearing a hat" are read as what is wanted, without what is
not; and of a text that says only what is not wanted ("no dog") words are searched, in lines and names, but
not pictures. Words in quotation marks are taken as they are. Of texts that are not English the words of many
languages for that are read, too ("eine Straße ohne Autos"; :mod:`moviola.search.negations`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from moviola.errors import InvalidValue
from moviola.search.concept_names import named_concepts
from moviola.search.notes import Note
from moviola.search.queries import (
    Marked,
    SearchQuery,
    Simple,
    Steps,
    Text,
    WeightedSum,
    Without,
)
from moviola.words.english import is_english

__all__ = ["says_only_what_not", "understood", "without_negation"]

IsConcept = Callable[[str], bool]

_NOBODY = re.compile(
    r"(?<![@\w])(?:nobody|no[ -]one|niemand(?:em|en)?|nadie|nessuno|ninguém|никого|никто|nikogo|nikt)\b",
    re.IGNORECASE,
)
# "no. 5" and "no 5" count; "not only" adds.
_NO = r"(?<![@\w])no(?!\.?\s*\d|\.|\s*$)(?![\w-])"
# A search engine's minus, too: cat -dog.
_OTHERS = (
    r"(?:(?<=\s)-(?=[^\W\d_])|(?<![@\w])(?:not(?!\s+only\b)|without|w/o|never|nor|neither"
    r"|except(?:\s+for)?|excluding|cannot|[a-z]+n['’]t)(?![\w-]))"
)
_NEGATION = re.compile(rf"(?:{_NO}|{_OTHERS})\s*", re.IGNORECASE)
# What leads over to it, at the end of what is wanted, and begins what is not.
_LEADING = re.compile(
    r"(?:^|[\s,;:.–—-]+)(?:but|and|or|with|that|which|who|there|it|is|are|was|were|be|has|have|had|does|do|did|can"
    r"|could|will|would|having|being)$",
    re.IGNORECASE,
)
# At the end alone it is looked for: time grows with the length of a text, not with its square.
_LONGEST_LEADING = 64
_ARTICLE = re.compile(r"^(?:any|an?|the|be|have|having|been|being|there)\s+", re.IGNORECASE)
_ALTERNATIVES = re.compile(r"\s*(?:[,;，；、،]|\b(?:or|oder|ou|или|of|eller|lub)\b)\s*", re.IGNORECASE)
_MARKS = ",;:.，；：。、،–—-"
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|„[^“”]*[“”]|«[^»]*»")


def understood(query: SearchQuery, is_concept: IsConcept) -> tuple[SearchQuery, list[Note]]:
    """A query as it is searched for, and notes on what was read differently than it was written.

    Args:
        is_concept: whether a name is that of a concept of the library.
    """
    notes: list[Note] = []
    return _read(query, is_concept, notes), notes


def _read(query: SearchQuery, is_concept: IsConcept, notes: list[Note]) -> SearchQuery:
    match query:
        case Text():
            return _text(query, notes)
        case WeightedSum():
            return _sum(query, notes)
        case Steps():
            steps: list[Any] = [_read(step, is_concept, notes) for step in query.steps]
            return replace(query, steps=tuple(steps))
        case Without():
            return _without(query, is_concept, notes)
        case Marked():
            return _marked(query, is_concept, notes)
        case _:
            return query


def _without(query: Without, is_concept: IsConcept, notes: list[Note]) -> Without:
    """An exclusion, taken as it is written, but for a concept that is none."""
    wanted = _read(query.query, is_concept, notes)
    excluded = [_marked(one, is_concept, notes) if isinstance(one, Marked) else one for one in query.excluded]
    if isinstance(wanted, Without):
        return Without.of(wanted.query, (*wanted.excluded, *excluded))
    return Without.of(wanted, excluded)


def _text(query: Text, notes: list[Note]) -> SearchQuery:
    wanted, excluded = without_negation(query.text)
    if not excluded:
        return query
    if not wanted:
        notes.append(Note("only without", query.text))
        return query
    notes.append(Note("without", wanted, excluded))
    return Without.of(Text(wanted), map(Text, excluded))


def _sum(query: WeightedSum, notes: list[Note]) -> SearchQuery:
    terms: list[tuple[SearchQuery, float]] = []
    excluded: list[Simple] = []
    for term, weight in query.terms:
        read: SearchQuery = _text(term, notes) if isinstance(term, Text) else term
        if isinstance(read, Without):
            excluded += read.excluded
            read = read.query
        terms.append((read, weight))
    whole = WeightedSum.of(terms)
    return Without.of(whole, excluded) if excluded else whole


def _marked(query: Marked, is_concept: IsConcept, notes: list[Note]) -> SearchQuery:
    """Marks with their query as it is read; a name after @ that is no concept is a word of it."""
    given = query
    if query.written:
        names = named_concepts(query.written)
        real = {name for _, name in names if name and is_concept(name)}
        if len(real) > 1:
            raise InvalidValue(f"{query.written!r}: name one concept at a time; join others with `then`")
        notes += [Note("no concept", f"@{name}") for _, name in names if name and name not in real]
        words = " ".join(word for word, name in names if name not in real or not name)
        concept = real.pop() if real else ""
        text = Text(words) if words else None
        if text is not None and not (concept or query.right or query.wrong):
            return _text(text, notes)
        given = Marked(text, query.right, query.wrong, concept)
    if given.query is None:
        return given
    read = _read(given.query, is_concept, notes)
    if isinstance(read, Without):
        # What looks like a right mark is looked for first, and then what is excluded counts against it, too.
        return Without.of(replace(given, query=read.query), read.excluded)
    return replace(given, query=read)


def says_only_what_not(text: str) -> bool:
    """Whether a text says only what is not wanted."""
    wanted, excluded = without_negation(text)
    return bool(excluded) and not wanted


def without_negation(text: str) -> tuple[str, tuple[str, ...]]:
    """What a text asks for, and what it does not want, as it is written; nothing is unwanted without a
    negation.

    >>> without_negation("a man who isn't wearing a hat, and no glasses")
    ('a man', ('wearing a hat', 'glasses'))
    >>> without_negation("no dog"), without_negation("a knot"), without_negation('a "no entry" sign')
    (('', ('dog',)), ('a knot', ()), ('a "no entry" sign', ()))
    """
    said = " ".join(text.split())
    foreign, quoted = not is_english(text), [match.span() for match in _QUOTED.finditer(said)]
    negation, nobody, spoken = _NEGATION, "no people", said
    if foreign:
        from moviola.search import negations  # only here: to read its table takes milliseconds

        negation = re.compile(rf"(?:{negations.before_what_is_not(said)}|{_OTHERS})\s*", re.IGNORECASE)
        nobody = f"{negations.MARK}people"
        spoken = negations.marked(said) if not quoted else said
    spoken = _NOBODY.sub(nobody, spoken) if not quoted else said
    pieces, begin = [], 0
    for match in negation.finditer(spoken):
        if match.start() >= begin and not any(start <= match.start() < end for start, end in quoted):
            pieces.append(spoken[begin : match.start()])
            begin = match.end()
    pieces.append(spoken[begin:])
    wanted, *unwanted = (_trimmed(piece, foreign=foreign) for piece in pieces)
    excluded = dict.fromkeys(
        negations.without_ends(_trimmed(one), begins=True) if foreign else _ARTICLE.sub("", _trimmed(one))
        for piece in unwanted
        for one in _ALTERNATIVES.split(piece)
    )
    named = tuple(one for one in excluded if re.search(r"\w", one))
    return (wanted, named) if named else (text, ())


def _trimmed(piece: str, *, foreign: bool = False) -> str:
    """A piece of a text, English or not, without what leads over to the next."""
    before, rest = "", piece.strip().strip(_MARKS).strip()
    while rest != before:
        before, found = rest, _LEADING.search(rest, max(0, len(rest) - _LONGEST_LEADING))
        rest = (rest[: found.start()] if found else rest).strip().strip(_MARKS).strip()
        if foreign:
            from moviola.search.negations import without_ends

            rest = without_ends(rest).strip().strip(_MARKS).strip()
    return rest
