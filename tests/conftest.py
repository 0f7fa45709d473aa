"""What every test may rely on: no network, few threads, and the shared reference material where it is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


def _reference_folder(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable, default))
    if not folder.is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"{folder} is missing; CI must have it (set {variable})", pytrace=False)
        pytest.skip(f"{folder} is missing; set {variable} to the folder that holds the reference material")
    return folder


@pytest.fixture(scope="session")
def golden() -> Path:
    """Folder of golden files, from MOVIOLA_GOLDEN (default ``../shared/golden``)."""
    return _reference_folder("MOVIOLA_GOLDEN", SHARED / "golden")


@pytest.fixture(scope="session")
def footage() -> Path:
    """Folder of real videos with their manifest.json, from MOVIOLA_VIDEOS (default ``../shared/videos``)."""
    return _reference_folder("MOVIOLA_VIDEOS", SHARED / "videos")


@pytest.fixture(scope="session")
def annotations() -> Path:
    """Folder of real annotations, from MOVIOLA_DATA (default ``../shared/data``)."""
    return _reference_folder("MOVIOLA_DATA", SHARED / "data")
