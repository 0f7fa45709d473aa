"""Trained models in a library: checks, copies, and the ones in use.

The folder of a model is copied into the library, so that the library stays safe to copy: to
``models/stage1/NAME`` or ``models/refiner/NAME``, under a name that says which weights they are.
``moviola.toml`` names the one in use and comes last, so that whenever the process is stopped the library has
the old models or the new ones. No torch is needed for a model whose folder has graphs.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from moviola.encoders.checkpoints import DEMO
from moviola.errors import EncoderMismatch, InvalidValue, LibraryError, MoviolaError, counted
from moviola.files.drafts import DRAFTS, is_abandoned
from moviola.files.writing import draft_folder_of
from moviola.library.disk.backups import set_aside
from moviola.library.disk.searching_models import ROLE_NAMES
from moviola.library.disk.settings import Settings
from moviola.retrieval import load_refiner
from moviola.retrieval.opening import open_model
from moviola.retrieval.saved.description import Description, read_description, require_finite, revision_of
from moviola.retrieval.saved.graphs import GRAPHS, WITHOUT_GRAPHS, has_graphs, require_intact_graphs
from moviola.retrieval.trained_models import (
    REFINERS,
    STAGE1S,
    described_options,
    is_refiner,
    other_stage1,
)

__all__ = [
    "DEMO_MODELS", "NONE", "ROLES", "check_fits", "copy_into", "discard_others",
    "other_stage1_in_use", "source_of", "training_of",
]  # fmt: skip

NONE = "none"
"""Value of a role without a trained model."""

ROLES: dict[str, frozenset[str]] = dict(
    zip(ROLE_NAMES, (frozenset(STAGE1S), frozenset(REFINERS)), strict=True)
)
"""Roles of models, with the architectures that fill them, besides those of plug-ins."""

_MODELS = Path(__file__).parents[2] / "retrieval" / "saved"
DEMO_MODELS: dict[str, Path] = {"stage1": _MODELS / "demo_stage1", "refiner": _MODELS / "demo_reel"}
"""The trained models that the package carries: they fit libraries of the encoder ``demo``, under whose name
they are known."""

_FILES = ("config.json", "model.safetensors", "README.md")
JUDGED = "nDCG@20,IoU>=0.5"
"""The measure of a training's val by which a model is shown, and compared, if it is there."""
_FACTS = ("encoder", "encoder_revision", "clip_seconds", "segment_clips")


def source_of(role: str, source: str | PathLike[str]) -> Path | None:
    """Source of a model: None for :data:`NONE`, the package for ``"demo"``, but not for ``./demo``."""
    if str(source) == NONE:
        return None
    return DEMO_MODELS[role] if source == DEMO else Path(source)


def check_fits(role: str, source: Path, settings: Settings, *, force: bool) -> None:
    """Check the folder of a model against a library: training data, sizes, graphs.

    ``force`` accepts one that does not record its training data, or that was worse on val than the library's
    own search; what is recorded must agree in any case.

    Raises:
        NotFound: no such folder, or a file is missing in it.
        MissingDependency: the folder has no graphs of its weights, and torch, which makes them, is missing.
        DataError: a file is damaged, a weight is no finite number, or the calibration is malformed.
        InvalidValue: a model of another kind, one that does not record its training data, or one that is
            worse than no model.
        EncoderMismatch: what is recorded, or a size, differs.
        BrokenPlugin: the plug-in that runs it fails.
    """
    about = read_description(source)
    shown = DEMO if source == DEMO_MODELS[role] else source  # its folder is of no use to the user
    of_plugin = role == "refiner" and about.architecture not in REFINERS and is_refiner(about.architecture)
    if about.architecture not in ROLES[role] and not of_plugin:
        raise InvalidValue(
            f"{shown}: holds a model of architecture {about.architecture!r}; as {role} a library uses "
            f"{' or '.join(sorted(ROLES[role]))}"
        )
    missing = [fact for fact in _FACTS if fact not in about.extra]
    if missing and not force:
        raise InvalidValue(
            f"{shown}: its config.json does not say what it was trained on ({', '.join(missing)} missing in "
            "'extra'); if you know that it is this library's encoder and frame rate, use it with --force"
        )
    for what, theirs, ours, remedy in _compared(role, about, settings):
        if theirs is not None and not _same(theirs, ours):
            raise EncoderMismatch(
                f"{shown}: a model for {what} {theirs!r}, but the library has {ours!r}; {remedy}"
            )
    if not force:
        _require_better(shown, about.extra)
    described_options(about.extra, source)
    require_finite(source)
    if of_plugin:
        load_refiner(source, "checked")
    elif not has_graphs(source):
        open_model(source, purpose=f"{source}: {WITHOUT_GRAPHS}")


def _require_better(shown: Any, extra: Mapping[str, Any]) -> None:
    """Refuse a refiner that found less on val than the library's own search, if that was measured."""
    figures = [extra.get(name) for name in ("val", "search_on_val")]
    own, search = (one.get(JUDGED) if isinstance(one, dict) else None for one in figures)
    if isinstance(own, float) and isinstance(search, float) and own < search:
        raise InvalidValue(
            f"{shown}: worse than no model: on val its {JUDGED} was {own:.4f}, and {search:.4f} that of the "
            "library's own search; train it longer or on more pairs, or use it all the same with --force"
        )


