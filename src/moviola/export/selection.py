"""Selections: moments to export, with their titles and notes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Self

from moviola.types import Moment

__all__ = ["Selection", "clean_lines", "one_line"]

# Control characters, separators of lines and paragraphs, and lone surrogates: no format of names allows them,
# some would break a line.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")

_LONGEST_SNIPPET = 80  # characters of speech or text used as a title


@dataclass(frozen=True, slots=True)
class Selection:
    """A moment to export, with a title and a note.

    Attributes:
        moment: its times may have been trimmed.
        title: its name in the export; empty: made of speech or text there, else of the video's name.
        note: further text, of any number of lines.
        video: name of its video, where that is no longer its id; :func:`~moviola.export.write_moments`
            sets it.
    """

    moment: Moment
    title: str = ""
    note: str = ""
    video: str = ""

    @classmethod
    def by_hand(
        cls, rank: int, *, video_id: str, start: float, end: float, title: str = "", note: str = ""
    ) -> Self:
        """A moment that was chosen by hand, of a collection for one: strong, without a score."""
        return cls(Moment(video_id, start, end, 0.0, rank), title, note)

    @property
    def name(self) -> str:
        """The title, else speech or text there, else the video's name; one line, not empty."""
        video = PurePath(self.video or self.moment.video_id).name
        said = one_line(self.moment.snippet)[:_LONGEST_SNIPPET].rstrip()
        names = (one_line(self.title), said, one_line(video), one_line(self.moment.video_id))
        return next(filter(None, names), "moment")


def one_line(text: str) -> str:
    """A text without unprintable characters, runs of white space as one space."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def clean_lines(text: str) -> str:
    """A text of several lines, each as in :func:`one_line`; empty ones at its ends are dropped."""
    return "\n".join(map(one_line, text.splitlines())).strip("\n")
