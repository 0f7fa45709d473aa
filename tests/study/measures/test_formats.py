"""Readers and writers: what one writes the other reads, and a damaged row is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moviola.errors import DataError, InvalidValue, MoviolaError, NotFound
from moviola.study.measures import (
    PRESETS,
    QRELS_FORMATS,
    RUN_FORMATS,
    Qrels,
    Run,
    evaluate,
    ranks_disagree,
    read_qrels,
    read_run,
    tvr_recall,
    write_qrels,
    write_run,
)

ROWS = {
    "1": [("a video", 0.1, 7.25, 4), ("b#1%", 3.0, 1e3, 0), ("a video", 0.1, 7.25, 2)],
    "é": [("c", 0.0, 1.0, 1)],
}
QRELS = Qrels.from_dict({
    q: [dict(zip(("video_id", "start", "end", "relevance"), row, strict=True)) for row in rows]
    for q, rows in ROWS.items()
})  # fmt: skip
RUN = Run.from_dict({
    q: [dict(zip(("video_id", "start", "end", "score"), row, strict=True)) for row in rows]
    for q, rows in ROWS.items()
})  # fmt: skip


@pytest.mark.parametrize("name", ["json", "jsonl", "csv", "trec"])
def test_a_run_survives_its_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"run.{name}"
    write_run(RUN, path)
    assert read_run(path).rows() == RUN.rows()
    assert read_run(path, name).rows() == RUN.rows()


@pytest.mark.parametrize("name", ["json", "jsonl", "csv", "trec", "tvr_ranking"])
def test_judgements_survive_their_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "qrels.json"
    write_qrels(QRELS, path, name)
    assert read_qrels(path, name).rows() == QRELS.rows()
    assert read_qrels(path).rows() == QRELS.rows()


def test_a_tvr_submission_keeps_the_order_of_its_list(tmp_path: Path) -> None:
    path = tmp_path / "submission.json"
    submission = {
        "video2idx": {"a": 5, "b": 6},
        "VCMR": [
            {"desc_id": 3, "predictions": [[6, 0, 2, 0.1], [5, 1, 2, 0.9]]},
            {"desc_id": 4, "predictions": []},
        ],
    }
    path.write_text(json.dumps(submission))
    run = read_run(path)
    assert [m["video_id"] for m in run.rows()["3"]] == ["b", "a"]
    assert run.query_ids == ("3", "4")
    write_run(run, path, "tvr")
    assert read_run(path).rows() == run.rows()


def test_qvhighlights_files(tmp_path: Path) -> None:
    path = tmp_path / "windows.jsonl"
    path.write_text('{"qid": 1, "vid": "v", "pred_relevant_windows": [[0, 2, 0.5], [4, 6, 0.9]]}\n')
    assert [m["start"] for m in read_run(path).rows()["1"]] == [4, 0]
    path.write_text('{"qid": 1, "vid": "v", "relevant_windows": [[0, 2]]}\n')
    assert read_qrels(path).rows() == {"1": [{"video_id": "v", "start": 0, "end": 2, "relevance": 1}]}


def test_the_order_of_keys_does_not_matter(tmp_path: Path) -> None:
    pair = {"timestamp": [1, 2], "video_name": "v", "relevance": 3, "query_id": "q"}
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(pair) + "\n" + json.dumps({**pair, "timestamp": [3, 4]}) + "\n")
    assert len(read_qrels(path).rows()["q"]) == 2


@pytest.mark.parametrize("suffix", ["json", "jsonl", "csv", "trec"])
def test_a_run_that_answers_nothing_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    write_run(Run.from_dict({"q": []}), path)
    assert len(read_run(path).query) == 0
    with pytest.raises(DataError, match="line 1: the file is empty"):
        path.write_text("")
        read_qrels(path)


def test_both_forms_of_tvr_ranking(tmp_path: Path) -> None:
    moments = [
        {"pair_id": n, "video_name": f"v{n}", "timestamp": [n, n + 2], "duration": 60, "caption": "",
         "similarity": 0.5, "relevance": n}
        for n in range(3)
    ]  # fmt: skip
    new, old = tmp_path / "test.json", tmp_path / "old.json"
    new.write_text(json.dumps([{"query_id": 12, "query": "x", "relevant_moment": moments}], indent=2))
    old.write_text("\n".join(json.dumps({"query_id": 12, "query": "x"} | m) for m in moments))
    assert read_qrels(new).rows() == read_qrels(old).rows()
    assert read_qrels(new).query_ids == ("12",)


GOOD_ROW = '{"query_id":1,"video_id":"v","start":0,"end":2,"score":1}\n'


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("r.csv", "query_id,video_id,start,end,score\n1,v,0,2,1\n1,v,x,2,1\n", "line 3: start is 'x'"),
        ("r.csv", "query_id,video_id,start,end,score\n1,v,0,2\n", "line 2: the field score is missing"),
        ("r.csv", "query_id,video_id,start,end\n1,v,0,2\n", "line 1: the field 'score' is missing"),
        ("r.csv", "query_id,video_id,start,end,score\n1,v,nan,2,1\n", "line 2: start is nan"),
        ("r.jsonl", GOOD_ROW + '{"query_id":1', "line 2: not valid"),
        (
            "r.jsonl",
            '{"query_id":1,"video_id":"v","start":3,"end":2,"score":1}\n',
            "line 1: start is 3.0 and end",
        ),
        (
            "r.jsonl",
            '{"query_id":1,"video_id":"v","start":0,"end":2}\n',
            "line 1: the field 'score' is missing",
        ),
        (
            "r.jsonl",
            '{"query_id":[1],"video_id":"v","start":0,"end":2,"score":1}\n',
            r"line 1: query_id is \[1\]",
        ),
        (
            "r.json",
            '{"1": [\n{"video_id":"v","start":0,"end":2,"score":1},\n{"video_id":"v","start":0,'
            '"end":"2","score":1}]}',
            "line 3: query 1, moment 2: end is '2'",
        ),
        ("r.json", '{"1": [\n{"video_id":"v","start":NaN,"end":2,"score":1}]}', "line 2.*start is nan"),
        ("r.json", '{"1": [],\n "1": []}', "'1' stands twice"),
        ("r.json", '{"1": [],\n "2": 5}', "line 2: query 2: a list"),
        ("r.json", '{"1": [],\n "2": ', "line 2: not valid JSON"),
        ("r.trec", "1 Q0 v#0#2 1 0.5 me\n1 Q0 v#0 2 0.4 me\n", "line 2: document 'v#0'"),
        ("r.trec", "1 Q0 v#0#2 1 0.5 me\n1 Q0 v#0#3 2 high me\n", "line 2: score is 'high'"),
        ("r.trec", "1 Q0 v#0#2 1 0.5\n", "line 1: the field 'tag' is missing"),
        (
            "r.json",
            '{"video2idx": {"v": 0},\n"VCMR": [{"desc_id": 1, "predictions": [[1, 0, 2, 0.5]]}]}',
            "line 2: video index 1 is not in video2idx",
        ),
        (
            "r.jsonl",
            '{"qid": 1, "vid": "v", "pred_relevant_windows": [[0, 2]]}\n',
            "line 1: pred_relevant_windows",
        ),
        ("r.json", "", "empty"),
    ],
)
def test_a_damaged_row_is_named(tmp_path: Path, name: str, text: str, complaint: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DataError, match=complaint) as caught:
        read_run(path)
    assert name in str(caught.value)


def test_a_damaged_judgement_in_a_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    moment = {"video_name": "v", "timestamp": [0, 2], "relevance": 1}
    lists = [[moment], [moment, moment | {"timestamp": [2, 1]}]]
    rows = [{"query_id": n, "relevant_moment": moments} for n, moments in enumerate(lists)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match=r"test.jsonl: line 2: start is 2.0"):
        read_qrels(path)


def test_a_damaged_judgement_is_named(tmp_path: Path) -> None:
    path = tmp_path / "test.json"
    moment = {"video_name": "v", "timestamp": [0, 2], "relevance": 1}
    for change, complaint in (
        ({"timestamp": [0]}, "timestamp is"),
        ({"relevance": -1}, "relevance is -1"),
        ({"relevance": None}, "relevance is None"),
    ):
        rows = [{"query_id": 1, "relevant_moment": [moment, moment | change]}]
        path.write_text(json.dumps(rows).replace("{", "\n{"))
        with pytest.raises(DataError, match=f"line 4: {complaint}"):
            read_qrels(path)


def test_missing_files_and_unknown_suffixes_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_run(tmp_path / "no.json")
    path = tmp_path / "run.xyz"
    with pytest.raises(InvalidValue, match=r"suffix '\.xyz'"):
        write_run(RUN, path)
    write_run(RUN, path, "csv")
    assert read_run(path).rows() == RUN.rows()
    with pytest.raises(InvalidValue, match="format 'xyz'"):
        read_run(path, "xyz")
    path.write_bytes(b"query_id,video_id\n\xff\n")
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        read_run(path)


FIELDS = [
    "query_id",
    "video_id",
    "start",
    "end",
    "score",
    "qid",
    "vid",
    "desc_id",
    "video2idx",
    "VCMR",
    "pred_relevant_windows",
    "predictions",
    "1",
    "relevant_moment",
    "video_name",
    "timestamp",
    "relevance",
    "relevant_windows",
    "ts",
    "vid_name",
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(FIELDS),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(json_values.map(json.dumps) | st.text(max_size=60))
def test_anything_is_read_or_refused(tmp_path: Path, text: str) -> None:
    """No reader, named or found out, ends in anything but a moviola error."""
    path = tmp_path / "any"
    path.write_text(text, encoding="utf-8", errors="replace")
    readers: list[tuple[Any, Any]] = [(read_run, [None, *RUN_FORMATS]), (read_qrels, [None, *QRELS_FORMATS])]
    for read, formats in readers:
        for name in formats:
            try:
                read(path, name)
            except MoviolaError as error:
                assert str(error)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_good_file_damaged_anywhere_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "damaged"
    name, judged = data.draw(st.sampled_from(GOOD))
    moments: Qrels | Run = QRELS if judged else RUN
    if name == "qvhighlights":
        row = {"video_id": "v", "start": 0, "end": 2, "score": 1, "relevance": 1}
        moments = Qrels.from_dict({1: [row]}) if judged else Run.from_dict({1: [row, row]})
    (write_qrels if judged else write_run)(moments, path, name)  # type: ignore[operator]
    text = path.read_text()
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 8))
    token = data.draw(
        st.sampled_from(["", "null", "NaN", '"', "[]", "{}", "1e999", "-", ",", "\n", "#", "true"])
    )
    path.write_text(text[:at] + token + text[at + cut :])
    read = read_qrels if judged else read_run
    for given_name in (None, name):
        try:
            read(path, given_name)
        except MoviolaError as error:
            assert "damaged" in str(error)


GOOD = [
    (name, judged) for name in ("json", "jsonl", "csv", "trec", "qvhighlights") for judged in (False, True)
] + [
    ("tvr", False),
    ("tvr_ranking", True),
]


def test_a_place_that_cannot_be_written_is_named_and_what_stood_there_stays(tmp_path: Path) -> None:
    run = Run.from_dict({"a b": [{"video_id": "v", "start": 0, "end": 1, "score": 1}]})
    with pytest.raises(InvalidValue, match=r"folder\.json: cannot be written \(it is no regular file\)"):
        (tmp_path / "folder.json").mkdir()
        write_run(run, tmp_path / "folder.json")
    (tmp_path / "run.trec").write_text("old")
    with pytest.raises(InvalidValue, match="TREC files cannot hold an id with blanks"):
        write_run(run, tmp_path / "run.trec")
    assert (tmp_path / "run.trec").read_text() == "old"


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_lets_in_what_its_release_lets_in(tmp_path: Path, preset: str) -> None:
    """Moments of zero length: refused without a preset, read and without overlap under each."""
    run, qrels = tmp_path / "run.json", tmp_path / "qrels.json"
    run.write_text('{"1": [{"video_id": "v", "start": 3, "end": 3, "score": 1}]}')
    qrels.write_text('{"1": [{"video_id": "v", "start": 3, "end": 3, "relevance": 1}]}')
    for read, path in ((read_run, run), (read_qrels, qrels)):
        with pytest.raises(DataError, match="the end must come after the start"):
            read(path)
    found = evaluate(
        read_run(run, preset=preset), read_qrels(qrels, preset=preset), "nDCG@1,IoU>=0.5", preset
    )
    assert found.measures == {"nDCG@1,IoU>=0.5": 0}
    with pytest.raises(InvalidValue, match="preset 'none'"):
        read_run(run, preset="none")


@pytest.mark.parametrize(
    ("end", "before", "right"),
    [(2.0, 4, ["0.5-r5", "0.5-r10", "0.5-r100"]), (2.0, 5, ["0.5-r10", "0.5-r100"]), (1.9, 0, [])],
)
def test_recall_counts_an_iou_of_exactly_the_threshold_and_the_last_rank(
    end: float, before: int, right: list[str]
) -> None:
    """A moment of [0, 4], behind answers in another video."""
    answers = [*([[1, 0.0, 4.0, 1.0]] * before), [0, 0.0, end, 0.5]]
    submission = {"video2idx": {"v": 0, "w": 1}, "VCMR": [{"desc_id": 1, "predictions": answers}]}
    found = tvr_recall(submission, [{"desc_id": 1, "vid_name": "v", "ts": [0, 4]}])["VCMR"]
    assert [name for name, value in found.items() if value] == right


@pytest.mark.parametrize(
    ("places", "complaint"),
    [
        (["v"], r"video2idx: an object of videos is expected, not \['v'\]"),
        ({"v": [10.0, 0]}, r"video2idx: v: \[10.0, 0\]; give each video a whole number"),
        ({"v": "0"}, "video2idx: v: '0'; give each video a whole number"),
        ({"v": 0, "w": 0}, "video2idx: w: 0; give each video a whole number of its own"),
    ],
)
def test_videos_of_a_tvr_submission_have_whole_numbers(places: Any, complaint: str) -> None:
    """[duration, index], as TVR's own file of videos has it, once gave figures without a word."""
    answers = [{"desc_id": 1, "predictions": [[0, 0, 1, 1.0]]}]
    with pytest.raises(DataError, match=complaint):
        tvr_recall({"video2idx": places, "VCMR": answers}, [{"desc_id": 1, "vid_name": "v", "ts": [0, 1]}])


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"video2idx": {"v": 0, "w": 0},\n"VCMR": []}', "video2idx: two videos have one index"),
        (
            '{"video2idx": {"v": 0},\n"VCMR": [{"desc_id": 1, "predictions": []},\n'
            '{"desc_id": 1, "predictions": []}]}',
            "line 3: query 1 is given twice",
        ),
        (
            '{"qid": 1, "vid": "v", "pred_relevant_windows": []}\n'
            '{"qid": "1", "vid": "w", "pred_relevant_windows": []}\n',
            "line 2: query 1 is given twice",
        ),
    ],
)
def test_a_list_that_is_given_twice_is_no_longer_one(tmp_path: Path, content: str, complaint: str) -> None:
    path = tmp_path / "run"
    path.write_text(content)
    with pytest.raises(DataError, match=complaint):
        read_run(path)


