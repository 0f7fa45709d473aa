"""Episodes to frames: a camera that follows the robot over a house drawn once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from moviola.datasets.gridhouse import sprites
from moviola.datasets.gridhouse.episode import Beat, Episode, Placed
from moviola.datasets.gridhouse.world import DIRECTIONS
from moviola.errors import InvalidValue

__all__ = ["VIEW", "Camera"]

VIEW = 7
"""Cells that a frame shows in each direction."""

# Outside the house, and how much of it is drawn around it.
_NIGHT = (30, 33, 52)
_MARGIN = 4
Point = tuple[float, float]


class Camera:
    """Draws the frames of one episode, ``size`` x ``size`` pixels, VIEW x VIEW cells.

    Args:
        episode: what happens.
        size: pixels; a multiple of VIEW.
    """

    def __init__(self, episode: Episode, size: int = 224) -> None:
        if size < VIEW or size % VIEW:
            raise InvalidValue(f"frames of {size} pixels: give a multiple of {VIEW}")
        self.episode = episode
        self.size = size
        self.cell = size // VIEW

    def frames(self, rate: float) -> Iterator[NDArray[np.uint8]]:
        """All frames at ``rate`` a second: (size, size, 3) uint8 RGB."""
        for number in range(math.ceil(self.episode.duration * rate)):
            yield self.frame(number / rate)

    def frame(self, time: float) -> NDArray[np.uint8]:
        """The frame at a time in seconds, (size, size, 3) uint8 RGB."""
        beat = self.episode.beat_at(time)
        share = _share(beat, time)
        where = _moved(beat, _eased(share))
        left, top = (
            (w + _MARGIN + 0.5) * self.cell - self.size / 2 for w in self._looked_at(beat, where, share)
        )
        corner = (round(left), round(top))
        image = self._house.crop((*corner, corner[0] + self.size, corner[1] + self.size))
        self._draw_things(image, corner, beat, share)
        self._draw_parked(image, corner, beat)
        self._draw_robot(image, corner, beat, where, time)
        return np.asarray(image)

    def _looked_at(self, beat: Beat, where: Point, share: float) -> Point:
        """What the camera looks at: the robot, and on the way from one to another."""
        if beat.kind != "swap":
            return where
        return _between(beat.position, beat.target, _eased(share))

    # -- the house -------------------------------------------------------------------------------------

    @cached_property
    def _house(self) -> Image.Image:
        """Floors and walls of the whole house with night around it."""
        width, height = self.episode.shape
        size = ((width + 2 * _MARGIN) * self.cell, (height + 2 * _MARGIN) * self.cell)
        image = Image.new("RGB", size, _NIGHT)
        cells = [(x, y) for x in range(width) for y in range(height)]
        for x, y in cells:
            if self._is_wall(x, y):
                face = y + 1 < height and not self._is_wall(x, y + 1)
                tile = sprites.wall(self.cell, face)
            else:
                tile = sprites.floor(self.cell, self.episode.floor_at((x, y)), (x + y) % 2 == 1)
            image.paste(tile, self._corner(x, y))
        image.paste(sprites.darkened(image, 0.25), mask=self._wall_shade(cells, size))
        return image

    def _wall_shade(self, cells: list[tuple[int, int]], size: tuple[int, int]) -> Image.Image:
        """Walls throw a soft shade on the floor beside them."""
        shade, floor = Image.new("L", size, 0), Image.new("L", size, 0)
        for x, y in cells:
            left, top = self._corner(x, y)
            box = (left, top, left + self.cell - 1, top + self.cell - 1)
            ImageDraw.Draw(shade if self._is_wall(x, y) else floor).rectangle(box, fill=255)
        blurred = shade.filter(ImageFilter.GaussianBlur(self.cell * 0.16))
        return Image.composite(blurred, Image.new("L", size, 0), floor)

    @cached_property
    def _doorways(self) -> dict[tuple[int, int], bool]:
        """Cells of doors, and whether the wall around runs up and down."""
        doors = [p.cell for p in self.episode.beats[0].placed if p.type == "door"]
        return {(x, y): x % 5 == 0 for x, y in doors}

    def _is_wall(self, x: int, y: int) -> bool:
        return (x % 5 == 0 or y % 5 == 0) and (x, y) not in self._doorways

    def _corner(self, x: float, y: float) -> tuple[int, int]:
        return round((x + _MARGIN) * self.cell), round((y + _MARGIN) * self.cell)

    # -- what stands and moves in it -------------------------------------------------------------------

    def _draw_things(self, image: Image.Image, corner: tuple[int, int], beat: Beat, share: float) -> None:
        for placed in sorted(beat.placed, key=lambda p: p.cell[1]):
            if placed.type == "robot" or (beat.kind == "pickup" and placed.cell == beat.target):
                continue
            if placed.type == "door":
                phase = _openness(placed, beat, share)
                sprite = sprites.door(self.cell, placed.colour, self._doorways[placed.cell], phase)
                self._paste(image, corner, sprite, placed.cell)
            else:
                self._paste(image, corner, sprites.shadow(self.cell), placed.cell)
                self._paste(image, corner, sprites.thing(self.cell, placed.type, placed.colour), placed.cell)

    def _draw_parked(self, image: Image.Image, corner: tuple[int, int], beat: Beat) -> None:
        for placed in beat.placed:
            if placed.type == "robot":
                self._paste(image, corner, sprites.shadow(self.cell, 0.7), placed.cell)
                still = sprites.robot(self.cell, placed.colour, placed.heading, False, True)
                self._paste(image, corner, still, placed.cell)

    def _draw_robot(
        self, image: Image.Image, corner: tuple[int, int], beat: Beat, where: Point, time: float
    ) -> None:
        share = _share(beat, time)
        heading = _turned(beat, share)
        held = self._held(beat, where, heading, share)
        reach = held is not None or beat.kind in ("open", "close")
        bob = abs(math.sin(share * math.pi * 2)) * 0.05 if beat.kind == "forward" else 0.0
        hop = abs(math.sin(share * math.pi * 2)) * 0.14 if beat.kind == "look" else 0.0
        sprite = sprites.robot(self.cell, beat.robot, heading, reach, (time % 3.1) < 0.17)
        place = (where[0], where[1] - bob - hop)
        self._paste(image, corner, sprites.shadow(self.cell, 0.7), where)
        if held and heading == 3:
            self._paste(image, corner, *held)
        self._paste(image, corner, sprite, place)
        if held and heading != 3:
            self._paste(image, corner, *held)

    def _held(self, beat: Beat, where: Point, heading: int, share: float) -> tuple[Image.Image, Point] | None:
        """The object in the robot's hands and where it is: lifted from, or lowered to, the cell before it."""
        grip = _between(where, _beside(where, heading), 0.5)
        if heading != 1:  # facing the camera, what is held must not hide the face
            grip = (grip[0], grip[1] - 0.14)
        if beat.kind == "pickup":
            thing = next(p for p in beat.placed if p.cell == beat.target)
            lifted = _eased(min(1.0, max(0.0, (share - 0.3) / 0.7)))
            place = _between(beat.target, grip, lifted)
            arc = (place[0], place[1] - 0.45 * math.sin(lifted * math.pi))
            return sprites.thing(self.cell, thing.type, thing.colour), arc
        if beat.carrying is None or beat.carrying.type is None or beat.carrying.colour is None:
            return None
        sprite = sprites.thing(self.cell, beat.carrying.type, beat.carrying.colour)
        if beat.kind == "drop":
            lowered = _eased(min(1.0, share / 0.7))
            place = _between(grip, beat.target, lowered)
            return sprite, (place[0], place[1] - 0.35 * math.sin(lowered * math.pi))
        return sprite, grip

    def _paste(self, image: Image.Image, corner: tuple[int, int], sprite: Image.Image, place: Point) -> None:
        x, y = self._corner(*place)
        image.paste(sprite, (x - corner[0], y - corner[1]), sprite)


