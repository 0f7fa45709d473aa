"""Indexes on disk: written beside and renamed, with a manifest that is the point of commitment.

``NAME.json`` names the vector file (``NAME-<digest>.faiss``), its SHA-256 and a ``tag`` by which the owner
recognises what went in. faiss notices a truncated file but not a flipped byte; the digest notices both.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from moviola.errors import SegmentIndexError
from moviola.files.writing import draft_of, write_json

if TYPE_CHECKING:
    from moviola.index.contract import Index

__all__ = ["load_index", "save_index"]


def save_index(index: Index, folder: Path, name: str, *, backend: str, tag: str) -> None:
    """Publish ``index`` as ``name`` in ``folder``; readers see the old or the new one, never a mix."""
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{name}-new.faiss"
    with draft_of(written) as draft:
        index.write(draft)
    digest = _sha256(written)
    vectors = written.replace(folder / f"{name}-{digest[:16]}.faiss")
    manifest = {"backend": backend, "file": vectors.name, "sha256": digest, "dim": index.dim, "tag": tag}
    write_json(folder / f"{name}.json", manifest, indent=1)
    # Also the drafts of writers that were killed.
    for old in (*folder.glob(f"{name}-*"), *folder.glob(f".{name}*.tmp")):
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
    try:
        manifest = json.loads(manifest_file.read_text())
        backend, path = backends[manifest["backend"]], folder / manifest["file"]
        digest, tag = manifest["sha256"], manifest["tag"]
    except (ValueError, KeyError, TypeError) as error:
        raise SegmentIndexError(
            f"{manifest_file}: damaged manifest ({error!r}); rebuild the index"
        ) from error
    if not path.exists():
        raise SegmentIndexError(f"{path}: the vector file is missing; rebuild the index")
    if _sha256(path) != digest:
        raise SegmentIndexError(f"{path}: the content does not match its SHA-256; rebuild the index")
    return backend.read(path), tag


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
