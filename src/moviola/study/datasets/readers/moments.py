"""Readers of sets of moment retrieval: ActivityNet Captions and TACoS, Charades-STA, DiDeMo, QVHighlights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError
from moviola.files.rows import lines_of, number, read_json, read_json_lines, read_text, span, text
from moviola.study.datasets.annotations import Annotations, Collector
from moviola.study.datasets.readers.videos import known_durations

__all__ = [
    "entries_by_video", "read_activitynet", "read_charades", "read_didemo", "read_qvhighlights", "read_tacos",
]  # fmt: skip


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


def read_qvhighlights(path: Path, durations: Path | None = None) -> Annotations:
    """QVHighlights jsonl (``qid, query, vid, duration, relevant_windows``): one moment per window."""
    collector = Collector("QVHighlights")
    for where, row in read_json_lines(path):
        video = text(row, "vid", where)
        collector.add_video(video, number(row.get("duration"), "duration", where))
        windows = row.get("relevant_windows")
        if not isinstance(windows, list):
            raise DataError(f"{where}: relevant_windows: a list is expected (the test split hides them)")
        qid, query = text(row, "qid", where), text(row, "query", where)
        if not windows:
            collector.add_unanswered(qid, video)
        for place, window in enumerate(windows, start=1):
            start, end = span(window, "relevant_windows", where)
            collector.add(video, start, end, query, moment_id=f"{qid}-{place}", query_id=qid)
    return collector.made()
