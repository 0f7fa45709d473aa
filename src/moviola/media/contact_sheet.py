"""Contact sheets, many stills with captions on one picture; and cards with a title."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from moviola.errors import InvalidValue
from moviola.files.writing import atomic_write

__all__ = ["SheetCell", "contact_sheet", "letters_without_font", "sheet_picture", "title_card"]

_CELL_WIDTH, _GAP, _MARGIN = 320, 20, 28
_TEXT, _TITLE, _LEADING = 17, 30, 1.35
_LINE = round(_TEXT * _LEADING)
# Pillow's own font has little more than ASCII: replacements for characters that are common in captions, and
# places of other fonts (a system has few of these).
_SUBSTITUTES = {"–": "-", "—": "-", "−": "-", "→": ">", "×": "x", "•": "·"}
_SYSTEM_FONTS = (
    "NotoSans-Regular.ttf", "DejaVuSans.ttf", "LiberationSans-Regular.ttf", "NotoSansCJK-Regular.ttc",
    *(f"NotoSans{script}-Regular.ttf" for script in (
        "Arabic", "Hebrew", "Devanagari", "Bengali", "Tamil", "Telugu", "Thai", "Lao", "Khmer", "Myanmar",
        "Georgian", "Armenian", "Ethiopic",
    )),
    "DroidSansFallbackFull.ttf", "wqy-zenhei.ttc", "Arial Unicode.ttf", "Arial.ttf", "arial.ttf",
    "segoeui.ttf", "msyh.ttc", "meiryo.ttc", "malgun.ttf", "Nirmala.ttf", "leelawui.ttf", "PingFang.ttc",
    "AppleSDGothicNeo.ttc", "Kohinoor.ttc", "Thonburi.ttc",
)  # fmt: skip
_NO_GLYPH = "\U0010fffe"
_BACKGROUND, _FRAME = (24, 25, 28), (52, 54, 60)
_TEXT_COLOUR, _FAINT_TEXT = (236, 236, 232), (160, 163, 170)

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


class SheetCell(NamedTuple):
    """A still, as (h, w, 3) uint8 RGB or as JPEG or PNG bytes, and the lines of text below it."""

    image: NDArray[np.uint8] | bytes
    caption: Sequence[str] = ()


Cell = SheetCell | tuple[NDArray[np.uint8] | bytes, Sequence[str]]


def contact_sheet(cells: Sequence[Cell], out: Path, columns: int = 5, title: str = "") -> None:
    """Write :func:`sheet_picture`, with its errors, to a PNG that appears complete or not at all."""
    sheet = Image.fromarray(sheet_picture(cells, columns, title))
    with atomic_write(out, "wb") as file:
        sheet.save(file, "PNG", optimize=True)


def sheet_picture(cells: Sequence[Cell], columns: int = 5, title: str = "") -> NDArray[np.uint8]:
    """A picture of the cells row by row, (height, width, 3) uint8 RGB, each still above its caption.

    The first line of a caption is bright, the others are faint; what does not fit ends with an ellipsis.

    Raises:
        InvalidValue: no cells, or fewer than one column.
    """
    if not cells or columns < 1:
        size = f"contact sheet of {len(cells)} cells in {columns} columns"
        raise InvalidValue(f"{size}: give at least one of both")
    stills = [_still(image) for image, _ in cells]
    captions = [tuple(caption) for _, caption in cells]
    columns = min(columns, len(cells))
    width = 2 * _MARGIN + columns * _CELL_WIDTH + (columns - 1) * _GAP
    rows = [
        _Row(stills[at : at + columns], captions[at : at + columns]) for at in range(0, len(cells), columns)
    ]
    top = _MARGIN + (round(_TITLE * _LEADING) + _GAP // 2 if title else 0)
    height = top + sum(row.height + _GAP for row in rows) - _GAP + _MARGIN
    sheet = Image.new("RGB", (width, height), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    if title:
        title_font = _font(_TITLE, title)
        shortened = _fitted(draw, title, title_font, width - 2 * _MARGIN)
        draw.text((_MARGIN, _MARGIN - 6), shortened, _TEXT_COLOUR, title_font)
    for row in rows:
        row.paint(sheet, draw, top)
        top += row.height + _GAP
    return np.asarray(sheet)


def letters_without_font(lines: Iterable[str]) -> str:
    """The letters of some lines that a sheet or a card shows as boxes: no font that it looks for has them.

    A line has one font: letters of several scripts may each have one, and not all in the same line.
    """
    boxes = (letter for line in lines for letter in line if not _drawn(letter, _font(_TEXT, line)))
    return "".join(dict.fromkeys(boxes))


def _drawn(letter: str, font: Font) -> bool:
    return letter in _SUBSTITUTES or unicodedata.combining(letter) > 0 or _can_draw(font, letter)


def title_card(lines: Sequence[str], width: int, height: int) -> NDArray[np.uint8]:
    """Lines of text amid a dark picture (height, width, 3) uint8 RGB, the first large, cut where too long."""
    card = Image.new("RGB", (width, height), _BACKGROUND)
    draw = ImageDraw.Draw(card)
    sizes = [max(8, height // 12), *[max(8, height // 20)] * (len(lines) - 1)]
    top = (height - sum(round(size * _LEADING) for size in sizes)) / 2
    for number, (line, size) in enumerate(zip(lines, sizes, strict=True)):
        font = _font(size, line)
        fitted = _fitted(draw, line, font, width * 9 // 10)
        draw.text((width / 2, top), fitted, _FAINT_TEXT if number else _TEXT_COLOUR, font, anchor="ma")
        top += round(size * _LEADING)
    return np.asarray(card)


@dataclass(frozen=True, slots=True)
class _Row:
    """Stills side by side, centred on one line, with their captions below."""

    stills: list[Image.Image]
    captions: list[tuple[str, ...]]

    @property
    def picture_height(self) -> int:
        return max(still.height for still in self.stills)

    @property
    def height(self) -> int:
        lines = max(len(caption) for caption in self.captions)
        return self.picture_height + (_TEXT // 2 + lines * _LINE if lines else 0)

    def paint(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, top: int) -> None:
        for column, (still, caption) in enumerate(zip(self.stills, self.captions, strict=True)):
            x = _MARGIN + column * (_CELL_WIDTH + _GAP)
            y = top + (self.picture_height - still.height) // 2
            sheet.paste(still, (x, y))
            draw.rectangle((x - 1, y - 1, x + still.width, y + still.height), outline=_FRAME)
            for number, text in enumerate(caption):
                place = (x, top + self.picture_height + _TEXT // 2 + number * _LINE)
                colour = _FAINT_TEXT if number else _TEXT_COLOUR
                font = _font(_TEXT, text)  # a line has one: captions may be in several scripts
                draw.text(place, _fitted(draw, text, font, _CELL_WIDTH), colour, font)


def _still(image: NDArray[np.uint8] | bytes) -> Image.Image:
    """As wide as a cell, at most as high as wide."""
    picture = Image.open(BytesIO(image)) if isinstance(image, bytes) else Image.fromarray(image)
    scale = _CELL_WIDTH / max(picture.size)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    still = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    if still.width == _CELL_WIDTH:
        return still
    padded = Image.new("RGB", (_CELL_WIDTH, still.height), (0, 0, 0))
    padded.paste(still, ((_CELL_WIDTH - still.width) // 2, 0))
    return padded


def _fitted(draw: ImageDraw.ImageDraw, text: str, font: Font, width: int) -> str:
    """The beginning of a text that fits into a line."""
    line = " ".join(text.split())
    text = "".join(letter if _can_draw(font, letter) else _SUBSTITUTES.get(letter, letter) for letter in line)
    if draw.textlength(text, font) <= width:
        return text
    while text and draw.textlength(text + "…", font) > width:
        text = text[:-1]
        while text and unicodedata.combining(line[len(text) : len(text) + 1] or " "):
            text = text[:-1]  # a letter goes with its marks
    return text.rstrip() + "…"


@lru_cache(maxsize=256)
def _font(size: int, text: str) -> Font:
    """Pillow's own font if it has all the letters of a line, else the system's font that has most of them."""
    best, own = ImageFont.load_default(size), _missing(ImageFont.load_default(size), text)
    if not own:
        return best
    fonts = [font for name in _SYSTEM_FONTS if (font := _system_font(name, size)) is not None]
    return min([best, *fonts], key=lambda font: _missing(font, text))


def _missing(font: Font, text: str) -> int:
    """How many letters of a text a font lacks."""
    return sum(not _can_draw(font, letter) for letter in {*text} - _SUBSTITUTES.keys())


@lru_cache(maxsize=128)
def _system_font(name: str, size: int) -> Font | None:
    with suppress(OSError):
        return ImageFont.truetype(name, size)
    return None


def _can_draw(font: Font, letter: str) -> bool:
    return letter.isspace() or bytes(font.getmask(letter)) != bytes(font.getmask(_NO_GLYPH))
