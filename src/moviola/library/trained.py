"""Trained models in a library: which fit, where they lie, what they make of its features.

The folder of a model is copied into the library, so that the library stays safe to copy: to
``models/stage1/NAME`` or ``models/refiner/NAME``, under a name that says which weights they are.
``moviola.toml`` names the one in use and comes last, so that whenever the process is stopped the library has
the old models or the new ones. torch is imported when a model is looked at, not before.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.checkpoints import DEMO
from moviola.errors import DataError, EncoderMismatch, InvalidValue, LibraryError
from moviola.library.segments import normalised, whole_segments
from moviola.library.settings import Settings
from moviola.models.calibration import Calibration

if TYPE_CHECKING:
    from torch import nn

    from moviola.models.pretrained import Description
    from moviola.models.spr import SegmentRetriever

__all__ = [
    "DEMO_MODELS", "NONE", "ROLES", "ContextCache", "Stage1", "check_fits", "copy_into", "discard_others",
    "model_folder", "opened_stage1", "require_intact", "revision_of", "source_of",
]  # fmt: skip

NONE = "none"
"""What is said for a role in place of a folder, to go on without a trained model."""

ROLES: dict[str, frozenset[str]] = {
    "stage1": frozenset({"spr-stage1"}),
    "refiner": frozenset({"reel", "spr-clip", "reloclnet"}),
}
"""What a model can be in use as, and the architectures that can."""

_MODELS = Path(__file__).parents[1] / "models"
DEMO_MODELS: dict[str, Path] = {"stage1": _MODELS / "demo_stage1", "refiner": _MODELS / "demo_reel"}
"""The trained models that the package carries: they fit libraries of the encoder ``demo``, under whose name
they are known."""

_FILES = ("config.json", "model.safetensors", "README.md")
_FACTS = ("encoder", "encoder_revision", "clip_seconds", "segment_clips")
_SEGMENTS_AT_ONCE = 1024
# What a process keeps of context encodings; an hour of Reel's default size is 5 MiB.
_REMEMBERED_BYTES = 1 << 28


def source_of(role: str, source: str | PathLike[str]) -> Path | None:
    """Where a model is to be taken from: None for :data:`NONE`, the package for the text ``"demo"``.

    A folder of that name is given as ``./demo`` or as a path.
    """
    if str(source) == NONE:
        return None
    return DEMO_MODELS[role] if source == DEMO else Path(source)


# ---- which models fit ------------------------------------------------------------------------------------


def check_fits(role: str, source: Path, settings: Settings, *, force: bool) -> None:
    """Load a model and compare what it was trained on with what the library holds.

    Args:
        role: a key of :data:`ROLES`.
        source: a folder that ``moviola train`` or ``moviola models convert`` wrote.
        settings: of the library.
        force: take a model that does not say what it was trained on. What it does say must agree all the
            same, and so must its sizes.

    Raises:
        NotFound: no such folder, or a file is missing in it.
        DataError: a file is damaged, a weight is no finite number, or the calibration is malformed.
        InvalidValue: a model of another kind, or one that does not say what it was trained on.
        EncoderMismatch: trained on another encoder, frame rate or segment length, or of other sizes.
    """
    from moviola.models.pretrained import from_pretrained, read_description

    about = read_description(source)
    if about.architecture not in ROLES[role]:
        raise InvalidValue(
            f"{source}: holds a model of architecture {about.architecture!r}; as {role} a library uses "
            f"{' or '.join(sorted(ROLES[role]))}"
        )
    missing = [fact for fact in _FACTS if fact not in about.extra]
    if missing and not force:
        raise InvalidValue(
            f"{source}: its config.json does not say what it was trained on ({', '.join(missing)} missing in "
            "'extra'); if you know that it is this library's encoder and frame rate, use it with --force"
        )
    for what, theirs, ours, remedy in _compared(role, about, settings):
        if theirs is not None and not _same(theirs, ours):
            raise EncoderMismatch(
                f"{source}: a model for {what} {theirs!r}, but the library has {ours!r}; {remedy}"
            )
    Calibration.of(about.extra, source)
    _require_finite(from_pretrained(source), source)


def _compared(role: str, about: Description, settings: Settings) -> list[tuple[str, Any, Any, str]]:
    """What must agree: its name, the model's value (None: not known), the library's, and the remedy."""
    anew = "train one on this library's features (`moviola features from-library`)"
    reindex = f"{anew}, or index the videos into a library that fits"
    config, extra = about.config, about.extra
    rows = [
        ("encoder", extra.get("encoder"), settings.encoder, reindex),
        ("encoder revision", extra.get("encoder_revision"), settings.encoder_revision, reindex),
        (
            "clip seconds",
            extra.get("clip_seconds", config.get("clip_seconds")),
            1 / settings.frame_rate,
            f"{anew}, or index the videos with another --frame-rate",
        ),
        (
            "frame features of size",
            config.get("visual_size", config.get("hidden_size")),
            settings.encoder_dim,
            anew,
        ),
        ("query features of size", config.get("query_size"), settings.encoder_dim, anew),
    ]
    if config.get("subtitle_size"):
        rows.append(("subtitle features of size", config["subtitle_size"], settings.sentence_dim, anew))
    if role == "stage1":
        rows.append((
            "segment clips",
            _trained_with(about, "segment_clips", extra.get("segment_clips")),
            settings.frames_per_segment,
            f"{anew}, or index the videos with another --segment-seconds",
        ))  # fmt: skip
        most = int(config.get("max_clips", settings.frames_per_segment))
        if most < settings.frames_per_segment:
            rows.append(("segments of at most so many clips", most, settings.frames_per_segment, anew))
    return rows


def _trained_with(about: Description, name: str, otherwise: Any) -> Any:
    """A setting of the sampling that ``moviola train`` keeps beside the model."""
    settings = about.extra.get("settings")
    sampling = settings.get("sampling") if isinstance(settings, Mapping) else None
    return sampling.get(name, otherwise) if isinstance(sampling, Mapping) else otherwise


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, int | float) and isinstance(ours, int | float):
        return math.isclose(theirs, ours, rel_tol=1e-9)
    return bool(theirs == ours)


def _require_finite(model: nn.Module, source: Path) -> None:
    import torch

    for name, tensor in model.state_dict().items():
        if not torch.isfinite(tensor).all():
            raise DataError(
                f"{source}: weight {name} holds a number that is not finite; train the model anew"
            )


# ---- where they lie --------------------------------------------------------------------------------------


def revision_of(folder: Path) -> str:
    """16 hex digits that change with a model's weights and settings.

    Raises:
        LibraryError: a file of the model is missing.
    """
    digest = hashlib.sha256()
    for name in ("config.json", "model.safetensors"):
        try:
            with (folder / name).open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except FileNotFoundError as error:
            raise LibraryError(f"{folder / name}: missing; get the model's folder whole") from error
    return digest.hexdigest()[:16]


def model_folder(library: Path, role: str, settings: Settings) -> Path:
    """Where the model in use lies."""
    return library / "models" / role / str(getattr(settings, role))


def copy_into(library: Path, role: str, source: Path) -> dict[str, str]:
    """Copy a model's folder into a library; gives the settings that put it in use.

    Raises:
        LibraryError: the copy is not what was to be copied.
    """
    revision = revision_of(source)
    short = revision[:8]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", source.resolve().name).strip(".-").removesuffix(f"-{short}")
    name = f"{name or 'model'}-{short}"
    folder = library / "models" / role / name
    if not folder.is_dir() or revision_of(folder) != revision:
        draft = folder.with_name(f"{name}.{os.getpid()}.tmp")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        for file in _FILES:
            if (source / file).is_file():
                shutil.copyfile(source / file, draft / file)
                _sync(draft / file)
        if revision_of(draft) != revision:
            shutil.rmtree(draft)
            raise LibraryError(f"{source}: changed while it was copied; try again")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    return {role: name, f"{role}_revision": revision}


def discard_others(library: Path, settings: Settings) -> None:
    """Delete the copies of models that are no longer in use, and what is left of interrupted copying."""
    for role in ROLES:
        for folder in (library / "models" / role).glob("*"):
            if folder.name != getattr(settings, role):
                shutil.rmtree(folder, ignore_errors=True)


def require_intact(library: Path, role: str, settings: Settings) -> Path:
    """The folder of the model in use.

    Raises:
        LibraryError: it is missing, or not what ``moviola.toml`` names.
    """
    folder, wanted = model_folder(library, role, settings), getattr(settings, f"{role}_revision")
    remedy = (
        "open the library again if another process has just changed its models, else "
        f"`moviola library use {library} --{role} FOLDER` puts one in use (or none)"
    )
    if not all((folder / name).is_file() for name in ("config.json", "model.safetensors")):
        raise LibraryError(f"{folder}: the model in use is missing; {remedy}")
    found = revision_of(folder)
    if found != wanted:
        raise LibraryError(f"{folder}: the model in use has revision {wanted}, but this is {found}; {remedy}")
    return folder


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


# ---- what they make of features --------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage1:
    """A trained stage 1 of SPR: frames and queries to embeddings in one space, exactly as in training."""

    model: SegmentRetriever

    def segments(self, frames: NDArray[np.floating], frames_per_segment: int) -> NDArray[np.float32]:
        """Segment embeddings (ceil(n / T), d) float32, L2-normalised, of n >= 1 raw frames (n, d)."""
        import torch

        from moviola.models.spans import normalise_rows

        device = self.model.pt_clip_logit_scale.device
        unit = normalise_rows(np.asarray(frames, dtype=np.float32))
        whole = torch.from_numpy(whole_segments(unit, frames_per_segment))
        with torch.inference_mode():
            parts = [
                self.model.encode_segments(part.to(device), torch.ones(part.shape[:2], device=device)).cpu()
                for part in torch.split(whole, _SEGMENTS_AT_ONCE)
            ]
        return normalised(torch.cat(parts).numpy())

    def queries(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Query embeddings (q, d) float32, L2-normalised, of query features (q, d) of length 1."""
        import torch

        with torch.inference_mode():
            given = torch.from_numpy(vectors).to(self.model.pt_clip_logit_scale.device)
            return normalised(self.model.encode_queries(given).cpu().numpy())


