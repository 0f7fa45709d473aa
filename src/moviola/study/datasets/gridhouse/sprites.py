"""The pictures that gridhouse is put together from: drawn large once, scaled down, kept.

Everything is drawn on a canvas of ``_BIG`` pixels a cell and scaled to the cell size with a good filter, so
that edges are smooth. Coordinates inside a cell run from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

__all__ = [
    "FLOOR_PAINT", "PAINT", "Paint", "darkened", "door", "floor", "font_within", "robot", "shadow", "sign",
    "thing", "wall",
]  # fmt: skip

Paint = tuple[int, int, int]
_Within = tuple[float, float, float, float]

_BIG = 160
_EDGE = round(0.04 * _BIG)

PAINT: dict[str, Paint] = {
    "red": (226, 61, 61), "green": (58, 174, 76), "blue": (52, 110, 230), "purple": (139, 71, 214),
    "yellow": (247, 200, 32), "grey": (128, 136, 148), "orange": (250, 129, 24), "pink": (250, 112, 182),
    "cyan": (28, 200, 214), "brown": (139, 84, 44),
}  # fmt: skip

FLOOR_PAINT: dict[str, Paint] = {
    "grey": (214, 217, 222), "blue": (190, 215, 246), "green": (196, 233, 200),
    "yellow": (251, 238, 184), "pink": (251, 211, 227), "purple": (222, 208, 247),
}  # fmt: skip

_OUTLINE: Paint = (43, 45, 66)
_WALL_TOP: Paint = (86, 94, 122)
_WALL_FACE: Paint = (61, 67, 92)


def _mixed(paint: Paint, other: Paint, share: float) -> Paint:
    a, b, c = (round(x + (y - x) * share) for x, y in zip(paint, other, strict=True))
    return a, b, c


lighter = partial(_mixed, other=(255, 255, 255))
darker = partial(_mixed, other=_OUTLINE)


class _Pen:
    """Draws in cell coordinates, ``outline`` in the outline's ink and width."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)

    def _outlined(self, outline: bool) -> dict[str, Any]:
        return {"outline": _OUTLINE, "width": _EDGE} if outline else {"outline": None, "width": 0}

    def round(self, box: _Within, radius: float, fill: Paint, *, outline: bool = True) -> None:
        edge = self._outlined(outline)
        self._draw.rounded_rectangle([value * _BIG for value in box], radius * _BIG, fill=fill, **edge)

    def oval(self, box: _Within, fill: Paint, *, outline: bool = True) -> None:
        self._draw.ellipse([value * _BIG for value in box], fill=fill, **self._outlined(outline))

    def ring(self, box: _Within, paint: Paint, width: float) -> None:
        self._draw.ellipse([value * _BIG for value in box], outline=paint, width=round(width * _BIG))

    def line(self, points: list[tuple[float, float]], paint: Paint, width: float) -> None:
        places = [value * _BIG for point in points for value in point]
        self._draw.line(places, fill=paint, width=round(width * _BIG), joint="curve")


def _sprite(size: int, draw: Callable[[_Pen], None], ground: Paint | None = None) -> Image.Image:
    image = (
        Image.new("RGB", (_BIG, _BIG), ground) if ground else Image.new("RGBA", (_BIG, _BIG), (0, 0, 0, 0))
    )
    draw(_Pen(image))
    return image.resize((size, size), Image.Resampling.LANCZOS)


@cache
def shadow(size: int, width: float = 0.62) -> Image.Image:
    """A soft dark spot on the floor."""
    image = Image.new("L", (_BIG, _BIG), 0)
    left = (1 - width) / 2 * _BIG
    ImageDraw.Draw(image).ellipse((left, 0.70 * _BIG, _BIG - left, 0.94 * _BIG), fill=95)
    soft = image.filter(ImageFilter.GaussianBlur(_BIG * 0.035)).resize((size, size), Image.Resampling.BOX)
    dark = Image.new("RGBA", (size, size), (*_OUTLINE, 0))
    dark.putalpha(soft)
    return dark


@cache
def floor(size: int, colour: str, dark: bool) -> Image.Image:
    """A floor tile: two shades alternate, with a fine bright edge."""
    paint = FLOOR_PAINT[colour]
    base = darker(paint, share=0.055) if dark else paint

    def draw(pen: _Pen) -> None:
        pen.line([(0, 0.012), (1, 0.012)], lighter(base, share=0.45), 0.025)
        pen.line([(0.012, 0), (0.012, 1)], lighter(base, share=0.45), 0.025)

    return _sprite(size, draw, base)


@cache
def wall(size: int, face: bool) -> Image.Image:
    """A wall seen from above; with a face where the floor begins below it."""
    return _sprite(size, _face_of_a_wall if face else lambda pen: None, _WALL_TOP)


