"""``moviola train``: models trained on the features of a library, or on features of files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from typer import Argument, BadParameter, Context, Option, Typer

from moviola.cli.app import JsonOption, note, show, some
from moviola.cli.options import DEFAULT_LIBRARY, DeviceOption, LibraryOption, on_command_line, out_option
from moviola.cli.progress import progress_bar
from moviola.errors import DataError, counted
from moviola.files.toml import read_toml
from moviola.study.cli import STUDIES
from moviola.study.training.recipes import RECIPES

if TYPE_CHECKING:
    from moviola.study.datasets.annotations import Flaw
    from moviola.study.measures import Run
    from moviola.study.training.data import Split
    from moviola.study.training.first_stage import UnusableCandidates
    from moviola.study.training.loop import LoopConfig

commands = Typer()
"""What this module adds to ``moviola``."""

# Moments a query that the measures of val look at.
_DEPTH = 40

FeaturesOption = Annotated[
    Path | None, Option(help="Folder of features from `moviola features`, instead of the library.")
]
Stage1Option = Annotated[
    Path | None, Option(help="Folder of a trained stage 1, on which refiners and conquer build.")
]
CandidatesOption = Annotated[
    Path | None, Option(help="Instead of --stage1: a run of another system for these queries.")
]
MergeOption = Annotated[
    str | None,
    Option(
        help="Which segments of --stage1 merge. apart: in small libraries the best apart from the others, as "
        "search does. paper: all, as in SPR."
    ),
]
_LIST = "JSON list of ids, video_corpus.json, or FILE:SPLIT, as splits.json:val; by default"
VideosOption = Annotated[str | None, Option(help=f"Videos to search: {_LIST} all.")]


@commands.command(rich_help_panel=STUDIES, short_help="Train a model on features.")
def train(
    context: Context,
    name: Annotated[str, Argument(help=f"The model: {', '.join(RECIPES)}.")],
    train_pairs: Annotated[Path, Option("--train", help="TVR-Ranking pair file to learn from.")],
    val_pairs: Annotated[Path, Option("--val", help="TVR-Ranking pair file that selects the weights.")],
    out: Annotated[Path, out_option("New folder for the model, its card and its log.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    features: FeaturesOption = None,
    top: Annotated[int | None, Option(min=1, help="Moments per query, the first in the file.")] = None,
    train_videos: Annotated[str | None, Option(help=f"Videos of train: {_LIST} its own.")] = None,
    val_videos: Annotated[str | None, Option(help=f"Videos of val: {_LIST} all.")] = None,
    stage1: Stage1Option = None,
    candidates: Annotated[
        list[Path] | None,
        Option(
            help="Instead of --stage1: a run of another system for the queries of train and of val; given "
            "twice, the first is for train, the second for val."
        ),
    ] = None,
    merge: MergeOption = None,
    data_set: Annotated[
        str, Option(help="Data set of settings: tvr, charades, didemo, activitynet.")
    ] = "tvr",
    config: Annotated[
        Path | None, Option(help="Settings in TOML: tables model, loop, sampling, or the name of a phase.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set", help="A setting, TABLE.NAME=VALUE: loop.steps=100, model.hidden_size=128; repeatable."
        ),
    ] = None,
    seed: Annotated[int | None, Option(min=0, help="Random seed; 0 by default.")] = None,
    device: DeviceOption = "cpu",
    resume: Annotated[bool, Option("--resume", help="Continue an interrupted training.")] = False,
    json: JsonOption = False,
) -> None:
    """Train a model on features; the best weights on val are kept, with a card and a log.

    A refiner is calibrated on val: its scores in `moviola search` are probabilities of being right. What the
    library finds without it for the queries of val is measured too.

    Settings are those of the model's paper unless given. Of loop.epochs and loop.steps the smaller ends a
    training. A schedule ends with the last step: fewer steps are a faster schedule, not the beginning of a
    longer one.

    Queries of val are searched in all videos, as in TVR-Ranking. Where splits have their own videos, as in
    gridhouse, give --val-videos splits.json:val.

    Example: `moviola train reel-stage1 --library lib --train world/train_top20.json --val world/val.json
    --val-videos world/splits.json:val --out stage1`

    On features of files: `moviola train reel --features feat --train train_top20.json --val val.json
    --stage1 stage1 --out reel --set loop.epochs=10 --set model.hidden_size=128`

    From Python: `moviola.study.training.experiment.Experiment`.
    """
    from moviola.library import open_features
    from moviola.library.disk.models_in_use import JUDGED
    from moviola.study.training.experiment import Experiment

    runs = candidates or []
    if len(runs) > 2:
        raise BadParameter(f"--candidates {runs[2]}: give one run, or one for train and one for val")
    own = [] if seed is None else [f"loop.seed={seed}"]
    if config is None or on_command_line(context, "device"):  # else the device is that of the file
        own.append(f"loop.device={device}")
    experiment = Experiment.prepare(
        name, open_features(features or library), train=train_pairs, val=val_pairs, top=top,
        train_videos=video_ids(train_videos), val_videos=video_ids(val_videos), stage1=stage1,
        candidates=runs[0] if runs else None, val_candidates=runs[1] if runs[1:] else None,
        merge=merge or "apart", data_set=data_set,
        settings=_tables(config), overrides=[*own, *(set_ or ())],
    )  # fmt: skip
    val = experiment.val
    learnable = "videos of --train-videos" if train_videos else "videos with features"
    note_left_out(train_pairs, experiment.learned.pairs.left_out, learnable)
    note_left_out(val_pairs, val.pairs.left_out, counted(len(val.features), "searched video"))
    note_unusable(experiment.unusable)
    _note_flaws(train_pairs, experiment.learned.flaws)
    _note_flaws(val_pairs, val.flaws)
    if experiment.shared:
        shared = f"{experiment.shared:,} of its {counted(len(val.features), 'video')}"
        note(f"val: {shared} used for training too; --val-videos keeps them apart")
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with progress_bar(*columns, remedy="the same command with --resume continues") as bar:
        shown = _shown_on(bar, list(experiment.settings.loops.values()))
        trained = experiment.train(
            out, resume=resume, progress=shown,
            search=partial(_searched, library) if features is None else None,
        )  # fmt: skip
    found = trained.facts
    about = {"out": str(out)} | {key: found[key] for key in ("val", "steps", "best_step", "seconds")}
    show(json, about, *(f"{measure}  {value:.4f}" for measure, value in found["val"].items()))
    if json:
        return
    note(
        f"{trained.folder}: {name}, best of {counted(found['steps'], 'step')} after {found['best_step']:,}, "
        f"{found['seconds']:.1f} s of training"
    )
    if "search_on_val" in found:
        note(f"the library's own search on val: {JUDGED} {found['search_on_val'][JUDGED]:.4f}")
    if trained.calibrated is False:
        note(
            f"{trained.folder}: not calibrated: on val its scores do not separate right from wrong answers; "
            "`moviola search` compares them with chance"
        )


def _searched(library: Path, split: Split) -> Run:
    """The answers of a library's own search, with the models that it uses, to the queries of a split."""
    from moviola.search import Library, SearchOptions
    from moviola.study.measures import Run
    from moviola.types import Query

    queries = [Query(*one) for one in zip(split.pairs.query_ids, split.pairs.texts, strict=True)]
    chosen = SearchOptions(top_k=_DEPTH, videos=split.features.video_ids)
    with Library(library, read_only=True) as opened:
        answers = opened.search_many(queries, chosen)
    rows = [
        (query.query_id, moment.video_id, moment.start, moment.end, moment.score)
        for query, moments in zip(queries, answers, strict=True)
        for moment in moments
    ]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Run.from_columns(*columns, queries=[query.query_id for query in queries], ranked=True)


