"""What earlier versions wrote is opened, searched, grown, upgraded; what later ones write is refused."""

from __future__ import annotations

import json
import math
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
from moviola.index import BACKENDS, load_index, save_index
from moviola.library import compact, verify
from moviola.library.disk import settings as library_settings
from moviola.library.disk import upgrade
from moviola.library.disk.schema import CUES_OF
from moviola.library.userdata.entries import UserData
from moviola.library.userdata.values import Collection, KeptMoment, Mark, SavedSearch
from moviola.retrieval.proposals import APART, MERGES
from moviola.retrieval.saved import description
from moviola.search import (
    Asked,
    Filter,
    Library,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchOptions,
    Text,
)
from moviola.search.last_answer import keep_answer, kept_answer
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
        monkeypatch.setitem(MERGES, APART, lambda searched: 20)
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
    """The same moments in the same order. What scores they get is for the version that searches to say, and
    so is whether a video that is named so is a result of its own.
    """
    for query, then in json.loads((version / "answers.json").read_text()).items():
        expected = [row for row in then if row[4] != "named"]
        found = [one for one in library.search(query, top_k=20) if one.source != "named"][: len(expected)]
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
        assert all("not there; plug its drive in" in problem.message for problem in verify(library.store))
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
        assert verify(library.store) == [] and compact(library.store) >= 0 and verify(library.store) == []
        assert len(library) == len(moved) + 1 and library.search("lighthouse keeper")[0].video_id == "harbour"
        library.indexer.remove(["new"])
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
        assert library.indexer.move(was, films) == len(ids_of(films)) + copies
        for video in library.catalogue.videos():  # a checkout gives files times of its own
            os.utime(video.path, ns=(video.mtime_ns, video.mtime_ns))
        report = library.index(films)
        assert sorted([*report.unchanged, *report.updated]) == ids_of(films)
        assert report.frames == 0 and verify(library.store) == []
        assert [root.path for root in library.catalogue.roots()] == [str(films.resolve())]
        require_same_answers(library, version)


@EARLIER
def test_there_is_a_way_back(folder: Path, version: Path) -> None:
    was = stored_format(folder)
    with Library(folder) as library:
        library.indexer.remove(["market"])
    for path in upgrade.backup_folder(folder, was).iterdir():
        shutil.copy(path, folder)
    for name in ("index", "cache"):
        shutil.rmtree(folder / name)
    assert stored_format(folder) == was
    with Library(folder, read_only=True) as library:
        require_same_answers(library, version)


@EARLIER
def test_what_changed_since_an_earlier_upgrade_has_a_way_back_too(folder: Path, version: Path) -> None:
    """A user who went back and worked on with the earlier moviola had no backup of that work."""
    was, settings = stored_format(folder), (folder / "moviola.toml").read_bytes()
    with Library(folder) as library:
        library.indexer.remove(["market"])
    first = upgrade.backup_folder(folder, was)
    kept = files(first)
    for path in first.iterdir():
        shutil.copy(path, folder)
    with closing(sqlite3.connect(folder / "catalogue.sqlite")) as db:  # as the earlier moviola
        db.execute("UPDATE videos SET width = 7 WHERE video_id = 'market'")
        db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        db.commit()
    with Library(folder) as library:
        library.indexer.remove(["market"])
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
        stored = seen(folder).parts
        assert stored.pop("features by other encoders") == {}  # this format knew one encoder alone
        assert all(stored.values()), "the stored library lacks something"
    before = seen(folder)
    with Library(folder) as library, library.store.writing():
        pass
    assert stored_format(folder) == library_settings.FORMAT_VERSION
    assert seen(folder) == before
    if "old" in before.parts["removed"]:
        with Library(folder) as library:
            assert library.indexer.restore(["old"]) == ["old"]


