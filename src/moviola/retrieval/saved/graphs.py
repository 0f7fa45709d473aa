"""The graphs in a model's folder: its parts, each converted for itself, for machines without torch.

They lie in ``graphs/REVISION``, named by the weights and settings that they were made from, so that those of
other weights are never taken for them, and with their digests, ``SHA256SUMS``, by which damage is found.
What saves a model writes them; here they are read.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from moviola.compiled import read_portable
from moviola.errors import DataError
from moviola.retrieval.saved.description import revision_of

__all__ = [
    "GRAPHS",
    "SUMS",
    "WITHOUT_GRAPHS",
    "digest_of",
    "has_graphs",
    "place_of",
    "read_graph",
    "require_intact_graphs",
]

GRAPHS = "graphs"
"""Folder of the graphs in a model's folder."""

WITHOUT_GRAPHS = "has no graphs of these weights; making them"
"""What torch is wanted for where a folder lacks its graphs."""

SUMS = "SHA256SUMS"
"""File of their digests, in the form of ``sha256sum``."""


def place_of(folder: Path) -> Path:
    """Where the graphs of the weights and settings in a model's folder lie."""
    return folder / GRAPHS / revision_of(folder)


def has_graphs(folder: Path) -> bool:
    """Whether a model's folder has the graphs of its weights."""
    return place_of(folder).is_dir()


def read_graph(folder: Path, name: str) -> Any:
    """The graph of a part, a model of OpenVINO's, from the folder of a model that has it.

    Raises:
        NotFound, DataError: a file is missing or damaged.
    """
    require_intact_graphs(folder)
    return read_portable(place_of(folder) / f"{name}.xml")


def require_intact_graphs(folder: Path) -> None:
    """Compare the graphs of a model's folder with their digests; those of earlier versions have none.

    Raises:
        NotFound: a file of the model is missing.
        DataError: a graph is missing or damaged, or its digests are.
    """
    sums = place_of(folder) / SUMS
    if not sums.is_file():
        return
    try:
        lines = sums.read_text(encoding="ascii").removesuffix("\n").split("\n")
        rows = [line.split("  ", 1) for line in lines]
        damaged = [name for digest, name in rows if digest != digest_of(sums.with_name(name))]
    except (OSError, ValueError) as error:
        raise DataError(f"{sums}: cannot be compared ({error}); get the folder of the model again") from error
    if damaged or not rows:
        name = damaged[0] if damaged else SUMS
        raise DataError(f"{sums.with_name(name)}: damaged; get the folder of the model again")


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
