"""The façade of a library: a store, an indexer and a searcher under one name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from moviola.library import (
    Catalogue,
    Indexer,
    IngestProgress,
    IngestReport,
    LibraryStore,
    Problem,
    Settings,
    Trial,
    compact,
    repair,
    verify,
)
from moviola.retrieval import Refiner
from moviola.search.filters import Filter
from moviola.search.found import SearchResult
from moviola.search.queries import SearchQuery, as_query
from moviola.search.searcher import EVERYTHING, Evidence, Searcher
from moviola.timing import stage
from moviola.types import Query, Video

if TYPE_CHECKING:
    from moviola.encoders import FrameTextEncoder, SentenceEncoder

__all__ = ["Library"]


class Library:
    """A library of videos that answers text with ranked moments.

    Args:
        folder: the library; made by the first writer when an encoder is given and nothing is there.
        options: as of :class:`moviola.library.LibraryStore`: ``encoder``, ``sentence_encoder``,
            ``segment_seconds``, ``frame_rate``, ``read_only``, ``device``, ``precision``,
            ``resident``.

    Attributes:
        store: what is on disk.

    >>> lib = Library("lib", encoder="demo")  # doctest: +SKIP
    >>> lib.index("videos/")  # doctest: +SKIP
    >>> for m in lib.search("pick up a key"):  # doctest: +SKIP
    ...     print(m.rank, m.video_id, m.start, m.end, m.score)
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        encoder: str | None = None,
        sentence_encoder: str | None = None,
        segment_seconds: float | None = None,
        frame_rate: float | None = None,
        read_only: bool = False,
        device: str = "auto",
        precision: str = "auto",
        resident: bool = False,
    ) -> None:
        with stage("opening"):
            self.store = LibraryStore(
                folder,
                encoder=encoder,
                sentence_encoder=sentence_encoder,
                segment_seconds=segment_seconds,
                frame_rate=frame_rate,
                read_only=read_only,
                device=device,
                precision=precision,
                resident=resident,
            )
        self._indexer, self._searcher = Indexer(self.store), Searcher(self.store)

    def close(self) -> None:
        """Close the catalogue."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is in it -----------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.store.folder

    @property
    def read_only(self) -> bool:
        """Whether it was opened so that nothing is ever written."""
        return self.store.read_only

    @property
    def settings(self) -> Settings:
        """What it was built with, and the models in use."""
        return self.store.settings

    @property
    def catalogue(self) -> Catalogue:
        """Which videos are in, with paths, states and subtitles."""
        return self.store.catalogue

    @property
    def encoder(self) -> FrameTextEncoder | None:
        """The visual encoder, loaded and compared with the library's revision; None if it has none."""
        return self.store.encoders.visual

    @property
    def sentence_encoder(self) -> SentenceEncoder | None:
        """The sentence encoder likewise."""
        return self.store.encoders.sentences

    def videos(self) -> list[Video]:
        """The videos that can be searched, by id."""
        return self.store.videos()

    def __len__(self) -> int:
        return len(self.videos())

    # -- writing -----------------------------------------------------------------------------------------

    def index(
        self,
        *sources: str | PathLike[str],
        prune: bool = False,
        ocr: bool | None = None,
        speech: str | None = None,
        workers: int | str | None = None,
        every_frame: bool = False,
        progress: Callable[[IngestProgress], None] | None = None,
    ) -> IngestReport:
        """Bring files and folders into the library; see :meth:`moviola.library.Indexer.index`."""
        return self._indexer.index(
            *sources,
            prune=prune,
            ocr=ocr,
            speech=speech,
            workers=workers,
            every_frame=every_frame,
            progress=progress,
        )

    def remove(self, video_ids: Iterable[str]) -> list[str]:
        """Take videos out, all or none; see :meth:`moviola.library.Indexer.remove`."""
        return self._indexer.remove(video_ids)

    def use(
        self,
        *,
        stage1: str | PathLike[str] | None = None,
        refiner: str | PathLike[str] | None = None,
        force: bool = False,
    ) -> None:
        """Search with trained models from now on; see :meth:`moviola.library.Indexer.use`."""
        self._indexer.use(stage1=stage1, refiner=refiner, force=force)

    def use_index(self, kind: str) -> None:
        """Search with another type of index; see :meth:`moviola.library.Indexer.use_index`."""
        self._indexer.use_index(kind)

    def tune_index(self) -> list[Trial]:
        """Measure how far searches must look; see :meth:`moviola.library.Indexer.tune_index`."""
        return self._indexer.tune_index()

    def models_in_use(self) -> dict[str, dict[str, str] | None]:
        """``name`` and ``revision`` of the trained models in use by role, ``stage1`` and ``refiner``."""
        return self._indexer.models_in_use()

    # -- looking after it --------------------------------------------------------------------------------

    def verify(self) -> list[Problem]:
        """What is wrong with it, if anything; see :func:`moviola.library.verify`."""
        return verify(self.store)

    def repair(self) -> list[Problem]:
        """Put right what can be; gives what was. See :func:`moviola.library.repair`."""
        return repair(self.store)

    def compact(self) -> int:
        """Give back the space of removed videos; gives the bytes. See :func:`moviola.library.compact`."""
        return compact(self.store)

    # -- searching ---------------------------------------------------------------------------------------

    @property
    def refiner(self) -> Refiner:
        """Stage 3: the trained one in use, else one that needs no training. Assign another one to use it."""
        return self._searcher.refiner or self.store.models.refiner

    @refiner.setter
    def refiner(self, refiner: Refiner) -> None:
        self._searcher.refiner = refiner

    def search(
        self,
        query: str | SearchQuery,
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        filter: Filter = EVERYTHING,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
    ) -> SearchResult:
        """Moments that answer a query, best first.

        Args:
            query: a text, or anything that :mod:`moviola.search.queries` can say: moments, pictures, sums,
                sequences, exclusions.
            top_k: at most so many moments, >= 1.
            per_video: at most so many of one video, >= 1; None for no limit.
            videos: look only into these, by id.
            filter: look only into some videos, and take only some moments of them. Where few moments pass,
                up to 12,800 segments are retrieved to find ``top_k``.
            min_score: leave out what scores less, in [0, 1]. With a calibrated refiner that is the least
                probability of being right, otherwise see :mod:`moviola.retrieval.calibration`.
            by: which evidence to use; ``"both"`` is all that the library has, ``"visual"`` its pictures,
                ``"subtitles"``, ``"speech"`` (recognised) and ``"text"`` (in pictures) one kind of cues,
                ``"said"`` subtitles and speech.
            refine: False gives the coarse proposals of stage 2 (visual evidence).

        Returns:
            Moments with ranks from 1 and falling scores in [0, 1], whether they are an answer at all, and how
            long each stage took. Of equal ones the one with the larger matching score comes first, then the
            earlier video id and start. How queries that are no texts are scored stands in
            :mod:`moviola.search.finder`.

        Raises:
            InvalidValue: an empty text, a number outside its range, or a time after the end of a video.
            NotFound: an id in ``videos`` or in the query is unknown, or no video lies in the filter's folder.
            MediaError: a picture of the query cannot be read.
            LibraryError: ``by`` asks for evidence, or the query for frames, that the library does not have.
            MissingModel: the library's encoder is not on this machine.
        """
        return self._searcher.search_many(
            [as_query(query)], top_k=top_k, per_video=per_video, videos=videos, filter=filter,
            min_score=min_score, by=by, refine=refine,
        )[0]  # fmt: skip

    def search_many(
        self,
        queries: Sequence[Query | SearchQuery],
        *,
        top_k: int = 10,
        per_video: int | None = None,
        videos: Collection[str] | None = None,
        filter: Filter = EVERYTHING,
        min_score: float = 0.0,
        by: Evidence = "both",
        refine: bool = True,
        progress: Callable[[int], None] | None = None,
    ) -> list[SearchResult]:
        """:meth:`search` for many queries: one answer per query, in their order.

        ``progress`` is called with the number of queries that are done.
        """
        return self._searcher.search_many(
            queries, top_k=top_k, per_video=per_video, videos=videos, filter=filter, min_score=min_score,
            by=by, refine=refine, progress=progress,
        )  # fmt: skip

    def curve(
        self, query: str | SearchQuery, video_id: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How well each part of one video matches a query, whether or not a moment of it is an answer.

        Args:
            query: as of :meth:`search`.
            video_id: of a video that can be searched.

        Returns:
            (n,) float64 seconds, the middles of the times between two encoded frames, and (n,) float64 scores
            in [0, 1]. What they mean, and how they compare with scores of moments, stands in
            :mod:`moviola.search.curve`.

        Raises:
            InvalidValue, NotFound, MediaError, MissingModel: as of :meth:`search`.
            LibraryError: the video was refused.
        """
        return self._searcher.curve(query, video_id)
