"""`moviola dataset`: from precise captions to a judged set, through the commands."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import moviola.encoders
from moviola.study.datasets.building.annotation_files import write_pairs
from moviola.study.datasets.building.candidate_pairs import Pair


class Letters:
    """Counts letters."""

    def encode_text(self, texts: list[str]) -> NDArray[np.float32]:
        rows = [[text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
        return np.array(rows, np.float32) + np.float32(1e-3)


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moviola.encoders, "load_sentence_encoder", lambda name, **_: Letters())


def test_from_captions_to_judgements(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    things = ["cup", "door", "book", "lamp", "phone", "coat"]
    source = tmp_path / "tvr.jsonl"
    rows = [
        {"vid_name": f"v{n % 5}", "duration": 60, "ts": [n, n + 2], "type": "v", "desc_id": n,
         "desc": f"Ross takes the {things[n % 6]} number {n}."} for n in range(30)
    ]  # fmt: skip
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made, pairs = tmp_path / "imprecise.jsonl", tmp_path / "pairs.csv"
    first = moviola("dataset", "imprecise", source, "--out", made, "--json")
    assert first.code == 0, first.err
    assert (
        json.loads(first.out)["captions"] == json.loads(first.out)["changed"] == 30
        and json.loads(first.out)["failed"] == 0
    )
    assert "Ross" not in made.read_text() and "A man takes the cup number 0." in made.read_text()

    def run(*words: object) -> Any:
        outcome = moviola("dataset", *words, "--json")
        assert outcome.code == 0, outcome.err
        return json.loads(outcome.out)

    assert run("split", made, "--val", 2, "--test", 3, "--out", tmp_path) == {
        "val": 2,
        "test": 3,
    }
    queries = tmp_path / "val_queries.json"
    assert run("candidates", made, "--queries", queries, "--out", pairs)["pairs"] == 60
    assert run("tasks", pairs, "--out", tmp_path / "batch.csv")["pairs"] == 40
    with (tmp_path / "batch.csv").open(newline="") as file:
        due = [row["pair_id"] for row in csv.DictReader(file)]
    ratings = [f"{pair},{rater},3" for pair in due for rater in (1, 2)]
    (tmp_path / "raw.csv").write_text("\n".join(["pair_id,worker,relevance", *ratings]))
    exam = run("exam", tmp_path / "raw.csv")
    assert {worker: rater["distance"] for worker, rater in exam["raters"].items()} == {"1": 0.0, "2": 0.0}
    assert exam["out_of_consensus"] == 0
    agreed = tmp_path / "agreed.csv"
    assert run("consensus", tmp_path / "raw.csv", "--out", agreed)["agreed"] == 40
    assert run("tasks", pairs, "--agreed", agreed, "--out", tmp_path / "more.csv")["pairs"] == 20
    judged = tmp_path / "val.json"
    assert run("judgements", pairs, "--agreed", agreed, "--out", judged)["pairs"] == 40
    (tmp_path / "others.csv").write_text("pair_id,relevance\nother,3\n")
    strange = moviola(
        "dataset", "judgements", pairs, "--agreed", tmp_path / "others.csv", "--out", tmp_path / "none.json"
    )
    assert strange.code == 1 and "none of the candidates has an agreed level" in strange.err
    train = tmp_path / "train.json"
    counts = run("pseudo", made, "--top", 5, "--held-out", queries, "--out", train)
    assert counts == {"queries": 28, "pairs": 140, "out": str(train)}
    assert run("stats", judged)["moments"] > 0
    assert run("convert", judged, "--out", tmp_path / "c.jsonl")["moments"] > 0


def test_an_endpoint_needs_a_model(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    words = (
        "dataset",
        "imprecise",
        tmp_path,
        "--out",
        tmp_path / "o",
        "--endpoint",
        "http://x",
    )
    outcome = moviola(*words)
    assert outcome.code == 1 and "--model" in outcome.err


@pytest.mark.parametrize(
    "words",
    [
        ("consensus", "FILE"),
        ("convert", "FILE"),
        ("imprecise", "FILE"),
        ("candidates", "other", "--queries", "FILE"),
        ("pseudo", "other", "--held-out", "FILE"),
        ("tasks", "FILE"),
        ("judgements", "other", "--agreed", "FILE"),
        ("relevant-pairs", "FILE"),
    ],
)
def test_inputs_are_not_written_over(
    tmp_path: Path, moviola: Callable[..., Any], words: tuple[str, ...]
) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("pair_id,worker,relevance\n1,a,2\n1,b,2\n")
    outcome = moviola("dataset", *(file if word == "FILE" else word for word in words), "--out", file)
    assert outcome.code == 1 and f"{file}: is read by the command" in outcome.err
    assert file.read_text().endswith("1,b,2\n")


def test_the_source_of_rewrites_and_of_a_split_stays(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    """Neither they nor the file of failures, which has a name of its own, write over what is read."""
    for command, name, out in (("split", "val_queries.json", "."), ("imprecise", "a.review.csv", "a")):
        file = tmp_path / name
        file.write_text("[]")
        outcome = moviola("dataset", command, file, "--out", tmp_path / out)
        assert outcome.code == 1 and f"{file}: is read by the command" in outcome.err
        assert file.read_text() == "[]"


def test_second_ratings_by_one_worker_are_named(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("pair_id,worker,relevance\n1,a,2\n1,a,2\n2,a,2\n2,b,2\n")
    outcome = moviola("dataset", "consensus", ratings, "--out", tmp_path / "agreed.csv")
    assert (outcome.code, "2 pairs agreed" in outcome.out) == (0, True)
    assert "1 rating by a worker who had rated the pair before, which counts: 1 by a\n" in outcome.err


def test_what_convert_leaves_out_is_named(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    source, out = tmp_path / "tvr.jsonl", tmp_path / "c.jsonl"
    rows = [
        {"vid_name": "v", "duration": 9, "ts": span, "type": "v", "desc_id": number, "desc": "A man waves."}
        for number, span in enumerate([[0, 1], [2, 12], [3, 3]])
    ]  # fmt: skip

    def convert(count: int, *more: object) -> Any:
        source.write_text("".join(json.dumps(row) + "\n" for row in rows[:count]))
        return moviola("dataset", "convert", source, *(more or ("--out", out)))

    clean, kept, cut = map(convert, (1, 2, 3))
    assert (clean.code, clean.out, clean.err) == (0, f"{out}: 1 moment\n", "")
    assert (kept.code, kept.err) == (0, "beyond the video: 1 (1 (v))\n")
    assert (cut.code, cut.out) == (3, f"{out}: 2 moments\n")
    assert cut.err == "beyond the video: 1 (1 (v))\nleft out: no extent: 1 (2 (v))\n"
    refused = convert(1, "--pairs", "--out", tmp_path / "pairs.jsonl")
    assert refused.code == 1 and "give a file that ends in .json\n" in refused.err


def test_agreed_pairs_that_are_no_candidates_are_named(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    pairs, agreed, out = (tmp_path / name for name in ("pairs.csv", "agreed.csv", "val.json"))
    write_pairs([Pair("1:1", "1", "A query?", "v", 1.0, 2.0, 9.0, "", 1.0, 1)], pairs)
    agreed.write_text("pair_id,relevance\n1:1,3\n9:9,3\n")
    outcome = moviola("dataset", "judgements", pairs, "--agreed", agreed, "--out", out)
    assert (outcome.code, outcome.out) == (3, f"{out}: 1 judged pair\n")
    assert outcome.err == f"{agreed}: left out: 1 pair not in {pairs}: 9:9\n"


@pytest.mark.parametrize(
    "words, code, complaint",
    [
        (("--threshold", 5), 2, "--threshold"),
        (("--types", "q"), 1, "types q: no moment of TVR has one; there are v"),
    ],
)
def test_what_no_caption_can_be_is_refused(
    tmp_path: Path, moviola: Callable[..., Any], words: tuple[object, ...], code: int, complaint: str
) -> None:
    source, made = tmp_path / "tvr.jsonl", tmp_path / "imprecise.jsonl"
    row = {"vid_name": "v", "duration": 9, "ts": [0, 1], "type": "v", "desc_id": 1, "desc": "Ross waves."}
    source.write_text(json.dumps(row) + "\n")
    outcome = moviola("dataset", "imprecise", source, *words, "--out", made)
    assert (outcome.code, complaint in outcome.err, made.exists()) == (code, True, False)


def test_types_may_be_given_with_blanks(tmp_path: Path, moviola: Callable[..., Any]) -> None:
    source, made = tmp_path / "tvr.jsonl", tmp_path / "imprecise.jsonl"
    rows = [
        {"vid_name": "v", "duration": 9, "ts": [0, 1], "type": kind, "desc_id": kind, "desc": "Ross waves."}
        for kind in ("v", "vt", "t")
    ]  # fmt: skip
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("dataset", "imprecise", source, "--names", "lexicon", "--out", made)
    outcome = moviola(*words, "--types", "v, t", "--json")
    assert outcome.code == 0 and json.loads(outcome.out)["moments"] == 2
