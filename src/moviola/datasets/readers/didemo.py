"""DiDeMo's annotations, whose times are pieces of 5 s."""

from __future__ import annotations

from pathlib import Path

from moviola.datasets.annotations import Annotations, Collector
from moviola.errors import DataError
from moviola.files.rows import read_json, span, text

__all__ = ["read_didemo"]

# A video is six pieces of 5 s, and a span names its first and last piece.
_PIECE, _PIECES = 5.0, 6


def read_didemo(path: Path, durations: Path | None = None) -> Annotations:
    """DiDeMo JSON (``annotation_id, description, video, times`` in pieces of 5 s).

    The moment is the span that at least two annotators agree on (as the study of potentially relevant pairs
    takes it); without such a span, the first annotator's.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: a list of descriptions is expected")
    collector = Collector("DiDeMo")
    for place, row in enumerate(entries, start=1):
        where = f"{path}: entry {place}"
        if not isinstance(row, dict) or not isinstance(row.get("times"), list) or not row["times"]:
            raise DataError(f"{where}: times: a list of [first, last] pieces is expected")
        times = [span(pair, "times", where) for pair in row["times"]]
        first, last = next((pair for pair in times if times.count(pair) >= 2), times[0])
        video = text(row, "video", where)
        collector.add_video(video, _PIECE * _PIECES)
        collector.add(
            video, first * _PIECE, (last + 1) * _PIECE, text(row, "description", where),
            moment_id=text(row, "annotation_id", where),
        )  # fmt: skip
    return collector.made()
