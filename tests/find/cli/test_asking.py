"""More ways to ask on the command line, and what is done with an answer afterwards."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from rich.cells import cell_len

from moviola.cli.app import console
from moviola.cli.terminal import _cropped
from moviola.media import frame_at, probe
from moviola.search import Filter, Library, LikeMoment, LikePicture, SearchOptions, SearchResult, Text
from moviola.types import Moment, Reason, Span, band_of

Run = Callable[..., Any]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, SearchOptions]]:
    """What the command asks the library, which answers with nothing."""
    calls: list[tuple[Any, SearchOptions]] = []

    def search(_: Library, query: Any, options: SearchOptions) -> SearchResult:
        calls.append((query, options))
        return SearchResult()

    monkeypatch.setattr(Library, "search", search)
    return calls


@pytest.mark.parametrize(
    ("words", "query"),
    [
        (["a dog"], Text("a dog")),
        (["--like", "street@0:05"], LikeMoment("street", 5.0)),
        (["a dog", "--like", "street@5", "--weight", "0.5"], 0.5 * Text("a dog") + LikeMoment("street", 5.0)),
        (["--picture", "x.png", "--picture", "y.png"],
         LikePicture(Path("x.png")) + LikePicture(Path("y.png"))),
        (["a dog", "--then", "rain", "--then", "sun", "--gap", "5"],
         Text("a dog").then("rain", gap=5.0).then("sun", gap=5.0)),
        (["a dog", "--without", "snow", "--without", "rain"], Text("a dog").without("snow", "rain")),
        (["a dog", "--then", "rain", "--without", "snow"], Text("a dog").then("rain").without("snow")),
    ],
)  # fmt: skip
def test_options_are_the_algebra(
    moviola: Run, library: Path, asked: list[Any], words: list[str], query: object
) -> None:
    assert moviola("search", *words, "-l", library).code == 0
    assert asked[0][0] == query


def test_filters(moviola: Run, library: Path, asked: list[Any]) -> None:
    given = {
        "folder": "/films", "modified": "2024-05-01..2024-06-01", "video_length": "..10:00",
        "moment_length": "2..30", "taken": "2021..2023-05", "near": "52.52,13.40,5km", "camera": "iphone",
        "where": "-1:00..",
    }  # fmt: skip
    words = [word for name, value in given.items() for word in (OPTIONS[name], value)]
    assert moviola("search", "a dog", *words, "-l", library).code == 0
    assert asked[0][1].filter == Filter.parse(**given)


OPTIONS = {
    "folder": "--folder", "modified": "--modified", "video_length": "--video-length",
    "moment_length": "--moment-length", "taken": "--taken", "near": "--near", "camera": "--camera",
    "where": "--where",
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--then", "rain"], 2, "give a text, --like or --picture"),
        (["--without", "rain"], 2, "give a text, --like or --picture"),
        (["--like", "street"], 1, "'street': write VIDEO@TIME"),
        (["--like", "street@99"], 1, "the video ends at 12 s"),
        (["--like", "stret@1"], 1, "did you mean street?"),
        (["--picture", "missing.png"], 1, "missing.png"),
        (["a dog", "--weight", "0", "--like", "street@1"], 1, "weight 0"),
        (["a dog", "--weight", "3"], 2, "--weight: weighs a text beside --like or --picture; give both"),
        (["--like", "street@1", "--weight", "3"], 2, "--weight: weighs a text beside --like or --picture"),
        (["a dog", "--where", "5"], 1, "write LOW..HIGH"),
        (["a dog", "--folder", "nowhere"], 1, "no video of this library is in this folder"),
    ],
)
def test_wrong_ways_to_ask_are_named(
    moviola: Run, library: Path, words: list[str], code: int, message: str
) -> None:
    answer = moviola("search", *words, "-l", library)
    assert answer.code == code
    assert message in " ".join(answer.err.replace("│", " ").split())


def test_moments_pictures_and_sequences_find(
    moviola: Run, films: Path, library: Path, tmp_path: Path
) -> None:
    Image.fromarray(frame_at(films / "street.mp4", 5.0, 96)).save(tmp_path / "x.png")
    for words in (["--like", "street@5"], ["--picture", tmp_path / "x.png"]):
        # To the demo's encoder the bare walls of other films look much alike, so they may come first.
        rows = moviola("search", *words, "-l", library, "--json").rows
        (there,) = (row for row in rows if row["video_id"] == "street" and row["start"] <= 5 < row["end"])
        assert there["band"] == "strong" and all(row["confident"] for row in rows)


def test_the_picture_of_a_query_is_not_written_over(
    moviola: Run, films: Path, library: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "x.png"
    Image.fromarray(frame_at(films / "street.mp4", 5.0, 96)).save(picture)
    before = picture.read_bytes()
    answer = moviola("search", "--picture", picture, "--export", picture, "-l", library)
    assert answer.code == 1 and f"{picture}: is read by the command" in answer.err
    assert picture.read_bytes() == before


def test_steps_have_spans_of_their_own(moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (Moment("street", 1.0, 4.0, 0.8, 1), Moment("street", 6.0, 9.5, 0.5, 1))
    whole = Moment("street", 1.0, 9.5, 0.4, 1, steps=steps)
    monkeypatch.setattr(Library, "search", lambda *_, **__: SearchResult([whole]))
    (moment,) = moviola("search", "a", "--then", "b", "-l", library, "--json").rows
    assert [(step["start"], step["end"]) for step in moment["steps"]] == [(1.0, 4.0), (6.0, 9.5)]
    shown = moviola("search", "a", "--then", "b", "-l", library).out.splitlines()
    assert [line.split("\t")[2] for line in shown] == ["0:00:01.0 – 0:00:04.0, 0:00:06.0 – 0:00:09.5"]


def test_a_place_without_a_distance_is_said(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        Library, "search", lambda *_, **__: SearchResult([Moment("street", 1.0, 4.0, 0.9, 1)])
    )
    answer = moviola("search", "a", "--near", "1,2", "-l", library)
    assert (answer.code, answer.err) == (0, "near 1,2: at most 1 km away; another distance: 1,2,5km\n")
    assert moviola("search", "a", "--near", "1,2,1km", "-l", library).err == ""
    assert "LAT,LON[,DISTANCE]" in moviola("search", "-h").out


def test_no_score_seems_to_reach_a_band_that_it_is_not_in(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        Moment("street", 1.0, 4.0, score, rank, band=band_of(score), why=(Reason("seen", score),))
        for rank, score in enumerate((0.4999, 0.1999), 1)
    ]
    monkeypatch.setattr(Library, "search", lambda *_, **__: SearchResult(found))
    lines = moviola("search", "a", "-l", library, "--weak", "--why").out.splitlines()
    assert "\t0.499 possible\t" in lines[0] and lines[0].endswith("\tseen 0.49")
    assert "\t0.199 weak\t" in lines[1] and lines[1].endswith("\tseen 0.19")
    assert [row["score"] for row in moviola("search", "a", "-l", library, "--json").rows] == [0.4999, 0.1999]


def test_bands_are_separate_and_hidden_moments_are_counted(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line below the strong ones; an answer without any is uncertain, one of weak ones alone is none."""

    def answer(*scores: float) -> tuple[str, str]:
        found = [
            Moment("street", place, place + 1, score, place + 1, "named" if score == 0.55 else "visual",
                   band=band_of(score), why=(Reason("named", score),) if score == 0.55 else ())
            for place, score in enumerate(scores)
        ]  # fmt: skip
        monkeypatch.setattr(Library, "search", lambda *_, **__: SearchResult(found))
        shown = moviola("search", "a", "-l", library)
        return shown.out, shown.err

    out, err = answer(0.9, 0.55, 0.3, 0.1)
    assert len(out.splitlines()) == 3 and err == "1 weak moment: --weak shows them too\n"
    assert "by its name" in out.splitlines()[1] and " possible" in out.splitlines()[2]
    out, err = answer(0.3, 0.2, 0.1)
    assert len(out.splitlines()) == 2
    assert err == "nothing certain; 2 possible; --weak shows the 1 nearest moment\n"
    assert answer(0.1, 0.05) == ("", "nothing matches; --weak shows the 2 nearest moments\n")
    assert answer() == ("", "nothing matches\n")


