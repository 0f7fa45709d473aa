"""What people keep of a library, with versions, and as lines of JSON."""

from __future__ import annotations

import json
import re
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from moviola.errors import DataError, InvalidValue, LibraryError, NotFound, OutOfDate
from moviola.library.userdata.entries import UserData
from moviola.library.userdata.values import Collection, Entry, KeptMoment, Mark, SavedSearch
from moviola.search import Library

MOMENT = {"video_id": "a", "start": 1.0, "end": 2.5}
VALUES: dict[str, Any] = {
    "search": {"query": "a wall", "filter": {"taken": "2023"}},
    "collection": {"moments": [MOMENT, {**MOMENT, "title": "é", "note": "late"}]},
    "mark": {"video_id": "a", "start": 1.0, "end": 2.5, "tags": ["dog", "beach"], "rating": 4},
}


def line_of(entry: Entry) -> str:
    return json.dumps({"format": 2, **entry.model_dump()})


NAMES = {"search": "walls", "collection": "best of", "mark": "a@1-2.5"}


@pytest.fixture
def userdata(tmp_path: Path) -> UserData:
    (tmp_path / "lib").mkdir()
    return UserData(tmp_path / "lib")


def test_entries_are_read_where_they_cannot_be_written(
    userdata: UserData, monkeypatch: pytest.MonkeyPatch
) -> None:
    userdata.mark(Mark(video_id="a"), add=["dog"])
    userdata.close()
    monkeypatch.setattr("moviola.library.userdata.entries.os.access", lambda *_: False)
    reading = UserData(userdata.path.parent)
    assert reading.tagged() == {"dog": frozenset({"a"})}
    with pytest.raises(LibraryError, match="writable to change anything"):
        reading.mark(Mark(video_id="a"), add=["cat"])


@pytest.mark.parametrize("kind", VALUES)
def test_entries_come_back_as_they_were(userdata: UserData, kind: Any) -> None:
    assert userdata.entries() == []
    entry = userdata.put(kind, NAMES[kind], VALUES[kind])
    assert (entry.version, entry.kind, entry.name) == (1, kind, NAMES[kind])
    assert UserData(userdata.path.parent).entry(kind, NAMES[kind]) == entry
    assert userdata.entries(kind) == [entry] and userdata.put(kind, NAMES[kind], entry.value).version == 2
    userdata.delete(kind, NAMES[kind])
    assert userdata.entries() == []
    with pytest.raises(NotFound, match="no such entry"):
        userdata.entry(kind, NAMES[kind])
    with pytest.raises(NotFound, match="no such entry"):
        userdata.delete(kind, NAMES[kind])


def test_tags_that_differ_in_case_alone_are_one(userdata: UserData) -> None:
    userdata.mark(Mark(video_id="a"), add=["Größe", "GRÖSSE", "sea"])
    userdata.mark(Mark(video_id="b"), add=["größe"])
    userdata.mark(Mark(video_id="c"), add=["größe"])
    assert userdata.tagged() == {"größe": frozenset("abc"), "sea": frozenset("a")}
    entry = userdata.mark(Mark(video_id="a"), add=["SEA"], remove=["grösse"])
    assert entry is not None and entry.value.tags == ["sea"]


@pytest.mark.parametrize("kind", ["search", "collection"])
def test_a_name_may_have_its_accents_in_either_form(userdata: UserData, kind: Any) -> None:
    apart, whole = (normalize(form, "Übung") for form in ("NFD", "NFC"))
    userdata.put(kind, apart, VALUES[kind])
    assert userdata.entry(kind, whole).name == apart
    assert userdata.put(kind, whole, VALUES[kind]).version == 2
    userdata.delete(kind, whole)
    assert userdata.entries() == []


def test_an_unknown_entry_is_named_beside_known_ones(userdata: UserData) -> None:
    userdata.put("search", "Beach days", VALUES["search"])
    with pytest.raises(NotFound, match=r"search 'beach day': no such entry; did you mean Beach days\?"):
        userdata.entry("search", "beach day")