def _face_of_a_wall(pen: _Pen) -> None:
    pen.round((-0.1, 0.58, 1.1, 1.1), 0, _WALL_FACE, outline=False)
    pen.line([(0, 0.58), (1, 0.58)], lighter(_WALL_TOP, share=0.30), 0.035)
    for left in (0.0, 0.5):
        pen.line([(left, 0.60), (left, 0.80)], darker(_WALL_FACE, share=0.35), 0.02)
        pen.line([((left + 0.25) % 1, 0.80), ((left + 0.25) % 1, 1.0)], darker(_WALL_FACE, share=0.35), 0.02)
    pen.line([(0, 0.80), (1, 0.80)], darker(_WALL_FACE, share=0.35), 0.02)


@cache
def sign(size: int, text: str) -> Image.Image:
    """A board of two cells by one with a word in capitals on it, for a wall."""
    image = Image.new("RGB", (2 * _BIG, _BIG), _WALL_TOP)
    draw = ImageDraw.Draw(image)
    board = (_EDGE, _EDGE, 2 * _BIG - _EDGE, _BIG - _EDGE)
    draw.rounded_rectangle(board, _EDGE, fill=(250, 248, 238), outline=_OUTLINE, width=_EDGE)
    font = font_within(text, 2 * _BIG - 6 * _EDGE, 0.8 * _BIG)
    draw.text((_BIG, _BIG / 2), text, fill=_OUTLINE, font=font, anchor="mm")
    return image.resize((2 * size, size), Image.Resampling.LANCZOS)


def font_within(text: str, width: float, size: float) -> Any:
    """A font of at most ``size`` pixels in which a text is at most ``width`` pixels wide."""
    return ImageFont.load_default(min(size, 100 * width / ImageFont.load_default(100).getlength(text)))


@cache
def thing(size: int, kind: str, colour: str) -> Image.Image:
    """A key, a ball or a box."""
    return _sprite(size, lambda pen: _THINGS[kind](pen, PAINT[colour]))


def _key(pen: _Pen, paint: Paint) -> None:
    for width, colour, grow in ((0.20, _OUTLINE, 0.04), (0.12, paint, 0.0)):
        pen.ring((0.29 - grow, 0.10 - grow, 0.71 + grow, 0.52 + grow), colour, width)
        pen.line([(0.50, 0.46), (0.50, 0.86 + grow)], colour, width)
        pen.line([(0.50, 0.66), (0.67 + grow, 0.66)], colour, width)
        pen.line([(0.50, 0.80), (0.70 + grow, 0.80)], colour, width)
    pen.line([(0.475, 0.50), (0.475, 0.84)], lighter(paint, share=0.5), 0.03)
    pen.ring((0.315, 0.125, 0.685, 0.495), lighter(paint, share=0.35), 0.03)


def _ball(pen: _Pen, paint: Paint) -> None:
    pen.oval((0.17, 0.17, 0.83, 0.83), darker(paint, share=0.30))
    pen.oval((0.205, 0.20, 0.775, 0.77), paint, outline=False)
    pen.oval((0.26, 0.25, 0.62, 0.60), lighter(paint, share=0.18), outline=False)
    pen.oval((0.31, 0.28, 0.47, 0.42), lighter(paint, share=0.75), outline=False)


def _box(pen: _Pen, paint: Paint) -> None:
    pen.round((0.15, 0.30, 0.85, 0.87), 0.07, darker(paint, share=0.12))
    pen.round((0.10, 0.17, 0.90, 0.44), 0.07, lighter(paint, share=0.12))
    pen.round((0.43, 0.19, 0.57, 0.85), 0.0, lighter(paint, share=0.62), outline=False)
    pen.round((0.20, 0.21, 0.40, 0.25), 0.02, lighter(paint, share=0.6), outline=False)


_THINGS: dict[str, Callable[[_Pen, Paint], None]] = {"key": _key, "ball": _ball, "box": _box}


@cache
def door(size: int, colour: str, sideways: bool, phase: int) -> Image.Image:
    """A door with its frame; ``phase`` 0 (closed) to 8 (open): the leaf slides into the wall."""
    return _sprite(size, lambda pen: _door(pen, PAINT[colour], sideways, phase / 8))


