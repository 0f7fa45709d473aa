"""The pictures that gridhouse is put together from: drawn large once, scaled down, kept.

Everything is drawn on a canvas of ``_BIG`` pixels a cell and scaled to the cell size with a good filter, so
that edges are smooth. Coordinates inside a cell run from 0 to 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

__all__ = ["FLOOR_PAINT", "PAINT", "Paint", "door", "floor", "robot", "shadow", "sign", "thing", "wall"]

Paint = tuple[int, int, int]
Draw = Callable[[ImageDraw.ImageDraw, float], None]

_BIG = 160

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


def mixed(paint: Paint, other: Paint, share: float) -> Paint:
    """A colour between two."""
    a, b, c = (round(x + (y - x) * share) for x, y in zip(paint, other, strict=True))
    return a, b, c


def lighter(paint: Paint, share: float) -> Paint:
    """Towards white."""
    return mixed(paint, (255, 255, 255), share)


def darker(paint: Paint, share: float) -> Paint:
    """Towards the outline's ink."""
    return mixed(paint, _OUTLINE, share)


class _Pen:
    """Draws in cell coordinates with outlines of one width."""

    def __init__(self, image: Image.Image) -> None:
        self._draw = ImageDraw.Draw(image)
        self._size = image.width

    def _box(self, box: tuple[float, float, float, float]) -> list[float]:
        return [value * self._size for value in box]

    def round(
        self, box: tuple[float, float, float, float], radius: float, fill: Paint, *, outline: bool = True
    ) -> None:
        """A rectangle with round corners."""
        self._draw.rounded_rectangle(
            self._box(box), radius * self._size, fill=fill, outline=_OUTLINE if outline else None,
            width=round(0.04 * self._size) if outline else 0,
        )  # fmt: skip

    def oval(
        self,
        box: tuple[float, float, float, float],
        fill: Paint | None,
        *,
        outline: bool = True,
        width: float = 0.04,
    ) -> None:
        """An ellipse; without a fill it is a ring."""
        self._draw.ellipse(
            self._box(box), fill=fill, outline=_OUTLINE if outline else None,
            width=round(width * self._size) if outline else 0,
        )  # fmt: skip

    def ring(self, box: tuple[float, float, float, float], paint: Paint, width: float) -> None:
        """A ring in a colour."""
        self._draw.ellipse(self._box(box), outline=paint, width=round(width * self._size))

    def line(self, points: list[tuple[float, float]], paint: Paint, width: float) -> None:
        """A line with round joints."""
        self._draw.line(
            [value * self._size for point in points for value in point], fill=paint,
            width=round(width * self._size), joint="curve",
        )  # fmt: skip


def _sprite(size: int, draw: Callable[[_Pen], None]) -> Image.Image:
    image = Image.new("RGBA", (_BIG, _BIG), (0, 0, 0, 0))
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
    base = darker(paint, 0.055) if dark else paint
    image = Image.new("RGB", (_BIG, _BIG), base)
    pen = _Pen(image)
    pen.line([(0, 0.012), (1, 0.012)], lighter(base, 0.45), 0.025)
    pen.line([(0.012, 0), (0.012, 1)], lighter(base, 0.45), 0.025)
    return image.resize((size, size), Image.Resampling.LANCZOS)


@cache
def wall(size: int, face: bool) -> Image.Image:
    """A wall seen from above; with a face where the floor begins below it."""
    image = Image.new("RGB", (_BIG, _BIG), _WALL_TOP)
    pen = _Pen(image)
    if face:
        pen.round((-0.1, 0.58, 1.1, 1.1), 0, _WALL_FACE, outline=False)
        pen.line([(0, 0.58), (1, 0.58)], lighter(_WALL_TOP, 0.30), 0.035)
        for left in (0.0, 0.5):
            pen.line([(left, 0.60), (left, 0.80)], darker(_WALL_FACE, 0.35), 0.02)
            pen.line([((left + 0.25) % 1, 0.80), ((left + 0.25) % 1, 1.0)], darker(_WALL_FACE, 0.35), 0.02)
        pen.line([(0, 0.80), (1, 0.80)], darker(_WALL_FACE, 0.35), 0.02)
    return image.resize((size, size), Image.Resampling.LANCZOS)


@cache
def sign(size: int, text: str) -> Image.Image:
    """A board of two cells by one with a word in capitals on it, for a wall."""
    image = Image.new("RGB", (2 * _BIG, _BIG), _WALL_TOP)
    draw = ImageDraw.Draw(image)
    edge = round(0.04 * _BIG)
    draw.rounded_rectangle(
        (edge, edge, 2 * _BIG - edge, _BIG - edge), edge, fill=(250, 248, 238), outline=_OUTLINE, width=edge
    )
    # As large as the board has room for.
    widest, tallest = 2 * _BIG - 6 * edge, 0.8 * _BIG
    font = ImageFont.load_default(min(tallest, 100 * widest / ImageFont.load_default(100).getlength(text)))
    draw.text((_BIG, _BIG / 2), text, fill=_OUTLINE, font=font, anchor="mm")
    return image.resize((2 * size, size), Image.Resampling.LANCZOS)