def _compared(role: str, about: Description, settings: Settings) -> list[tuple[str, Any, Any, str]]:
    """Values that must agree: name, the model's value (None: unknown), the library's, and the remedy."""
    retrain = "train one on this library's features (`moviola features from-library`)"
    reindex = f"{retrain}, or index the videos into a library that fits"
    config, extra = about.config, about.extra
    either = f"{retrain}, or index the videos with another"
    clip_seconds = extra.get("clip_seconds", config.get("clip_seconds"))
    frame_size = config.get("visual_size", config.get("hidden_size"))
    rows = [
        ("encoder", extra.get("encoder"), settings.encoder, reindex),
        ("encoder revision", extra.get("encoder_revision"), settings.encoder_revision, reindex),
        ("clip seconds", clip_seconds, 1 / settings.frame_rate, f"{either} --frame-rate"),
        ("frame features of size", frame_size, settings.encoder_dim, retrain),
        ("query features of size", config.get("query_size"), settings.encoder_dim, retrain),
    ]
    if config.get("subtitle_size"):
        rows.append(("subtitle features of size", config["subtitle_size"], settings.sentence_dim, retrain))
    if role == "stage1":
        clips, sampling = settings.frames_per_segment, extra.get("settings")
        for name in ("sampling", "segment_clips"):  # kept by `moviola train` beside the model
            sampling = sampling.get(name) if isinstance(sampling, Mapping) else None
        trained = extra.get("segment_clips") if sampling is None else sampling
        rows.append(("segment clips", trained, clips, f"{either} --segment-seconds"))
        most = int(config.get("max_clips", clips))
        if most < clips:
            rows.append(("segments with at most this many clips", most, clips, retrain))
    return rows


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, int | float) and isinstance(ours, int | float):
        return math.isclose(theirs, ours, rel_tol=1e-9)
    return bool(theirs == ours)


def copy_into(library: Path, role: str, source: Path) -> dict[str, str]:
    """Copy a model's folder into a library, whole or not at all; returns the settings that use it."""
    revision = revision_of(source)
    short = revision[:8]
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", source.resolve().name).strip(".-").removesuffix(f"-{short}")
    name = f"{name or 'model'}-{short}"
    folder = library / "models" / role / name
    if not folder.is_dir() or revision_of(folder) != revision:
        with draft_folder_of(folder) as draft:
            graphs = (str(path.relative_to(source)) for path in (source / GRAPHS / revision).glob("*"))
            for file in (*_FILES, *graphs):
                if (source / file).is_file():
                    (draft / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / file, draft / file)
            if revision_of(draft) != revision:
                raise LibraryError(f"{source}: changed while it was copied; try again")
            shutil.rmtree(folder, ignore_errors=True)
    return {role: name, f"{role}_revision": revision}


def discard_others(library: Path, settings: Settings) -> None:
    """Delete copies of models that are no longer in use, and remains of interrupted copying. One that is
    damaged goes to ``backups/`` instead: nobody may have another copy, and its files may be whole again.
    """
    for role in ROLES:
        for folder in (library / "models" / role).glob("*"):
            draft = folder.match(DRAFTS)
            if folder.name == getattr(settings, role) or (draft and not is_abandoned(folder)):
                continue
            if draft or _is_whole(folder):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                set_aside(library, folder)


def _is_whole(folder: Path) -> bool:
    """Whether the copy of a model has the weights that its name says, and graphs that are whole."""
    try:
        require_intact_graphs(folder)
        return revision_of(folder).startswith(folder.name.rpartition("-")[2])
    except (MoviolaError, OSError):
        return False


def other_stage1_in_use(library: Path, settings: Settings) -> str:
    """:func:`~moviola.retrieval.trained_models.other_stage1` of the models in use; "" without a refiner."""
    if not settings.refiner:
        return ""
    about = read_description(library / "models" / "refiner" / settings.refiner)
    return other_stage1(about.extra, settings.stage1_revision)


def reads_subtitles(library: Path, role: str, settings: Settings) -> bool:
    """Whether a model in use reads subtitles. Raises NotFound, DataError: its folder is away or damaged."""
    name = getattr(settings, role)
    return bool(name and read_description(library / "models" / role / name).config.get("subtitle_size"))


def training_of(library: Path, settings: Settings, role: str) -> str:
    """Steps and val figure of the training of a model in use, as its folder records them; "" where it does
    not, or none is in use.

    Raises:
        NotFound, DataError: the model's folder is missing or damaged.
    """
    name = getattr(settings, role)
    extra = read_description(library / "models" / role / name).extra if name else {}
    val, steps = extra.get("val"), extra.get("best_step")
    if not isinstance(val, dict) or not isinstance(steps, int):
        return ""
    wanted = JUDGED if JUDGED in val else next(iter(val), "")
    figure = val.get(wanted)
    return f"{counted(steps, 'step')}, {wanted} {figure:.4f} on val" if isinstance(figure, float) else ""
