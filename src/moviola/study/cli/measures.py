"""``moviola evaluate`` and ``compare``: measures of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from typer import Argument, Context, Option, Typer

from moviola.cli.app import JsonOption, emit_json, note, show_records, show_table, some
from moviola.cli.options import refuse_given
from moviola.errors import DataError, InvalidValue, MoviolaError, counted
from moviola.study.cli import STUDIES

if TYPE_CHECKING:
    from moviola.study.measures import Qrels, Run

T = TypeVar("T")

commands = Typer()
"""What this module adds to ``moviola``."""

DEFAULT_MEASURES = ["nDCG@20,IoU>=0.3", "nDCG@20,IoU>=0.5", "nDCG@20,IoU>=0.7"]

MeasureOption = Annotated[
    list[str] | None,
    Option("--measure", "-m", help="A measure: 'nDCG@20,IoU>=0.5', 'R@5,IoU>0.7', 'AxIoU@10'; repeatable."),
]
PresetOption = Annotated[
    str | None, Option(help="Rules of a release: tvr_ranking or spr (moments of zero length count).")
]
RunFormatOption = Annotated[
    str | None,
    Option(help="Format of the file; by default detected. trec_rank: a TREC run in the order of its ranks."),
]

_NOT_WITH_TVR = ("measure", "preset", "per_query", "run_format")


@commands.command(rich_help_panel=STUDIES, short_help="Score a run against judgements.")
def evaluate(
    context: Context,
    run: Annotated[Path, Argument(help="Ranked moments: JSON, JSON lines, CSV, TVR, QVHighlights or TREC.")],
    qrels: Annotated[Path, Argument(help="Judgements, in any of the formats.")],
    measure: MeasureOption = None,
    preset: PresetOption = None,
    tvr: Annotated[
        str,
        Option(
            metavar="TASK",
            help="Recall by the rules of TVR's evaluator, for a run of VCMR, SVMR or VR (a submission names "
            "its tasks itself); QRELS are TVR's annotations (jsonl).",
            show_default=False,
        ),
    ] = "",
    per_query: Annotated[bool, Option("--per-query", help="Print the values of every query, too.")] = False,
    run_format: RunFormatOption = None,
    json: JsonOption = False,
) -> None:
    """Score a run against judgements.

    Every judged query with a relevant moment counts; one that is missing from the run scores 0 and is named.
    AUROC, Rej-F1 and G-mIoU also count queries that were judged to have no relevant moment. A measure that
    counts no query has no value (–, in JSON null).

    Example: `moviola evaluate run.json test.json -m "nDCG@20,IoU>=0.5" -m "R@5,IoU>0.7"`

    Queries without an answer: `moviola evaluate run.json test.json -m AUROC -m "Rej-F1,score<=0.5"`

    By TVR's rules: `moviola evaluate videos.jsonl tvr_val_release.jsonl --tvr VR`

    From Python: `moviola.study.measures.evaluate`; with --tvr `moviola.study.measures.tvr_recall`.
    """
    from moviola.study import measures as m

    if tvr:
        refuse_given(context, _NOT_WITH_TVR, "not with --tvr, whose rules, files and measures are its own")
        submission, truth = m.read_tvr_files(run, qrels, tvr.upper())
        recall = m.tvr_recall(submission, truth)
        cells = [(name, *map(str, pair)) for name, values in recall.items() for pair in values.items()]
        show_records(json, recall, ("task", "measure", "value"), cells)
        _note_unmatched(*m.unmatched_queries(submission, truth))
        return
    (ranked,), judged = _read_all([run], qrels, run_format, preset, "RUN QRELS, the run first")
    results = m.evaluate(ranked, judged, measure or DEFAULT_MEASURES, preset)
    means = {name: value if results.counts[name] else None for name, value in results.measures.items()}
    by_query: dict[str, dict[str, float]] = {}  # NaN where the measure does not count the query
    if per_query:
        for query, *values in zip(results.query_ids, *results.per_query.values(), strict=True):
            by_query[query] = dict(zip(results.per_query, map(float, values), strict=True))
    _note_other_videos(ranked, judged, run, qrels)
    _note_ranks(run, run_format)
    if json:
        fields = ("measures", "queries", "counts", "missing", "extra")
        document = {field: getattr(results, field) for field in fields} | {"measures": means}
        emit_json(document | ({"per_query": by_query} if per_query else {}))
        return
    alike = len(set(results.counts.values())) == 1  # then the title has the number of queries
    columns = ("measure", "value") if alike else ("measure", "value", "queries")
    rows = [
        (name, "–" if mean is None else f"{mean:.4f}", str(results.counts[name]))[: len(columns)]
        for name, mean in means.items()
    ]
    show_table(columns, rows, title=counted(results.queries, "query"))
    if per_query:
        cells = [
            (query, *("" if math.isnan(value) else f"{value:.4f}" for value in row.values()))
            for query, row in by_query.items()
        ]
        show_table(("query", *results.per_query), cells, title="per query")
    _note_unmatched(results.missing, results.extra)


def _read_all(
    runs: Sequence[Path], qrels: Path, run_format: str | None, preset: str | None, order: str
) -> tuple[list[Run], Qrels]:
    """Runs and judgements; where one is given in the place of the other, the error says the order."""
    from moviola.study import measures as m

    def read(path: Path, wanted: Callable[[Path], T], other: Callable[[Path], object], is_other: str) -> T:
        try:
            return wanted(path)
        except DataError as error:
            try:
                other(path)
            except MoviolaError:  # it is neither
                raise error from None
            raise InvalidValue(f"{path}: {is_other}; give {order}") from None

    as_run = partial(m.read_run, preset=preset)
    as_qrels = partial(m.read_qrels, preset=preset)
    judged = read(qrels, as_qrels, as_run, "a run, where the judgements are expected")
    as_given = partial(m.read_run, format=run_format, preset=preset)
    ranked = [read(one, as_given, as_qrels, "judgements, where a run is expected") for one in runs]
    return ranked, judged


def _note_other_videos(run: Run, judged: Qrels, path: Path, qrels: Path) -> None:
    """Print that no video of a run is judged; where some are, the others may rightly have no judgement."""
    if run.video_ids and judged.video_ids and not set(run.video_ids) & set(judged.video_ids):
        note(
            f"{path}: no video of the run is judged; it names {run.video_ids[0]}, {qrels} for instance "
            f"{judged.video_ids[0]}; give the run the ids of the judgements"
        )


def _note_ranks(run: Path, format: str | None) -> None:
    """Print that a run was ranked by its scores though its ranks differ."""
    from moviola.study import measures as m

    if format is None and m.ranks_disagree(run):
        note(
            f"{run}: ranked by its scores, which disagree with its ranks; --run-format trec_rank takes these"
        )


def _note_unmatched(missing: tuple[str, ...], extra: tuple[str, ...], run: str = "the run") -> None:
    for queries, what in (
        (missing, f"judged, but missing from {run}"),
        (extra, f"in {run}, but not judged (they do not count)"),
    ):
        if queries:
            note(f"{counted(len(queries), 'query')} {what}: {some(queries, 10)}")


@commands.command(rich_help_panel=STUDIES, short_help="Compare runs: differences, intervals, p values.")
def compare(
    runs: Annotated[
        list[Path], Argument(metavar="RUN RUN … QRELS", help="Runs, baseline first; judgements.")
    ],
    measure: MeasureOption = None,
    preset: PresetOption = None,
    run_format: RunFormatOption = None,
    trials: Annotated[int, Option(min=1, help="Number of permutations and of bootstrap samples.")] = 10_000,
    seed: Annotated[int, Option(min=0, help="Random seed of both.")] = 0,
    json: JsonOption = False,
) -> None:
    """Compare runs with the first one: difference, 95 % interval, and p values of two paired tests.

    It needs SciPy, which `moviola[studies]` and `moviola[train]` bring.

    Example: `moviola compare baseline.json refined.json test.json -m "nDCG@20,IoU>=0.5"`

    From Python: `moviola.study.measures.compare`.
    """
    from moviola.study import measures as m

    if len(runs) < 3:
        raise InvalidValue(
            f"{counted(len(runs), 'file')} given: give at least two runs and, last, the judgements"
        )
    *paths, qrels = runs
    if again := [path for path in paths if paths.count(path) > 1]:
        raise InvalidValue(f"{again[0]}: is given twice; give each run once")
    order = "RUN RUN … QRELS, the baseline first and the judgements last"
    read, judged = _read_all(paths, qrels, run_format, preset, order)
    names = [str(m.Measure.parse(name)) for name in measure or DEFAULT_MEASURES]
    ranked = dict(zip(map(str, paths), read, strict=True))
    found = {path: m.evaluate(run, judged, names, preset) for path, run in ranked.items()}
    baseline, *others = found
    rows = [
        (other, m.compare(found[baseline], found[other], name, trials=trials, seed=seed))
        for name in names
        for other in others
    ]
    cells = (
        (
            (row.measure, Path(other).name), f"{row.first:.3f} → {row.second:.3f}",
            f"{row.low:+.3f} to {row.high:+.3f}", f"{row.wins}/{row.losses}", f"{row.permutation:.3g}",
            f"{row.t:.2g}",
        )
        for other, row in rows
    )  # fmt: skip
    records = [{"baseline": baseline, "run": other} | asdict(row) for other, row in rows]
    columns = ("measure, run", "means", "difference, 95 %", "+/-", "p perm.", "p t")
    title = f"against {Path(baseline).name}, {counted(found[baseline].queries, 'query')}"
    show_records(json, records, columns, cells, title=title)
    for path, results in found.items():
        _note_other_videos(ranked[path], judged, Path(path), qrels)
        _note_ranks(Path(path), run_format)
        _note_unmatched(results.missing, results.extra, path)
