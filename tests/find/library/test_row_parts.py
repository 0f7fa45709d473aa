"""Facts of videos in parts: after any changes and publications they are those of a library made at once."""

from __future__ import annotations

import math
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviola.features import Extent
from moviola.files.parts import merges
from moviola.library import LibraryStore, VideoNames, VideoRow, descriptions_in, names_in
from moviola.library.derived.name_table import publish_names
from moviola.library.disk import row_parts
from moviola.library.disk.camera_zones import CameraZone
from moviola.library.disk.columns import Columns, facts_of
from moviola.library.disk.kinds import KINDS
from moviola.library.disk.places import Copy
from moviola.library.disk.row_parts import FACTS, FAN_OUT, FIRST, LARGEST, damaged_parts
from moviola.library.disk.video_table import VideoTable
from moviola.search.facets import count_facets
from moviola.search.filters import COLUMNS
from moviola.types import Capture, Cue, Saying

NAMES = ("a", "ä", "映画", "beach", "the beach house", "Häuser", "house")
CAMERAS = (("Canon", "EOS"), ("SONY", "A7"), ("", ""))


def video(number: int, name: str = "a", duration: float = 1.0) -> VideoRow:
    return VideoRow(
        0, f"{name}{number}", f"/films/{name}/{name} {number}.mp4", number, 10**18 + number, f"{number}", "",
        "ready", duration=duration, frames=Extent(0, number, 3, 7) if number % 2 else None,
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LibraryStore]:
    with opened(tmp_path / "library") as made:
        yield made


def opened(folder: Path) -> LibraryStore:
    return LibraryStore(folder, encoder="demo", sentence_encoder="none", columns=COLUMNS)


