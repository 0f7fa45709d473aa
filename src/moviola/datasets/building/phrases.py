"""Verb phrases and noun phrases of captions, for potentially relevant pairs (paper 003, section 4).

A parser that is installed is used: spaCy with an English pipeline. Without one a small chunker of ours takes
its place. Captions are simple sentences in the third person, so that a few rules carry far: a verb phrase
begins at a verb form and ends before the next clause, and the subject before it gives the noun.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.datasets.building.person_names import words
from moviola.datasets.statistics import verbs
from moviola.errors import InvalidValue, MissingDependency

__all__ = ["CHUNKERS", "Chunker", "Phrase", "chunker_with_rules", "chunker_with_spacy", "load_chunker"]

_TOKEN = re.compile(r"[a-z]+(?:['-][a-z]+)*|[,.;:!?]")
_AUXILIARY = words("""
    is are was were be been being am has have had do does did can could will would may
    might must starts start
    started begins begin began continues continue tries try proceeds appears seems
""")
_CLAUSE = words("""
    and then while as when before after because but so until that who which , . ; : ! ?
""")
_LEADS = _AUXILIARY | {"to", "not"}
_DETERMINERS = words("""
    a an the his her their its this that another some two three four
    five both
""")
_SUBJECTS = words("""
    man woman person people men women boy girl child kid someone guy lady he she they it
    doctor nurse dog cat baby
    patient officer player teacher friend couple group
""")
_AFTER_VERB = words("""
    a an the his her their its on in to into at from with up down out off over of
    through by and onto
""")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A verb phrase and the noun of its subject; the noun is empty where none was found."""

    noun: str
    verb_phrase: str


Chunker = Callable[[str], list[Phrase]]
"""A caption to its verb phrases, in order."""


def chunker_with_rules(captions: Iterable[str]) -> Chunker:
    """Our own chunker; which words can be verbs is learnt from the endings that occur in ``captions``."""
    known = verbs({word for caption in captions for word in _TOKEN.findall(caption.lower())})
    return lambda caption: _chunk(_TOKEN.findall(caption.lower()), known)


def _chunk(tokens: Sequence[str], known: set[str]) -> list[Phrase]:
    found: list[Phrase] = []
    subject, place = "", 0
    while place < len(tokens):
        if not _begins_verb(tokens, place, known, bool(subject)):
            if _is_subject(tokens, place):
                subject = tokens[place]
            place += 1
            continue
        first = place
        while place < len(tokens) and tokens[place] in _LEADS:
            place += 1
        core = place
        while place < len(tokens) and tokens[place] not in _CLAUSE:
            place += 1
        phrase = " ".join(tokens[core:place] or tokens[first:core])
        found.append(Phrase(subject, phrase))
    return found


def _begins_verb(tokens: Sequence[str], place: int, known: set[str], has_subject: bool) -> bool:
    """A verb form that stands where a verb may stand; right after a determiner it is a noun."""
    word = tokens[place]
    before = tokens[place - 1] if place else ""
    if before in _DETERMINERS:
        return before == "that" and word in _AUXILIARY
    if word in _AUXILIARY:
        return True
    if word not in known:
        return False
    if place == 0:
        # An imperative or a headless sentence ("opens the door"), not "Book on a table".
        return len(tokens) > 1 and tokens[1] in _AFTER_VERB
    return has_subject


def _is_subject(tokens: Sequence[str], place: int) -> bool:
    word = tokens[place]
    determined = place > 0 and tokens[place - 1] in _DETERMINERS and word not in _AUXILIARY
    return word in _SUBJECTS or (determined and word.isalpha())


def chunker_with_spacy(captions: Iterable[str], model: str = "en_core_web_sm") -> Chunker:
    """spaCy's dependency parse: a verb with its subtree, less its subject and other clauses.

    Raises:
        MissingDependency: spaCy or its English pipeline is not installed.
    """
    if importlib.util.find_spec("spacy") is None:
        raise MissingDependency(
            "phrases by spaCy: not installed; pip install spacy, or take the chunker 'rules'"
        )
    import spacy

    try:
        pipeline: Any = spacy.load(model, exclude=["ner"])
    except OSError as error:
        raise MissingDependency(f"spaCy's pipeline {model!r} is not installed ({error})") from error
    return lambda caption: _parsed(pipeline(caption))


_OTHER_CLAUSES = frozenset({"conj", "advcl", "relcl", "ccomp", "cc", "punct", "mark"})
_SUBJECT_ROLES = frozenset({"nsubj", "nsubjpass"})


def _parsed(sentence: Any) -> list[Phrase]:
    found = []
    for token in sentence:
        if token.pos_ != "VERB":
            continue
        left_out = {
            inner.i
            for child in token.children
            if child.dep_ in _OTHER_CLAUSES | _SUBJECT_ROLES | {"aux", "auxpass"}
            for inner in child.subtree
        }
        tokens = [inner.text.lower() for inner in token.subtree if inner.i not in left_out]
        head = token
        while head.dep_ == "conj" and not _subject_of(head):
            head = head.head
        found.append(Phrase(_subject_of(head), " ".join(tokens)))
    return found


def _subject_of(verb: Any) -> str:
    return next((child.text.lower() for child in verb.children if child.dep_ in _SUBJECT_ROLES), "")


CHUNKERS: dict[str, Callable[[Iterable[str]], Chunker]] = {
    "rules": chunker_with_rules,
    "spacy": chunker_with_spacy,
}


def load_chunker(name: str, captions: Iterable[str]) -> Chunker:
    """A chunker by name.

    Raises:
        InvalidValue: an unknown name.
        MissingDependency: its parser is not installed.
    """
    if name not in CHUNKERS:
        raise InvalidValue(f"chunker {name!r}: unknown; there are {', '.join(CHUNKERS)}")
    return CHUNKERS[name](captions)
