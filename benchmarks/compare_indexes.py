"""Every type of index at the paper's sizes beside exact search: times, recall, NDCG, memory, bytes.

    python benchmarks/compare_indexes.py --sizes 383828 --types flat,reranked --work bench

Each size and type is a piece with a result of its own in WORK, so an interrupted comparison goes on where it
was. The report, Markdown, CSV and figures, has all that was measured in WORK.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from measuring import saying_errors
from moviola.errors import InvalidValue
from scale.plan import chosen
from scale.report import write_scale_report
from scale.run import ScaleBench, run_scale


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="paper", help="paper (hours, 25 GB), or small (seconds)")
    parser.add_argument("--sizes", default="", help="segments: 383828,860917; the preset's by default")
    parser.add_argument("--types", default="", help="types of index: flat,reranked; all by default")
    parser.add_argument(
        "--features", type=Path, help="a folder of features whose segments are searched; made ones by default"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("benchmark-scale"),
        help="vectors, indexes and results; kept between calls",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, help="the report's folder; WORK/report by default")
    parser.add_argument(
        "--again",
        action="store_true",
        help="measure again what was measured, with the indexes that are there",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with saying_errors():
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Measure what is left, and write the report."""
    sizes = [_size(word) for word in options.sizes.split(",") if word]
    types = [word for word in options.types.split(",") if word]
    bench = ScaleBench(options.work, chosen(options.preset, sizes, types), options.features)
    run_scale(bench, again=options.again, note=lambda text: print(text, file=sys.stderr, flush=True))
    path = write_scale_report(bench, options.out or options.work / "report")
    if options.json:
        print(json.dumps({"report": str(path), "pieces": bench.results()}))
    else:
        print(f"the report is in {path}")


def _size(word: str) -> int:
    if not word.strip().isdecimal():
        raise InvalidValue(f"--sizes {word!r}: no number of segments; give numbers with commas between")
    return int(word)


if __name__ == "__main__":
    main()
