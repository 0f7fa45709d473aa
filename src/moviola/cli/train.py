"""``moviola train`` and ``moviola answer``: training models on features, and letting them answer queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.errors import DataError, EncoderMismatch, InvalidValue, NotFound
from moviola.training.registry import RECIPES

if TYPE_CHECKING:
    from moviola.models.pretrained import Description
    from moviola.models.spr import SegmentRetriever
    from moviola.training.data import FeatureFolder
    from moviola.training.recipes import Recipe, Settings, Split, Trained

__all__ = ["answer", "train"]

FeaturesOption = Annotated[
    Path, typer.Option(help="Folder of features, from `moviola features from-library`.")
]
Stage1Option = Annotated[
    Path | None, typer.Option(help="Folder of a trained spr-stage1; refiners and conquer need one.")
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, mps or auto.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting, TABLE.NAME=VALUE: loop.steps=100, model.hidden_size=128; repeat."),
]
VIDEOS_HELP = "JSON list of video ids, or a video_corpus.json; by default all that have features."


@app.command()
def train(
    name: Annotated[str, typer.Argument(help=f"The model: {', '.join(RECIPES)}.")],
    features: FeaturesOption,
    train_pairs: Annotated[Path, typer.Option("--train", help="TVR-Ranking pair file to learn from.")],
    val_pairs: Annotated[Path, typer.Option("--val", help="TVR-Ranking pair file that chooses the weights.")],
    out: Annotated[Path, typer.Option(help="A new folder for the model, its card and its log.")],
    top: Annotated[
        int | None, typer.Option(min=1, help="Learn from so many moments a query, the first in the file.")
    ] = None,
    train_videos: Annotated[Path | None, typer.Option(help=f"Videos to learn from: {VIDEOS_HELP}")] = None,
    val_videos: Annotated[Path | None, typer.Option(help=f"Videos of val: {VIDEOS_HELP}")] = None,
    stage1: Stage1Option = None,
    config: Annotated[
        Path | None, typer.Option(help="Settings in TOML: tables model, loop, sampling, or a phase's name.")
    ] = None,
    set_: SetOption = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of everything random; 0 by default.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:N, mps or auto; cpu by default.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted training.")] = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard files.")] = False,
    json: JsonOption = False,
) -> None:
    """Train a model on features; the weights that are best on val are kept, with a card and a log.

    A refiner is calibrated on val: in `moviola search` its scores are probabilities of being right.

    The settings are those of the model's paper unless given; a schedule ends with the last step, so fewer
    steps are a faster schedule, not the beginning of a longer one.

    Example: `moviola train spr-stage1 --features feat --train train_top20.json --val val.json --out stage1`

    Example: `moviola train reel --features feat --train train_top20.json --val val.json --stage1 stage1
    --out reel --set loop.epochs=10 --set model.hidden_size=128`
    """
    from moviola.training.calibration import calibration_of
    from moviola.training.cards import described, facts
    from moviola.training.recipes import Split, read_settings
    from moviola.training.registry import recipe

    how = recipe(name)
    given = [
        f"loop.{key}={value}" for key, value in (("seed", seed), ("device", device)) if value is not None
    ]
    settings = _on_device(read_settings(how, _toml(config), [*(set_ or ()), *given]))
    folder = _features(features)
    learned = Split.read(folder, train_pairs, _videos(train_videos), top=top)
    chosen_by = Split.read(folder, val_pairs, _videos(val_videos))
    data = {"train": described(learned, train_pairs.name), "val": described(chosen_by, val_pairs.name)}
    before = _stage1(how, stage1, folder, _device_of(settings))
    _prepare(out, resume, {"model": name, "settings": settings.described(), "data": data})
    splits = _completed(how, learned, before), _completed(how, chosen_by, before)
    with _Bar(settings) as bar:
        trained = _fitted(
            how, splits, settings, before,
            folder=out / "run", resume=resume, tensorboard=tensorboard, progress=bar,
        )  # fmt: skip
    source = stage1.resolve().name if how.needs and stage1 else None
    calibration = calibration_of(how, trained, splits[1]) if "proposals" in how.needs else None
    extra = facts(name, trained, folder, data, source, calibration=calibration)
    _save(trained, out, name, extra)
    if json:
        emit_json({"out": str(out), **{key: extra[key] for key in ("val", "steps", "best_step", "seconds")}})
        return
    for measure, value in extra["val"].items():
        console.print(f"{measure}  {value:.4f}", markup=False)
    note(
        f"{out}: {name}, best of {extra['steps']:,} steps after {extra['best_step']:,}, "
        f"{extra['seconds']:.1f} s of training"
    )
    if "proposals" in how.needs and calibration is None:
        note(
            f"{out}: not calibrated, as on val its scores do not tell right answers from wrong ones; "
            "`moviola search` sets them against chance"
        )


@app.command()
def answer(
    model: Annotated[Path, typer.Argument(help="Folder of a trained model.")],
    features: FeaturesOption,
    queries: Annotated[Path, typer.Option(help="TVR-Ranking pair file; its queries are answered.")],
    out: Annotated[Path, typer.Option(help="Where the run goes: .json, .jsonl, .csv or .trec.")],
    videos: Annotated[Path | None, typer.Option(help=f"Videos to search: {VIDEOS_HELP}")] = None,
    stage1: Stage1Option = None,
    recipe_name: Annotated[
        str | None, typer.Option("--recipe", help="How it answers; by default what the model's folder says.")
    ] = None,
    device: DeviceOption = "cpu",
    json: JsonOption = False,
) -> None:
    """Let a trained model answer queries; the run that is written is one for `moviola evaluate`.

    Example: `moviola answer reel --stage1 stage1 --features feat --queries test.json --out run.jsonl`
    """
    from moviola.measures.writing import write_run
    from moviola.models.pretrained import from_pretrained, read_description
    from moviola.training.recipes import Split, judge
    from moviola.training.registry import recipe

    where = _device(device)
    about = read_description(model)
    how = recipe(recipe_name or str(about.extra.get("recipe", about.architecture)))
    folder = _features(features)
    _same_encoder(model, about, folder)
    if how.architecture != about.architecture:
        raise InvalidValue(f"{model}: a model of architecture {about.architecture!r}; the recipe asks for "
                           f"{how.architecture!r}; give the recipe that it was trained with")  # fmt: skip
    before = _stage1(how, stage1, folder, where)
    split = _completed(how, Split.read(folder, queries, _videos(videos)), before)
    run = how.run(from_pretrained(model, where), split)
    write_run(run, out)
    found = judge(run, split)
    if json:
        emit_json({"out": str(out), "queries": len(split.queries), "moments": len(run), "measures": found})
        return
    console.print(f"{out}: {len(split.queries):,} queries, {len(run):,} moments", markup=False)
    for measure, value in found.items():
        console.print(f"{measure}  {value:.4f}", markup=False)


# ---- what the options name -------------------------------------------------------------------------------


def _device(name: str) -> str:
    from moviola.encoders.devices import DeviceChoice

    return DeviceChoice(name, "fp32", None).device


def _device_of(settings: Settings) -> str:
    return next(iter(settings.loops.values())).device


def _on_device(settings: Settings) -> Settings:
    """The settings with devices that are there; auto becomes the best one."""
    loops = {name: replace(loop, device=_device(loop.device)) for name, loop in settings.loops.items()}
    return replace(settings, loops=loops)


def _features(path: Path) -> FeatureFolder:
    from moviola.training.data import FeatureFolder

    return FeatureFolder.open(path)


def _toml(path: Path | None) -> Mapping[str, Any]:
    """Tables of settings."""
    import tomllib

    if path is None:
        return {}
    if not path.is_file():
        raise NotFound(f"{path}: no such file; --config takes a TOML file")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not valid TOML ({error})") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise DataError(f"{path}: {name} = {table!r} stands in no table; put it under [loop] or [model]")
    return tables


def _videos(path: Path | None) -> list[str] | None:
    """Ids of videos."""
    from moviola.datasets.readers import read_video_corpus
    from moviola.datasets.rows import json_file

    if path is None:
        return None
    content = json_file(path)
    if isinstance(content, list) and not all(isinstance(name, str) for name in content):
        raise DataError(f"{path}: a list of video ids is expected, each a text")
    names = list(dict.fromkeys(content if isinstance(content, list) else read_video_corpus(path)))
    if not names:
        raise DataError(f"{path}: names no video; list the ids of those to use")
    return names


def _same_encoder(model: Path, about: Description, folder: FeatureFolder) -> None:
    """Raises :class:`EncoderMismatch` if the model learned from another encoder's features."""
    name, revision = folder.encoder
    theirs = about.extra.get("encoder", name), about.extra.get("encoder_revision", revision)
    if theirs != (name, revision):
        raise EncoderMismatch(
            f"{model}: trained on features of {theirs[0]} (revision {theirs[1]}), but these are of {name} "
            f"(revision {revision}); give features of the same encoder, or train anew"
        )


