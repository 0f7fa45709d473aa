"""ActivityNet Captions, and TACoS, which is distributed in its form: one entry per video."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moviola.datasets.annotations import Annotations, Collector
from moviola.errors import DataError
from moviola.files.rows import number, read_json, span

__all__ = ["entries_by_video", "read_activitynet", "read_tacos"]


def read_activitynet(path: Path, durations: Path | None = None) -> Annotations:
    """ActivityNet Captions: video to ``duration, timestamps, sentences``."""
    return _by_video(path, "ActivityNet Captions", lambda entry, where: (
        number(entry.get("duration"), "duration", where), 1.0))  # fmt: skip


def read_tacos(path: Path, durations: Path | None = None) -> Annotations:
    """TACoS as distributed with frame numbers: ``timestamps`` (frames), ``sentences, fps, num_frames``."""

    def unit(entry: Mapping[str, Any], where: str) -> tuple[float, float]:
        rate = number(entry.get("fps"), "fps", where)
        if rate == 0:
            raise DataError(f"{where}: fps: must be above 0")
        return number(entry.get("num_frames"), "num_frames", where) / rate, 1 / rate

    return _by_video(path, "TACoS", unit)


def _by_video(
    path: Path, name: str, unit: Callable[[Mapping[str, Any], str], tuple[float, float]]
) -> Annotations:
    """Files keyed by video; ``unit`` gives the duration and the seconds of one unit of its times."""
    collector = Collector(name)
    for where, video, entry in entries_by_video(path, "timestamps", "sentences"):
        duration, seconds = unit(entry, where)
        collector.add_video(video, duration)
        pairs = zip(entry["timestamps"], entry["sentences"], strict=True)
        for place, (pair, sentence) in enumerate(pairs, start=1):
            start, end = span(pair, "timestamps", f"{where}, {place}")
            collector.add(video, start * seconds, end * seconds, str(sentence))
    return collector.made()


def entries_by_video(path: Path, *lists: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Place, video and entry of a file keyed by video, whose entries have two lists of one length.

    Raises:
        DataError: it has another form.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: an object keyed by video is expected")
    for video, entry in content.items():
        where = f"{path}: {video}"
        if not isinstance(entry, dict):
            raise DataError(f"{where}: an object is expected, not {entry!r:.60}")
        times, texts = (entry.get(name) for name in lists)
        if not isinstance(times, list) or not isinstance(texts, list) or len(times) != len(texts):
            raise DataError(f"{where}: {' and '.join(lists)}: two lists of one length are expected")
        if not all(isinstance(line, str) for line in texts):
            raise DataError(f"{where}: {lists[1]}: a list of texts is expected")
        yield where, video, entry