def test_who_comes_second_is_refused(userdata: UserData) -> None:
    userdata.put("search", "walls", {"query": "a wall"}, version=0)
    userdata.put("search", "walls", {"query": "a red wall"}, version=1)
    with pytest.raises(OutOfDate, match="version 2 is stored, the change is based on 1"):
        userdata.put("search", "walls", {"query": "a blue wall"}, version=1)
    with pytest.raises(OutOfDate, match="based on 0"):
        userdata.put("search", "walls", {"query": "a blue wall"}, version=0)
    with pytest.raises(OutOfDate):
        userdata.delete("search", "walls", version=1)
    value = userdata.entry("search", "walls").value
    assert isinstance(value, SavedSearch) and value.root == {"query": "a red wall"}


def test_tags_and_ratings_change_apart(userdata: UserData) -> None:
    mark = Mark(video_id="a", start=1, end=2.5)
    userdata.mark(mark, add=["dog", "beach", "dog"])
    userdata.mark(mark, rating=3)
    entry = userdata.mark(mark, add=["sea"], remove=["beach"])
    assert entry is not None and entry.version == 3
    assert entry.value == Mark(video_id="a", start=1, end=2.5, tags=["dog", "sea"], rating=3)
    assert userdata.mark(mark, remove=["dog", "sea"], rating=0) is None and userdata.entries() == []
    userdata.mark(Mark(video_id="a"), rating=5)
    assert [entry.name for entry in userdata.entries("mark")] == ["a"]


def test_moments_of_a_long_video_have_names_of_their_own(userdata: UserData) -> None:
    for start, tag in ((12345.67, "first"), (12345.71, "second")):
        userdata.mark(Mark(video_id="a", start=start, end=12350), add=[tag])
    assert [entry.name for entry in userdata.entries()] == ["a@12345.67-12350", "a@12345.71-12350"]
    userdata.delete("mark", "a@12345.67-12350")
    assert userdata.tagged() == {"second": frozenset({"a"})}


def test_a_tag_is_not_taken_for_its_letters(userdata: UserData) -> None:
    for change in ("add", "remove"):
        with pytest.raises(InvalidValue, match=rf"{change} 'dog': a single text"):
            userdata.mark(Mark(video_id="beach"), **{change: "dog"})  # type: ignore[arg-type]
    assert userdata.tagged() == {}


