"""Search for person names left in a rewrite, for which the paper uses Flair (TVR-Ranking, appendix A).

``spacy`` is independent of the rewriter. ``lexicon`` needs no package, but is the rules' own list: it finds
only names that they left although they knew them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from moviola.datasets.building.person_names import NameLexicon
from moviola.datasets.building.rewriting import find_names
from moviola.datasets.english import load_english
from moviola.types import require_known

__all__ = ["NAME_FINDERS", "NameFinder", "finder_by_lexicon", "finder_by_spacy", "load_name_finder"]

NameFinder = Callable[[Sequence[str]], list[tuple[str, ...]]]
"""Texts to the names of persons in each."""


def finder_by_spacy(lexicon: NameLexicon) -> NameFinder:
    """Entities of spaCy that are persons and hold a proper noun with a capital; the lexicon is not used."""
    pipeline = load_english(exclude=["parser", "lemmatizer"])

    def names(entities: Iterable[Any]) -> Iterator[str]:
        for entity in entities:
            # Without a capital the small pipeline takes any "mug" for a person.
            if entity.label_ == "PERSON" and any(t.pos_ == "PROPN" and t.is_title for t in entity):
                yield entity.text

    return lambda texts: [tuple(names(text.ents)) for text in pipeline.pipe(texts)]


def finder_by_lexicon(lexicon: NameLexicon) -> NameFinder:
    """Names learned from the original captions."""
    return lambda texts: [tuple(find_names(text, lexicon)) for text in texts]


NAME_FINDERS = {"spacy": finder_by_spacy, "lexicon": finder_by_lexicon}


def load_name_finder(name: str, lexicon: NameLexicon) -> NameFinder:
    """A finder by name.

    Raises:
        InvalidValue: an unknown name.
        MissingDependency: its package is not installed.
    """
    require_known("names", name, NAME_FINDERS)
    return NAME_FINDERS[name](lexicon)
