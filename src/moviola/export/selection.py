"""What goes out: moments, each with the words that a person gave it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from moviola.types import Moment

__all__ = ["Selection", "clean_lines", "one_line", "selections"]

# Control characters, the separators of lines and paragraphs, and halves of characters: no format of names
# holds them, some would break a line.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]+")

# Of what is said, as much as names a moment.
_LONGEST_SNIPPET = 80


@dataclass(frozen=True, slots=True)
class Selection:
    """A moment that was chosen, and what somebody wrote about it.

    Attributes:
        moment: its times may have been trimmed since it was found.
        title: its name in the export; empty for one made of what is said there, else of its video.
        note: more about it, in as many lines as one likes.
    """

    moment: Moment
    title: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """The title, else what is said or written there, else the video's name; one line, not empty."""
        video = PurePath(self.moment.video_id).name
        said = one_line(self.moment.snippet)[:_LONGEST_SNIPPET].rstrip()
        names = (one_line(self.title), said, one_line(video), one_line(self.moment.video_id))
        return next(filter(None, names), "moment")


def selections(moments: Iterable[Moment | Selection]) -> list[Selection]:
    """Moments as selections without words, selections as they are."""
    return [moment if isinstance(moment, Selection) else Selection(moment) for moment in moments]


def one_line(text: str) -> str:
    """A text without what breaks lines or cannot be written, runs of white space as one space."""
    return " ".join(_UNPRINTABLE.sub(" ", text).split())


def clean_lines(text: str) -> str:
    """A text of several lines, each as of :func:`one_line`; none at its ends are empty."""
    return "\n".join(map(one_line, text.splitlines())).strip("\n")
