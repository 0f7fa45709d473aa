"""An editor: from a seed to an edit of several takes, cut as films are.

It leaves out most parts without an event, changes cameras within a take and goes from take to take, sometimes
back and forth. It never cuts inside an event, keeps it in the picture, and lets no dissolve or fade
touch it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from moviola.study.datasets.gridhouse.edit import (
    Card,
    Edit,
    Footage,
    Format,
    Opening,
    Shot,
    Sign,
    Take,
    View,
    inside,
)
from moviola.study.datasets.gridhouse.episode import Episode, GridMoment, simulate
from moviola.study.datasets.gridhouse.motion import Point
from moviola.study.datasets.gridhouse.vocabulary import pick
from moviola.study.datasets.gridhouse.world import Cell, room_of

__all__ = ["edited"]

_Choice = TypeVar("_Choice")

# Frames a second, and how many of a hundred films have them.
_RATES = {24.0: 30, 25.0: 40, 30_000 / 1001: 23, 50.0: 7}
# Pixels of the file and, within them, of pictures with and without bars.
_SIZES: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {
    (256, 144): ((256, 144), (192, 144)),
    (320, 180): ((320, 180), (320, 134), (240, 180)),
    (240, 180): ((240, 180), (240, 134)),
    (320, 240): ((320, 240), (320, 180)),
    (426, 240): ((426, 240), (426, 178), (320, 240)),
}
_CRF = (22, 37)
_TALL = 7.0
_VIEWS = {"follow": 34, "close": 16, "room": 20, "wide": 10, "pan": 10, "zoom": 10}
_OPENINGS: dict[Opening, int] = {"cut": 50, "dissolve": 28, "fade": 22}

# Seconds of a take; of one in which nothing happens, in films of ten minutes and more; and how often that is.
_TAKE, _EMPTY_TAKE, _EMPTY_SHARE, _LONG_FILM = (18.0, 60.0), (60.0, 240.0), 0.08, 600.0
# Films are as long as plain ones, if nobody says how long.
_FILM = (42.0, 104.0)
# Seconds between two cuts, and the fewest that a shot has.
_SHOT, _SHORTEST = (3.0, 14.0), 2.0
# How often a piece of a take with an event, and one without, is in the film; of an empty take, all are.
_KEPT, _KEPT_EMPTY = 0.88, 0.45
# Seconds before an event that belong to it, and after its moment.
_BEFORE, _AFTER = 0.5, 0.1
# How often a still is held, two takes run to and fro, and a card stands between scenes; seconds of these.
_HELD, _HOLD = 0.08, (0.8, 2.5)
_TO_AND_FRO = 0.35
_CARD, _READ = 0.35, (2.0, 3.5)
_MIX = (0.4, 1.2)

_TITLES = (("The Quiet", "The Last", "A Distant", "The Second", "Another", "The Hidden"),
           ("Morning", "Visit", "Summer", "Secret", "Journey", "Return"))  # fmt: skip
_BETWEEN = ("Later ...", "Meanwhile", "The next morning", "That evening", "Some days later", "Elsewhere")
_SIGNS = ("OFFICE", "STORE", "HALL", "LAB", "SHOP", "GYM", "POST", "BANK", "CAFE", "DEPOT", "STUDIO",
          "ARCHIVE")  # fmt: skip


def edited(seed: int, *, number: int, seconds: float | None = None, filler: bool = False) -> Edit:
    """Film and cut one film; the same seed and number give the same edit.

    Args:
        number: place of the film in the world of that seed.
        seconds: roughly how long; drawn between 42 and 104 s when None.
        filler: no event happens.
    """
    cutter = _Cutter(seed, number)
    cutter.card(" ".join(pick(words, cutter.draw) for words in _TITLES))
    length = float(cutter.draw.uniform(*_FILM)) if seconds is None else seconds
    while cutter.seconds < length:
        cutter.scene(length, filler=filler)
    return Edit(seed, cutter.format, tuple(cutter.takes), tuple(cutter.shots))


def _format(draw: Generator) -> Format:
    rate, size = _weighted(_RATES, draw), pick(tuple(_SIZES), draw)
    noise = float(draw.uniform(2, 9)) if draw.random() < 0.5 else 0.0
    return Format(rate, size, pick(_SIZES[size], draw), round(noise, 3), int(draw.integers(*_CRF)))


def _signs(episode: Episode, draw: Generator) -> tuple[Sign, ...]:
    """A word over each room, on that half of its upper wall where no door is."""
    doors = {placed.cell for placed in episode.beats[0].placed if placed.type == "door"}
    words = [str(word) for word in draw.permutation(_SIGNS)]
    signs = []
    for (column, row), word in zip(episode.floors, words, strict=False):
        left: Cell = (5 * column + 1, 5 * row)
        blocked = {left, (left[0] + 1, left[1])} & doors
        signs.append(Sign(word, (left[0] + 2, left[1]) if blocked else left))
    return tuple(signs)


class _Cutter:
    """Shoots takes, each in a house of its own, and lays shots of them one behind another."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed = seed
        self.number = number
        self.draw = np.random.default_rng([seed, 0x6564, number + 1])
        self.format = _format(self.draw)
        self.takes: list[Take] = []
        self.shots: list[Shot] = []

    @property
    def seconds(self) -> float:
        """How long the film is so far."""
        return self.shots[-1].stop / self.format.rate

    def scene(self, length: float, *, filler: bool) -> None:
        """What a film of ``length`` seconds shows of a take or, to and fro, of two."""
        if len(self.shots) > 1 and self.draw.random() < _CARD:
            self.card(pick(_BETWEEN, self.draw))
        if length >= _LONG_FILM and self.draw.random() < _EMPTY_SHARE:
            queues = [self.take(_EMPTY_TAKE, filler=True)]
        else:
            count = 2 if self.draw.random() < _TO_AND_FRO else 1
            seconds = (_TAKE[0], min(_TAKE[1], length / 2))  # so that no take is a whole film
            queues = [self.take(seconds, filler=filler) for _ in range(count)]
        while (queues := [queue for queue in queues if queue]) and self.seconds < length:
            self.lay(queues[int(self.draw.integers(len(queues)))].pop(0))

    def take(self, seconds: tuple[float, float], *, filler: bool) -> list[Footage]:
        """One more take: what the film has of it. A film has fewer than a thousand takes."""
        number = 1000 * (self.number + 1) + len(self.takes)
        length = float(self.draw.uniform(*seconds))
        episode = simulate(self.seed, number=number, seconds=length, filler=filler)
        bright, tint = self.draw.uniform(0.7, 1.1), self.draw.uniform(0.92, 1.08, size=3)
        red, green, blue = (round(float(part), 3) for part in bright * tint)
        self.takes.append(Take(episode, _signs(episode, self.draw), (red, green, blue)))
        cuts = [0.0]
        while (cut := _outside_events(episode, cuts[-1] + self.draw.uniform(*_SHOT))) < (
            episode.duration - _SHORTEST
        ):
            cuts.append(cut)
        kept: list[Footage] = []
        for start, end in pairwise([*cuts, episode.duration]):
            eventful = bool(_events(episode, start, end))
            share = _KEPT if eventful else _KEPT_EMPTY if episode.moments else 1.0
            if self.draw.random() < share:
                before = kept[-1].view.kind if kept else ""
                view = self.view(episode, start, end, before)
                kept.append(Footage(len(self.takes) - 1, start, end, view))
        return kept

    def card(self, text: str) -> None:
        self.append(Card(text), round(self.draw.uniform(*_READ) * self.format.rate), calm=1.0)

    def lay(self, footage: Footage) -> None:
        """A shot of some footage, in whole frames, sometimes with its last picture held."""
        frames = int((footage.end - footage.start) * self.format.rate)
        if self.draw.random() < _HELD:
            frames += round(self.draw.uniform(*_HOLD) * self.format.rate)
        events = self.events(footage)
        calm = events[0].event - _BEFORE - footage.start if events else footage.end - footage.start
        self.append(footage, frames, calm)

    def append(self, shows: Footage | Card, frames: int, calm: float) -> None:
        """A shot, opened in one of the ways; ``calm``: seconds from its beginning without an event."""
        opening, mixed, rate = self.opening(shows), 0, self.format.rate
        if opening != "cut":
            before = self.shots[-1].stop - self.shots[-1].first
            room = min(calm * rate, self.calm_end(), frames / 3, before / 3)
            mixed = int(min(self.draw.uniform(*_MIX) * rate, room))
            if mixed < _MIX[0] * rate:
                opening, mixed = "cut", 0
        first = self.shots[-1].stop if self.shots else 0
        first -= mixed if opening == "dissolve" else 0
        self.shots.append(Shot(first, first + frames, shows, opening, mixed))

    def opening(self, shows: Footage | Card) -> Opening:
        """Within a take it is cut, from take to take and to cards in any way."""
        if not self.shots:
            return "cut"
        before = self.shots[-1].shows
        if isinstance(before, Footage) and isinstance(shows, Footage) and before.take == shows.take:
            # Where time is left out, a dissolve says so.
            left_out = shows.start > before.end
            return "dissolve" if left_out and self.draw.random() < 0.3 else "cut"
        return _weighted(_OPENINGS, self.draw)

    def calm_end(self) -> float:
        """Frames at the end of the last shot that hold no event."""
        shot = self.shots[-1]
        if isinstance(shot.shows, Card) or not (events := self.events(shot.shows)):
            return shot.stop - shot.first
        ended = (events[-1].end - shot.shows.start) * self.format.rate
        return shot.stop - shot.first - ended - 1

    def events(self, footage: Footage) -> list[GridMoment]:
        return _events(self.takes[footage.take].episode, footage.start, footage.end)

    def view(self, episode: Episode, start: float, end: float, before: str) -> View:
        """Another view than that of the shot before, in which the events are to be seen."""
        kind = _weighted(_VIEWS, self.draw)
        view = _view(kind, episode, start, end)
        events = _events(episode, start, end)
        if kind != before and all(self.sees(view, episode, moment, start, end) for moment in events):
            return view
        # A camera that follows the robot sees all that it does.
        return _view("close" if before == "follow" else "follow", episode, start, end)

    def sees(self, view: View, episode: Episode, moment: GridMoment, start: float, end: float) -> bool:
        """Whether the robot and what it acts on are in the picture from an event's beginning to its end."""
        beat = episode.beat_at(moment.event)
        shares = ((time - start) / (end - start) for time in (moment.event, moment.end))
        boxes = [view.box(share, beat.position, self.format.aspect) for share in shares]
        cells = [(x, y, x + 1, y + 1) for x, y in (beat.position, beat.target)]
        return all(inside(cell, box) for box in boxes for cell in cells)


