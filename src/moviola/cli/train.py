"""``moviola train`` and ``moviola answer``: training models on features, and letting them answer queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note, progress_bar
from moviola.errors import DataError, NotFound
from moviola.training.recipes import RECIPES

if TYPE_CHECKING:
    from moviola.training.experiment import Experiment, TrainedModel

__all__ = ["answer", "train"]

FeaturesOption = Annotated[
    Path, typer.Option(help="A library, or a folder of features from `moviola features`.")
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
    data_set: Annotated[
        str,
        typer.Option(help="Whose settings and lengths of moments: tvr, charades, didemo or activitynet."),
    ] = "tvr",
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

    From Python: `moviola.training.experiment.train_model`.
    """
    from moviola.library import open_features
    from moviola.training.experiment import Experiment

    experiment = Experiment.prepare(
        name, open_features(features), train=train_pairs, val=val_pairs, top=top,
        train_videos=_videos(train_videos), val_videos=_videos(val_videos),
        stage1=stage1, candidates=candidates, val_candidates=val_candidates,
        data_set=data_set, settings=_tables(config),
        overrides=[*(set_ or ()), *_loop(seed=seed, device=device)],
    )  # fmt: skip
    _tell_of_val(experiment, val_pairs)
    with _Bar(loop.select for loop in experiment.settings.loops.values()) as bar:
        trained = experiment.train(out, resume=resume, tensorboard=tensorboard, progress=bar)
    if json:
        keys = ("val", "steps", "best_step", "seconds")
        emit_json({"out": str(out), **{key: trained.facts[key] for key in keys}})
    else:
        _show(trained, name)


def _tell_of_val(experiment: Experiment, path: Path) -> None:
    """What one should know of val before the training begins."""
    val = experiment.val
    _tell_left_out(path, val.pairs.left_out, len(val.features))
    if experiment.shared:
        note(
            f"val: {experiment.shared:,} of its {len(val.features):,} videos are learned from as well; "
            "--val-videos keeps them apart"
        )


def _tell_left_out(path: Path, left_out: int, videos: int) -> None:
    if left_out:
        note(
            f"{path}: {left_out:,} of its moments are of other videos than the {videos:,} that are searched; "
            "they do not count"
        )


def _show(trained: TrainedModel, name: str) -> None:
    """Figures, and what they cost."""
    found = trained.facts
    for measure, value in found["val"].items():
        console.print(f"{measure}  {value:.4f}")
    note(
        f"{trained.folder}: {name}, best of {found['steps']:,} steps after {found['best_step']:,}, "
        f"{found['seconds']:.1f} s of training"
    )
    if trained.calibrated is False:
        note(
            f"{trained.folder}: not calibrated, as on val its scores do not tell right answers from wrong "
            "ones; `moviola search` sets them against chance"
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
    task: Annotated[
        str,
        typer.Option(
            help="vcmr: moments of all videos; svmr: of the one video that answers; vr: whole videos."
        ),
    ] = "vcmr",
    recipe_name: Annotated[
        str | None, typer.Option("--recipe", help="How it answers; by default what the model's folder says.")
    ] = None,
    suppress: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Of two refined moments of a video that overlap more (IoU) the better stays; 1 keeps all.",
        ),
    ] = 0.5,
    as_search: Annotated[
        bool, typer.Option("--as-search", help="Scores as `moviola search` shows them, not the model's own.")
    ] = False,
    device: DeviceOption = "cpu",
    json: JsonOption = False,
) -> None:
    """Let a trained model answer queries; the run that is written is one for `moviola evaluate`.

    Moments of videos that are not searched don't count in the figures shown; for the same ones from `moviola
    evaluate`, give it the file of --judgements.

    The release of SPR keeps all refined moments, which is --suppress 1.

    Example: `moviola answer reel --stage1 stage1 --features feat --queries world/test.json --videos
    world/splits.json:test --out run.jsonl --judgements judged.json`

    Example: `moviola answer conquer --candidates other.trec --features feat --queries test.json
    --out run.jsonl`

    Example: `moviola answer xml --features feat --queries test.json --task vr --out videos.jsonl`

    From Python: `moviola.training.experiment.answer`.
    """
    from moviola.library import open_features
    from moviola.measures.output_formats import write_qrels, write_run
    from moviola.training import experiment

    found = experiment.answer(
        model, open_features(features), queries, task=task, videos=_videos(videos), stage1=stage1,
        candidates=candidates,
        suppress_above=suppress, as_search=as_search, recipe_name=recipe_name, device=device,
    )  # fmt: skip
    _tell_left_out(queries, found.left_out, found.videos)
    write_run(found.run, out)
    if judgements is not None:
        write_qrels(found.qrels, judgements)
    asked, moments = len(found.run.query_ids), len(found.run)
    if json:
        emit_json({"out": str(out), "queries": asked, "moments": moments, "measures": dict(found.figures)})
        return
    console.print(f"{out}: {asked:,} queries, {moments:,} moments")
    for measure, value in found.figures.items():
        console.print(f"{measure}  {value:.4f}")


# ---- what the options name -------------------------------------------------------------------------------


def _loop(**given: Any) -> list[str]:
    """Settings of the loop that have options of their own."""
    return [f"loop.{name}={value}" for name, value in given.items() if value is not None]


def _tables(path: Path | None) -> Mapping[str, Any]:
    """Tables of settings."""
    from moviola.files.toml import read_toml

    if path is None:
        return {}
    if not path.is_file():
        raise NotFound(f"{path}: no such file; --config takes a TOML file")
    tables = read_toml(path)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise DataError(f"{path}: {name} = {table!r} stands in no table; put it under [loop] or [model]")
    return tables


def _videos(choice: str | None) -> list[str] | None:
    from moviola.training.data import read_videos

    return None if choice is None else read_videos(choice)


class _Bar:
    """Steps on standard error: a bar where that is a terminal, and a line per evaluation in any case."""

    def __init__(self, selects: Iterable[str]) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn

        self._selects, self._loss = list(selects), 0.0
        self._bar = progress_bar(BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._task = self._bar.add_task("training", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, step: int, total: int, values: Mapping[str, float]) -> None:
        chosen = [select for select in self._selects if select in values]
        if chosen:
            note(f"step {step:,} of {total:,}: loss {self._loss:.4f}, {chosen[0]} {values[chosen[0]]:.4f}")
        else:
            self._loss = sum(values.values())
        self._bar.update(self._task, completed=step, total=total, description=f"loss {self._loss:.3f}")
