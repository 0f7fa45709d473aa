"""Checkpoints on this machine: their folders and revisions.

A name is the built-in model, a local folder, or a hub id that is already in the hub's cache; nothing is
fetched here. The revision is the hub's commit hash, or for a folder a fingerprint of its content.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviola.errors import DataError, MissingModel
from moviola.files.presence import is_folder

__all__ = [
    "CONFIGS", "CONSE", "DEMO", "OPEN_CLIP_CONFIG", "OPEN_CLIP_WEIGHTS", "Checkpoint", "find_checkpoint",
    "fingerprint", "found_by_revision", "hub_snapshot", "is_same_model", "languages_of_card",
    "looks_like_hub_id", "packaged_revision", "read_json",
]  # fmt: skip

DEMO = "demo"
"""Name of the packaged tiny CLIP."""

CONSE = "conse-lite1"
"""Name of the packaged encoder of real pictures; see :mod:`moviola.encoders.conse`."""

OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS = "open_clip_config.json", "open_clip_model.safetensors"

CONFIGS = ("config.json", OPEN_CLIP_CONFIG)
"""Files that say what a checkpoint is, each of a format of its own (:mod:`moviola.encoders.formats`)."""

DEMO_FOLDER = Path(__file__).parent / "demo_clip"

# Files up to this size enter a fingerprint whole; of larger ones, this many bytes in evenly spaced blocks.
_WHOLE, _BLOCK = 16 << 20, 1 << 18


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on this machine: its name in libraries (``"demo"``, a hub id, or the folder's absolute
    path), its folder, and a revision that changes whenever its weights or settings change.
    """

    id: str
    folder: Path
    revision: str

    def json(self, name: str) -> dict[str, Any]:
        """:func:`read_json` of one of its files; empty if it has no such file."""
        return read_json(self.folder / name) if (self.folder / name).is_file() else {}


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises DataError: not JSON, or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); fetch the checkpoint again") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: holds a {type(value).__name__}, not an object; fetch the checkpoint again")
    return value


_PART = re.compile(r"(?P<stem>.+)-\d{5}-of-(?P<total>\d{5})(?P<suffix>\.\w+)")
_HUB_NAME = re.compile(r"\w([\w.-]{0,94}\w)?", re.ASCII)


def looks_like_hub_id(name: str) -> bool:
    """Whether a name has the form of a hub id, ``organisation/model`` or ``model``."""
    parts = name.split("/")
    forbidden = "--" in name or ".." in name or name.endswith(".git")
    return len(parts) <= 2 and all(map(_HUB_NAME.fullmatch, parts)) and not forbidden


def find_checkpoint(name: str, *, builtin: Mapping[str, Path], instead: str) -> Checkpoint:
    """Find a checkpoint by name: a key of ``builtin``, the folders of packaged ones; a folder that holds
    one of :data:`CONFIGS`; or a hub id in the hub's cache.

    Raises:
        MissingModel: none on this machine; the message says how to get it, and what to use ``instead``.
    """
    if name in builtin:
        folder = builtin[name]
        if lacks := _lacks(folder):
            raise MissingModel(f"{folder}: {lacks} missing; install moviola again")
        return Checkpoint(name, folder, packaged_revision(folder))
    folder = Path(os.path.expanduser(name))  # noqa: PTH111 - Path's method raises an error for `~nobody`
    if is_folder(folder):
        if lacks := _lacks(folder):
            pickled = next(iter(sorted(folder.glob("*.pt"))), None)
            hint = f"; `moviola models unpickle {pickled} NEW_FOLDER` makes one of that" if pickled else ""
            raise MissingModel(
                f"{name}: this folder holds no {lacks}; name a checkpoint folder, {instead}{hint}"
            )
        return Checkpoint(str(folder.resolve()), folder.resolve(), fingerprint(folder))
    cached = hub_snapshot(name) if looks_like_hub_id(name) else None
    if cached is None:
        how = (
            f"fetch it with `moviola models pull {name}`"
            if looks_like_hub_id(name)
            else "no such folder; check its name"
        )
        if looks_like_hub_id(name) and _is_unfinished(name):
            how = f"its download was not finished; `moviola models pull {name}` goes on with it"
        raise MissingModel(f"{name}: not on this machine; {how}, {instead}")
    return Checkpoint(name, cached, cached.name)


