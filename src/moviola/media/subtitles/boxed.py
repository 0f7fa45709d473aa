"""Text in MP4 that libav hands over as it is: Timed Text (``stpp``) and WebVTT (``wvtt``), of ISO/IEC
14496-30, as programs for streaming write them.

A sample of the one is a document, whose times count from the beginning of the track and are cut to those of
the sample; of the other it is a box for each cue that is shown while the sample lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO

from moviola.media.boxes import boxes_in
from moviola.media.subtitles.encodings import decode
from moviola.media.subtitles.markup import read_timed_text
from moviola.media.subtitles.values import Line, Notes
from moviola.media.subtitles.visible import of_tags

__all__ = ["BOXED_READERS", "Sample"]

Sample = tuple[float, float, bytes]
"""Second at which a sample begins, at which it ends, and what it holds."""


def _documents(sample: Sample, notes: Notes) -> Iterator[Line]:
    """The lines of a document, in the time of the track; of one whose times all lie elsewhere, as some
    programs write them, in that of the sample.
    """
    start, end, data = sample
    if not data.strip(b"\0"):
        return
    decoded = decode(data)
    lines = [*read_timed_text(decoded.text, notes)] if decoded is not None else []
    if end <= start:
        yield from lines
        return
    if start and not any(line.start < end and line.end > start for line in lines):
        lines = [Line(line.start + start, line.end + start, line.text) for line in lines]
    for line in lines:
        shown = Line(max(line.start, start), min(line.end, end), line.text)
        if shown.end > shown.start:
            yield shown
        else:
            notes.add("damaged", line.text)


def _cues(sample: Sample, notes: Notes) -> Iterator[Line]:
    start, end, data = sample
    file = BytesIO(data)
    for kind, at, stop in boxes_in(file, 0, len(data)):
        if kind != b"vttc":
            continue
        said = (data[begin:last] for name, begin, last in boxes_in(file, at, stop) if name == b"payl")
        text = of_tags(b"".join(said).decode("utf-8", errors="replace"))
        if text and end > start:
            yield Line(start, end, text)
        elif text:
            notes.add("damaged", text)


BOXED_READERS: dict[str, Callable[[Sample, Notes], Iterator[Line]]] = {"ttml": _documents, "webvtt": _cues}
"""Readers of samples by codec; lines are in seconds on the clock of the file."""
