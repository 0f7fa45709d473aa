"""``Library``: a store, its indexer and its searcher behind one interface."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, MoviolaError
from moviola.library import (
    Catalogue,
    Concept,
    Indexer,
    LibraryStore,
    Problem,
    Settings,
    VideoRow,
    compact,
    concepts_of,
    forget_concept,
    keep_concept,
    present_path,
    read_concept,
    repair,
    require_outside,
    taken_of,
    verify,
)
from moviola.plugins import naming_plugins
from moviola.retrieval import Refiner
from moviola.search.asked import Asked, picture_of, renamed
from moviola.search.facets import FacetCounts, count_facets, with_tags
from moviola.search.found import SearchResult
from moviola.search.options import SearchOptions
from moviola.search.queries import KeptPicture, LikePicture, Marked, SearchQuery, as_query
from moviola.search.searcher import Searcher
from moviola.search.suggestions import Completions, ExampleReader, complete, video_names
from moviola.search.times import is_integer
from moviola.timing import stage
from moviola.types import Capture, Query, Video, require_kind, several

if TYPE_CHECKING:
    from moviola.encoders import FrameTextEncoder, SentenceEncoder
    from moviola.library.kept.entries import Kept
    from moviola.library.kept.values import Entry

__all__ = ["Library", "Order"]

Value = TypeVar("Value")
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


class Library(Indexer):
    """A library of videos, searched by text, pictures and examples.

    Methods of :class:`moviola.library.Indexer` change its videos, models and index: ``index``, ``remove``,
    ``restore``, ``move``, ``use`` and others. Arguments are those of :class:`moviola.library.LibraryStore`:
    the folder is created by the first writer if an encoder is given and nothing is there.

    Attributes:
        store: the library on disk.

    >>> lib = Library("lib", encoder="conse-lite1")  # doctest: +SKIP
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
        super().__init__(self.store)
        self._searcher = Searcher(self.store)
        self._facets = _PerGeneration(self.store, count_facets)
        self._names = _PerGeneration(self.store, video_names)
        self._orders = _PerGeneration[dict[Order, list[VideoRow]]](
            self.store, lambda store: {"name": store.catalogue.videos()}
        )
        by_pictures = SearchOptions(top_k=1, by="visual", refine=False)
        self._examples = ExampleReader(self.store, partial(self._searcher.search_many, options=by_pictures))

    def close(self) -> None:
        """Close the library's files; one whose features are still in use, when these go."""
        self._searcher.forget()
        self.store.close()
        if "kept" in self.__dict__:
            self.kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- contents ----------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """Path of the library."""
        return self.store.folder

    @property
    def read_only(self) -> bool:
        """Whether it was opened without the right to write."""
        return self.store.read_only

    @property
    def settings(self) -> Settings:
        """Its settings, with the models in use."""
        return self.store.settings

    @property
    def catalogue(self) -> Catalogue:
        """Its videos with paths, states and subtitles."""
        return self.store.catalogue

    @property
    def encoder(self) -> FrameTextEncoder | None:
        """The visual encoder, loaded and checked against the library's revision; None if it has none."""
        return self.store.encoders.visual

    @property
    def sentence_encoder(self) -> SentenceEncoder | None:
        """The sentence encoder, likewise."""
        return self.store.encoders.sentences

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

    def file_of(self, video_id: str) -> Path | None:
        """An existing file of a video, of all its paths; None while its drives are away.

        Raises:
            NotFound: no such video.
        """
        video = self.catalogue.video(video_id)
        return present_path(video, self.catalogue.copies_of(video.row), self.catalogue.roots())

    def kept_still(self, video_id: str, time: float) -> bytes | None:
        """The small still of a video (WebP) nearest to a time in seconds; None without any.

        Raises:
            NotFound: no such video.
        """
        return self.store.stills.nearest(self.catalogue.video(video_id).hash, time)

    def paths_of(self, video_ids: Iterable[str]) -> tuple[dict[str, str], set[str]]:
        """A path of each video, an existing one if any, and the ids of videos that are away.

        Raises:
            NotFound: no such video.
        """
        catalogue, roots = self.catalogue, self.catalogue.roots()
        videos = {video_id: catalogue.video(video_id) for video_id in several("video_ids", video_ids)}
        there = {
            video_id: present_path(video, catalogue.copies_of(video.row), roots)
            for video_id, video in videos.items()
        }
        paths = {video_id: str(path or videos[video_id].path) for video_id, path in there.items()}
        return paths, {video_id for video_id, path in there.items() if path is None}

    def require_outside(self, out: str | Path) -> None:
        """Refuse to write over what the library has; see :func:`moviola.library.require_outside`."""
        require_outside(out, self.folder, self.catalogue)

    def facets(self) -> FacetCounts:
        """Numbers of videos by folder, day, length, camera, place, tag and evidence: what filters choose by.

        Read once per state of the library.
        """
        return with_tags(*self._facets.get(), self.kept.tagged())

    def examples(self, most: int = 5) -> tuple[str, ...]:
        """Queries to try: things that some moment shows strongly, the surest first.

        Found once per state of the library, in a second or two; none without a visual encoder.
        """
        _require_most(most)
        return self._examples.read(most)

    def complete(self, text: str, most: int = 5) -> Completions:
        """Videos and tags in whose name a word begins with a text; at most ``most`` of each."""
        require_kind("text", text, str, "the beginning of a word")
        _require_most(most)
        return complete(self._names.get(), self.kept.tagged(), text, most)

    @cached_property
    def kept(self) -> Kept:
        """Saved searches, collections, tags and ratings; writable even where the library is read-only."""
        from moviola.library.kept.entries import Kept

        return Kept(self.folder, Asked.from_json, self._lengths)

    def _lengths(self, video_ids: set[str]) -> dict[str, float]:
        """Seconds of videos by id; a refused one has none."""
        named = self.catalogue.videos_named(video_ids)
        return {video_id: video.duration for video_id, video in named.items() if video.duration}

    def __len__(self) -> int:
        return len(self.videos())

    # -- maintenance -------------------------------------------------------------------------------------

    def verify(self) -> list[Problem]:
        """Problems of the library; see :func:`moviola.library.verify`."""
        return verify(self.store)

    def repair(
        self,
        *,
        confirm: Callable[[Sequence[str], int], bool] | None = None,
        dry_run: bool = False,
        for_good: bool = False,
    ) -> list[Problem]:
        """Fix what can be fixed; returns those problems. See :func:`moviola.library.repair`."""
        return repair(self.store, confirm=confirm, dry_run=dry_run, for_good=for_good)

    def compact(self) -> int:
        """Free the space of removed videos; returns the bytes. See :func:`moviola.library.compact`."""
        return compact(self.store)

    # -- searching ---------------------------------------------------------------------------------------

    @property
    def refiner(self) -> Refiner:
        """Stage 3: the trained refiner in use, else the one without training. May be replaced."""
        return self._searcher.refiner or self.store.models.refiner

    @refiner.setter
    def refiner(self, refiner: Refiner) -> None:
        self._searcher.refiner = refiner

    def search(
        self, query: str | SearchQuery, options: SearchOptions | None = None, **changes: Any
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
            InvalidValue: an empty text, a number outside its range, or a time after the end of a video.
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
        **changes: Any,
    ) -> list[SearchResult]:
        """:meth:`search` for many queries, in their order.

        Args:
            queries: to search for.
            options, changes: as of :meth:`search`.
            progress: called with the number of finished queries.
            refuse: called with the place and the error (InvalidValue, NotFound, NotSearched or MediaError) of
                a query that cannot be answered; its answer is empty. By default the first such error is
                raised.

        Returns:
            an answer for each query.

        Raises:
            MoviolaError: as of :meth:`search`, but for what ``refuse`` is called with.
        """
        if options is not None:
            require_kind("options", options, SearchOptions, "SearchOptions, or single fields by name")
        chosen = replace(options or SearchOptions(), **changes)
        return self._searcher.search_many(queries, chosen, progress, refuse)

    # -- saved searches ------------------------------------------------------------------------------------

    def saved(self, name: str) -> Asked:
        """The question of a saved search.

        Raises:
            NotFound: no search of this name is saved.
            InvalidValue: it can never run.
        """
        from moviola.library.kept.values import SavedSearch

        saved = self.kept.entry("search", name).value
        assert isinstance(saved, SavedSearch)
        try:
            return Asked.from_json(saved.root)
        except InvalidValue as error:
            raise InvalidValue(f"search {name!r}: {error}; save it again") from error

    def search_saved(self, name: str, **changes: Any) -> SearchResult:
        """:meth:`search` for a saved search, ``changes`` as there; errors as of :meth:`saved`, too."""
        saved = self.saved(name)
        return self.search(saved.query, replace(saved.options, **changes))

    def save_search(
        self,
        name: str,
        asked: Asked | Mapping[str, Any],
        version: int | None = None,
        picture: Callable[[str], LikePicture | KeptPicture] = picture_of,
    ) -> Entry:
        """Save a question under a name, replacing the one of that name.

        Args:
            asked: the question, or its JSON, which is kept as it is but for its pictures: these are kept with
                it, large ones made smaller (:func:`moviola.media.small_picture`), and get other names.
            version: see :meth:`moviola.library.kept.entries.Kept.put`.
            picture: gives the pictures that are named in JSON.

        Raises:
            InvalidValue: it can never run.
            MediaError: a picture cannot be read.
            OutOfDate, LibraryError: see :meth:`moviola.library.kept.entries.Kept.put`.
        """
        from moviola.library.kept.pictures import picture_to_keep

        row = asked.to_json() if isinstance(asked, Asked) else asked
        names: dict[str, str] = {}
        contents: dict[str, bytes] = {}

        def keep(given: str) -> LikePicture | KeptPicture:
            found = picture(given)
            if isinstance(found, LikePicture):
                names[given], content = picture_to_keep(found.path)
                contents[names[given]] = content
            return found

        Asked.from_json(row, keep)
        return self.kept.put("search", name, renamed(row, names), version, contents)

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
            InvalidValue, NotFound, MediaError, MissingModel: as of :meth:`search`.
            LibraryError: the video was refused.
        """
        return self._searcher.curve(as_query(query), video_id)

    # -- concepts ----------------------------------------------------------------------------------------

    def teach(self, title: str, query: Marked) -> str:
        """Save a query's marks as a concept, replacing one of the same name.

        Args:
            title: any words; the concept's name is the title in small letters, with ``-`` for everything but
                letters and digits; ``@name`` in a query refers to it: "our logo" is ``@our-logo``.
            query: a query with at least one right mark, or a concept.

        Returns:
            the name.

        Raises:
            InvalidValue: no right mark, a title without letters, or the library was opened read-only.
            NotFound: a video of a mark is unknown.
            LibraryLocked: another process is writing.
        """
        require_kind("title", title, str, "a text")
        require_kind("query", query, Marked, "a query with marks, moviola.search.Marked")
        concept = self._searcher.teach(title, query)
        if not len(concept.right):
            raise InvalidValue(f"{title!r}: mark at least one moment as right")
        with self.store.writing():
            keep_concept(self.folder, self.settings, concept)
        return concept.name

    def concepts(self) -> list[Concept]:
        """The concepts, by name.

        Raises:
            DataError, EncoderMismatch: see :func:`moviola.library.read_concept`.
        """
        return [read_concept(self.folder, self.settings, name) for name in concepts_of(self.folder)]

    def forget(self, name: str) -> None:
        """Delete a concept.

        Raises:
            NotFound: no such concept.
            InvalidValue: the library was opened read-only.
            LibraryLocked: another process is writing.
        """
        require_kind("concept", name, str, "its name")
        with self.store.writing():
            forget_concept(self.folder, name.removeprefix("@"))
