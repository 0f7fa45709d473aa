"""The plan: what an hour to a million hours of film cost, from measured constants.

    python -m scale.hours [--cores 16] [--core-hour 0.04] [--gigabyte-month 0.08]        (in benchmarks/)

Every constant is read from the file that a benchmark wrote, which :data:`SOURCES` names; the rest is
multiplication. Prices are those of the arguments. ``docs/howto/plan.md`` has the table as it is printed
without arguments.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # as a script

from measuring import arguments

__all__ = ["HOURS", "Constants", "Plan", "plan_of", "table"]

ROOT = Path(__file__).resolve().parents[2]
HOURS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
SEGMENT_SECONDS = 4
IN_LIBRARY = 400_000
"""Segments of a library; more film is in several that are searched as one."""
SOURCES = {
    "reading": "benchmarks/readers/README.md", "index": "docs/benchmark/scale/cost.csv",
    "search": "docs/benchmark/scale/search.csv", "library": "benchmarks/upkeep.json",
}  # fmt: skip


@dataclass(frozen=True)
class Constants:
    """What was measured.

    Attributes:
        pictures: processor seconds for an hour of film: frames, shots, features.
        text: those of text in pictures besides.
        megabytes: of the library for an hour of film: features, stills, fingerprints.
        segment_bytes: of the index on disk.
        index_megabytes: memory of the index of a library of ``index_segments``.
        segments_ms: processor milliseconds to find the nearest segments of a text there.
    """

    pictures: float
    text: float
    megabytes: float
    segment_bytes: float
    index_megabytes: float
    index_segments: int
    segments_ms: float

    @classmethod
    def read(cls) -> Constants:
        """From the files of :data:`SOURCES`."""
        reading = (ROOT / SOURCES["reading"]).read_text(encoding="utf-8")
        seconds = {
            step: float(found[1])
            for step in ("decode a frame a second", "shots besides", "pictures: encode",
                         "text: decode stills", "text: read")
            if (found := re.search(rf"^\| {step} \| (\d+) \|", reading, re.MULTILINE))
        }  # fmt: skip
        index, search = (_default(ROOT / SOURCES[name]) for name in ("index", "search"))
        stills = json.loads((ROOT / SOURCES["library"]).read_text(encoding="utf-8"))["stills"]
        return cls(
            pictures=sum(own for step, own in seconds.items() if not step.startswith("text")),
            text=sum(own for step, own in seconds.items() if step.startswith("text")),
            megabytes=sum(stills.values()),
            segment_bytes=float(index["on disk"]),
            index_megabytes=float(index["memory, MB"]),
            index_segments=int(index["segments"].replace(",", "")),
            segments_ms=float(search["text"].split(" / ")[0]),
        )


def _default(path: Path) -> dict[str, str]:
    """The row of the default index at the smallest size. Of two columns of one name the first counts."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    names = {name: place for place, name in reversed([*enumerate(head)])}
    # In search.csv the first column "text" is recall, the second milliseconds.
    texts = [place for place, name in enumerate(head) if name == "text"]
    if len(texts) > 1:
        names["text"] = texts[1]
    row = next(row for row in rows if row[names["type"]] == "reranked")
    return {name: row[place] for name, place in names.items()}


@dataclass(frozen=True)
class Plan:
    """One size. Money has the unit of the prices; ``answer_ms`` is the time to the nearest segments."""

    hours: int
    segments: int
    libraries: int
    core_hours: float
    core_hours_with_text: float
    gigabytes: float
    memory_gigabytes: float
    processor_ms: float
    answer_ms: float
    to_index: float
    a_month: float


def plan_of(
    hours: int, known: Constants, *, cores: int = 16, core_hour: float = 0.04, gigabyte_month: float = 0.08
) -> Plan:
    """What some hours of film cost with ``cores`` that answer."""
    segments = math.ceil(hours * 3600 / SEGMENT_SECONDS)
    libraries = math.ceil(segments / IN_LIBRARY)
    work = hours * known.pictures / 3600
    with_text = work + hours * known.text / 3600
    disk = (hours * known.megabytes * 1e6 + segments * known.segment_bytes) / 1e9
    processor = known.segments_ms * max(segments / known.index_segments, 0.05)
    return Plan(
        hours, segments, libraries, work, with_text, disk,
        known.index_megabytes * segments / known.index_segments / 1e3,
        processor, processor / min(cores, libraries),
        with_text * core_hour, disk * gigabyte_month,
    )  # fmt: skip


def table(plans: Sequence[Plan]) -> str:
    """As a table of Markdown."""
    rows = [
        "| hours | segments | libraries | core hours, pictures | and text | disk, GB | index in memory, GB "
        "| processor ms to the nearest segments | on the clock, ms | to index | a month on disk |",
        "|" + "---|" * 11,
    ]
    rows += [
        f"| {one.hours:,} | {one.segments:,} | {one.libraries:,} | {_short(one.core_hours)} "
        f"| {_short(one.core_hours_with_text)} | {_short(one.gigabytes)} | {_short(one.memory_gigabytes)} "
        f"| {_short(one.processor_ms)} | {_short(one.answer_ms)} | {_short(one.to_index)} "
        f"| {_short(one.a_month)} |"
        for one in plans
    ]
    return "\n".join(rows)


def _short(value: float) -> str:
    """Two figures."""
    if value == 0:
        return "0"
    digits = 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if digits <= 0 else f"{rounded:.{digits}f}"


def main() -> None:
    options = vars(arguments(__doc__, cores=16, core_hour=0.04, gigabyte_month=0.08))
    known = Constants.read()
    print(table([plan_of(hours, known, **options) for hours in HOURS]))


if __name__ == "__main__":
    main()
