"""Every model on the same generated films and features, and one report: Markdown, CSV and figures.

    python benchmarks/compare_models.py --preset small --out bench --only 'spr-stage1*' --minutes 30

It works in pieces of minutes, one a training, on one core. Finished pieces in OUT are kept, so an
interrupted comparison goes on where it was, within a training too. Start it once per core: each piece is done
by one of them. OUT/results can be carried to another machine, which then trains what is left.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from comparison.bench import Bench
from comparison.plan import PRESETS
from comparison.report import write_report
from comparison.run import run_pieces, what_is_left
from comparison.runs import write_runs
from measuring import saying_errors
from moviola.errors import InvalidValue


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--preset", default="small", help="small (minutes), pool-small (hours), third, large or pool")
    add("--out", type=Path, default=Path("benchmark-gridhouse"), help="films, models, figures; kept")
    add("--report", type=Path, help="the report's folder; OUT/report by default")
    add("--only", default="", help="rows to train: patterns of names, models or groups: 'xml*,reel'")
    add("--seeds", type=int, nargs="+", default=[], help="further seeds of rows, which end with -seedN")
    add("--films", type=int, help="seed of other films than the preset's, in an OUT of their own")
    add("--minutes", type=float, help="minutes after which it stops")
    add("--device", default="cpu", help="what trains: cpu, cuda, …; figures are made on the CPU")
    add("--status", action="store_true", help="say what is left, and train nothing")
    add("--runs", type=Path, help="folder for the answers of all finished rows, for benchmarks/study.py")
    add("--workers", type=int, default=os.cpu_count() or 1, help="processes that film")
    add("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with saying_errors():
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Film, train what is left, write the report, and print what is left then."""
    note = partial(print, file=sys.stderr, flush=True)
    if options.preset not in PRESETS:
        raise InvalidValue(f"preset {options.preset!r}: unknown; there are {', '.join(PRESETS)}")
    preset, rows = PRESETS[options.preset], tuple(filter(None, options.only.split(",")))
    seeds, films = (*preset.seeds, *options.seeds), options.films
    bench = Bench(options.out, replace(preset, seeds=seeds, films=preset.films if films is None else films))
    what_is_left(bench, rows)  # a pattern that no row fits is named before filming
    if not options.status:
        bench.prepare(options.workers, note)
        run_pieces(bench, only=rows, minutes=options.minutes, device=options.device, note=note)
    if options.runs:
        write_runs(bench, options.runs, note)
    left, path = what_is_left(bench, rows), None
    if not options.status and bench.done(f"spr-stage1-n{bench.preset.top}"):
        title = f"Gridhouse, {options.preset} preset"
        path = write_report(bench, options.report or options.out / "report", title=title, note=note)
    if options.json:
        print(json.dumps({"report": path and str(path), **asdict(left)}))
        return
    print(f"{left.done} of {left.planned} trainings are finished")
    if left.names:
        unknown = f", and {left.unknown} of models that no CPU has trained" if left.unknown else ""
        print(f"left: about {left.cpu_seconds / 3600:.1f} CPU hours{unknown}")
    if left.names and options.status:
        print("left: " + ", ".join(left.names))
    if not options.status:
        print(f"the report is in {path}" if path else f"figures of each row are in {bench.out / 'results'}")


if __name__ == "__main__":
    main()
