"""Readers of public annotation files: real ones, small ones of each form, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import DataError, InvalidValue, MoviolaError, NotFound
from moviola.study.datasets.annotations import Flaw
from moviola.study.datasets.readers import (
    READERS,
    kind_of,
    read_annotations,
    read_questions,
    read_video_corpus,
    write_own_pairs,
    write_tvr,
)
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.datasets.statistics import statistics
from moviola.study.measures import read_qrels, read_run, write_run

TVR = {"vid_name": "v", "duration": 60.5, "ts": [1, 2.5], "desc": "One.", "type": "v", "desc_id": 7}
PAIR = {
    "pair_id": 7,
    "video_name": "v",
    "timestamp": [1, 2.5],
    "duration": 60.5,
    "caption": "One.",
    "relevance": 3,
}
TACOS = {"fps": 20, "num_frames": 1210, "timestamps": [[20, 50]], "sentences": ["One."]}
QVH = {"qid": 7, "query": "One.", "vid": "v", "duration": 60.5, "relevant_windows": [[1, 2.5]]}
EXTREME = {
    "qid": "v_q1",
    "video_id": "v",
    "source_corpus": "MLVU",
    "question": "One.",
    "correct_interval": [1, 2.5],
    "video_duration_s": 60.5,
}
SEEKER = {
    "qry_text": "One.",
    "qry_img_path": "",
    "qry_video_path": "",
    "src_video_path": "./videos/v.mp4",
    "task": "OCR",
    "answering_time_interval": [[1, 2.5]],
}
TIMELENS = {"duration": 60.5, "spans": [[1, 2.5]], "queries": ["One."]}
FIG = {"video": "v", "time": [1, 2.5], "desc_id": 5, "duration": 60.5, "cog_desc": "o", "fig_desc": "One."}
DIDEMO = {"annotation_id": 7, "description": "One.", "video": "v", "times": [[0, 0], [1, 2], [1, 2]]}

SMALL: dict[str, tuple[str, Any]] = {
    "tvr": ("a.jsonl", [TVR]),
    "tvr_ranking": ("a.json", [{"query_id": 1, "query": "q", "relevant_moment": [PAIR]}]),
    "charades": ("a.txt", "v 1 2.5##One.\n"),
    "activitynet": ("a.json", {"v": {"duration": 60.5, "timestamps": [[1, 2.5]], "sentences": [" One."]}}),
    "tacos": ("a.json", {"v": TACOS}),
    "qvhighlights": ("a.jsonl", [QVH]),
    "didemo": ("a.json", [DIDEMO]),
    "extreme_when_bench": ("a.jsonl", [EXTREME]),
    "moment_seeker": ("a.json", [SEEKER]),
    "qv_m2": ("a.jsonl", [QVH]),
    "soccer_gmr": ("a.jsonl", [{**QVH, "action_type": "goal"}]),
    "timelens": ("a.json", {"v": TIMELENS}),
    "charades_fig": ("a.jsonl", [FIG]),
    "didemo_fig": ("a.jsonl", [FIG]),
    "activitynet_fig": ("a.jsonl", [FIG]),
}


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    if isinstance(content, str):
        path.write_text(content)
    elif name.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("kind", sorted(READERS))
def test_one_moment_of_each_form(tmp_path: Path, kind: str) -> None:
    found = read_annotations(write(tmp_path, *SMALL[kind]), kind)
    assert found.videos == ("v",)
    assert found.captions == ("One.",)
    expected = (5.0, 15.0) if kind == "didemo" else (1.0, 2.5)
    assert (found.start[0], found.end[0]) == pytest.approx(expected)
    if kind in ("charades", "moment_seeker"):
        assert np.isnan(found.durations[0])
    else:
        assert found.durations[0] == pytest.approx(30.0 if kind == "didemo" else 60.5)


LIKE = {"qv_m2": "qvhighlights", "didemo_fig": "charades_fig", "activitynet_fig": "charades_fig"}
"""Data sets whose files have the form of another one, and are found out as that."""


@pytest.mark.parametrize("kind", sorted(READERS))
def test_the_data_set_of_a_file_is_found_out(tmp_path: Path, kind: str) -> None:
    """No command asks for it. A form that looks like another one's would be read as that, or not at all."""
    path = write(tmp_path, *SMALL[kind])
    assert kind_of(path) == LIKE.get(kind, kind)
    found, named = read_annotations(path), read_annotations(path, LIKE.get(kind, kind))
    assert (found.captions, found.moment_ids) == (named.captions, named.moment_ids)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.jsonl", [{"vid": "v", "duration": 60.5, "ts": [1, 2.5], "desc": "One."}], "charades"),
        ("a.jsonl", [{"query_id": 1, "query": "q", **PAIR}], "tvr_ranking"),
        ("a.jsonl", [{"desc": "x", "desc_id": 1, "vid_name": "v"}], "tvr"),
        ("a.json", '\n [\n{"annotation_id": 7, "times": []}]', "didemo"),
    ],
)
def test_other_forms_are_found_out(tmp_path: Path, name: str, content: Any, kind: str) -> None:
    assert kind_of(write(tmp_path, name, content)) == kind


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no data set that is known"),
        ("a line\n", "no data set that is known"),
        ("[]", r"known \(its first entry has no fields\); bring them to the form of TVR"),
        ("[1]", "its first entry has no fields"),
        ('{"colour": 1}\n', "its first entry has colour"),
        ('{"v": {"fps": 1}}', "its first entry has fps"),
        ('[\n{"a": 1},\n{"b"}]', "line 3: not valid JSON"),
        ('{"a": ', "line 1: not valid JSON"),
    ],
)
def test_a_file_of_no_known_data_set_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=f"a.json: .*{message}"):
        read_annotations(write(tmp_path, "a.json", content))


