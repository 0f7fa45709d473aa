"""Contact sheets: many stills with captions on one picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

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
_PAPER = (24, 25, 28)
_FRAME = (52, 54, 60)
_INK = (236, 236, 232)
_FAINT = (160, 163, 170)


@dataclass(frozen=True, slots=True)
class SheetCell:
    """A still, as (h, w, 3) uint8 RGB or as JPEG or PNG bytes, and the lines of text below it."""

    image: NDArray[np.uint8] | bytes
    caption: tuple[str, ...] = ()


def contact_sheet(cells: Sequence[SheetCell], out: Path, *, columns: int = 5, title: str = "") -> None:
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
    columns = min(columns, len(cells))
    stills = [_still(cell.image) for cell in cells]
    text, heading = ImageFont.load_default(size=_TEXT), ImageFont.load_default(size=_TITLE)
    line = round(_TEXT * _LEADING)
    rows = range(0, len(cells), columns)
    heights = [
        max(still.height for still in stills[row : row + columns])
        + 8
        + line * max(len(cell.caption) for cell in cells[row : row + columns])
        for row in rows
    ]
    top = _MARGIN + (round(_TITLE * _LEADING) + _GAP // 2 if title else 0)
    width = 2 * _MARGIN + columns * _CELL_WIDTH + (columns - 1) * _GAP
    sheet = Image.new("RGB", (width, top + sum(heights) + _GAP * (len(heights) - 1) + _MARGIN), _PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text(
            (_MARGIN, _MARGIN - 6), _shortened(draw, title, heading, width - 2 * _MARGIN), _INK, heading
        )
    for row, height in zip(rows, heights, strict=True):
        stills_height = height - 8 - line * max(len(cell.caption) for cell in cells[row : row + columns])
        for column, (cell, still) in enumerate(
            zip(cells[row : row + columns], stills[row : row + columns], strict=True)
        ):
            x = _MARGIN + column * (_CELL_WIDTH + _GAP)
            y = top + (stills_height - still.height) // 2
            sheet.paste(still, (x, y))
            draw.rectangle((x - 1, y - 1, x + still.width, y + still.height), outline=_FRAME)
            for number, words in enumerate(cell.caption):
                place = (x, top + stills_height + 8 + number * line)
                draw.text(place, _shortened(draw, words, text, _CELL_WIDTH), _FAINT if number else _INK, text)
        top += height + _GAP
    _write(sheet, Path(out))


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


def _shortened(
    draw: ImageDraw.ImageDraw, words: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, width: int
) -> str:
    words = " ".join(words.split())
    if draw.textlength(words, font) <= width:
        return words
    while words and draw.textlength(words + "…", font) > width:
        words = words[:-1]
    return words.rstrip() + "…"


def _write(sheet: Image.Image, out: Path) -> None:
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        sheet.save(part, "PNG", optimize=True)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
