"""``moviola export`` and ``search --export``: what goes out, of what, and what is said when it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile, copytree
from typing import Any

import pytest

from moviola.export import read_moments
from moviola.media import probe
from moviola.search import Asked
from moviola.search.last_answer import KeptAnswer, keep_answer
from moviola.types import Moment

Run = Callable[..., Any]


@pytest.fixture
def found(library: Path) -> list[Moment]:
    """The answer that was printed last."""
    spans = [("street", 1.0, 3.0), ("harbour", 4.0, 11.0), ("street", 6.4, 7.0), ("harbour", 0.0, 1.2)]
    answer = [Moment(video, start, end, 0.5, rank) for rank, (video, start, end) in enumerate(spans, 1)]
    keep_answer(library, KeptAnswer(Asked("a car"), answer))
    return answer


def test_the_last_answer_goes_out(moviola: Run, library: Path, found: list[Moment], tmp_path: Path) -> None:
    out = tmp_path / "doors.edl"
    assert moviola("export", out, "-l", library).out == f"{out}: 4 moments, EDL, CMX 3600: cuts\n"
    text = out.read_text()
    assert text.startswith("TITLE: doors\nFCM: NON-DROP FRAME\n")
    assert text.count("* FROM CLIP NAME:") == 4
    printed = json.loads(moviola("export", tmp_path / "m.json", "-l", library, "--json").out)
    assert (printed["format"], printed["moments"], printed["files"]) == (
        "json",
        4,
        [str(tmp_path / "m.json")],
    )
    chosen, paths = read_moments(tmp_path / "m.json")
    assert [s.moment.start for s in chosen] == [moment.start for moment in found]
    assert {Path(path).name for path in paths.values()} == {"street.mp4", "harbour.mp4"}


def test_a_collection_goes_out(moviola: Run, films: Path, tmp_path: Path) -> None:
    """In its order, under its name, without a search before; of a video that was taken out it is said."""
    lib, out = tmp_path / "library", tmp_path / "dogs.edl"
    moviola("index", films, "-l", lib, "--encoder", "demo", "--no-ocr", "--no-speech", "--no-sounds")
    moviola("kept", "collect", "our dogs", "street@0:04-0:06", "harbour@0:01-0:03", "-l", lib)
    written = moviola("export", out, "--collection", "our dogs", "-l", lib, "--json")
    assert written.rows[0]["moments"] == 2 and written.code == 0
    text = out.read_text(encoding="utf-8")
    assert "TITLE: our dogs" in text and text.index("street") < text.index("harbour")
    moviola("export", tmp_path / "one.csv", "--collection", "our dogs", "--ranks", "2", "-l", lib)
    table = (tmp_path / "one.csv").read_text(encoding="utf-8")
    assert "harbour" in table and "street" not in table
    assert "did you mean our dogs" in moviola("export", out, "--collection", "our dog", "-l", lib).err
    twice = moviola("export", out, "--collection", "our dogs", "--moments", tmp_path / "one.csv", "-l", lib)
    assert twice.code == 2 and "give one of them" in twice.err
    assert moviola("remove", "street", "-l", lib).code == 0
    less = moviola("export", out, "--collection", "our dogs", "-l", lib)
    assert less.code == 3 and "street: no longer in the library" in less.err
    assert "street" not in out.read_text(encoding="utf-8")
    assert moviola("remove", "harbour", "-l", lib).code == 0
    assert "nothing else to export" in moviola("export", out, "--collection", "our dogs", "-l", lib).err


def test_files_may_swap_names_after_the_search(moviola: Run, films: Path, tmp_path: Path) -> None:
    """A moment is taken from its video, wherever that lies now, and not from another of its old name."""
    own, lib = tmp_path / "films", tmp_path / "lib"
    copytree(films, own)
    assert moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr").code == 3
    keep_answer(lib, KeptAnswer(Asked("a car"), [Moment("street", 1.0, 3.0, 0.5, 1)]))
    for old, new in (("street", "x"), ("harbour", "street"), ("x", "harbour")):
        (own / f"{old}.mp4").rename(own / f"{new}.mp4")
    moviola("index", own, "-l", lib, "--no-ocr")
    moviola("export", tmp_path / "m.csv", "-l", lib)
    assert read_moments(tmp_path / "m.csv")[1] == {"street": str(own / "harbour.mp4")}
    assert moviola("cut", "1", "-o", tmp_path / "c.mp4", "-l", lib, "--json").rows[0]["path"] == str(
        own / "harbour.mp4"
    )
    (own / "harbour.mp4").unlink()
    answer = moviola("cut", "1", "-o", tmp_path / "d.mp4", "-l", lib)
    assert answer.code == 1 and "harbour.mp4: the video's file is not there" in answer.err


def test_a_sheet_has_the_small_stills_of_videos_that_are_away(
    moviola: Run, films: Path, tmp_path: Path
) -> None:
    lib, table = tmp_path / "lib", tmp_path / "m.csv"
    copytree(films, tmp_path / "films")
    moviola("index", tmp_path / "films", "-l", lib, "--encoder", "demo", "--sentence-encoder", "none")
    (tmp_path / "films").rename(tmp_path / "away")
    keep_answer(lib, KeptAnswer(Asked("a car"), [Moment("street", 1.0, 3.0, 0.5, 1)]))
    answer = moviola("export", tmp_path / "m.png", "-l", lib)
    assert (answer.code, answer.err) == (0, "")
    # Of a video that the library does not know there is none.
    table.write_text("video_id,start,end,path\nstreet,1,3,gone.mp4\nelsewhere,1,3,gone.mp4\n")
    answer = moviola("export", tmp_path / "n.png", "-l", lib, "--moments", table)
    assert answer.code == 3 and answer.err.startswith("elsewhere: ") and answer.err.count("\n") == 1


@pytest.mark.parametrize(("ranks", "picked"), [("2", [2]), ("1,3-4", [1, 3, 4]), ("4, 1 - 2", [4, 1, 2])])
def test_ranks_are_picked_in_order(
    moviola: Run, library: Path, found: list[Moment], tmp_path: Path, ranks: str, picked: list[int]
) -> None:
    assert moviola("export", tmp_path / "m.csv", "--ranks", ranks, "-l", library).code == 0
    starts = [selection.moment.start for selection in read_moments(tmp_path / "m.csv")[0]]
    assert starts == [found[rank - 1].start for rank in picked]


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["m.csv", "--ranks", "9"], "there is no rank 9 among 4 moments"),
        (["m.csv", "--ranks", "3-1"], "write single ranks and ranges, such as 1,3-5"),
        (["m.csv", "--ranks", "1" * 5000], "write single ranks and ranges"),
        (["m.csv", "--ranks", "1;2"], "write single ranks and ranges"),
        (["m.avi"], "no format is known by .avi"),
        (["m", "--format", "aaf"], "format 'aaf': give one of csv, json"),
        (["m.csv", "--columns", "3"], "csv: no option columns; it has: none"),
        (["m.edl", "--rate", "fast"], "rate 'fast': give frames a second"),
        (["m.edl", "--drop-frame", "--rate", "25"], "drop-frame at 25 frames a second"),
        (["m.csv", "--moments", "gone.csv"], "gone.csv: no such file"),
    ],
)
def test_what_cannot_be_done_is_named(
    moviola: Run,
    library: Path,
    tmp_path: Path,
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = moviola("export", *words, "-l", library)
    assert answer.code == 1 and message in answer.err
    assert not list(tmp_path.iterdir())


def test_options_reach_the_format(moviola: Run, library: Path, found: list[Moment], tmp_path: Path) -> None:
    out = tmp_path / "m.edl"
    words = ["--rate", "29.97", "--drop-frame", "--start-timecode", "10:00:00:00", "--title", "Wet doors"]
    assert moviola("export", out, "-l", library, *words).code == 0
    assert out.read_text().startswith("TITLE: Wet doors\nFCM: DROP FRAME\n")
    assert "10:00:00;00" in out.read_text()
    film = tmp_path / "film.mp4"
    words = ["--ranks", "1", "--titles", "--size", "64x48"]
    assert moviola("export", film, "-l", library, *words).code == 0
    info = probe(film)
    assert (info.width, info.height) == (64, 48)
    assert info.duration == pytest.approx(2 + found[0].span.duration, abs=0.5)
    words = ["--ranks", "1", "--mode", "key-frames"]
    printed = json.loads(moviola("export", tmp_path / "clips", "-l", library, *words, "--json").out)
    assert printed["format"] == "clips" and Path(printed["files"][0]).is_file()


def test_a_table_that_was_edited(moviola: Run, library: Path, films: Path, tmp_path: Path) -> None:
    """Without the paths they are the library's."""
    table = tmp_path / "m.csv"
    table.write_text("video_id,start,end,title\nstreet,1,2,One\nharbour,0.5,3,Two\n")
    assert moviola("export", tmp_path / "m.otio", "--moments", table, "-l", library).code == 0
    text = (tmp_path / "m.otio").read_text()
    assert text.index('"One"') < text.index('"Two"') and (films / "harbour.mp4").as_uri() in text
    table.write_text("video_id,start,end\nnowhere,1,2\n")
    answer = moviola("export", tmp_path / "m.otio", "--moments", table, "-l", library)
    assert answer.code == 1 and "nowhere" in answer.err


