"""``moviola train`` and ``moviola answer``: training models on features, and letting them answer queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note
from moviola.errors import DataError, EncoderMismatch, InvalidValue, NotFound
from moviola.training.registry import RECIPES

if TYPE_CHECKING:
    from moviola.measures import Run
    from moviola.models.pretrained import Description
    from moviola.models.spr import SegmentRetriever
    from moviola.training.data import FeatureFolder
    from moviola.training.recipes import Recipe, Settings, Split, Trained

__all__ = ["answer", "train"]

FeaturesOption = Annotated[
    Path, typer.Option(help="Folder of features, from `moviola features from-library` or `from-files`.")
]
Stage1Option = Annotated[
    Path | None, typer.Option(help="Folder of a trained spr-stage1; refiners and conquer build on one.")
]
CandidatesOption = Annotated[
    Path | None,
    typer.Option(help="Instead of --stage1: another system's run for these queries, as `evaluate` reads it."),
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, mps or auto.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A setting, TABLE.NAME=VALUE: loop.steps=100, model.hidden_size=128; repeat."),
]
VIDEOS_HELP = "JSON list of ids, video_corpus.json, or FILE:SPLIT, as splits.json:val; by default"


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
    train_videos: Annotated[
        str | None, typer.Option(help=f"Videos to learn from: {VIDEOS_HELP} those that --train names.")
    ] = None,
    val_videos: Annotated[
        str | None, typer.Option(help=f"Videos of val: {VIDEOS_HELP} all that have features.")
    ] = None,
    stage1: Stage1Option = None,
    candidates: CandidatesOption = None,
    val_candidates: Annotated[
        Path | None, typer.Option(help="The same for val's queries; by default --candidates answers them.")
    ] = None,
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

    Val is searched for answers in all videos, as in TVR-Ranking, which has one corpus for all queries. Where
    splits have videos of their own, as in gridhouse, give --val-videos splits.json:val.

    Example: `moviola train spr-stage1 --features feat --train world/train_top20.json --val world/val.json
    --val-videos world/splits.json:val --out stage1`

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
    folder = _features(features)
    tables = _as_long_as(how, folder, _toml(config))
    settings = _on_device(read_settings(how, tables, [*(set_ or ()), *given]))
    where = _device_of(settings)
    before = _before(name, how, folder, where, stage1, candidates)
    before_val = _before(name, how, folder, where, stage1, val_candidates) if val_candidates else before
    learned = Split.read(folder, train_pairs, _videos(train_videos), top=top)
    if train_videos is None:
        learned = _of_own_videos(learned, folder)
    chosen_by = Split.read(folder, val_pairs, _videos(val_videos))
    shared = len(set(learned.clips.videos) & set(chosen_by.clips.videos))
    data = {
        "train": described(learned, train_pairs.name),
        "val": described(chosen_by, val_pairs.name) | {"videos_learned_from": shared},
    }
    sources = [part and part.mark for part in (before, before_val)]
    what = {"model": name, "settings": settings.described(), "data": data, "stage 1 or candidates": sources}
    _prepare(out, resume, what)
    _tell_left_out(chosen_by, val_pairs)
    if shared:
        note(
            f"val: {shared:,} of its {len(chosen_by.clips.videos):,} videos are learned from as well; "
            "--val-videos keeps them apart"
        )
    splits = _completed(how, learned, before), _completed(how, chosen_by, before_val)
    with _Bar(settings) as bar:
        trained = _fitted(
            how, splits, settings, before.model if isinstance(before, _Stage1) else None,
            folder=out / "run", resume=resume, tensorboard=tensorboard, progress=bar,
        )  # fmt: skip
    source = stage1.resolve().name if stage1 else None
    calibration = calibration_of(how, trained, splits[1]) if "proposals" in how.needs else None
    extra = facts(name, trained, folder, data, source, calibration=calibration)
    if candidates is not None:
        extra["candidates"] = candidates.name
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
    videos: Annotated[
        str | None, typer.Option(help=f"Videos to search: {VIDEOS_HELP} all that have features.")
    ] = None,
    stage1: Stage1Option = None,
    candidates: CandidatesOption = None,
    judgements: Annotated[
        Path | None,
        typer.Option(help="Where the judgements go that count in these videos: .json, .jsonl or .csv."),
    ] = None,
    recipe_name: Annotated[
        str | None, typer.Option("--recipe", help="How it answers; by default what the model's folder says.")
    ] = None,
    device: DeviceOption = "cpu",
    json: JsonOption = False,
) -> None:
    """Let a trained model answer queries; the run that is written is one for `moviola evaluate`.

    Moments of videos that are not searched don't count in the figures shown; for the same ones from `moviola
    evaluate`, give it the file of --judgements.

    Example: `moviola answer reel --stage1 stage1 --features feat --queries world/test.json --videos
    world/splits.json:test --out run.jsonl --judgements judged.json`

    Example: `moviola answer conquer --candidates other.trec --features feat --queries test.json
    --out run.jsonl`
    """
    from moviola.measures.output_formats import write_qrels, write_run
    from moviola.models.pretrained import from_pretrained, read_description
    from moviola.training.recipes import Split, judge
    from moviola.training.registry import recipe, recipe_of

    where = _device(device)
    about = read_description(model)
    name = recipe_name or recipe_of(about)
    how = recipe(name)
    folder = _features(features)
    _same_encoder(model, about, folder)
    if how.architecture != about.architecture:
        raise InvalidValue(f"{model}: a model of architecture {about.architecture!r}; the recipe asks for "
                           f"{how.architecture!r}; give the recipe that it was trained with")  # fmt: skip
    before = _before(name, how, folder, where, stage1, candidates)
    split = Split.read(folder, queries, _videos(videos))
    _same_sizes(model, about, how, split)
    split = _completed(how, split, before)
    _tell_left_out(split, queries)
    run = _answered(how, from_pretrained(model, where), split, _sampling(about, folder))
    write_run(run, out)
    if judgements is not None:
        write_qrels(split.pairs.qrels, judgements)
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


def _videos(choice: str | None) -> list[str] | None:
    from moviola.training.data import read_videos

    return None if choice is None else read_videos(choice)


def _of_own_videos(split: Split, folder: FeatureFolder) -> Split:
    """The split without videos that hold no moment of it, which may be another split's to be judged by."""
    pairs = split.pairs.of_own_videos()
    return replace(split, clips=folder.clips(pairs.videos), pairs=pairs)


def _tell_left_out(split: Split, path: Path) -> None:
    if split.pairs.left_out:
        note(
            f"{path}: {split.pairs.left_out:,} of its moments are of other videos than the "
            f"{len(split.clips.videos):,} that are searched; they do not count"
        )


def _as_long_as(how: Recipe, folder: FeatureFolder, tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a file; where it says nothing of a segment's length, it is that of the features."""
    if not hasattr(how.settings.sampling, "segment_clips"):
        return tables
    return {**tables, "sampling": {"segment_clips": folder.segment_clips, **tables.get("sampling", {})}}


def _answered(how: Recipe, model: Any, split: Split, sampling: Mapping[str, Any]) -> Run:
    """A model's answers, with those settings of its batches that answering asks for too."""
    known = signature(how.run).parameters
    options = {name: value for name, value in sampling.items() if name in known}
    return cast("Callable[..., Run]", how.run)(model, split, **options)


def _sampling(about: Description, folder: FeatureFolder) -> dict[str, Any]:
    """How a model's batches were made; what its folder does not say of segments is as in the features."""
    return {"segment_clips": folder.segment_clips, **(about.extra.get("settings", {}).get("sampling") or {})}


def _same_encoder(model: Path, about: Description, folder: FeatureFolder) -> None:
    """Raises :class:`EncoderMismatch` if the model learned from another encoder's features."""
    name, revision = folder.encoder
    theirs = about.extra.get("encoder", name), about.extra.get("encoder_revision", revision)
    if theirs != (name, revision):
        raise EncoderMismatch(
            f"{model}: trained on features of {theirs[0]} (revision {theirs[1]}), but these are of {name} "
            f"(revision {revision}); give features of the same encoder, or train anew"
        )
    if about.extra.get("unit", folder.unit) != folder.unit:
        kinds = {True: "rows of length 1", False: "raw rows"}
        raise EncoderMismatch(
            f"{model}: trained on {kinds[not folder.unit]}, but these features are read as "
            f"{kinds[folder.unit]}; write them anew, as for training (--raw)"
        )


_SIZES = ("visual_size", "subtitle_size", "query_size", "hidden_size", "clip_seconds")
"""Settings of models that must be those of the features."""


def _same_sizes(model: Path, about: Description, how: Recipe, split: Split) -> None:
    """Raises :class:`EncoderMismatch` if the model is for features of other sizes, or other clips."""
    ours = {"clip_seconds": split.clips.clip_seconds, **how.sized(split.sizes)}
    theirs = {"clip_seconds": about.extra.get("clip_seconds", ours["clip_seconds"]), **about.config}
    for name in _SIZES:
        if name in ours and theirs.get(name, ours[name]) != ours[name]:
            raise EncoderMismatch(
                f"{model}: a model with {name} {theirs[name]}, but these features ask for {ours[name]}; give "
                "those that it was trained on"
            )


@dataclass(frozen=True)
class _Stage1:
    """A trained segment retriever and how many clips its segments have; ``mark`` tells it from others."""

    model: SegmentRetriever
    segment_clips: int
    mark: str

    @classmethod
    def open(cls, path: Path, folder: FeatureFolder, device: str) -> _Stage1:
        from moviola.library.trained import revision_of
        from moviola.models.pretrained import from_pretrained, read_description
        from moviola.models.spr import SegmentRetriever

        about = read_description(path)
        model = from_pretrained(path, device, kind=SegmentRetriever)
        _same_encoder(path, about, folder)
        for what, dim in (("clips", folder.visual.dim), ("queries", folder.queries.dim)):
            if model.config.hidden_size != dim:
                raise EncoderMismatch(
                    f"{path}: a stage 1 for features of {model.config.hidden_size} numbers, but these "
                    f"{what} have {dim}; train one on these features, or give a run of another system as "
                    "--candidates"
                )
        return cls(model, int(_sampling(about, folder)["segment_clips"]), revision_of(path))

    def give(self, part: str, split: Split) -> Any:
        """A part of a split: ``proposals`` or ``first_stage``."""
        from moviola.training.segments import propose_for, video_scores

        gives: dict[str, Callable[..., Any]] = {"proposals": propose_for, "first_stage": video_scores}
        return gives[part](self.model, split, segment_clips=self.segment_clips)


@dataclass(frozen=True)
class _Candidates:
    """What another system found, and what tells it from other runs."""

    run: Run
    mark: str

    @classmethod
    def open(cls, path: Path) -> _Candidates:
        from hashlib import sha256

        from moviola.measures import read_run

        run = read_run(path)
        return cls(run, sha256(path.read_bytes()).hexdigest()[:16])

    def give(self, part: str, split: Split) -> Any:
        """A part of a split: ``proposals`` or ``first_stage``."""
        from moviola.training.segments import candidate_proposals, candidate_scores

        gives: dict[str, Callable[..., Any]] = {
            "proposals": candidate_proposals, "first_stage": candidate_scores,
        }  # fmt: skip
        return gives[part](self.run, split)


def _before(
    name: str, how: Recipe, folder: FeatureFolder, device: str, stage1: Path | None, candidates: Path | None
) -> _Stage1 | _Candidates | None:
    """What the recipe builds on, if it needs something: one of a trained stage 1 and another system's run."""
    given = (stage1 is not None) + (candidates is not None)
    if given and not how.needs:
        raise InvalidValue(
            f"{name}: searches the videos itself; leave {'--stage1' if stage1 else '--candidates'} out"
        )
    if given > 1:
        raise InvalidValue(f"{name}: builds on one of both; give --stage1 or --candidates, not both")
    if how.needs and not given:
        raise InvalidValue(
            f"{name}: needs the {' and '.join(sorted(how.needs)).replace('_', ' ')} of a stage 1; train "
            "spr-stage1 and give its folder as --stage1, or a run of another system as --candidates"
        )
    if candidates is not None:
        return _Candidates.open(candidates)
    return None if stage1 is None else _Stage1.open(stage1, folder, device)


def _completed(how: Recipe, split: Split, before: _Stage1 | _Candidates | None) -> Split:
    """The split with what the recipe needs of what it builds on."""
    if before is None:
        return split
    found: dict[str, Any] = {part: before.give(part, split) for part in how.needs}
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
    stage1: SegmentRetriever | None,
    **options: Any,
) -> Trained:
    from moviola.models.spr import SprClip
    from moviola.training.recipes import train

    def start(model: Any) -> None:
        # SPR's CLIP refiner goes on from the towers of its stage 1 (SPR, section 3.3.2).
        if isinstance(model, SprClip) and stage1 is not None:
            model.start_from(stage1)

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
