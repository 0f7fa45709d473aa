"""Where a path is taken, its text is taken too, and does the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from moviola.export import export_clip, export_clips, folder_command, format_of, read_moments, write_moments
from moviola.features import FeatureFolder
from moviola.features import open_features as open_files
from moviola.library import Catalogue, Settings, concepts_of, export_features, open_features
from moviola.mcp import library_server
from moviola.media import probe, read_facts, read_picture, write_subtitles
from moviola.search import Library
from moviola.server import create_app
from moviola.study.datasets.readers import read_annotations
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.judging import JudgingTask, export_task, import_ratings, make_task
from moviola.types import Cue, FrameSize, Moment, Query


@dataclass
class Place:
    """A folder, its library and its films, and a path in it, or its text."""

    folder: Path
    library: Library
    written: Callable[[Path], Any]

    def __call__(self, name: str) -> Any:
        return self.written(self.folder / name)

    @property
    def own(self) -> Any:
        """The library's folder."""
        return self.written(self.library.folder)


@pytest.fixture
def make_place(library: Library, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(shutil, "which", str)  # of the program that opens folders

    def make(written: Callable[[Path], Any]) -> Place:
        folder = tmp_path / written.__name__
        folder.mkdir()
        shutil.copy(films / "film0.mp4", folder)
        Image.new("RGB", (64, 64)).save(folder / "a.png")
        (folder / "queries.txt").write_text("a red thing\n")
        (folder / "m.csv").write_text("video_id,start,end\nfilm0,1,2\n")
        (folder / "charades.txt").write_text("AO8RW 0.0 6.9##a person is putting a book on a shelf.\n")
        (folder / "lengths.csv").write_text("id,length\nAO8RW,33.67\n")
        return Place(folder, library, written)

    return make


def judged(at: Place) -> None:
    """A task from its making to the ratings of another rater."""
    make_task(at("task"), at.library, [Query("q", "a red thing")], depth=2)
    with closing(JudgingTask(at("task"))) as task:
        task.answer(task.sign_in("Anna"), task.pairs[0].pair_id, 3)
        export_task(task, at("ratings.csv"), "ratings")
        import_ratings(task, at("ratings.csv"))


MOMENT = Moment("film0", 1.0, 2.0, 0.5, 1)
CALLS: dict[str, Callable[[Place], Any]] = {
    "write_subtitles": lambda at: write_subtitles(at("a.srt"), [Cue(1, 2, "a")]),
    "read_facts": lambda at: read_facts(at("film0.mp4")),
    "read_picture": lambda at: read_picture(at("a.png"), FrameSize(32, 32, "stretch")),
    "probe": lambda at: probe(at("film0.mp4")).path.name,
    "folder_command": lambda at: folder_command(at("film0.mp4")),
    "export_clip": lambda at: export_clip(MOMENT, at("film0.mp4"), at("clip.mp4")),
    "export_clips": lambda at: export_clips([MOMENT], {"film0": at("film0.mp4")}, at("clips")),
    "write_moments": lambda at: write_moments([MOMENT], {"film0": at("film0.mp4")}, at("a.edl")),
    "format_of": lambda at: format_of("a.edl"),
    "read_moments": lambda at: read_moments(at("m.csv")),
    "require_outside": lambda at: at.library.store.require_outside(at("a.csv")),
    "Catalogue": lambda at: Catalogue(at.own).close(),
    "Settings": lambda at: Settings.read(at.own),
    "concepts_of": lambda at: concepts_of(at.own),
    "features": lambda at: (
        export_features(at.library.store, ["a"], at("feat")), FeatureFolder.open(at("feat")),
        open_features(at("feat")), open_files(at("feat/visual")),
    ),
    "judging": judged,
    "read_queries": lambda at: read_queries(at("queries.txt")),
    "read_annotations": lambda at: read_annotations(at("charades.txt"), "charades", at("lengths.csv")),
    "library_server": lambda at: library_server(at.library, clips=at("clips"), pictures=at("clips")),
    "create_app": lambda at: create_app(at.own),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_text_does_what_its_path_does(name: str, make_place: Callable[..., Place]) -> None:
    """The same result, and the same files: a text must not be read as content, nor a file land elsewhere."""
    text, path = (outcome(CALLS[name], make_place(written)) for written in (str, Path))
    assert text == path


def outcome(call: Callable[[Place], Any], place: Place) -> tuple[str, list[str]]:
    """What a call returned, without the place, and the files that there are then."""
    shown = re.sub(r" (?:object )?at 0x[0-9a-f]+", "", repr(call(place)))
    shown = re.sub(r"PosixPath\(('[^']*')\)", r"\1", shown.replace(str(place.folder), ""))
    return shown, sorted(str(file.relative_to(place.folder)) for file in place.folder.rglob("*"))