def test_what_people_keep_goes_from_any_version_to_today_and_back(folder: Path, tmp_path: Path) -> None:
    """The lines of an export are all that is left of it where a library's folder is deleted."""
    with Library(folder, read_only=True) as old, Library(tmp_path / "new", encoder="demo") as new:
        entries = old.userdata.entries()
        new.userdata.take(old.userdata.export())
        assert new.userdata.entries() == entries
        new.userdata.put("search", "later", {"query": "harbour"})
        lines, entries = list(new.userdata.export()), new.userdata.entries()
    with Library(folder) as old:
        assert [entry.name for entry in old.userdata.take(lines)] == ["later"]
        assert old.userdata.entries() == entries


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
            library.indexer.remove(["market"])
        assert stored_format(folder) == was
        require_same_answers(library, version)
    with Library(folder) as library:
        library.indexer.remove(["market"])
    assert stored_format(folder) == library_settings.FORMAT_VERSION
    assert not list(folder.rglob("*.tmp"))
    assert [path.name for path in (folder / "backups").iterdir()] == [f"format-{was}"]


@pytest.mark.parametrize("number", ["7", "99", "0", "-1", "'2'", "1.0"])
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
    save_index(loaded[0], folder, "segments", backend=kind, tag="of a test")
    again = load_index(folder, "segments", dict(BACKENDS), thorough=True)
    assert again is not None and again[0].search(-queries[:1], 1)[1].tolist() == [[1000]]
    manifest = folder / "segments.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 3}))
    with pytest.raises(SegmentIndexError, match=r"segments\.json: .*format 3"):
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


# ---- what people keep, and the last answer -----------------------------------------------------------------

KEPT = STORED / "107db61"
SEARCHES = {
    "any gap": Marked(None, concept="our-logo").then("rain", gap=math.inf),
    "plain": Text("a red door"),
    "steps": Text("a dog runs")
    .then("it jumps", gap=30)
    .then("@our-logo on a shelf", gap=30)
    .without("snow", "a cat"),
    "without": Text("a cat").without("grass"),
}
OF_SEARCHES = {
    "steps": SearchOptions(filter=Filter.parse(taken="2023", near="52.52,13.40"), by="visual"),
    "without": SearchOptions(by="said"),
}


def require_kept(userdata: UserData) -> None:
    for name, query in SEARCHES.items():
        entry = userdata.entry("search", name)
        assert isinstance(entry.value, SavedSearch) and entry.version == 1 + (name == "steps")
        assert Asked.from_json(entry.value.root) == Asked(query, OF_SEARCHES.get(name, SearchOptions()))
    (collection,), (mark,) = userdata.entries("collection"), userdata.entries("mark")
    assert collection.value == Collection(
        moments=[KeptMoment(video_id="harbour", start=2, end=5, title="é", note="late")]
    )
    assert mark.value == Mark(video_id="harbour", start=12345.67, end=12350, tags=["dog"], rating=4)


def test_what_people_kept_is_read_as_it_is_and_upgraded_by_the_first_change(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(KEPT / "kept", tmp_path / "kept"))
    before = (folder / "kept.sqlite").read_bytes()
    with closing(UserData(folder)) as userdata, closing(UserData(folder)) as reader:
        require_kept(userdata)
        assert (folder / "kept.sqlite").read_bytes() == before and reader.entry("search", "plain")
        userdata.put("search", "new", {"query": {"right": [{"video_id": "harbour", "start": 1, "end": 2}]}})
        require_kept(userdata)
        require_kept(reader)  # which had it open before
        assert userdata.alerted() == {"plain": 3} and userdata.was_reported("plain", "0123")
        assert not userdata.remember_alert("steps", "4567", "webhook")
    backup = folder / "backups" / "kept-format-1.sqlite"
    shutil.copy(backup, tmp_path / "kept.sqlite")
    with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as db, closing(UserData(tmp_path)) as way_back:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        require_kept(way_back)
    with closing(UserData(folder)) as userdata:
        require_kept(userdata)
        userdata.put("search", "another", {"query": "a dog"})
    assert [path.name for path in (folder / "backups").iterdir()] == [backup.name]