def test_a_moment_is_one_line_of_80_columns(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long names and lines, of letters that are two columns wide, too, are shortened; times never are."""
    words = "a line that goes on and on, and is far too long for what is left of eighty columns"
    found = [
        Moment("street", 61.0, 62.5, 0.9, 1, "both", words, snippet_kind="speech", band="strong",
               folded=(Span(70, 71),)),
        Moment("harbour", 5.0, 6.0, 0.3, 2, "subtitle", "雨の降る通りを歩く人" * 9, band="possible"),
        Moment("street", 9.0, 9.5, 0.3, 3, "subtitle", "הַחָתוּל יָשֵׁן " * 9, band="possible"),
    ]  # fmt: skip
    monkeypatch.setattr(Library, "search", lambda *_, **__: SearchResult(found))
    piped = moviola("search", "a", "-l", library).out
    monkeypatch.setattr(console.rich, "_force_terminal", True)
    monkeypatch.setattr("moviola.cli.search.name_now", lambda *_: "a\tlong\nname " * 30)
    lines = re.sub(r"\x1b\[[\d;]*m", "", moviola("search", "a", "-l", library).out).splitlines()
    assert [cell_len(line) <= 80 for line in lines] == [True] * 6
    first, second = lines[2], lines[4]
    assert "1:01.0 – 1:02.5" in first and "speech: a" in first and first.count("…") == 2 and "+1" in first
    assert "0:05.0 – 0:06.0" in second and "0.300 possible" in second and "雨の" in second
    assert words in piped and "0:01:01.0 – 0:01:02.5" in piped


@given(st.sets(st.text("ab雨", max_size=14)), st.integers(5, 9))
def test_names_that_differ_early_stay_different_where_they_are_shortened(names: set[str], width: int) -> None:
    """Whatever their last letters; none is wider than its column, and none is shortened in vain."""
    shown = _cropped(names, width, "in the middle")
    assert all(cell_len(short) <= width for short in shown.values())
    assert all(shown[name] == name for name in names if cell_len(name) <= width)
    if len({name[:2] for name in names}) == len(names):
        assert len(set(shown.values())) == len(names)


def test_the_middle_is_left_out_unless_names_look_the_same_then() -> None:
    one, other = "intel_preview_car-detection", "intel_preview_person-bicycle-car-detection"
    assert _cropped([one], 17, "in the middle") == {one: "intel_pr…etection"}
    assert _cropped([one, other], 17, "in the middle") == {
        one: "intel_preview_c…n",
        other: "intel_preview_p…n",
    }


def test_the_least_score_may_be_a_band(moviola: Run, library: Path) -> None:
    rows = moviola("search", "umbrella", "-l", library, "--min-score", "Strong", "--json").rows
    assert rows and {row["band"] for row in rows} == {"strong"}
    wrong = moviola("search", "umbrella", "-l", library, "--min-score", "certain")
    said = "min_score='certain': give a score from 0 to 1, or strong, possible, weak"
    assert wrong.code == 1 and said in wrong.err


def test_a_query_that_is_read_differently_is_noted(moviola: Run, library: Path) -> None:
    said = moviola("search", "a street without rain", "-l", library).err
    assert "read as “a street” without “rain”; in quotation marks" in said
    assert "read as" not in moviola("search", '"a street without rain"', "-l", library).err
    assert "says only what is not wanted" in moviola("search", "no dog", "-l", library).err
    assert "no concept is called @handle" in moviola("search", "@handle", "-l", library).err


# ---- no match ----------------------------------------------------------------------------------------------


@pytest.fixture
def unsure(monkeypatch: pytest.MonkeyPatch) -> None:
    """All moments are weak."""
    search = Library.search

    def doubtful(self: Library, query: Any, *given: Any, **options: Any) -> SearchResult:
        return SearchResult([replace(m, band="weak") for m in search(self, query, *given, **options)])

    monkeypatch.setattr(Library, "search", doubtful)


def test_filters_that_leave_no_video_are_said(moviola: Run, library: Path, tmp_path: Path) -> None:
    with Library(library, read_only=True) as opened:
        assert opened.search("umbrella", videos=["street"]).videos == 1
        assert opened.search("umbrella").videos == len(opened.videos())
    for filter in (("--taken", "2090.."), ("--near", "1,2,3km"), ("--video-length", "9:00..")):
        answer = moviola("search", "umbrella", "-l", library, *filter)
        assert answer.err == "no match: the filters leave no video to search\n"
    Library(tmp_path / "empty", encoder="none", sentence_encoder="none").close()
    answer = moviola("search", "umbrella", "-l", tmp_path / "empty")
    assert answer.err.endswith("no match: the library has no video to search\n")


@pytest.mark.usefixtures("unsure")
def test_no_match_is_said(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    answer = moviola("search", "umbrella", "-l", library)
    assert answer.code == 0
    assert answer.out == ""
    assert re.fullmatch(r"nothing matches; --weak shows the \d+ nearest moments\n", answer.err)
    alone = moviola("search", "umbrella", "-l", library, "--top-k", 1)
    assert alone.err == "nothing matches; --weak shows the 1 nearest moment\n"
    for words in (("open", 1), ("export", tmp_path / "none.csv")):
        assert "the last answer has no moments; search with --weak" in moviola(*words, "-l", library).err
    assert not (tmp_path / "none.csv").exists()
    assert "harbour.mp4" in moviola("search", "umbrella", "-l", library, "--weak").out
    moments = moviola("search", "umbrella", "-l", library, "--json").rows
    assert moments and {moment["confident"] for moment in moments} == {False}


@pytest.mark.usefixtures("unsure")
def test_an_export_of_no_moment_is_said(moviola: Run, library: Path, tmp_path: Path) -> None:
    """A file that is named and not there has a reason; with --weak there is one."""
    out = tmp_path / "m.csv"
    answer = moviola("search", "umbrella", "-l", library, "--export", out)
    assert not out.exists()
    said = "not written, since there is no strong or possible moment; --weak writes weak ones too\n"
    assert answer.err.endswith(f"{out}: {said}")
    none = moviola("search", "umbrella", "-l", library, "--export", out, "--video-length", "..0", "--weak")
    assert none.err.endswith(f"{out}: not written, since there is no moment\n")
    assert moviola("search", "umbrella", "-l", library, "--export", out, "--weak").err == "nothing matches\n"
    assert out.is_file()


def test_what_speaks_for_a_moment_is_said(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = moviola("search", "umbrella", "-l", library, "--weak", "--why").out
    assert re.search(r"(seen|said|named) [01]\.\d\d", out)


PLACE = ("video_id", "start", "end")


def test_marks_change_the_next_answer_and_can_be_taught(moviola: Run, library: Path, tmp_path: Path) -> None:
    library = Path(shutil.copytree(library, tmp_path / "library"))
    (library / "cache" / "last-answer.json").unlink(missing_ok=True)
    assert "no answer yet" in moviola("mark", "--right", 1, "-l", library).err
    first = moviola("search", "umbrella", "-l", library, "--json").rows
    assert moviola("teach", "rain gear", "-l", library).code == 1
    second = moviola("mark", "--right", 1, "--wrong", 2, "-l", library, "--json").rows
    right, wrong = first[:2]
    assert second[0]["video_id"] == right["video_id"] and second[0]["score"] > right["score"]
    same = [row for row in second if [row[k] for k in PLACE] == [wrong[k] for k in PLACE]]
    assert second[0]["band"] == "strong" and len(second) > 1
    assert not any(row["band"] == "strong" or row["score"] >= wrong["score"] for row in same)  # or it is gone
    assert "give one of their ranks" in moviola("mark", "--wrong", 99, "-l", library).err
    assert (
        moviola("teach", "Rain gear", "-l", library).out == "@rain-gear is a concept now; use it in a query\n"
    )
    (kept,) = moviola("concepts", "list", "-l", library, "--json").rows
    assert (kept["name"], kept["right"], kept["wrong"]) == ("rain-gear", 1, 1)
    (best, *_) = moviola("search", "@rain-gear", "-l", library, "--json").rows
    assert best["video_id"] == first[0]["video_id"]
    assert moviola("concepts", "forget", "rain-gear", "--yes", "-l", library).code == 0
    assert "no concept is called @rain-gear" in moviola("search", "@rain-gear", "-l", library).err
    moviola("search", "umbrella", "-l", library, "--weak")
    assert moviola("mark", "--right=1", 2, "-l", library).code == 0
    assert moviola("teach", "both", "-l", library, "--json").rows[0]["right"] == 2


# ---- afterwards --------------------------------------------------------------------------------------------


@pytest.fixture
def found(moviola: Run, library: Path) -> dict[str, Any]:
    """The second moment of an answer that was printed."""
    second: dict[str, Any] = moviola("search", "anything", "-l", library, "--json").rows[1]
    return second


def test_open_starts_a_player(
    moviola: Run, library: Path, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **_: started.append(words))
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    printed = json.loads(moviola("open", 2, "-l", library, "--player", "mpv", "--json").out)
    assert (
        started
        == [["/bin/mpv", f"--start={found['start']:.3f}", "--", found["path"]]]
        == [printed["command"]]
    )
    monkeypatch.setenv("MOVIOLA_PLAYER", "see {path}")
    assert "in see" in moviola("open", 2, "-l", library).out
    assert started[1] == ["/bin/see", found["path"]]


def test_open_without_a_player_is_one_line(
    moviola: Run, library: Path, found: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    answer = moviola("open", found["rank"], "-l", library)
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert "no player is installed; install mpv, vlc, ffplay" in answer.err


def test_cut_writes_the_clip(moviola: Run, library: Path, found: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "clip.mp4"
    printed = json.loads(moviola("cut", 2, "-o", out, "-l", library, "--json").out)
    assert (printed["out"], printed["path"]) == (str(out), found["path"])
    assert probe(out).duration == pytest.approx(found["end"] - found["start"], abs=0.3)


def test_cut_names_the_file_by_its_place(
    moviola: Run, library: Path, found: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = moviola("cut", 2, "-l", library).out.strip()
    assert name.startswith(f"002_{found['video_id']}_") and (tmp_path / name).is_file()


def test_without_an_answer_there_is_nothing_to_open(moviola: Run, tmp_path: Path) -> None:
    for command in ("open", "cut"):
        answer = moviola(command, 1, "-l", tmp_path / "lib")
        assert answer.code == 1 and "no library there, so no answer" in answer.err
