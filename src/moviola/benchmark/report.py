"""The report of a comparison: Markdown, CSV and a figure, from what the jobs wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moviola.benchmark.findings import OVER, Findings
from moviola.benchmark.plan import MODELS, Preset, jobs
from moviola.benchmark.run import Bench
from moviola.benchmark.tables import NAMES, TABLES
from moviola.errors import InvalidValue
from moviola.measures.figures import lines, save

__all__ = ["write_report"]


def write_report(
    bench: Bench, preset: Preset, out: Path, *, title: str, tell: Callable[[str], None] = print
) -> Path:
    """Write ``report.md``, a CSV per table, named in :data:`TABLES`, and the figure.

    Args:
        bench: a comparison whose jobs are done; rows of missing jobs are left out, and named.
        preset: what was planned.
        out: the report's folder.
        title: its first line.
        tell: told what is being done.

    Returns:
        the Markdown file.

    Raises:
        InvalidValue: the stage 1 that everything is compared with is not trained yet.
    """
    found = Findings(bench, preset)
    if not found.done(found.first):
        raise InvalidValue(
            f"{bench.out}: {found.first} is not trained yet, and no table can do without; "
            "run the comparison first"
        )
    out.mkdir(parents=True, exist_ok=True)
    tables = {}
    for name, make in TABLES.items():
        tell(f"table: {name}")
        tables[name] = make(found)
        tables[name].write_csv(out / f"{name}.csv")
    _figure(found, out / "ndcg.png")
    text = [f"# {title}", "", _about(found), "", "![NDCG@20 over overlap](ndcg.png)", ""]
    path = out / "report.md"
    path.write_text("\n".join(text) + "\n" + "\n".join(table.markdown() for table in tables.values()))
    return path


def _about(found: Findings) -> str:
    world, preset = found.bench.world, found.preset
    missing = [job.name for job in jobs(preset) if not found.done(job.name)]
    counts = {name: len(world.videos(name)) for name in ("train", "val", "test")}
    return (
        f"Gridhouse, {preset.videos} films (seed {preset.seed}): {counts['train']} for training, "
        f"{counts['val']} to choose by, {counts['test']} to test on, each split searched and judged alone. "
        f"{len(found.test.queries)} test queries, {len(found.test.pairs) / len(found.test.queries):.1f} "
        f"relevant moments each. Frames once a second by `{world.features.facts.encoder}`; all models see "
        f"the same features. Stage 1 retrieves {found.bench.segments} segments of 4 s. Sizes and steps are "
        "cut to what two CPU cores can train; every model's settings are in its folder's config.json."
        + (f" Not trained, and missing below: {', '.join(missing)}." if missing else "")
    )


def _figure(found: Findings, path: Path) -> None:
    """NDCG@20 of all models over the overlap that counts as found."""
    rows = {"SP (coarse)": [found.coarse().measures[name] for name in OVER]}
    for model in MODELS:
        name = f"{model}-n{found.preset.top}"
        if found.done(name):
            values = found.bench.result(name)["test"]
            rows[NAMES[model]] = [values[measure] for measure in OVER]
    save(lines((0.3, 0.5, 0.7), rows, "Gridhouse test queries", "IoU threshold", "NDCG@20"), path)
