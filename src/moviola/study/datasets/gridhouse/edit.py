"""Edit decision lists: which shot of which take a film shows when, and where its moments are in it.

An :class:`Edit` is pure data. Times of the film are whole frames; times of a take are seconds of its episode.
:mod:`~moviola.study.datasets.gridhouse.editor` makes one from a seed,
:mod:`~moviola.study.datasets.gridhouse.projection` draws it, and :func:`film_moments` says what is true of
it:

- A moment is in the film if its event, from its beginning to the moment's end, is whole in one shot. The
  editor never cuts inside an event, so an event is shown whole or not at all.
- It begins with the first frame of the way there that the film shows in one run: shots of the same take that
  follow each other, with no other shot or title card between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

from moviola.study.datasets.gridhouse.episode import Episode, GridMoment
from moviola.study.datasets.gridhouse.motion import Point, between, eased
from moviola.study.datasets.gridhouse.world import Cell

__all__ = [
    "Box", "Card", "Edit", "Footage", "Format", "Opening", "Shot", "Sign", "Take", "View", "edit_list",
    "film_moments", "inside",
]  # fmt: skip

Box = tuple[float, float, float, float]
"""Left, top, right and bottom, in cells from the corner of the house."""
Opening = Literal["cut", "dissolve", "fade"]
"""How a shot begins: at once; mixed with the shot before; out of black, into which that one went."""


@dataclass(frozen=True, slots=True)
class Sign:
    """A word on a wall: two cells, of which ``cell`` is the left one."""

    text: str
    cell: Cell

    @property
    def box(self) -> Box:
        """Where it hangs."""
        x, y = self.cell
        return x, y, x + 2, y + 1


@dataclass(frozen=True, slots=True)
class Take:
    """An episode before the cameras: signs on its walls, and its light as factors of red, green, blue."""

    episode: Episode
    signs: tuple[Sign, ...]
    light: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class View:
    """Where a camera looks from the beginning of a shot to its end.

    Attributes:
        kind: "follow", "close", "room", "wide", "pan" or "zoom".
        centre: the places that it looks at first and last, in cells; None for the robot, which it follows.
        tall: how many cells its picture is tall, first and last.
    """

    kind: str
    centre: tuple[Point, Point] | None
    tall: tuple[float, float]

    def box(self, share: float, robot: Point, aspect: float) -> Box:
        """What the picture, ``aspect`` times as wide as tall, shows when a share of the shot has passed.

        ``robot`` is where the robot is then, in cells.
        """
        share = eased(share)
        x, y = robot if self.centre is None else between(*self.centre, share)
        height = self.tall[0] + (self.tall[1] - self.tall[0]) * share
        width = height * aspect
        x, y = x + 0.5, y + 0.5  # the middle of a cell
        return x - width / 2, y - height / 2, x + width / 2, y + height / 2


@dataclass(frozen=True, slots=True)
class Footage:
    """A part of a take, by its place among the takes: from ``start`` to ``end`` in seconds of the episode."""

    take: int
    start: float
    end: float
    view: View


@dataclass(frozen=True, slots=True)
class Card:
    """A title: white words on black."""

    text: str


@dataclass(frozen=True, slots=True)
class Shot:
    """What the film shows from frame ``first`` up to, without it, frame ``stop``.

    Attributes:
        first, stop: frames of the film. Footage that is shorter is held: its last picture stands still.
        mixed: frames that a dissolve takes, in which the shot before is still to be seen; of a fade, those
            that the shot before takes to get black, and again those that this one takes to get out of it.
    """

    first: int
    stop: int
    shows: Footage | Card
    opening: Opening = "cut"
    mixed: int = 0


@dataclass(frozen=True, slots=True)
class Format:
    """The file: frames a second, its size and that of the picture within (width, height in pixels).

    ``noise`` is the standard deviation of grain in grey levels, ``crf`` the quality that x264 is given.
    """

    rate: float
    size: tuple[int, int]
    picture: tuple[int, int]
    noise: float
    crf: int

    @property
    def aspect(self) -> float:
        """Width of the picture by its height."""
        return self.picture[0] / self.picture[1]


@dataclass(frozen=True)
class Edit:
    """A film as its editor decided it; shots in order, the first one from frame 0."""

    seed: int
    format: Format
    takes: tuple[Take, ...]
    shots: tuple[Shot, ...]

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.shots[-1].stop / self.format.rate

    def shot_at(self, frame: int) -> int:
        """The place of the shot that a frame is of; in a dissolve, of the one that comes."""
        return bisect_right(self.shots, frame, key=lambda shot: shot.first) - 1

    def source_time(self, shot: Shot, frame: int) -> float:
        """The second of the take that a frame of a shot of footage shows."""
        assert isinstance(shot.shows, Footage)
        return min(shot.shows.start + (frame - shot.first) / self.format.rate, shot.shows.end)


def inside(part: Box, whole: Box) -> bool:
    """Whether a box lies in another one."""
    return part[0] >= whole[0] and part[1] >= whole[1] and part[2] <= whole[2] and part[3] <= whole[3]


def film_moments(edit: Edit) -> list[GridMoment]:
    """The moments that a film shows, in order and in its seconds, by the rule at the module's top."""
    # Shots of the same take that follow each other.
    runs = groupby(edit.shots, key=lambda shot: getattr(shot.shows, "take", None))
    return [moment for take, run in runs if take is not None for moment in _moments(edit, take, run)]


def edit_list(edit: Edit) -> dict[str, Any]:
    """The edit as JSON holds it: shots with their times in the film and in their take, in seconds."""
    rate = edit.format.rate
    shots = []
    for shot in edit.shots:
        row: dict[str, Any] = {
            "start": round(shot.first / rate, 3), "end": round(shot.stop / rate, 3), "opening": shot.opening,
            "mixed": round(shot.mixed / rate, 3),
        }  # fmt: skip
        if isinstance(shot.shows, Card):
            row["card"] = shot.shows.text
        else:
            footage = shot.shows
            row |= {"take": footage.take, "source": [round(footage.start, 3), round(footage.end, 3)]}
            row["view"] = footage.view.kind
        shots.append(row)
    return {"rate": round(rate, 3), "size": edit.format.size, "picture": edit.format.picture, "shots": shots}


def _moments(edit: Edit, take: int, run: Iterable[Shot]) -> Iterator[GridMoment]:
    parts = [(shot, shot.shows) for shot in run if isinstance(shot.shows, Footage)]

    def shown(shot: Shot, footage: Footage, time: float) -> float:
        """The second of the film that shows a second of the take; of one before the shot, its first."""
        return round(shot.first / edit.format.rate + max(0.0, time - footage.start), 3)

    for shot, footage in parts:
        for moment in edit.takes[take].episode.moments:
            if footage.start <= moment.event and moment.end <= footage.end:
                way = next(part for part in parts if part[1].end > moment.start)
                yield replace(
                    moment,
                    start=shown(*way, moment.start),
                    event=shown(shot, footage, moment.event),
                    end=shown(shot, footage, moment.end),
                )