@pytest.fixture
def _small() -> Iterator[None]:
    """Parts of a few videos."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FIRST": 2, "FAN_OUT": 3, "LARGEST": 12, "AT_ONCE": 5}.items():
            patch.setattr(row_parts, name, value)
        yield


def arrays(columns: Columns) -> dict[str, list[Any]]:
    """All arrays of columns, with their types."""
    found = {name: columns.arrays(name) for name in COLUMNS}
    return {
        f"{name} {piece}": [np.asarray(own[piece]).dtype.str, own[piece].shape, own[piece].tobytes()]
        for name, own in found.items()
        for piece in KINDS[COLUMNS[name].kept].parts
    }


def require_as_made_at_once(store: LibraryStore) -> None:
    catalogue, found = store.catalogue, store.searchable()
    whole = VideoTable.of(one for one in catalogue.videos() if one.state != "refused")
    assert dict(found) == dict(whole) and list(found) == list(whole)
    for name in ("rows", "durations", "numbers", "frames", "cues"):
        assert getattr(found, name).tobytes() == getattr(whole, name).tobytes()
    at_once = Columns(COLUMNS, lambda: facts_of(whole.values(), catalogue), len(whole))
    assert arrays(store.columns_of(found, catalogue.generation)) == arrays(at_once)
    require_names_as_made_at_once(store, whole)


def require_names_as_made_at_once(store: LibraryStore, videos: VideoTable) -> None:
    catalogue = store.catalogue
    generation, said, languages = catalogue.generation, catalogue.sayings(), catalogue.languages()
    names = VideoNames.of(videos, catalogue.copies(), said, languages)
    described = VideoNames.described(videos, said, languages)
    found = names_in(store, generation, videos), descriptions_in(store, generation, videos)
    for table, wanted in zip(found, (names, described), strict=True):
        for stem in (*wanted.holding, "unheard"):
            assert set(table.videos_with(stem).tolist()) == wanted.holding.get(stem, set()), stem
            assert table.weight(stem) == wanted.weight.get(stem, math.log(len(videos) + 1))
        distinct = {row for stem, rows in wanted.holding.items() if wanted.weight[stem] for row in rows}
        assert table.distinguished() == distinct and table.count == len(videos)
    texts = found[0].names["texts"]
    ends = texts["ends"].tolist()
    own = (texts["bytes"][begin:end].tobytes().decode() for begin, end in zip([0, *ends], ends, strict=False))
    assert {row: text for row, text in zip(found[0].names.rows.tolist(), own, strict=True) if text} == (
        names.distinctive
    )


# What a step does: its name, a number that chooses a video, and one that chooses a value.
STEPS = (
    "add", "add", "add", "touch", "move", "capture", "copy", "route", "say", "live", "zone", "remove",
    "bring", "refuse", "publish", "publish",
)  # fmt: skip
steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 40), st.integers(0, 9)), max_size=40)


def step(store: LibraryStore, what: str, which: int, value: int, count: int) -> None:
    """A change of the catalogue in a transaction of its own; nothing where there is no such video."""
    catalogue, name = store.catalogue, NAMES[value % len(NAMES)]
    make, model = CAMERAS[value % 3]
    videos, removed = catalogue.searchable(), catalogue.removed()
    with catalogue.transaction():
        if what == "add":
            cues = [Cue(0, 1, "Was?", language="de")] if value % 2 else []
            catalogue.put(video(count, name, 1.0 + value), cues)
        elif what == "zone":
            zone = ("Europe/Berlin", "UTC", "")[which % 3]
            catalogue.put_camera_zones([CameraZone(f"{make} {model}".strip() or "none", zone)])
        elif what == "bring" and removed:
            catalogue.bring_back(removed[which % len(removed)].row)
        elif videos:
            one = videos[which % len(videos)]
            taken = Capture(f"2021-05-0{1 + value % 9}T10:00:00", "container", 50.0, 9.0, make, model)
            refused = VideoRow(0, f"r{count}", f"/r{count}", 1, 1, "", "", "refused")
            changes: dict[str, Callable[[], object]] = {
                "touch": lambda: catalogue.put(video(int(one.hash), name, 2.0 + value), []),
                "move": lambda: catalogue.moved(one.row, f"/other/{name}/{name}{count}.mp4", 5, value, ""),
                "capture": lambda: catalogue.put_captures({one.row: taken}),
                "copy": lambda: catalogue.put_copy(Copy(one.row, f"/copies/{name} {value}.mp4", 1, 1)),
                "route": lambda: catalogue.put_route(one.row, [(0.0, 50.0 + value, 9.0), (5.0, 51.0, 9.5)]),
                "say": lambda: catalogue.say_language(one.row, "subtitle", "de", ("fr", "en")[value % 2]),
                "live": lambda: catalogue.put_sayings(
                    one.row, [Saying("title", f"Film {name} {value}")][value % 3 :], live=bool(value % 2)
                ),
                "remove": lambda: catalogue.take_out(one),
                "refuse": lambda: catalogue.put(refused, []),
            }  # fmt: skip
            changes[what]() if what in changes else None


def test_each_kind_of_change_is_noted(store: LibraryStore) -> None:
    """One of which no note is made stays as it was published."""
    with store.writing(), store.catalogue.transaction():
        for number in range(6):
            store.catalogue.put(video(number), [Cue(0, 1, "Was?", language="de")])
    for count, what in enumerate(dict.fromkeys(STEPS)):
        for value in (3, 4):  # another value each time
            if what != "publish":
                step(store, what, 3, value, 10 + 2 * count + value)
            require_as_made_at_once(store)
            with store.writing():
                publish_names(store)
            require_as_made_at_once(store)


@pytest.mark.usefixtures("_small")
@settings(deadline=None, max_examples=40)
@given(steps)
def test_any_changes_and_publications_say_the_same(taken: list[tuple[str, int, int]]) -> None:
    """A row of an earlier state that stays, one that is there twice or lost, a change that no note was made
    of (a copy that became another video's, a camera's zone), texts or places in another order after a merge.
    """
    with TemporaryDirectory() as folder, opened(Path(folder) / "library") as store:
        for count, (what, which, value) in enumerate(taken):
            if what == "publish":
                with store.writing():
                    if value % 2:
                        publish_names(store)
            else:
                step(store, what, which, value, count)
        require_as_made_at_once(store)
        with store.writing():
            publish_names(store)
        require_as_made_at_once(store)
        assert not [*damaged_parts(store.folder)]
        counted = count_facets(store)[0]
        shutil.rmtree(store.folder / FACTS)
        assert count_facets(store)[0] == counted


def test_a_publication_reads_and_writes_what_is_new(
    store: LibraryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one video more, after two hundred: the facts of that one are read, and files of it alone written."""
    with store.writing(), store.catalogue.transaction():
        for number in range(200):
            store.catalogue.put(video(number), [])
    before = {path.name: path.stat().st_mtime_ns for path in (store.folder / FACTS).iterdir()}
    asked: list[list[int]] = []
    searchable = store.catalogue.searchable
    monkeypatch.setattr(
        store.catalogue, "searchable", lambda rows=None: asked.append(rows) or searchable(rows)
    )
    with store.writing(), store.catalogue.transaction():
        (row,) = (store.catalogue.put(video(200), []).row,)
    assert asked == [[row], [row]], "once for the videos, once for their columns"
    after = {path.name: path.stat().st_mtime_ns for path in (store.folder / FACTS).iterdir()}
    assert before.items() - after.items() == {
        (name, before[name]) for name in ("videos.json", "columns.json")
    }
    new = [
        store.folder / FACTS / name for name, _ in after.items() - before.items() if name.endswith(".part")
    ]
    assert len(new) == 2 and sum(path.stat().st_size for path in new) < 1 << 12, "no page of a file for each"


