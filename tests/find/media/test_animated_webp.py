"""Animated WebP is a film: its pictures at their times, by the same functions as any other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from moviola.errors import UnreadableMedia
from moviola.export import export_clip
from moviola.media import frame_at, is_animated, probe, sample_frames
from moviola.search import Library
from moviola.types import FrameSize, Moment

SIZE = FrameSize(32, 32, shortest_edge=32)
TIMES = [200, 200, 700, 100, 800]
"""Milliseconds of each picture."""


def written(path: Path, *, alpha: bool = False, size: tuple[int, int] = (47, 63)) -> Path:
    """Pictures of one colour, the n-th of brightness 40 n."""
    colours = [(40 * n, 40 * n, 40 * n, *([255] if alpha else [])) for n in range(1, len(TIMES) + 1)]
    first, *others = [Image.new("RGBA" if alpha else "RGB", size, colour) for colour in colours]
    first.save(path, save_all=True, append_images=others, duration=TIMES, lossless=True)
    return path


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("size", [(47, 63), (64, 48)])
def test_pictures_at_their_times(tmp_path: Path, alpha: bool, size: tuple[int, int]) -> None:
    path = written(tmp_path / "a.webp", alpha=alpha, size=size)
    info = probe(path)
    assert (info.container, info.video_codec, info.duration) == ("webp", "webp", 2.0)
    assert (info.width, info.height) == tuple(side + side % 2 for side in size)
    with sample_frames(path, rate=10, size=SIZE) as frames:
        shown = [round(float(frame.image.mean()) / 40) for frame in frames]
        assert frames.duration == pytest.approx(2.0)
        assert frames.broken_at is None
    assert shown == [n for n, lasts in enumerate(TIMES, 1) for _ in range(lasts // 100)]
    assert np.asarray(frame_at(path, 1.5, 64)).mean() == pytest.approx(200, abs=3)


def test_a_still_is_no_film_and_a_damaged_one_is_read_up_to_the_damage(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64)).save(tmp_path / "still.webp")
    assert not is_animated(tmp_path / "still.webp")
    assert not is_animated(tmp_path / "none.webp")
    with pytest.raises(UnreadableMedia, match="a still picture"):
        probe(tmp_path / "still.webp")
    path = written(tmp_path / "a.webp")
    whole = path.read_bytes()
    path.write_bytes(whole[:40])
    with pytest.raises(UnreadableMedia, match="no picture of this animated WebP can be decoded"):
        probe(path)
    frame = whole.index(b"ANMF", whole.index(b"ANMF", whole.index(b"ANMF") + 4) + 4)
    path.write_bytes(whole[: frame + 8])
    try:
        assert (probe(path).duration or 0) <= 2.0
    except UnreadableMedia as error:
        assert "animated WebP" in str(error)


def test_in_a_library(tmp_path: Path) -> None:
    """Animated ones come in from folders, stills do not; moments are exported."""
    films = tmp_path / "films"
    films.mkdir()
    written(films / "a.webp")
    Image.new("RGB", (64, 64)).save(films / "still.webp")
    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        report = library.index(films)
        assert (report.added, [Path(path).name for path in report.ignored]) == (["a"], ["still.webp"])
        assert not library.index(films).updated
    export_clip(Moment("a", 0.5, 1.5, 1.0, 1), films / "a.webp", tmp_path / "clip.mp4")
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(1.0, abs=0.21)
