"""Pictures with words in them."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

FONT = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"


def card(
    *lines: str, size: tuple[int, int] = (640, 360), shade: int = 30, pixels: int = 32
) -> NDArray[np.uint8]:
    """A picture (height, width, 3) with lines of text on a ground that is brighter on the right."""
    width, height = size
    ground = np.broadcast_to(np.linspace(shade, shade + 60, width)[None, :, None], (height, width, 3))
    image = Image.fromarray(ground.astype(np.uint8))
    draw, font = ImageDraw.Draw(image), ImageFont.truetype(str(FONT), pixels)
    for number, line in enumerate(lines):
        draw.text((width / 10, height / 4 + number * 2 * pixels), line, font=font, fill=(240, 240, 220))
    return np.asarray(image)