def note_left_out(path: Path, left_out: int, videos: str) -> None:
    """Print how many moments of a pair file do not count, since they are in none of these videos."""
    if left_out:
        note(f"{path}: left out: {counted(left_out, 'moment')} outside the {videos}")


def note_unusable(unusable: UnusableCandidates) -> None:
    """Print which videos and moments of another system's run do not count."""
    if videos := unusable.videos:
        note(f"candidates: left out: {counted(len(videos), 'video')} without features ({some(videos)})")
    if unusable.past_end:
        note(
            f"candidates: left out: {counted(unusable.past_end, 'moment')} past the end of the video; are "
            "times in seconds, and features of the whole video?"
        )


def _note_flaws(path: Path, flaws: Sequence[Flaw]) -> None:
    """Print how many flaws of each kind a pair file has, as `moviola dataset stats`; they stay in."""
    for kind, count in Counter(flaw.kind for flaw in flaws).items():
        first = next(flaw.where for flaw in flaws if flaw.kind == kind)
        note(f"{path}: {kind}: {count:,} (first: query {first}); correct them, or leave them out")


def _tables(path: Path | None) -> Mapping[str, Any]:
    tables = read_toml(path) if path else {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise DataError(f"{path}: {name} = {table!r} is in no table; put it under [loop] or [model]")
    return tables


def video_ids(choice: str | None) -> list[str] | None:
    """Ids that an option such as ``--videos`` names; None for all."""
    from moviola.study.datasets.readers import read_videos

    return None if choice is None else read_videos(choice)


def _shown_on(bar: Progress, loops: Sequence[LoopConfig]) -> Callable[[int, int, Mapping[str, float]], None]:
    """Shows steps of training on a bar, and prints a line per evaluation, with the measure that selects.

    Also prints once where the epochs end a training before its number of steps does.
    """
    task, loss, noted = bar.add_task("training", total=None), 0.0, False
    selects = {loop.select for loop in loops}
    fewest = min(loop.steps or 0 for loop in loops)

    def shown(step: int, total: int, values: Mapping[str, float]) -> None:
        nonlocal loss, noted
        if total < fewest and not noted:
            noted = True
            note(f"loop.epochs ends it after {total:,} steps, before the {fewest:,} of loop.steps; give more")
        chosen = [select for select in selects if select in values]
        if chosen:
            note(f"step {step:,} of {total:,}: loss {loss:.4f}, {chosen[0]} {values[chosen[0]]:.4f}")
        else:
            loss = sum(values.values())
        bar.update(task, completed=step, total=total, description=f"loss {loss:.3f}")

    return shown