@pytest.mark.parametrize("name", ["tvr", "qvhighlights"])
def test_ids_with_leading_zeros_are_kept(tmp_path: Path, name: str) -> None:
    moment = {"video_id": "v", "start": 0.0, "end": 1.0, "score": 0.5}
    run = Run.from_dict({name: [moment] for name in ("0", "01", "1", "7" * 5000)})
    write_run(run, tmp_path / "run", name)
    assert read_run(tmp_path / "run").query_ids == run.query_ids


def test_scores_of_trec_files_differ_in_single_precision(tmp_path: Path) -> None:
    moment = {"video_id": "v", "start": 0.0, "end": 1.0}
    below_1, largest = 1 - 2**-24, float(np.finfo(np.float32).max)
    step = 2.0**104  # the last one below the largest
    rows = {
        "a": ((1.00000002, 1.00000001), (1.00000002, below_1)),
        "b": ((1e300, 1e200), (1e300, largest - step)),
        "c": ((2.1, 1.1), (2.1, 1.1)),
        "d": ((0.0, 0.0, -0.5), (0.0, -(2.0**-149), -0.5)),
        "e": ((1.0, 1.0, below_1), (1.0, below_1, 1 - 2**-23)),
        "f": ((-1e300, -1e300), (step - largest, -1e300)),
        "g": ((1.0, 9.0, 0.05), (1.0, below_1, 0.05)),
    }
    given = {q: [{**moment, "score": score} for score in scores] for q, (scores, _) in rows.items()}
    write_run(Run.from_dict(given, ranked=True), tmp_path / "run.trec")
    written = read_run(tmp_path / "run.trec").score
    assert written.tolist() == [score for _, scores in rows.values() for score in scores]


