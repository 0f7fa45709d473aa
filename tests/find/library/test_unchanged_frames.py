"""Frames that do not change are encoded once, and nothing that matters is taken for unchanged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders import PictureEncoder, load_encoder
from moviola.library.ingest.unchanged_frames import LEAST_COSINE, encode_changes
from moviola.media import sample_frames, write_video
from moviola.search import Library

app = all_commands()

Opened = Callable[..., Library]
Frames = NDArray[np.uint8]
SIDE = 96


class CountingEncoder:
    """Features are the pixels of every fourth row and column, so that what changes shows."""

    def __init__(self) -> None:
        self.encoded = 0

    def __call__(self, images: Frames) -> NDArray[np.float32]:
        self.encoded += len(images)
        return images[:, ::4, ::4].reshape(len(images), -1).astype(np.float32)


def still(count: int, seed: int = 0) -> Frames:
    """A picture of soft fields, some times over."""
    fields = np.random.default_rng(seed).integers(40, 215, (6, 6, 3), dtype=np.uint8)
    return np.stack([fields.repeat(SIDE // 6, 0).repeat(SIDE // 6, 1)] * count)


def noisy(images: Frames, deviation: float) -> Frames:
    noise = np.random.default_rng(1).normal(0, deviation, images.shape)
    return np.clip(images + noise, 0, 255).astype(np.uint8)


def cosines(rows: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1)
    return np.asarray((rows.astype(np.float64) * others).sum(1) / lengths)


def test_a_still_is_encoded_once_and_one_more_frame_to_check_it() -> None:
    encode = CountingEncoder()
    rows, repeats = encode_changes(still(32), encode)
    assert (encode.encoded, repeats) == (2, 30)
    np.testing.assert_array_equal(rows, encode(still(32)))


def test_noise_is_no_change() -> None:
    encode = CountingEncoder()
    images = noisy(still(32), 3.0)
    rows, repeats = encode_changes(images, encode)
    assert repeats == 30
    assert cosines(rows, encode(images)).min() >= LEAST_COSINE


@pytest.mark.parametrize("size", [4, 8, 16])
def test_a_small_thing_that_moves_is_a_change(size: int) -> None:
    images = still(16).copy()
    for number, image in enumerate(images):
        image[30 : 30 + size, 4 * number : 4 * number + size] = 255
    encode = CountingEncoder()
    rows, repeats = encode_changes(images, encode)
    assert repeats == 0 and encode.encoded == 16
    np.testing.assert_array_equal(rows, encode(images))


def test_slow_changes_add_up() -> None:
    images = np.stack([np.full((SIDE, SIDE, 3), 60 + number, np.uint8) for number in range(32)])
    rows, _ = encode_changes(images, CountingEncoder())
    assert np.abs(rows[:, 0] - images[:, 0, 0, 0]).max() < 6


def test_pictures_that_come_back_are_encoded_again() -> None:
    images = np.concatenate([still(4, seed=1), still(4, seed=2), still(4, seed=1)])
    encode = CountingEncoder()
    rows, repeats = encode_changes(images, encode)
    assert (encode.encoded, repeats) == (4, 8)
    np.testing.assert_array_equal(rows, encode(images))


def test_an_encoder_that_sees_a_difference_gets_every_frame() -> None:
    """Its features turn with the faintest noise: what looks the same to the test is not the same to it."""

    def encode(images: Frames) -> NDArray[np.float32]:
        angles = images.astype(np.float64).sum((1, 2, 3))
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    images = noisy(still(16), 1.0)
    rows, repeats = encode_changes(images, encode)
    assert repeats == 0
    np.testing.assert_array_equal(rows, encode(images))


def test_one_frame_and_frames_that_are_no_multiple_of_the_fields() -> None:
    encode = CountingEncoder()
    rows, repeats = encode_changes(still(1)[:, :33, :50], encode)
    assert rows.shape[0] == 1 and repeats == 0
    images = still(3)[:, :33, :50].copy()
    images[2, -1, -1] = 0  # the corner, a field of its own
    assert encode_changes(images, encode)[1] == 0


def test_features_of_zeros_are_alike() -> None:
    rows, repeats = encode_changes(still(4), lambda images: np.zeros((len(images), 3), np.float32))
    assert repeats == 2 and not rows.any()


def test_no_step_of_a_robot_is_dropped() -> None:
    """On gridhouse small changes matter: at most one cell of a house is another from second to second."""
    from moviola.study.datasets.gridhouse.episode import simulate
    from moviola.study.datasets.gridhouse.picture import Camera

    images = np.stack(list(Camera(simulate(31_000)).frames(1.0))[:64])[:, ::2, ::2]
    encode = CountingEncoder()
    rows, repeats = encode_changes(images, encode)
    np.testing.assert_array_equal(rows, encode(images))
    assert repeats < 64


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_on_real_pictures_the_bound_holds(footage: Path, noise: float) -> None:
    """A second of a real shop, standing still before a noisy camera, then a clip in which things move."""
    encoder = load_encoder("conse-lite1", device="cpu")
    assert isinstance(encoder, PictureEncoder)
    frames = []
    for file in ("intel_bottle-detection.mp4", "moviepy_video_with_failing_audio.mp4"):
        with sample_frames(footage / file, size=encoder.frame_size) as stream:
            frames.append(np.stack([frame.image for frame in islice(stream, 6)]))
    still, moving = noisy(frames[0][5:].repeat(10, 0), noise), frames[1]
    images = np.concatenate([still, moving])

    def encode(some: Frames) -> NDArray[np.float32]:
        return np.concatenate(encoder.encode_pictures(some), axis=1)

    rows, repeats = encode_changes(images, encode)
    assert 8 <= repeats < 14
    assert cosines(rows, encode(images)).min() >= LEAST_COSINE


# -- in a library ------------------------------------------------------------------------------------------


def slides() -> Iterator[Frames]:
    """Two slides of twelve seconds, at 5 pictures a second."""
    for seed in (1, 2):
        yield from still(60, seed)


@pytest.fixture
def lecture(tmp_path: Path) -> Path:
    (tmp_path / "films").mkdir()
    write_video(tmp_path / "films" / "lecture.mp4", slides(), rate=5)
    return tmp_path / "films" / "lecture.mp4"


def features(library: Library) -> NDArray[np.float32]:
    frames = library.catalogue.video("lecture").frames
    assert frames is not None
    return np.asarray(library.store.frame_features.read(frames), np.float32)


def test_the_share_is_reported_and_stored(lecture: Path, opened: Opened) -> None:
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(lecture)
    row = library.catalogue.video("lecture").row
    assert report.frames == 24 and report.repeats >= 16
    assert library.catalogue.repeats(row) == library.catalogue.repeats() == report.repeats
    lecture.with_suffix(".srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nHello.\n")
    assert library.index(lecture).updated == ["lecture"]
    assert library.catalogue.repeats() == report.repeats, "only the subtitles are others"
    library.indexer.remove(["lecture"])
    assert library.catalogue.repeats() == 0


def test_every_frame_is_encoded_where_asked_for(lecture: Path, tmp_path: Path, opened: Opened) -> None:
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(lecture)
    with Library(tmp_path / "every", encoder="demo", sentence_encoder="none") as every:
        report = every.index(lecture, every_frame=True)
        assert (report.repeats, every.catalogue.repeats()) == (0, 0)
        assert cosines(features(library), features(every)).min() >= LEAST_COSINE


def test_command_line(lecture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    monkeypatch.setenv("MOVIOLA_CONFIG", str(tmp_path / "config.toml"))
    for name, every in (("some", False), ("every", True)):
        (tmp_path / "config.toml").write_text(f"[index]\nevery_frame = {str(every).lower()}\n")
        folder = str(tmp_path / name)
        output = run(
            "index",
            str(lecture),
            "--library",
            folder,
            "--encoder",
            "demo",
            "--sentence-encoder",
            "none",
        )
        shown = json.loads(run("show", "lecture", "--library", folder, "--json"))
        known = json.loads(run("library", "info", "--library", folder, "--json"))
        assert (shown["frames"], known["frames"]) == (24, 24)
        assert (shown["repeats"] > 0, known["repeats"] > 0, "repeat an earlier one" in output) == (
            (not every,) * 3
        )
