"""One film's story: a robot (or several, in turn) lives in a house, and everything that happens has its time.

An episode is a list of beats: a beat is one thing that takes a moment (a step, a turn, a grip, a pause), with
the world as it was at its start. Events are the beats that a sentence could be about; each gives a moment:
from the end of the event before (at most 9 s before this one) to its end plus a hold, which varies, so that
the decisive event is not always at the same place in a moment.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from minigrid.core.world_object import Door
from numpy.random import Generator

from moviola.errors import InvalidValue
from moviola.study.datasets.gridhouse.vocabulary import ROBOTS, Action, Slots, Thing, caption, pick
from moviola.study.datasets.gridhouse.world import Cell, House, Step, around, room_of

__all__ = ["Beat", "Episode", "GridMoment", "Placed", "simulate"]

Kind = Literal["left", "right", "forward", "pickup", "drop", "open", "close", "look", "wait", "swap"]

# Seconds that a beat takes at pace 1.
_SECONDS: dict[Kind, float] = {
    "left": 0.4, "right": 0.4, "forward": 0.6, "pickup": 1.1, "drop": 1.1, "open": 0.9, "close": 0.9,
    "look": 1.4, "swap": 1.2,
}  # fmt: skip
# Maximum seconds from a moment's start to its event.
_REACH_BACK = 9.0
_HOLD = (0.3, 2.7)


@dataclass(frozen=True, slots=True)
class Placed:
    """An object in its cell; ``open`` matters for doors. A parked robot has the type "robot"."""

    type: str
    colour: str
    cell: Cell
    open: bool = False
    heading: int = 1


@dataclass(frozen=True, slots=True)
class Beat:
    """What the acting robot does from ``start`` to ``end`` (seconds), and the world at the start of it."""

    start: float
    end: float
    kind: Kind
    robot: str
    position: Cell
    heading: int
    carrying: Thing | None
    target: Cell
    placed: tuple[Placed, ...]


@dataclass(frozen=True, slots=True)
class GridMoment:
    """A labelled moment: its times in seconds, when the event begins, its slots and precise caption."""

    start: float
    end: float
    event: float
    slots: Slots
    caption: str


@dataclass(frozen=True)
class Episode:
    """A film before it is drawn: deterministic by its seed."""

    video_id: str
    seed: int
    beats: tuple[Beat, ...]
    moments: tuple[GridMoment, ...]
    floors: dict[Cell, str]
    shape: tuple[int, int]
    rooms: tuple[int, int]

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.beats[-1].end

    def beat_at(self, time: float) -> Beat:
        """The beat that a time falls into; the last one for times behind the end."""
        return self.beats[max(0, bisect_right(self.beats, time, key=lambda beat: beat.start) - 1)]

    def floor_at(self, cell: Cell) -> str:
        """Floor colour of the room of a cell, see :func:`~moviola.study.datasets.gridhouse.world.room_of`."""
        return self.floors[room_of(cell, self.rooms)]


def simulate(
    seed: int,
    *,
    number: int | None = None,
    video_id: str = "",
    seconds: float | None = None,
    filler: bool = False,
) -> Episode:
    """Simulate one film; the same seed and number give the same episode.

    Args:
        number: place of the film in the world of that seed; None for a film that belongs to no world.
        video_id: its name; ``gh-<seed>`` when empty.
        seconds: roughly how long; drawn between 42 and 104 s when None.
        filler: no event happens, so the film has no moment.

    Raises:
        InvalidValue: a length below 10 s.
    """
    if seconds is not None and seconds < 10:
        raise InvalidValue(f"an episode of {seconds} s: give at least 10 s")
    return _Story(seed, number, filler).episode(video_id or f"gh-{seed}", seconds)


class _Story:
    """Writes the beats of an episode while the robot lives."""

    def __init__(self, seed: int, number: int | None, filler: bool) -> None:
        self.seed = seed
        self.filler = filler
        entropy = [seed, 0x6768] if number is None else [seed, 0x6768, number + 1]
        self.draw: Generator = np.random.default_rng(entropy)
        rows, columns = [(1, 2), (1, 3), (2, 2), (2, 2), (2, 3), (2, 3)][int(self.draw.integers(6))]
        robots = [str(r) for r in self.draw.permutation(ROBOTS)[: int(self.draw.integers(1, 4))]]
        objects = int(self.draw.integers(2 * rows * columns, 3 * rows * columns + 1))
        self.house = House(self.draw, rows=rows, columns=columns, objects=objects, robots=robots)
        self.pace = float(self.draw.uniform(0.85, 1.15))
        self.time = 0.0
        self.beats: list[Beat] = []
        self.moments: list[GridMoment] = []
        self.last_end = 0.0

    def episode(self, video_id: str, seconds: float | None) -> Episode:
        length = float(self.draw.uniform(42, 104)) if seconds is None else seconds
        self.pause(0.3, 2.0)
        while self.time < length:
            self.wander() if self.filler else self.live()
        self.pause(0.8, 2.0)
        return Episode(
            video_id=video_id,
            seed=self.seed,
            beats=tuple(self.beats),
            moments=tuple(self.moments),
            floors=dict(self.house.floors),
            shape=(int(self.house.grid.width), int(self.house.grid.height)),
            rooms=(int(self.house.num_rows), int(self.house.num_cols)),
        )

    def live(self) -> None:
        """One errand and, often, some time in which nothing happens."""
        if self.house.carrying is None and self.house.parked and self.draw.random() < 0.15:
            self.swap()
        action = pick(_WITH_A_THING if self.house.carrying else _WITHOUT, self.draw)
        if action == "put":
            self.put()
        elif action == "drop":
            self.wander()
            spots = [cell for cell in around(self.house.position) if self.house.is_free(cell)]
            self.walk_and(spots, "drop", "drop")
        else:
            kind, fits = _ERRANDS[action]
            self.walk_and([cell for cell, thing in self.house.things() if fits(thing)], action, kind)
        self.wander()

    def put(self) -> None:
        """Put what is in hand where it is beside one thing only."""
        things = dict(self.house.things())
        cell, fixed = pick(list(things.items()), self.draw)
        spots = [
            spot
            for spot in around(cell)
            if self.house.is_free(spot) and sum(c in things for c in around(spot)) == 1
        ]
        if not isinstance(fixed, Door):
            self.walk_and(spots, "put", "drop", second=Thing(fixed.color, fixed.type))

    def walk_and(
        self, targets: Sequence[Cell], action: Action, kind: Kind, *, second: Thing | None = None
    ) -> None:
        """Go and face one of the targets and do it; nothing when none can be reached."""
        for place in self.draw.permutation(len(targets)):
            target = targets[int(place)]
            way = self.house.way_to_face(target)
            if way is not None and target != self.house.position:
                for step in way:
                    # A door that has to be opened on the way is an event of its own.
                    self.event("open", "open", None) if step == "toggle" else self.beat(step)
                self.event(action, kind, second)
                return

    def event(self, action: Action, kind: Kind, second: Thing | None) -> None:
        """The thing itself: a beat that a sentence is about, the hold after it, and the moment."""
        # With something in hand, the thing that is opened on the way is the door.
        thing = self.house.carrying if kind == "drop" else self.house.grid.get(*self.house.facing)
        slots = Slots(
            robot=self.house.agent_colour,
            action=action,
            thing=Thing(thing.color, thing.type),
            second=second,
            room=self.house.floor_at(self.house.position),
        )
        started = self.time
        self.beat(kind)
        self.pause(*_HOLD)
        start = max(self.last_end, started - _REACH_BACK)
        self.moments.append(GridMoment(start, self.time, started, slots, caption(slots, self.draw)))
        self.last_end = self.time

    def wander(self) -> None:
        """Walk about the room without touching anything, look around, stand still."""
        for _ in range(int(self.draw.integers(2, 8))):
            choice = self.draw.random()
            if choice < 0.4:
                self.pause(0.5, 3.0)
            elif choice < 0.6:
                self.beat("left" if self.draw.random() < 0.5 else "right")
                self.pause(0.3, 1.0)
            else:
                self.stroll()

    def stroll(self) -> None:
        """A few steps towards a free cell, not through closed doors."""
        way = self.house.way_to_face(self.house.free_cell()) or []
        for step in way[: int(self.draw.integers(2, 7))]:
            if step == "toggle":
                return
            self.beat(step)

    def swap(self) -> None:
        """The camera goes over to another robot."""
        colour = pick(sorted(self.house.parked), self.draw)
        self.append("swap", _SECONDS["swap"], target=self.house.parked[colour].position)
        self.house.take_over(colour)

    def pause(self, shortest: float, longest: float) -> None:
        self.append("wait", float(self.draw.uniform(shortest, longest)))

    def beat(self, kind: Kind) -> None:
        """Write the beat, then let it happen."""
        self.append(kind, _SECONDS[kind] * self.pace)
        if kind in _STEPS:
            self.house.step(getattr(self.house.actions, _STEPS[kind]))

    def append(self, kind: Kind, seconds: float, *, target: Cell | None = None) -> None:
        house = self.house
        # Milliseconds, so that times are the same numbers in every file that states them.
        start, self.time = self.time, round(self.time + seconds, 3)
        carrying = Thing(house.carrying.color, house.carrying.type) if house.carrying else None
        self.beats.append(Beat(
            start, self.time, kind, house.agent_colour, house.position, int(house.agent_dir), carrying,
            target or house.facing, self.placed(),
        ))  # fmt: skip

    def placed(self) -> tuple[Placed, ...]:
        """The world now; the tuple of the beat before when nothing has changed."""
        things, robots = self.house.things(), self.house.parked.values()
        now = (
            *(Placed(thing.type, thing.color, cell, bool(_open(thing))) for cell, thing in things),
            *(Placed("robot", robot.colour, robot.position, heading=robot.heading) for robot in robots),
        )
        return self.beats[-1].placed if self.beats and self.beats[-1].placed == now else now


_STEPS: dict[Kind, Step] = {
    "left": "left", "right": "right", "forward": "forward", "pickup": "pickup", "drop": "drop",
    "open": "toggle", "close": "toggle",
}  # fmt: skip


def _open(thing: Any) -> bool:
    return isinstance(thing, Door) and thing.is_open


# Actions, as often as they are to happen, with something in hand and without; on what, and by which beat.
_WITH_A_THING: tuple[Action, ...] = ("put", "put", "drop")
_WITHOUT: tuple[Action, ...] = (
    "go to", "go to", "pick up", "pick up", "pick up", "open", "open", "close", "close",
)  # fmt: skip
_ERRANDS: dict[Action, tuple[Kind, Callable[[Any], bool]]] = {
    "go to": ("look", lambda thing: not _open(thing)),
    "pick up": ("pickup", lambda thing: thing.can_pickup()),
    "open": ("open", lambda thing: isinstance(thing, Door) and not thing.is_open),
    "close": ("close", _open),
}