def test_ties_leave_measures_of_scores_alone_in_a_trec_file(tmp_path: Path) -> None:
    """They made the best score of a query the number of its moments, beside which others look unsure."""
    moments = [{"video_id": "v", "start": start, "end": start + 2.0} for start in (0.0, 3.0, 6.0)]
    qrels = Qrels.from_dict({"a": [{**moments[0], "relevance": 1}], "b": [], "c": []})
    scores = {"a": (0.9, 0.3, 0.1), "b": (0.2, 0.2, 0.2), "c": (0.1, 0.1, 0.1)}
    run = Run.from_dict({
        q: [{**moment, "score": score} for moment, score in zip(moments, given, strict=True)]
        for q, given in scores.items()
    })  # fmt: skip
    write_run(run, tmp_path / "run.trec")
    again = read_run(tmp_path / "run.trec")
    assert again.start.tolist() == run.start.tolist()
    assert again.score == pytest.approx(run.score, rel=1e-6)
    measures = ["AUROC", "Rej-F1,score<=0.5", "Rej-Acc,score<=0.5", "G-mIoU@5,score<=0.5"]
    assert evaluate(again, qrels, measures).measures == evaluate(run, qrels, measures).measures


def test_ranks_of_a_trec_run_count_where_they_are_asked_for(tmp_path: Path) -> None:
    """Evaluators of TREC rank by score; where the column of ranks differs, that is noticed."""
    path = tmp_path / "run.trec"
    path.write_text("b Q0 v#0#2 3 0.9 me\na Q0 v#0#1 2 0.1 me\nb Q0 v#4#6 1 0.2 me\nb Q0 v#6#8 2 0.5 me\n")
    starts = {name: read_run(path, name).rows() for name in ("trec", "trec_rank")}
    assert [moment["start"] for moment in starts["trec"]["b"]] == [0.0, 6.0, 4.0]
    assert [moment["start"] for moment in starts["trec_rank"]["b"]] == [4.0, 6.0, 0.0]
    assert list(starts["trec_rank"]) == ["b", "a"]
    assert ranks_disagree(path)
    for agreeing in (
        "a Q0 v#0#2 1 0.9 me\na Q0 v#4#6 2 0.9 me\nb Q0 v#4#6 1 5 me\n",  # equal scores, another query
        "a Q0 v#0#2 0 0.1 me\na Q0 v#4#6 0 0.9 me\n",  # ranks that say nothing
    ):
        path.write_text(agreeing)
        assert not ranks_disagree(path)
    path.write_text("a Q0 v#0#2 1 0.9 me\na Q0 v#4#6 second 0.2 me\n")
    with pytest.raises(DataError, match="line 2: rank is 'second'; it must be a number"):
        read_run(path, "trec_rank")
    (tmp_path / "run.jsonl").write_text("")
    assert not ranks_disagree(tmp_path / "run.jsonl")


