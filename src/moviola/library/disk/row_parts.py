"""Facts of videos in parts that never change, by row number: publishing costs what is new.

A set is published as ``NAME.json`` and ``NAME-<digest>.part`` in ``cache/facts``
(:mod:`moviola.files.parts`). A part has the row numbers of some videos and columns of what is known of them.
Videos that have come or changed since (:mod:`moviola.library.disk.changes`) are a part more, and bits say
which rows of earlier parts are gone; parts of like size are merged. The manifest bears the generation of the
catalogue. Readers of a later one make the last part in memory; where they cannot, or a file is damaged, the
catalogue is read instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, SegmentIndexError
from moviola.features import Integers
from moviola.files.array_file import map_arrays, write_arrays
from moviola.files.parts import (
    NamedFile,
    NewFile,
    PartFile,
    clear,
    gone_of,
    merges,
    named_of,
    new_files,
    publish,
    read_manifest,
    with_gone,
)
from moviola.library.disk.kinds import Arrays, Kind

__all__ = ["AT_ONCE", "FACTS", "Make", "Part", "RowParts", "RowSet", "are_among", "damaged_parts"]

FACTS = Path("cache") / "facts"
"""The folder of the sets in a library."""

FIRST, FAN_OUT, LARGEST = 1, 8, 1 << 16
"""Sizes of parts, in rows, by which they are merged (:func:`moviola.files.parts.merges`). Of 20,000 videos
that come one by one each is written 4.5 times, into 31 parts at most.
"""
AT_ONCE = 1 << 14
"""Videos whose facts are read at once."""

_FORMAT = 1
_KEYS = {_FORMAT: {"format", "groups", "generation", "forms"}}
# Of a part, one row in this number may be gone before it is written again.
_GONE = 3
# Writers compare the content of smaller files alone; readers and `moviola verify` that of all.
_COMPARED_BYTES = 1 << 22

Make = Callable[[Sequence[int]], tuple[Integers, Mapping[str, Arrays]]]
"""Row numbers (n,) int64, rising, of those of some videos that are there, and the arrays of each column."""
Widen = Callable[["RowParts", Collection[int]], Collection[int]]
"""Of a set and the videos that have changed: these, and others whose columns change with them."""


def are_among(values: Integers, rising: Integers) -> NDArray[np.bool_]:
    """Which of values (n,) are among others (m,), rising: :func:`numpy.isin` sorts both again, and imports
    half of NumPy for that.
    """
    if not len(rising):
        return np.zeros(len(values), np.bool_)
    found: NDArray[np.bool_] = rising[np.minimum(np.searchsorted(rising, values), len(rising) - 1)] == values
    return found


@dataclass(frozen=True, eq=False)
class Part:
    """Columns of some videos.

    Attributes:
        rows: (n,) int64, rising, row numbers.
        columns: arrays by column.
        gone: (g,) int64, rising, places of the rows that are gone.
        file: where it lies with ``written`` rows gone; None: in memory.
    """

    rows: Integers
    columns: Mapping[str, Arrays]
    gone: Integers
    file: PartFile | None = None
    written: Integers | None = None

    @cached_property
    def there(self) -> NDArray[np.bool_]:
        """Which rows are there, (n,) bool."""
        there = np.ones(len(self.rows), np.bool_)
        there[self.gone] = False
        return there

    @property
    def live(self) -> int:
        """Number of rows that are there."""
        return len(self.rows) - len(self.gone)

    def without(self, rows: Integers) -> Part:
        """The part with some videos, rising, gone."""
        places = np.searchsorted(self.rows, rows)
        gone = np.union1d(self.gone, places[are_among(rows, self.rows)])
        if len(gone) == len(self.gone):
            return self
        return Part(self.rows, self.columns, gone, self.file, self.written)


@dataclass(frozen=True, eq=False)
class RowParts(Mapping[str, Arrays]):
    """Parts as one: the arrays of each column, joined when they are asked for.

    Attributes:
        kinds: of the columns.
        parts: each video is there in one of them.
    """

    kinds: Mapping[str, Kind]
    parts: tuple[Part, ...]

    @cached_property
    def rows(self) -> Integers:
        """(V,) int64, rising, row numbers of all videos that are there."""
        own = [part.rows[part.there] for part in self.parts]
        return np.sort(np.concatenate([np.empty(0, np.int64), *own]))

    @cached_property
    def places(self) -> list[Integers]:
        """Of each part the places (n,) of its rows among all; -1 for those that are gone."""
        return [np.where(part.there, np.searchsorted(self.rows, part.rows), -1) for part in self.parts]

    def __contains__(self, name: object) -> bool:
        return name in self.kinds

    def __getitem__(self, name: str) -> Arrays:
        if name not in self.kinds:
            raise KeyError(name)
        if len(self.parts) == 1 and not len(self.parts[0].gone):
            return self.parts[0].columns[name]
        kind = self.kinds[name]
        if not self.parts:
            return kind.made([])
        columns = [part.columns[name] for part in self.parts]
        return kind.joined(list(zip(columns, self.places, strict=True)), len(self.rows))

    def __iter__(self) -> Iterator[str]:
        return iter(self.kinds)

    def __len__(self) -> int:
        return len(self.kinds)

    def changed(self, rows: Collection[int], make: Make) -> RowParts:
        """The same after some videos have come, gone or changed."""
        if not rows:
            return self
        touched = np.array(sorted(rows), np.int64)
        there, columns = make(touched.tolist())
        parts = (*(part.without(touched) for part in self.parts), Part(there, columns, touched[:0]))
        return RowParts(self.kinds, tuple(part for part in parts if part.live))


@dataclass(frozen=True)
class RowSet:
    """A published set.

    Attributes:
        folder, name: of its files.
        kinds: of its columns.
        forms: of its columns: another text for a column that is made by another rule.
    """

    folder: Path
    name: str
    kinds: Mapping[str, Kind]
    forms: Mapping[str, str]

    def at(
        self,
        generation: int,
        changed_since: Callable[[int], Collection[int] | None],
        make: Make,
        widen: Widen | None = None,
    ) -> RowParts | None:
        """The set as it is at a generation of the catalogue, with those columns that are made as now; None
        where that is not known of its files.
        """
        before: object = None
        while True:
            try:
                found = self._read(content=True)
            except (DataError, SegmentIndexError, OSError) as error:
                # The next set may just have been published, and the files of this one deleted.
                if str(error) == before:
                    return None
                before = str(error)
                continue
            parts, known, _ = found
            changed = () if known == generation else changed_since(known)
            if changed is None or known > generation:
                return None
            return parts.changed(widen(parts, changed) if widen and changed else changed, make)

    def known(self, *, content: bool) -> tuple[RowParts, int] | None:
        """The set as it was published, and its generation; None where it is missing, damaged, or of other
        forms. ``content`` compares that of all files.
        """
        try:
            parts, generation, _ = self._read(content=content)
        except (DataError, SegmentIndexError, OSError):
            return None
        return (parts, generation) if parts.kinds.keys() == self.kinds.keys() else None

    def publish(
        self,
        generation: int,
        changed_since: Callable[[int], Collection[int] | None],
        rows: Callable[[], Sequence[int]],
        make: Make,
        widen: Widen | None = None,
    ) -> None:
        """Have the set be of a generation of the catalogue; under the write lock.

        Args:
            rows: gives the row numbers of all videos, where all are to be written.
            widen: where columns of a video depend on others.
        """
        found = self._known(changed_since)
        if found is None:
            files: dict[str, NamedFile] = {}
            new = new_files(self.folder, self.name, files)
            parts = RowParts(self.kinds, tuple(self._chunks(rows(), make, new)))
        else:
            parts, known, changed, files = found
            if known == generation:
                return
            new = new_files(self.folder, self.name, files)
            parts = parts.changed(widen(parts, changed) if widen and changed else changed, make)
        named = [named_of(part, files) for part in self._written(parts, new)]
        values = {
            "format": _FORMAT, "groups": [[file.entry] for file in named], "generation": generation,
            "forms": dict(self.forms),
        }  # fmt: skip
        publish(self.folder, self.name, values)
        clear(self.folder, self.name, named)

    def _known(
        self, changed_since: Callable[[int], Collection[int] | None]
    ) -> tuple[RowParts, int, Collection[int], dict[str, NamedFile]] | None:
        """The published parts, their generation, and the rows that have changed since; None where all is to
        be written again.
        """
        try:
            parts, known, files = self._read(content=False)
        except (DataError, SegmentIndexError, OSError):
            return None
        changed = changed_since(known)
        if changed is None or parts.kinds.keys() != self.kinds.keys():
            return None
        return parts, known, changed, files

    def _read(self, *, content: bool) -> tuple[RowParts, int, dict[str, NamedFile]]:
        """The published parts, their generation, and their files by name."""
        values, named = _named_in(self.folder / f"{self.name}.json")
        kinds = {
            name: kind for name, kind in self.kinds.items() if values["forms"].get(name) == self.forms[name]
        }
        parts = []
        for file in named:
            content_too = content or (file.size or 0) <= _COMPARED_BYTES
            parts.append(_mapped(file, content_too))
        files = {one.path.name: one for file in named for one in (file, file.gone) if one}
        return RowParts(kinds, tuple(parts)), int(values["generation"]), files

    def _chunks(self, rows: Sequence[int], make: Make, new: NewFile) -> Iterator[Part]:
        """All videos, some at a time, written and mapped."""
        for begin in range(0, len(rows), AT_ONCE):
            there, columns = make(rows[begin : begin + AT_ONCE])
            if len(there):
                yield _opened(PartFile(self._write(Part(there, columns, there[:0]), new)))

    def _written(self, parts: RowParts, new: NewFile) -> Iterator[PartFile]:
        """The files of parts, some of them merged, after all that is new was written."""
        every = parts.parts
        for bundle in merges([part.live for part in every], FIRST, FAN_OUT, LARGEST):
            own = [every[place] for place in bundle]
            first = own[0]
            again = first.file is None or _GONE * len(first.gone) > len(first.rows)
            if len(own) > 1 or again:
                joined = RowParts(self.kinds, tuple(own))
                columns = {name: joined[name] for name in self.kinds}
                yield PartFile(self._write(Part(joined.rows, columns, joined.rows[:0]), new))
            else:
                assert first.file is not None and first.written is not None
                yield with_gone(first.file, len(first.rows), first.written, first.gone, new)

    def _write(self, part: Part, new: NewFile) -> Path:
        arrays = {
            f"{name} {piece}": (part.columns[name][piece], stored)
            for name, kind in self.kinds.items()
            for piece, stored in kind.parts.items()
        }
        return new(lambda draft: write_arrays(draft, {"rows": (part.rows, "<i8"), **arrays}), "part")


def _named_in(manifest: Path) -> tuple[dict[str, Any], list[NamedFile]]:
    """What a manifest says, and the files that it names; raises :class:`DataError`."""
    values = read_manifest(manifest, _KEYS)
    try:
        if not isinstance(values["forms"], dict) or type(values["generation"]) is not int:
            raise TypeError("of another form")
        return values, [NamedFile.of_entry(manifest, one, "part") for (one,) in values["groups"]]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{manifest}: damaged manifest ({error!r})") from error


# Parts that are in use, by the state of their files; the next view of a library shares them.
_IN_USE: WeakValueDictionary[tuple[Any, ...], Part] = WeakValueDictionary()


def _mapped(file: NamedFile, content: bool) -> Part:
    """A part that a manifest names; errors as in :meth:`NamedFile.require_intact` and :func:`map_arrays`."""
    states = [(one.path, one.sha256, one.path.stat()) for one in (file, file.gone) if one]
    state = tuple((path, digest, s.st_ino, s.st_size, s.st_mtime_ns) for path, digest, s in states)
    part = _IN_USE.get((True, *state)) or _IN_USE.get((content, *state))
    if part is None:
        for one in (file, file.gone):
            if one:
                one.require_intact(content)
        part = _IN_USE[content, *state] = _opened(file.part)
    return part


def _opened(file: PartFile) -> Part:
    arrays = {name: array.values for name, array in map_arrays(file.path).items()}
    rows, columns = arrays.pop("rows"), dict[str, dict[str, NDArray[Any]]]()
    for name, array in arrays.items():
        column, _, piece = name.rpartition(" ")
        columns.setdefault(column, {})[piece] = array
    gone = gone_of(file, len(rows))
    return Part(rows, columns, gone, file, gone)


def damaged_parts(library: Path) -> Iterator[Path]:
    """Manifests and files of the sets of a library that do not match their digests. One that is missing has
    its manifest count as damaged.
    """
    for manifest in sorted((library / FACTS).glob("*.json")):
        try:
            _, named = _named_in(manifest)
        except DataError:
            yield manifest
            continue
        for file in (one for part in named for one in (part, part.gone) if one):
            try:
                file.require_intact(content=True)
            except DataError:
                yield file.path if file.path.exists() else manifest
