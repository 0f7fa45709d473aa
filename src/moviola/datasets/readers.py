"""One reader a data set: public annotation files to :class:`Annotations`.

Durations lie in files of their own for some sets; those readers take a ``durations`` file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moviola.datasets.annotations import Annotations, Collector
from moviola.errors import DataError, InvalidValue
from moviola.files.rows import number, read_json, read_json_lines, read_text, span, text
from moviola.types import Cue

__all__ = [
    "QUERIES_OF",
    "READERS",
    "ranked_rows",
    "read_activitynet",
    "read_annotations",
    "read_charades",
    "read_didemo",
    "read_qvhighlights",
    "read_tacos",
    "read_tvr",
    "read_tvr_ranking",
    "read_tvr_subtitles",
    "read_video_corpus",
]

# DiDeMo's unit: a video is six pieces of 5 s, and a span names its first and last piece.
_DIDEMO_PIECE = 5.0
_DIDEMO_PIECES = 6


def read_tvr(path: Path, durations: Path | None = None) -> Annotations:
    """TVR jsonl (``vid_name, duration, ts, desc, type, desc_id``).

    The public test split has no times; it holds queries, not moments, and is refused.

    Args:
        path: the jsonl file.
        durations: ``tvr_video2dur_idx.json``, for videos without a moment in the file.
    """
    found = Collector("TVR")
    for name, duration in _durations(durations).items():
        found.add_video(name, duration)
    for where, row in read_json_lines(path):
        if "ts" not in row:
            raise DataError(f"{where}: the field 'ts' is missing (the public test split hides its answers)")
        video = text(row, "vid_name", where)
        found.add_video(video, number(row.get("duration"), "duration", where))
        start, end = span(row["ts"], "ts", where)
        found.add(
            video, start, end, text(row, "desc", where),
            moment_id=text(row, "desc_id", where), type=str(row.get("type", "")),
        )  # fmt: skip
    return found.made()


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


def _durations(path: Path | None) -> dict[str, float]:
    if path is None:
        return {}
    if path.suffix != ".csv":
        return read_video_corpus(path)
    rows = csv.DictReader(io.StringIO(read_text(path)))
    return {
        text(row, "id", f"{path}: line {rows.line_num}"): number(
            row.get("length"), "length", f"{path}: line {rows.line_num}"
        )
        for row in rows
    }


def read_tvr_ranking(path: Path, durations: Path | None = None) -> Annotations:
    """Moments of a TVR-Ranking pair file (JSON list or JSON lines), each pair's moment once.

    A moment is the same when video, times and caption are.
    """
    found = Collector("TVR-Ranking")
    for name, duration in _durations(durations).items():
        found.add_video(name, duration)
    seen: set[tuple[str, float, float, str]] = set()
    for where, _, moment in _pairs(path):
        video, caption = text(moment, "video_name", where), text(moment, "caption", where)
        start, end = span(moment.get("timestamp"), "timestamp", where)
        if (video, start, end, caption) not in seen:
            seen.add((video, start, end, caption))
            found.add_video(video, number(moment.get("duration"), "duration", where))
            found.add(video, start, end, caption, moment_id=str(moment.get("pair_id", "")))
    return found.made()


def _pairs(path: Path) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Where a pair stands, the entry with its query, and its moment; one row is both in the older form."""
    if not read_text(path).lstrip().startswith("["):
        yield from ((where, row, row) for where, row in read_json_lines(path))
        return
    for place, entry in enumerate(read_json(path), start=1):
        where = f"{path}: entry {place}"
        moments = entry.get("relevant_moment") if isinstance(entry, dict) else None
        if not isinstance(moments, list):
            raise DataError(f"{where}: relevant_moment: a list is expected, not {moments!r:.60}")
        for count, moment in enumerate(moments, start=1):
            if not isinstance(moment, dict):
                raise DataError(f"{where}, moment {count}: an object is expected")
            yield f"{where}, moment {count}", entry, moment


def ranked_rows(path: Path) -> Iterator[tuple[str, str, str, Mapping[str, Any]]]:
    """Pairs of a TVR-Ranking pair file: where each stands, query id, query text, and the moment's fields.

    Raises:
        NotFound: no such file.
        DataError: damaged; file, row and field are named.
    """
    for where, entry, moment in _pairs(path):
        yield where, text(entry, "query_id", where), text(entry, "query", where), moment


def _ranked_queries(path: Path) -> list[str]:
    return list({query_id: query for _, query_id, query, _ in ranked_rows(path)}.values())


QUERIES_OF: dict[str, Callable[[Path], list[str]]] = {"tvr_ranking": _ranked_queries}
"""Query texts of the data sets whose queries are not the captions of their moments."""


def read_tvr_subtitles(path: Path) -> dict[str, tuple[Cue, ...]]:
    """TVR subtitles jsonl (``vid_name, sub: [{text, start, end}]``), by video; seconds.

    A cue without extent, or without text, is left out, as nothing can be shown or found by it.

    Raises:
        NotFound: no such file.
        DataError: damaged, or a video comes twice; file, line and field are named.
    """
    found: dict[str, tuple[Cue, ...]] = {}
    for where, row in read_json_lines(path):
        video, lines = text(row, "vid_name", where), row.get("sub")
        if not isinstance(lines, list) or not all(isinstance(line, dict) for line in lines):
            raise DataError(f"{where}: sub: a list of objects is expected, not {lines!r:.60}")
        if video in found:
            raise DataError(f"{where}: vid_name: {video} comes twice")
        cues = [
            Cue(number(line.get("start"), "start", where), number(line.get("end"), "end", where), said)
            for line in lines
            if (said := str(line.get("text", "")).strip())
        ]
        found[video] = tuple(cue for cue in cues if cue.end > cue.start)
    return found