@pytest.mark.usefixtures("_small")
def test_parts_are_few_and_bounded(store: LibraryStore) -> None:
    """Of many publications parts of like size are merged; memory for merging is bounded by their rows."""
    for number in range(40):
        with store.writing(), store.catalogue.transaction():
            store.catalogue.put(video(number), [])
    parts = [
        row_parts._mapped(file, True) for file in row_parts._named_in(store.folder / FACTS / "videos.json")[1]
    ]
    assert sum(part.live for part in parts) == 40
    assert max(part.live for part in parts) < 1.5 * row_parts.LARGEST and len(parts) <= 10
    named = {path.name.partition("-")[0] for path in (store.folder / FACTS).glob("*.part")}
    assert named == {"videos", "columns"} and len([*(store.folder / FACTS).glob("videos-*.part")]) == len(
        parts
    )


def test_a_reader_keeps_what_it_has_opened(store: LibraryStore) -> None:
    """The files of an earlier generation are deleted while a search still reads them."""
    with store.writing(), store.catalogue.transaction():
        for number in range(3):
            store.catalogue.put(video(number, "ä"), [])
    with LibraryStore(store.folder, read_only=True, columns=COLUMNS) as reader:
        videos = reader.searchable()
        columns = reader.columns_of(videos, reader.catalogue.generation)
        with store.writing(), store.catalogue.transaction():
            for one in store.catalogue.searchable():
                store.catalogue.moved(one.row, f"/moved{one.path}", 1, 1, "")
        assert columns["folder"].texts == [f"/films/ä/ä {number}.mp4" for number in range(3)]
        assert [one.path for one in videos.values()] == columns["folder"].texts
        assert reader.searchable()[1].path == "/moved/films/ä/ä 0.mp4"


def test_changes_of_another_version_are_not_passed_over(store: LibraryStore) -> None:
    """A version without notes of changes raises the generation: what it changed is in none of them."""
    with store.writing(), store.catalogue.transaction():
        store.catalogue.put(video(0), [])
    with closing(sqlite3.connect(store.catalogue.path)) as db:
        db.execute("UPDATE videos SET path = '/elsewhere.mp4'")
        db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
        db.commit()
    require_as_made_at_once(store)
    with store.writing(), store.catalogue.transaction():
        store.catalogue.put(video(1), [])
    require_as_made_at_once(store)


def test_what_comes_one_by_one_is_written_as_often_as_the_module_says() -> None:
    """With the sizes of an index, 256 and 16, each video was written 135 times."""
    sizes: list[int] = []
    written, most = 0, 0
    for _ in range(20_000):
        sizes.append(1)
        written += 1
        groups = merges(sizes, FIRST, FAN_OUT, LARGEST)
        merged = [sum(sizes[place] for place in group) for group in groups]
        written += sum(size for size, group in zip(merged, groups, strict=True) if len(group) > 1)
        sizes, most = merged, max(most, len(merged))
    assert (round(written / 20_000, 1), most) == (4.5, 31)