def test_an_upgrade_of_what_people_kept_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(shutil.copytree(KEPT / "kept", tmp_path / "kept"))

    def broken(self: UserData, version: int) -> None:
        self._rows("UPDATE entries SET value = '{}'")
        raise InvalidValue("no room left")

    with monkeypatch.context() as patched, closing(UserData(folder)) as userdata:
        patched.setattr(UserData, "_upgrade", broken)
        with pytest.raises(InvalidValue, match="no room left"):
            userdata.delete("search", "plain")
    with closing(UserData(folder)) as userdata:
        require_kept(userdata)
        userdata.delete("search", "plain")
        assert len(userdata.entries("search")) == 3


def test_lines_that_were_exported_are_imported(tmp_path: Path) -> None:
    with closing(UserData(tmp_path)) as userdata:
        lines = (KEPT / "kept.jsonl").read_text(encoding="utf-8").split("\n")
        assert len(userdata.take(lines)) == 6
        require_kept(userdata)
        assert {json.loads(line)["format"] for line in userdata.export()} == {2}
        for wrong, said in (
            (
                {"format": 2, "value": {"query": {"terms": [{"picture": "0" * 32}]}}},
                f"search 'odd': picture {'0' * 32}: not kept in this library",
            ),
            (
                {"format": 2, "value": {"query": "a"}, "pictures": {"0" * 32: "AAAA"}},
                f"picture {'0' * 32}: its bytes are others",
            ),
            ({"format": 3}, "format 3, but this moviola reads 1 to 2; update moviola"),
            ({"value": {"text": "a", "colour": "red"}}, "no search of format 1 .*colour"),
            ({"value": {"query": "a"}}, 'no search of format 1 .*lines of today have "format": 2'),
        ):
            line = json.dumps({"kind": "search", "name": "odd", "value": {"text": "a"}, **wrong})
            with pytest.raises(DataError, match=f"line 1: {said}"):
                userdata.take([line])


ANSWERS = {
    "concept": Asked(
        Marked(None, concept="our-logo"),
        SearchOptions(by="visual", filter=Filter.parse(video_length="1.."), top_k=1),
    ),
    "moment": Asked(LikeMoment("harbour", 3)),
    "marked": Asked(
        Marked(
            (Text("a dog") + 0.5 * LikeMoment("harbour", 1.5) + LikePicture(Path("/pictures/door.png")))
            .without("snow")
            .then(Text("rain") + 2 * Text("sun"), gap=30)
            .then("night", gap=math.inf)
            .without(Marked(None, (MarkedMoment("market", 1, 2),), (), "our-logo")),
            (MarkedMoment("harbour", 0, 1.5),),
            (MarkedMoment("market", 1, 4),),
        ),
        SearchOptions(
            filter=Filter.parse(folder="/films", taken="2023-05..", near="52.52,13.40"), top_k=5, per_video=3,
            min_score=0.1, videos=["harbour", "market"],
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", ["107db61", "645b2f5"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_last_answer_is_read(tmp_path: Path, name: str, version: str) -> None:
    """Of formats 3 and 4, whose moments have no bands: their scores say these, also of steps."""
    shutil.copytree(STORED / version / "answers" / name, tmp_path / "lib")
    answer = kept_answer(tmp_path / "lib")
    assert answer.asked == ANSWERS[name]
    assert [(m.video_id, m.rank, m.band) for m in answer.moments] == [
        ("harbour", 1, "strong"),
        ("market", 2, "weak"),
    ]
    bands = [step.band for step in answer.moments[1].steps]
    assert bands == (["possible", "weak"] if version == "645b2f5" else [])
    path = keep_answer(tmp_path / "lib", answer)
    assert json.loads(path.read_text())["format"] == 5 and kept_answer(tmp_path / "lib") == answer
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 6}))
    with pytest.raises(DataError, match=r"last-answer\.json: damaged, or of another version"):
        kept_answer(tmp_path / "lib")
