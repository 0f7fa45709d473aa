"""The three stages of SPR composed, and visual evidence fused with what is said.

Scores of moments are in [0, 1]. Cosines of one query mean nothing beside those of another, or beside those
of another modality, so each is set against chance: with z the standard score of a cosine among the query's
cosines to a sample of the library, and sqrt(2 ln n) what the best of n random ones would reach, the score is
sigmoid(2 (z - sqrt(2 ln n))). One half is what the luckiest of n pieces gets without any relevance. Evidence
from both modalities for the same moment combines as 1 - (1 - visual)(1 - said).

A trained refiner's scores are on a scale of its own, and what comes of them has one of two meanings.

Calibrated, as ``moviola train`` leaves it: the score is the probability that the moment is right, i.e. that
it overlaps one of positive relevance at IoU >= 0.5, as measured on the val queries of its training
(:mod:`moviola.models.calibration`). Of moments that score 0.8, about 80 % are right in a library that is like
val in size and kind; in one that is much larger or of another kind fewer may be.

Without a calibration, for instance converted from a release: as above, where chance is what the refiner gives
windows around random segments of the library for the same query. Such a score says how unusual a moment is,
not how likely it is right, and right ones may well score below one half.

Either mapping rises, and where it saturates the refiner's own score decides: its order stays.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import groupby
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError
from moviola.index import Index
from moviola.library import LibraryStore, VideoRow, View, normalised, segment, unpack_id, unpack_ids
from moviola.library.trained import require_intact
from moviola.propose import propose
from moviola.refine import CurveRefiner, EncodedQuery, Footage, Refiner, Window, load_refiner
from moviola.types import Cue, Hit, Moment, Proposal, Query, Span

__all__ = ["Evidence", "Library"]

Evidence = Literal["both", "visual", "subtitles"]

# SPR, appendix B.1, Table 6: more than 200 segments add noise, fewer miss moments.
SEGMENTS = 200
# In a small library 200 segments are a large share, and merging them all makes long proposals: only the best
# hits, one in a hundred segments, merge with each other; the rest merge among themselves.
_MERGED_SHARE, _MERGED_LEAST = 0.01, 20
# Cues that are looked at, and the pause within which matching cues belong to one moment.
_CUES = 100
_PAUSE = 2.0
# Below this a cue is no better than the luckiest of the library would be.
_CHANCE = 0.5
# Words can match by accident; a moment seen and heard should still stand above one that is only heard.
_WORDS_CEILING = 0.9
# Videos whose pieces are drawn as the background of a query's cosines.
_BACKGROUND_VIDEOS = 64
_BACKGROUND_PIECES = 4096
# Windows that a trained refiner without a calibration scores for every query to learn what chance gives.
_BACKGROUND_WINDOWS = 64


@dataclass(frozen=True, slots=True)
class _Found:
    """A moment before ranking; ``raw`` is the score before it was set against chance."""

    row: int
    span: Span
    score: float
    source: str
    snippet: str = ""
    raw: float = 0.0


class _Scale(Protocol):
    """From raw scores to scores in [0, 1]; it rises."""

    def score(self, raw: float, /) -> float: ...


class Library(LibraryStore):
    """A library of videos that answers text with ranked moments. See :class:`LibraryStore` for opening.

    >>> lib = Library("lib", encoder="demo")  # doctest: +SKIP
    >>> lib.index("videos/")  # doctest: +SKIP
    >>> for m in lib.search("pick up a key"):  # doctest: +SKIP
    ...     print(m.rank, m.video_id, m.start, m.end, m.score)
    """

    @cached_property
    def refiner(self) -> Refiner:
        """Stage 3: the trained one in use (:meth:`use`), else one that needs no training.

        That is tuned to the encoder where its checkpoint says how. Assign another one to use it.
        """
        if self.encoder is not None and self.settings.refiner:
            folder = require_intact(self.folder, "refiner", self.settings)
            return load_refiner(folder, self.settings.refiner_revision, self.encoder.device)
        return CurveRefiner(**self.encoder.curve) if self.encoder else CurveRefiner()

    def search(
        self,
        text: str,
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
    ) -> list[Moment]:
        """Moments that answer a text, best first.

        Args:
            text: the query.
            top_k: at most so many moments, >= 1.
            per_video: at most so many of one video, >= 1; None for no limit.
            videos: look only into these, by id.
            min_score: leave out what scores less, in [0, 1]. With a calibrated refiner that is the least
                probability of being right, otherwise see :mod:`moviola.search`.
            by: which evidence to use; ``"both"`` is what the library has.
            refine: False gives the coarse proposals of stage 2 (visual evidence).

        Returns:
            Moments with ranks from 1 and falling scores in [0, 1]. Of equal ones the one with the larger raw
            score comes first, then the earlier video id and start.

        Raises:
            InvalidValue: an empty text or a number outside its range.
            NotFound: an id in ``videos`` is unknown.
            LibraryError: ``by`` asks for evidence that the library does not have.
            MissingModel: the library's encoder is not on this machine.
        """
        return self.search_many(
            [Query("", text)], top_k=top_k, per_video=per_video, videos=videos, min_score=min_score, by=by,
            refine=refine,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[Query],
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Moment]]:
        """:meth:`search` for many queries: one list a query, in their order.

        ``progress`` is called with the number of queries that are done.
        """
        if top_k < 1 or (per_video is not None and per_video < 1):
            raise InvalidValue(f"top_k={top_k}, per_video={per_video}: ask for at least one moment")
        for query in queries:
            if not query.text.strip():
                raise InvalidValue(f"query {query.query_id!r}: the text is empty; say what to look for")
        view = self.view()
        rows = None if videos is None else {self.catalogue.video(video_id).row for video_id in videos}
        visual, said = self._evidence(view, by)
        seen = self._visual_answers(view, queries, rows, refine) if visual else [[] for _ in queries]
        answers = []
        for number, (query, moments) in enumerate(zip(queries, seen, strict=True), start=1):
            heard = self._subtitle_answers(view, query.text, rows) if said else []
            found = _fused(moments, heard)
            answers.append(_ranked(found, view, top_k=top_k, per_video=per_video, min_score=min_score))
            if progress:
                progress(number)
        return answers

    def _evidence(self, view: View, by: Evidence) -> tuple[bool, bool]:
        """Whether to use pictures and subtitles."""
        has_visual, has_said = bool(self.settings.encoder), self.catalogue.cue_count() > 0
        if by == "visual" and not has_visual:
            raise LibraryError(f"{self.folder}: built without a visual encoder; search it by subtitles")
        if by == "subtitles" and not has_said:
            raise LibraryError(f"{self.folder}: holds no subtitles; search it by pictures")
        return has_visual and by != "subtitles", has_said and by != "visual"

    # -- pictures --------------------------------------------------------------------------------------

    def _visual_answers(
        self, view: View, queries: Sequence[Query], rows: set[int] | None, refine: bool
    ) -> list[list[_Found]]:
        if self.encoder is None or view.segments is None or not queries or len(view.segments) == 0:
            return [[] for _ in queries]
        texts = [query.text for query in queries]
        plain = normalised(self.encoder.encode_text(texts))
        vectors = plain if self.stage1 is None else self.stage1.queries(plain)
        allowed = None if rows is None else _pieces_of(view.segments, rows)
        scores, ids = view.segments.search(vectors, SEGMENTS, allowed=allowed)
        refiner = self.refiner if refine else None
        calibration = refiner.calibration if refiner else None
        chances = [] if calibration else self._segment_chances(view, view.segments, vectors)
        best = max(_MERGED_LEAST, round(_MERGED_SHARE * len(view.segments)))
        tokens: Sequence[NDArray[np.float32]] = ()
        if refiner and refiner.needs_tokens:
            tokens = self.encoder.encode_tokens(texts)
        answers = []
        for number in range(len(queries)):
            hits = self._hits(view, scores[number], ids[number])
            proposals = [*propose(hits[:best]), *propose(hits[best:])]
            if refiner is None:
                answers.append([self._seen(view, p, p.span, p.score, chances[number]) for p in proposals])
                continue
            query = EncodedQuery(plain[number], tokens[number]) if tokens else EncodedQuery(plain[number])
            if calibration:
                answers.append(self._refined(view, query, proposals, calibration))
            else:
                answers.append(
                    self._refined(view, query, *self._by_chance(view, query, proposals, chances[number]))
                )
        return answers

    def _seen(self, view: View, proposal: Proposal, span: Span, score: float, scale: _Scale) -> _Found:
        row = view.numbers[proposal.video_id]
        return _Found(row, span, scale.score(score), "visual", raw=score)

    def _by_chance(
        self, view: View, query: EncodedQuery, proposals: Sequence[Proposal], chance: _Chance
    ) -> tuple[Sequence[Proposal], _Chance]:
        """The proposals as the refiner is to see them, and what it gives by chance."""
        refiner = self.refiner
        if not refiner.cosines:
            random = refiner.refine(query, self._background_windows(view))
            chance = _Chance.of(np.array([one.score for one in random]), chance.count)
        elif self.stage1 is not None:
            # Proposals have cosines of stage 1's space; in the encoder's they get what is as unusual there.
            coarse, chance = chance, _Chance.of(self._background(view, "means") @ query.vector, chance.count)
            proposals = [replace(p, score=chance.cosine(coarse.standing(p.score))) for p in proposals]
        return proposals, chance

    def _refined(
        self, view: View, query: EncodedQuery, proposals: Sequence[Proposal], scale: _Scale
    ) -> list[_Found]:
        """Stage 3."""
        footage = cache(self._footage)  # one for all windows of a video
        windows = [Window(p, footage(view.videos[view.numbers[p.video_id]])) for p in proposals]
        found = [
            self._seen(view, proposal, moment.span, moment.score, scale)
            for proposal, moment in zip(proposals, self.refiner.refine(query, windows), strict=True)
        ]
        return _apart(found, self.refiner.overlap)

    def _hits(self, view: View, scores: NDArray[np.float32], ids: NDArray[np.int64]) -> list[Hit]:
        hits = []
        for score, piece in zip(scores.tolist(), ids.tolist(), strict=True):
            row, position = unpack_id(piece)
            video = view.videos[row]
            place = segment(video.video_id, position, self.settings.segment_seconds, video.duration)
            hits.append(Hit(place, score))
        return hits

    def _footage(self, video: VideoRow) -> Footage:
        frames = self.frame_rows(video)

        def kept(revision: str, make: Callable[[], NDArray[np.float16]]) -> NDArray[np.float16]:
            return self.contexts.get(revision, video.row, len(frames), make)

        heard = cache(lambda: self.heard_rows(video))
        return Footage(frames, self.settings.frame_rate, video.duration, heard, kept)

    def _publish_contexts(self) -> None:
        videos = {v.row: v for v in self.catalogue.videos() if v.state != "refused" and v.frames}
        self.contexts.keep_only(self.settings.refiner_revision, videos.keys())
        if self.settings.refiner:
            for video in videos.values():
                self.refiner.prepare(self._footage(video))

    # -- subtitles -------------------------------------------------------------------------------------

    def _subtitle_answers(self, view: View, text: str, rows: set[int] | None) -> list[_Found]:
        """Moments whose words match, by words (BM25) and, with a sentence encoder, by meaning."""
        evidence: dict[tuple[int, int], float] = defaultdict(float)
        for (row, number), score in (*self._by_words(text), *self._by_meaning(view, text, rows)):
            if score >= _CHANCE and row in view.videos and (rows is None or row in rows):
                evidence[row, number] = max(evidence[row, number], score)
        found = []
        for row, matches in groupby(sorted(evidence), key=lambda piece: piece[0]):
            cues = self.catalogue.cues(row)
            found.extend(_said(row, [(cues[n], evidence[row, n]) for _, n in matches], view.videos[row]))
        return found

    def _by_words(self, text: str) -> Iterable[tuple[tuple[int, int], float]]:
        """Share of the query's weight (idf) that a cue covers; BM25 of an average cue with all words is 1."""
        words = list(dict.fromkeys(re.findall(r"\w+", text.lower())))
        total = self.catalogue.cue_count()
        weight = 0.0
        for word in words:
            holding = self.catalogue.cues_with(word)
            weight += max(math.log((total - holding + 0.5) / (holding + 0.5)), 1e-6)
        for match in self.catalogue.match_cues(words, _CUES):
            yield (match.video, match.number), _WORDS_CEILING * min(1.0, match.score / weight)

    def _by_meaning(
        self, view: View, text: str, rows: set[int] | None
    ) -> Iterable[tuple[tuple[int, int], float]]:
        if self.sentence_encoder is None or view.cues is None or len(view.cues) == 0:
            return
        query = normalised(self.sentence_encoder.encode_text([text]))
        allowed = None if rows is None else _pieces_of(view.cues, rows)
        scores, ids = view.cues.search(query, _CUES, allowed=allowed)
        chance = _Chance.of(self._background(view, "cues") @ query[0], len(view.cues))
        for score, piece in zip(scores[0].tolist(), ids[0].tolist(), strict=True):
            yield unpack_id(piece), chance.score(score)

    # -- what chance gives -----------------------------------------------------------------------------

    def _segment_chances(self, view: View, index: Index, vectors: NDArray[np.float32]) -> list[_Chance]:
        """What cosines chance gives each query (q, d) with the segments of the index."""
        if self.stage1 is None:
            background = self._background(view, "means")
            return [_Chance.of(background @ vector, len(index)) for vector in vectors]
        # The index has the embeddings of stage 1, which are slow to make; it gives the same cosines.
        ids = np.sort(index.ids())
        sample = np.random.default_rng(0).permutation(ids)[:_BACKGROUND_PIECES]
        cosines, _ = index.search(vectors, len(sample), allowed=sample)
        return [_Chance.of(row, len(index)) for row in cosines]

    def _background(self, view: View, kind: Literal["means", "cues"]) -> NDArray[np.float32]:
        """Pieces of some videos, (m, d) float32: the same ones for every query on one state of a library."""
        key = (view.generation, kind)
        if key not in self._backgrounds:
            vectors = self.mean_vectors if kind == "means" else self.cue_vectors
            generator = np.random.default_rng(0)
            rows = generator.permutation(sorted(view.videos))[:_BACKGROUND_VIDEOS]
            sample = np.concatenate([vectors(view.videos[int(row)]) for row in rows])
            keep = generator.permutation(len(sample))[:_BACKGROUND_PIECES]
            for stale in [known for known in self._backgrounds if known[0] != view.generation]:
                del self._backgrounds[stale]
            self._backgrounds[key] = sample[keep]
        return self._backgrounds[key]

    @cached_property
    def _backgrounds(self) -> dict[tuple[int, str], NDArray[np.float32]]:
        return {}

    def _background_windows(self, view: View) -> list[Window]:
        """Windows around random segments of some videos, likewise."""
        if view.generation not in self._random_windows:
            generator = np.random.default_rng(0)
            rows = generator.permutation(sorted(view.videos))[:_BACKGROUND_VIDEOS]
            seconds, windows = self.settings.segment_seconds, []
            for row in rows.tolist():
                video = view.videos[row]
                footage = self._footage(video)
                for position in range(self.piece_count("segments", video)):
                    place = segment(video.video_id, position, seconds, video.duration)
                    windows.append(Window(Proposal(video.video_id, place.span, 0.0, 1), footage))
            keep = generator.permutation(len(windows))[:_BACKGROUND_WINDOWS]
            self._random_windows.clear()
            self._random_windows[view.generation] = [windows[place] for place in keep.tolist()]
        return self._random_windows[view.generation]

    @cached_property
    def _random_windows(self) -> dict[int, list[Window]]:
        return {}


