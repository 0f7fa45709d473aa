"""Which data set an annotation file is of, and the file of durations that lies beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from moviola.errors import DataError
from moviola.files.rows import parse_json, read_text

__all__ = ["durations_beside", "kind_of"]

_MARKS = {
    "tvr_ranking": {"relevant_moment"}, "tvr": {"vid_name", "desc_id"}, "charades": {"ts", "desc"},
    "tacos": {"timestamps", "sentences", "fps"}, "activitynet": {"timestamps", "sentences"},
    "soccer_gmr": {"qid", "relevant_windows", "action_type"},
    "qvhighlights": {"qid", "query", "vid", "relevant_windows"}, "didemo": {"annotation_id", "times"},
    "extreme_when_bench": {"correct_interval"}, "moment_seeker": {"qry_text"},
    "timelens": {"spans", "queries"}, "charades_fig": {"fig_desc"},
}  # fmt: skip
"""Fields of an entry by the data set that has them, in order of precedence. QV-M2 has the form of
QVHighlights, and the FIG sets that of Charades-FIG.
"""


def kind_of(path: str | Path) -> str:
    """The data set of an annotation file, a key of :data:`moviola.study.datasets.readers.READERS`, by the
    fields of its first entry.

    Raises:
        NotFound: no such file.
        DataError: it is damaged, a pipe, or of no data set that is known.
    """
    path = Path(path)
    text = read_text(path)
    if not path.is_file():
        raise DataError(f"{path}: a pipe, which can be read once; write it to a file")
    head = text.lstrip()[:1]
    if head not in ("[", "{"):
        if "##" in text.lstrip().partition("\n")[0]:
            return "charades"
        raise _unknown(path, "its first line is no entry")
    entry = _first_entry(path, text, head)
    fields = set(entry) if isinstance(entry, dict) else set()
    # A pair of TVR-Ranking's older form has the fields of its query and of its moment.
    if "video_name" in fields and "timestamp" in fields:
        return "tvr_ranking"
    found = next((kind for kind, marks in _MARKS.items() if marks <= fields), None)
    if found is None:
        raise _unknown(path, f"its first entry has {', '.join(sorted(map(str, fields))) or 'no fields'}")
    return found


def durations_beside(path: str | Path) -> Path | None:
    """The file of durations in the folder of annotations that have none, as those of Charades-STA:
    ``durations_test.csv`` of ``charades_sta_test.txt``, ``durations.csv`` of any; None without one.
    """
    path = Path(path)
    part = path.stem.rpartition("_")[2]
    names = (f"durations_{part}.csv", f"durations_{part}.json", "durations.csv", "durations.json")
    return next((path.with_name(name) for name in names if path.with_name(name).is_file()), None)


def _first_entry(path: Path, text: str, head: str) -> Any:
    """The first object of a list, of lines, or of an object keyed by video."""
    if head == "[":
        entries = parse_json(path, text)
        return entries[0] if entries else None
    start = len(text) - len(text.lstrip())
    try:
        entry, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return parse_json(path, text)  # which says where the damage is
    values = list(entry.values())
    whole = not text[end:].strip()
    return values[0] if whole and values and isinstance(values[0], dict) else entry


def _unknown(path: Path, reason: str) -> DataError:
    return DataError(
        f"{path}: annotations of no data set that is known ({reason}); bring them to the form of TVR, "
        "JSON lines with vid_name, duration, ts, desc, type, desc_id"
    )
