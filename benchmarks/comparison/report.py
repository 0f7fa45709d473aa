"""The report of a comparison: Markdown, CSV and figures, from what finished pieces wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from comparison.bench import Bench
from comparison.figures import OVER
from comparison.findings import Findings
from comparison.plan import CHOSEN_ON, WORLDS
from comparison.rows import ROWS, finished
from comparison.tables import TABLES
from measure_studies.figures import curves, lines, save
from moviola.errors import InvalidValue

__all__ = ["write_report"]


def write_report(bench: Bench, out: Path, *, title: str, note: Callable[[str], None] = print) -> Path:
    """Write ``report.md``, a CSV per table with rows, named in :data:`TABLES`, and the figures.

    Args:
        bench: a comparison; rows of pieces that are not done are left out, and named.
        out: the report's folder.
        title: its first line.
        note: called with what is being done.

    Returns:
        the Markdown file.

    Raises:
        InvalidValue: the stage 1 that everything is compared with is not trained yet.
    """
    found = Findings(bench)
    if not found.done(found.first):
        raise InvalidValue(
            f"{bench.out}: {found.first} is not trained yet, and no table can do without; "
            "run the comparison first"
        )
    out.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name, make in TABLES.items():
        note(f"table: {name}")
        if (table := make(found)).rows:
            tables[name] = table
            table.write_csv(out / f"{name}.csv")
    _overlaps(found, out / "ndcg.png")
    _learned(found, out / "curves.png")
    text = [
        f"# {title}", "", _about(found), "", "![NDCG@20 over overlap](ndcg.png)", "",
        "![Val over the steps of each training](curves.png)", "",
    ]  # fmt: skip
    path = out / "report.md"
    path.write_text("\n".join(text) + "\n" + "\n".join(table.markdown() for table in tables.values()))
    return path


def _about(found: Findings) -> str:
    world, preset = found.result(found.first)["world"], found.preset
    plan = found.bench.jobs()
    missing = [job.name for job in plan if not found.done(job.name)]
    counts, queries = world["videos"], preset.queries if preset.narrator else "all that were made"
    films = (
        f"all searched by the queries of each split, which are apart: {queries} for training"
        if WORLDS[preset.world].one_pool
        else f"{counts['train']} for training, with {queries} queries, {counts['val']} to choose "
        f"weights by, {counts['test']} to test on, each split searched and judged alone"
    )
    return (
        f"Gridhouse{' with a narrator' * preset.narrator}, {preset.videos} films (seed {preset.films}): "
        f"{films}. {world['queries']} test queries, {world['answers']:.1f} relevant moments each. Frames "
        f"once a second by `{world['encoder']}`{', subtitles by MiniLM' * preset.narrator}; all models see "
        f"the same features. Settings were chosen on 300 other films (seed {CHOSEN_ON}). Stage 1 retrieves "
        f"{preset.segments} segments of 4 s. Films, queries and sizes are cut to what two CPU cores can "
        "train; every model's settings are in its folder's config.json.\n\n"
        f"**{len(plan) - len(missing)} of {len(plan)} trainings are finished.**"
        + (f" Not trained yet, and missing below: {', '.join(missing)}." if missing else "")
    )


def _overlaps(found: Findings, path: Path) -> None:
    """NDCG@20 of all models over the overlap that counts as found."""
    rows = {label: [found.test(job)[measure] for measure in OVER] for label, job in finished(found, ROWS)}
    save(lines((0.3, 0.5, 0.7), rows, "Gridhouse test queries", "IoU threshold", "NDCG@20"), path)


def _learned(found: Findings, path: Path) -> None:
    """Val over the steps of each main row, as a share of the row's budget."""
    rows = {}
    for label, job in finished(found, ROWS[1:]):
        phase = found.result(job)["phases"][-1]
        rows[label] = [(row[0] / phase["steps"], row[2]) for row in phase["curve"]]
    save(curves(rows, "Val while training", "share of the budget of steps", OVER[1]), path)