def test_numbers_that_are_too_large_are_named() -> None:
    truth = [{"desc_id": 1, "vid_name": "v", "ts": [0, 1]}]
    submission: dict[str, Any] = {"video2idx": {"v": 0}, "VCMR": []}
    with pytest.raises(DataError, match="annotation 1: ts is"):
        tvr_recall(submission, [{**truth[0], "ts": [0, 10**400]}])
    submission["VCMR"] = [{"desc_id": 1, "predictions": [[0, 0, 10**400, 1]]}]
    with pytest.raises(DataError, match="VCMR, entry 1"):
        tvr_recall(submission, truth)


def test_an_empty_line_before_a_header_changes_no_format(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("\nquery_id,video_id,start,end,score\nq,v,0,1,0.5\n")
    assert read_run(path).query_ids == ("q",)


def test_columns_have_one_row_for_each_moment() -> None:
    with pytest.raises(InvalidValue, match="columns of 1, 1, 2, 1, 1 rows"):
        Run.from_columns(["q"], ["v"], [0.0, 5.0], [1.0], [0.5])
    with pytest.raises(InvalidValue, match="video_id nan: must be text"):
        Run.from_columns(["q"], [float("nan")], [0.0], [1.0], [0.5])


@pytest.mark.parametrize("name", ["run.trec", "run.txt"])
def test_a_trec_file_whose_ids_hold_commas_is_read(tmp_path: Path, name: str) -> None:
    rows = {"a,b": [{"video_id": "v,1", "start": 0.0, "end": 5.0, "score": 0.5}]}
    write_run(Run.from_dict(rows), tmp_path / name)
    assert read_run(tmp_path / name).rows() == rows
