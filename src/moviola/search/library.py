"""``Library``: open, search, answer; its store, indexer and what people keep are parts of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    get_args,
)

import numpy as np
from numpy.typing import NDArray

from moviola.encoders import best_encoder
from moviola.errors import InvalidValue, MoviolaError, counted
from moviola.library import (
    Catalogue,
    LibraryStore,
    Settings,
    VideoRow,
    taken_of,
)
from moviola.plugins import naming_plugins
from moviola.retrieval import Refiner
from moviola.search.asked import Asked
from moviola.search.checking import Checker, checked_answers, checking, require_checker
from moviola.search.filters import COLUMNS
from moviola.search.found import SearchResult
from moviola.search.options import OptionChanges, SearchOptions
from moviola.search.queries import SearchQuery, as_query
from moviola.search.searcher import Searcher
from moviola.search.times import is_integer
from moviola.timing import stage
from moviola.types import Capture, Query, Video, require_kind

if TYPE_CHECKING:
    from moviola.library import Indexer, IngestReport, Recording
    from moviola.library.disk.kinds import TextValues
    from moviola.library.userdata.entries import UserData
    from moviola.search.concepts import Concepts
    from moviola.search.facets import FacetCounts
    from moviola.search.saved import SavedSearches
    from moviola.search.suggestions import Completions, ExampleReader, VideoName

    def _of_library(
        method: Callable[Concatenate[Indexer, Given], Value],
    ) -> Callable[Concatenate[Library, Given], Value]: ...


__all__ = ["Library", "Order"]

Value = TypeVar("Value")
Given = ParamSpec("Given")
Order = Literal["name", "date", "length", "added"]
"""By id, by the time at which they were taken, by length, or by when they came in."""


def _require_most(most: object) -> None:
    if not is_integer(most, 0):
        raise InvalidValue(f"most {most!r:.200}: give an integer, 0 or more")


class _PerGeneration(Generic[Value]):
    """A value that ``make`` makes of a library, again when the library has changed. Safe for threads."""

    def __init__(self, store: LibraryStore, make: Callable[[LibraryStore], Value]) -> None:
        self._store, self._make, self._lock = store, make, Lock()
        self._known: tuple[int, Value] | None = None

    def get(self) -> Value:
        with self._lock:
            # Read before the value: where the library changes meanwhile, it is made once more.
            generation = self._store.catalogue.generation
            if self._known is None or self._known[0] != generation:
                self._known = generation, self._make(self._store)
            return self._known[1]


class Library:
    """A library of videos, searched by text, pictures and examples.

    Arguments are those of :class:`moviola.library.LibraryStore`. Where nothing is there, a library is made,
    with the best encoder that is installed where none is given (:func:`moviola.encoders.best_encoder`), as by
    `moviola index`; with ``create`` False or ``read_only`` True one must be there.

    Attributes:
        store: the library on disk: paths and stills of videos, encoders, models in use.
        indexer: what changes its videos, models and index: ``remove``, ``restore``, ``move``, ``use`` and
            others; see :class:`moviola.library.Indexer`.
        index: the indexer's :meth:`moviola.library.Indexer.index`, which everybody needs.
        checker: a model that looks at moments where a search asks for it by ``check``
            (:class:`moviola.looker.Looker`); None, as at first: nothing is sent anywhere.

    >>> lib = Library("lib")  # doctest: +SKIP
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
        create: bool = True,
        device: str = "auto",
        precision: str = "auto",
        resident: bool = False,
    ) -> None:
        with stage("opening"):
            self.store = LibraryStore(
                folder,
                encoder=encoder,
                encoder_of_new=(lambda: best_encoder().name) if create else None,
                sentence_encoder=sentence_encoder,
                segment_seconds=segment_seconds,
                frame_rate=frame_rate,
                read_only=read_only,
                device=device,
                precision=precision,
                resident=resident,
                columns=COLUMNS,
            )
        self._over(self.store)

    def _over(self, store: LibraryStore) -> None:
        """Make the parts of a library over its store."""
        self.store = store
        self._searcher = Searcher(self.store)
        self.checker: Checker | None = None
        self._orders = _PerGeneration[dict[Order, list[VideoRow]]](
            self.store, lambda store: {"name": store.catalogue.videos()}
        )

    def close(self) -> None:
        """Close the library's files; one whose features are still in use, when these go."""
        self._searcher.forget()
        self.store.close()
        if "userdata" in self.__dict__:
            self.userdata.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def indexer(self) -> Indexer:
        """What changes its videos, models and index; imported where it is used, since searches need none."""
        from moviola.library import Indexer

        return Indexer(self.store)

    if TYPE_CHECKING:
        index = _of_library(Indexer.index)
    else:

        @cached_property
        def index(self) -> Callable[..., IngestReport]:
            """The indexer's :meth:`moviola.library.Indexer.index`, with its arguments."""
            return self.indexer.index

    # -- parts, each imported where it is used ------------------------------------------------------------

    @cached_property
    def concepts(self) -> Concepts:
        """What marks have taught, under names that queries can hold."""
        from moviola.search.concepts import Concepts

        return Concepts(self.store, self._searcher)

    @cached_property
    def _facets(self) -> _PerGeneration[tuple[FacetCounts, TextValues]]:
        from moviola.search.facets import count_facets

        return _PerGeneration(self.store, count_facets)

    @cached_property
    def _names(self) -> _PerGeneration[list[VideoName]]:
        from moviola.search.suggestions import video_names

        return _PerGeneration(self.store, video_names)

    @cached_property
    def _recordings(self) -> _PerGeneration[Mapping[str, Recording]]:
        from moviola.library import recordings_of

        return _PerGeneration(
            self.store, lambda store: recordings_of(store.catalogue.videos(), store.catalogue.captures())
        )

    @cached_property
    def _examples(self) -> ExampleReader:
        from moviola.search.suggestions import ExampleReader

        by_pictures = SearchOptions(top_k=1, by="visual", refine=False)
        return ExampleReader(self.store, partial(self._searcher.search_many, options=by_pictures))

    # -- contents ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Path of the library."""
        return self.store.folder

    @property
    def settings(self) -> Settings:
        """Its settings, with the models in use."""
        return self.store.settings

    @property
    def catalogue(self) -> Catalogue:
        """Its videos with paths, states and subtitles."""
        return self.store.catalogue

    @property
    def recordings(self) -> Mapping[str, Recording]:
        """Recordings in several files, by the id of each of their videos."""
        return self._recordings.get()

    def videos(self) -> list[Video]:
        """The searchable videos, by id."""
        return self.store.videos()

    def ordered(self, order: Order) -> list[VideoRow]:
        """All videos as catalogue rows, refused ones included, in an order; the list is not to be changed."""
        require_kind("order", order, str, f"one of {', '.join(get_args(Order))}")
        orders = self._orders.get()
        if order not in orders:
            captures = self.catalogue.captures() if order == "date" else {}
            keys: dict[Order, Callable[[VideoRow], Any]] = {
                "length": lambda video: video.duration,
                "added": lambda video: video.row,
                "date": lambda video: taken_of(video, captures.get(video.row, Capture())).instant,
            }
            if order not in keys:
                raise InvalidValue(f"order {order!r}: choose name, {', '.join(keys)}")
            orders[order] = sorted(orders["name"], key=keys[order])
        return orders[order]

    def facets(self) -> FacetCounts:
        """Numbers of videos by folder, day, length, camera, place, tag and evidence: what filters choose by.

        Read once per state of the library.
        """
        from moviola.search.facets import with_tags

        return with_tags(*self._facets.get(), self._tagged())

    def examples(self, most: int = 5) -> tuple[str, ...]:
        """Queries to try: things that some moment shows strongly, the surest first.

        Found once per state of the library, in a second or two; none without a visual encoder.
        """
        _require_most(most)
        return self._examples.read(most)

    def complete(self, text: str, most: int = 5) -> Completions:
        """Videos and tags in whose name a word begins with a text; at most ``most`` of each."""
        require_kind("text", text, str, "the beginning of a word")
        from moviola.search.suggestions import complete

        _require_most(most)
        return complete(self._names.get(), self._tagged(), text, most)

    def _tagged(self) -> Mapping[str, Collection[str]]:
        """Ids of videos by tag."""
        return self.userdata.tagged()

    @cached_property
    def userdata(self) -> UserData:
        """Saved searches, collections, tags and ratings; writable even where the library is read-only."""
        from moviola.library.userdata.entries import UserData

        return UserData(self.folder, Asked.from_json, self.catalogue.lengths_of)

    @property
    def saved(self) -> SavedSearches:
        """Saved searches, as questions."""
        from moviola.search.saved import SavedSearches

        return SavedSearches(self.userdata, self.search)

    def __repr__(self) -> str:
        try:
            holds = f"{counted(len(self), 'video')}, encoder {self.settings.encoder or 'none'}"
        except MoviolaError:  # closed, or not made yet
            holds = "not open"
        folders = ", ".join(repr(str(part.folder)) for part in self.store.parts or (self.store,))
        return f"<{type(self).__name__} {folders}: {holds}>"

    def __len__(self) -> int:
        return len(self.videos())

    # -- searching ---------------------------------------------------------------------------------------

    @property
    def refiner(self) -> Refiner:
        """Stage 3: the trained refiner in use, else the one without training. May be replaced."""
        return self._searcher.refiner or self.store.models.refiner

    @refiner.setter
    def refiner(self, refiner: Refiner) -> None:
        self._searcher.refiner = refiner

    def search(
        self,
        query: str | SearchQuery,
        options: SearchOptions | None = None,
        **changes: Unpack[OptionChanges],
    ) -> SearchResult:
        """Moments that answer a query, best first.

        Args:
            query: a text, or any query of :mod:`moviola.search.queries`: moments, pictures, sums, sequences,
                exclusions.
            options: see :class:`moviola.search.SearchOptions`; None for the defaults.
            changes: single fields of the options: ``search("a dog", top_k=5)``.

        Returns:
            Moments with ranks from 1 and falling scores in [0, 1], without duplicates, and the time of each
            stage. Of equal scores the one with the larger matching score comes first, then the earlier video
            id and start. :mod:`moviola.search.answers` defines the scores of composed queries,
            :mod:`moviola.retrieval.calibration` the meaning of scores.

        Raises:
            InvalidValue: an empty text, a number outside its range, a time after the end of a video; or
                ``check`` without a :attr:`checker`, or of a query without words.
            NotFound: an unknown id in ``videos`` or in the query, or no video in the filter's folder.
            MediaError: a picture of the query cannot be read.
            LibraryError: ``by`` or the query needs evidence that the library does not have.
            MissingModel: the library's encoder is not on this machine.
        """
        return self.search_many([as_query(query)], options, **changes)[0]

    @naming_plugins()
    def search_many(
        self,
        queries: Sequence[Query | SearchQuery],
        options: SearchOptions | None = None,
        *,
        progress: Callable[[int], None] | None = None,
        refuse: Callable[[int, MoviolaError], None] | None = None,
        **changes: Unpack[OptionChanges],
    ) -> list[SearchResult]:
        """:meth:`search` for many queries, in their order.

        Args:
            queries: to search for.
            options, changes: see :meth:`search`.
            progress: called with the number of finished queries.
            refuse: called with the place and the error (InvalidValue, NotFound, NotSearched or MediaError) of
                a query that cannot be answered; its answer is empty. By default the first such error is
                raised.

        Returns:
            an answer for each query.

        Raises:
            MoviolaError: see :meth:`search`, but for what ``refuse`` is called with.
        """
        if options is not None:
            require_kind("options", options, SearchOptions, "SearchOptions, or single fields by name")
        chosen = (options or SearchOptions()).with_changes(**changes)
        if chosen.check is not None:
            require_checker(self.checker, chosen.check)
        answers = self._searcher.search_many(queries, checking(chosen), progress, refuse)
        if chosen.check is not None:
            answers = checked_answers(answers, chosen, self.checker, refuse)
        for answer in answers:
            answer.still = self.store.kept_still
        return answers

    @naming_plugins()
    def curve(
        self, query: str | SearchQuery, video_id: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Score curve of one video: how well each part of it matches a query.

        Args:
            query: see :meth:`search`.
            video_id: a searchable video.

        Returns:
            (n,) float64 seconds, the middles of the times between two encoded frames, and (n,) float64 scores
            in [0, 1], as :mod:`moviola.search.relevance_curve` defines them.

        Raises:
            InvalidValue, NotFound, MediaError, MissingModel: see :meth:`search`.
            LibraryError: the video was refused.
        """
        return self._searcher.curve(as_query(query), video_id)
