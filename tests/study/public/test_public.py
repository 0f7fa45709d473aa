"""A public benchmark from end to end, on three small films and files of the published forms."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.errors import DataError, InvalidValue, MediaError, NotFound
from moviola.media import write_video
from moviola.search import Library
from moviola.study.datasets.readers import QUESTIONS, read_questions
from moviola.study.measures import read_run
from moviola.study.public import BENCHMARKS, run_public

app = all_commands()

SECONDS = 24
ROOM = 6
"""Seconds of a colour."""
COLOURS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220), "yellow": (230, 220, 30)}
FILMS = [list(COLOURS)[i:] + list(COLOURS)[:i] for i in range(3)]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three films in two folders, each a room of another colour every six seconds, and their library."""
    folder = tmp_path_factory.mktemp("public")
    for number, colours in enumerate(FILMS):
        path = folder / "films" / ("even" if number % 2 == 0 else "odd") / f"film{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        frames = [np.full((64, 64, 3), COLOURS[name], np.uint8) for name in colours for _ in range(5 * ROOM)]
        write_video(path, frames, rate=5)
    with Library(folder / "library", encoder="demo") as library:
        library.index(folder / "films")
    return folder


def span(film: int, colour: str) -> list[float]:
    start = float(ROOM * FILMS[film].index(colour))
    return [start, start + ROOM]


def rows(kind: str) -> Any:
    """A small file of each form: red and blue are the questions about every film."""
    questions = [(film, colour) for film in range(3) for colour in ("red", "blue")]
    if kind == "extreme_when_bench":
        return [
            {"qid": f"film{f}_{c}", "video_id": f"film{f}", "source_corpus": "MLVU",
             "question": f"When is it {c}?", "correct_interval": span(f, c), "duration_s": ROOM,
             "video_duration_s": SECONDS}
            for f, c in questions
        ]  # fmt: skip
    if kind == "moment_seeker":
        return [
            {"qry_text": f"a {c} room", "qry_img_path": "", "qry_video_path": "", "task": "colour",
             "src_video_path": f"./videos/film{f}.mp4", "answering_time_interval": [span(f, c)]}
            for f, c in questions
        ]  # fmt: skip
    if kind == "timelens":
        return {
            f"film{f}": {
                "duration": SECONDS,
                "spans": [span(f, c) for c in COLOURS],
                "queries": list(COLOURS),
            }
            for f in range(3)
        }
    if kind in ("qv_m2", "soccer_gmr"):
        several = [[span(f, "red"), span(f, "blue")] for f in range(3)]
        return [
            {"qid": 10 * f + place, "query": query, "vid": f"film{f}", "duration": SECONDS,
             "relevant_windows": windows}
            for f in range(3)
            for place, (query, windows) in enumerate(
                [("a red room", [span(f, "red")]), ("red or blue", several[f]), ("a penguin", [])]
            )
            if windows or kind == "soccer_gmr"
        ]  # fmt: skip
    return [
        {"video": f"film{f}", "time": span(f, c), "desc_id": number, "duration": SECONDS, "cog_desc": c,
         "fig_desc": f"a {c} room", "fig_desc_score": 0.4}
        for number, (f, c) in enumerate(questions)
    ]  # fmt: skip


def written(folder: Path, kind: str) -> Path:
    content = rows(kind)
    if kind in ("moment_seeker", "timelens"):
        path = folder / f"{kind}.json"
        path.write_text(json.dumps(content))
    else:
        path = folder / f"{kind}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return path


def test_every_benchmark_that_is_read_is_answered() -> None:
    assert set(BENCHMARKS) == set(QUESTIONS)


@pytest.mark.parametrize("kind", sorted(BENCHMARKS))
def test_indexed_answered_and_measured(films: Path, tmp_path: Path, kind: str) -> None:
    """What a library answers is measured; the answers, written and measured again, give the same."""
    annotations = written(tmp_path, kind)
    out = tmp_path / "answers.json"
    report = run_public(kind, annotations, films / "films", library=films / "library", out=out)
    assert report.measures and not report.missing and not report.refused
    assert report.videos == 3 and report.encoder == "demo"
    absent = {name for name, value in report.measures.items() if value is None}
    groups = {"mAP@3+tgt", "mR@3 (code)", "mR@3 (paper)", "mIoU@3"}  # no question has three answers
    assert absent == (groups if kind == "qv_m2" else set())
    assert all(np.isfinite(value) for value in report.measures.values() if value is not None)
    answers = json.loads(out.read_text())
    assert len(answers) == report.questions
    depth, named = BENCHMARKS[kind].depth, not BENCHMARKS[kind].corpus
    for moments in answers.values():
        assert len(moments) <= depth
        assert not named or len({m["video_id"] for m in moments}) <= 1
        assert {m["video_id"] for m in moments} <= {"film0", "film1", "film2"}
    again = run_public(kind, annotations, run=out).measures
    assert {name: again[name] for name in again} == pytest.approx(
        {name: value for name, value in report.measures.items() if name in again}
    )
    # A verdict is no part of a run, nor is what goes by it; everything else is.
    by_verdict = {"verdict", "0.3/R@1", "0.5/R@1", "0.7/R@1"}
    assert set(report.measures) - set(again) == (by_verdict if kind.endswith("_fig") else set())


