"""The report of a comparison of index types: Markdown, CSV and figures, from the results of its pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isnan
from pathlib import Path
from typing import Any

from comparison.table import Row, Table
from measure_studies.figures import lines, save
from moviola.errors import InvalidValue
from moviola.files.writing import write_text
from scale.corpus import MEASURES
from scale.run import ScaleBench

__all__ = ["write_scale_report"]

Result = dict[str, Any]
KINDS = ("picture", "text")


def write_scale_report(bench: ScaleBench, out: Path) -> Path:
    """Write ``report.md``, a CSV per table and the figures, of all that was measured in the folder.

    Args:
        bench: where; pieces of its plan that are not done are named.
        out: the report's folder.

    Returns:
        the Markdown file.

    Raises:
        InvalidValue: nothing was measured yet.
    """
    done = bench.results()
    types = [result for result in done if result["piece"] != "stages"]
    later = [result for result in done if result["piece"] == "stages"]
    if not types:
        raise InvalidValue(f"{bench.work}: nothing measured yet; run the comparison first")
    out.mkdir(parents=True, exist_ok=True)
    makers = {"search": _search, "batches": _batches, "ndcg": _ndcg, "cost": _cost, "growth": _growth}
    tables = {name: make(types) for name, make in makers.items()}
    if later:
        tables["stages"] = _stages(types, later)
    for name, table in tables.items():
        table.write_csv(out / f"{name}.csv")
    _figures(types, out)
    text = ["# Types of index at the paper's sizes", "", _about(bench, done), "", _FIGURES, ""]
    text += [table.markdown() for table in tables.values()]
    path = out / "report.md"
    write_text(path, "\n".join(text))
    return path


_CLOCK = """\
where that is more than the cores, others were at work, and times on the clock say little. Every query is
answered by the type and by exact search (Flat) in turn, in one process, so only ratios within one row count;
processor time leaves out waiting for other processes, not that they empty the caches.""".replace("\n", " ")
_FIGURES = "![Processor time per query](latency.png)\n\n![NDCG against exact search](ndcg.png)"


def _about(bench: ScaleBench, done: Sequence[Result]) -> str:
    machine, preset = done[-1]["machine"], bench.preset
    busy = [result["machine"]["busy"] for result in done]
    pieces = bench.pieces()
    missing = [f"{kind} of {size:,}" for size, kind in pieces if not bench.result_file(size, kind).is_file()]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} thread(s), "
        f"{machine['system']}; faiss {machine['faiss']}, NumPy {machine['numpy']}. Load average "
        f"{min(busy):g} to {max(busy):g}: {_CLOCK}\n\n"
        f"Vectors are {done[-1]['made']}. Queries by picture are segments with noise and an offset; those by "
        f"text lie off all segments. {preset.queries} of each kind are judged, {preset.timed} of each asked "
        "one by one. `python benchmarks/compare_indexes.py` made this report; with `--again` it measures "
        "once more with the same indexes." + (f" Not measured: {', '.join(missing)}." if missing else "")
    )


def _name(result: Result) -> Row:
    return f"{result['segments']:,}", result["type"]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f}"


def _mb(size: float) -> str:
    return "–" if isnan(size) else f"{size:.0f}"


def _share(own: float, flat: float) -> str:
    if not (own > 0 and flat > 0):
        return "–"  # too little to be measured, or a system that does not say
    return f"1/{flat / own:.1f}" if own < flat else f"{own / flat:.1f} times"


def _search(results: Sequence[Result]) -> Table:
    rows = []
    for result in results:
        single = [result["single"][kind] for kind in KINDS]
        flat = result["type"] == "flat"
        rows.append((
            *_name(result), *(f"{result['recall'][kind]:.3f}" for kind in KINDS),
            *(f"{_ms(one['own']['cpu'])} / {_ms(one['own']['wall'])}" for one in single),
            *(
                "–" if flat else _share(one["own"][clock], one["flat"][clock])
                for clock in ("cpu", "wall")
                for one in single
            ),
        ))  # fmt: skip
    return Table(
        "One query",
        (
            "segments", "type", "recall@200 picture", "text", "picture, ms processor / clock", "text",
            "of Flat's, processor: picture", "text", "clock: picture", "text",
        ),
        rows,
        "The top 200; medians, the second time that each query is asked. Recall is the share of the 200 of "
        "exact search.",
    )  # fmt: skip


def _batches(results: Sequence[Result]) -> Table:
    rows = []
    for result in results:
        own, flat = result["batch"]["own"], result["batch"]["flat"]
        shares = [_share(own[clock], flat[clock]) for clock in ("cpu", "wall")]
        rows.append(
            (
                *_name(result), str(result["batch"]["queries"]), f"{own['cpu']:.2f}", f"{own['wall']:.2f}",
                *(("–", "–") if result["type"] == "flat" else shares),
            )
        )  # fmt: skip
    head = ("segments", "type", "queries", "s processor", "s clock", "of Flat's, processor", "clock")
    return Table(
        "A batch (SPR, Table 3, last column)", head, rows, "All queries in one call; the least time."
    )


def _ndcg(results: Sequence[Result]) -> Table:
    rows = [
        (*_name(result), kind, *(f"{result['ndcg'][kind][measure]:.4f}" for measure in MEASURES))
        for result in results
        for kind in KINDS
    ]
    return Table(
        "NDCG of coarse proposals (SPR, Table 3)",
        ("segments", "type", "queries", *(measure.removeprefix("nDCG") for measure in MEASURES)),
        rows,
        "Against the proposals of exact search: its first ten have grade 4, the next ten 3, 2 and 1, so Flat "
        "has 1. The paper judges by people's grades; there IVF keeps .90 to .96 of Flat's NDCG@20, and IVFPQ "
        ".16 to .23.",
    )


def _cost(results: Sequence[Result]) -> Table:
    rows = []
    flat = {result["segments"]: result["memory"]["peak_mb"] for result in results if result["type"] == "flat"}
    for result in results:
        own, build, segments = result["memory"], result["build"], result["segments"]
        size = result["bytes"]
        rows.append(
            (
                *_name(result), f"{size['scanned']} + {size['ranked']}", f"{size['disk']:.0f}",
                _mb(own["peak_mb"]), _share(own["peak_mb"], flat.get(segments, float("nan"))),
                f"{build['cpu']:.0f} / {build['wall']:.0f}", _mb(build["peak_mb"]),
                f"{own['open'] * 1e3:.0f}", f"{result['add']['cpu']:.2f} / {result['add']['wall']:.2f}",
            )
        )  # fmt: skip
    return Table(
        "What it takes",
        (
            "segments", "type", "bytes per segment, scanned + compared again", "on disk", "memory, MB",
            "of Flat's", "build, s processor / clock", "memory to build, MB", "open, ms",
            "add ten minutes, s processor / clock",
        ),
        rows,
        "Memory is the high water of a new process that opens the index and answers the queries that are "
        "timed, and of one that builds it, less what they took before. Ten minutes of video: open, add 150 "
        "segments, write.",
    )  # fmt: skip


def _growth(results: Sequence[Result]) -> Table:
    """How the time of a query grows with the library."""
    rows = []
    by = {(result["type"], result["segments"]): result for result in results}
    for result in sorted(results, key=lambda result: result["type"]):
        growth = result["growth"]
        if first := by.get((result["type"], growth.get("segments"))):
            times = [
                growth[kind]["own"]["cpu"] / max(growth[kind]["smallest"]["cpu"], 1e-9) for kind in KINDS
            ]
            rows.append(
                (
                    result["type"], f"{first['segments']:,} to {result['segments']:,}",
                    f"{result['segments'] / first['segments']:.2f}", *(f"{value:.2f}" for value in times),
                    *(f"{result['recall'][kind] - first['recall'][kind]:+.3f}" for kind in KINDS),
                )
            )  # fmt: skip
    return Table(
        "Growth",
        ("type", "segments", "times", "processor time, picture: times", "text", "recall, picture", "text"),
        rows,
        "Each library is asked in turn with the smallest one, in one process, the second time that both are "
        "asked the same.",
    )


def _stages(types: Sequence[Result], later: Sequence[Result]) -> Table:
    rows: list[Row] = []
    for stage in later:
        own = {result["type"]: result for result in types if result["segments"] == stage["segments"]}
        retrieval = {kind: result["single"]["text"]["own"]["cpu"] for kind, result in own.items()}
        fastest = min(filter(lambda kind: _finds(own[kind]), own), key=retrieval.__getitem__)
        refining = {name: taken["cpu"] for name, taken in stage["refining"].items()}
        systems = [(f"SP, {kind}", kind, None) for kind in own]
        systems += [
            (f"{name}, {kind}", kind, refining[name])
            for kind in dict.fromkeys(("flat", fastest))
            for name in refining
        ]
        before, between = stage["embedding"]["cpu"], stage["proposing"]["cpu"]
        for name, kind, after in systems:
            parts = (before, retrieval[kind], between, after)
            cells = ("–" if part is None else _ms(part) for part in parts)
            rows.append((f"{stage['segments']:,}", name, *cells, _ms(sum(filter(None, parts)))))
    return Table(
        "Stages of one query by text, ms of processor time (SPR, Table 2)",
        ("segments", "system", "query", "segments", "proposals", "refinement", "total"),
        rows,
        "Weights are random, since times do not depend on them: a text tower of 12 layers of 768 (that of "
        "ViT-L/14), refiners of their recipes' sizes, which are the papers', over visual features alone. "
        f"About {later[0]['proposals']:.0f} proposals per query. Reel has read its videos before, as in a "
        "library. With Flat, and with the fastest type that finds 99 %.",
    )


def _finds(result: Result) -> bool:
    return bool(min(result["recall"].values()) >= 0.99)


def _figures(results: Sequence[Result], out: Path) -> None:
    sizes = sorted({result["segments"] for result in results})
    by = {(result["type"], result["segments"]): result for result in results}

    def curves(value: Callable[[Result, str], float]) -> dict[str, list[float]]:
        names = dict.fromkeys(result["type"] for result in results)
        return {
            f"{name}, {kind}": [
                value(by[name, size], kind) if (name, size) in by else float("nan") for size in sizes
            ]
            for name in names
            for kind in KINDS
        }

    latency = curves(lambda result, kind: result["single"][kind]["own"]["cpu"] * 1e3)
    save(lines(sizes, latency, "One query, top 200", "segments", "ms of processor time"), out / "latency.png")
    gains = curves(lambda result, kind: result["ndcg"][kind][MEASURES[4]])
    title = "Coarse proposals against exact search"
    save(lines(sizes, gains, title, "segments", MEASURES[4]), out / "ndcg.png")