@dataclass(frozen=True)
class _Stage1:
    """A trained segment retriever and how many clips its segments have."""

    model: SegmentRetriever
    segment_clips: int
    path: Path

    @classmethod
    def open(cls, path: Path, folder: FeatureFolder, device: str) -> _Stage1:
        from moviola.models.pretrained import from_pretrained, read_description
        from moviola.models.spr import SegmentRetriever

        about = read_description(path)
        model = from_pretrained(path, device, kind=SegmentRetriever)
        _same_encoder(path, about, folder)
        if model.config.dim != folder.visual.dim:
            raise EncoderMismatch(
                f"{path}: a stage 1 for features of {model.config.dim} numbers, these have "
                f"{folder.visual.dim}; train one on these features"
            )
        sampling = about.extra.get("settings", {}).get("sampling") or {}
        return cls(model, int(sampling.get("segment_clips", folder.segment_clips)), path)


def _stage1(how: Recipe, path: Path | None, folder: FeatureFolder, device: str) -> _Stage1 | None:
    """The stage 1 that the recipe needs, if it needs one."""
    if path is not None:
        return _Stage1.open(path, folder, device)
    if how.needs:
        raise InvalidValue(
            f"{how.architecture}: needs the {' and '.join(sorted(how.needs)).replace('_', ' ')} of a trained "
            "stage 1; train spr-stage1 and give its folder as --stage1"
        )
    return None


