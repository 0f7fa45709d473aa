"""Index files, published in one step by a manifest.

``NAME.json`` names the main file (``NAME-<digest>.faiss``) and, where something changed since that was
written, the delta (``NAME-<digest>.delta``): all vectors that were added since and all ids that were removed.
An index of many vectors writes the delta alone while it is small beside the main file. The manifest also
holds the digests (SHA-256), the search parameters, and a ``tag`` by which the owner recognises the content.

faiss notices a truncated file but not a flipped byte; the digest covers both. Opening compares the digests of
files that are read whole anyway; of a mapped one only the length, since reading it would take longer than any
search. ``thorough`` compares all.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moviola.errors import SegmentIndexError
from moviola.files.regular import open_regular, read_regular
from moviola.files.writing import atomic_write, draft_of, write_json

if TYPE_CHECKING:
    from moviola.index.contract import Index

__all__ = ["home_of", "load_index", "save_index"]

# Smaller main files are rewritten with every change: that takes no time, and folders stay simple.
_WRITTEN_WHOLE_BYTES = 1 << 23
# Vectors of the main part per vector of the delta, which every search compares exactly.
_MAIN_OF_DELTA, _DELTA_AT_LEAST = 64, 4096
# Larger files are mapped; only their length is compared on opening.
_CHECKED_BYTES = 1 << 26
_KEYS = {"format", "backend", "file", "sha256", "size", "delta", "dim", "parameters", "tag"}
_LONGEST_MANIFEST = 1 << 20  # bytes
# Format of manifests; those without a number are of format 1.
_FORMAT = 1


@dataclass(frozen=True)
class _File:
    """A file that a manifest names; ``size`` is None in those of earlier versions."""

    path: Path
    sha256: str
    size: int | None

    @classmethod
    def named_by_digest(cls, written: Path, stem: str) -> _File:
        with written.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        path = written.replace(written.with_name(f"{stem}-{digest[:16]}{written.suffix}"))
        return cls(path, digest, path.stat().st_size)

    @property
    def entry(self) -> dict[str, Any]:
        return {"file": self.path.name, "sha256": self.sha256, "size": self.size}

    def require_intact(self, thorough: bool) -> None:
        try:
            with os.fdopen(open_regular(self.path), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                intact = self.size in (None, size)
                if intact and (thorough or self.size is None or size <= _CHECKED_BYTES):
                    intact = hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError as error:
            reason = error.strerror
            raise SegmentIndexError(f"{self.path}: cannot be read ({reason}); rebuild the index") from error
        if not intact:
            raise SegmentIndexError(f"{self.path}: the content does not match its SHA-256; rebuild the index")


def save_index(index: Index, folder: Path, name: str, *, backend: str, tag: str) -> None:
    """Publish ``index`` as ``name`` in ``folder``; readers see the old or the new one, never a mix."""
    index.home = home_of(folder, name)
    main, delta = _main_of(index, folder, name), None
    if main is None:
        main = _written_main(index, folder, name)
    elif len(index.added) or len(index.removed):
        delta = _written_delta(index, folder, name)
    manifest = {
        "format": _FORMAT, "backend": backend, **main.entry, "delta": delta.entry if delta else None,
        "dim": index.dim, "parameters": index.parameters, "tag": tag,
    }  # fmt: skip
    write_json(folder / f"{name}.json", {**manifest, "digest": _digest(manifest)}, indent=1, follow=False)
    index.published()
    # Files of the previous manifest, and drafts of killed processes.
    named = {file.path.name for file in (main, delta) if file}
    for old in (*folder.glob(f"{name}-*"), *folder.glob(".*.tmp")):
        if old.name not in named:
            old.unlink(missing_ok=True)


def _digest(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def home_of(folder: Path, name: str) -> str:
    """``Index.home`` of an index saved as ``name`` in ``folder``."""
    return str(folder.resolve() / name)


def _main_of(index: Index, folder: Path, name: str) -> _File | None:
    """The main file if it can stay, with only the changes since written."""
    changed = len(index.added) + len(index.removed)
    try:
        stored = json.loads(read_regular(folder / f"{name}.json", _LONGEST_MANIFEST))
        main = _File(folder / str(stored["file"]), str(stored["sha256"]), stored.get("size"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not index.origin or main.path.name != index.origin or not main.path.is_file():
        return None
    small = changed <= max(_DELTA_AT_LEAST, len(index) // _MAIN_OF_DELTA)
    if changed and not (small and main.path.stat().st_size >= _WRITTEN_WHOLE_BYTES):
        return None
    return None if index.vectors_of(index.added) is None else main


def _written_main(index: Index, folder: Path, name: str) -> _File:
    written = folder / f"{name}-new.faiss"
    with draft_of(written, follow=False) as draft:
        index.write(draft)
    main = _File.named_by_digest(written, name)
    index.origin, index.added, index.removed = main.path.name, index.added[:0], index.removed[:0]
    return main


def _written_delta(index: Index, folder: Path, name: str) -> _File:
    written, vectors = folder / f"{name}-new.delta", index.vectors_of(index.added)
    assert vectors is not None
    with atomic_write(written, "wb", follow=False) as file:
        np.savez(file, added=index.added, vectors=vectors, removed=index.removed)
    return _File.named_by_digest(written, name)


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
    backend, main, delta, parameters, tag = _manifest(path, backends)
    main.require_intact(thorough)
    index = backend.read(main.path)
    index.parameters |= {key: parameters[key] for key in index.parameters & parameters.keys()}
    index.origin, index.added, index.removed = main.path.name, index.added[:0], index.removed[:0]
    index.home = home_of(path.parent, name)
    if delta is not None:
        delta.require_intact(thorough=True)
        with np.load(delta.path) as changes:
            index.remove(changes["removed"])
            index.add(changes["added"], changes["vectors"])
    if thorough:
        index.take_stock()
    return index, tag


def _manifest(
    path: Path, backends: dict[str, type[Index]]
) -> tuple[type[Index], _File, _File | None, dict[str, int], str]:
    """Type, main file, delta, parameters and tag in a manifest."""
    try:
        values = json.loads(read_regular(path, _LONGEST_MANIFEST))
        if values.get("format", 1) != _FORMAT:
            raise ValueError(f"format {values['format']!r:.40}; this version reads {_FORMAT}")
        # Earlier manifests have no digest, and no number either.
        digest = values.pop("digest", None)
        if values.keys() - _KEYS or ("format" in values and digest != _digest(values)):
            raise ValueError("it does not match its digest")
        delta, parameters = values.get("delta"), values.get("parameters") or {}
        files = _named(path, values, "faiss"), _named(path, delta, "delta") if delta else None
        depths = {str(key): int(value) for key, value in parameters.items()}
        return backends[values["backend"]], *files, depths, str(values["tag"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SegmentIndexError(f"{path}: damaged manifest ({error!r}); rebuild the index") from error


def _named(path: Path, entry: dict[str, Any], kind: str) -> _File:
    """A file named by a manifest; a foreign name must not lead out of the library's folder."""
    file, size = str(entry["file"]), entry.get("size")
    if not re.fullmatch(rf"{re.escape(path.stem)}-[0-9a-f]+\.{kind}", file):
        raise SegmentIndexError(
            f"{path}: names the vector file {file!r}, not one of this index; rebuild the index"
        )
    return _File(path.with_name(file), str(entry["sha256"]), None if size is None else int(size))
