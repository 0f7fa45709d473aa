"""Sets of files that never change, published in one step by a manifest; some are merged in time.

``NAME.json`` names the files of a set (``NAME-<digest>.KIND``) with their digests (SHA-256), and beside some
a file with a bit for each of their rows that is gone (``.gone``). So publishing writes what is new. A process
that is killed leaves the manifest before or the one after, and files that neither names, which the next
publication deletes. A reader keeps the files that it has opened for as long as it uses them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, SegmentIndexError
from moviola.files.array_file import map_arrays, write_arrays
from moviola.files.drafts import DRAFTS, is_abandoned
from moviola.files.regular import open_regular, read_regular
from moviola.files.writing import draft_of, write_json

__all__ = [
    "Groups", "NamedFile", "NewFile", "PartFile", "clear", "gone_of", "merges", "named_of", "new_files",
    "publish", "read_manifest", "with_gone",
]  # fmt: skip

_LONGEST_MANIFEST = 1 << 20  # bytes


@dataclass(frozen=True)
class PartFile:
    """A file that never changes, and one with a bit for each of its rows that is gone."""

    path: Path
    gone: Path | None = None


Groups = tuple[tuple[PartFile, ...], ...]
"""Files of a set, in groups that are used as one each."""


class NewFile(Protocol):
    """Makes a file of a set."""

    def __call__(self, write: Callable[[Path], None], kind: str = "faiss") -> Path:
        """The lasting path of what ``write`` writes; ``kind`` is its suffix, ``gone`` for bits of rows."""


@dataclass(frozen=True)
class NamedFile:
    """A file that a manifest names; ``size`` is None in those of earlier versions.

    ``changes`` are those of a delta of an index; ``gone`` has the bits of another file's rows.
    """

    path: Path
    sha256: str
    size: int | None
    changes: int = 0
    gone: NamedFile | None = None

    @classmethod
    def by_digest(cls, written: Path, stem: str, changes: int = 0) -> NamedFile:
        """A file that was just written, under its lasting name."""
        with written.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path = written.replace(written.with_name(f"{stem}-{digest[:16]}{written.suffix}"))
        return cls(path, digest, path.stat().st_size, changes)

    @classmethod
    def of_entry(cls, manifest: Path, entry: Mapping[str, Any], kind: str) -> NamedFile:
        """From a manifest's entry; a foreign name must not lead out of its folder (:class:`DataError`)."""
        file, size, gone = str(entry["file"]), entry.get("size"), entry.get("gone")
        if not re.fullmatch(rf"{re.escape(manifest.stem)}-[0-9a-f]+\.{kind}", file):
            raise DataError(f"{manifest}: names the file {file!r}, which is not one of this set")
        return cls(
            manifest.with_name(file), str(entry["sha256"]), None if size is None else int(size),
            int(entry.get("changes", 0)), cls.of_entry(manifest, gone, "gone") if gone else None,
        )  # fmt: skip

    @property
    def part(self) -> PartFile:
        """The file and that of its bits."""
        return PartFile(self.path, self.gone.path if self.gone else None)

    @property
    def entry(self) -> dict[str, Any]:
        """What a manifest says of it."""
        entry = {"file": self.path.name, "sha256": self.sha256, "size": self.size}
        if self.changes:
            entry["changes"] = self.changes
        return {**entry, "gone": self.gone.entry} if self.gone else entry

    def require_intact(self, content: bool) -> None:
        """Compare length and, if wanted or nothing else is known, ``content`` with the manifest.

        Raises:
            DataError: it differs, or the file cannot be read.
        """
        try:
            with os.fdopen(open_regular(self.path), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                intact = self.size in (None, size)
                if intact and (content or self.size is None):
                    intact = hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError as error:
            raise DataError(f"{self.path}: cannot be read ({error.strerror})") from error
        if not intact:
            raise DataError(f"{self.path}: the content does not match its SHA-256")


def read_manifest(path: Path, forms: Mapping[int, set[str]]) -> dict[str, Any]:
    """What a manifest says, by key, its ``digest`` included; ``forms`` are the keys by format.

    Raises:
        DataError: it is missing, damaged, or of another format.
    """
    try:
        values = json.loads(read_regular(path, _LONGEST_MANIFEST))
        number = values.get("format", 1)
        if number not in forms:
            raise ValueError(f"format {number!r:.40}; this version reads {min(forms)} to {max(forms)}")
        # Early manifests have no digest, and no number either.
        digest = values.pop("digest", None)
        if values.keys() - forms[number] or ("format" in values and digest != _digest(values)):
            raise ValueError("it does not match its digest")
        return {**values, "digest": _digest(values)}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise DataError(f"{path}: damaged manifest ({error!r})") from error


def publish(folder: Path, name: str, values: Mapping[str, Any]) -> str:
    """Write the manifest of the set ``name``; readers see the one before or this one. Returns its digest."""
    digest = _digest(values)
    write_json(folder / f"{name}.json", {**values, "digest": digest}, indent=1, follow=False)
    return digest


def clear(folder: Path, name: str, named: Iterable[NamedFile]) -> None:
    """Delete the files of a set that its manifest does not name, and drafts of killed processes; for its
    writer alone.
    """
    kept = {file.path.name for one in named for file in (one, one.gone) if file}
    for old in (*folder.glob(f"{name}-*"), *filter(is_abandoned, folder.glob(DRAFTS))):
        if old.name not in kept:
            old.unlink(missing_ok=True)


def _digest(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def new_files(folder: Path, name: str, known: dict[str, NamedFile]) -> NewFile:
    """Makes files of a set, each noted in ``known`` by its name."""

    def new(write: Callable[[Path], None], kind: str = "faiss") -> Path:
        written = folder / f"{name}-new.{kind}"
        with draft_of(written, follow=False) as draft:
            write(draft)
        file = NamedFile.by_digest(written, name)
        known[file.path.name] = file
        return file.path

    return new


def named_of(part: PartFile, known: Mapping[str, NamedFile]) -> NamedFile:
    """A part as a manifest names it."""
    return replace(known[part.path.name], gone=known[part.gone.name] if part.gone else None)


def gone_of(part: PartFile, count: int) -> NDArray[np.int64]:
    """Places (g,) int64, rising, of those of a part's ``count`` rows that are gone.

    Raises:
        SegmentIndexError: the file of bits is damaged.
    """
    if part.gone is None:
        return np.empty(0, np.int64)
    arrays = map_arrays(part.gone)
    if "gone" not in arrays:
        raise SegmentIndexError(f"{part.gone}: damaged index file (no gone); rebuild it")
    return np.flatnonzero(np.unpackbits(arrays["gone"].values, count=count, bitorder="little"))


def with_gone(
    part: PartFile, count: int, before: NDArray[np.int64], gone: NDArray[np.int64], new: NewFile
) -> PartFile:
    """A part of ``count`` rows with those that are gone now, places (g,) int64, rising, which are written if
    they are others than ``before``.
    """
    if np.array_equal(gone, before):
        return part
    there = np.zeros(count, np.bool_)
    there[gone] = True
    bits = np.packbits(there, bitorder="little")
    return PartFile(part.path, new(lambda draft: write_arrays(draft, {"gone": (bits, "u1")}), "gone"))


def merges(sizes: Sequence[int], first: int, fan_out: int, largest: int) -> list[list[int]]:
    """Which groups, by place, become one: those of ``fan_out`` or more of one class of size.

    The sizes of a class begin with one more power of the fan-out: the smallest class is below ``first *
    fan_out`` rows. Groups of half of ``largest`` are merged no more, so that a merged one has at most half as
    many again as ``largest``. Each group is in one list.
    """
    bundles = [[place] for place in range(len(sizes))]

    def size(bundle: list[int]) -> int:
        return sum(sizes[place] for place in bundle)

    most = first
    while most < largest // 2:
        least, most = (most if most > first else 0), most * fan_out
        members = [one for one in bundles if least <= size(one) < min(most, largest // 2)]
        members.sort(key=size)
        while len(members) >= fan_out or sum(map(size, members)) >= largest:
            taken: list[list[int]] = []
            while members and sum(map(size, taken)) < largest:
                taken.append(members.pop(0))
            bundles = [one for one in bundles if one not in taken] + [[at for one in taken for at in one]]
    return bundles