def _completed(how: Recipe, split: Split, before: _Stage1 | None) -> Split:
    """The split with what the recipe needs of a stage 1."""
    from moviola.training.segments import propose_for, video_scores

    if before is None:
        return split
    gives: dict[str, Callable[..., Any]] = {"proposals": propose_for, "first_stage": video_scores}
    found = {part: gives[part](before.model, split, segment_clips=before.segment_clips) for part in how.needs}
    return replace(split, **found)


# ---- the run and what it leaves --------------------------------------------------------------------------


def _prepare(out: Path, resume: bool, what: Mapping[str, Any]) -> None:
    """Make the folder; note what is trained, so that only the same training can be resumed there."""
    import json

    from moviola.training.cards import plain

    path = out / "run" / "settings.json"
    described = json.dumps(plain(what), indent=1) + "\n"
    begun = (out / "config.json").exists() or any((out / "run").glob("**/state.pt"))
    if begun and not resume:
        raise InvalidValue(f"{out}: holds a training; give a new folder, or --resume to go on with it")
    if resume and not path.is_file():
        raise InvalidValue(f"{out}: nothing to resume; train without --resume first")
    if begun and path.read_text() != described:
        old, new = json.loads(path.read_text()), json.loads(described)
        differ = ", ".join(name for name in new if old.get(name) != new[name])
        raise InvalidValue(f"{out}: begun with other {differ}; give what it was begun with, or a new folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(described)
    except OSError as error:
        raise InvalidValue(f"{out}: cannot be written ({error.strerror}); give another folder") from error


def _fitted(
    how: Recipe,
    splits: tuple[Split, Split],
    settings: Settings,
    before: _Stage1 | None,
    **options: Any,
) -> Trained:
    from moviola.models.spr import SprClip
    from moviola.training.recipes import train

    def start(model: Any) -> None:
        # SPR's CLIP refiner goes on from the towers of its stage 1 (SPR, section 3.3.2).
        if isinstance(model, SprClip) and before is not None:
            model.start_from(before.model)

    return train(how, *splits, settings, start=start, **options)


def _save(trained: Trained, out: Path, name: str, extra: Mapping[str, Any]) -> None:
    from dataclasses import asdict

    from moviola.models.pretrained import save_pretrained
    from moviola.training.cards import model_card

    card = model_card(name, asdict(trained.model.config), extra)  # type: ignore[call-overload]
    save_pretrained(trained.model, out, card=card, extra=extra)


class _Bar:
    """Steps on standard error: a bar where that is a terminal, and a line an evaluation in any case."""

    def __init__(self, settings: Settings) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        err = Console(stderr=True, highlight=False, soft_wrap=True)
        self._selects = [loop.select for loop in settings.loops.values()]
        self._loss = 0.0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("training", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, step: int, total: int, values: Mapping[str, float]) -> None:
        chosen = [select for select in self._selects if select in values]
        if chosen:
            self._bar.console.print(
                f"step {step:,} of {total:,}: loss {self._loss:.4f}, {chosen[0]} {values[chosen[0]]:.4f}",
                markup=False,
            )
        else:
            self._loss = sum(values.values())
        self._bar.update(self._task, completed=step, total=total, description=f"loss {self._loss:.3f}")