def test_many_threads_lose_nothing(userdata: UserData) -> None:
    def tag(number: int) -> None:
        for _ in range(5):
            userdata.mark(Mark(video_id="a"), add=[f"tag {number}"])

    userdata.mark(Mark(video_id="a"), add=["first"])
    threads = [threading.Thread(target=tag, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entry = userdata.entry("mark", "a")
    assert isinstance(entry.value, Mark)
    assert (entry.version, sorted(entry.value.tags)) == (21, ["first", *(f"tag {n}" for n in range(4))])


def test_threads_take_turns(userdata: UserData) -> None:
    """SQLite would let the second one ask again and again, and after some seconds refuse it."""
    userdata.put("search", "first", {"query": "walls"})
    refused: list[LibraryError] = []

    def put() -> None:
        userdata._db.execute("PRAGMA busy_timeout = 0")
        try:
            userdata.put("search", "second", {"query": "walls"})
        except LibraryError as error:
            refused.append(error)

    second = threading.Thread(target=put)
    with userdata._writing():
        second.start()
        second.join(1)
    second.join()
    assert refused == [] and len(userdata.entries()) == 2


def test_two_who_keep_something_first_open_the_file_once(tmp_path: Path) -> None:
    """Opening it takes its connection away from who is writing already."""
    both, opened = threading.Barrier(2), []

    class Watched(UserData):
        def _open_file(self) -> None:
            with suppress(threading.BrokenBarrierError):
                both.wait(1)  # for another one who opens it now
            opened.append(threading.get_ident())
            super()._open_file()

    userdata = Watched(tmp_path)
    threads = [
        threading.Thread(target=userdata.put, args=("search", f"{number}", {"query": "walls"}))
        for number in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1 and len(userdata.entries()) == 2


@pytest.mark.parametrize(
    ("kind", "name", "value", "complaint"),
    [
        ("search", "", {"query": "a"}, "name"),
        ("collection", "x", {"moments": [{**MOMENT, "end": 0.5}]}, "end must come after"),
        ("collection", "x", {"moments": [{**MOMENT, "start": -1}]}, "start"),
        ("mark", "b", {"video_id": "a", "rating": 1}, "the name of this mark is 'a'"),
        ("mark", "a", {"video_id": "a", "rating": 6}, "rating"),
        ("mark", "a", {"video_id": "a", "start": 1}, "both start and end"),
        ("note", "x", {}, "choose search, collection, mark"),
    ],
)
def test_what_cannot_be_kept_is_said(
    userdata: UserData, kind: Any, name: str, value: Any, complaint: str
) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        userdata.put(kind, name, value)
    assert userdata.entries() == []


def test_all_of_it_travels_as_lines(userdata: UserData, tmp_path: Path) -> None:
    for kind, value in VALUES.items():
        userdata.put(kind, NAMES[kind], value)  # type: ignore[arg-type]
    lines = list(userdata.export())
    (tmp_path / "other").mkdir()
    other = UserData(tmp_path / "other")
    other.put("search", "mine", {"query": "mine"})
    assert len(other.take([*lines, ""])) == 3
    assert [line for line in other.export() if "mine" not in line] == lines
    assert other.take(lines) == []  # nothing there is later
    (walls,) = other.entries("search")[1:]
    later = walls.model_copy(
        update={"changed": "2999-01-01T00:00:00+00:00", "value": SavedSearch({"query": "later"})}
    )
    (taken,) = other.take([line_of(later)])
    assert taken.version == 2 and taken.value == SavedSearch({"query": "later"})
    with pytest.raises(DataError, match=r"f\.jsonl: 2: "):
        other.take([lines[0], '{"kind": "search"}'], "f.jsonl:")
    assert len(other.entries()) == 4


def test_of_one_entry_in_several_lines_the_latest_stays(userdata: UserData) -> None:
    """As in the exports of two libraries, one after the other."""
    first = userdata.put("search", "walls", {"query": "a wall"})
    later = first.model_copy(
        update={"changed": "2999-01-01T00:00:00+00:00", "value": SavedSearch({"query": "later"})}
    )
    latest = later.model_copy(
        update={"changed": "2999-01-02T00:00:00+00:00", "value": SavedSearch({"query": "latest"})}
    )
    taken = userdata.take(map(line_of, (later, latest, later, first)))
    assert taken == userdata.entries() and [entry.value for entry in taken] == [
        SavedSearch({"query": "latest"})
    ]


def test_a_clock_that_goes_wrong_does_not_win_for_ever(userdata: UserData) -> None:
    """Neither over what is changed here afterwards, nor over other lines, which have the time."""
    first = userdata.put("search", "walls", SavedSearch({"query": "a wall"}))
    wrong = first.model_copy(
        update={"changed": "2099-01-01T00:00:00+00:00", "value": SavedSearch({"query": "x"})}
    )
    (taken,) = userdata.take([line_of(wrong)])
    assert taken.changed < "2099" and userdata.take([line_of(wrong)]) == []
    mine = userdata.put("search", "walls", SavedSearch({"query": "mine"}))
    assert userdata.take([line_of(wrong)]) == [] and userdata.entry("search", "walls") == mine
    # One that an earlier version has taken in with such a time gives way to any other.
    userdata._rows("UPDATE entries SET changed = '2099-01-01T00:00:00+00:00'")
    (taken,) = userdata.take([line_of(first)])
    assert taken.value == SavedSearch({"query": "a wall"})


@pytest.mark.parametrize("version", [2**53, 2**63 - 1, 2**63, 2**64, 10**400])
def test_a_version_that_no_changes_make_is_refused(userdata: UserData, version: int) -> None:
    """One was a traceback; with another the next change of the entry failed for good."""
    line = json.dumps({"kind": "search", "name": "a", "version": version, "value": {"text": "a"}})
    with pytest.raises(DataError, match=r"f: 1: version|f: 1: .*integer"):
        userdata.take([line], "f:")
    assert userdata.entries() == []
    largest = json.dumps({"kind": "search", "name": "a", "version": 2**52, "value": {"text": "a"}})
    assert len(userdata.take([largest])) == 1
    for text in ("b", "c"):  # also where an earlier version has taken one in
        userdata.put("search", "a", {"query": text})
    userdata._rows("UPDATE entries SET version = ?", (2**63 - 1,))
    assert userdata.put("search", "a", {"query": "d"}, 2**63 - 1).version == 1


def test_a_damaged_file_is_named(userdata: UserData) -> None:
    userdata.put("collection", "x", Collection(moments=[KeptMoment(**MOMENT)]))  # type: ignore[arg-type]
    userdata._rows("UPDATE entries SET value = '{}x'")
    with pytest.raises(LibraryError, match=r"kept\.sqlite: damaged"):
        userdata.entries()
    userdata._rows("PRAGMA user_version = 9")
    userdata.close()
    with pytest.raises(LibraryError, match="format 9"):
        UserData(userdata.path.parent)


def test_a_saved_search_is_asked_again(library: Library) -> None:
    library.userdata.put("search", "umbrellas", {"query": "umbrella", "filter": {"video_length": "..100"}})
    expected = library.search("umbrella")
    assert [m.video_id for m in library.saved.search("umbrellas")] == [m.video_id for m in expected]
    with closing(UserData(library.folder)) as earlier:  # versions that stored whatever came
        earlier.put("search", "odd", {"query": "umbrella", "filter": {"colour": "red"}})
    with pytest.raises(InvalidValue, match="search 'odd': filter 'colour' does not exist; choose folder"):
        library.saved.search("odd")
    with Library(library.folder, read_only=True) as other:
        assert len(other.userdata.entries()) == 2


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"query": "a", "filter": {"colour": "red"}}, "filter 'colour' does not exist; choose folder"),
        ({"query": "a", "filter": {"near": "home"}}, "degrees north"),
    ],
)
def test_searches_that_can_never_run_are_not_kept(
    library: Library, value: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidValue, match=rf"search 'odd': .*{complaint}"):
        library.userdata.put("search", "odd", value)
    with pytest.raises(DataError, match=rf"line 1: .*{complaint}"):
        library.userdata.take([json.dumps({"format": 2, "kind": "search", "name": "odd", "value": value})])
    assert library.userdata.entries() == []


