"""Lists of videos: their durations, where a data set keeps them in a separate file, and splits."""

from __future__ import annotations

from pathlib import Path

from moviola.errors import DataError, NotFound
from moviola.files.rows import number, read_csv, read_json, text

__all__ = ["known_durations", "read_video_corpus", "read_videos"]


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
    if path.suffix not in (".csv", ".tsv"):
        return read_video_corpus(path)
    return {
        text(row, "id", place): number(row["length"], "length", place)
        for place, row in read_csv(path, required=("id", "length")).objects()
    }


def read_videos(choice: str) -> list[str]:
    """Ids of videos: all of a file, or ``FILE:SPLIT`` for one split of it.

    The file is a JSON list of ids; or an object whose keys are ids (video_corpus.json); or an object of
    splits, each a list of ids (gridhouse's splits.json) or an object whose keys are ids.

    Raises:
        NotFound: no such file, or no such split in it.
        DataError: the file is damaged, or names no video.
    """
    whole, colon, split = choice.rpartition(":")
    chosen = bool(colon) and not Path(choice).is_file()
    path = Path(whole if chosen else choice)
    content = read_json(path)
    if not isinstance(content, list | dict):
        raise DataError(f"{path}: a list of video ids is expected, or an object of videos")
    items = content.items() if isinstance(content, dict) else ()
    splits = {name: list(part) for name, part in items if _is_split(part)}
    if chosen and split not in splits:
        raise NotFound(f"{path}: no split {split!r}; it has {', '.join(splits) or 'none'}")
    parts = [splits[split]] if chosen else list(splits.values()) or [list(content)]
    names = [name for part in parts for name in part]
    if not names:
        raise DataError(f"{choice}: names no video; list the ids of those to use")
    if not all(isinstance(name, str) for name in names):
        raise DataError(f"{path}: a list of video ids is expected, each a text")
    return list(dict.fromkeys(names))


def _is_split(part: object) -> bool:
    """Whether it holds videos, rather than ``[duration, index]`` of one."""
    return isinstance(part, dict) or (isinstance(part, list) and all(isinstance(name, str) for name in part))
