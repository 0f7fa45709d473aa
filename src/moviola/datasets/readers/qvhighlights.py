"""QVHighlights' annotations (moment retrieval part)."""

from __future__ import annotations

from pathlib import Path

from moviola.datasets.annotations import Annotations, Collector
from moviola.errors import DataError
from moviola.files.rows import number, read_json_lines, span, text

__all__ = ["read_qvhighlights"]


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