def test_the_table_that_is_read_is_not_written_over(moviola: Run, library: Path, tmp_path: Path) -> None:
    table = tmp_path / "m.csv"
    table.write_text("video_id,start,end,mine\nstreet,1,2,x\n")
    answer = moviola("export", table, "--moments", table, "-l", library)
    assert answer.code == 1 and f"{table}: is read by the command" in answer.err
    assert table.read_text().endswith("street,1,2,x\n")


@pytest.mark.usefixtures("found")
def test_refused_files_are_reported(moviola: Run, library: Path, tmp_path: Path) -> None:
    table = tmp_path / "m.csv"
    table.write_text("video_id,start,end\nstreet,1,2\nstreet,3,4\n")
    taken = tmp_path / "clips" / "002_street_3.0-4.0.mp4"
    taken.mkdir(parents=True)
    answer = moviola("export", tmp_path / "clips", "--moments", table, "-l", library)
    assert answer.code == 3 and f"{taken.name}: " in answer.err
    assert answer.out == f"{tmp_path / 'clips'}: 2 moments, Clips (MP4); 1 refused\n"
    assert len([path for path in (tmp_path / "clips").iterdir() if path.is_file()]) == 1


@pytest.mark.usefixtures("found")
def test_a_clip_after_the_end_of_its_video_is_refused_alone(
    moviola: Run, library: Path, tmp_path: Path
) -> None:
    table = tmp_path / "m.csv"
    table.write_text("video_id,start,end\nstreet,1,2\nstreet,90,91\n")
    answer = moviola("export", tmp_path / "clips", "--moments", table, "-l", library)
    assert answer.code == 3 and "002_street_90.0-91.0.mp4: " in answer.err
    assert answer.out == f"{tmp_path / 'clips'}: 2 moments, Clips (MP4); 1 refused\n"
    assert len(list((tmp_path / "clips").iterdir())) == 1


