"""What people keep, from the outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from moviola.media import frame_at
from moviola.search import Asked, Filter, Library, SearchOptions
from moviola.search.last_answer import kept_answer

Run = Callable[..., Any]


def test_searches_are_saved_and_asked_again(moviola: Run, library: Path, tmp_path: Path) -> None:
    on = ("-l", library)
    command = ("search", "the umbrella is gone", "--video-length", "1..", "--without", "snow", "-k", 2)
    saved = moviola(*command, "--save", "umbrellas", *on)
    assert saved.code == 0 and "search umbrellas: saved, version 1" in saved.err
    assert "harbour" in moviola("kept", "run", "umbrellas", *on).out
    assert moviola("kept", "run", "umbrellas", *on, "--json").rows[0]["video_id"] == "harbour"
    wrong = moviola("search", "y", "--near", "home", "--save", "x", *on)
    assert wrong.code == 1 and "degrees north" in wrong.err
    tagged = moviola("kept", "tag", "harbour@0:02-0:05", "umbrella", *on)
    assert "mark harbour@2-5: version 1; umbrella" in tagged.out
    assert "rated 4" in moviola("kept", "rate", "harbour", "4", *on).out
    assert "was deleted" in moviola("kept", "rate", "harbour", "0", *on).out
    assert moviola("kept", "rate", "nowhere", "4", *on).code == 1
    for said in ("1 moment\n", "2 moments\n"):
        collected = moviola("kept", "collect", "best", "harbour@2-5", *on)
        assert said in collected.out
    assert "name a moment" in moviola("kept", "collect", "best", "harbour", *on).err
    for words in (("tag", "harbour@0:12-0:13", "dog"), ("collect", "best", "harbour@1:00-1:01")):
        assert "the video ends at 12 s" in moviola("kept", *words, *on).err
    assert "at most" in moviola("kept", "tag", "a" * 5_000, "dog", *on).err
    for words in (("tag", "harbour@5-3", "dog"), ("collect", "best", "harbour@5-3")):
        assert "'harbour@5-3': 5-3: the end must come after" in moviola("kept", *words, *on).err
    listed = moviola("kept", "list", *on).out
    assert "umbrellas" in listed and "best" in listed
    assert "the umbrella is gone; not snow, video_length 1.., top_k 2" in listed
    moviola("kept", "tag", "harbour", "a\u2028b", *on)  # which ends a line elsewhere
    out = tmp_path / "kept.jsonl"
    assert "4 entries" in moviola("kept", "export", out, *on).out
    assert moviola("kept", "delete", "collection", "best", "--yes", *on).code == 0
    assert ": 1 entry imported" in moviola("kept", "import", out, *on).out
    assert len(moviola("kept", "list", *on, "--json").rows) == 4


def test_a_tag_to_remove_that_is_not_there_is_named(moviola: Run, library: Path) -> None:
    on = ("-l", library)
    moviola("kept", "tag", "street", "Sea", *on)
    gone = moviola("kept", "tag", "street", "see", "dog", "--remove", *on)
    assert (gone.code, gone.err) == (3, "street: had no tag see, dog\n") and "; Sea" in gone.out
    assert moviola("kept", "tag", "street", "sea", "--remove", *on).code == 0


def test_folders_are_kept_as_they_are_meant(
    moviola: Run, library: Path, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From another working directory a relative folder would be another one."""
    on = ("-l", library)
    monkeypatch.chdir(films)
    assert moviola("search", "the umbrella is gone", "--folder", ".", "--save", "here", *on).code == 0
    monkeypatch.chdir(tmp_path)
    assert kept_answer(library).asked.options.filter == Filter(folder=films.resolve())
    assert "harbour" in moviola("kept", "run", "here", *on).out
    moviola("kept", "delete", "search", "here", "--yes", *on)


def test_the_id_of_a_video_may_read_like_a_moment(moviola: Run, films: Path, tmp_path: Path) -> None:
    from moviola.search import Library

    video = tmp_path / "films" / "mail@site-tour.mp4"
    video.parent.mkdir()
    shutil.copy(films / "street.mp4", video)
    with Library(tmp_path / "lib", encoder="demo", sentence_encoder="none") as lib:
        lib.index(video.parent)
    on = ("-l", tmp_path / "lib")
    assert "mark mail@site-tour: version 1; post" in moviola("kept", "tag", "mail@site-tour", "post", *on).out
    assert "rated 4" in moviola("kept", "rate", "mail@site-tour@0:02-0:05", "4", *on).out


def test_a_pipe_is_not_waited_for(moviola: Run, library: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused = moviola("kept", "import", tmp_path / "pipe", "-l", library)
    assert refused.code == 1 and "a device, pipe or socket; name a text file" in refused.err


def test_the_answer_of_a_saved_search_is_the_last_answer(moviola: Run, library: Path) -> None:
    on = ("-l", library)
    moviola("search", "a street at night", "--weak", *on)
    command = ("search", "the umbrella is gone", "--by", "subtitles", "--video-length", "1..", "-k", 3)
    moviola(*command, "--save", "gone", *on)
    moviola("search", "another", *on)
    shown = moviola("kept", "run", "gone", "-k", "1", *on, "--json").rows
    kept = kept_answer(library)
    assert [moment.video_id for moment in kept.moments] == [row["video_id"] for row in shown] == ["harbour"]
    options = SearchOptions(by="subtitles", top_k=1, filter=Filter(video_length=(1, None)))
    assert kept.asked == Asked("the umbrella is gone", options)


def test_a_picture_is_saved_with_its_search(moviola: Run, library: Path, films: Path, tmp_path: Path) -> None:
    """It outlives its file, travels to another library, and takes no room when no search has it any more."""
    on, out, other = ("-l", library), tmp_path / "kept.jsonl", tmp_path / "other"
    picture = tmp_path / "x.png"
    Image.fromarray(frame_at(films / "street.mp4", 5.0, 96)).save(picture)
    command = ("search", "a street", "--picture", picture, "--like", "harbour@1", "--weight", 2, "--weak")
    first = moviola(*command, "--save", "alike", "--json", *on)
    size = picture.stat().st_size
    picture.unlink()
    assert f"1 picture of {size / 1000:,.1f} kB" in moviola("kept", "list", *on).out
    assert moviola("kept", "run", "alike", "--json", *on).rows == first.rows
    assert moviola("mark", "--right", 1, *on).code == 0  # the answer is kept with its picture
    moviola("kept", "export", out, *on)
    shutil.copytree(library, other)
    (other / "kept.sqlite").unlink()
    assert moviola("kept", "import", out, "-l", other).code == 0
    assert moviola("kept", "run", "alike", "--json", "-l", other).rows == first.rows
    moviola("kept", "delete", "search", "alike", "--yes", *on)
    with Library(library, read_only=True) as lib:
        assert lib.userdata.pictures() == {}
    gone = moviola("mark", "--right", 1, *on)
    assert gone.code == 1 and "no saved search has it, or no longer" in gone.err
