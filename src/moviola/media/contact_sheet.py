"""Contact sheets: many stills with captions on one picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from moviola.errors import InvalidValue

__all__ = ["SheetCell", "contact_sheet"]

_CELL_WIDTH = 320
_GAP = 20
_MARGIN = 28
_TEXT = 17
_TITLE = 30
_LEADING = 1.35
_LINE = round(_TEXT * _LEADING)
# Pillow's own font knows little more than ASCII: what to write for signs that are common in captions, and
# where to look for other letters (a system has few of these).
_PLAIN = {"–": "-", "—": "-", "−": "-", "→": ">", "×": "x", "•": "·"}
_SYSTEM_FONTS = (
    "NotoSans-Regular.ttf",
    "DejaVuSans.ttf",
    "LiberationSans-Regular.ttf",
    "NotoSansCJK-Regular.ttc",
    "Arial Unicode.ttf",
    "Arial.ttf",
    "arial.ttf",
    "msyh.ttc",
)
_NO_LETTER = "\U0010fffe"
_PAPER = (24, 25, 28)
_FRAME = (52, 54, 60)
_INK = (236, 236, 232)
_FAINT = (160, 163, 170)


Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


class SheetCell(NamedTuple):
    """A still, as (h, w, 3) uint8 RGB or as JPEG or PNG bytes, and the lines of text below it."""

    image: NDArray[np.uint8] | bytes
    caption: Sequence[str] = ()


def contact_sheet(
    cells: Sequence[SheetCell | tuple[NDArray[np.uint8] | bytes, Sequence[str]]],
    out: Path,
    columns: int = 5,
    title: str = "",
) -> None:
    """Write a PNG that shows the cells row by row, each still above its caption.

    The first line of a caption is bright, the others are faint; what does not fit is shortened with an
    ellipsis. The file appears whole or not at all.

    Raises:
        InvalidValue: no cells, or fewer than one column.
    """
    if not cells or columns < 1:
        raise InvalidValue(
            f"contact sheet of {len(cells)} cells in {columns} columns: give at least one of both"
        )
    stills = [_still(image) for image, _ in cells]
    captions = [tuple(" ".join(words.split()) for words in caption) for _, caption in cells]
    everything = "".join((title, *(words for caption in captions for words in caption)))
    text, heading = _font(_TEXT, everything), _font(_TITLE, everything)
    columns = min(columns, len(cells))
    width = 2 * _MARGIN + columns * _CELL_WIDTH + (columns - 1) * _GAP
    rows = [
        _Row(stills[at : at + columns], captions[at : at + columns]) for at in range(0, len(cells), columns)
    ]
    top = _MARGIN + (round(_TITLE * _LEADING) + _GAP // 2 if title else 0)
    sheet = Image.new("RGB", (width, top + sum(row.height + _GAP for row in rows) - _GAP + _MARGIN), _PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((_MARGIN, _MARGIN - 6), _fitted(draw, title, heading, width - 2 * _MARGIN), _INK, heading)
    for row in rows:
        row.paint(sheet, draw, text, top)
        top += row.height + _GAP
    _write(sheet, Path(out))


@dataclass(frozen=True, slots=True)
class _Row:
    """Stills side by side, centred on one line, and their captions below."""

    stills: list[Image.Image]
    captions: list[tuple[str, ...]]

    @property
    def picture_height(self) -> int:
        return max(still.height for still in self.stills)

    @property
    def height(self) -> int:
        lines = max(len(caption) for caption in self.captions)
        return self.picture_height + (_TEXT // 2 + lines * _LINE if lines else 0)

    def paint(self, sheet: Image.Image, draw: ImageDraw.ImageDraw, font: Font, top: int) -> None:
        for column, (still, caption) in enumerate(zip(self.stills, self.captions, strict=True)):
            x = _MARGIN + column * (_CELL_WIDTH + _GAP)
            y = top + (self.picture_height - still.height) // 2
            sheet.paste(still, (x, y))
            draw.rectangle((x - 1, y - 1, x + still.width, y + still.height), outline=_FRAME)
            for number, words in enumerate(caption):
                place = (x, top + self.picture_height + _TEXT // 2 + number * _LINE)
                draw.text(place, _fitted(draw, words, font, _CELL_WIDTH), _FAINT if number else _INK, font)


def _still(image: NDArray[np.uint8] | bytes) -> Image.Image:
    """As wide as a cell, at most as high as wide."""
    picture = Image.open(BytesIO(image)) if isinstance(image, bytes) else Image.fromarray(image)
    scale = min(_CELL_WIDTH / picture.width, _CELL_WIDTH / picture.height)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    still = picture.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    if still.width == _CELL_WIDTH:
        return still
    padded = Image.new("RGB", (_CELL_WIDTH, still.height), (0, 0, 0))
    padded.paste(still, ((_CELL_WIDTH - still.width) // 2, 0))
    return padded


def _fitted(draw: ImageDraw.ImageDraw, words: str, font: Font, width: int) -> str:
    """Text that the font can draw, cut to a width."""
    words = "".join(sign if _can_draw(font, sign) else _PLAIN.get(sign, sign) for sign in words)
    if draw.textlength(words, font) <= width:
        return words
    while words and draw.textlength(words + "…", font) > width:
        words = words[:-1]
    return words.rstrip() + "…"


def _font(size: int, words: str) -> Font:
    """Pillow's own font when it has all the letters, else the system's font that has most of them."""
    own = ImageFont.load_default(size)
    wanted = {sign for sign in words if not sign.isspace() and sign not in _PLAIN}

    def missing(font: Font) -> int:
        return sum(not _can_draw(font, sign) for sign in wanted)

    if not missing(own):
        return own
    candidates: list[Font] = [own]
    for name in _SYSTEM_FONTS:
        with suppress(OSError):
            candidates.append(ImageFont.truetype(name, size))
    return min(candidates, key=missing)


def _can_draw(font: Font, sign: str) -> bool:
    return sign.isspace() or bytes(font.getmask(sign)) != bytes(font.getmask(_NO_LETTER))


def _write(sheet: Image.Image, out: Path) -> None:
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        sheet.save(part, "PNG", optimize=True)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