@cache
def thing(size: int, kind: str, colour: str) -> Image.Image:
    """A key, a ball or a box."""
    return _sprite(size, lambda pen: _THINGS[kind](pen, PAINT[colour]))


def _key(pen: _Pen, paint: Paint) -> None:
    shaft = [(0.50, 0.46), (0.50, 0.86)]
    teeth = [[(0.50, 0.66), (0.67, 0.66)], [(0.50, 0.80), (0.70, 0.80)]]
    for width, colour in ((0.20, _OUTLINE), (0.12, paint)):
        grow = 0.04 if colour == _OUTLINE else 0.0
        pen.ring((0.29 - grow, 0.10 - grow, 0.71 + grow, 0.52 + grow), colour, width)
        pen.line([(0.50, 0.46), (0.50, 0.86 + grow)], colour, width)
        for tooth in teeth:
            pen.line([tooth[0], (tooth[1][0] + grow, tooth[1][1])], colour, width)
    pen.line([(0.475, shaft[0][1] + 0.04), (0.475, 0.84)], lighter(paint, 0.5), 0.03)
    pen.ring((0.315, 0.125, 0.685, 0.495), lighter(paint, 0.35), 0.03)


def _ball(pen: _Pen, paint: Paint) -> None:
    pen.oval((0.17, 0.17, 0.83, 0.83), darker(paint, 0.30))
    pen.oval((0.205, 0.20, 0.775, 0.77), paint, outline=False)
    pen.oval((0.26, 0.25, 0.62, 0.60), lighter(paint, 0.18), outline=False)
    pen.oval((0.31, 0.28, 0.47, 0.42), lighter(paint, 0.75), outline=False)


def _box(pen: _Pen, paint: Paint) -> None:
    pen.round((0.15, 0.30, 0.85, 0.87), 0.07, darker(paint, 0.12))
    pen.round((0.10, 0.17, 0.90, 0.44), 0.07, lighter(paint, 0.12))
    pen.round((0.43, 0.19, 0.57, 0.85), 0.0, lighter(paint, 0.62), outline=False)
    pen.round((0.20, 0.21, 0.40, 0.25), 0.02, lighter(paint, 0.6), outline=False)


_THINGS: dict[str, Callable[[_Pen, Paint], None]] = {"key": _key, "ball": _ball, "box": _box}


@cache
def door(size: int, colour: str, sideways: bool, phase: int) -> Image.Image:
    """A door with its frame; ``phase`` 0 (closed) to 8 (open): the leaf slides into the wall."""
    return _sprite(size, lambda pen: _door(pen, PAINT[colour], sideways, phase / 8))


def _door(pen: _Pen, paint: Paint, sideways: bool, opened: float) -> None:
    frame = darker(paint, 0.45)
    left = 0.06 + 0.72 * opened
    if sideways:  # in a wall that runs up and down
        pen.round((0.20, left, 0.80, 0.94), 0.06, paint)
        if opened < 0.9:
            pen.round((0.33, left + 0.09, 0.67, 0.86), 0.05, lighter(paint, 0.28), outline=False)
            pen.oval((0.60, left + 0.06, 0.74, left + 0.20), (255, 236, 150))
        pen.round((0.12, -0.04, 0.88, 0.10), 0.03, frame)
        pen.round((0.12, 0.90, 0.88, 1.04), 0.03, frame)
        return
    pen.round((left, 0.20, 0.94, 0.84), 0.06, paint)
    if opened < 0.9:
        pen.round((left + 0.09, 0.32, 0.86, 0.72), 0.05, lighter(paint, 0.28), outline=False)
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
    pen.round((0.22, 0.72, 0.40, 0.93), 0.06, darker(paint, 0.55))
    pen.round((0.60, 0.72, 0.78, 0.93), 0.06, darker(paint, 0.55))
    pen.round((0.20, 0.50, 0.80, 0.86), 0.14, darker(paint, 0.12))
    pen.line([(0.50, 0.16), (0.50, 0.04)], _OUTLINE, 0.05)
    pen.oval((0.43, -0.005, 0.57, 0.125), (255, 221, 87))
    pen.round((0.14, 0.13, 0.86, 0.62), 0.18, paint)
    pen.round((0.24, 0.17, 0.64, 0.21), 0.02, lighter(paint, 0.55), outline=False)
    if heading == 3:  # its back: a hatch
        pen.round((0.34, 0.28, 0.66, 0.50), 0.06, darker(paint, 0.22), outline=False)
        for top in (0.34, 0.43):
            pen.line([(0.40, top), (0.60, top)], darker(paint, 0.5), 0.03)
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
        pen.line([shoulder, grip], darker(paint, 0.25), 0.07)
        pen.oval((grip[0] - 0.075, grip[1] - 0.075, grip[0] + 0.075, grip[1] + 0.075), lighter(paint, 0.35))


def darkened(image: Image.Image, share: float) -> Image.Image:
    """A picture with less light."""
    factor = round(255 * (1 - share))
    return ImageChops.multiply(image, Image.new("RGB", image.size, (factor, factor, factor)))
