"""Durations of videos, where a data set keeps them in a separate file."""

from __future__ import annotations

from pathlib import Path

from moviola.errors import DataError
from moviola.files.rows import number, read_csv, read_json, text

__all__ = ["known_durations", "read_video_corpus"]


def read_video_corpus(path: Path) -> dict[str, float]:
    """``name -> duration`` or ``name -> [duration, index]``, flat or by split, in file order; seconds."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: an object of videos is expected")
    corpus: dict[str, float] = {}
    for name, value in content.items():
        entries = value if isinstance(value, dict) else {name: value}
        for video, entry in entries.items():
            duration = entry[0] if isinstance(entry, list) and entry else entry
            corpus[str(video)] = number(duration, "duration", f"{path}: {video}")
    return corpus


def known_durations(path: str | Path | None) -> dict[str, float]:
    """Seconds by video: a CSV with the columns ``id, length``, or a file for :func:`read_video_corpus`.

    Empty without a file.
    """
    if path is None:
        return {}
    path = Path(path)
    if path.suffix != ".csv":
        return read_video_corpus(path)
    return {
        text(row, "id", place): number(row["length"], "length", place)
        for place, row in read_csv(path, required=("id", "length")).objects()
    }
