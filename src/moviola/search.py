"""The three stages of SPR composed, and visual evidence fused with what is said.

Scores of moments are in [0, 1]. Cosines of one query mean nothing beside those of another, or beside those
of another modality, so each is set against chance: with z the standard score of a cosine among the query's
cosines to a sample of the library, and sqrt(2 ln n) what the best of n random ones would reach, the score is
sigmoid(2 (z - sqrt(2 ln n))). One half is what the luckiest of n pieces gets without any relevance. Evidence
from both modalities for the same moment combines as 1 - (1 - visual)(1 - said).
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError
from moviola.index import Index
from moviola.library import LibraryStore, VideoRow, View, normalised, segment, unpack_id, unpack_ids
from moviola.propose import propose
from moviola.refine import CurveRefiner, Refiner, Window
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


@dataclass(frozen=True, slots=True)
class _Found:
    """A moment before ranking."""

    row: int
    span: Span
    score: float
    source: str
    snippet: str = ""


class Library(LibraryStore):
    """A library of videos that answers text with ranked moments. See :class:`LibraryStore` for opening.

    >>> lib = Library("lib", encoder="demo")  # doctest: +SKIP
    >>> lib.index("videos/")  # doctest: +SKIP
    >>> for m in lib.search("pick up a key"):  # doctest: +SKIP
    ...     print(m.rank, m.video_id, m.start, m.end, m.score)
    """

    @cached_property
    def refiner(self) -> Refiner:
        """Stage 3, tuned to the encoder where its checkpoint says how; assign another one to use it."""
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
            min_score: leave out what scores less, in [0, 1].
            by: which evidence to use; ``"both"`` is what the library has.
            refine: False gives the coarse proposals of stage 2 (visual evidence).

        Returns:
            Moments with ranks from 1 and falling scores in [0, 1]. Of equal ones the earlier video id and
            start come first.

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
        vectors = normalised(self.encoder.encode_text([query.text for query in queries]))
        allowed = None if rows is None else _pieces_of(view.segments, rows)
        scores, ids = view.segments.search(vectors, SEGMENTS, allowed=allowed)
        numbers = {video.video_id: row for row, video in view.videos.items()}
        background = self._background(view, "segments")
        answers = []
        for query, query_scores, query_ids in zip(vectors, scores, ids, strict=True):
            hits = self._hits(view, query_scores, query_ids)
            best = max(_MERGED_LEAST, round(_MERGED_SHARE * len(view.segments)))
            proposals = [*propose(hits[:best]), *propose(hits[best:])]
            chance = _Chance.of(background @ query, len(view.segments))
            if refine:
                windows = [self._window(view.videos[numbers[p.video_id]], p) for p in proposals]
                pairs = [(r.span, r.score) for r in self.refiner.refine(query, windows)]
            else:
                pairs = [(p.span, p.score) for p in proposals]
            answers.append([
                _Found(numbers[p.video_id], span, chance.score(score), "visual")
                for p, (span, score) in zip(proposals, pairs, strict=True)
            ])  # fmt: skip
        return answers

    def _hits(self, view: View, scores: NDArray[np.float32], ids: NDArray[np.int64]) -> list[Hit]:
        hits = []
        for score, piece in zip(scores.tolist(), ids.tolist(), strict=True):
            row, position = unpack_id(piece)
            video = view.videos[row]
            place = segment(video.video_id, position, self.settings.segment_seconds, video.duration)
            hits.append(Hit(place, score))
        return hits

    def _window(self, video: VideoRow, proposal: Proposal) -> Window:
        rate, context = self.settings.frame_rate, self.refiner.context
        frames = self.frame_rows(video)
        first = max(0, math.floor((proposal.span.start - context) * rate))
        last = min(len(frames), math.ceil((proposal.span.end + context) * rate))
        return Window(proposal, normalised(frames[first:last]), first / rate, rate, video.duration)

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

    @cached_property
    def _backgrounds(self) -> dict[tuple[int, str], NDArray[np.float32]]:
        return {}

    # -- what chance gives -----------------------------------------------------------------------------

    def _background(self, view: View, kind: str) -> NDArray[np.float32]:
        """Pieces of some videos, (m, d) float32: the same ones for every query on one state of a library."""
        key = (view.generation, kind)
        if key not in self._backgrounds:
            vectors = self.segment_vectors if kind == "segments" else self.cue_vectors
            generator = np.random.default_rng(0)
            rows = generator.permutation(sorted(view.videos))[:_BACKGROUND_VIDEOS]
            sample = np.concatenate([vectors(view.videos[int(row)]) for row in rows])
            keep = generator.permutation(len(sample))[:_BACKGROUND_PIECES]
            for stale in [known for known in self._backgrounds if known[0] != view.generation]:
                del self._backgrounds[stale]
            self._backgrounds[key] = sample[keep]
        return self._backgrounds[key]


@dataclass(frozen=True, slots=True)
class _Chance:
    """Mean and deviation of a query's cosines, and the standard score that the best of n reaches by luck."""

    mean: float
    deviation: float
    lucky: float

    @classmethod
    def of(cls, cosines: NDArray[np.float32], count: int) -> _Chance:
        deviation = max(float(cosines.std()), 1e-6)
        return cls(float(cosines.mean()), deviation, math.sqrt(2 * math.log(max(count, 2))))

    def score(self, cosine: float) -> float:
        """In (0, 1)."""
        above = (cosine - self.mean) / self.deviation - self.lucky
        return 1 / (1 + math.exp(-2 * min(max(above, -300.0), 300.0)))


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
        moments[place] = _Found(said.row, span, score, "both", said.snippet)
    return moments


def _ranked(
    found: Sequence[_Found], view: View, *, top_k: int, per_video: int | None, min_score: float
) -> list[Moment]:
    def order(moment: _Found) -> tuple[float, str, float]:
        return -moment.score, view.videos[moment.row].video_id, moment.span.start

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
