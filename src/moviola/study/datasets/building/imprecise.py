"""Imprecise captions from precise ones, checked and resumable (TVR-Ranking, section 3.1 and appendix A).

A rewrite passes if it is similar enough to the original and no person name is left in it. Failures are
requested again at a higher temperature, then go to a review file for a person to edit. What passes is written
to a journal at once, so that an interrupted run continues where it was. Each run checks it again: its checks
may be others.

Names left are looked for as the paper does with Flair: ``spacy`` is independent of the rewriter; ``lexicon``
needs no package, but is the rules' own list: it finds only names that they left although they knew them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from moviola.errors import InvalidValue
from moviola.files.rows import read_csv, read_json_lines, text
from moviola.files.writing import write_csv
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.chat import EndpointFailure
from moviola.study.datasets.building.nearest import TextEncoder, unit_rows
from moviola.study.datasets.building.person_names import NameLexicon
from moviola.study.datasets.building.rewriting import find_names, rewrite
from moviola.study.datasets.english import load_english
from moviola.types import require_known, require_positive

__all__ = [
    "NAME_FINDERS", "THRESHOLD", "Check", "NameFinder", "Outcome", "Rewrite", "by_rules", "finder_by_lexicon",
    "finder_by_spacy", "load_name_finder", "make_imprecise", "read_journal", "read_review", "with_captions",
    "write_review",
]  # fmt: skip

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


THRESHOLD = 0.4
"""Minimum sentence similarity of a caption and its rewrite."""

TEMPERATURES = (0.0, 0.2)
"""Temperatures of the first request and of the second one for failures."""

# Batches in a row without an answer: then the endpoint is down, and the rest waits for the next run.
_GIVE_UP = 3

Rewriter = Callable[[Sequence[str], float], list[str]]
"""Captions and a temperature to one rewrite each."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A caption's rewrite, its similarity to the caption in [-1, 1], and the names left in it."""

    caption: str
    rewrite: str
    similarity: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Checks rewrites; ``find_names`` should be independent of the rewriter."""

    encoder: TextEncoder
    find_names: NameFinder
    threshold: float = THRESHOLD

    def judge(self, captions: Sequence[str], rewrites: Sequence[str]) -> list[Rewrite]:
        """Measure each rewrite; an unchanged caption has similarity 1."""
        changed = [place for place in range(len(captions)) if captions[place] != rewrites[place]]
        similarity = np.ones(len(captions))
        if changed:
            before = unit_rows(self.encoder.encode_text([captions[place] for place in changed]))
            after = unit_rows(self.encoder.encode_text([rewrites[place] for place in changed]))
            similarity[changed] = np.sum(before * after, axis=1)
        return [
            Rewrite(caption, new, round(float(value), 4), names)
            for caption, new, value, names in zip(
                captions, rewrites, similarity, self.find_names(rewrites), strict=True
            )
        ]

    def passes(self, judged: Rewrite) -> bool:
        """Whether the meaning is kept and no name is left."""
        return judged.similarity >= self.threshold and not judged.names


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run.

    Attributes:
        done: rewrites by caption, those of earlier runs and of people included.
        failed: last rewrites that did not pass, for review.
        open: captions without a response; the next run requests them again.
        trouble: reasons, one line per batch.
    """

    done: dict[str, str]
    failed: tuple[Rewrite, ...]
    open: tuple[str, ...]
    trouble: tuple[str, ...]


def by_rules(lexicon: NameLexicon) -> Rewriter:
    """The offline rewriter; temperatures do not matter to it."""
    return lambda captions, temperature: [rewrite(caption, lexicon) for caption in captions]


