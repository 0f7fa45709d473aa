"""Diagnosis of a machine and a library: packages, encoder, device, state."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from moviola.errors import MoviolaError
from moviola.library.disk.root_states import roots_in
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.ignore_patterns import DEFAULTS, NO_MEDIA
from moviola.plugins import plugins

__all__ = ["Finding", "diagnose"]

# Purpose of each optional package, by the extra that installs it.
_OPTIONAL = {
    "torch": ("train", "train models, and compute on a GPU"),
    "h5py": ("features", "read released feature files"),
    "matplotlib": ("studies", "draw figures"),
    "pocketsphinx": ("speech", "write down what is said, in English, without a hub"),
    "faster_whisper": ("speech", "write down what is said, with Whisper"),
    "mcp": ("mcp", "give agents tools"),
    "watchfiles": ("watch", "watch folders"),
    "minigrid": ("demo", "make gridhouse videos"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; ``ok`` is False where something should be done."""

    what: str
    ok: bool
    detail: str


def diagnose(library: Path) -> list[Finding]:
    """Check the machine and, where there is one, the library in a folder; changes nothing.

    Returns:
        what was looked at, in the order in which a person would ask: packages, plug-ins, encoder, device,
        library. An
        error that was met is a finding with ``ok=False``.
    """
    return [*_machine(), *_optional(), *_plugins(), *_encoder(), _left_out(), *_library(library)]


def _machine() -> Iterator[Finding]:
    yield Finding("moviola", True, f"{metadata.version('moviola')} on Python {platform.python_version()}")
    for name in ("openvino", "faiss-cpu", "av", "numpy"):
        yield Finding(name, True, metadata.version(name))
    both = all(util.find_spec(name) is not None for name in ("torch", "torchvision"))
    if both and "+cpu" in metadata.version("torch"):
        yield Finding(
            "torchvision", False, "installed beside a CPU build of torch; uninstall it if models fail to load"
        )


def _optional() -> Iterator[Finding]:
    for name, (extra, purpose) in _OPTIONAL.items():
        there = util.find_spec(name) is not None
        detail = purpose if there else f'not installed: pip install "moviola[{extra}]" to {purpose}'
        yield Finding(name, True, detail)


def _plugins() -> Iterator[Finding]:
    for one in plugins():
        try:
            one.load(object)
            yield Finding("plug-in", True, str(one))
        except MoviolaError as error:
            yield Finding("plug-in", False, str(error))


def _encoder() -> Iterator[Finding]:
    from moviola.encoders import best_encoder, load_encoder

    try:
        best = best_encoder()
        encoder = load_encoder(best.name)
        encoder.encode_text(["a red car"])
        better = f"; a better one: {best.better}" if best.better else ""
        yield Finding("encoder", True, f"{best.name} works, {encoder.dim} dimensions{better}")
        yield Finding("device", True, f"{encoder.device}, {encoder.precision}")
    except MoviolaError as error:
        yield Finding("encoder", False, str(error))


def _left_out() -> Finding:
    patterns = ", ".join(pattern.removeprefix("\\") for pattern in DEFAULTS)
    return Finding(
        "left out", True, f"{patterns}, folders with {NO_MEDIA}; --no-default-excludes takes them in"
    )


def _library(folder: Path) -> Iterator[Finding]:
    if not folder.exists():
        yield Finding("library", True, f"none at {folder} yet")
        return
    try:
        with LibraryStore(folder, read_only=True) as lib:
            videos = lib.catalogue.videos()
            job = lib.catalogue.last_job()
            roots = roots_in(lib.catalogue)
            encoder = lib.settings.encoder or "no visual encoder"
    except MoviolaError as error:
        yield Finding("library", False, str(error))
        return
    refused = [video for video in videos if video.state == "refused"]
    partial = [video for video in videos if video.state == "partial"]
    detail = f"{folder}: {len(videos) - len(refused)} videos, {encoder}"
    yield Finding("library", True, detail)
    for root in roots:
        if root.away:
            yield Finding(
                root.path, True, f"away: {root.away}; its {root.videos} videos are searched all the same"
            )
    if refused or partial:
        yield Finding(
            "videos", True, f"{len(refused)} refused, {len(partial)} partial; `moviola list` says why"
        )
    if job and job.state != "done":
        yield Finding(
            "last indexing", False, f"stopped at {job.done} of {job.total}; the same `moviola index` goes on"
        )