def test_durations_of_charades_lie_beside(tmp_path: Path) -> None:
    """They are those of the file's own part, and count where the data set is found out."""
    path = write(tmp_path, "charades_sta_test.txt", "v 1 2.5##One.\n")
    write(tmp_path, "durations_train.csv", "id,length\nv,99\n")
    assert np.isnan(read_annotations(path).durations[0])
    write(tmp_path, "durations.csv", "id,length\nv,60\n")
    assert read_annotations(path).durations.tolist() == [60]
    write(tmp_path, "durations_test.csv", "id,length\nv,50\n")
    assert read_annotations(path).durations.tolist() == [50]
    assert np.isnan(read_annotations(path, "charades").durations[0])


@pytest.mark.parametrize(
    ("kind", "name", "content", "message"),
    [
        ("tvr", "a.jsonl", "{]", "a.jsonl: line 1: not valid JSON"),
        ("tvr", "a.jsonl", "[1]", "line 1: an object is expected"),
        ("tvr", "a.jsonl", [{"desc": "x", "desc_id": 1}], "line 1: the field 'ts' is missing"),
        ("tvr", "a.jsonl", [{**TVR, "ts": [1]}], r"ts: \[start, end\] is expected"),
        ("tvr", "a.jsonl", [{**TVR, "duration": "long"}], "duration: 'long' is no number"),
        ("tvr_ranking", "a.json", [{"query_id": 1}], "entry 1: relevant_moment: a list is expected"),
        (
            "charades",
            "a.txt",
            "v 1 2.5##One.\nv 1##Two.\n",
            "line 2: 'video start end##sentence' is expected",
        ),
        ("charades", "a.txt", "v one 2##One.", "start: 'one' is no number"),
        (
            "extreme_when_bench",
            "a.jsonl",
            [{**EXTREME, "correct_interval": 3}],
            r"\[start, end\] is expected",
        ),
        ("extreme_when_bench", "a.jsonl", [EXTREME, EXTREME], "question v_q1 is given 2 times"),
        ("extreme_when_bench", "a.jsonl", "", "holds no question"),
        ("moment_seeker", "a.json", {}, "a list of questions is expected"),
        ("moment_seeker", "a.json", [1], "entry 1: an object is expected"),
        ("moment_seeker", "a.json", [{**SEEKER, "candidate_video_list": []}], "this is an older file"),
        ("qv_m2", "a.jsonl", [{**QVH, "relevant_windows": 1}], r"a list of \[start, end\] is expected"),
        ("soccer_gmr", "a.jsonl", [{**QVH, "relevant_windows": [[3, 1]]}], "end comes before the start"),
        ("timelens", "a.json", [], "an object keyed by video is expected"),
        ("timelens", "a.json", {"v": {**TIMELENS, "spans": []}}, "two lists of one length are expected"),
        ("charades_fig", "a.jsonl", [{**FIG, "desc_id": ""}], "the field 'desc_id' is missing"),
        (
            "activitynet",
            "a.json",
            {"v": {"duration": 3, "timestamps": [], "sentences": ["a"]}},
            "v: timestamps",
        ),
        ("activitynet", "a.json", [], "keyed by video"),
        (
            "activitynet",
            "a.json",
            {"v": {"duration": 3, "timestamps": [[0, 1]], "sentences": [None]}},
            "v: sentences: a list of texts is expected",
        ),
        ("tacos", "a.json", {"v": {**TACOS, "fps": 0}}, "fps: must be above 0"),
        (
            "qvhighlights",
            "a.jsonl",
            [{"qid": 1, "query": "q", "vid": "v", "duration": 3}],
            "relevant_windows",
        ),
        ("didemo", "a.json", [{"times": []}], "entry 1: times"),
    ],
)
def test_damage_is_named(tmp_path: Path, kind: str, name: str, content: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_annotations(write(tmp_path, name, content), kind)


def test_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_annotations(tmp_path / "a.json", "didemo")
    with pytest.raises(InvalidValue, match="choose tvr"):
        read_annotations(tmp_path / "a.json", "nosuch")


def test_lines_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    lengths = write(tmp_path, "d.csv", "id,length\nv,10\n")
    path = write(tmp_path, "a.txt", "v 1 2##A.\nv 3 3##B.\nw 1 2##C.\nv 8 30##D.\n")
    found = read_annotations(path, "charades", lengths)
    assert found.captions == ("A.", "D.")
    assert found.flaw_counts == {"no extent": 1, "missing video": 1, "beyond the video": 1}
    assert [flaw.where for flaw in found.flaws] == ["2 (v)", "3 (w)", "4 (v)"]
    assert found.moment_ids == ("1", "4")


def test_videos_of_two_durations_are_reported(tmp_path: Path) -> None:
    lengths = write(tmp_path, "d.csv", "id,length\nv,60\nw,61\n")
    rows = [{**TVR, "desc_id": place, "duration": length} for place, length in enumerate((60.4, 60.1, 30))]
    found = read_annotations(write(tmp_path, "a.jsonl", rows), "tvr", lengths)
    assert found.flaws == (Flaw("other duration", "v"),)


def test_ids_of_several_moments_are_reported(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", [{**TVR, "desc_id": name} for name in (1, 2, 1, 1)])
    found = read_annotations(path, "tvr")
    assert found.moment_ids == ("1", "2", "1", "1")
    assert found.flaws == (Flaw("same id", "1"),)


def test_moments_without_a_caption_are_reported_and_survive_their_file(tmp_path: Path) -> None:
    entry = {"duration": 9, "timestamps": [[0, 1], [2, 3]], "sentences": ["A.", " "]}
    found = read_annotations(write(tmp_path, "a.json", {"v": entry}), "activitynet")
    write_tvr(found, tmp_path / "a.jsonl")
    again = read_annotations(tmp_path / "a.jsonl", "tvr")
    assert found.captions == again.captions == ("A.", "")
    assert found.flaws == again.flaws == (Flaw("no caption", "2 (v)"),)
    with pytest.raises(InvalidValue, match="moment 2 has no caption, which would be its query"):
        write_own_pairs(again, tmp_path / "pairs.json")


def test_the_same_moment_in_many_pairs_is_one(tmp_path: Path) -> None:
    lines = [{"query_id": n, "query": f"q{n}", **PAIR} for n in range(3)]
    assert len(read_annotations(write(tmp_path, "a.jsonl", lines), "tvr_ranking")) == 1


@pytest.mark.parametrize("kind", ["qvhighlights", "qv_m2"])
def test_a_query_with_several_moments_stays_one(tmp_path: Path, kind: str) -> None:
    """In a pair file it has all of them, as its own annotations judge it; statistics count it once."""
    rows = [{**QVH, "relevant_windows": [[1, 2], [5, 9]]}, {**QVH, "qid": 8, "query": "Two."}]
    path = write(tmp_path, "a.jsonl", rows)
    found = read_annotations(path, kind)
    assert len(set(found.moment_ids)) == len(found) == 3
    assert found.queries == (("7", "One."), ("8", "Two."))
    assert (statistics(found).queries, statistics(found).moments) == (2, 3)
    write_own_pairs(found, tmp_path / "pairs.json")
    assert read_qrels(tmp_path / "pairs.json").rows() == read_qrels(path).rows()


@pytest.mark.parametrize("kind", ["qvhighlights", "soccer_gmr"])
def test_queries_without_an_answer_are_counted_not_dropped(tmp_path: Path, kind: str) -> None:
    rows = [QVH, {**QVH, "qid": 8, "query": "Two.", "relevant_windows": []}]
    found = read_annotations(write(tmp_path, "a.jsonl", rows), kind)
    assert found.queries == (("7", "One."),)
    assert [(flaw.kind, flaw.where) for flaw in found.flaws] == [("no answer", "8 (v)")]


@pytest.mark.parametrize(
    "content", [{"a": 3.5, "b": 2}, {"a": [3.5, 0], "b": [2, 1]}, {"train": {"a": [3.5, 0]}, "val": {"b": 2}}]
)
def test_video_corpora_of_every_form(tmp_path: Path, content: Any) -> None:
    assert read_video_corpus(write(tmp_path, "c.json", content)) == {"a": 3.5, "b": 2.0}


def test_selecting_keeps_columns_together(tmp_path: Path) -> None:
    path = write(tmp_path, "a.txt", "v 1 2##A.\nv 3 4##B.\nw 5 6##C.\n")
    picked = read_annotations(path, "charades").select(np.array([False, True, True]))
    assert (picked.captions, picked.start.tolist(), picked.videos) == (("B.", "C."), [3, 5], ("v", "w"))


@pytest.mark.parametrize("kind", sorted(READERS))
@given(text=st.one_of(st.text(max_size=40), st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["v", "ts", "vid_name", "desc", "desc_id", "duration", "times", "video", "timestamps",
                         "sentences", "fps", "relevant_moment", "query_id", "timestamp", "vid", "qid",
                         "spans", "queries", "question", "qry_text"]),
        inner, max_size=4),
    max_leaves=12).map(json.dumps)))  # fmt: skip