def opened_stage1(folder: Path, device: str) -> Stage1:
    """The stage 1 in a folder, see :func:`moviola.models.pretrained.from_pretrained`."""
    from moviola.models.pretrained import from_pretrained
    from moviola.models.spr import SegmentRetriever

    return Stage1(from_pretrained(folder, device, kind=SegmentRetriever))


class ContextCache:
    """What a refiner makes of whole videos, ``REVISION/ROW.npy`` in a folder that may be deleted at any time.

    A row number stands for one state of one video for ever, and a revision for one model, so nothing in here
    is ever out of date.
    """

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        self.folder, self.read_only = folder, read_only
        self._recent: OrderedDict[tuple[str, int], NDArray[np.float16]] = OrderedDict()

    def get(
        self, revision: str, row: int, count: int, make: Callable[[], NDArray[np.float16]]
    ) -> NDArray[np.float16]:
        """What was made of a video, (count, ...) float16; else make it, and store it unless read-only."""
        key = (revision, row)
        if key in self._recent:
            self._recent.move_to_end(key)
            return self._recent[key]
        path = self.folder / revision / f"{row}.npy"
        rows = _read_rows(path, count)
        if rows is None:
            rows = make()
            if not self.read_only:
                _write_rows(path, rows)
        self._recent[key] = rows
        while (
            len(self._recent) > 1 and sum(part.nbytes for part in self._recent.values()) > _REMEMBERED_BYTES
        ):
            self._recent.popitem(last=False)
        return rows

    def keep_only(self, revision: str, rows: Collection[int]) -> None:
        """Delete what other models made, and what was made of videos that are gone, in memory too.

        What was forgotten on disk alone would be served from memory, and never be written again.
        """
        for known in [key for key in self._recent if key[0] != revision or key[1] not in rows]:
            del self._recent[known]
        for folder in self.folder.glob("*"):
            if folder.name != revision:
                shutil.rmtree(folder, ignore_errors=True)
        for path in (self.folder / revision).glob("*") if revision else ():
            if path.suffix != ".npy" or not path.stem.isdigit() or int(path.stem) not in rows:
                path.unlink(missing_ok=True)


def _read_rows(path: Path, count: int) -> NDArray[np.float16] | None:
    """The rows in a file, memory-mapped; None where there is none that is whole."""
    try:
        rows = np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return None
    return rows if rows.dtype == np.float16 and len(rows) == count else None


def _write_rows(path: Path, rows: NDArray[np.float16]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(".tmp", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        np.save(file, rows)
        file.flush()
        os.fsync(file.fileno())
    # Another process may have swept the folder meanwhile; then it is made again when it is needed.
    with suppress(FileNotFoundError):
        Path(draft).replace(path)
