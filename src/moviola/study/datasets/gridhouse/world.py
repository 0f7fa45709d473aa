"""A house of rooms on minigrid, and a robot that finds its way in it.

minigrid keeps the grid, the objects and what an action does; the way is planned here: a breadth-first search
over positions and headings that opens closed doors. (minigrid's BabyAI bot explores what it has not seen; the
robot of a film knows its house, and drops and closes things, for which that bot has no instruction.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from minigrid.core import constants
from minigrid.core.mission import MissionSpace
from minigrid.core.roomgrid import RoomGrid
from minigrid.core.world_object import Ball, Box, Door, Key, WorldObj
from numpy.random import Generator

from moviola.study.datasets.gridhouse.vocabulary import COLOURS, FLOORS

__all__ = ["DIRECTIONS", "Cell", "House", "Step", "around", "room_of"]

Cell = tuple[int, int]
Step = Literal["left", "right", "forward", "pickup", "drop", "toggle"]

# Right, down, left, up: minigrid's headings 0 to 3.
DIRECTIONS: tuple[Cell, ...] = ((1, 0), (0, 1), (-1, 0), (0, -1))

# minigrid refuses colours that its table does not know; it draws nothing here, so any number will do.
for _number, _colour in enumerate(COLOURS):
    constants.COLOR_TO_IDX.setdefault(_colour, 100 + _number)

_KINDS: dict[str, Callable[[str], WorldObj]] = {"key": Key, "ball": Ball, "box": Box}


class Parked(WorldObj):  # type: ignore[misc]
    """A robot that is not at work: it stands in the way."""

    def __init__(self) -> None:
        super().__init__("agent", "red")


@dataclass(frozen=True, slots=True)
class Robot:
    """A robot's colour and where it stands, with its heading 0 to 3."""

    colour: str
    position: Cell
    heading: int


class House(RoomGrid):  # type: ignore[misc]
    """Rooms with coloured floors, doors, objects and one or more robots, one of which acts at a time."""

    def __init__(
        self, generator: Generator, *, rows: int, columns: int, objects: int, robots: list[str]
    ) -> None:
        self._generator = generator
        self._objects = objects
        self._robot_colours = robots
        self.floors: dict[Cell, str] = {}
        self.parked: dict[str, Robot] = {}
        mission = MissionSpace(mission_func=lambda: "live")
        super().__init__(
            room_size=6, num_rows=rows, num_cols=columns, max_steps=1 << 30, mission_space=mission
        )
        self.reset(seed=int(generator.integers(1 << 31)))

    def _gen_grid(self, width: int, height: int) -> None:
        super()._gen_grid(width, height)
        self.connect_all()
        draw = self._generator
        floors = [str(f) for f in draw.permutation(FLOORS)]
        for column in range(self.num_cols):
            for row in range(self.num_rows):
                self.floors[column, row] = floors[(row * self.num_cols + column) % len(floors)]
        for _, door in self.things():  # there is nothing else yet
            door.color = str(draw.choice(COLOURS))
            door.is_open = bool(draw.random() < 0.6)
        placed: set[tuple[str, str]] = set()
        while len(placed) < self._objects:
            kind, colour = str(draw.choice(sorted(_KINDS))), str(draw.choice(COLOURS))
            if (kind, colour) not in placed:
                placed.add((kind, colour))
                self.put_obj(_KINDS[kind](colour), *self.free_cell())
        for colour in self._robot_colours:
            cell = self.free_cell()
            self.parked[colour] = Robot(colour, cell, int(draw.integers(4)))
            self.grid.set(*cell, Parked())
        self.agent_colour = ""
        self.agent_pos, self.agent_dir = (1, 1), 0
        self.take_over(self._robot_colours[0])

    def take_over(self, colour: str) -> None:
        """Another robot acts from now on; the one before stands where it is."""
        if self.agent_colour:
            self.parked[self.agent_colour] = Robot(self.agent_colour, self.position, int(self.agent_dir))
            self.grid.set(*self.position, Parked())
        robot = self.parked.pop(colour)
        self.grid.set(*robot.position, None)
        self.agent_colour, self.agent_pos, self.agent_dir = colour, robot.position, robot.heading

    @property
    def position(self) -> Cell:
        """Where the acting robot stands."""
        return int(self.agent_pos[0]), int(self.agent_pos[1])

    @property
    def facing(self) -> Cell:
        """The cell before the acting robot."""
        return around(self.position)[int(self.agent_dir)]

    def things(self) -> Iterator[tuple[Cell, Any]]:
        """Everything that a robot may act on, with its cell."""
        for x in range(self.grid.width):
            for y in range(self.grid.height):
                thing = self.grid.get(x, y)
                if isinstance(thing, Key | Ball | Box | Door):
                    yield (x, y), thing

    def floor_at(self, cell: Cell) -> str:
        """Floor colour of the room of a cell, see :func:`room_of`."""
        return self.floors[room_of(cell, (self.num_rows, self.num_cols))]

    def free_cell(self) -> Cell:
        """A random empty cell away from doors, so that no way is blocked."""
        draw = self._generator
        while True:
            cell = (int(draw.integers(1, self.grid.width - 1)), int(draw.integers(1, self.grid.height - 1)))
            if self.is_free(cell):
                return cell

    def is_free(self, cell: Cell) -> bool:
        """Empty, and not right before a door."""
        if self.grid.get(*cell) is not None or (self.agent_pos is not None and cell == self.position):
            return False
        return not any(isinstance(self.grid.get(*beside), Door) for beside in around(cell))

    def way_to_face(self, target: Cell) -> list[Step] | None:
        """Steps until the robot stands beside ``target`` and faces it; None when there is no way.

        Closed doors on the way are opened (with a "toggle" in the list).
        """
        start = (self.position, int(self.agent_dir))
        queue: deque[tuple[Cell, int, list[Step]]] = deque([(*start, [])])
        seen = {start}
        while queue:
            here, heading, way = queue.popleft()
            ahead = around(here)[heading]
            if ahead == target:
                return way
            for cell, turned, steps in self._moves(here, heading, ahead):
                if (cell, turned) not in seen:
                    seen.add((cell, turned))
                    queue.append((cell, turned, way + steps))
        return None

    def _moves(self, here: Cell, heading: int, ahead: Cell) -> Iterator[tuple[Cell, int, list[Step]]]:
        cell = self.grid.get(*ahead)
        if cell is None or (isinstance(cell, Door) and cell.is_open):
            yield ahead, heading, ["forward"]
        elif isinstance(cell, Door):
            yield ahead, heading, ["toggle", "forward"]
        yield here, (heading - 1) % 4, ["left"]
        yield here, (heading + 1) % 4, ["right"]


def room_of(cell: Cell, rooms: tuple[int, int]) -> Cell:
    """Column and row of the room that holds a cell; a doorway belongs to the room on its left or above.

    ``rooms`` is how many rows and columns of rooms the house has.
    """
    rows, columns = rooms
    return min(max((cell[0] - 1) // 5, 0), columns - 1), min(max((cell[1] - 1) // 5, 0), rows - 1)


def around(cell: Cell) -> list[Cell]:
    """The four cells beside a cell, by heading."""
    return [(cell[0] + dx, cell[1] + dy) for dx, dy in DIRECTIONS]
