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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError, SegmentIndexError
from moviola.files.parts import NamedFile, clear, named_of, new_files, publish, read_manifest
from moviola.files.writing import atomic_write
from moviola.index.contract import Ids, Index

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
# Format of manifests; those without a number are of format 1, which named one file and at most one delta.
_FORMAT = 2


@contextmanager
def _rebuilt() -> Iterator[None]:
    """Errors of files as those of an index, with the remedy."""
    try:
        yield
    except DataError as error:
        raise SegmentIndexError(f"{error}; rebuild the index") from error


@dataclass(frozen=True)
class _Manifest:
    """What a manifest says, and its digest."""

    backend: str
    groups: tuple[tuple[NamedFile, ...], ...]
    deltas: tuple[NamedFile, ...]
    parameters: dict[str, int]
    tag: str
    digest: str

    @classmethod
    def read(cls, path: Path) -> _Manifest:
        """Raises :class:`SegmentIndexError` for a damaged one, or one that names foreign files."""
        with _rebuilt():
            values = read_manifest(path, _KEYS)
            try:
                groups, deltas = values.get("groups", ()), values.get("deltas", ())
                if values.get("format", 1) == 1:
                    groups, deltas = [[values]], [values["delta"]] if values.get("delta") else []
                return cls(
                    str(values["backend"]),
                    tuple(tuple(NamedFile.of_entry(path, one, "faiss") for one in group) for group in groups),
                    tuple(NamedFile.of_entry(path, one, "delta") for one in deltas),
                    {str(key): int(value) for key, value in (values.get("parameters") or {}).items()},
                    str(values["tag"]), values["digest"],
                )  # fmt: skip
            except DataError:
                raise
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(f"{path}: damaged manifest ({error!r})") from error

    @property
    def files(self) -> list[NamedFile]:
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
    digest = publish(folder, name, manifest)
    _count_changes(index, digest)
    index.published()
    clear(folder, name, (*(file for group in groups for file in group), *deltas))


def _count_changes(index: Index, digest: str) -> None:
    """Have an index count changes from what a manifest says."""
    index.origin, index.added, index.removed = digest, index.added[:0], index.removed[:0]


def home_of(folder: Path, name: str) -> str:
    """``Index.home`` of an index saved as ``name`` in ``folder``."""
    return str(folder.resolve() / name)


def _written(
    index: Index, folder: Path, name: str
) -> tuple[tuple[tuple[NamedFile, ...], ...], tuple[NamedFile, ...]]:
    """Groups and deltas of an index, after all that is new was written."""
    stored = _stored(index, folder, name)
    known = {} if stored is None else {file.path.name: file for file in stored.files}

    new = new_files(folder, name, known)
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
    return tuple(tuple(named_of(part, known) for part in group) for group in groups), ()


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


def _with_delta(deltas: tuple[NamedFile, ...], last: _Delta, written: Path) -> tuple[NamedFile, ...]:
    """Deltas, and one more, which is written; joined in one where there are many."""
    if len(deltas) >= _DELTAS:
        last, deltas = _joined([*(_delta(file.path) for file in deltas), last]), ()
    removed, added, vectors = last
    with atomic_write(written, "wb", follow=False) as file:
        np.savez(file, added=added, vectors=vectors, removed=removed)
    stem = written.stem.removesuffix("-new")
    return (*deltas, NamedFile.by_digest(written, stem, len(added) + len(removed)))


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
    folder: Path, name: str, backends: Mapping[str, type[Index]], *, thorough: bool = False
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


def _loaded(path: Path, name: str, backends: Mapping[str, type[Index]], thorough: bool) -> tuple[Index, str]:
    manifest = _Manifest.read(path)
    kind = backends.get(manifest.backend)
    if kind is None:
        raise SegmentIndexError(f"{path}: of the unknown type {manifest.backend!r}; rebuild the index")
    read = thorough or manifest.bytes <= _CHECKED_BYTES
    for file in manifest.files:
        with _rebuilt():
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
