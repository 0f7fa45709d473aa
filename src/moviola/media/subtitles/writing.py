"""Writing cues as a subtitle file."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from pathlib import Path

import pysubs2

from moviola.errors import InvalidValue
from moviola.files.writing import draft_of
from moviola.media.subtitles.visible import JOINER
from moviola.types import Cue

__all__ = ["WRITTEN", "write_subtitles"]

WRITTEN = (".srt", ".vtt", ".ass")
"""Suffixes of subtitle files that can be written."""

# A backslash before a letter breaks a line in SubStation Alpha, unless an invisible letter stands between.
_BREAK = re.compile(r"\\(?=[Nnh])")


def write_subtitles(path: str | Path, cues: Iterable[Cue]) -> None:
    """Write cues, in any order, as a subtitle file that appears complete or not at all: SubRip, WebVTT or
    Advanced SubStation Alpha, by its suffix; times are rounded to the format's precision, and a cue lasts one
    step of it at least, since players drop those without a duration.

    Raises:
        InvalidValue: another suffix, or a place that cannot be written.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in WRITTEN:
        raise InvalidValue(f"{path}: unknown subtitle format; give one of {', '.join(WRITTEN)}")
    step = 10 if kind == ".ass" else 1  # milliseconds
    file = pysubs2.SSAFile()
    for cue in sorted(cues, key=lambda cue: (cue.start, cue.end)):
        start, end = (round(time * 1000 / step) * step for time in (cue.start, cue.end))
        event = pysubs2.SSAEvent(start=start, end=max(end, start + step))
        text = cue.text.replace("{", "(").replace("}", ")")  # braces would hold commands
        text = _BREAK.sub(rf"\\{JOINER}", text)
        event.plaintext = html.escape(text, quote=False) if kind == ".vtt" else text
        file.append(event)
    with draft_of(path) as draft:
        draft.write_text(file.to_string(kind[1:]), encoding="utf-8")