def _door(pen: _Pen, paint: Paint, sideways: bool, opened: float) -> None:
    frame = darker(paint, share=0.45)
    left = 0.06 + 0.72 * opened
    if sideways:  # in a wall that runs up and down
        pen.round((0.20, left, 0.80, 0.94), 0.06, paint)
        if opened < 0.9:
            pen.round((0.33, left + 0.09, 0.67, 0.86), 0.05, lighter(paint, share=0.28), outline=False)
            pen.oval((0.60, left + 0.06, 0.74, left + 0.20), (255, 236, 150))
        pen.round((0.12, -0.04, 0.88, 0.10), 0.03, frame)
        pen.round((0.12, 0.90, 0.88, 1.04), 0.03, frame)
        return
    pen.round((left, 0.20, 0.94, 0.84), 0.06, paint)
    if opened < 0.9:
        pen.round((left + 0.09, 0.32, 0.86, 0.72), 0.05, lighter(paint, share=0.28), outline=False)
        pen.oval((left + 0.06, 0.47, left + 0.20, 0.61), (255, 236, 150))
    pen.round((-0.04, 0.12, 0.10, 0.92), 0.03, frame)
    pen.round((0.90, 0.12, 1.04, 0.92), 0.03, frame)


@cache
def robot(size: int, colour: str, heading: int, reach: bool, blink: bool) -> Image.Image:
    """A robot seen a little from above, facing right, down, left or up; ``reach`` stretches its arms."""
    return _sprite(size, lambda pen: _robot(pen, PAINT[colour], heading, reach, blink))


# Where the arms hang or stretch to, by heading: two grips as (x, y).
_ARMS = {0: ((0.80, 0.66), (0.80, 0.74)), 1: ((0.27, 0.84), (0.73, 0.84)),
         2: ((0.20, 0.66), (0.20, 0.74)), 3: ((0.24, 0.34), (0.76, 0.34))}  # fmt: skip
_ARMS_OUT = {0: ((0.97, 0.56), (0.97, 0.70)), 1: ((0.36, 0.97), (0.64, 0.97)),
             2: ((0.03, 0.56), (0.03, 0.70)), 3: ((0.36, 0.05), (0.64, 0.05))}  # fmt: skip


def _robot(pen: _Pen, paint: Paint, heading: int, reach: bool, blink: bool) -> None:
    if heading == 3:
        _arms(pen, paint, heading, reach)
    pen.round((0.22, 0.72, 0.40, 0.93), 0.06, darker(paint, share=0.55))
    pen.round((0.60, 0.72, 0.78, 0.93), 0.06, darker(paint, share=0.55))
    pen.round((0.20, 0.50, 0.80, 0.86), 0.14, darker(paint, share=0.12))
    pen.line([(0.50, 0.16), (0.50, 0.04)], _OUTLINE, 0.05)
    pen.oval((0.43, -0.005, 0.57, 0.125), (255, 221, 87))
    pen.round((0.14, 0.13, 0.86, 0.62), 0.18, paint)
    pen.round((0.24, 0.17, 0.64, 0.21), 0.02, lighter(paint, share=0.55), outline=False)
    if heading == 3:  # its back: a hatch
        pen.round((0.34, 0.28, 0.66, 0.50), 0.06, darker(paint, share=0.22), outline=False)
        for top in (0.34, 0.43):
            pen.line([(0.40, top), (0.60, top)], darker(paint, share=0.5), 0.03)
    else:
        _face(pen, {0: 0.12, 1: 0.0, 2: -0.12}[heading], blink)
    if heading != 3:
        _arms(pen, paint, heading, reach)


def _face(pen: _Pen, aside: float, blink: bool) -> None:
    pen.round((0.23 + aside, 0.25, 0.77 + aside * 0.75, 0.53), 0.11, (33, 38, 60), outline=False)
    for eye in (0.38, 0.62):
        x = eye + aside * 1.15
        if blink:
            pen.line([(x - 0.06, 0.39), (x + 0.06, 0.39)], (150, 244, 255), 0.035)
        else:
            pen.oval((x - 0.065, 0.30, x + 0.065, 0.48), (150, 244, 255), outline=False)
            pen.oval((x - 0.03, 0.325, x + 0.01, 0.385), (255, 255, 255), outline=False)


def _arms(pen: _Pen, paint: Paint, heading: int, reach: bool) -> None:
    grips = (_ARMS_OUT if reach else _ARMS)[heading]
    shoulders = {0: ((0.62, 0.64), (0.62, 0.72)), 2: ((0.38, 0.64), (0.38, 0.72))}.get(
        heading, ((0.22, 0.62), (0.78, 0.62))
    )
    for shoulder, grip in zip(shoulders, grips, strict=True):
        pen.line([shoulder, grip], _OUTLINE, 0.13)
        pen.line([shoulder, grip], darker(paint, share=0.25), 0.07)
        pen.oval(
            (grip[0] - 0.075, grip[1] - 0.075, grip[0] + 0.075, grip[1] + 0.075), lighter(paint, share=0.35)
        )


def darkened(image: Image.Image, share: float) -> Image.Image:
    """A picture with less light."""
    factor = round(255 * (1 - share))
    return ImageChops.multiply(image, Image.new("RGB", image.size, (factor, factor, factor)))
