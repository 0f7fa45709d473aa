"""Pieces are done once, interrupted or not; the report has every table, and says which rows are missing."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from comparison import run as running
from comparison.bench import Bench
from comparison.figures import MAIN, OVER, figures
from comparison.findings import Findings
from comparison.plan import CONQUERS, PRESETS, Cut, Job, Preset
from comparison.report import write_report
from comparison.rows import BASELINES, NAMES, REFINERS
from comparison.run import run_pieces, what_is_left
from comparison.runs import write_runs
from comparison.tables import TABLES
from comparison.world import World, prepare
from moviola.errors import EncoderMismatch, InvalidValue
from moviola.files.locks import exclusive
from moviola.files.rows import read_json
from moviola.study.measures import evaluate, read_qrels, read_run
from moviola.study.training.validation import judge

pytestmark = pytest.mark.long(1)

MAIN_ROWS = ("spr-stage1", "spr-clip", "spr-relo", "spr-relo-large", "reel", "xml", "reloclnet", "prem",
             *(f"conquer-{kind}" for kind in CONQUERS))  # fmt: skip


@pytest.fixture(scope="module")
def trained(bench: Bench) -> Bench:
    """Every piece of the toy comparison, trained for next to nothing."""
    run_pieces(bench, note=lambda _: None)
    return bench


def without(trained: Bench, where: Path, *names: str) -> Bench:
    """The same with some pieces not done yet."""
    bench = replace(trained, out=where / "comparison")
    shutil.copytree(trained.out, bench.out)
    for name in names:
        bench.result_file(name).unlink()
        shutil.rmtree(bench.model(name))
    return bench


def times(bench: Bench) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in (bench.out / "results").iterdir()}


# ---- pieces ----------------------------------------------------------------------------------------------


def test_every_piece_leaves_its_figures(trained: Bench) -> None:
    val = trained.world("report").split("val")
    for job in trained.jobs():
        found = trained.result(job.name)
        assert found["job"] == json.loads(json.dumps(vars(job)))
        assert found["val"] == pytest.approx(judge(trained.answering(job).run(val), val))
        assert found["parameters"] > 0
        assert found["cpu_seconds"] > 0
        assert not list(trained.model(job.name).glob("**/state.pt"))
        for phase in found["phases"]:
            assert [row[0] for row in phase["curve"]] == sorted(row[0] for row in phase["curve"])
            assert phase["curve"][-1][0] == phase["steps"]
            best = next(row[2] for row in phase["curve"] if row[0] == phase["best_step"])
            assert best == max(row[2] for row in phase["curve"])
            assert len(phase["losses"]) == len(phase["curve"])


def test_figures_on_test_are_those_of_the_answers(trained: Bench) -> None:
    test = trained.world("report").split("test")
    types = trained.world("report").types("test")
    for job in trained.jobs():
        found = trained.result(job.name)
        assert found["test"] == pytest.approx(judge(trained.answering(job).run(test), test))
        for measure in OVER:
            per_query = found["per_query"][measure]
            assert sum(per_query) / len(per_query) == pytest.approx(found["test"][measure], abs=1e-4)
        assert sum(row["queries"] for row in found["types"].values()) == len(types)
        recalls = {"VCMR", "VR"} if job.stage1 is None else {"VCMR", "VR", "SVMR"}
        assert {name.split()[0] for name in found["recall"]} == recalls
        assert all(0 <= value <= 1 for value in found["recall"].values())


def test_a_row_brings_its_stage_1_and_waits_for_it(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path, "spr-stage1-n20", "reel-n20", "spr-clip-n20", "xml-n20")
    with bench.piece(bench.job("spr-stage1-n20")):  # as another process does
        run_pieces(bench, only=["reel-n20", "xml*"], note=lambda _: None)
    assert [bench.done(name) for name in ("reel-n20", "xml-n20")] == [False, True]
    run_pieces(bench, only=["reel-n20"], note=lambda _: None)
    assert bench.result("reel-n20")["test"] == trained.result("reel-n20")["test"]
    assert what_is_left(bench, ["spr-clip-n20"]).names == ("spr-clip-n20",)


def test_a_pattern_that_no_row_fits_is_named(bench: Bench) -> None:
    """Nothing was trained, and "0 of 0 trainings are finished" was said."""
    with pytest.raises(InvalidValue, match="only 'xml-n20-seed7': no row, model or group; --status names"):
        what_is_left(bench, ["xml*", "xml-n20-seed7"])


def test_finished_pieces_are_not_done_again(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path, "reel-n20")
    before, notes = times(bench), list[str]()
    planned = len(bench.jobs())
    run_pieces(bench, note=notes.append)
    assert [line.split(":")[0] for line in notes] == [f"{planned}/{planned} reel-n20"]
    assert {path: time for path, time in times(bench).items() if path in before} == before
    # The same seed on the same machine finds the same.
    assert bench.result("reel-n20")["test"] == trained.result("reel-n20")["test"]
    run_pieces(bench, note=notes.append)
    assert len(notes) == 1


def test_an_interrupted_piece_goes_on_from_its_last_evaluation(
    trained: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = without(trained, tmp_path, "reel-n20")
    seen: list[int] = []

    def stop(deadline: float | None) -> None:
        seen.append(1)
        if len(seen) == 40:
            raise running._TimeIsUpError

    notes: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(running, "_require_time", stop)
        run_pieces(bench, minutes=1.0, note=notes.append)
    assert notes == ["1 minutes are over; the same command goes on from here"]
    assert not bench.done("reel-n20")
    assert list(bench.model("reel-n20").glob("run/**/state.pt"))
    run_pieces(bench, note=notes.append)
    assert bench.result("reel-n20")["test"] == trained.result("reel-n20")["test"]
    curves = [found["phases"][0]["curve"] for found in (bench.result("reel-n20"), trained.result("reel-n20"))]
    assert curves[0] == curves[1]


def test_no_time_no_piece(trained: Bench, tmp_path: Path) -> None:
    bench, notes = without(trained, tmp_path, "reel-n20"), list[str]()
    run_pieces(bench, minutes=0, note=notes.append)
    assert notes == ["0 minutes are over; the same command goes on from here"]
    assert not bench.model("reel-n20").exists()


def test_figures_from_elsewhere_count_and_their_models_are_trained_when_needed(
    trained: Bench, tmp_path: Path
) -> None:
    bench = without(trained, tmp_path, "reel-n20")
    shutil.rmtree(bench.out / "models")
    before = times(bench)
    run_pieces(bench, note=lambda _: None)
    assert bench.result("reel-n20")["test"] == trained.result("reel-n20")["test"]
    assert {path: time for path, time in times(bench).items() if path in before} == before
    assert {path.name for path in (bench.out / "models").iterdir()} == {"reel-n20", "spr-stage1-n20"}


def test_a_piece_that_another_process_does_is_left_to_it(trained: Bench, tmp_path: Path) -> None:
    bench, notes = without(trained, tmp_path, "reel-n20", "xml-n20"), list[str]()
    with exclusive(bench.out / "locks" / "reel-n20.lock"):
        run_pieces(bench, note=notes.append)
    assert [line.split(":")[0].split()[1] for line in notes] == ["xml-n20"]


def test_remaining_pieces_are_counted_and_estimated(trained: Bench, tmp_path: Path) -> None:
    gone = {"conquer-general-n20", "conquer-disjoint-n20", "reel-n20"}
    bench = without(trained, tmp_path, *gone)
    left = what_is_left(bench)
    assert (left.planned - left.done, set(left.names), left.unknown) == (3, gone, 1)  # no other Reel is there
    assert left.cpu_seconds == pytest.approx(2 * bench.result("conquer-exclusive-n20")["cpu_seconds"])
    assert what_is_left(bench, ["xml*"]).names == ()
    assert set(what_is_left(bench, ["main"]).names) == gone
    assert what_is_left(bench, ["reel*"]).names == ("reel-n20",)
    nothing = what_is_left(Bench(tmp_path / "nothing", bench.preset))
    assert (nothing.done, nothing.planned, nothing.unknown) == (0, left.planned, left.planned)


def test_the_estimate_counts_steps_and_only_what_a_cpu_trained(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PRESETS["third"])
    write_result(bench, "prem-n20", cpu_seconds=100)
    write_result(bench, "prem-n20-seed1", cpu_seconds=7, device="cuda")
    write_result(bench, "reel-n20", cpu_seconds=7, device="cuda")
    assert what_is_left(bench, ["prem-longer"]).cpu_seconds == pytest.approx(200)
    left = what_is_left(bench, ["reel-n1"])
    assert {*left.names} == {"spr-stage1-n1", "reel-n1"} and (left.cpu_seconds, left.unknown) == (0, 2)


def write_result(bench: Bench, name: str, **found: object) -> None:
    bench.result_file(name).parent.mkdir(exist_ok=True)
    bench.result_file(name).write_text(json.dumps({"phases": [], **found}))


def test_a_result_of_other_settings_is_refused(trained: Bench) -> None:
    sizes = {**trained.preset.sizes, "spr-stage1": ("model.layers=2",)}
    other = replace(trained, preset=replace(trained.preset, sizes=sizes))
    with pytest.raises(InvalidValue, match=r"spr-stage1-n20\.json: was made with other settings"):
        run_pieces(other)


def test_a_result_of_an_earlier_version_is_refused(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    bench.result_file("xml-n20").write_text(json.dumps({"job": {}, "val": 0.3}))
    with pytest.raises(InvalidValue, match="has no curves on val"):
        bench.result("xml-n20")


# ---- worlds ----------------------------------------------------------------------------------------------


def test_a_world_of_other_films_is_refused(world: World) -> None:
    assert prepare(world.folder, videos=20, seed=0, workers=1) == World(world.folder)
    with pytest.raises(
        InvalidValue, match="holds 20 plain and 0 edited films of seed 0, not 40 and 0 of seed 32"
    ):
        prepare(world.folder, videos=40, seed=32, workers=1)


def test_a_world_of_another_encoder_is_refused_before_anything_is_filmed(
    bench: Bench, toy: Preset, tmp_path: Path
) -> None:
    for kept in (
        bench.out,
        tmp_path / "nothing",
    ):  # features of the toy's revision "1"; none, and today's encoder
        with pytest.raises(EncoderMismatch, match="but revision 0815 is needed"):
            Bench(kept, replace(toy, encoder="0815")).prepare(1, lambda _: None)
    assert not (tmp_path / "nothing" / "worlds").exists()


def test_the_splits_share_no_film(world: World) -> None:
    train, val, test = (world.videos(name) for name in ("train", "val", "test"))
    assert (len(train), len(val), len(test)) == (12, 2, 6)
    assert sorted([*train, *val, *test]) == sorted(world.features.durations)
    assert world.split("train", 1).pairs.query.tolist() == sorted(set(world.split("train").pairs.query))


def test_queries_are_cut_to_a_part_of_them_with_the_types_of_tvr(world: World, tmp_path: Path) -> None:
    shutil.copytree(world.folder, tmp_path / "world")
    whole = World(tmp_path / "world")
    rows = json.loads(world.pairs("train").read_text())
    for split in ("train", "val", "test"):
        many = [{**rows[0], "query_id": number, "type": "t" if number % 2 else "v"} for number in range(100)]
        whole.pairs(split).write_text(json.dumps(many))
    cut = prepare(whole.folder, videos=20, seed=0, workers=1, queries=40)
    for split, seen, spoken in (("train", 36, 4), ("val", 50, 5), ("test", 50, 5)):
        kept = cut.types(split)
        assert Counter(kept.values()) == {"v": seen, "t": spoken}
        assert [int(query) for query in kept] == sorted(int(query) for query in kept)
    before = cut.pairs("val").read_bytes()
    assert prepare(whole.folder, videos=20, seed=0, workers=1, queries=40).pairs("val").read_bytes() == before


def of_pictures(world: World, folder: Path) -> World:
    """A copy with all its queries, of which pictures answer each."""
    shutil.copytree(world.folder, folder)
    whole = World(folder)
    for split in ("train", "val", "test"):
        rows = json.loads(world.pairs(split).read_text())
        whole.pairs(split).write_text(json.dumps([{**row, "type": "v"} for row in rows]))
    return whole


def test_labels_by_sentences_lie_beside_the_films(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def annotate(folder: Path, films: Path, *, similarity: str, one_pool: bool) -> None:
        folder.mkdir()
        for path in films.glob("[tv]*.json"):
            rows = json.loads(path.read_text())
            (folder / path.name).write_text(json.dumps([{**row, "chosen": similarity} for row in rows]))

    monkeypatch.setattr("comparison.world.annotate", annotate)
    whole, notes = of_pictures(world, tmp_path / "world"), list[str]()
    how: Any = {"videos": 20, "seed": 0, "workers": 1, "queries": 5, "note": notes.append}
    usual, other = prepare(whole.folder, **how), prepare(whole.folder, cut=Cut("letters"), **how)
    assert prepare(whole.folder, cut=Cut("letters"), **how) == other
    assert notes == ["choosing pseudo labels by letters"]
    assert (usual.features.folder, usual.videos("val")) == (other.features.folder, other.videos("val"))
    for split in ("train", "val", "test"):
        assert usual.pairs(split).parent.name == "films"
        rows = json.loads(usual.pairs(split).read_text())
        assert json.loads(other.pairs(split).read_text()) == [{**row, "chosen": "letters"} for row in rows]


def test_a_share_of_the_training_films_has_its_own_queries_and_the_same_val_and_test(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def annotate(folder: Path, films: Path, *, similarity: str, training_videos: int) -> None:
        folder.mkdir()
        rows = read_json(films / "train_top40.json")
        chosen = [{**row, "chosen": (similarity, training_videos)} for row in rows]
        (folder / "train_top40.json").write_text(json.dumps(chosen))

    monkeypatch.setattr("comparison.world.annotate", annotate)
    whole, notes = of_pictures(world, tmp_path / "world"), list[str]()
    how: Any = {"videos": 20, "seed": 0, "workers": 1, "queries": 5, "note": notes.append}
    part, usual = prepare(whole.folder, cut=Cut(share=0.5), **how), prepare(whole.folder, **how)
    assert prepare(whole.folder, cut=Cut(share=0.5), **how) == part == World(whole.folder, Cut(share=0.5), 5)
    assert notes == ["annotating 50% of the training films"]
    assert part.videos("train") == usual.videos("train")[:6]
    for split in ("val", "test"):
        assert (part.videos(split), part.pairs(split)) == (usual.videos(split), usual.pairs(split))
    rows = read_json(part.pairs("train"))
    assert [row["chosen"] for row in rows] == [["slots", 6]] * 2  # of five queries, seen ones


# ---- the report ------------------------------------------------------------------------------------------


def report(bench: Bench, out: Path) -> tuple[str, dict[str, list[list[str]]]]:
    """The report's text and its tables by name, of those that have rows."""
    notes: list[str] = []
    text = write_report(bench, out, title="Toy", note=notes.append).read_text()
    assert notes == [f"table: {name}" for name in TABLES]
    written = [name for name, make in TABLES.items() if make(Findings(bench)).rows]
    assert {path.stem for path in out.glob("*.csv")} == set(written)
    tables = {}
    for name in written:
        with (out / f"{name}.csv").open(newline="") as file:
            tables[name] = list(csv.reader(file))
    for figure in ("ndcg", "curves"):
        assert (out / f"{figure}.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    for table in tables.values():
        assert {len(row) for row in table} == {len(table[0])}
        for row in table:
            assert f"| {' | '.join(row)} |" in text
    return text, tables


def test_the_report_says_what_was_found(trained: Bench, tmp_path: Path) -> None:
    text, tables = report(trained, tmp_path)
    planned = len(trained.jobs())
    assert text.startswith("# Toy\n")
    assert f"**{planned} of {planned} trainings are finished.**" in text
    assert "Not trained yet" not in text
    # 2 rows without training, 2 of stage 1, 10 models.
    assert [row[0] for row in tables["all-models"]][1:3] == ["random spans", "CLIP, mean pooled, coarse"]
    assert len(tables["all-models"]) == 1 + 2 + 2 + 10
    for name, part in (("all-models", "test"), ("all-models-val", "val")):
        row = next(row for row in tables[name] if row[0] == "Reel (ours)")
        values = trained.result("reel-n20")[part]
        assert row[2:] == [f"{values[measure]:.4f}" for measure in tables[name][0][2:]]
    assert len(tables["claims"]) == 1 + 6 + 9
    assert len(tables["trainings"]) == len(tables["types-of-queries"]) == 1 + len(MAIN_ROWS)
    assert tables["hours"][-1][:2] == ["all", str(planned)]


def test_the_report_needs_neither_models_nor_worlds(trained: Bench, tmp_path: Path) -> None:
    bench = replace(trained, out=tmp_path / "elsewhere")
    shutil.copytree(trained.out / "results", bench.out / "results")
    assert report(bench, tmp_path / "report") == report(trained, tmp_path / "whole")


def changed(bench: Bench, name: str, **values: Any) -> None:
    path = bench.result_file(name)
    path.write_text(json.dumps({**bench.result(name), **values}))


def claims(bench: Bench) -> dict[str, str]:
    return {row[0]: row[2] for row in TABLES["claims"](Findings(bench)).rows}


def test_a_weight_of_proposals_is_reported_beside_none(trained: Bench, tmp_path: Path) -> None:
    bench, job = without(trained, tmp_path), {job.name: job for job in trained.jobs()}["reel-n20"]
    values = {}
    for weight in (0.0, 50.0):
        path = bench.model(job.name) / "config.json"
        content = json.loads(path.read_text())
        content["extra"]["proposal_weight"] = weight
        path.write_text(json.dumps(content))
        values[weight] = figures(bench, job)
    assert "without_proposals" not in values[0.0]
    assert values[50.0]["proposal_weight"] == 50.0
    apart = values[50.0]["without_proposals"]
    assert apart == {name: values[0.0][name] for name in ("val", "test", "types")}
    assert apart["test"] != values[50.0]["test"]


@pytest.mark.usefixtures("lines_by_chance")
def test_reels_own_stage_1_is_reported_beside_sprs(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    bench = replace(bench, preset=replace(bench.preset, own_stage1=True, lines=2))
    assert [row[0] for row in TABLES["own-stage-1"](Findings(bench)).rows] == ["SPR's, seed 0"]
    run_pieces(bench, only=["reel-stage1"], note=lambda _: None)
    rows = TABLES["own-stage-1"](Findings(bench)).rows
    assert [row[0] for row in rows] == ["SPR's, seed 0", "Reel's own, seed 0"]
    first, second = (bench.result(name) for name in ("reel-stage1-n20", "reel-own"))
    assert rows[1][1] == f"{first['segments']['recall@50']:.4f}"
    assert rows[1][-2:] == tuple(f"{second['test'][name]:.4f}" for name in OVER[-2:])
    bound = first["with_lines"]
    assert bound["val"][str(bound["lines"])] == max(bound["val"].values())
    assert [row[5] for row in rows] == ["–", f"{bound['bound']:.4f}"]
    assert [row[4] for row in rows] == [
        f"{bench.result(name)['bound']:.4f}" for name in ("spr-stage1-n20", "reel-stage1-n20")
    ]
    # With all segments there is more to find than with lines instead of some of them.
    assert bound["beside"] >= first["bound"]


def test_editions_of_reel_are_reported_with_their_part_of_the_bound(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    bench = replace(bench, preset=replace(bench.preset, studies=True))
    changed(bench, "spr-stage1-n20", bound=0.5)
    shutil.copy(bench.result_file("reel-n20"), bench.result_file("reel-second"))
    changed(bench, "reel-second", test=dict.fromkeys(bench.result("reel-n20")["test"], 0.3))
    assert "Reel, second edition: part of the practical upper bound, " + MAIN in claims(bench)
    first, second = TABLES["second-edition"](Findings(bench)).rows
    assert (first[0], second[0]) == ("Reel (ours)", "Reel (ours), second edition")
    assert second[1:5] == ("1", "0.3000", "0.3000", "0.3000")
    assert second[-1] == "60.0%"
    changed(bench, "reel-second", job={**bench.result("reel-second")["job"], "lines": 2})
    changed(bench, "spr-stage1-n20", with_lines={"beside": 0.4})
    assert TABLES["second-edition"](Findings(bench)).rows[1][-1] == "75.0%"


def test_the_best_are_chosen_on_val(trained: Bench, tmp_path: Path) -> None:
    """However good another one is on test: val likes what test likes least."""
    bench = without(trained, tmp_path)
    chosen = []
    for rivals in (REFINERS[:3], BASELINES):
        for place, name in enumerate(rivals):
            found = bench.result(f"{name}-n20")
            values = {"val": found["val"] | {MAIN: 0.9 - place / 10}}
            changed(bench, f"{name}-n20", **values, test=found["test"] | {MAIN: 0.1 + place / 10})
        chosen.append(NAMES[rivals[0]])
    best = "best SPR ({}) over best baseline ({})".format(*chosen)
    assert any(claim.startswith(best) for claim in claims(bench))


def test_those_with_more_steps_are_among_the_best_where_they_are_trained(
    trained: Bench, tmp_path: Path
) -> None:
    """Best on val among the baselines is one with more steps; of SPR's the main row, whatever test says."""
    longer = replace(trained.preset, longer={"prem": 2, "spr-relo-large": 2})
    bench = replace(without(trained, tmp_path), preset=longer)
    assert not any("more steps" in claim for claim in claims(bench))
    for name, (val, test) in {
        "spr-relo-n20": (0.99, 0.3), "spr-relo-large-longer": (0.98, 0.9),
        "xml-n20": (0.95, 0.1), "prem-longer": (0.96, 0.15),
    }.items():  # fmt: skip
        of = bench.result(name.replace("longer", "n20"))
        path = bench.result_file(name)
        path.write_text(json.dumps({**of, "val": of["val"] | {MAIN: val}, "test": of["test"] | {MAIN: test}}))
    said = claims(bench)
    usual = said[f"best SPR (SPR_ReLo-S) over best baseline (XML), {MAIN}"]
    more = said[
        f"best SPR (SPR_ReLo-S) over best baseline (PREM, 2 times the steps), more steps counted, {MAIN}"
    ]
    assert (usual[:5], more[:5]) == ("+200%", "+100%")


def test_rows_with_lines_and_without_scores_of_proposals_stand_side_by_side(
    trained: Bench, tmp_path: Path
) -> None:
    bench = replace(without(trained, tmp_path), preset=replace(trained.preset, lines=2))
    reel = bench.result("reel-n20")
    apart = {"val": reel["val"], "types": reel["types"], "test": reel["test"] | {MAIN: 0.25}}
    lines = {**reel, "test": reel["test"] | {MAIN: 0.75}, "without_proposals": apart}
    bench.result_file("reel-lines").write_text(json.dumps(lines))
    rows = {row[0]: row for row in TABLES["subtitle-lines"](Findings(bench)).rows}
    figures_of = {name: row[2] for name, row in rows.items() if name.startswith("Reel")}
    assert figures_of == {
        "Reel (ours)": f"{reel['test'][MAIN]:.4f}",
        "Reel (ours), lines": "0.7500",
        "Reel (ours), lines, without proposals' scores": "0.2500",
    }
    assert "SPR_ReLo-S" in rows


def test_answers_are_written_as_runs(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path, "xml-n20")
    shutil.rmtree(bench.model("reel-n20"))  # its figures came from elsewhere, without its answers
    for kept in (bench.out / "answers").glob("reel-n20-*"):
        kept.unlink()
    count = write_runs(bench, tmp_path / "runs", lambda _: None)
    names = {f"{name}-n20" for name in MAIN_ROWS} - {"xml-n20", "reel-n20"}
    for split in ("val", "test"):
        files = {path.stem for path in (tmp_path / "runs" / split).iterdir()}
        assert files == names | {"qrels"} and count == len(names)
        qrels = read_qrels(tmp_path / "runs" / split / "qrels.json")
        run = read_run(tmp_path / "runs" / split / "prem-n20.json")
        found = evaluate(run, qrels, [MAIN]).measures[MAIN]
        assert found == pytest.approx(trained.result("prem-n20")[split][MAIN])


def with_curve(bench: Bench, name: str, last: float) -> None:
    curve = [[step, 1, value] for step, value in enumerate((0.2, 0.5, 0.4, last), 1)]
    changed(bench, name, phases=[{**phase, "curve": curve} for phase in bench.result(name)["phases"]])


@pytest.mark.parametrize(("last", "converged"), [(0.4, True), (0.505, True), (0.53, False)])
def test_p_is_printed_only_where_something_follows(
    trained: Bench, tmp_path: Path, last: float, converged: bool
) -> None:
    bench = without(trained, tmp_path)
    with_curve(bench, "reel-n20", 0.5)
    with_curve(bench, "spr-clip-n20", last)
    said = claims(bench)[f"Reel minus SPR_CLIP, {MAIN}"]
    assert ("p = " in said) == converged
    assert ("val still rose: nothing follows" in said) != converged


def test_a_model_that_more_steps_do_not_improve_has_converged(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    with_curve(bench, "xml-n20", 0.9)
    assert not Findings(bench).converged("xml-n20")
    bench.result_file("xml-longer").write_text(json.dumps(bench.result("xml-n20")))
    for last in (0.9, 0.5):
        with_curve(bench, "xml-longer", last)
        assert Findings(bench).converged("xml-n20") == (last == 0.5)


def test_a_model_of_two_phases_has_converged_when_both_have(trained: Bench, tmp_path: Path) -> None:
    bench = without(trained, tmp_path)
    with_curve(bench, "xml-n20", 0.9)
    with_curve(bench, "prem-n20", 0.5)
    assert Findings(bench).converged("prem-n20")
    phases = [*bench.result("xml-n20")["phases"], bench.result("prem-n20")["phases"][-1]]
    changed(bench, "prem-n20", phases=phases)
    assert not Findings(bench).converged("prem-n20")


def test_tables_leave_out_what_is_missing_and_name_it(trained: Bench, tmp_path: Path) -> None:
    gone = ("xml-n20", "reel-n20", "spr-relo-large-n20")
    text, tables = report(without(trained, tmp_path, *gone), tmp_path / "report")
    assert f"Not trained yet, and missing below: {', '.join(sorted(gone, key=text.index))}." in text
    assert len(tables["all-models"]) == 1 + 2 + 2 + 7
    for name, table in tables.items():
        if name != "hours":
            assert not {"Reel (ours)", "XML", "SPR_ReLo-L"} & {row[0] for row in table}
    assert not any("Reel" in cell for row in tables["claims"] for cell in row)
    assert all(row[3] == "–" for row in tables["number-of-segments"][1:])


def test_stage_1_alone_makes_a_report(trained: Bench, tmp_path: Path) -> None:
    rest = [job.name for job in trained.jobs() if job.stage1]
    _, tables = report(without(trained, tmp_path, *rest), tmp_path / "report")
    assert len(tables["all-models"]) == 1 + 2 + 2
    assert [row[1] for row in tables["claims"][1:]] == ["several times"]
    of_jobs = list(TABLES)[list(TABLES).index("training-strategies") :]
    assert len(of_jobs) == 7
    assert not set(of_jobs) & set(tables)


def test_without_stage_1_there_is_no_report(bench: Bench, tmp_path: Path) -> None:
    empty = Bench(tmp_path / "trained", bench.preset)
    with pytest.raises(InvalidValue, match="spr-stage1-n20 is not trained yet"):
        write_report(empty, tmp_path / "report", title="Toy")
    assert not (tmp_path / "report").exists()


def test_jobs_of_the_toy_are_those_of_a_comparison(bench: Bench) -> None:
    rows: list[Job] = bench.jobs()
    assert {job.name for job in rows} == {f"{name}-n20" for name in MAIN_ROWS}