def _share(beat: Beat, time: float) -> float:
    """How much of a beat has passed, 0 to 1."""
    return min(1.0, max(0.0, (time - beat.start) / (beat.end - beat.start)))


def _eased(share: float) -> float:
    """Starts and ends gently."""
    return share * share * (3 - 2 * share)


def _between(a: Point, b: Point, share: float) -> Point:
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _beside(where: Point, heading: int) -> Point:
    """The cell before a place."""
    dx, dy = DIRECTIONS[heading]
    return where[0] + dx, where[1] + dy


def _moved(beat: Beat, share: float) -> Point:
    """Where the robot is during a beat."""
    return _between(beat.position, beat.target, share) if beat.kind == "forward" else beat.position


def _turned(beat: Beat, share: float) -> int:
    """Its heading: turns happen half-way through their beat."""
    if share < 0.5 or beat.kind not in ("left", "right"):
        return beat.heading
    return (beat.heading + (1 if beat.kind == "right" else -1)) % 4


def _openness(door: Placed, beat: Beat, share: float) -> int:
    """0 closed to 8 open; sliding while it is the door of an open or close beat."""
    opened = float(door.open)
    if door.cell == beat.target and beat.kind in ("open", "close"):
        # The arm reaches out first, then the leaf slides.
        slid = _eased(min(1.0, max(0.0, (share - 0.25) / 0.65)))
        opened = slid if beat.kind == "open" else 1 - slid
    return round(8 * opened)
