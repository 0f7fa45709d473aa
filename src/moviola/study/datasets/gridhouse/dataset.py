"""A gridhouse data set on disk: films, and annotations in TVR-Ranking's own pair-file format.

``DIR/videos/*.mp4``, ``video_corpus.json``, ``splits.json`` with each split's films, ``train_top01.json``,
``train_top20.json``, ``train_top40.json``, ``val.json``, ``test.json``, and ``gridhouse.json`` with the
settings; of edited films also ``edits.json``. Judgements of val and test cover every film of the folder.
Films belong to train, val and test as 60 : 10 : 30 by their number; the queries of a split come from its
films, and no text is in two splits.

The pseudo training set is chosen by the similarity of queries and captions (TVR-Ranking, section 3.3), or, as
a control, by relevance itself. :class:`WordSimilarity` compares the slots behind the texts, in plain words:
it follows the rule of relevance closely, which is kinder than real data. :class:`SentenceSimilarity` compares
the texts themselves by a sentence encoder, as TVR-Ranking and SPR do with SimCSE.
``benchmarks/pseudo_similarity.json`` has what differs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from moviola.encoders import load_sentence_encoder
from moviola.errors import InvalidValue
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.study.datasets.building.nearest import TextEncoder, unit_rows
from moviola.study.datasets.gridhouse.absent import add_absent
from moviola.study.datasets.gridhouse.films import Film, Story, WriteVideo, films_of, make_videos
from moviola.study.datasets.gridhouse.narrator import Tale, tale_query, tale_relevance
from moviola.study.datasets.gridhouse.vocabulary import Slots, caption, imprecise, plain, relevance
from moviola.types import require_positive

__all__ = ["SLOTS", "TRUTH", "GridhouseReport", "SentenceSimilarity", "WordSimilarity", "annotate", "build"]


class WordSimilarity:
    """Cosine of tf-idf vectors of words and word pairs between a text and n captions.

    Synonyms in the captions are replaced by one word.
    """

    def __init__(self, captions: Sequence[str]) -> None:
        words = [_words(text) for text in captions]
        holding = Counter(word for text in words for word in set(text))
        self._place = {word: n for n, word in enumerate(sorted(holding))}
        counts = np.array([holding[word] for word in self._place], dtype=np.float64)
        self._rarity = np.log((1 + len(captions)) / (1 + counts)) + 1
        self._captions = np.stack([self._vector(text) for text in words]) if words else np.zeros((0, 0))

    def _vector(self, words: Iterable[str]) -> NDArray[np.float64]:
        vector = np.zeros(len(self._place))
        for word in words:
            if word in self._place:
                vector[self._place[word]] += self._rarity[self._place[word]]
        return vector / max(float(np.linalg.norm(vector)), 1e-12)

    def to(self, text: str) -> NDArray[np.float64]:
        """Similarity of a text to every caption, (n,) in [0, 1]."""
        similarities: NDArray[np.float64] = self._captions @ self._vector(_words(text))
        return similarities


def _words(text: str) -> list[str]:
    """Words and pairs of neighbours: only the pairs hold which thing has which colour."""
    words = text.lower().replace(".", "").split()
    return [*words, *map(" ".join, pairwise(words))]


class SentenceSimilarity:
    """Cosine of sentence embeddings between a text and n captions; one below 0 counts as 0."""

    def __init__(self, captions: Sequence[str], encoder: TextEncoder) -> None:
        # Equal captions are compared once: a product rounds the same row differently by where it stands.
        row_of = {text: row for row, text in enumerate(dict.fromkeys(captions))}
        self._row = np.array([row_of[text] for text in captions], dtype=np.int64)
        self._captions = unit_rows(encoder.encode_text(list(row_of))).astype(np.float64)
        self._encoder = encoder

    def to(self, text: str) -> NDArray[np.float64]:
        """Similarity of a text to every caption, (n,) in [0, 1] but for rounding."""
        (vector,) = unit_rows(self._encoder.encode_text([text])).astype(np.float64)
        similarities: NDArray[np.float64] = np.maximum(self._captions @ vector, 0.0)
        return similarities[self._row]


TOP = (1, 20, 40)
SLOTS, TRUTH = "slots", "truth"
# A query is kept if its relevant moments are between these shares of all (5 to 80 of the 1,055 that 200 films
# hold), and at least two.
_FEWEST, _MOST = 5 / 1055, 80 / 1055
# Queries per film: 400 for test and 200 for val at most.
_TEST_QUERIES, _VAL_QUERIES = (2.0, 400), (1.0, 200)
# Films of one data set, of all kinds together.
_MOST_FILMS = 1_000_000
# Shares of queries about narrated and of seen and narrated moments (TVR: 9 % t, 17 % vt).
_ASK_NARRATED, _ASK_BOTH = 0.3, 0.5


@dataclass(frozen=True, slots=True)
class GridhouseReport:
    """Size of a data set that was made; narrated lines are not among the moments. Lengths in seconds.

    ``mean_ratio`` is that of a moment to its film; ``levels`` counts judgements of val and test by relevance;
    ``unanswered`` are further queries, which nothing answers.
    """

    videos: int
    moments: int
    mean_duration: float
    mean_moment: float
    mean_ratio: float
    queries: dict[str, int]
    relevant_per_query: float
    levels: dict[int, int]
    unanswered: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A moment of a film: ``slots`` if seen or ``tale`` if narrated; ``heard``: things narrated meanwhile."""

    film: Film
    start: float
    end: float
    duration: float
    caption: str
    slots: Slots | None
    tale: Tale | None
    heard: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Query:
    """A query: its text, its type as in TVR (v, t or vt) and what it names."""

    text: str
    type: str
    slots: Slots | None
    tale: Tale | None

    def relevance(self, row: _Row) -> int:
        """By the rules of the vocabulary and the narrator; "vt" loses 2 if the thing is not narrated."""
        if self.slots is None:
            return tale_relevance(self.tale, row.tale) if self.tale and row.tale else 0
        if row.slots is None:
            return 0
        unheard = self.tale is not None and self.tale.what not in row.heard
        return max(0, relevance(self.slots, row.slots) - 2 * unheard)


