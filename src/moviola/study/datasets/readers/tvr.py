"""TVR's jsonl, in and out: the form that all data sets can be brought to."""

from __future__ import annotations

import json
from pathlib import Path

from moviola.errors import DataError
from moviola.files.rows import number, read_json_lines, span, text
from moviola.files.writing import write_text
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.readers.videos import known_durations

__all__ = ["read_tvr", "write_tvr"]


def read_tvr(path: Path, durations: Path | None = None) -> Annotations:
    """TVR jsonl (``vid_name, duration, ts, desc, type, desc_id``).

    The public test split has no times; it holds queries, not moments, and is refused.

    Args:
        durations: ``tvr_video2dur_idx.json``, for videos without a moment in the file.
    """
    collector = Collector("TVR", known_durations(durations))
    for where, row in read_json_lines(path):
        if "ts" not in row:
            raise DataError(f"{where}: the field 'ts' is missing (the public test split hides its answers)")
        video = text(row, "vid_name", where)
        collector.add_video(video, number(row.get("duration"), "duration", where))
        start, end = span(row["ts"], "ts", where)
        # A caption may be empty: other data sets, and searches, have moments without one.
        collector.add(
            video, start, end, "" if row.get("desc") == "" else text(row, "desc", where),
            moment_id=text(row, "desc_id", where), type=str(row.get("type", "")),
        )  # fmt: skip
    return collector.made()


def write_tvr(moments: Annotations, path: Path) -> None:
    """TVR's jsonl, which :func:`read_tvr` reads: the common form of all data sets.

    Raises:
        InvalidValue: a video's duration is unknown.
    """
    moments.require_durations()
    rows = [
        {
            "vid_name": moments.videos[video], "duration": float(moments.durations[video]),
            "ts": [float(moments.start[place]), float(moments.end[place])], "desc": moments.captions[place],
            "type": moments.types[place], "desc_id": moments.moment_ids[place],
        }
        for place, video in enumerate(moments.video.tolist())
    ]  # fmt: skip
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