@dataclass(frozen=True, slots=True)
class _Chance:
    """Mean and deviation of a query's cosines (or scores) with random pieces; how many pieces there are."""

    mean: float
    deviation: float
    count: int

    @classmethod
    def of(cls, cosines: NDArray[np.floating], count: int) -> _Chance:
        return cls(float(cosines.mean()), max(float(cosines.std()), 1e-6), count)

    def standing(self, cosine: float) -> float:
        """The standard score."""
        return (cosine - self.mean) / self.deviation

    def cosine(self, standing: float) -> float:
        """The cosine with a standard score."""
        return self.mean + standing * self.deviation

    def score(self, cosine: float) -> float:
        """In (0, 1)."""
        above = self.standing(cosine) - math.sqrt(2 * math.log(max(self.count, 2)))
        return 1 / (1 + math.exp(-2 * min(max(above, -300.0), 300.0)))


def _apart(found: Sequence[_Found], most: float) -> list[_Found]:
    """Of moments of one video that overlap more than this (IoU) the best; 1 keeps all."""
    if most >= 1:
        return list(found)
    kept: dict[int, list[_Found]] = defaultdict(list)
    for moment in sorted(found, key=lambda moment: -moment.raw):
        if all(moment.span.iou(better.span) <= most for better in kept[moment.row]):
            kept[moment.row].append(moment)
    return [moment for own in kept.values() for moment in own]