def test_moments_past_the_end_of_their_video_are_not_kept(library: Library) -> None:
    video = library.videos()[0]
    end = video.duration
    beyond = {"video_id": video.video_id, "start": end + 1, "end": end + 2}
    ends = f"{video.video_id}: start {end + 1:g}: the video ends at {end:g} s; give a time before that"
    with pytest.raises(InvalidValue, match=re.escape(f"collection 'best': {ends}")):
        library.userdata.put("collection", "best", {"moments": [beyond]})
    mark = Mark(**beyond)
    with pytest.raises(InvalidValue, match=f"^{re.escape(ends)}"):
        library.userdata.mark(mark, add=["late"])
    with pytest.raises(InvalidValue, match=re.escape(ends)):
        library.userdata.put("mark", mark.name, mark)
    assert library.userdata.entries() == []


def test_moments_are_kept_where_the_end_of_their_video_is_unknown_or_was_later(library: Library) -> None:
    video = library.videos()[0]
    beyond = {"video_id": video.video_id, "start": video.duration + 1, "end": video.duration + 2}
    removed = {"video_id": "removed", "start": 500, "end": 600}
    across = {"video_id": video.video_id, "start": 0, "end": video.duration + 9}
    library.userdata.put("collection", "best", {"moments": [removed, across]})
    line = {"kind": "collection", "name": "older", "value": {"moments": [beyond]}}
    library.userdata.take([json.dumps(line)])
    kept = library.userdata.put("collection", "older", {"moments": [across, beyond]}).value
    assert isinstance(kept, Collection) and len(kept.moments) == 2


def test_times_of_changes_are_compared_in_one_form(userdata: UserData) -> None:
    def line(changed: str) -> str:
        value = {"query": changed}
        return json.dumps({"format": 2, "kind": "search", "name": "a", "changed": changed, "value": value})

    userdata.take([line("2024-05-01T18:30:00+00:00")])
    assert userdata.take([line("2024-05-01T19:30:00+02:00")]) == []  # an hour earlier
    (later,) = userdata.take([line("2024-05-01T20:31:00+02:00")])
    assert later.changed == "2024-05-01T18:31:00+00:00"
    for wrong in ("yesterday", "0001-01-01T00:00:00+02:00"):
        with pytest.raises(DataError, match=rf"line 1: changed '{re.escape(wrong)}': write a time in ISO"):
            userdata.take([line(wrong)])
