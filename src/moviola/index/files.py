"""Indexes on disk: written beside and renamed, with a manifest that is the point of commitment.

``NAME.json`` names the vector file (``NAME-<digest>.faiss``), its SHA-256 and a ``tag`` by which the owner
recognises what went in. faiss notices a truncated file but not a flipped byte; the digest notices both.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from moviola.errors import SegmentIndexError
from moviola.files.writing import draft_of, write_json

if TYPE_CHECKING:
    from moviola.index.contract import Index

__all__ = ["load_index", "save_index"]


def save_index(index: Index, folder: Path, name: str, *, backend: str, tag: str) -> None:
    """Publish ``index`` as ``name`` in ``folder``; readers see the old or the new one, never a mix."""
    written = folder / f"{name}-new.faiss"
    with draft_of(written) as draft:
        index.write(draft)
    digest = _sha256(written)
    vectors = written.replace(folder / f"{name}-{digest[:16]}.faiss")
    manifest = {"backend": backend, "file": vectors.name, "sha256": digest, "dim": index.dim, "tag": tag}
    write_json(folder / f"{name}.json", manifest, indent=1)
    # What the manifest named before, and drafts of processes that were killed.
    for old in (*folder.glob(f"{name}-*"), *folder.glob(".*.tmp")):
        if old.name != vectors.name:
            old.unlink(missing_ok=True)


def load_index(folder: Path, name: str, backends: dict[str, type[Index]]) -> tuple[Index, str] | None:
    """The published index and its tag, or None when there is none yet.

    Raises:
        SegmentIndexError: a file is missing, damaged or of an unknown backend; the remedy is to rebuild.
    """
    manifest_file = folder / f"{name}.json"
    if not manifest_file.exists():
        return None
    backend, path, digest, tag = _manifest(manifest_file, backends)
    try:
        if _sha256(path) != digest:
            raise SegmentIndexError(f"{path}: the content does not match its SHA-256; rebuild the index")
    except OSError as error:
        raise SegmentIndexError(f"{path}: cannot be read ({error.strerror}); rebuild the index") from error
    return backend.read(path), tag


def _manifest(path: Path, backends: dict[str, type[Index]]) -> tuple[type[Index], Path, str, str]:
    """Backend, vector file, SHA-256 and tag that a manifest names."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        backend = backends[manifest["backend"]]
        file, digest, tag = (str(manifest[key]) for key in ("file", "sha256", "tag"))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SegmentIndexError(f"{path}: damaged manifest ({error!r}); rebuild the index") from error
    # A library may come from elsewhere: its manifest must not lead out of its folder.
    if not re.fullmatch(rf"{re.escape(path.stem)}-[0-9a-f]+\.faiss", file):
        raise SegmentIndexError(
            f"{path}: names the vector file {file!r}, not one of this index; rebuild the index"
        )
    return backend, path.with_name(file), digest, tag


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
