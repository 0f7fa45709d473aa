"""The catalogues of several libraries as one.

A video's row number says which library has it: its own number, plus the library's place times
:data:`STRIDE`. Its id is its own; where several libraries have a video of one id, each of these has the
name of its library before it: ``holiday:beach``. Counts are those of all, so that a word weighs
what it would in one library of all videos.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from itertools import islice
from operator import add
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue, LibraryError, NotFound
from moviola.files.names import nearest
from moviola.library.disk.accounts import Account
from moviola.library.disk.bm25 import WordCounts
from moviola.library.disk.catalogue import Catalogue, CueRow, CueTrack, Reading, ShotRow, VideoRow
from moviola.library.disk.cue_words import WantedCues
from moviola.library.disk.places import Copy, Root
from moviola.types import CUE_KINDS, Capture, Cue, CueKind, Saying, Waypoint, require_kind

__all__ = ["STRIDE", "UnitedCatalogue", "names_of"]

STRIDE = 1 << 32
"""Between the row numbers of two libraries; SQLite gives 2^32 rows only to a library that nobody has."""

Value = TypeVar("Value")


def names_of(folders: Sequence[Path]) -> list[str]:
    """Names of libraries by their folders, each as short as it is alone: ``films``, or ``a/films``.

    Raises:
        InvalidValue: none, or one folder twice.
    """
    parts = [folder.resolve().parts for folder in folders]
    if not parts:
        raise InvalidValue("no library: name at least one")
    if twice := [folder for folder, own in zip(folders, parts, strict=True) if parts.count(own) > 1]:
        raise InvalidValue(f"{twice[0]}: given twice; name each library once")

    def ending(own: tuple[str, ...]) -> str:
        lengths = range(1, len(own))
        alone = (n for n in lengths if sum(other[-n:] == own[-n:] for other in parts) == 1)
        return "/".join(own[-next(alone, len(own)) :])

    return [ending(own) for own in parts]


class UnitedCatalogue(Catalogue):
    """The catalogues of several libraries, to be read.

    Args:
        parts: of the libraries, in their order.
        names: of these (:func:`names_of`).

    Whatever needs one library alone is refused with a :class:`LibraryError`.
    """

    def __init__(self, parts: Sequence[Catalogue], names: Sequence[str]) -> None:
        # None of its own: every question goes to the parts.
        self.path = parts[0].path
        self.parts, self.names = tuple(parts), tuple(names)
        self._of_compounds = None, {}
        self._known_clashes: tuple[int, frozenset[str]] = -1, frozenset()

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        raise LibraryError(
            f"{', '.join(self.names)}: searched as one; for this name one of them with --library, or open it "
            "alone"
        )

    def close(self) -> None:
        """Close all."""
        for part in self.parts:
            part.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads of this thread inside see one state of each catalogue."""
        with ExitStack() as stack:
            for part in self.parts:
                stack.enter_context(part.snapshot())
            yield

    @property
    def generation(self) -> int:
        """The sum of theirs, which rises with every change of one."""
        return sum(part.generation for part in self.parts)

    def _state(self) -> object:
        return self.generation

    # -- numbers and names of videos -----------------------------------------------------------------------

    def part_of(self, row: int) -> tuple[int, int]:
        """Place of the library of a video among the parts, and the video's row number there."""
        return divmod(row, STRIDE)

    def rows_by_part(self, rows: Iterable[int]) -> list[list[int]]:
        """Row numbers of each library, of those here."""
        own: list[list[int]] = [[] for _ in self.parts]
        for row in rows:
            place, number = self.part_of(row)
            own[place].append(number)
        return own

    def _of(self, row: int) -> tuple[Catalogue, int]:
        place, own = self.part_of(row)
        return self.parts[place], own

    @property
    def clashes(self) -> frozenset[str]:
        """Ids that videos of several libraries have."""
        generation = self.generation
        if self._known_clashes[0] != generation:
            counts = Counter(video_id for part in self.parts for video_id in part.video_ids())
            self._known_clashes = generation, frozenset(one for one, count in counts.items() if count > 1)
        return self._known_clashes[1]

    def id_of(self, place: int, video_id: str) -> str:
        """The id here of a video of the library at a place."""
        return f"{self.names[place]}:{video_id}" if video_id in self.clashes else video_id

    def own_ids(self, video_id: str) -> Iterator[tuple[int, str]]:
        """Places of the libraries that may have a video of an id here, and its id there."""
        for place, name in enumerate(self.names):
            if video_id.startswith(f"{name}:"):
                yield place, video_id.removeprefix(f"{name}:")
            if video_id not in self.clashes:
                yield place, video_id

    def own(self, video: VideoRow) -> tuple[int, VideoRow]:
        """Place of the library of a video, and the video as that library has it.

        Raises:
            NotFound: it has left its library meanwhile.
        """
        place, row = self.part_of(video.row)
        ids = {video.video_id, video.video_id.removeprefix(f"{self.names[place]}:")}
        for own in self.parts[place].videos_named(ids).values():
            if own.row == row:
                return place, own
        raise NotFound(f"{video.video_id:.200}: no longer in {self.names[place]}; look for it again")

    def _united(self, place: int, video: VideoRow) -> VideoRow:
        return replace(video, row=video.row + place * STRIDE, video_id=self.id_of(place, video.video_id))

    def videos(self) -> list[VideoRow]:
        """All videos, refused ones included, by video id."""
        every = (
            self._united(place, video) for place, part in enumerate(self.parts) for video in part.videos()
        )
        return sorted(every, key=lambda video: video.video_id)

    def videos_named(self, video_ids: Collection[str]) -> dict[str, VideoRow]:
        """The videos of some ids, those that exist."""
        wanted: dict[int, set[str]] = {}
        for video_id in video_ids:
            for place, own in self.own_ids(video_id):
                wanted.setdefault(place, set()).add(own)
        found = [
            self._united(place, video)
            for place, own in sorted(wanted.items())
            for video in self.parts[place].videos_named(own).values()
        ]
        return {video.video_id: video for video in found if video.video_id in video_ids}

    def video(self, video_id: str) -> VideoRow:
        """One video by its id here, or as each library finds it by a name or path of its file; errors as in
        :meth:`Catalogue.video`, also where several libraries have such a video.
        """
        require_kind("video", video_id, str, "the id of a video")
        if video := self.videos_named([video_id]).get(video_id):
            return video
        found = []
        for place, name in enumerate(self.names):
            for own in dict.fromkeys((video_id.removeprefix(f"{name}:"), video_id)):
                try:
                    found.append(self._united(place, self.parts[place].video(own)))
                    break
                except NotFound:
                    continue
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(video.video_id for video in found[:5])
            raise NotFound(f"{video_id:.200}: {len(found)} videos are called so; name one: {ids}")
        near = nearest(video_id, [video.video_id for video in self.videos()])
        hint = f"; did you mean {', '.join(near)}?" if near else "; `moviola list` shows what each has"
        raise NotFound(f"{video_id:.200}: no such video in {', '.join(self.names)}{hint}")

    def video_ids(self) -> list[str]:
        """The ids of all videos."""
        return [self.id_of(place, one) for place, part in enumerate(self.parts) for one in part.video_ids()]

    def rows_with(self, contents: Collection[str]) -> dict[str, list[int]]:
        """Row numbers, rising, of the searchable videos of some contents, by content."""
        found: dict[str, list[int]] = {}
        for place, part in enumerate(self.parts):
            for content, rows in part.rows_with(contents).items():
                found.setdefault(content, []).extend(row + place * STRIDE for row in rows)
        return found

    # -- facts of one video, and of all --------------------------------------------------------------------

    def cues(self, row: int) -> list[Cue]:
        part, own = self._of(row)
        return part.cues(own)

    def readings(self, row: int) -> dict[CueKind, Reading]:
        part, own = self._of(row)
        return part.readings(own)

    def repeats(self, row: int | None = None) -> int:
        if row is None:
            return sum(part.repeats() for part in self.parts)
        part, own = self._of(row)
        return part.repeats(own)

    def copies_of(self, row: int) -> list[Copy]:
        part, own = self._of(row)
        return [replace(copy, video=row) for copy in part.copies_of(own)]

    def capture(self, row: int) -> Capture:
        part, own = self._of(row)
        return part.capture(own)

    def account(self, row: int) -> Account:
        part, own = self._of(row)
        return part.account(own)

    def shots_of(self, videos: Collection[int]) -> dict[int, list[ShotRow]]:
        return self._by_row(lambda part, rows: part.shots_of(rows) if rows else {}, videos)

    def tracks(self, videos: Collection[int] | None = None) -> dict[int, list[CueTrack]]:
        return self._by_row(Catalogue.tracks, videos)

    def sayings(self, rows: Collection[int] | None = None) -> Mapping[int, tuple[Saying, ...]]:
        return self._by_row(Catalogue.sayings, rows)

    def captures(self, rows: Collection[int] | None = None) -> dict[int, Capture]:
        return self._by_row(Catalogue.captures, rows)

    def routes(self, rows: Collection[int] | None = None) -> dict[int, tuple[Waypoint, ...]]:
        return self._by_row(Catalogue.routes, rows)

    def sounds_read(self) -> dict[int, str]:
        return self._by_row(lambda part, _: part.sounds_read())

    def sounds(self, revision: str) -> dict[int, NDArray[np.void]]:
        return self._by_row(lambda part, _: part.sounds(revision))

    def _by_row(
        self,
        of: Callable[[Catalogue, Sequence[int] | None], Mapping[int, Value]],
        rows: Collection[int] | None = None,
    ) -> dict[int, Value]:
        """What each catalogue gives by row number, of all or of some rows."""
        given = [None] * len(self.parts) if rows is None else self.rows_by_part(rows)
        return {
            row + place * STRIDE: value
            for place, (part, own) in enumerate(zip(self.parts, given, strict=True))
            for row, value in of(part, own).items()
        }

    def copies(self, rows: Collection[int] | None = None) -> list[Copy]:
        given = [None] * len(self.parts) if rows is None else self.rows_by_part(rows)
        every = (
            replace(copy, video=copy.video + place * STRIDE)
            for place, (part, own) in enumerate(zip(self.parts, given, strict=True))
            for copy in part.copies(own)
        )
        return sorted(every, key=lambda copy: copy.path)

    def roots(self) -> list[Root]:
        by_path = {root.path: root for part in reversed(self.parts) for root in part.roots()}
        return [by_path[path] for path in sorted(by_path)]

    def live_photos(self, rows: Collection[int] | None = None) -> set[int]:
        return {*self._by_row(lambda part, own: dict.fromkeys(part.live_photos(own)), rows)}

    def has_places(self) -> bool:
        return any(part.has_places() for part in self.parts)

    def has_sounds(self) -> bool:
        return any(part.has_sounds() for part in self.parts)

    def sound_classes(self) -> dict[str, list[str]]:
        return {
            revision: names
            for part in reversed(self.parts)
            for revision, names in part.sound_classes().items()
        }

    def videos_with_cues(self) -> dict[CueKind, int]:
        every = [part.videos_with_cues() for part in self.parts]
        return {kind: sum(one[kind] for one in every) for kind in CUE_KINDS}

    # -- words ---------------------------------------------------------------------------------------------

    def cue_counts(self) -> dict[CueKind, int]:
        every = [part.cue_counts() for part in self.parts]
        return {kind: sum(one[kind] for one in every) for kind in CUE_KINDS}

    def cues_with(self, terms: Collection[str]) -> int:
        return sum(part.cues_with(terms) for part in self.parts)

    def languages(self) -> set[str]:
        return set().union(*(part.languages() for part in self.parts))

    def recognised_cues(self, kinds: Collection[CueKind]) -> list[tuple[int, int]]:
        return self._places(lambda part: part.recognised_cues(kinds))

    def cues_in(self, languages: Collection[str]) -> list[tuple[int, int]]:
        return self._places(lambda part: part.cues_in(languages))

    def _places(self, of: Callable[[Catalogue], list[tuple[int, int]]]) -> list[tuple[int, int]]:
        return [
            (row + place * STRIDE, number)
            for place, part in enumerate(self.parts)
            for row, number in of(part)
        ]

    def word_counts(self, terms: Collection[str], letters: Collection[str]) -> WordCounts:
        return reduce(add, (part.word_counts(terms, letters) for part in self.parts))

    def match_cues(self, wanted: WantedCues, limit: int, among: WordCounts | None = None) -> list[CueRow]:
        """The best cues of all, as in a single catalogue: words are counted in all first, then each gives its
        own best by these counts.
        """
        if not wanted.terms and not wanted.letters:
            return []
        among = among or self.word_counts(wanted.terms, wanted.letters)
        rows = None if wanted.videos is None else self.rows_by_part(wanted.videos)
        found = []
        for place, part in enumerate(self.parts):
            own = None if rows is None else rows[place]
            if own is None or own:
                best = part.match_cues(replace(wanted, videos=own), limit, among)
                found += [replace(one, video=one.video + place * STRIDE) for one in best]
        return [*islice(sorted(found, key=lambda one: -one.score), limit)]

    def terms_in(self, language: str) -> list[str]:
        return sorted(set().union(*(part.terms_in(language) for part in self.parts)))

    def terms_of_length(self, least: int, most: int) -> list[tuple[str, int]]:
        counts: Counter[str] = Counter()
        for part in self.parts:
            counts.update(dict(part.terms_of_length(least, most)))
        return [*counts.items()]

    def as_written(self, term: str) -> str:
        return next(filter(None, (part.as_written(term) for part in self.parts)), "")
