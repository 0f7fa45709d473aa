"""The commands on a library, from the outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from moviola.media import probe, write_video

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    generator = np.random.default_rng(0)
    for name in ("harbour", "street"):
        frames = [generator.integers(0, 255, (72, 96, 3), np.uint8) for _ in range(60)]
        write_video(folder / f"{name}.mp4", frames, rate=5)
    (folder / "harbour.srt").write_text("1\n00:00:02,000 --> 00:00:05,000\nThe umbrella is gone.\n")
    (folder / "broken.mp4").write_bytes(b"nothing of a film")
    return folder


@pytest.fixture(scope="module")
def library(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from moviola.search import Library

    folder = tmp_path_factory.mktemp("library") / "lib"
    with Library(folder, encoder="demo", sentence_encoder="none") as lib:
        lib.index(films)
    return folder


def test_index_tells_what_it_did_and_what_it_refused(moviola: Run, films: Path, tmp_path: Path) -> None:
    words = ("index", films, "--library", tmp_path / "lib", "--encoder", "demo", "--sentences", "none")
    first = moviola(*words)
    assert first.code == 3
    assert "2 added; 2 videos can be searched" in first.out
    assert "refused: broken: broken.mp4:" in first.err
    again = moviola(*words, "--json")
    report = json.loads(again.out)
    assert sorted(report["unchanged"]) == ["harbour", "street"]
    assert again.code == 3


def test_search_prints_ranked_moments(moviola: Run, library: Path) -> None:
    answer = moviola("search", "the umbrella is gone", "--library", library)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].split() == ["rank", "video", "start", "–", "end", "score", "said"]
    assert lines[1].split()[:2] == ["1", "harbour"]
    assert "The umbrella is gone." in lines[1]


def test_search_as_json_with_limits(moviola: Run, library: Path) -> None:
    answer = moviola("search", "anything", "-l", library, "--top", 3, "--video", "street", "--json")
    moments = json.loads(answer.out)
    assert 1 <= len(moments) <= 3
    assert {m["video_id"] for m in moments} == {"street"}
    assert [m["rank"] for m in moments] == list(range(1, len(moments) + 1))
    one_each = json.loads(moviola("search", "anything", "-l", library, "--per-video", 1, "--json").out)
    assert len({m["video_id"] for m in one_each}) == len(one_each)
    assert json.loads(moviola("search", "anything", "-l", library, "--min-score", 1.0, "--json").out) == []


def test_clips_and_sheet(moviola: Run, library: Path, tmp_path: Path) -> None:
    answer = moviola(
        "search", "umbrella", "-l", library, "--top", 2,
        "--clips", tmp_path / "clips", "--sheet", tmp_path / "sheet.png", "--json",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    moments = json.loads(answer.out)
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
    answer = moviola(
        "search", "--queries", tmp_path / "queries", "--run", tmp_path / "run.json", "-l", library
    )
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
    words = ("--queries", tmp_path / "queries.json", "--run", tmp_path / "run.json", "-l", library)
    answer = moviola("search", *words)
    assert answer.code == 1
    assert "queries.json" in answer.err and message in answer.err
    assert not (tmp_path / "run.json").exists()


def test_list_and_show(moviola: Run, library: Path) -> None:
    listed = json.loads(moviola("list", "-l", library, "--json").out)
    assert [(v["video_id"], v["state"]) for v in listed] == [
        ("broken", "refused"), ("harbour", "ready"), ("street", "ready"),
    ]  # fmt: skip
    assert "refused: " in moviola("list", "-l", library).out
    shown = json.loads(moviola("show", "harbour", "-l", library, "--json").out)
    assert (shown["width"], shown["height"], shown["cues"], shown["frames"]) == (96, 72, 1, 12)
    assert "0:00:12.0" in moviola("show", "harbour", "-l", library).out


def test_unknown_names_get_one_line_and_code_1(moviola: Run, library: Path, tmp_path: Path) -> None:
    for words in (("show", "harbor"), ("remove", "harbor"), ("search", "x", "--video", "harbor")):
        answer = moviola(*words, "-l", library)
        assert answer.code == 1
        assert answer.err.strip().splitlines() == [
            "error: harbor: no such video in this library; did you mean harbour?"
        ]
    assert "no library there" in moviola("search", "x", "-l", tmp_path / "none").err


def test_wrong_usage_is_code_2(moviola: Run, library: Path) -> None:
    for words in (
        ("search",),
        ("search", "x", "--top", 0),
        ("search", "x", "--run", "r"),
        ("search", "--nosuch"),
    ):
        assert moviola(*words, "-l", library).code == 2


def test_remove_verify_and_repair(moviola: Run, films: Path, tmp_path: Path) -> None:
    lib = tmp_path / "lib"
    moviola("index", films / "harbour.mp4", films / "street.mp4", "-l", lib, "--encoder", "demo")
    assert moviola("verify", "-l", lib).out.strip() == f"{lib}: sound"
    assert moviola("remove", "street", "-l", lib).code == 0
    assert "given back" in moviola("verify", "--compact", "-l", lib).out
    (shard,) = (lib / "features").glob("frames-*.f16")
    shard.write_bytes(b"\0" * shard.stat().st_size)
    broken = moviola("verify", "-l", lib, "--json")
    assert broken.code == 3
    assert json.loads(broken.out)["problems"][0]["video_id"] == "harbour"
    assert moviola("verify", "--repair", "-l", lib).code == 0
    assert moviola("list", "-l", lib, "--json").out.strip() == "[]"


def test_doctor_looks_at_machine_and_library(moviola: Run, library: Path) -> None:
    answer = moviola("doctor", "-l", library, "--json")
    findings = {f["what"]: f for f in json.loads(answer.out)}
    assert findings["demo encoder"]["ok"]
    assert "2 videos" in findings["library"]["detail"]
    assert "1 refused" in findings["videos"]["detail"]


def test_every_command_has_help_and_an_example() -> None:
    import typer.main

    from moviola.cli import app

    def commands(command: Any, name: str) -> list[tuple[str, Any]]:
        below = getattr(command, "commands", {})
        return [pair for n, c in below.items() for pair in commands(c, f"{name} {n}")] or [(name, command)]

    for name, command in commands(typer.main.get_command(app), "moviola"):
        assert command.help and "Example" in command.help, f"{name}: no example in its help"
        assert any("--json" in p.opts for p in command.params), f"{name}: no --json"
