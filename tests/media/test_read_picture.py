"""Pictures in files, as an encoder sees them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from moviola.errors import NoVideoStream, UnreadableMedia
from moviola.media import read_picture, write_video
from moviola.types import FrameSize

SIZE = FrameSize(32, 32, "crop", 32, "bilinear")


@pytest.fixture
def image() -> Image.Image:
    """Left half red, right half blue, wider than high."""
    pixels = np.zeros((64, 128, 3), np.uint8)
    pixels[:, :64, 0] = pixels[:, 64:, 2] = 255
    return Image.fromarray(pixels)


def is_red_left(picture: np.ndarray) -> bool:
    left, right = picture[:, :12].mean((0, 1)), picture[:, -12:].mean((0, 1))
    return bool(min(left[0], right[2]) > 200 and max(left[2], right[0]) < 60)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.webp", "x.bmp", "x.gif", "x.tiff"])
def test_kinds_of_files(tmp_path: Path, image: Image.Image, name: str) -> None:
    image.save(tmp_path / name)
    picture = read_picture(tmp_path / name, SIZE)
    assert (picture.shape, picture.dtype) == ((32, 32, 3), np.uint8)
    assert is_red_left(picture)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P"])
def test_kinds_of_pixels(tmp_path: Path, image: Image.Image, mode: str) -> None:
    image.convert(mode).save(tmp_path / "x.png")
    assert read_picture(tmp_path / "x.png", SIZE).shape == (32, 32, 3)


def test_it_is_turned_as_it_says(tmp_path: Path, image: Image.Image) -> None:
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    image.save(tmp_path / "x.jpg", exif=exif)
    assert is_red_left(read_picture(tmp_path / "x.jpg", SIZE)[::-1, ::-1])


def test_a_video_is_its_first_frame(tmp_path: Path, image: Image.Image) -> None:
    write_video(tmp_path / "x.mp4", [np.asarray(image)] * 5, rate=5)
    assert is_red_left(read_picture(tmp_path / "x.mp4", SIZE))


def test_pictures_too_elongated_or_too_large_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (1000, 2)).save(tmp_path / "x.png")
    with pytest.raises(UnreadableMedia, match="at most 64 times"):
        read_picture(tmp_path / "x.png", SIZE)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(UnreadableMedia, match="make it smaller"):
        read_picture(tmp_path / "x.png", SIZE)


def test_what_is_no_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no picture")
    for name in ("x.png", "missing.png"):
        with pytest.raises((UnreadableMedia, NoVideoStream), match=name):
            read_picture(tmp_path / name, SIZE)
