"""The commands on a library, from the outside."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from distinct import film_like
from late_pictures import late_pictures
from made_films import Pictures, Sound, Words, make_film
from moviola.errors import MissingModel
from moviola.library.disk.models_in_use import DEMO_MODELS
from moviola.media import probe
from moviola.search import Library, Marked, MarkedMoment
from moviola.study.measures import read_run

Run = Callable[..., Any]


def test_index_reports_what_it_did_and_what_it_refused(moviola: Run, films: Path, tmp_path: Path) -> None:
    words = ("index", films, "--library", tmp_path / "lib", "--encoder", "demo", "--sentence-encoder", "none")
    first = moviola(*words)
    assert first.code == 3
    assert "2 added; 2 videos can be searched" in first.out
    assert "refused: broken: broken.mp4:" in first.err
    again = moviola(*words, "--json")
    report = json.loads(again.out)
    assert sorted(report["unchanged"]) == ["harbour", "street"]
    assert again.code == 3


def test_parts_of_a_file_are_listed(moviola: Run, tmp_path: Path) -> None:
    """`index` counts what is not used and names stray subtitles, `show` has a line for each part."""
    folder, library = tmp_path / "films", tmp_path / "lib"
    words = Words([(0.5, 1.0, "a walrus hums")], "subrip", {"language": "eng"})
    chapters = [(0.0, 1.0, "Dawn"), (1.0, 2.0, "Dusk")]
    make_film(folder / "film.mkv", Pictures(2.0), Sound(2.0), Sound(2.0), words, chapters=chapters)
    (folder / "stray.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nhello\n")
    out = moviola("index", folder, "--library", library, "--encoder", "demo", "--sentence-encoder", "none")
    assert "not used of files: other sound 1; `moviola show`" in out.err
    assert "subtitles: 1 file of no video by the name, not read (" in out.err and "stray.srt" in out.err
    shown = moviola("show", "film", "--library", library).out
    assert "\n     holds  stream 0: video, h264: searched\n            stream 1: audio, aac: played" in shown
    assert "\n            chapter 2, Dusk: searched, as titles of stretches\n" in shown
    held = json.loads(moviola("show", "film", "--library", library, "--json").out)["holds"]
    assert held[3] == "stream 3: subtitle, subrip, eng: read" and len(held) == 6


def test_a_folder_that_cannot_be_read_is_named_once(
    moviola: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "films" / "secret"
    secret.mkdir(parents=True)
    shutil.copy(films / "harbour.mp4", secret.parent)
    scandir = os.scandir

    def closed_scandir(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path) == secret:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed_scandir)
    words = ("--library", tmp_path / "lib", "--encoder", "demo", "--sentence-encoder", "none")
    answer = moviola("index", secret.parent, *words)
    assert f"refused: {secret}: cannot be read (Permission denied); skipped" in answer.err.splitlines()


def test_index_takes_the_best_encoder_and_says_so(moviola: Run, films: Path, tmp_path: Path) -> None:
    """Without --encoder a new library gets the best on this machine; one that is there keeps its own."""
    words = ("index", films / "harbour.mp4", "-l", tmp_path / "lib", "--sentence-encoder", "none")
    first = moviola(*words)
    assert first.code == 0
    assert [line for line in first.err.splitlines() if line.startswith("Encoder: conse-lite1.")]
    assert "`moviola models pull" in first.err
    assert 'encoder = "conse-lite1"' in (tmp_path / "lib" / "moviola.toml").read_text()
    again = moviola(*words)
    assert again.code == 0
    assert "Encoder:" not in again.err


def test_a_mistyped_folder_makes_no_library(moviola: Run, films: Path, tmp_path: Path) -> None:
    """One that kept the default encoder would refuse the encoder of the next try."""
    answer = moviola("index", films, tmp_path / "flims", "-l", tmp_path / "lib", "--encoder", "none")
    assert answer.code == 1 and "flims: no such file or folder" in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--speech", "nobody/heard-of-it"), "nobody/heard-of-it"),
        (("--ocr-reader", "quill"), "quill"),
        (("--speech-language", "klingonish"), "klingonish"),
    ],
)
def test_a_reader_that_is_not_there_makes_no_library(
    moviola: Run, films: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    answer = moviola("index", films, "-l", tmp_path / "lib", "--encoder", "none", *words)
    assert answer.code == 1 and message in answer.err
    assert not list(tmp_path.iterdir())


def test_search_prints_ranked_moments(moviola: Run, library: Path) -> None:
    answer = moviola("search", "the umbrella is gone", "--library", library)
    assert answer.code == 0
    rank, video, times, score, file, words, _ = answer.out.splitlines()[0].split("\t")
    assert (rank, video, file) == ("1", "harbour", "harbour.mp4")
    assert words == "The umbrella is gone." and "–" in times and 0 < float(score) <= 1


def test_files_of_one_name_are_distinguished(moviola: Run, films: Path, tmp_path: Path) -> None:
    for number, folder in enumerate(("one", "two")):
        (tmp_path / folder).mkdir()
        film_like(films / "harbour.mp4", tmp_path / folder / "x.mp4", number)
        shutil.copy(films / "harbour.srt", tmp_path / folder / "x.srt")
    lib = tmp_path / "lib"
    moviola(
        "index",
        tmp_path / "one",
        tmp_path / "two",
        "-l",
        lib,
        "--encoder",
        "none",
        "--sentence-encoder",
        "none",
    )
    listed = moviola("search", "umbrella", "-l", lib).out
    assert "one/x.mp4" in listed and "two/x.mp4" in listed
    paths = {moment["path"] for moment in moviola("search", "umbrella", "-l", lib, "--json").rows}
    assert paths == {str((tmp_path / folder / "x.mp4").resolve()) for folder in ("one", "two")}


def test_search_as_json_with_limits(moviola: Run, films: Path, library: Path) -> None:
    answer = moviola("search", "anything", "-l", library, "--top-k", 3, "--video", "street", "--json")
    moments = answer.rows
    assert 1 <= len(moments) <= 3
    assert {m["video_id"] for m in moments} == {"street"}
    assert {m["path"] for m in moments} == {str((films / "street.mp4").resolve())}
    assert [m["rank"] for m in moments] == list(range(1, len(moments) + 1))
    one_each = moviola("search", "anything", "-l", library, "--per-video", 1, "--json").rows
    assert len({m["video_id"] for m in one_each}) == len(one_each)
    assert moviola("search", "anything", "-l", library, "--min-score", 1.0, "--json").rows == []


def test_clips_and_sheet(moviola: Run, library: Path, tmp_path: Path) -> None:
    answer = moviola(
        "search", "umbrella", "-l", library, "--top-k", 2,
        "--export", tmp_path / "clips", "--export", tmp_path / "sheet.png", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    moments = answer.rows
    clips = sorted((tmp_path / "clips").iterdir())
    assert len(clips) == len(moments)
    for clip, moment in zip(clips, moments, strict=True):
        assert probe(clip).duration == pytest.approx(moment["end"] - moment["start"], abs=0.3)
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.width > 300


@pytest.mark.parametrize(
    "content",
    [
        "anything\nthe umbrella\n",
        '[{"query_id": 1, "query": "anything"}, {"query_id": 2, "query": "the umbrella"}]',
        '{"query_id": 1, "query": "anything"}\n{"query_id": 2, "query": "the umbrella"}\n',
    ],
)
def test_a_file_of_queries_becomes_a_run(moviola: Run, library: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "queries").write_text(content)
    answer = moviola("answer", tmp_path / "queries", "--out", tmp_path / "run.json", "-l", library)
    assert answer.code == 0, answer.err
    run = json.loads((tmp_path / "run.json").read_text())
    assert list(run) == ["1", "2"]
    assert run["2"][0]["video_id"] == "harbour"
    assert set(run["2"][0]) == {"video_id", "start", "end", "score"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no query"),
        ("[{]", "not valid JSON"),
        ('[{"query_id": 1}]', "line 1: the field 'query' is missing"),
        ('{"query_id": 1, "query": "a"}\n{"query": "b"}', "line 2: the field 'query_id' is missing"),
        ('[{"query_id": 1, "query": "a"}, {"query_id": 1, "query": "b"}]', "stands for two texts"),
        ("[1]", "line 1: an object is expected"),
    ],
)
def test_bad_query_files_are_named(
    moviola: Run, library: Path, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "queries.json").write_text(content)
    answer = moviola("answer", tmp_path / "queries.json", "--out", tmp_path / "run.json", "-l", library)
    assert answer.code == 1
    assert "queries.json" in answer.err and message in answer.err
    assert not (tmp_path / "run.json").exists()


def test_queries_are_answered_in_a_list_of_videos_without_torch(
    torchless: Run, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "queries").write_text("red\nblue")
    (tmp_path / "splits.json").write_text('{"test": ["harbour"]}')
    run, split = tmp_path / "run.json", f"{tmp_path / 'splits.json'}:test"
    answer = torchless("answer", tmp_path / "queries", "--out", run, "-l", library, "--videos", split)
    assert answer.code == 0, answer.err
    found = json.loads(run.read_text())
    assert {moment["video_id"] for own in found.values() for moment in own} == {"harbour"}


def test_query_files_that_are_no_text_are_named(moviola: Run, library: Path, tmp_path: Path) -> None:
    (tmp_path / "queries").write_bytes("die Tür\n".encode("latin-1"))
    answer = moviola("answer", tmp_path / "queries", "--out", tmp_path / "r.json", "-l", library)
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert "queries: line 1: not UTF-8 text; save the file as UTF-8" in answer.err


def taught(library: Path, tmp_path: Path) -> Path:
    """A copy of a library, with two concepts, which no query may name together."""
    copy = Path(shutil.copytree(library, tmp_path / "taught"))
    with Library(copy) as opened:
        for name in ("a", "b"):
            opened.concepts.teach(name, Marked(None, (MarkedMoment("street", 0, 2),)))
    return copy


def test_queries_that_cannot_be_answered_are_named_and_the_others_answered(
    moviola: Run, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "queries").write_text("anything\n@a @b\n@b @a in the rain\nthe umbrella\n")
    library = taught(library, tmp_path)
    words = ("answer", tmp_path / "queries", "--out", tmp_path / "run.json", "-l", library)
    answer = moviola(*words)
    assert answer.code == 3
    said = " ".join(answer.err.split())
    assert "query 2 is not answered: '@a @b': name one concept at a time" in said
    assert "query 3 is not answered: '@b @a in the rain'" in said
    run = read_run(tmp_path / "run.json")

    (tmp_path / "others").write_text("anything\nthe umbrella\n")
    assert moviola("answer", *words[2:], tmp_path / "others").code == 0
    others = read_run(tmp_path / "run.json")
    assert [run.rows()[name] for name in ("1", "2", "3", "4")] == [
        others.rows()["1"], [], [], others.rows()["2"],
    ]  # fmt: skip


def test_a_file_of_which_no_query_can_be_answered_gives_no_run(
    moviola: Run, library: Path, tmp_path: Path
) -> None:
    (tmp_path / "queries").write_text("@a @b\n@b @a\n")
    library = taught(library, tmp_path)
    answer = moviola("answer", tmp_path / "queries", "--out", tmp_path / "run.json", "-l", library)
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert "'@a @b': name one concept at a time" in answer.err
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".trec"])
def test_a_run_is_written_as_its_suffix_says(
    moviola: Run, library: Path, tmp_path: Path, suffix: str
) -> None:
    (tmp_path / "queries").write_text("anything\nthe umbrella\n")
    out = tmp_path / "new folder" / f"run{suffix}"
    answer = moviola("answer", tmp_path / "queries", "--out", out, "-l", library, "--json")
    run = read_run(out)
    assert run.query_ids == ("1", "2")
    assert json.loads(answer.out) == {
        "out": str(out),
        "queries": 2,
        "moments": len(run),
        "measures": {},
        "refused": {},
        "unknown_videos": [],
        "moments_past_end": 0,
    }
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("a file/run.json", "cannot be written"),
        ("a folder", "suffix ''"),
        ("a folder.json", "it is no regular file"),
        ("run.txt.gz", "suffix '.gz'"),
        ("x" * 300 + ".json", "cannot be written"),
    ],
)
def test_a_run_that_cannot_be_written_is_refused_before_searching(
    moviola: Run, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, message: str
) -> None:
    from moviola.search import Library

    monkeypatch.setattr(Library, "search_many", lambda *_, **__: pytest.fail("searched"))
    (tmp_path / "a file").write_text("")
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder.json").mkdir()
    (tmp_path / "queries").write_text("anything\n")
    out = tmp_path / place
    answer = moviola("answer", tmp_path / "queries", "--out", out, "-l", library)
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert str(out) in answer.err and message in answer.err


@pytest.mark.parametrize("rate", ["inf", "nan", "0", "-1", "1e300"])
def test_impossible_frame_rates_are_refused(moviola: Run, films: Path, tmp_path: Path, rate: str) -> None:
    words = ("index", films, "-l", tmp_path / "lib", "--encoder", "demo", "--frame-rate", rate)
    answer = moviola(*words)
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert f"error: frame_rate {float(rate)}: must be above 0" in answer.err
    assert not (tmp_path / "lib").exists()


def test_what_the_system_refuses_is_one_line(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from moviola.library import Indexer

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "lib/features/frames-00000.f16")

    monkeypatch.setattr(Indexer, "remove", full)
    answer = moviola("remove", "harbour", "-l", library)
    assert answer.code == 1
    assert answer.err.splitlines() == [
        "error: lib/features/frames-00000.f16: No space left on device; free some space, "
        "then run the command again"
    ]


@pytest.mark.parametrize("command", ["search", "list", "show", "remove", "verify", "doctor"])
def test_a_damaged_library_is_one_line(moviola: Run, library: Path, tmp_path: Path, command: str) -> None:
    lib = shutil.copytree(library, tmp_path / "lib")
    for path in lib.glob("catalogue.sqlite*"):
        path.unlink()
    (lib / "catalogue.sqlite").write_bytes(b"")
    words = {"search": ["x"], "show": ["harbour"], "remove": ["harbour"]}.get(command, [])
    answer = moviola(command, *words, "-l", lib)
    output = answer.out if command == "doctor" else answer.err
    assert answer.code == (3 if command == "doctor" else 1)
    # A table may break a long path anywhere.
    assert "catalogue.sqlite:damagedcatalogue" in "".join(output.split())


def test_list_and_show(moviola: Run, library: Path) -> None:
    listed = moviola("list", "-l", library, "--json").rows
    assert [(v["video_id"], v["state"]) for v in listed] == [
        ("broken", "refused"), ("harbour", "ready"), ("street", "ready"),
    ]  # fmt: skip
    assert "refused: " in moviola("list", "-l", library).out
    shown = json.loads(moviola("show", "harbour", "-l", library, "--json").out)
    assert (shown["width"], shown["height"], shown["cues"], shown["frames"]) == (96, 72, 1, 12)
    words = moviola("show", "harbour", "-l", library).out
    assert "0:00:12.0" in words and "copies  none" in words and "away  no\n" in words
    assert "None" not in words and "[]" not in words


def test_unknown_names_get_one_line_and_code_1(moviola: Run, library: Path, tmp_path: Path) -> None:
    for words in (("show", "harbor"), ("remove", "harbor"), ("search", "x", "--video", "harbor")):
        answer = moviola(*words, "-l", library)
        assert answer.code == 1
        assert answer.err.strip().splitlines() == [
            "error: harbor: no such video in this library; did you mean harbour?"
        ]
    assert "no library there" in moviola("search", "x", "-l", tmp_path / "none").err


def test_a_healthy_machine_is_shown_in_a_table(moviola: Run, library: Path) -> None:
    lines = moviola("doctor", "-l", library).out.splitlines()
    assert lines[0].split()[:2] == ["ok", "moviola"]


def test_wrong_usage_is_code_2(moviola: Run, library: Path) -> None:
    for words in (
        ("search",),
        ("search", "x", "--top-k", 0),
        ("index",),
        ("library", "use"),
        ("answer", "q", "--out", "r", "--stage1", "s"),
        ("answer", "q", "--out", "r", "--model", "m", "--top-k", "3"),
        ("search", "--nosuch"),
    ):
        assert moviola(*words, "-l", library).code == 2


def test_remove_verify_and_repair(moviola: Run, films: Path, tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    moviola("index", films / "harbour.mp4", films / "street.mp4", "-l", lib, "--encoder", "demo")
    sound = moviola("verify", "-l", lib)
    assert (sound.code, sound.out, sound.err.strip()) == (0, "", f"{lib}: sound")
    assert moviola("remove", "street", "-l", lib).code == 0
    unconfirmed = moviola("compact", "-l", lib)
    assert (
        unconfirmed.code == 1
        and "1 removed video could not be restored afterwards (street)" in unconfirmed.err
    )
    assert "freed" in moviola("compact", "--yes", "-l", lib).out
    (shard,) = (lib / "features").glob("frames-*.f16")
    shard.write_bytes(b"\0" * shard.stat().st_size)
    broken = moviola("verify", "-l", lib, "--json")
    assert broken.code == 3
    assert broken.rows[0]["video_id"] == "harbour"
    planned = moviola("repair", "--dry-run", "-l", lib)
    assert planned.code == 0 and "takes the video out" in planned.out and "would be repaired" in planned.err
    assert "harbour" in moviola("list", "-l", lib).out
    repaired = moviola("repair", "-l", lib)
    assert repaired.code == 0 and "harbour\t" in repaired.out
    assert moviola("verify", "-l", lib).code == 0
    assert moviola("list", "-l", lib, "--json").out == ""


def test_doctor_looks_at_machine_and_library(moviola: Run, library: Path) -> None:
    answer = moviola("doctor", "-l", library, "--json")
    findings = {f["what"]: f for f in answer.rows}
    assert findings["encoder"]["ok"]
    assert "2 videos" in findings["library"]["detail"]
    assert "1 refused" in findings["videos"]["detail"]


def test_info_says_what_a_library_was_built_with(moviola: Run, library: Path) -> None:
    about = json.loads(moviola("library", "info", "-l", library, "--json").out)
    assert (about["encoder"], about["videos"], about["cues"]["subtitle"]) == ("demo", 2, 1)
    assert about["likeness"] == "by the features that texts are compared with"
    assert "likeness  by the features that texts" in moviola("library", "info", "-l", library).out


def _missing(name: str, **_: object) -> None:
    raise MissingModel(f"{name}: not on this machine")


def test_info_says_by_which_features_pictures_are_compared(
    moviola: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (
        "index",
        films / "street.mp4",
        "--encoder",
        "conse-lite1",
        "--sentence-encoder",
        "none",
        "--no-ocr",
    )
    moviola(*words, "-l", tmp_path / "new")
    assert "by features of pictures, 320 numbers" in moviola("library", "info", "-l", tmp_path / "new").out
    with monkeypatch.context() as before:
        before.setattr("moviola.encoders.picture_dim", lambda _: 0)
        moviola(*words, "-l", tmp_path / "old")
    assert (
        "library use --encoder conse-lite1` makes them"
        in moviola("library", "info", "-l", tmp_path / "old").out
    )
    # Where the encoder is not on the machine, stored details can still be printed.
    monkeypatch.setattr("moviola.encoders.load_encoder", _missing)
    assert "likeness  by the features that texts" in moviola("library", "info", "-l", tmp_path / "old").out


def test_index_takes_another_type_and_measures_it(
    moviola: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.index.TrainedIndex.LEAST", 16)
    words = (
        "-l",
        tmp_path / "lib",
        "--encoder",
        "demo",
        "--sentence-encoder",
        "none",
        "--segment-seconds",
        "1",
    )
    assert moviola("index", films / "harbour.mp4", films / "street.mp4", *words).code == 0
    on = ("-l", tmp_path / "lib")
    assert moviola("library", "use", "--index", "reranked", *on).code == 0
    assert 'index = "reranked"' in (tmp_path / "lib" / "moviola.toml").read_text()
    tuned = moviola("library", "tune", "--json", *on)
    assert tuned.code == 0 and "text" in tuned.rows[0]["recall"]
    refused = moviola("library", "use", "--index", "nosuch", *on)
    assert refused.code == 1
    assert "'nosuch': unknown; choose auto, flat, ivf, ivfpq, reranked" in refused.err
    assert moviola("library", "tune", "-l", tmp_path / "nowhere").code == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_transcript_counts_from_the_beginning_of_the_file(
    moviola: Run, films: Path, tmp_path: Path
) -> None:
    """As players do, where the sound begins before the pictures."""
    own, lib, out = tmp_path / "films", tmp_path / "lib", tmp_path / "out.srt"
    own.mkdir()
    late_pictures(films / "harbour.mp4", own / "late.mp4", 2)
    (own / "late.srt").write_text("1\n00:00:06,000 --> 00:00:08,000\nA line\n")
    assert moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr").code == 0
    assert moviola("transcript", "late", "-l", lib).out.startswith("0:00:04.0 – 0:00:06.0")
    assert moviola("transcript", "late", "-l", lib, "--out", out).code == 0
    assert "00:00:06,000 --> 00:00:08,000" in out.read_text()
    shutil.copy(own / "late.mp4", own / "zz.mp4")
    assert moviola("index", own, "-l", lib, "--no-ocr").code == 0
    (own / "late.mp4").unlink()  # a copy of it is there
    assert moviola("transcript", "late", "-l", lib, "--out", out).code == 0
    assert "00:00:06,000 --> 00:00:08,000" in out.read_text()


def test_a_transcript_of_nothing_is_not_written(moviola: Run, library: Path, tmp_path: Path) -> None:
    words = ("transcript", "harbour", "--kind", "text", "-l", library)
    printed = moviola(*words)
    assert (printed.code, printed.out) == (0, "") and "harbour: no cues of the kind 'text'" in printed.err
    refused = moviola(*words, "--out", out := tmp_path / "harbour.srt")
    assert refused.code == 1 and f"{out} was not written" in refused.err and not out.exists()


def test_use_says_what_the_training_of_a_model_came_to(moviola: Run, library: Path, tmp_path: Path) -> None:
    lib, refiner = tmp_path / "lib", tmp_path / "reel"
    shutil.copytree(library, lib)
    shutil.copytree(DEMO_MODELS["refiner"], refiner)
    on = ("-l", lib, "--stage1", "demo", "--refiner")
    used = moviola("library", "use", *on, refiner)
    assert used.code == 0 and "trained on" not in used.err
    val = json.loads((refiner / "config.json").read_text())["extra"]["val"]["nDCG@20,IoU>=0.5"]
    assert f": 1,600 steps, nDCG@20,IoU>=0.5 {val:.4f} on val" in used.err
    assert "`moviola library use --refiner none` goes back" in used.err
    about = json.loads((refiner / "config.json").read_text())
    about["extra"] |= {"stage1": "mine", "stage1_revision": "a1b2"}
    (refiner / "config.json").write_text(json.dumps(about))
    used = moviola("library", "use", *on, refiner)
    assert used.code == 0, used.err
    assert "trained on the stage 1 mine (revision a1b2), but the one in use is revision " in used.err


def test_libraries_used_lately_are_offered_where_none_is(
    moviola: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last used first, those that are gone left out; nothing is remembered where the user's files do not
    count.
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [tmp_path / name for name in ("one", "two words", "gone")]
    for folder in folders:
        Library(folder, encoder="none", sentence_encoder="none").close()
    moviola("list", "-l", folders[0])
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("MOVIOLA_CONFIG", str(tmp_path / "config.toml"))
    (tmp_path / "config.toml").touch()
    moviola("list", "-l", folders[0])
    for folder in folders:
        moviola("list", "-l", folder)
    shutil.rmtree(folders[2])
    said = moviola("search", "a dog", "-l", tmp_path / "none").err
    assert f"used lately, to be given as --library: '{folders[1]}', {folders[0]};" in said
    (tmp_path / "cache").chmod(0o500)  # what cannot be remembered stops nothing
    assert moviola("list", "-l", folders[0]).code == 0


def test_two_tracks_of_a_language_are_printed_and_written_apart(
    moviola: Run, films: Path, tmp_path: Path
) -> None:
    """Two translations, and a commentary, were one text line by line; a copy of one is there once."""
    own, lib, out = tmp_path / "films", tmp_path / "lib", tmp_path / "out.srt"
    own.mkdir()
    shutil.copy(films / "harbour.mp4", own / "film.mp4")
    tracks = {
        "de": ["Der Hund bellt laut.", "Ja.", "Wir fahren ans Meer."],
        "deu": ["Der Hund bellt laut.", "Ja.", "Wir fahren ans Meer."],
        "German": ["Da bellt ein Hund.", "Ja.", "Jetzt geht es an die See."],
        "de-AT": ["Der Hund bellt laut.", "Ja.", "Wir fahren zum See."],
        "Director's Commentary.de": ["Hier haben wir lange gedreht.", "Ja.", "Das Wetter war gut."],
    }
    for name, lines in tracks.items():
        cues = (
            f"{n}\n00:00:0{n},{100 if name == 'deu' else 0:03} --> 00:00:0{n},900\n{line}\n\n"
            for n, line in enumerate(lines)
        )
        (own / f"film.{name}.srt").write_text("".join(cues), encoding="utf-8")
    assert moviola("index", own, "-l", lib, "--encoder", "none", "--no-ocr").code == 0

    def printed(*more: str) -> dict[str, list[str]]:
        by_title: dict[str, list[str]] = {}
        own = by_title[""] = []
        for line in moviola("transcript", "film", "-l", lib, *more).out.splitlines():
            if line.endswith(":"):
                own = by_title[line] = []
            else:
                own.append(line.partition("  ")[2])
        return {title: lines for title, lines in by_title.items() if lines}

    assert printed() == {
        "subtitle, German:": tracks["German"],
        "subtitle, German, 2:": tracks["de"],
        "subtitle, German, commentary:": tracks["Director's Commentary.de"],
        "subtitle, German (de-AT):": tracks["de-AT"],
    }
    assert printed("--track", "2") == {"": tracks["de"]}
    assert printed("--language", "de-AT", "--track", "") == {
        "subtitle, German:": tracks["German"],
        "subtitle, German (de-AT):": tracks["de-AT"],
    }
    written = moviola("transcript", "film", "-l", lib, "--language", "de-AT", "--out", out)
    assert written.code == 0
    assert out.read_text(encoding="utf-8").count("-->") == 3
    written = moviola("transcript", "film", "-l", lib, "--language", "German", "--out", out)
    assert written.code == 0 and "without the lines of 2, commentary" in written.err
    assert out.read_text(encoding="utf-8").count("-->") == 3
    assert moviola("transcript", "film", "-l", lib, "--out", out).code == 1  # of two countries
    assert moviola("transcript", "film", "-l", lib, "--track", "Commentary", "--out", out).code == 0
    assert "gedreht" in out.read_text(encoding="utf-8") and "bellt" not in out.read_text(encoding="utf-8")
    none = moviola("transcript", "film", "-l", lib, "--track", "3", "--out", out)
    assert none.code == 1 and "2" in none.err and "commentary" in none.err