def make_imprecise(
    captions: Iterable[str],
    rewriter: Rewriter,
    check: Check,
    journal: Path,
    *,
    reviewed: Mapping[str, str] | None = None,
    batch: int = 20,
    by: str = "",
) -> Outcome:
    """Rewrite captions, each text once.

    Args:
        rewriter: :func:`by_rules` or :meth:`moviola.study.datasets.building.chat.ChatEndpoint.rewrite`.
        journal: JSON lines; captions whose rewrite in it passes ``check`` are not rewritten again, new
            rewrites are appended.
        reviewed: rewrites by reviewers, accepted unchanged.
        batch: captions per request, >= 1.
        by: who rewrites, noted in the journal; rewrites of another are refused.

    Raises:
        DataError: the journal is damaged.
        InvalidValue: ``batch`` < 1, or the journal has rewrites of another.
    """
    require_positive(batch=batch)
    given = dict.fromkeys(captions)
    # Moments that a search found have no caption.
    decided = {**(reviewed or {}), "": ""}
    known = {caption: new for caption, new in read_journal(journal, by).items() if caption not in decided}
    done = {caption: decided[caption] for caption in given if caption in decided}
    written = [caption for caption in given if caption in known]
    for judged in check.judge(written, [known[caption] for caption in written]):
        if check.passes(judged):
            done[judged.caption] = judged.rewrite
    waiting = [caption for caption in given if caption not in done]
    failed: dict[str, Rewrite] = {}
    unanswered: list[str] = []
    trouble: list[str] = []
    in_a_row = 0
    journal.parent.mkdir(parents=True, exist_ok=True)
    _mend(journal)
    with journal.open("a", encoding="utf-8") as file:
        for temperature in TEMPERATURES:
            for some in (waiting[first : first + batch] for first in range(0, len(waiting), batch)):
                rewrites: list[str] = []
                if in_a_row < _GIVE_UP:
                    try:
                        rewrites, in_a_row = rewriter(some, temperature), 0
                    except EndpointFailure as error:
                        trouble.append(str(error))
                        in_a_row += 1
                if not rewrites:
                    unanswered.extend(caption for caption in some if caption not in failed)
                    continue
                for judged in check.judge(some, rewrites):
                    if check.passes(judged):
                        done[judged.caption] = judged.rewrite
                        failed.pop(judged.caption, None)
                        row = asdict(judged) | ({"by": by} if by else {})
                        file.write(json.dumps(row, ensure_ascii=False) + "\n")
                    else:
                        failed[judged.caption] = judged
                file.flush()
            waiting = list(failed)
    return Outcome(done, tuple(failed.values()), tuple(unanswered), tuple(trouble))


def _mend(journal: Path) -> None:
    """Cut off a last line that a killed run did not finish."""
    if journal.is_file():
        content = journal.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with journal.open("r+b") as file:
                file.truncate(whole)


def read_journal(path: Path, by: str = "") -> dict[str, str]:
    """Rewrites by caption, the last of each; an unfinished last line and empty captions are ignored.

    Another damaged line is a :class:`DataError`; a rewrite of another than ``by``, where that is given, an
    :class:`InvalidValue`.
    """
    if not path.exists():
        return {}
    _mend(path)
    rewrites: dict[str, str] = {}
    for where, row in read_json_lines(path):
        author = row.get("by", by)  # older journals do not say
        if by and author != by:
            raise InvalidValue(
                f"{where}: rewritten by {author}, now by {by}; go on as before, or give another --out, "
                "which has a journal of its own"
            )
        if row.get("caption") != "":
            rewrites[text(row, "caption", where)] = text(row, "rewrite", where)
    return rewrites


def write_review(failed: Iterable[Rewrite], path: Path, decided: Mapping[str, str] | None = None) -> None:
    """Write failures as CSV; a person fills in the column ``final`` beside the proposal.

    Earlier decisions in ``decided`` (caption to final) stay in the file.
    """
    open_rows = ((one.caption, one.rewrite, one.similarity, "; ".join(one.names), "") for one in failed)
    decided_rows = ((caption, "", "", "", final) for caption, final in (decided or {}).items())
    header = ("caption", "proposal", "similarity", "names", "final")
    write_csv(path, header, chain(open_rows, decided_rows))


def read_review(path: Path) -> dict[str, str]:
    """Reviewers' decisions, caption to final: the rows of a review file whose ``final`` is filled in."""
    rows = read_csv(path, required=("caption", "final")).objects()
    return {row["caption"]: row["final"].strip() for _, row in rows if row["final"].strip()}


def with_captions(moments: Annotations, rewrites: Mapping[str, str]) -> Annotations:
    """The same moments with rewritten captions; those without a rewrite are left out."""
    kept = moments.select(np.array([caption in rewrites for caption in moments.captions], dtype=np.bool_))
    return replace(kept, captions=tuple(rewrites[caption] for caption in kept.captions))
