"""Why a file cannot be used, not all of it, or not now: each reason has a code, and English words.

The words are what errors say, and what a catalogue and reports hold. :func:`read_reason` finds the code and
what is named again in them, so that others can say the same in another language.

Examples:
    >>> words = reason("too large", width=40_000, height=30_000, most="500,000,000")
    >>> words
    'pictures of 40000 x 30000 pixels; at most 500,000,000 pixels can be decoded'
    >>> read_reason(f"sky.mp4: {words}; skipped")
    Reason(code='too large', values={'width': '40000', 'height': '30000', 'most': '500,000,000'})
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

__all__ = ["REASONS", "Reason", "read_reason", "reason"]

REASONS: Mapping[str, str] = {
    "no file": "cannot be read (no such file)",
    "broken link": "cannot be read (a link to a file that does not exist)",
    "unreadable": "cannot be read ({why})",
    "no name": "its path is not UTF-8 ({path}); rename it",
    "folder": "a folder, not a file; give a file",
    "pipe": "a named pipe, not a file; give a file",
    "socket": "a socket, not a file; give a file",
    "device": "a device, not a file; give a file",
    "empty": "the file is empty (0 bytes)",
    "zeros": "the file holds only zeros; copy it again from its source",
    "text": "a text file, not a video, whatever its name says ({suffix})",
    "picture": "a still picture despite its name, no video; `--picture` searches for what it shows",
    "list": "a list of other files ({format}), no media file; give these files",
    "no index": "MP4 without its index (moov): the recording was cut short or never finished",
    "no media": "not a media file that can be read ({why})",
    "no codec": "the video stream has a codec that is not known here",
    "no stream": "no stream in it can be read; it was cut short or is damaged",
    "no film": "no video stream ({held} only{cover}); give a file with moving pictures",
    "too large": "pictures of {width} x {height} pixels; at most {most} pixels can be decoded",
    "too narrow": "pictures of {width} x {height} pixels; the longer side may be at most {most} times the "
    "shorter",
    "too many": "{pixels} pixels in all pictures; at most {most}",
    "header": "damaged header: a picture every {seconds} s; write the file again",
    "too long": "longer than {hours} hours, or its time stamps are damaged",
    "no picture": "no picture can be decoded",
    "no animation": "no picture of this animated WebP can be decoded ({why})",
    "link out": "a link out of {folder}",
    "link to no subtitles": "a link to no subtitles",
    "link since": "a link has come to stand there since it was listed; index it again",
    "not on node": "no file of {size} bytes here; every node must see the videos by the same paths",
    "damaged": "damaged at {seconds} s; what decodes before and after is in",
    "waits": "its pictures wait for its file; index it again",
    "changed since": "has changed while it was read, and nothing of it was kept; index it again",
    "in part": "{minutes} of {all} min in",
    "in part of some": "{minutes} min in",
    "by key frames": "by key frames alone so far",
    "rest by key frames": "{minutes} of {all} min in, the rest by key frames alone so far",
    "root gone": "it is not there",
    "root unreadable": "it cannot be read ({why})",
    "root empty": "it is empty, and held {videos}",
    "root of none": "another volume lies there, which has none of its {videos}",
    "root of some": "another volume lies there, which has {found} of {sample} of its {videos}; if it is the "
    "right one, `moviola library move {place} {place}` says so",
}
"""English words by code, of a file, or of a folder that is indexed (``root …``)."""

# Text round a reason in reports: the name of a file or a machine; what to do about an error of the
# system.
_AROUND = r"(?:.*: )?{}(?:; check its permissions and its disk)?(?:; skipped)?"


class Reason(NamedTuple):
    """A code of :data:`REASONS`, empty for a reason of another kind, and what its words name."""

    code: str
    values: dict[str, str]


def reason(code: str, **values: object) -> str:
    """The words of a reason; ``values`` are what they name."""
    return REASONS[code].format(**values)


def read_reason(words: str) -> Reason:
    """Code and values of a reason, also of one in a report, after a name."""
    for code, pattern in _patterns().items():
        if found := pattern.fullmatch(words):
            return Reason(code, found.groupdict())
    return Reason("", {})


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    return {code: re.compile(_AROUND.format(_pattern(words)), re.DOTALL) for code, words in REASONS.items()}


def _pattern(words: str) -> str:
    """A pattern of words, in which a value that stands twice is the same."""
    pattern = re.escape(words)
    for name in dict.fromkeys(re.findall(r"{(\w+)}", words)):
        named = f"\\{{{name}\\}}"
        pattern = pattern.replace(named, f"(?P<{name}>.*?)", 1).replace(named, f"(?P={name})")
    return pattern
