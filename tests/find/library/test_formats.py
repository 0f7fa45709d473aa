"""What earlier versions wrote is opened, searched, grown, upgraded; what later ones write is refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from moviola.errors import DataError, InvalidValue, LibraryError, SegmentIndexError
from moviola.features import FeatureFolder
from moviola.index import BACKENDS, load_index
from moviola.library.disk import settings as library_settings
from moviola.library.disk import upgrade
from moviola.library.disk.schema import CUES_OF
from moviola.retrieval.saved import description
from moviola.search import Library
from moviola.study.judging import JudgingTask
from moviola.study.models.pretrained import from_pretrained
from seen import seen

STORED = Path(__file__).resolve().parents[2] / "formats"
VERSIONS = sorted(path.name for path in STORED.iterdir() if (path / "library").is_dir())
EARLIER = pytest.mark.parametrize(
    "version",
    [name for name in VERSIONS if name != f"format-{library_settings.FORMAT_VERSION}"],
    indirect=True,
)


def as_then(name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a version's files; the demo's encoder is that of then, and as many segments merge."""
    folder = STORED / name
    for encoder in (folder / "encoder", STORED / "later-encoder"):
        if encoder.is_dir():
            monkeypatch.setattr("moviola.encoders.clip.DEMO_FOLDER", encoder)
            break
    if name == "70b3478":  # another default, not another format
        monkeypatch.setattr("moviola.retrieval.pipeline.merged_apart", lambda searched: 20)
    return folder


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a version's files."""
    return as_then(str(request.param), monkeypatch)


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the first version's files, which has more than a library."""
    return as_then("70b3478", monkeypatch)


@pytest.fixture
def folder(version: Path, tmp_path: Path) -> Path:
    """A copy of its library."""
    return Path(shutil.copytree(version / "library", tmp_path / "library"))


@pytest.fixture
def films(version: Path, tmp_path: Path) -> Path:
    """A copy of the films that it was made of, elsewhere than they were."""
    made = "films" if (version / "encoder").is_dir() else "later-films"
    return Path(shutil.copytree(STORED / made, tmp_path / "films"))


def ids_of(films: Path) -> list[str]:
    return sorted(path.relative_to(films).with_suffix("").as_posix() for path in films.rglob("*.mp4"))


def require_same_answers(library: Library, version: Path) -> None:
    """The same moments in the same order. What scores they get is for the version that searches to say."""
    for query, expected in json.loads((version / "answers.json").read_text()).items():
        found = library.search(query, top_k=5)
        assert [(m.video_id, m.source) for m in found] == [(row[0], row[4]) for row in expected], query
        ours = np.array([(m.start, m.end) for m in found])
        np.testing.assert_allclose(ours, np.array([row[1:3] for row in expected], float), atol=0.02)