def read_charades(path: Path, durations: Path | None = None) -> Annotations:
    """Charades-STA: the original ``video start end##sentence`` lines, or jsonl (``vid, duration, ts, desc``).

    In the original file ends reach beyond some videos; they stay as they are and are noted where durations
    (``durations_*.csv`` with ``id, length``) are given.
    """
    found = Collector("Charades-STA")
    known = _durations(durations)
    for name, duration in known.items():
        found.add_video(name, duration)
    if path.suffix == ".jsonl":
        for where, row in read_json_lines(path):
            video = text(row, "vid" if "vid" in row else "vid_name", where)
            found.add_video(video, number(row.get("duration"), "duration", where))
            found.add(video, *span(row.get("ts"), "ts", where), text(row, "desc", where))
        return found.made()
    for place, line in enumerate(read_text(path).splitlines(), start=1):
        if not line.strip():
            continue
        where = f"{path}: line {place}"
        head, mark, sentence = line.partition("##")
        parts = head.split()
        if not mark or len(parts) != 3 or not sentence.strip():
            raise DataError(f"{where}: 'video start end##sentence' is expected, not {line[:60]!r}")
        if not known:
            found.add_video(parts[0])
        found.add(parts[0], number(parts[1], "start", where), number(parts[2], "end", where), sentence)
    return found.made()


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
    content = read_json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: an object keyed by video is expected")
    found = Collector(name)
    for video, entry in content.items():
        where = f"{path}: {video}"
        if not isinstance(entry, dict):
            raise DataError(f"{where}: an object is expected, not {entry!r:.60}")
        duration, seconds = unit(entry, where)
        found.add_video(video, duration)
        times, sentences = entry.get("timestamps"), entry.get("sentences")
        if not isinstance(times, list) or not isinstance(sentences, list) or len(times) != len(sentences):
            raise DataError(f"{where}: timestamps and sentences: two lists of one length are expected")
        for place, (pair, sentence) in enumerate(zip(times, sentences, strict=True), start=1):
            start, end = span(pair, "timestamps", f"{where}, {place}")
            found.add(video, start * seconds, end * seconds, str(sentence))
    return found.made()


def read_qvhighlights(path: Path, durations: Path | None = None) -> Annotations:
    """QVHighlights jsonl (``qid, query, vid, duration, relevant_windows``): a moment a window."""
    found = Collector("QVHighlights")
    for where, row in read_json_lines(path):
        video = text(row, "vid", where)
        found.add_video(video, number(row.get("duration"), "duration", where))
        windows = row.get("relevant_windows")
        if not isinstance(windows, list):
            raise DataError(f"{where}: relevant_windows: a list is expected (the test split hides them)")
        for place, window in enumerate(windows, start=1):
            start, end = span(window, "relevant_windows", where)
            qid = text(row, "qid", where)
            found.add(video, start, end, text(row, "query", where), moment_id=f"{qid}-{place}")
    return found.made()


def read_didemo(path: Path, durations: Path | None = None) -> Annotations:
    """DiDeMo JSON (``annotation_id, description, video, times`` in pieces of 5 s).

    The moment is the span that at least two annotators agree on (as the study of potentially relevant pairs
    takes it); without such a span, the first annotator's.
    """
    entries = read_json(path)
    if not isinstance(entries, list):
        raise DataError(f"{path}: a list of descriptions is expected")
    found = Collector("DiDeMo")
    for place, row in enumerate(entries, start=1):
        where = f"{path}: entry {place}"
        if not isinstance(row, dict) or not isinstance(row.get("times"), list) or not row["times"]:
            raise DataError(f"{where}: times: a list of [first, last] pieces is expected")
        times = [span(pair, "times", where) for pair in row["times"]]
        first, last = next((pair for pair in times if times.count(pair) >= 2), times[0])
        video = text(row, "video", where)
        found.add_video(video, _DIDEMO_PIECE * _DIDEMO_PIECES)
        found.add(
            video, first * _DIDEMO_PIECE, (last + 1) * _DIDEMO_PIECE, text(row, "description", where),
            moment_id=text(row, "annotation_id", where),
        )  # fmt: skip
    return found.made()


READERS: dict[str, Callable[[Path, Path | None], Annotations]] = {
    "tvr": read_tvr,
    "tvr_ranking": read_tvr_ranking,
    "charades": read_charades,
    "activitynet": read_activitynet,
    "tacos": read_tacos,
    "qvhighlights": read_qvhighlights,
    "didemo": read_didemo,
}


def read_annotations(path: Path, kind: str, durations: Path | None = None) -> Annotations:
    """Read a file by the name of its data set.

    Raises:
        InvalidValue: an unknown name.
        NotFound: no such file.
        DataError: damaged; file, row and field are named.
    """
    if kind not in READERS:
        raise InvalidValue(f"data set {kind!r}: unknown; there are {', '.join(READERS)}")
    return READERS[kind](path, durations)
