"""The film of photographs: exact times, the same frames each time, labels that say what is shown."""

from __future__ import annotations

import json
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.errors import MissingDependency
from moviola.media import probe, read_sound, sample_frames
from moviola.types import FrameSize
from photo_film import FILM, FOOTBALL, PHOTOGRAPHS, SILENCE, SPEECH, Label, Shot, View, make_film

RATE, SIZE = 10, (64, 36)
SHOTS = (
    Shot(0.5, text=("TITLE", "and a line")),
    Shot(0.6, "chelsea.png", View(), View(zoom=1.1)),
    Shot(1.0, "rocket.jpg", dissolve=0.4),
    Shot(0.5, "coffee.png", View(0.2, 1, 1.5), View(0.4, 1, 1.5)),
)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Label]]:
    folder = tmp_path_factory.mktemp("film") / "new"
    return folder, make_film(folder, SHOTS, SIZE, RATE)


def pictures(path: Path) -> NDArray[np.float32]:
    """All pictures of a film, (n, 36, 64, 3)."""
    with sample_frames(path, rate=RATE, size=FrameSize(SIZE[1], SIZE[0], "stretch")) as frames:
        return np.stack([frame.image for frame in frames]).astype(np.float32)


def test_labels_say_what_is_shown_and_written_when(film: tuple[Path, list[Label]]) -> None:
    folder, labels = film
    assert labels == [
        Label(0.0, 0.5, 0.0, "", "", ("TITLE", "and a line")),
        Label(0.5, 1.1, 0.0, "chelsea.png", "a cat", ()),
        Label(1.1, 2.1, 0.4, "rocket.jpg", "a rocket", ()),
        Label(2.1, 2.6, 0.0, "coffee.png", "a cup of coffee", ()),
    ]
    written = json.loads((folder / "photo-film.json").read_text(encoding="utf-8"))
    assert written == [{**asdict(label), "text": list(label.text)} for label in labels]
    assert probe(folder / "photo-film.mp4").duration == pytest.approx(2.6)


def test_cuts_fall_on_the_frame_and_dissolves_go_evenly(film: tuple[Path, list[Label]]) -> None:
    shown = pictures(film[0] / "photo-film.mp4")
    steps = np.abs(np.diff(shown, axis=0)).mean((1, 2, 3))  # from picture n to n + 1
    assert len(shown) == 26
    assert set(np.argsort(steps)[-2:]) == {4, 20}
    assert all(steps[n] < min(steps[4], steps[20]) / 2 for n in range(25) if n not in (4, 20))
    # Nothing moves in the third shot: its first four pictures come nearer to the others step by step.
    left = np.abs(shown[10:15] - shown[15]).mean((1, 2, 3))
    assert all(np.diff(left) < 0) and left[-1] < left[0] / 4


def test_sentences_are_said_in_their_shots(tmp_path: Path) -> None:
    shots = (Shot(1, text=("TITLE",)), Shot(5, "grass.png", said=FOOTBALL), Shot(1, text=("THE END",)))
    labels = make_film(tmp_path, shots, SIZE, RATE)
    assert [label.said for label in labels] == ["", FOOTBALL, ""]
    sound = np.concatenate(list(read_sound(tmp_path / "photo-film.mp4", rate=1000)))
    loud = np.flatnonzero(np.abs(sound) > 0.05) / 1000
    assert 2.0 <= loud.min() <= 2.3 and 4.3 <= loud.max() <= 4.8  # a second after the shot's first frame


def test_every_sentence_of_the_film_is_one_of_the_voice() -> None:
    said = {shot.said for shot in FILM} - {""}
    assert said == {line.split(maxsplit=2)[2] for line in SPEECH.with_suffix(".txt").read_text().splitlines()}
    assert all(shot.seconds > SILENCE + 3.2 for shot in FILM if shot.said)


def test_the_same_film_each_time(film: tuple[Path, list[Label]], tmp_path: Path) -> None:
    make_film(tmp_path, SHOTS, SIZE, RATE)
    for name in ("photo-film.mp4", "photo-film.json"):
        assert (tmp_path / name).read_bytes() == (film[0] / name).read_bytes()


def test_every_photograph_comes_with_the_package_and_is_shown() -> None:
    package = find_spec("skimage")
    assert package and package.origin
    for photograph in PHOTOGRAPHS:
        assert (Path(package.origin).parent / "data" / photograph.file).is_file()
        assert photograph.rights
    assert {shot.photograph for shot in FILM} - {""} == {photograph.file for photograph in PHOTOGRAPHS}


def test_without_the_package_its_name_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("photo_film.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"scikit-image .*-m pip install .*scikit-image"):
        make_film(tmp_path, SHOTS, SIZE, RATE)
    assert not list(tmp_path.iterdir())
