"""Index files that never change, published in one step by a manifest.

``NAME.json`` names the files of the index (``NAME-<digest>.faiss``; of types that have several, in groups,
and with bits for removed vectors, ``.gone``) and a delta (``.delta``) for each later publication that changed
little: the vectors that it added and the ids that it removed, in order. So publishing writes what is new.
Which files are merged when there are more changes is a matter of the type
(:meth:`moviola.index.Index.write_groups`). The manifest also holds the digests (SHA-256), the search
parameters, and a ``tag`` by which the owner recognises the content.

Files that no manifest names any more are deleted after the next one is in place. A reader that has opened
them keeps them for as long as it searches them.

faiss notices a truncated file but not a flipped byte; the digest covers both. Opening compares the digests of
files that are read whole anyway; of large indexes, whose files are mapped, only lengths, since reading them
would take longer than any search. ``thorough`` compares all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import SegmentIndexError
from moviola.files.drafts import DRAFTS, is_abandoned
from moviola.files.regular import open_regular, read_regular
from moviola.files.writing import atomic_write, draft_of, write_json
from moviola.index.contract import Ids, Index, PartFile

__all__ = ["home_of", "load_index", "save_index"]

# Smaller indexes are written whole with every change: that takes no time, and folders stay simple.
_WRITTEN_WHOLE_BYTES = 1 << 23
# Deltas that are joined in one, so that there are never many to open.
_DELTAS = 64
# Of larger indexes, whose files are mapped, only lengths are compared on opening.
_CHECKED_BYTES = 1 << 26
_KEYS = {
    1: {"format", "backend", "file", "sha256", "size", "delta", "dim", "parameters", "tag"},
    2: {"format", "backend", "groups", "deltas", "dim", "parameters", "tag"},
}
_LONGEST_MANIFEST = 1 << 20  # bytes
# Format of manifests; those without a number are of format 1, which named one file and at most one delta.
_FORMAT = 2


@dataclass(frozen=True)
class _File:
    """A file that a manifest names; ``size`` is None in those of earlier versions.

    ``changes`` are those of a delta; ``gone`` has the bits of removed vectors of another file.
    """

    path: Path
    sha256: str
    size: int | None
    changes: int = 0
    gone: _File | None = None

    @classmethod
    def named_by_digest(cls, written: Path, stem: str, changes: int = 0) -> _File:
        with written.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path = written.replace(written.with_name(f"{stem}-{digest[:16]}{written.suffix}"))
        return cls(path, digest, path.stat().st_size, changes)

    @classmethod
    def named(cls, manifest: Path, entry: dict[str, Any], kind: str) -> _File:
        """From a manifest's entry; a foreign name must not lead out of the library's folder."""
        file, size, gone = str(entry["file"]), entry.get("size"), entry.get("gone")
        if not re.fullmatch(rf"{re.escape(manifest.stem)}-[0-9a-f]+\.{kind}", file):
            raise SegmentIndexError(
                f"{manifest}: names the vector file {file!r}, not one of this index; rebuild the index"
            )
        return cls(
            manifest.with_name(file), str(entry["sha256"]), None if size is None else int(size),
            int(entry.get("changes", 0)), cls.named(manifest, gone, "gone") if gone else None,
        )  # fmt: skip

    @property
    def part(self) -> PartFile:
        return PartFile(self.path, self.gone.path if self.gone else None)

    @property
    def entry(self) -> dict[str, Any]:
        entry = {"file": self.path.name, "sha256": self.sha256, "size": self.size}
        if self.changes:
            entry["changes"] = self.changes
        return {**entry, "gone": self.gone.entry} if self.gone else entry

    def require_intact(self, content: bool) -> None:
        """Compare length and, if wanted or nothing else is known, ``content`` with the manifest."""
        try:
            with os.fdopen(open_regular(self.path), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                intact = self.size in (None, size)
                if intact and (content or self.size is None):
                    intact = hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError as error:
            reason = error.strerror
            raise SegmentIndexError(f"{self.path}: cannot be read ({reason}); rebuild the index") from error
        if not intact:
            raise SegmentIndexError(f"{self.path}: the content does not match its SHA-256; rebuild the index")


@dataclass(frozen=True)
class _Manifest:
    """What a manifest says, and its digest."""

    backend: str
    groups: tuple[tuple[_File, ...], ...]
    deltas: tuple[_File, ...]
    parameters: dict[str, int]
    tag: str
    digest: str

    @classmethod
    def read(cls, path: Path) -> _Manifest:
        """Raises :class:`SegmentIndexError` for a damaged one, or one that names foreign files."""
        try:
            values = json.loads(read_regular(path, _LONGEST_MANIFEST))
            number = values.get("format", 1)
            if number not in _KEYS:
                raise ValueError(f"format {number!r:.40}; this version reads 1 to {_FORMAT}")
            # Early manifests have no digest, and no number either.
            digest = values.pop("digest", None)
            if values.keys() - _KEYS[number] or ("format" in values and digest != _digest(values)):
                raise ValueError("it does not match its digest")
            groups, deltas = values.get("groups"), values.get("deltas")
            if number == 1:
                groups, deltas = [[values]], [values["delta"]] if values.get("delta") else []
            return cls(
                str(values["backend"]),
                tuple(tuple(_File.named(path, entry, "faiss") for entry in group) for group in groups),
                tuple(_File.named(path, entry, "delta") for entry in deltas),
                {str(key): int(value) for key, value in (values.get("parameters") or {}).items()},
                str(values["tag"]), _digest(values),
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise SegmentIndexError(f"{path}: damaged manifest ({error!r}); rebuild the index") from error

    @property
    def files(self) -> list[_File]:
        named = [*(file for group in self.groups for file in group), *self.deltas]
        return [*named, *(file.gone for file in named if file.gone)]

    @property
    def bytes(self) -> int:
        """Of the files that are not deltas."""
        return sum(file.size or 0 for group in self.groups for file in group)


def save_index(index: Index, folder: Path, name: str, *, backend: str, tag: str) -> None:
    """Publish ``index`` as ``name`` in ``folder``; readers see the old or the new one, never a mix."""
    index.home = home_of(folder, name)
    groups, deltas = _written(index, folder, name)
    manifest = {
        "format": _FORMAT, "backend": backend,
        "groups": [[file.entry for file in group] for group in groups],
        "deltas": [file.entry for file in deltas],
        "dim": index.dim, "parameters": index.parameters, "tag": tag,
    }  # fmt: skip
    digest = _digest(manifest)
    write_json(folder / f"{name}.json", {**manifest, "digest": digest}, indent=1, follow=False)
    _count_changes(index, digest)
    index.published()
    # Files of the previous manifest, and drafts of killed processes.
    files = [*(file for group in groups for file in group), *deltas]
    named = {file.path.name for one in files for file in (one, one.gone) if file}
    for old in (*folder.glob(f"{name}-*"), *filter(is_abandoned, folder.glob(DRAFTS))):
        if old.name not in named:
            old.unlink(missing_ok=True)


def _count_changes(index: Index, digest: str) -> None:
    """Have an index count changes from what a manifest says."""
    index.origin, index.added, index.removed = digest, index.added[:0], index.removed[:0]


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def home_of(folder: Path, name: str) -> str:
    """``Index.home`` of an index saved as ``name`` in ``folder``."""
    return str(folder.resolve() / name)


def _written(
    index: Index, folder: Path, name: str
) -> tuple[tuple[tuple[_File, ...], ...], tuple[_File, ...]]:
    """Groups and deltas of an index, after all that is new was written."""
    stored = _stored(index, folder, name)
    known = {} if stored is None else {file.path.name: file for file in stored.files}

    def new(write: Callable[[Path], None], kind: str = "faiss") -> Path:
        written = folder / f"{name}-new.{kind}"
        with draft_of(written, follow=False) as draft:
            write(draft)
        file = _File.named_by_digest(written, name)
        known[file.path.name] = file
        return file.path

    whole = stored is None or stored.bytes < _WRITTEN_WHOLE_BYTES
    if stored is not None:
        changes = len(index.added) + len(index.removed)
        if not changes:
            return stored.groups, stored.deltas
        few = not whole and index.few(changes + sum(file.changes for file in stored.deltas))
        vectors = index.vectors_of(index.added) if few else None
        if vectors is not None:
            delta = index.removed, index.added, vectors
            return stored.groups, _with_delta(stored.deltas, delta, folder / f"{name}-new.delta")
    groups = index.write_groups(new, whole=whole)
    return tuple(tuple(_file_of(part, known) for part in group) for group in groups), ()


def _file_of(part: PartFile, known: Mapping[str, _File]) -> _File:
    return replace(known[part.path.name], gone=known[part.gone.name] if part.gone else None)


def _stored(index: Index, folder: Path, name: str) -> _Manifest | None:
    """The published manifest, if the index was read by it and its files are there."""
    try:
        stored = _Manifest.read(folder / f"{name}.json")
    except SegmentIndexError:
        return None
    there = index.origin == stored.digest and all(file.path.is_file() for file in stored.files)
    return stored if there else None


_Delta = tuple[Ids, Ids, NDArray[np.floating[Any]]]
"""Removed ids, added ids, and vectors of these."""


def _with_delta(deltas: tuple[_File, ...], last: _Delta, written: Path) -> tuple[_File, ...]:
    """Deltas, and one more, which is written; joined in one where there are many."""
    if len(deltas) >= _DELTAS:
        last, deltas = _joined([*(_delta(file.path) for file in deltas), last]), ()
    removed, added, vectors = last
    with atomic_write(written, "wb", follow=False) as file:
        np.savez(file, added=added, vectors=vectors, removed=removed)
    stem = written.stem.removesuffix("-new")
    return (*deltas, _File.named_by_digest(written, stem, len(added) + len(removed)))


def _delta(path: Path) -> _Delta:
    with np.load(path) as changes:
        return changes["removed"], changes["added"], changes["vectors"]


def _joined(deltas: Sequence[_Delta]) -> _Delta:
    """One delta that changes as much as several in turn."""
    removed, added, vectors = deltas[0]
    for later_removed, later_added, later_vectors in deltas[1:]:
        kept = ~np.isin(added, later_removed)
        removed = np.union1d(removed, later_removed)
        added = np.concatenate([added[kept], later_added])
        vectors = np.concatenate([vectors[kept], later_vectors])
    return removed, added, vectors


def load_index(
    folder: Path, name: str, backends: dict[str, type[Index]], *, thorough: bool = False
) -> tuple[Index, str] | None:
    """The published index and its tag, or None when there is none yet.

    Args:
        folder, name: as saved.
        backends: the known types, by name.
        thorough: read and compare every byte, also of mapped files, and every id on a server.

    Raises:
        IndexServerError: a server that was to be compared with does not answer.
        SegmentIndexError: a file is missing, damaged or of an unknown backend; the remedy is to rebuild.
    """
    path = folder / f"{name}.json"
    while _is_there(path):
        before = _identity(path)
        try:
            return _loaded(path, name, backends, thorough)
        except SegmentIndexError:
            if _identity(path) == before:
                raise
        except OSError as error:
            if _identity(path) == before:
                raise SegmentIndexError(f"{path}: cannot be read ({error}); rebuild the index") from error
        # Another index was published in the meantime, and the files of this one deleted.
    return None


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:
        raise SegmentIndexError(
            f"{path}: cannot be read ({error.strerror}); give this user the right to read it"
        ) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Identity of a file, which changes when it is replaced; None if it is gone."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns


def _loaded(path: Path, name: str, backends: dict[str, type[Index]], thorough: bool) -> tuple[Index, str]:
    manifest = _Manifest.read(path)
    kind = backends.get(manifest.backend)
    if kind is None:
        raise SegmentIndexError(f"{path}: of the unknown type {manifest.backend!r}; rebuild the index")
    read = thorough or manifest.bytes <= _CHECKED_BYTES
    for file in manifest.files:
        file.require_intact(read or file.path.suffix != ".faiss")
    groups = (tuple(one.part for one in own) for own in manifest.groups)
    index = kind.read_groups(tuple(groups))
    index.parameters |= {
        key: manifest.parameters[key] for key in index.parameters & manifest.parameters.keys()
    }
    for file in manifest.deltas:
        removed, added, vectors = _delta(file.path)
        index.remove(removed)
        index.add(added, vectors)
    _count_changes(index, manifest.digest)
    index.home = home_of(path.parent, name)
    if thorough:
        index.take_stock()
    return index, manifest.tag