def test_the_usual_device_answers(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVIOLA_DEVICE", "abacus")
    words = ["--annotations", written(tmp_path, "qv_m2"), "--videos", films / "films"]
    done = CliRunner().invoke(app, ["public", "qv_m2", *map(str, words), "--library", str(films / "library")])
    assert done.exit_code == 1 and "device 'abacus': unknown" in str(done.exception)


def test_the_right_answers_get_full_marks(films: Path, tmp_path: Path) -> None:
    annotations = written(tmp_path, "extreme_when_bench")
    truth = {
        row["qid"]: [{"video_id": row["video_id"], "start": start, "end": end, "score": 1}]
        for row in rows("extreme_when_bench")
        for start, end in [row["correct_interval"]]
    }
    (tmp_path / "run.json").write_text(json.dumps(truth))
    found = run_public("extreme_when_bench", annotations, run=tmp_path / "run.json")
    assert found.measures == {"mIoU": 1, "R@0.3": 1, "R@0.5": 1, "R@0.7": 1, "no span": 0}
    assert found.groups == {"MLVU": 6}
    # A moment of another video does not count.
    moved = {name: [dict(m, video_id="film9") for m in moments] for name, moments in truth.items()}
    (tmp_path / "run.json").write_text(json.dumps(moved))
    assert run_public("extreme_when_bench", annotations, run=tmp_path / "run.json").measures["no span"] == 1
    assert found.unanswered == ()
    # Questions that the run lacks are named, as those about videos that are not there.
    (tmp_path / "run.json").write_text(json.dumps({"another": truth.popitem()[1]}))
    words = ["--annotations", annotations, "--run", tmp_path / "run.json"]
    result = CliRunner().invoke(app, ["public", "extreme_when_bench", *map(str, words)])
    assert "6 of 6 questions missing from" in result.stderr
    assert "they count as not answered: film0_red, film0_blue" in result.stderr


def test_videos_that_the_benchmark_does_not_have_are_named(tmp_path: Path) -> None:
    annotations, run = written(tmp_path, "qv_m2"), tmp_path / "run.json"
    moments = {
        str(row["qid"]): [{"video_id": f"{row['vid']}.mp4", "start": 0, "end": 1, "score": 1}]
        for row in rows("qv_m2")
    }
    run.write_text(json.dumps(moments))
    words = ["public", "qv_m2", "--annotations", str(annotations), "--run", str(run)]
    done = CliRunner().invoke(app, words)
    assert f"3 videos of {run} not among the 3 videos of QV-M2" in done.stderr
    assert "film0.mp4, film1.mp4, film2.mp4" in done.stderr


def test_a_mean_over_no_question_is_not_printed_as_0(films: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"0": [{"video_id": "film0", "start": 0, "end": 1, "score": 1}]}))
    words = ["public", "qv_m2", "--annotations", str(written(tmp_path, "qv_m2")), "--run", str(run)]
    printed = CliRunner().invoke(app, words).stdout
    assert [line.split()[-1] for line in printed.splitlines() if "3+tgt" in line] == ["–"]
    # Questions with two answers are there, and none is answered.
    assert [line.split()[-1] for line in printed.splitlines() if "2_tgt" in line] == ["0.0000"]
    given = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert (given["measures"]["mAP@3+tgt"], given["measures"]["mAP@2_tgt"]) == (None, 0)


def test_sources_are_checked_before_an_encoder_is_chosen(tmp_path: Path) -> None:
    words = ["--annotations", tmp_path / "none.jsonl", "--library", tmp_path / "new"]
    for name, more, complaint in (
        ("qv_m2", [], r"give either .* \(--videos\), or a run to measure \(--run\)"),
        ("nope", ["--videos", tmp_path], "benchmark 'nope': unknown"),
        ("qv_m2", ["--videos", tmp_path / "gone"], "gone: no folder there"),
    ):
        done = CliRunner().invoke(app, ["public", name, *map(str, [*words, *more])])
        assert re.search(complaint, str(done.exception)) and "Encoder" not in done.stderr


