"""Episodes to frames: a camera that follows the robot over a house drawn once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from moviola.errors import InvalidValue
from moviola.study.datasets.gridhouse import sprites
from moviola.study.datasets.gridhouse.edit import Box, Sign
from moviola.study.datasets.gridhouse.episode import Beat, Episode, Placed
from moviola.study.datasets.gridhouse.motion import Point, beside, between, eased, looked_at, moved, share_of
from moviola.study.datasets.gridhouse.world import Cell

__all__ = ["VIEW", "Camera"]

VIEW = 7
"""Cells that a frame shows in each direction."""

Paste = Callable[[Image.Image, Point], None]
"""Lays a sprite on the picture, at a place in cells."""
# Outside the house, and how much of it is drawn around it.
_NIGHT = (30, 33, 52)
_MARGIN = 4


class Camera:
    """Draws the frames of one episode, ``size`` x ``size`` pixels (a multiple of VIEW), VIEW x VIEW cells."""

    def __init__(self, episode: Episode, size: int = 224, signs: Sequence[Sign] = ()) -> None:
        if size < VIEW or size % VIEW:
            raise InvalidValue(f"frames of {size} pixels: give a multiple of {VIEW}")
        self.episode = episode
        self.size = size
        self.cell = size // VIEW
        self._signs = tuple(signs)

    def frames(self, rate: float) -> Iterator[NDArray[np.uint8]]:
        """All frames at ``rate`` a second: (size, size, 3) uint8 RGB."""
        for number in range(math.ceil(self.episode.duration * rate)):
            yield self.frame(number / rate)

    def frame(self, time: float) -> NDArray[np.uint8]:
        """The frame at a time in seconds, (size, size, 3) uint8 RGB."""
        left, top = (
            (where + _MARGIN + 0.5) * self.cell - self.size / 2
            for where in looked_at(self.episode.beat_at(time), time)
        )
        return np.asarray(self._picture(time, (round(left), round(top)), (self.size, self.size)))

    def view(self, time: float, box: Box, size: tuple[int, int]) -> Image.Image:
        """The view of a box of the house (it may reach outside) at a time in seconds, at any size.

        ``size`` is the width and height of the picture in pixels.
        """
        left, top, right, bottom = ((edge + _MARGIN) * self.cell for edge in box)
        corner = (math.floor(left), math.floor(top))
        whole = (math.ceil(right) - corner[0], math.ceil(bottom) - corner[1])
        image = self._picture(time, corner, whole)
        part = (left - corner[0], top - corner[1], right - corner[0], bottom - corner[1])
        return image.resize(size, Image.Resampling.BILINEAR, box=part)

    def _picture(self, time: float, corner: tuple[int, int], size: tuple[int, int]) -> Image.Image:
        """A part of the drawn house, by its corner and size in pixels, with all that stands and moves."""
        beat = self.episode.beat_at(time)
        share = share_of(beat, time)
        image = Image.new("RGB", size, _NIGHT)
        image.paste(self._house, (-corner[0], -corner[1]))

        def paste(sprite: Image.Image, place: Point) -> None:
            x, y = self._corner(*place)
            image.paste(sprite, (x - corner[0], y - corner[1]), sprite)

        self._draw_things(paste, beat, share)
        self._draw_robot(paste, beat, moved(beat, eased(share)), time)
        return image

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
        for sign in self._signs:
            image.paste(sprites.sign(self.cell, sign.text), self._corner(*sign.cell))
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
    def _doorways(self) -> set[Cell]:
        return {placed.cell for placed in self.episode.beats[0].placed if placed.type == "door"}

    def _is_wall(self, x: int, y: int) -> bool:
        return (x % 5 == 0 or y % 5 == 0) and (x, y) not in self._doorways

    def _corner(self, x: float, y: float) -> tuple[int, int]:
        return round((x + _MARGIN) * self.cell), round((y + _MARGIN) * self.cell)

    def _draw_things(self, paste: Paste, beat: Beat, share: float) -> None:
        """Draw the things in the rooms, and in front of them robots that are not at work."""
        things = sorted((p for p in beat.placed if p.type != "robot"), key=lambda p: p.cell[1])
        for placed in (*things, *(p for p in beat.placed if p.type == "robot")):
            if beat.kind == "pickup" and placed.cell == beat.target:
                continue
            if placed.type == "door":
                # "sideways": in a wall that runs up and down.
                phase, sideways = _openness(placed, beat, share), placed.cell[0] % 5 == 0
                sprite = sprites.door(self.cell, placed.colour, sideways, phase)
                paste(sprite, placed.cell)
            elif placed.type == "robot":
                paste(sprites.shadow(self.cell, 0.7), placed.cell)
                paste(sprites.robot(self.cell, placed.colour, placed.heading, False, True), placed.cell)
            else:
                paste(sprites.shadow(self.cell), placed.cell)
                paste(sprites.thing(self.cell, placed.type, placed.colour), placed.cell)

    def _draw_robot(self, paste: Paste, beat: Beat, where: Point, time: float) -> None:
        share = share_of(beat, time)
        heading = beat.heading
        if share >= 0.5:  # turns happen half-way through their beat
            heading = (heading + {"right": 1, "left": -1}.get(beat.kind, 0)) % 4
        held = self._held(beat, where, heading, share)
        reach = held is not None or beat.kind in ("open", "close")
        bob = abs(math.sin(share * math.pi * 2)) * 0.05 if beat.kind == "forward" else 0.0
        hop = abs(math.sin(share * math.pi * 2)) * 0.14 if beat.kind == "look" else 0.0
        sprite = sprites.robot(self.cell, beat.robot, heading, reach, (time % 3.1) < 0.17)
        place = (where[0], where[1] - bob - hop)
        paste(sprites.shadow(self.cell, 0.7), where)
        if held and heading == 3:
            paste(*held)
        paste(sprite, place)
        if held and heading != 3:
            paste(*held)

    def _held(self, beat: Beat, where: Point, heading: int, share: float) -> tuple[Image.Image, Point] | None:
        """The object in the robot's hands and where it is: lifted from, or lowered to, the cell before it."""
        grip = between(where, beside(where, heading), 0.5)
        if heading != 1:  # facing the camera, what is held must not hide the face
            grip = (grip[0], grip[1] - 0.14)
        if beat.kind == "pickup":
            thing = next(p for p in beat.placed if p.cell == beat.target)
            lifted = eased(min(1.0, max(0.0, (share - 0.3) / 0.7)))
            place = between(beat.target, grip, lifted)
            arc = (place[0], place[1] - 0.45 * math.sin(lifted * math.pi))
            return sprites.thing(self.cell, thing.type, thing.colour), arc
        if beat.carrying is None or beat.carrying.type is None or beat.carrying.colour is None:
            return None
        sprite = sprites.thing(self.cell, beat.carrying.type, beat.carrying.colour)
        if beat.kind == "drop":
            lowered = eased(min(1.0, share / 0.7))
            place = between(grip, beat.target, lowered)
            return sprite, (place[0], place[1] - 0.35 * math.sin(lowered * math.pi))
        return sprite, grip


def _openness(door: Placed, beat: Beat, share: float) -> int:
    """0 closed to 8 open; sliding while it is the door of an open or close beat."""
    opened = float(door.open)
    if door.cell == beat.target and beat.kind in ("open", "close"):
        # The arm reaches out first, then the leaf slides.
        slid = eased(min(1.0, max(0.0, (share - 0.25) / 0.65)))
        opened = slid if beat.kind == "open" else 1 - slid
    return round(8 * opened)