def _view(kind: str, episode: Episode, start: float, end: float) -> View:
    events = _events(episode, start, end)
    first, last = episode.beat_at(start).position, episode.beat_at(end).position
    match kind:
        case "close":
            return View(kind, None, (4.5, 4.5))
        case "zoom":
            return View(kind, None, (9.0, 5.0) if events else (5.0, 9.0))
        case "room":
            room = _middle(episode, episode.beat_at(events[0].event).position if events else last)
            return View(kind, (room, room), (_TALL, _TALL))
        case "pan":
            way = _middle(episode, first), _middle(episode, last)
            if way[0] == way[1]:
                way = ((way[0][0] - _TALL / 2, way[0][1]), way[1])
            return View(kind, way, (_TALL, _TALL))
        case "wide":
            middle = ((episode.shape[0] - 1) / 2, (episode.shape[1] - 1) / 2)
            tall = float(min(12, episode.shape[1] + 1))
            return View(kind, (middle, middle), (tall, tall))
        case _:
            return View("follow", None, (_TALL, _TALL))


def _middle(episode: Episode, cell: Cell) -> Point:
    column, row = room_of(cell, episode.rooms)
    return 5 * column + 2.5, 5 * row + 2.5


def _events(episode: Episode, start: float, end: float) -> list[GridMoment]:
    """The moments whose events lie in a part of a take."""
    return [moment for moment in episode.moments if start <= moment.event and moment.end <= end]


def _outside_events(episode: Episode, time: float) -> float:
    """The first time from ``time`` on at which a cut hurts no event."""
    for moment in episode.moments:
        if moment.event - _BEFORE < time < moment.end + _AFTER:
            time = moment.end + _AFTER
    return time


def _weighted(shares: dict[_Choice, int], draw: Generator) -> _Choice:
    """One of some choices, as often as its share of a hundred says."""
    place = int(np.searchsorted(np.cumsum(list(shares.values())), draw.integers(100), side="right"))
    return list(shares)[place]