def is_same_model(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two checkpoints, by name and revision, are one model, wherever its folder is. A model of the
    hub is also known by the fingerprint of its snapshot, while that is on this machine.
    """
    return not _revisions(*one).isdisjoint(_revisions(*other))


def _revisions(name: str, revision: str) -> set[str]:
    snapshot = hub_snapshot(name) if looks_like_hub_id(name) else None
    if snapshot is None or snapshot.name != revision:
        return {revision}
    return {revision, fingerprint(snapshot)}


def found_by_revision(revision: str) -> str | None:
    """Hub id of a model in the hub's cache that has a revision, or whose snapshot has that fingerprint; None
    without one.
    """
    from huggingface_hub import constants

    folders = Path(constants.HF_HUB_CACHE).glob("models--*")
    names = sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in folders)
    snapshots = ((name, hub_snapshot(name)) for name in names if looks_like_hub_id(name))
    same = (name for name, folder in snapshots if folder and revision in _revisions(name, folder.name))
    return next(same, None)


def hub_snapshot(name: str) -> Path | None:
    """The cached snapshot of the hub's main branch, named by its commit; None if absent or unfinished."""
    from huggingface_hub import try_to_load_from_cache

    found = (try_to_load_from_cache(name, config) for config in CONFIGS)
    folder = next((Path(config).parent for config in found if isinstance(config, str)), None)
    return folder if folder is not None and not _lacks(folder) else None


def _is_unfinished(name: str) -> bool:
    """Whether some of a model of the hub is here, and not all that is needed."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}")
    return any(path.is_file() for part in ("blobs", "snapshots") for path in folder.glob(f"{part}/**/*"))


def _lacks(folder: Path) -> str:
    """What a folder lacks to be a checkpoint; empty if nothing."""
    if not any((folder / config).is_file() for config in CONFIGS):
        return " or ".join(CONFIGS)
    weights = {path.name for path in folder.iterdir() if path.suffix in (".safetensors", ".bin")}
    for name in sorted(weights):
        if part := _PART.fullmatch(name):  # of a download that was not finished
            stem, total, suffix = part["stem"], part["total"], part["suffix"]
            every = [f"{stem}-{n:05d}-of-{total}{suffix}" for n in range(1, int(total) + 1)]
            if lacking := sum(one not in weights for one in every):
                return f"{lacking} of {len(every)} files of weights"
    return "" if weights else "weights (safetensors or bin)"


def packaged_revision(folder: Path) -> str:
    """The revision recorded in a packaged checkpoint, that of its source; else its own."""
    path = folder / "moviola.json"
    own = read_json(path).get("revision") if path.is_file() else None
    return str(own) if own else fingerprint(folder)


def fingerprint(folder: Path) -> str:
    """16 hex digits that change when a folder's settings or weights change: JSON, text and weight files.

    Of a file over 16 MiB, 64 evenly spaced blocks stand for the whole (training touches every tensor), so
    that opening a library stays fast.
    """
    digest = hashlib.blake2b(digest_size=8)
    kinds = {".json", ".txt", ".model", ".safetensors", ".bin", ".pth"}
    for path in sorted(p for p in folder.rglob("*") if p.suffix in kinds and p.is_file()):
        size = path.stat().st_size
        digest.update(f"{path.relative_to(folder).as_posix()}\0{size}\0".encode())
        with path.open("rb") as file:
            if size <= _WHOLE:
                digest.update(file.read())
                continue
            for block in range(64):
                file.seek(block * (size - _BLOCK) // 63)
                digest.update(file.read(_BLOCK))
    return digest.hexdigest()


_CARD_LANGUAGES = re.compile(
    r"^language:[ ]*(?P<one>[\w-]+)?[ ]*\n(?P<several>(?:[ ]*-[ ]*[\w'\"-]+[ ]*\n)*)", re.M
)


def languages_of_card(card: Path) -> list[str]:
    """The languages that the head of a model card names; none where it is missing, or has no head."""
    try:
        text = card.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    head = text.split("---", 2)[1] if text.startswith("---") and text.count("---") > 1 else ""
    found = _CARD_LANGUAGES.search(f"{head}\n")
    return [] if found is None else re.findall(r"[\w-]+", found["one"] or found["several"].replace("- ", " "))