def test_any_content_gives_annotations_or_an_error_of_ours(
    tmp_path_factory: pytest.TempPathFactory, kind: str, text: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "file.json"
    path.write_text(text, encoding="utf-8", errors="replace")
    try:
        found = read_annotations(path, kind)
    except MoviolaError as error:
        assert "file.json" in str(error)
    else:
        assert (found.end > found.start).all()


REAL = [
    ("tvr", "tvr/tvr_val_release.jsonl", "tvr/tvr_video2dur_idx.json", 10895, {}),
    ("charades", "charades-sta/charades_sta_test.txt", "charades-sta/durations_test.csv", 3720, None),
    ("charades", "charades-sta/charades_sta_train.txt", None, 12404, {"no extent": 4}),
    ("activitynet", "activitynet-captions/val_2.json", None, 17031, {}),
    ("tacos", "tacos/val.json", None, None, {}),
]


@pytest.mark.parametrize(("kind", "name", "durations", "count", "flaws"), REAL)
def test_real_files(
    annotations: Path, kind: str, name: str, durations: str | None, count: int | None, flaws: Any
) -> None:
    found = read_annotations(annotations / name, kind, annotations / durations if durations else None)
    assert count is None or len(found) == count
    assert flaws is None or found.flaw_counts == flaws
    assert (found.end > found.start).all()
    if kind == "tvr":
        assert {kind: found.types.count(kind) for kind in ("v", "vt", "t")} == {
            "v": 8097,
            "vt": 1834,
            "t": 964,
        }


def test_questions_keep_ids_groups_pictures_and_empty_answers(tmp_path: Path) -> None:
    seeker = [SEEKER, {**SEEKER, "qry_img_path": "query/a.jpg"}]
    found = read_questions(write(tmp_path, "t2v.json", seeker), "moment_seeker")
    assert [row.query_id for row in found] == ["1", "2"]
    assert [row.picture for row in found] == [None, tmp_path / "query/a.jpg"]
    assert found.rows[0].group == "OCR" and found.videos == ("v",)
    rows = [
        QVH,
        {**QVH, "qid": 8, "relevant_windows": []},
        {**QVH, "qid": 9, "relevant_windows": [[0, 1], [2, 3]]},
    ]
    soccer = read_questions(write(tmp_path, "a.jsonl", rows), "soccer_gmr")
    assert [row.windows for row in soccer] == [((1.0, 2.5),), (), ((0.0, 1.0), (2.0, 3.0))]
    assert soccer.annotations().moment_ids == ("7", "9-1", "9-2")
    timelens = read_questions(write(tmp_path, "b.json", {"v": TIMELENS}), "timelens")
    assert timelens.rows[0].query_id == "v.mp4>>>One.>>>[1, 2.5]"
    with pytest.raises(InvalidValue, match="benchmark 'x': unknown; choose extreme_when_bench"):
        read_questions(tmp_path / "a.jsonl", "x")


@pytest.mark.parametrize("indent", [None, 1])
def test_a_run_is_no_file_of_queries(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "run.json"
    run = {"1": [{"video_id": "a", "start": 0, "end": 1, "score": 0.5}], "2": []}
    path.write_text(json.dumps(run, indent=indent))
    with pytest.raises(DataError, match=r"run\.json: a run or judgements, moments by query, .* give queries"):
        read_queries(path)
    for suffix in (".csv", ".trec"):
        write_run(read_run(path), rows := path.with_suffix(suffix))
        with pytest.raises(DataError, match=f"run{suffix}: a run or judgements, moments by query"):
            read_queries(rows)
    path.write_text('{"query_id": "1"}\n')
    with pytest.raises(DataError, match="line 1: the field 'query' is missing"):
        read_queries(path)
    path.write_text('{"query_id": "1", "query": "a dog"}\n')
    assert [query.text for query in read_queries(path)] == ["a dog"]
    path.write_text("a dog, video_id, and a cat\n1 0 #1 of all\n")
    assert len(read_queries(path)) == 2


def test_separators_of_unicode_end_no_line(tmp_path: Path) -> None:
    path = tmp_path / "queries.txt"
    path.write_bytes("a man\u2028walks\r\n\ra dog\x85barks\n".encode())
    assert [query.text for query in read_queries(path)] == ["a man\u2028walks", "a dog\x85barks"]
    path.write_text("v 0 5##A man\x85walks.\n", encoding="utf-8")
    assert read_annotations(path, "charades").captions == ("A man\x85walks.",)
