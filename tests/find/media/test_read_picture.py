"""Pictures in files, as an encoder sees them."""

from __future__ import annotations

import os
import random
import tracemalloc
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from moviola.errors import MediaError, NoVideoStream, UnreadableMedia
from moviola.media import PICTURE_FORMATS, read_picture, write_video
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


def test_a_file_without_a_picture_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"no picture")
    for name in ("x.png", "missing.png"):
        with pytest.raises((UnreadableMedia, NoVideoStream), match=name):
            read_picture(tmp_path / name, SIZE)


@pytest.mark.parametrize("name", ["x.png", "x.jpg", "x.gif"])
def test_a_large_picture_is_made_smaller_on_the_way(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image.radial_gradient("L").resize((3000, 2001)).convert("RGB")
    image.paste((255, 0, 0), (0, 0, 1500, 2001))
    exif = Image.Exif()
    exif[0x0112] = 3
    image.save(tmp_path / name, exif=exif.tobytes())
    whole = read_picture(tmp_path / name, SIZE)
    monkeypatch.setattr("moviola.media.stills._PLAIN_PIXELS", 1 << 16)
    small = read_picture(tmp_path / name, SIZE)
    assert small.shape == whole.shape
    assert np.abs(small.astype(int) - whole).mean() < 3


def test_a_large_picture_takes_little_more_than_itself(tmp_path: Path) -> None:
    Image.new("1", (7000, 7000)).save(tmp_path / "x.png")
    tracemalloc.start()
    try:
        assert read_picture(tmp_path / "x.png", SIZE).shape == (32, 32, 3)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20  # what NumPy and Python hold; once 147 MB
    finally:
        tracemalloc.stop()


def test_a_picture_of_too_many_pixels_is_named(tmp_path: Path) -> None:
    Image.new("1", (8200, 8200)).save(tmp_path / "x.png")
    with pytest.raises(UnreadableMedia, match=r"8200 x 8200 pixels, at most 67,108,864 .*; make it smaller"):
        read_picture(tmp_path / "x.png", SIZE)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(UnreadableMedia, match=r"pipe\.png: a named pipe, not a file; give a file"):
        read_picture(tmp_path / "pipe.png", SIZE)
    with pytest.raises(UnreadableMedia, match="cannot be read"):
        read_picture(tmp_path / "a\0b", SIZE)


@pytest.mark.parametrize("format", PICTURE_FORMATS)
def test_a_damaged_picture_is_read_or_named(tmp_path: Path, image: Image.Image, format: str) -> None:
    buffer = BytesIO()
    image.save(buffer, format)
    whole, draw = buffer.getvalue(), random.Random(0)
    for _ in range(40):
        harmed = bytearray(whole)
        for _ in range(draw.randint(1, 8)):
            harmed[draw.randrange(draw.choice([60, len(whole)]))] = draw.randrange(256)
        length = draw.choice([len(whole)] * 4 + [draw.randrange(1, len(whole))])
        (tmp_path / "x").write_bytes(harmed[:length])
        try:
            assert read_picture(tmp_path / "x", SIZE).shape == (32, 32, 3)
        except MediaError as error:
            assert str(tmp_path / "x") in str(error)


def test_other_formats_of_pillow_are_not_tried(tmp_path: Path, image: Image.Image) -> None:
    image.save(tmp_path / "x.eps")
    with pytest.raises(MediaError, match=r"x\.eps"):
        read_picture(tmp_path / "x.eps", SIZE)
