"""Noun and verb phrases of captions, for potentially relevant pairs (paper 003, section 4.1).

The paper uses a constituency parser; here they are derived from spaCy's dependencies. A verb phrase is a verb
with its dependents, without its subject, its auxiliaries and other clauses; "man and woman start dancing" has
"start dancing" and "dancing", and the nouns "man" and "woman" for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.study.datasets.english import load_english

__all__ = ["Chunker", "Phrase", "chunker_with_spacy"]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A verb phrase and the nouns of its subject, in lower case; without nouns where it has no subject."""

    nouns: tuple[str, ...]
    verb_phrase: str


Chunker = Callable[[Sequence[str]], list[list[Phrase]]]
"""Captions to the verb phrases of each, in order."""

_SUBJECTS = frozenset({"nsubj", "nsubjpass"})
_AUXILIARIES = frozenset({"aux", "auxpass"})
_OTHER_CLAUSES = frozenset({"conj", "cc", "punct", "mark", "advcl", "relcl", "parataxis"})
_OF_A_NOUN = frozenset({"relcl", "acl"})
_RELATIVE = frozenset({"who", "which", "that", "whom"})


def chunker_with_spacy() -> Chunker:
    """The chunker; :class:`MissingDependency` without spaCy or its English pipeline."""
    pipeline = load_english(exclude=["ner"])
    return lambda captions: [
        [Phrase(_nouns_of(token), _verb_phrase(token)) for token in caption if _is_verb(token)]
        for caption in pipeline.pipe(captions)
    ]


def _is_verb(token: Any) -> bool:
    """Verbs, and auxiliaries that stand for one ("is in the kitchen"); no participle before its noun."""
    return token.pos_ in ("VERB", "AUX") and token.dep_ not in {*_AUXILIARIES, "amod"}


def _verb_phrase(verb: Any) -> str:
    left_out = {
        inner.i
        for child in verb.children
        if child.dep_ in _SUBJECTS | _AUXILIARIES | _OTHER_CLAUSES
        for inner in child.subtree
    }
    kept = [token for token in verb.subtree if token.i not in left_out and not token.is_punct]
    return " ".join(token.lower_ for token in kept)


def _nouns_of(verb: Any) -> tuple[str, ...]:
    """The subject's nouns: a verb's own, else that of the verb, or the noun, that it hangs on."""
    head = verb
    while True:
        for child in head.children:
            if child.dep_ in _SUBJECTS and child.lower_ not in _RELATIVE:
                return tuple(noun.lower_ for noun in _joined(child))
        if head.dep_ in _OF_A_NOUN:
            return tuple(noun.lower_ for noun in _joined(head.head)) if not _is_verb(head.head) else ()
        if head.dep_ == "ROOT":
            return ()
        head = head.head


def _joined(noun: Any) -> list[Any]:
    return [noun, *(other for child in noun.children if child.dep_ == "conj" for other in _joined(child))]