def _pieces_of(index: Index, rows: set[int]) -> NDArray[np.int64]:
    """Ids of the pieces of some videos."""
    ids = index.ids()
    return ids[np.isin(unpack_ids(ids)[0], list(rows))]


def _said(row: int, matches: Sequence[tuple[Cue, float]], video: VideoRow) -> list[_Found]:
    """Matching cues of one video, in order of time, as moments: those with short pauses between are one."""
    groups: list[list[tuple[Cue, float]]] = []
    for cue, score in sorted(matches, key=lambda match: match[0].start):
        if cue.start >= video.duration:
            continue  # a subtitle file that runs on after the pictures have ended
        if groups and cue.start - max(other.end for other, _ in groups[-1]) <= _PAUSE:
            groups[-1].append((cue, score))
        else:
            groups.append([(cue, score)])
    found = []
    for group in groups:
        span = Span(group[0][0].start, min(max(cue.end for cue, _ in group), video.duration))
        best = max(group, key=lambda match: match[1])
        found.append(_Found(row, span, best[1], "subtitle", best[0].text))
    return found


def _fused(seen: Sequence[_Found], heard: Sequence[_Found]) -> list[_Found]:
    """What is said during a moment that is seen adds to it; the stronger evidence keeps its span."""
    moments = list(seen)
    by_row: dict[int, list[int]] = defaultdict(list)
    for place, moment in enumerate(moments):
        by_row[moment.row].append(place)
    for said in heard:
        together = [place for place in by_row[said.row] if moments[place].span.intersection(said.span) > 0]
        if not together:
            moments.append(said)
            continue
        place = max(together, key=lambda place: moments[place].score)
        shown = moments[place]
        score = 1 - (1 - shown.score) * (1 - said.score)
        span = shown.span if shown.score >= said.score else said.span
        moments[place] = _Found(said.row, span, score, "both", said.snippet, shown.raw)
    return moments


def _ranked(
    found: Sequence[_Found], view: View, *, top_k: int, per_video: int | None, min_score: float
) -> list[Moment]:
    def order(moment: _Found) -> tuple[float, float, str, float]:
        return -moment.score, -moment.raw, view.videos[moment.row].video_id, moment.span.start

    answer: list[Moment] = []
    shown: dict[int, int] = defaultdict(int)
    for moment in sorted(found, key=order):
        if moment.score < min_score or len(answer) == top_k:
            break
        if per_video is not None and shown[moment.row] == per_video:
            continue
        shown[moment.row] += 1
        answer.append(
            Moment(
                view.videos[moment.row].video_id, moment.span.start, moment.span.end, moment.score,
                len(answer) + 1, moment.source, moment.snippet,
            )
        )  # fmt: skip
    return answer