def build(
    folder: Path,
    *,
    videos: int,
    seed: int,
    write_video: WriteVideo,
    workers: int = 1,
    subtitles: bool = False,
    long_videos: int = 0,
    hour: bool = False,
    filler: int = 0,
    edited: bool = False,
    edited_videos: int = 0,
    similarity: str = SLOTS,
    absent: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> GridhouseReport:
    """Make a data set; existing films are kept, annotations are written again.

    Args:
        videos: ordinary films (about 45 to 120 s).
        seed: same seed and settings, same annotation bytes, whatever the number of workers.
        write_video: ``write_video(path, frames, rate=...)``, a function of a module (it goes to processes).
        subtitles: with a narrator (see :mod:`moviola.study.datasets.gridhouse.narrator`).
        long_videos: further films of ten minutes.
        hour: one further film of an hour.
        filler: further films in which nothing happens: guaranteed irrelevant.
        edited: films as an editor cuts them (:mod:`moviola.study.datasets.gridhouse.editor`): several takes
            and cameras, title cards, signs, sizes and frame rates; with ``subtitles``, robots speak too.
            Their shots and what is written and said in them are in ``edits.json``.
        edited_videos: further films as an editor cuts them, beside plain ones.
        similarity: of queries and captions: "slots", or the name of a sentence encoder, see
            :func:`moviola.encoders.load_sentence_encoder`. "truth": a training query has relevant moments
            alone, best first, among equals by "slots"; their similarity is a quarter of their relevance.
            Films and queries do not depend on it.
        absent: further queries of each split that nothing answers, in the words of the others
            (:mod:`moviola.study.datasets.gridhouse.absent`), as a share of these, >= 0; their lists of
            moments are empty.
        progress: called with films done and films in all.

    Raises:
        InvalidValue: a count below its least value, more than a million films, the folder holds films of
            other settings, or films hold so much that nothing is absent.
        MissingModel: no such sentence encoder is on the machine.
    """
    if videos < 1 or workers < 1 or min(long_videos, filler, edited_videos) < 0 or seed < 0:
        raise InvalidValue(
            f"videos={videos}, workers={workers}, long={long_videos}, filler={filler}, "
            f"edited_videos={edited_videos}, seed={seed}: at least one video and one worker, the others not "
            "negative"
        )
    if videos + long_videos + filler + edited_videos > _MOST_FILMS:
        raise InvalidValue(f"{folder}: more than {_MOST_FILMS:,} films; make several data sets")
    settings = {
        "videos": videos, "seed": seed, "subtitles": subtitles, "long": long_videos, "hour": hour,
        "filler": filler,
    }  # fmt: skip
    # Not among the settings of folders that were made before there were such films.
    settings |= {"edited": True} if edited else {}
    settings |= {"edited_videos": edited_videos} if edited_videos else {}
    _claim(folder, settings)
    encoder = _encoder(similarity)
    make_videos(
        folder / "videos", films_of(settings), write_video, workers, progress or (lambda done, total: None)
    )
    return _annotate(folder, settings, similarity, encoder, absent=absent)


def annotate(
    folder: Path,
    films: Path,
    *,
    similarity: str,
    training_videos: int | None = None,
    one_pool: bool = False,
    tops: Sequence[int] = TOP,
    absent: float = 0.0,
) -> GridhouseReport:
    """Write the annotations of existing films, by another similarity or of fewer, to a folder of their own.

    Args:
        films: the folder of a data set that :func:`build` made; nothing is changed in it.
        similarity: as in :func:`build`.
        training_videos: number of training films, the first ones, that training queries and their moments
            are from, >= 1; all by default. Val and test do not depend on it.
        one_pool: the moments of training queries are from all films, as in TVR-Ranking and SPR, whose queries
            of all splits search one pool of videos; queries do not depend on it.
        tops: N, moments of a training query, a file each, >= 1.
        absent: as in :func:`build`.

    Raises:
        NotFound, DataError: ``films`` has no ``gridhouse.json``, or a damaged one.
        InvalidValue: ``folder`` is that of the films, or holds annotations of other ones, or
            ``training_videos`` or a number of ``tops`` is below 1, or there is none, or ``training_videos``
            are given for one pool.
        MissingModel: no such sentence encoder is on the machine.
    """
    require_positive(training_videos=training_videos, tops=min(tops, default=0))
    if folder.resolve() == films.resolve():
        raise InvalidValue(f"{folder}: is the folder of the films, whose own annotations stay; give another")
    if one_pool and training_videos is not None:
        raise InvalidValue(f"training_videos={training_videos}: one pool has no training films; leave it out")
    settings = _settings(films)
    encoder = _encoder(similarity)
    _claim(folder, settings)
    return _annotate(
        folder, settings, similarity, encoder, training_videos=training_videos, one_pool=one_pool, tops=tops,
        absent=absent,
    )  # fmt: skip


def _encoder(similarity: str) -> TextEncoder | None:
    """None for what the slots hold."""
    return None if similarity in (SLOTS, TRUTH) else load_sentence_encoder(similarity, resident=True)


def _claim(folder: Path, settings: dict[str, Any]) -> None:
    """Record the films' settings, or compare them with the recorded ones."""
    if not (folder / "gridhouse.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "gridhouse.json", settings, indent=1)
    elif (there := _settings(folder)) != settings:
        raise InvalidValue(
            f"{folder}: holds a gridhouse of other settings ({there}); give them, or another folder"
        )


def _settings(folder: Path) -> dict[str, Any]:
    """Those of the films, without that of annotations."""
    settings: dict[str, Any] = read_json(folder / "gridhouse.json")
    settings.pop("similarity", None)
    return settings


def _annotate(
    folder: Path,
    settings: dict[str, Any],
    similarity: str,
    encoder: TextEncoder | None,
    *,
    training_videos: int | None = None,
    one_pool: bool = False,
    tops: Sequence[int] = TOP,
    absent: float = 0.0,
) -> GridhouseReport:
    films, draw = films_of(settings), np.random.default_rng([settings["seed"], 0x7175])
    write_json(folder / "gridhouse.json", {**settings, "similarity": similarity}, indent=1)
    rows, corpus = _stories(folder, films)
    learned = _split(folder, films, training_videos)
    similar, taken = _similarity(rows, encoder), set[str]()
    counts, levels, relevant = dict[str, int](), Counter[int](), list[int]()
    for split, (share, most) in (("test", _TEST_QUERIES), ("val", _VAL_QUERIES)):
        wanted = min(most, math.ceil(share * sum(film.weight for film in films)))
        first_id, entries = sum(counts.values()), list[dict[str, Any]]()
        for query, grades in _judged(rows, split, wanted, taken, draw):
            levels.update(grades[grades > 0].tolist())
            relevant.append(int((grades > 0).sum()))
            similarities = similar(query)
            best = np.lexsort((-similarities, -grades))[: relevant[-1]]
            entries.append(_entry(first_id + len(entries), query, rows, best, similarities, grades=grades))
        write_json(folder / f"{split}.json", entries)
        counts[split] = len(entries)
    queries = [query for row, query in _train_queries(rows, taken, draw) if row.film.video_id in learned]
    own = np.flatnonzero([one_pool or row.film.video_id in learned for row in rows])
    ranked = [
        _entry(number, query, rows, *_nearest(query, rows, own, similar, top=max(tops), by=similarity))
        for number, query in enumerate(queries, start=sum(counts.values()))
    ]
    for top in tops:
        entries = [{**entry, "relevant_moment": entry["relevant_moment"][:top]} for entry in ranked]
        write_json(folder / f"train_top{top:02d}.json", entries)
    counts["train"] = len(ranked)
    seen = [row for row in rows if row.slots is not None]
    unanswered = add_absent(folder, [row.slots for row in rows if row.slots], counts, taken, share=absent)
    return GridhouseReport(
        videos=len(films),
        moments=len(seen),
        mean_duration=_mean(corpus),
        mean_moment=_mean(row.end - row.start for row in seen),
        mean_ratio=_mean((row.end - row.start) / row.duration for row in seen),
        queries=counts,
        relevant_per_query=_mean(relevant),
        levels=dict(sorted(levels.items())),
        unanswered=unanswered,
    )


def _stories(folder: Path, films: Sequence[Film]) -> tuple[list[_Row], list[float]]:
    """The moments of films, and the films' seconds; what is true of these is written."""
    rows, corpus, edits = list[_Row](), dict[str, float](), dict[str, Any]()
    for film in films:
        story = film.story()
        corpus[film.video_id] = round(story.duration, 3)
        rows.extend(_rows(film, story))
        if story.truth is not None:
            edits[film.video_id] = story.truth
    write_json(folder / "video_corpus.json", corpus)
    if edits:
        write_json(folder / "edits.json", edits)
    return rows, list(corpus.values())


def _split(folder: Path, films: Sequence[Film], training_videos: int | None) -> set[str]:
    """Write which films are of which split; the ids of those to learn from."""
    of_split: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for film in films:
        of_split[film.split].append(film.video_id)
    of_split["train"] = of_split["train"][:training_videos]
    write_json(folder / "splits.json", of_split)
    return set(of_split["train"])


def _nearest(
    query: _Query, rows: Sequence[_Row], own: NDArray[np.int64], similar: _Similar, *, top: int, by: str
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Places of the rows among ``own`` that a training query is answered by, unjudged, and their likeness."""
    similarities = similar(query)
    if by != TRUTH:
        return own[np.argsort(-similarities[own], kind="stable")[:top]], similarities
    grades = _grades(query, rows)
    best = np.lexsort((-similarities[own], -grades[own]))[: min(top, (grades[own] > 0).sum())]
    return own[best], grades / 4


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else 0.0


def _rows(film: Film, story: Story) -> Iterator[_Row]:
    duration = round(story.duration, 3)
    for moment in story.moments:
        heard = frozenset(
            line.tale.what
            for line in story.lines
            if line.cue.start < moment.end and moment.start < line.cue.end
        )
        yield _Row(film, moment.start, moment.end, duration, moment.caption, moment.slots, None, heard)
    for line in story.lines:
        cue, what = line.cue, frozenset({line.tale.what})
        yield _Row(film, cue.start, cue.end, duration, cue.text, None, line.tale, what)


def _ask(row: _Row, number: int, draw: Generator) -> _Query:
    """A query about a moment: precise and imprecise in turn."""
    if row.slots is None:
        assert row.tale is not None
        text, tale = tale_query(row.tale, draw)
        return _Query(text, "t", None, tale)
    if number % 2:
        text, slots = imprecise(row.slots, draw)
    else:
        text, slots = caption(row.slots, draw), row.slots
    if row.heard and draw.random() < _ASK_BOTH:
        what = sorted(row.heard)[0]
        tale = Tale(None, "", what, None, None)
        return _Query(f"{text} while a voice tells of a {what}", "vt", slots, tale)
    return _Query(text, "v", slots, None)


def _judged(
    rows: Sequence[_Row], split: str, wanted: int, taken: set[str], draw: Generator
) -> Iterator[tuple[_Query, NDArray[np.int64]]]:
    """Queries of a split with the relevance of every moment of the corpus."""
    own = [row for row in rows if row.film.split == split]
    fewest, most = max(2, round(_FEWEST * len(rows))), max(10, round(_MOST * len(rows)))
    found = 0
    for number, place in enumerate(draw.permutation(len(own))):
        if found == wanted:
            return
        if _passed_over(own[int(place)], draw):
            continue
        query = _ask(own[int(place)], number, draw)
        if query.text in taken:
            continue
        grades = _grades(query, rows)
        if fewest <= int((grades > 0).sum()) <= most:
            taken.add(query.text)
            found += 1
            yield query, grades


def _grades(query: _Query, rows: Sequence[_Row]) -> NDArray[np.int64]:
    return np.array([query.relevance(row) for row in rows], dtype=np.int64)


def _passed_over(row: _Row, draw: Generator) -> bool:
    """Whether a narrated line gets no query, so that most queries are about what is seen."""
    return row.tale is not None and draw.random() >= _ASK_NARRATED


def _train_queries(rows: Sequence[_Row], taken: set[str], draw: Generator) -> Iterable[tuple[_Row, _Query]]:
    """Queries of all training films, no text twice, each with a moment that it is about."""
    own = [row for row in rows if row.film.split == "train" and not _passed_over(row, draw)]
    queries = ((row, _ask(row, number, draw)) for number, row in enumerate(own))
    return {query.text: (row, query) for row, query in queries if query.text not in taken}.values()


_Similar = Callable[[_Query], NDArray[np.float64]]
"""Similarity of a query to every moment's caption, (n,) in [0, 1]."""


def _similarity(rows: Sequence[_Row], encoder: TextEncoder | None) -> _Similar:
    """By a sentence encoder, or without one by what the slots hold, whatever the choice of words."""
    if encoder is None:
        words = WordSimilarity([plain(row.slots) if row.slots else row.caption for row in rows])

        def similar(query: _Query) -> NDArray[np.float64]:
            heard = f" {query.tale.what}" if query.tale else ""
            return words.to(plain(query.slots) + heard if query.slots else query.text)

        return similar
    sentences = SentenceSimilarity([row.caption for row in rows], encoder)
    return lambda query: sentences.to(query.text)


def _entry(
    query_id: int,
    query: _Query,
    rows: Sequence[_Row],
    places: NDArray[np.int64],
    similarities: NDArray[np.float64],
    *,
    grades: NDArray[np.int64] | None = None,
) -> dict[str, Any]:
    """A query with moments, by their places in ``rows``, with their relevance if judged."""
    moments = [
        {
            "pair_id": n,
            "video_name": rows[n].film.video_id,
            "timestamp": [rows[n].start, min(rows[n].end, rows[n].duration)],
            "duration": rows[n].duration,
            "caption": rows[n].caption,
            "similarity": round(float(similarities[n]), 6),
            **({} if grades is None else {"relevance": int(grades[n])}),
        }
        for n in places.tolist()
    ]
    return {"query_id": query_id, "query": query.text, "type": query.type, "relevant_moment": moments}
