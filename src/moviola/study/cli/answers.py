"""``moviola answer``: a file of queries, answered by a search of the library or by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from typer import Argument, Context, Option, Typer

from moviola.cli.app import JsonOption, leave_partial, note, show
from moviola.cli.asking import field_options
from moviola.cli.config import usual_device
from moviola.cli.options import (
    DEFAULT_LIBRARY,
    LibraryOption,
    reading,
    refuse_given,
    with_options,
)
from moviola.cli.progress import progress_bar
from moviola.errors import InvalidValue, MoviolaError, counted
from moviola.files.writing import draft_of, require_unread
from moviola.search.filters import FILTERS
from moviola.search.options import SearchOptions
from moviola.study.cli import STUDIES
from moviola.study.cli.train import (
    CandidatesOption,
    FeaturesOption,
    MergeOption,
    Stage1Option,
    VideosOption,
    note_left_out,
    note_unusable,
    video_ids,
)

if TYPE_CHECKING:
    from moviola.study.measures import Run
    from moviola.study.training.answering import Answer

commands = Typer()
"""What this module adds to ``moviola``."""

# Queries that are encoded together.
_AT_ONCE = 32
_SEARCH_OPTIONS = field_options(without=["videos", "check", *FILTERS])
_MODEL_ONLY = ("features", "stage1", "candidates", "merge", "judgements", "task", "suppress_above")


def _model(help: str, **more: Any) -> Any:
    return Option(help=help, rich_help_panel="With --model", **more)


@commands.command(rich_help_panel=STUDIES, short_help="Answer a file of queries, as a run.")
@with_options("options", _SEARCH_OPTIONS)
def answer(
    context: Context,
    queries: Annotated[Path, Argument(help="Queries: TVR-Ranking JSON, or one query per line.")],
    options: dict[str, Any],
    out: Annotated[Path, Option("--out", "-o", help="Run file: .json, .jsonl, .csv, or .trec (.txt, too).")],
    library: LibraryOption = DEFAULT_LIBRARY,
    videos: VideosOption = None,
    model: Annotated[Path | None, _model("Folder of a trained model, in place of a search.")] = None,
    features: FeaturesOption = None,
    stage1: Stage1Option = None,
    candidates: CandidatesOption = None,
    merge: MergeOption = None,
    judgements: Annotated[
        Path | None, _model("File for the judgements of the searched videos (.json, .csv).")
    ] = None,
    task: Annotated[
        str, _model("vcmr: moments of all videos; svmr: of the one video that answers; vr: whole videos.")
    ] = "vcmr",
    suppress_above: Annotated[
        float,
        _model(
            "Overlap (IoU) above which the worse of two refined moments is dropped; 1 keeps all.",
            min=0,
            max=1,
        ),
    ] = 0.5,
    json: JsonOption = False,
) -> None:
    """Answer every query of a file, and write the ranked moments as a run for `moviola evaluate`.

    Without --model the library is searched, as by `moviola search`, with the models that it uses. With
    --model a trained model answers from the library's features, or from --features; its queries come from a
    TVR-Ranking pair file, and --judgements receives the judgements that count in the searched videos.

    Example: `moviola answer test.json --out run.json --top-k 100`

    A query that cannot be answered, for instance with the @name of a concept that is not there, is named and
    has no moments; the exit code is then 3, as where --candidates has videos without features.

    A trained model: `moviola answer world/test.json --model reel --stage1 stage1 --videos
    world/splits.json:test --out run.jsonl --judgements judged.json`

    On features of files: `moviola answer test.json --model conquer --features feat --candidates other.trec
    --out run.jsonl`

    From Python: `moviola.Library.search_many`; `moviola.study.training.answering.answer`, and
    `moviola.study.measures.write_run`.
    """
    files = [file for file in (out, judgements) if file is not None]
    for file in files:
        require_unread(file, queries, candidates)
    if judgements is not None and out.resolve() == judgements.resolve():
        raise InvalidValue(f"{out}: given for the run and for the judgements; name two files")
    if features is None:
        with reading(library) as lib:
            for file in files:
                lib.store.require_outside(file)
    unknown: Sequence[str] = ()
    past_end = 0
    if model is None:
        refuse_given(context, _MODEL_ONLY, "only together with --model")
        limits = {"videos": video_ids(videos)} if videos else {}
        run, refused = _search_all(library, queries, out, SearchOptions.parse(options | limits))
        measures = {}
    else:
        only = [option.name for option in _SEARCH_OPTIONS]
        refuse_given(context, only, "an option of searches; leave it out with --model")
        found = _answer_by_model(
            model, features or library, queries, out, judgements, task=task, videos=video_ids(videos),
            stage1=stage1, candidates=candidates, merge=merge, suppress_above=suppress_above,
        )  # fmt: skip
        run, refused, measures = found.run, {}, dict(found.figures)
        unknown, past_end = found.unusable.videos, found.unusable.past_end
    for query_id, reason in refused.items():
        note(f"query {query_id} is not answered: {reason}")
    counts = {"queries": len(run.query_ids), "moments": len(run)}
    about = {
        "measures": measures,
        "refused": refused,
        "unknown_videos": list(unknown),
        "moments_past_end": past_end,
    }
    show(
        json, {"out": str(out), **counts, **about},
        f"{out}: {counted(counts['queries'], 'query')}, {counted(counts['moments'], 'moment')}",
        *(f"{measure}  {value:.4f}" for measure, value in measures.items()),
    )  # fmt: skip
    if refused or unknown or past_end:
        leave_partial()


def _answer_by_model(
    model: Path, features: Path, queries: Path, out: Path, judgements: Path | None, **how: Any
) -> Answer:
    """Answer every query by a model, note what does not count, and write the run, and the judgements."""
    from moviola.library import open_features
    from moviola.study.measures.output_formats import write_qrels, write_run
    from moviola.study.training import answering

    if queries.suffix == ".txt":
        raise InvalidValue(
            f"{queries}: --model takes no plain queries; give a TVR-Ranking pair file (JSON), as "
            "`moviola dataset convert --pairs` writes"
        )
    found = answering.answer(model, open_features(features), queries, device=usual_device(), **how)
    if found.other_stage1:
        note(f"{model}: {found.other_stage1}")
    note_left_out(queries, found.left_out, counted(found.videos, "searched video"))
    note_unusable(found.unusable)
    write_run(found.run, out)
    if judgements is not None:
        write_qrels(found.qrels, judgements)
    return found


def _search_all(
    library: Path, queries: Path, out: Path, options: SearchOptions
) -> tuple[Run, dict[str, str]]:
    """Search for every query and write the run; returns it, and why queries are not answered, by id."""
    from moviola.study.datasets.readers.queries import read_queries
    from moviola.study.measures import Run, write_run
    from moviola.study.measures.output_formats import format_of

    texts, format = read_queries(queries), format_of(out)  # before a search that may take long
    shown = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with draft_of(out) as draft, reading(library) as lib, progress_bar(*shown) as bar:
        rows, errors = [], dict[str, MoviolaError]()
        task = bar.add_task("searching", total=len(texts))
        for start in range(0, len(texts), _AT_ONCE):
            batch = texts[start : start + _AT_ONCE]
            refused = dict[int, MoviolaError]()
            answers = lib.search_many(batch, options, refuse=refused.__setitem__)
            errors |= {batch[place].query_id: error for place, error in refused.items()}
            for query, moments in zip(batch, answers, strict=True):
                rows += [(query.query_id, m.video_id, m.start, m.end, m.score) for m in moments]
            bar.update(task, advance=len(batch))
        if len(errors) == len(texts):
            raise next(iter(errors.values()))
        columns = list(zip(*rows, strict=True)) or [()] * 5
        run = Run.from_columns(*columns, queries=[query.query_id for query in texts], ranked=True)
        write_run(run, draft, format)
    return run, {query_id: str(error) for query_id, error in errors.items()}