def test_a_system_says_how_sure_it_is_of_an_answer(tmp_path: Path) -> None:
    """Soccer-GMR's pred_exist_score, not the highest score of a window, decides what is refused."""
    annotations = written(tmp_path, "soccer_gmr")
    answers = [
        {"qid": row["qid"], "vid": row["vid"], "pred_relevant_windows": [[0, 6, 0.9]],
         "pred_exist_score": 0.8 if row["relevant_windows"] else 0.1}
        for row in rows("soccer_gmr")
    ]  # fmt: skip
    run = tmp_path / "run.jsonl"

    def auroc() -> float:
        run.write_text("".join(json.dumps(row) + "\n" for row in answers))
        return run_public("soccer_gmr", annotations, run=run).measures["AUROC"]

    assert auroc() == 100
    answers[0]["pred_exist_score"] = "sure"
    with pytest.raises(DataError, match=r"run.jsonl: line 1: pred_exist_score: 'sure' is no number"):
        auroc()
    for row in answers:
        del row["pred_exist_score"]
    assert auroc() == 50


def test_files_of_a_run_say_how_sure_it_is(tmp_path: Path) -> None:
    annotations, run, out = written(tmp_path, "soccer_gmr"), tmp_path / "run.jsonl", tmp_path / "a.jsonl"
    answers = [
        {"qid": row["qid"], "vid": row["vid"], "pred_relevant_windows": [[0, 6, 0.9]] if place else [],
         "pred_exist_score": 0.8 if row["relevant_windows"] else 0.1}
        for place, row in enumerate(rows("soccer_gmr"))
    ]  # fmt: skip
    del answers[-1]["pred_exist_score"]
    run.write_text("".join(json.dumps(row) + "\n" for row in answers))
    measured = run_public("soccer_gmr", annotations, run=run, out=out).measures
    assert run_public("soccer_gmr", annotations, run=out).measures == measured
    with pytest.raises(
        InvalidValue, match=r"a\.csv: a \.csv file cannot hold the pred_exist_score .*\.jsonl"
    ):
        run_public("soccer_gmr", annotations, run=run, out=tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()


def test_a_measured_run_is_written_in_another_form(tmp_path: Path) -> None:
    annotations, run, out = written(tmp_path, "extreme_when_bench"), tmp_path / "run.json", tmp_path / "a.csv"
    row = {"video_id": "film0", "start": 1.0, "end": 2.0, "score": 0.5}
    run.write_text(json.dumps({"film0_red": [row]}))
    run_public("extreme_when_bench", annotations, run=run, out=out)
    assert read_run(out).rows() == {"film0_red": [row]}
    with pytest.raises(InvalidValue, match=r"run\.json: is read by the command"):
        run_public("extreme_when_bench", annotations, run=run, out=run)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv"])
def test_moments_that_do_not_end_after_their_start_are_measured(tmp_path: Path, suffix: str) -> None:
    """ExtremeWhenBench turns them round, TimeLens counts them 0, Soccer-GMR takes them away."""
    run, out = tmp_path / "run.json", tmp_path / f"again{suffix}"

    def measured(kind: str, windows: dict[str, tuple[int, int]]) -> dict[str, float]:
        answers = {
            query: [{"video_id": "film0", "start": start, "end": end, "score": 0.9}]
            for query, (start, end) in windows.items()
        }
        run.write_text(json.dumps(answers))
        annotations = written(tmp_path, kind)
        measures = run_public(kind, annotations, run=run, out=out).measures
        assert run_public(kind, annotations, run=out).measures == measures
        return measures

    turned = measured("extreme_when_bench", {"film0_red": (6, 0), "film0_blue": (12, 12)})
    assert turned["mIoU"] == pytest.approx(1 / 6) and turned["no span"] == pytest.approx(4 / 6)
    queries = [row.query_id for row in read_questions(written(tmp_path, "timelens"), "timelens")]
    assert measured("timelens", {queries[0]: (0, 6)})["mIoU"] == pytest.approx(100 / 12)
    assert measured("timelens", {queries[0]: (6, 0)})["mIoU"] == 0
    empty = measured("soccer_gmr", {"0": (0, 6), "2": (40, 40)})
    assert empty["G-mIoU@1 (paper)"] == pytest.approx(100 * 4 / 9)
    for kind in ("qv_m2", "moment_seeker"):
        with pytest.raises(DataError, match=r"moment 1: start is 6\.0 and end is 0\.0; the end must"):
            measured(kind, {"0": (6, 0)})


def test_a_question_with_a_picture_is_asked_with_it(films: Path, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (64, 64), COLOURS["blue"]).save(tmp_path / "blue.png")
    questions = [
        {**row, "qry_text": "this room", "qry_img_path": "blue.png"} for row in rows("moment_seeker")[1::2]
    ]
    path = tmp_path / "ti2v.json"
    path.write_text(json.dumps(questions))
    found = run_public("moment_seeker", path, films / "films", library=films / "library")
    assert found.measures["R@1"] == 100


def test_a_question_that_cannot_be_answered_is_named_and_the_others_are(films: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_text("no picture")
    spoilt = [{"qry_img_path": "none.png"}, {"qry_img_path": "broken.png"}]
    content = [
        row | other for row, other in zip(rows("moment_seeker"), [*spoilt, {}, {}, {}, {}], strict=True)
    ]
    path = tmp_path / "ti2v.json"
    path.write_text(json.dumps(content))
    arguments = ["public", "moment_seeker", "-a", path, "--videos", films / "films", "-l", films / "library"]
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    assert found["unanswered"] == ["1", "2"] and found["questions"] == 6
    reasons = [found["refused"][name] for name in found["unanswered"]]
    for number, (reason, part) in enumerate(zip(reasons, ("none.png", "broken.png"), strict=True), 1):
        assert reason.startswith(f"question {number}: ") and part in reason and reason in done.stderr
    path.write_text(json.dumps(content[:2]))
    with pytest.raises(MediaError, match=r"none\.png"):
        run_public("moment_seeker", path, films / "films", library=films / "library")


def test_videos_that_are_missing_count_and_are_named(films: Path, tmp_path: Path) -> None:
    content = rows("extreme_when_bench")
    content += [{**content[0], "qid": "other", "video_id": "film7"}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    arguments = [
        "public",
        "extreme_when_bench",
        "-a",
        path,
        "--videos",
        films / "films",
        "-l",
        films / "library",
    ]
    done = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    assert found["missing"] == ["film7"] and found["measures"]["no span"] == pytest.approx(1 / 7)
    assert "1 of 4 videos missing; their questions count as not answered: film7" in done.stderr
    table = CliRunner().invoke(app, list(map(str, arguments)))
    assert table.exit_code == 3 and "mIoU" in table.stdout


def test_what_cannot_be_is_refused(films: Path, tmp_path: Path) -> None:
    annotations = written(tmp_path, "qv_m2")
    with pytest.raises(InvalidValue, match="benchmark 'x': unknown; choose extreme_when_bench"):
        run_public("x", annotations, films)
    for given in ({}, {"videos": films, "run": annotations}):
        with pytest.raises(InvalidValue, match="give either a folder of videos"):
            run_public("qv_m2", annotations, **given)
    other = tmp_path / "other.jsonl"
    other.write_text(json.dumps({**rows("qv_m2")[0], "vid": "film8"}) + "\n")
    with pytest.raises(NotFound, match="holds no video of QV-M2, which has 1 video, for instance film8"):
        run_public("qv_m2", other, films / "films", library=films / "library")


def test_a_folder_that_is_gone_is_refused_though_a_library_has_its_videos(
    films: Path, tmp_path: Path
) -> None:
    with pytest.raises(NotFound, match="gone: no folder there"):
        run_public("qv_m2", written(tmp_path, "qv_m2"), tmp_path / "gone", library=films / "library")


def test_a_file_of_no_form_is_refused_before_videos_are_indexed(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"suffix '\.xyz': unknown"):
        run_public("qv_m2", written(tmp_path, "qv_m2"), tmp_path, out=tmp_path / "answers.xyz")
    assert not (tmp_path / "qv_m2-library").exists()


def test_two_videos_of_one_name_are_refused(films: Path, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        colour = COLOURS["red" if folder == "a" else "blue"]
        write_video(tmp_path / folder / "film0.mp4", [np.full((64, 64, 3), colour, np.uint8)] * 30, rate=5)
    with pytest.raises(InvalidValue, match="both are film0 of QV-M2; remove one"):
        run_public("qv_m2", written(tmp_path, "qv_m2"), tmp_path, encoder="demo", library=tmp_path / "own")