def files(folder: Path) -> dict[str, bytes]:
    """All files but the journal that SQLite makes beside a catalogue when it is read."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


def stored_format(folder: Path) -> int:
    found = re.search(r"format_version = (\d+)", (folder / "moviola.toml").read_text())
    assert found is not None
    return int(found[1])


# ---- libraries ---------------------------------------------------------------------------------------------


def test_it_is_searched_as_it_is(folder: Path, version: Path) -> None:
    before = files(folder)
    with Library(folder, read_only=True) as library:
        require_same_answers(library, version)
        if stored_format(folder) < 3:
            assert (library.catalogue.roots(), library.catalogue.removed()) == ([], [])
        # Its films lie elsewhere, and nothing else is wrong with it.
        assert all("not there; plug its drive in" in problem.message for problem in library.verify())
    assert files(folder) == before


def test_it_is_grown_and_upgraded(
    folder: Path, version: Path, films: Path, film: Callable[..., Path]
) -> None:
    was, before = stored_format(folder), files(folder)
    film(films / "new.mp4", 7, 9)
    with Library(folder) as library:
        report = library.index(films)
        moved = [video_id for video_id in ids_of(films) if video_id != "new"]
        assert report.added == ["new"] and sorted(report.moved) == moved
        assert library.verify() == [] and library.compact() >= 0 and library.verify() == []
        assert len(library) == len(moved) + 1 and library.search("lighthouse keeper")[0].video_id == "harbour"
        library.remove(["new"])
        require_same_answers(library, version)
    assert stored_format(folder) == library_settings.FORMAT_VERSION
    backup = upgrade.backup_folder(folder, was)
    assert backup.is_dir() == (was < library_settings.FORMAT_VERSION)
    if backup.is_dir():
        assert (backup / "moviola.toml").read_bytes() == before["moviola.toml"]


def test_the_first_change_gives_the_cues_an_index(folder: Path) -> None:
    with Library(folder, read_only=True) as library:
        rows = [video.row for video in library.catalogue.videos()]
        before = [library.catalogue.cues(row) for row in rows]
        assert any(before)
    plan = f"EXPLAIN QUERY PLAN SELECT text FROM cues WHERE {CUES_OF}"
    with Library(folder) as library, library.catalogue.transaction():
        assert [library.catalogue.cues(row) for row in rows] == before
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as db:
        steps = [step for *_, step in db.execute(plan, (rows[0],))]
        assert any("cues_by_video" in step for step in steps), steps


def test_its_films_are_followed_to_another_folder(folder: Path, version: Path, films: Path) -> None:
    with Library(folder) as library:
        was = Path(library.catalogue.video("harbour").path).parent
        copies = len(library.catalogue.copies())
        assert library.move(was, films) == len(ids_of(films)) + copies
        for video in library.catalogue.videos():  # a checkout gives files times of its own
            os.utime(video.path, ns=(video.mtime_ns, video.mtime_ns))
        report = library.index(films)
        assert sorted([*report.unchanged, *report.updated]) == ids_of(films)
        assert report.frames == 0 and library.verify() == []
        assert [root.path for root in library.catalogue.roots()] == [str(films.resolve())]
        require_same_answers(library, version)


@EARLIER
def test_there_is_a_way_back(folder: Path, version: Path) -> None:
    was = stored_format(folder)
    with Library(folder) as library:
        library.remove(["market"])
    for path in upgrade.backup_folder(folder, was).iterdir():
        shutil.copy(path, folder)
    for name in ("index", "cache"):
        shutil.rmtree(folder / name)
    assert stored_format(folder) == was
    with Library(folder, read_only=True) as library:
        require_same_answers(library, version)


@EARLIER
def test_what_changed_since_an_earlier_upgrade_has_a_way_back_too(folder: Path, version: Path) -> None:
    """Somebody who went back and worked on with the earlier moviola had no backup of that work."""
    was, settings = stored_format(folder), (folder / "moviola.toml").read_bytes()
    with Library(folder) as library:
        library.remove(["market"])
    first = upgrade.backup_folder(folder, was)
    kept = files(first)
    for path in first.iterdir():
        shutil.copy(path, folder)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as db:  # as the earlier moviola
        db.execute("UPDATE videos SET width = 7 WHERE video_id = 'market'")
        db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        db.commit()
    with Library(folder) as library:
        library.remove(["market"])
    assert files(first) == kept
    second = first.with_name(f"{first.name}-2")
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, second.name]
    assert (second / "moviola.toml").read_bytes() == settings
    with closing(sqlite3.connect(second / "catalogue.sqlite")) as db:
        assert db.execute("SELECT width FROM videos WHERE video_id = 'market'").fetchone() == (7,)


@EARLIER
def test_an_upgrade_keeps_everything(folder: Path, version: Path) -> None:
    """Entries that people keep, concepts, what was removed: whatever a format has, the next one has too."""
    if stored_format(folder) == 3:
        assert all(seen(folder).parts.values()), "the stored library lacks something"
    before = seen(folder)
    with Library(folder) as library, library.store.writing():
        pass
    assert stored_format(folder) == library_settings.FORMAT_VERSION
    assert seen(folder) == before
    if "old" in before.parts["removed"]:
        with Library(folder) as library:
            assert library.restore(["old"]) == ["old"]


@EARLIER
@pytest.mark.parametrize("at", ["copy_to", "note_settings", "write"])
def test_an_upgrade_that_fails_leaves_the_library_as_it_was(
    folder: Path, version: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    was = stored_format(folder)

    def full(*_: object) -> None:
        raise InvalidValue("no room left")

    owner = library_settings.Settings if at == "write" else upgrade.Catalogue
    with Library(folder) as library, monkeypatch.context() as broken:
        broken.setattr(owner, at, full)
        with pytest.raises(InvalidValue, match="no room left"):
            library.remove(["market"])
        assert stored_format(folder) == was
        require_same_answers(library, version)
    with Library(folder) as library:
        library.remove(["market"])
    assert stored_format(folder) == library_settings.FORMAT_VERSION
    assert not list(folder.rglob("*.tmp"))
    assert [path.name for path in (folder / "backups").iterdir()] == [f"format-{was}"]


@pytest.mark.parametrize("number", ["5", "99", "0", "-1", "'2'", "1.0"])
def test_a_library_of_a_later_format_is_refused_by_name(folder: Path, number: str) -> None:
    path = folder / "moviola.toml"
    path.write_text(re.sub(r"format_version = \d+", f"format_version = {number}", path.read_text()))
    with pytest.raises(
        LibraryError, match=r"moviola\.toml: format version .* reads 1 to \d+; update moviola"
    ):
        Library(folder)


# ---- the other formats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["flat", "ivf", "ivfpq", "reranked"])
def test_indexes_are_read_and_grown(first: Path, tmp_path: Path, kind: str) -> None:
    folder = Path(shutil.copytree(first / "indexes" / kind, tmp_path / "index"))
    queries = np.load(first / "indexes" / "queries.npy")
    expected = json.loads((first / "indexes" / "answers.json").read_text())[kind]
    loaded = load_index(folder, "segments", dict(BACKENDS), thorough=True)
    assert loaded is not None and loaded[1] == "of a test"
    scores, ids = loaded[0].search(queries, 3)
    assert ids.tolist() == expected["ids"]
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-4)
    loaded[0].add(np.array([1000]), -queries[:1])
    assert loaded[0].search(-queries[:1], 1)[1].tolist() == [[1000]]
    manifest = folder / "segments.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 2}))
    with pytest.raises(SegmentIndexError, match=r"segments\.json: .*format 2"):
        load_index(folder, "segments", dict(BACKENDS))


def test_models_are_loaded(first: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(first / "model", tmp_path / "model"))
    assert type(from_pretrained(folder)).__name__ == "Reel"
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "format": description.FORMAT + 1}))
    with pytest.raises(DataError, match=r"config\.json: format \d+, .*; update moviola"):
        description.read_description(folder)


@pytest.mark.parametrize("name", ["features.json", "visual/shards.json"])
def test_features_are_read(first: Path, tmp_path: Path, name: str) -> None:
    folder = Path(shutil.copytree(first / "features", tmp_path / "features"))
    features = FeatureFolder.open(folder)
    videos = features.videos()
    assert sorted(videos.video_ids) == ["deep/street", "harbour", "market"]
    assert [videos.read(place).shape for place in range(3)] == [(n, 128) for n in videos.counts]
    assert len(features.queries(["1"], ["a door"]).vectors) == 1
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(DataError, match=rf"{path.name}: format"):
        FeatureFolder.open(folder)


@pytest.fixture
def task(first: Path, tmp_path: Path) -> Iterator[Path]:
    yield Path(shutil.copy(first / "task.sqlite", tmp_path / "task.sqlite"))


def test_judging_tasks_are_judged_on(task: Path) -> None:
    opened = JudgingTask(task)
    assert opened.pairs and opened.due()
    opened.close()
    with closing(sqlite3.connect(task)) as db:
        db.execute("UPDATE settings SET value = 2 WHERE key = 'format'")
        db.commit()
    with pytest.raises(DataError, match=r"task\.sqlite: a judging task of format 2\S*, .*; update moviola"):
        JudgingTask(task)