def test_moments_end_with_their_video(moviola: Run, library: Path, tmp_path: Path) -> None:
    """The library knows its length; another file of that name, which the table names, is not its video."""
    table, out = tmp_path / "m.csv", tmp_path / "out.csv"
    table.write_text(f"video_id,start,end,path\nstreet,10,99,\nharbour,10,99,{tmp_path / 'harbour.mp4'}\n")
    assert moviola("export", out, "--moments", table, "-l", library).code == 0
    assert [one.moment.end for one in read_moments(out)[0]] == [12, 99]
    table.write_text("video_id,start,end\nstreet,1,2\nstreet,90,91\n")
    answer = moviola("export", out, "--moments", table, "-l", library)
    assert answer.code == 1 and "street: start 90: the video ends at 12 s; give" in answer.err


def test_search_writes_several(moviola: Run, library: Path, tmp_path: Path) -> None:
    names = ["found.csv", "found.edl", "found.png"]
    words = [word for name in names for word in ("--export", str(tmp_path / name))]
    assert (
        moviola("search", "anything", "--weak", "-l", library, "--export", tmp_path / "clips", *words).code
        == 0
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clips", *names]
    assert (tmp_path / "found.edl").read_text().startswith("TITLE: anything\n")
    answer = moviola("search", "anything", "-l", library, "--export", "found.avi")
    assert answer.code == 1 and "no format is known by .avi" in answer.err and not answer.out


def test_without_an_answer_there_is_nothing_to_export(moviola: Run, tmp_path: Path) -> None:
    answer = moviola("export", tmp_path / "m.csv", "-l", tmp_path / "lib")
    assert answer.code == 1 and "no library there, so no answer" in answer.err


def test_nothing_of_a_library_is_written_over(moviola: Run, films: Path, tmp_path: Path) -> None:
    """Videos that the answer does not name, subtitles beside them, by any name, and the library's files."""
    own, lib = tmp_path / "films", tmp_path / "lib"
    copytree(films, own)
    moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr")
    keep_answer(lib, KeptAnswer(Asked("a car"), [Moment("street", 1.0, 3.0, 0.5, 1)]))
    (own / "harbour.en.vtt").write_text("WEBVTT\n\n00:01.000 --> 00:02.000\nThe umbrella.\n")
    (tmp_path / "link.csv").symlink_to(own / "harbour.mp4")
    (tmp_path / "same.csv").hardlink_to(own / "harbour.mp4")
    before = {path: path.read_bytes() for path in (*own.iterdir(), lib / "catalogue.sqlite")}
    csv = ("--format", "csv")
    for words, message in (
        (("export", own / "harbour.mp4", *csv), "harbour.mp4: is a video of the library"),
        (("export", tmp_path / "link.csv"), "link.csv: is a video of the library"),
        (("export", tmp_path / "same.csv"), "same.csv: is a video of the library"),
        (("export", own / "harbour.srt", *csv), "harbour.srt: has subtitles of"),
        (("export", own / "harbour.en.vtt"), "harbour.en.vtt: has subtitles of"),
        (("export", lib / "catalogue.sqlite", *csv), "catalogue.sqlite: lies in the folder of the library"),
        (("export", lib / "new.csv"), "new.csv: lies in the folder of the library"),
        (("export", lib / "clips"), "clips: lies in the folder of the library"),
        (("cut", "1", "-o", own / "harbour.mp4"), "harbour.mp4: is a video of the library"),
        (("transcript", "street", "-o", own / "harbour.srt"), "harbour.srt: has subtitles of"),
        (("kept", "export", own / "harbour.mp4"), "harbour.mp4: is a video of the library"),
        (
            ("search", "umbrella", "--weak", "--export", own / "street.mp4"),
            "street.mp4: is a video of the library",
        ),
    ):
        answer = moviola(*words, "-l", lib)
        assert answer.code == 1 and message in answer.err.replace("\n", " "), (words, answer)
        assert "name another file" in answer.err or "name a place outside" in answer.err
    assert {path: path.read_bytes() for path in before} == before
    assert moviola("transcript", "harbour", "-o", own / "harbour.en.srt", "-l", lib).code == 0


def test_files_of_a_folder_are_looked_at_too(moviola: Run, films: Path, tmp_path: Path) -> None:
    own, lib = tmp_path / "films", tmp_path / "lib"
    copytree(films, own)
    (own / "street.mp4").rename(own / "001_harbour_1.0-3.0.mp4")
    (own / "harbour.srt").rename(own / "harbour.vtt")
    moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr")
    keep_answer(lib, KeptAnswer(Asked("a car"), [Moment("harbour", 1.0, 3.0, 0.5, 1)]))
    before = {path: path.read_bytes() for path in own.iterdir()}
    for format, message in (("clips", "is a video of the library"), ("vtt-videos", "has subtitles of")):
        answer = moviola("export", own, "--format", format, "-l", lib)
        assert answer.code == 1 and message in answer.err.replace("\n", " ")
    assert {path: path.read_bytes() for path in own.iterdir()} == before


def test_a_renamed_file_has_its_new_name_everywhere(moviola: Run, films: Path, tmp_path: Path) -> None:
    """In lists, copies, timelines, clips, chapters and sheets; where the new name is the id of another video,
    that one is not meant by what is shown.
    """
    own, lib = tmp_path / "films", tmp_path / "lib"
    copytree(films, own)
    assert moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr").code == 3
    keep_answer(lib, KeptAnswer(Asked("a car"), [Moment("street", 1.0, 3.0, 0.5, 1)]))
    (own / "street.mp4").rename(own / "rue.mp4")
    copyfile(own / "rue.mp4", own / "second.mp4")
    moviola("index", own, "-l", lib, "--no-ocr")
    listed = [row.split("\t")[0] for row in moviola("list", "-l", lib).out.splitlines()]
    assert "rue.mp4" in listed and "street" not in listed
    assert moviola("show", "rue.mp4", "-l", lib, "--json").rows[0]["video_id"] == "street"
    assert "exact\true.mp4\t" in moviola("duplicates", "-l", lib).out
    for file in ("m.edl", "m.otio", "m.fcpxml"):
        moviola("export", tmp_path / file, "-l", lib)
        text = (tmp_path / file).read_text()
        assert "rue" in text and "street" not in text.replace('"video_id": "street"', "")
    moviola("export", tmp_path / "clips", "-l", lib)
    moviola("export", tmp_path / "chapters", "--format", "vtt-videos", "-l", lib)
    assert [path.name for path in (tmp_path / "clips").iterdir()] == ["001_rue_1.0-3.0.mp4"]
    assert [path.name for path in (tmp_path / "chapters").iterdir()] == ["rue.vtt"]
    (own / "harbour.mp4").rename(own / "street.mp4")
    moviola("index", own, "-l", lib, "--no-ocr")
    shown = {row.split("\t")[0] for row in moviola("list", "-l", lib).out.splitlines()}
    ids = {moviola("show", name, "-l", lib, "--json").rows[0]["video_id"] for name in shown}
    assert ids >= {"street", "harbour"}
