"""Evidence for the parts of a query: gathered once per search and scope.

- A *text* goes through all stages of :class:`moviola.retrieval.Retrieval`, and is searched in speech and
  text, by words and by meaning (in text by words alone where pictures are searched too), and in the names of
  videos (:mod:`moviola.search.name_evidence`).
- A *moment* or *picture* is a clip: among the segments of the index it has the vector of a segment that shows
  nothing else. It has no tokens to read, so the refiner without training takes the place of a trained one.
  Pictures are compared by features of their own where the library has them (``picture_dim``), without a
  trained stage 1; rows then hold both kinds of features side by side, with zeros for what a term lacks.
- A *sum* has the log odds sum_i w_i l_i / sum_i w_i, with l_i those of a term, which are linear in its
  cosine: so it is one vector, refined like a picture. Among the segments of the index, terms are weighted by
  the deviation of their cosines with the library. Speech counts for each text by its share of the weight.

All texts of a search are encoded in one batch, and all texts with the same scope are searched in one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.kept_texts import KeptTexts
from moviola.errors import InvalidValue, LibraryError, NotSearched
from moviola.features import QueryFeatures
from moviola.library import LibraryStore, NameTable, View
from moviola.retrieval import SEGMENTS, Background, Calibration, Hits, Marks, Moments, Retrieval
from moviola.retrieval.calibration import Scale, mean_log_odds
from moviola.retrieval.refiners.curve import cosines
from moviola.retrieval.segments import normalised
from moviola.search.chosen import Chosen
from moviola.search.cues import CueSearch, Said
from moviola.search.encoding import NOTHING, EncodedText, encoded_texts
from moviola.search.filters import Filter
from moviola.search.found import Candidate
from moviola.search.fusion import fused
from moviola.search.heard import SoundSearch
from moviola.search.meaning import Meaning
from moviola.search.name_evidence import Shares, named, shares_in
from moviola.search.queries import (
    KeptPicture,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchQuery,
    Simple,
    Term,
    Text,
    parts_of,
    terms_of,
)  # fmt: skip
from moviola.timing import stage
from moviola.types import CueKind, Reason, ReasonKind, Span

__all__ = ["EvidenceGatherer", "Rows"]

# Number of right marks to search with, and segments of each: 25 ms of processor time at the paper's size;
# four marks with 200 each take twice that.
_PROBES, _PROBED = 2, 50

Floats = NDArray[np.float32]
Rows = frozenset[int] | None
"""Row numbers of the videos to search; None for all."""


@dataclass(frozen=True)
class EvidenceGatherer:
    """Gathers evidence in one state of a library, for one search.

    Attributes:
        texts: the stages for texts; None: pictures are not searched.
        vectors: the stages for parts without tokens; None: pictures are not searched.
        cues: search in speech and text.
        kinds: kinds of cues to search; empty where only pictures count.
        names: names of the videos; None: they do not count.
        descriptions: what files say of the videos; None: it does not count.
        chosen: what filters choose in the view.
        kept: features of texts that were asked before.
        meaning: what cosines of sentences are worth; None: meanings are not compared.
        sounds: search in sounds; None: they do not count.
        encoded: the texts of its queries, see :meth:`prepare`.
    """

    store: LibraryStore
    view: View
    texts: Retrieval | None
    vectors: Retrieval | None
    cues: CueSearch
    kinds: Collection[CueKind]
    names: NameTable | None
    descriptions: NameTable | None
    filter: Filter
    chosen: Chosen
    kept: KeptTexts
    meaning: Meaning | None = None
    sounds: SoundSearch | None = None
    encoded: Mapping[Text, EncodedText] = field(default_factory=dict)
    _composed: dict[Simple, tuple[QueryFeatures, Calibration]] = field(init=False, default_factory=dict)
    _hits: dict[tuple[Simple, Rows, int], Hits] = field(init=False, default_factory=dict)
    _seen: dict[tuple[Simple, Rows, int], list[Candidate]] = field(init=False, default_factory=dict)
    _said: dict[tuple[Text, Rows], Said] = field(init=False, default_factory=dict)

    # -- texts, encoded once -------------------------------------------------------------------------------

    def prepare(self, queries: Iterable[SearchQuery]) -> Self:
        """A gatherer for some queries, all of whose texts are encoded in one batch."""
        things = (thing for query in queries for thing in parts_of(query))
        terms = dict.fromkeys(term for thing in things for term, _ in terms_of(thing))
        with stage("text"):
            return replace(self, encoded=self._encode([term for term in terms if isinstance(term, Text)]))

    def _text(self, text: Text) -> EncodedText:
        """A text, encoded; one of no query that was prepared is an error."""
        if (encoded := self.encoded.get(text)) is None:
            raise InvalidValue(f"{text.text!r:.200}: not encoded; prepare the gatherer for its query")
        return encoded

    def require_searched(self, query: SearchQuery) -> None:
        """Raise :class:`NotSearched` where a part of a query needs pictures, which are not searched."""
        if self.texts is None and (alike := next((t for t in parts_of(query) if _kind(t) == "like"), None)):
            raise self._without_pictures(f"{str(alike)!r} needs")

    def _without_pictures(self, needing: str) -> NotSearched:
        """Why pictures are not searched: by the choice of evidence, or by the library."""
        if self.view.settings.encoder:
            reason = "which the chosen evidence leaves out; search by all or by visual"
        else:
            reason = "in a library that was built with a visual encoder"
        return NotSearched(f"{self.store.folder}: {needing} a search by pictures, {reason}")

    def _encode(self, texts: Sequence[Text]) -> Mapping[Text, EncodedText]:
        reads_cues = bool(self.kinds and self.view.cues)
        reads_names = self.names is not None and self.names.has_meanings
        encoder = None if self.texts is None else self.view.encoders.visual
        if self.sounds is not None:
            self.sounds.expect(texts)
        encoded = encoded_texts(
            [text.text for text in texts], self.texts, encoder,
            self.meaning if reads_cues or reads_names else None, self.kept,
        )  # fmt: skip
        return MappingProxyType(dict(zip(texts, encoded, strict=True)))

    # -- evidence ------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop the moments that were gathered; what is encoded and the segments stay."""
        self._seen.clear()
        self._said.clear()

    def search(self, things: Sequence[Simple], rows: Rows, segments: int = SEGMENTS) -> None:
        """Retrieve the segments of several parts in one scope, all texts in one batch."""
        new = [thing for thing in dict.fromkeys(things) if (thing, rows, segments) not in self._hits]
        texts: list[Simple] = [thing for thing in new if isinstance(thing, Text) and self._says(thing)]
        others: list[list[Simple]] = [[thing] for thing in new if not isinstance(thing, Text)]
        for group in (texts, *others):
            retrieval = self.stages(group[0]) if group else None
            if retrieval is None or not len(retrieval.index):
                continue
            features = QueryFeatures.joined([self.features(thing) for thing in group])
            hits = retrieval.hits(features, within=self.chosen.scope(rows, self.filter), segments=segments)
            self._hits.update(((thing, rows, segments), hits.of(place)) for place, thing in enumerate(group))

    def seen(self, thing: Simple, rows: Rows, segments: int = SEGMENTS) -> list[Candidate]:
        """Moments by pictures, best first; duplicates are still there."""
        key, retrieval = (thing, rows, segments), self.stages(thing)
        if key not in self._seen:
            self.search([thing], rows, segments)
            if retrieval is None or key not in self._hits:
                return []
            # Coarse moments of a trained stage 1 have cosines of its space, not of the encoder's.
            coarse = retrieval.stage1.trained and retrieval.refiner is None
            moments = retrieval.moments(
                self.features(thing), retrieval.merged(self._hits[key]), distinct=False,
                scale=None if coarse else self._own_scale(thing),
            )  # fmt: skip
            self._seen[key] = self._found(moments, _kind(thing))
        return self._seen[key]

    def _found(self, moments: Moments, kind: ReasonKind, query: int = 0) -> list[Candidate]:
        own, keys = moments.rows(query), self.view.features.keys
        columns = (keys[moments.video], moments.start, moments.end, moments.score, moments.match)
        return [
            Candidate(row, Span(start, end), score, "visual", match=match, why=(Reason(kind, score),))
            for row, start, end, score, match in zip(*(c[own].tolist() for c in columns), strict=True)
        ]

    def said(self, thing: Simple, rows: Rows) -> list[Candidate]:
        """Moments by speech, text or sound, wherever in their videos; terms at the same time support each
        other.
        """
        heard: list[Candidate] = []
        if self.sounds is not None:
            alone = self.texts is None and not self.kinds and self.names is None
            heard = self.sounds.moments(self.view, thing, rows, alone=alone)
        if not self.kinds:
            return heard
        total = sum(weight for _, weight in terms_of(thing))
        with stage("cues"):
            by_term = (
                [
                    replace(found, score=found.score * weight / total)
                    for found in self.cues_of(term, rows).found
                ]
                for term, weight in terms_of(thing)
                if isinstance(term, Text)
            )
            return fused(reduce(fused, by_term, []), heard)

    @property
    def languages(self) -> frozenset[str]:
        """The languages of the library, in which a query is read."""
        return self.cues.languages(self.view)

    def cues_of(self, text: Text, rows: Rows) -> Said:
        """Moments by what is said or written of a text, of all kinds of cues that are searched."""
        if (text, rows) not in self._said:
            # A title card with a similar meaning must not stand above the pictures themselves.
            meant = self.kinds if self.texts is None else [kind for kind in self.kinds if kind != "text"]
            self._said[text, rows] = self.cues.moments(
                self.view, text.text, self._text(text).sentence, self._text(text).meaning,
                rows=rows, kinds=self.kinds, meant=meant, languages=self.filter.languages,
            )  # fmt: skip
        return self._said[text, rows]

    def shares(self, thing: Simple, rows: Rows) -> Shares:
        """How well names and descriptions match the texts of a part, by shares of the weight."""
        if self.names is None or self.descriptions is None:
            return {}
        with stage("names"):
            total = sum(weight for _, weight in terms_of(thing))
            texts = [
                (term.text, read.sentence, read.meaning, weight / total)
                for term, weight in terms_of(thing)
                if isinstance(term, Text) and (read := self._text(term))
            ]
            tables: dict[ReasonKind, NameTable] = {"named": self.names, "described": self.descriptions}
            inside = [self.view.videos] if rows is None else [rows, self.view.videos]
            return shares_in(tables, texts, inside, self.languages)

    def named(self, thing: Simple, shares: Shares, moments: Sequence[Candidate]) -> list[Candidate]:
        """The videos whose names or descriptions match a part, as much of each as the filter allows, by
        :meth:`shares`, beside the moments of the same answer.
        """
        pictures = self.view.features.place_of if self.stages(thing) is not None else None
        return named(
            shares, moments, self._longest_part,
            lambda row: pictures is not None and pictures(row) is not None,
        )  # fmt: skip

    def _longest_part(self, row: int) -> tuple[float, float]:
        parts = self.chosen.parts(self.filter, row)
        return max(parts, key=lambda part: part[1] - part[0], default=(0.0, 0.0))

    # -- marks ---------------------------------------------------------------------------------------------

    def marks(self, query: Marked) -> Marks:
        """The marks of a query, with those of the concept that it names.

        Raises:
            NotFound: a video of a mark, or the concept, is unknown.
            NotSearched: pictures are not searched.
        """
        if self.vectors is None:
            raise self._without_pictures(f"{str(query)!r} has marks, which need")
        right, wrong = (self._marked_rows(own) for own in (query.right, query.wrong))
        if query.concept:
            from moviola.library.united_store import concept_in

            taught = concept_in(self.store, self.view.settings, query.concept)
            right, wrong = np.concatenate([right, taught.right]), np.concatenate([wrong, taught.wrong])
        return Marks.of(right, wrong)

    def _marked_rows(self, moments: Sequence[MarkedMoment]) -> Floats:
        found = []
        for one in moments:
            video = self.store.catalogue.video(one.video_id)
            span = Span(one.start, one.end).within(one.video_id, video.duration)
            found.append(Candidate(video.row, span, 0.0, "visual"))
        rows, shown = self.likeness(found)
        if len(shown) < len(found):
            missing = moments[min(set(range(len(found))) - set(shown.tolist()))]
            raise LibraryError(f"{missing}: this library has no frames of it; index it again")
        return rows

    def likeness(self, found: Sequence[Candidate]) -> tuple[Floats, NDArray[np.int64]]:
        """Features by which moments are compared with each other.

        Returns:
            (n, d) float32, the mean of the unit features of likeness of their frames, and (n,) the places of
            these moments among ``found``; videos with subtitles alone have none.
        """
        features, shown, rows = self.view.picture_features, [], []
        dim = self.view.settings.picture_dim or self.view.settings.encoder_dim
        for place, clips in self._clips_of(found):
            rows.append(normalised(features.read(*clips)[:, -dim:]).mean(axis=0))
            shown.append(place)
        return np.array(rows, np.float32).reshape(-1, dim), np.array(shown, np.int64)

    def _clips_of(self, found: Iterable[Candidate]) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Place of each moment with frames, with place of its video, first clip, and one after the last."""
        features = self.view.features
        for place, one in enumerate(found):
            if (video := features.place_of(one.row)) is not None:
                count = int(features.counts[video])
                first = min(int(features.clips_at(one.span.start)), count - 1)
                stop = min(max(int(features.clips_from(one.span.end)), first + 1), count)
                yield place, (video, first, stop)

    def alike(self, marks: Marks, rows: Rows, segments: int) -> list[Candidate]:
        """Moments similar to right marks, whatever the text of the query; their scores are set later."""
        retrieval, probes = self.vectors, marks.probes(_PROBES)
        if retrieval is None or not len(retrieval.index) or not len(probes):
            return []
        if self.view.settings.picture_dim:
            probes = np.pad(probes, ((0, 0), (self.view.settings.encoder_dim, 0)))
        among = np.concatenate([retrieval.stage1.segments(p[None], retrieval.segment_clips) for p in probes])
        names = [""] * len(probes)
        queries = QueryFeatures.of(names, names, list(probes)).among_segments(among)
        hits = retrieval.hits(
            queries, within=self.chosen.scope(rows, self.filter), segments=min(segments, _PROBED)
        )
        moments = retrieval.moments(queries, retrieval.merged(hits), scored=False, distinct=False)
        return self.there(one for query in range(len(probes)) for one in self._found(moments, "like", query))

    def text_scores(self, thing: Simple, found: Sequence[Candidate]) -> NDArray[np.float64]:
        """(n,) float64, how well a part matches the best two frames of each moment, in [0, 1]."""
        retrieval, scores, shown = self.stages(thing), np.zeros(len(found)), list[int]()
        if retrieval is not None and found:
            vector = retrieval.cosines.in_space(self.features(thing)).vectors[0]
            for place, clips in self._clips_of(found):
                scores[place] = np.sort(cosines(retrieval.features.read(*clips), vector))[-2:].mean()
                shown.append(place)
            scores[shown] = self.scale(thing).scores(scores[shown])
        return scores

    # -- where ---------------------------------------------------------------------------------------------

    def there(self, found: Iterable[Candidate]) -> list[Candidate]:
        """Moments in the part of their videos that the filter allows."""
        return self.chosen.there(self.filter, found)

    # -- one part as the stages read it -----------------------------------------------------------------

    def stages(self, thing: Simple) -> Retrieval | None:
        """The stages that search pictures for a part; None where pictures are not searched, or it says
        nothing about them.
        """
        if not self._says(thing):
            return None
        return self.texts if isinstance(thing, Text) else self.vectors

    def _says(self, thing: Simple) -> bool:
        """Whether a part says anything about pictures."""
        return not isinstance(thing, Text) or self._text(thing).scale is not NOTHING

    def features(self, thing: Simple) -> QueryFeatures:
        """A part, as the stages read it."""
        if isinstance(thing, Text):
            features = self._text(thing).features
            assert features is not None
            return features
        return self._composition(thing)[0]

    def _own_scale(self, thing: Simple) -> Calibration | None:
        """Calibration of a part's cosines by its phrases or its terms; None: the encoder's holds."""
        return self._text(thing).scale if isinstance(thing, Text) else self._composition(thing)[1]

    def scale(self, thing: Simple) -> Scale:
        """Calibration of a part's cosines, in the space of the encoder."""
        features, retrieval = self.features(thing), self.stages(thing)
        assert retrieval is not None
        return self._own_scale(thing) or retrieval.cosines.encoder_scale(features)

    def _composition(self, thing: Simple) -> tuple[QueryFeatures, Calibration]:
        if thing not in self._composed:
            with stage("text"):
                self._composed[thing] = self._compose(thing)
        return self._composed[thing]

    def _compose(self, thing: Simple) -> tuple[QueryFeatures, Calibration]:
        """A sum of terms, or a term that is no text: its vector, and the calibration of its cosines."""
        retrieval = self.vectors
        assert retrieval is not None
        given = terms_of(thing)
        terms = [one for one in given if self._says(one[0])] or given
        total = sum(weight for _, weight in terms)
        weights = [weight / total for _, weight in terms]
        vectors, segments, scales = zip(*(self._vectors_of(term) for term, _ in terms), strict=True)
        own, scale = mean_log_odds(np.stack(vectors), scales, weights)
        among = sum(
            segment * np.float32(weight / retrieval.cosines.segment_chance(segment).deviation)
            for weight, segment in zip(weights, segments, strict=True)
        )
        features = QueryFeatures.of([""], [str(thing)], [own])
        return features.among_segments(normalised(np.atleast_2d(among))), scale

    def _vectors_of(self, term: Term) -> tuple[Floats, Floats, Calibration]:
        """Unit vectors (d,) of a term in the space of the encoder, and among the segments of the index.

        With them the calibration of cosines with the first one.
        """
        retrieval, encoder = self.vectors, self.view.encoders.visual
        assert retrieval is not None and encoder is not None
        # With features of likeness after those for texts, a cosine covers half of a row.
        side_by_side = math.sqrt(2) if self.view.settings.picture_dim else 1.0
        if isinstance(term, Text):
            features = self.features(term)
            known = self._own_scale(term) or self._background.calibration(features.vectors[0])
            centred = retrieval.cosines.in_space(features).vectors
            padded = np.pad(centred, ((0, 0), (0, self.view.settings.picture_dim)))
            among = retrieval.vectors(features) if retrieval.stage1.trained else padded
            return padded[0], among[0], Calibration(known.slope * side_by_side, known.intercept)
        # Features of one frame (1, frame_dim); zeros for those not of likeness.
        frame = self._frame(term)
        if self.view.settings.picture_dim:
            frame[:, : self.view.settings.encoder_dim] = 0
        clip, match = normalised(frame), encoder.picture_match
        scale = Calibration(match.slope * side_by_side, -match.slope * match.line)
        return clip[0], retrieval.stage1.segments(clip, retrieval.segment_clips)[0], scale

    @property
    def _background(self) -> Background:
        assert self.texts is not None and self.texts.background is not None
        return self.texts.background

    def _frame(self, term: Term) -> Floats:
        if isinstance(term, LikePicture):
            return self.view.encoders.picture(term.path)
        if isinstance(term, KeptPicture):
            from moviola.library.united_store import saved_picture_in

            return self.view.encoders.picture(saved_picture_in(self.store, term.picture))
        assert isinstance(term, LikeMoment)
        features, video = self.view.picture_features, self.store.catalogue.video(term.video_id)
        place = features.place_of(video.row)
        if place is None:
            raise LibraryError(f"{term.video_id}: this library has no frames of it; index it again")
        if term.time >= video.duration:
            raise InvalidValue(f"{term}: the video ends at {video.duration:g} s; give a time before that")
        clip = min(int(features.clips_at(term.time)), int(features.counts[place]) - 1)
        return features.read(place, clip, clip + 1)


def _kind(thing: Simple) -> ReasonKind:
    return "like" if any(not isinstance(term, Text) for term, _ in terms_of(thing)) else "seen"
