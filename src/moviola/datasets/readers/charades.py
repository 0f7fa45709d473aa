"""Charades-STA's annotations, original lines or jsonl."""

from __future__ import annotations

from pathlib import Path

from moviola.datasets.annotations import Annotations, Collector
from moviola.datasets.readers.durations import known_durations
from moviola.errors import DataError
from moviola.files.rows import lines_of, number, read_json_lines, read_text, span, text

__all__ = ["read_charades"]


def read_charades(path: str | Path, durations: str | Path | None = None) -> Annotations:
    """Charades-STA: the original ``video start end##sentence`` lines, or jsonl (``vid, duration, ts, desc``).

    In the original file ends reach beyond some videos; they stay as they are and are noted where durations
    (``durations_*.csv`` with ``id, length``) are given.
    """
    path, known = Path(path), known_durations(durations)
    collector = Collector("Charades-STA", dict(known))
    if path.suffix == ".jsonl":
        for where, row in read_json_lines(path):
            video = text(row, "vid" if "vid" in row else "vid_name", where)
            collector.add_video(video, number(row.get("duration"), "duration", where))
            collector.add(video, *span(row.get("ts"), "ts", where), text(row, "desc", where))
        return collector.made()
    for place, line in enumerate(lines_of(read_text(path)), start=1):
        if not line.strip():
            continue
        where = f"{path}: line {place}"
        head, mark, sentence = line.partition("##")
        parts = head.split()
        if not mark or len(parts) != 3 or not sentence.strip():
            raise DataError(f"{where}: 'video start end##sentence' is expected, not {line[:60]!r}")
        if not known:
            collector.add_video(parts[0])
        collector.add(parts[0], number(parts[1], "start", where), number(parts[2], "end", where), sentence)
    return collector.made()
