"""Single queries beside their answers, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from measure_studies.cases import CaseRow, case_study, cases
from moviola.errors import InvalidValue, NotFound
from moviola.study.measures import Qrels, Run

QRELS = Qrels.from_dict(
    {
        "1": [
            {"video_id": "a", "start": 0, "end": 10, "relevance": 4},
            {"video_id": "a", "start": 20, "end": 30, "relevance": 2},
            {"video_id": "b", "start": 0, "end": 4, "relevance": 1},
        ],
        "2": [{"video_id": "b", "start": 5, "end": 9, "relevance": 3}],
    }
)
RUN = Run.from_dict(
    {
        "1": [
            {"video_id": "b", "start": 50, "end": 60, "score": 9},
            {"video_id": "a", "start": 1, "end": 9, "score": 8},
            {"video_id": "a", "start": 0, "end": 10, "score": 7},  # its answer is taken
            {"video_id": "b", "start": 0, "end": 4, "score": 6},  # beyond the depth
        ]
    }
)


def test_predictions_come_first_and_then_what_they_missed() -> None:
    first, second = cases(RUN, QRELS, ["1", "2"], measure="nDCG@3,IoU>=0.5")
    assert first.query == "1"
    assert first.rows == (
        CaseRow("b", 1, (50.0, 60.0), None, 0.0),
        CaseRow("a", 2, (1.0, 9.0), (0.0, 10.0), 4.0),
        CaseRow("a", 3, (0.0, 10.0), None, 0.0),
        CaseRow("a", None, None, (20.0, 30.0), 2.0),
        CaseRow("b", None, None, (0.0, 4.0), 1.0),
    )
    assert second.rows == (CaseRow("b", None, None, (5.0, 9.0), 3.0),)
    (deeper,) = cases(RUN, QRELS, ["1"], measure="nDCG@4,IoU>=0.9")
    taken = [(row.rank, row.relevance) for row in deeper.rows]
    assert taken == [(1, 0.0), (2, 0.0), (3, 4.0), (4, 1.0), (None, 2.0)]


def test_table_and_figure(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'moviola[studies]'")
    made = case_study(RUN, QRELS, measure="nDCG@3,IoU>=0.5")
    assert [row[0] for row in made.rows] == ["1"] * 5 + ["2"]
    assert made.rows[1] == ("1", 2, "a", 1.0, 9.0, 0.0, 10.0, 4.0)
    assert made.rows[-1] == ("2", None, "b", None, None, 5.0, 9.0, 3.0)
    assert len(made.figure.axes) == 2
    assert all(path.stat().st_size for path in made.write(tmp_path))


def test_what_cannot_be_shown() -> None:
    with pytest.raises(NotFound, match="query '7': not judged; give one of 1, 2"):
        cases(RUN, QRELS, ["7"])
    with pytest.raises(InvalidValue, match="needs an overlap"):
        cases(RUN, QRELS, ["1"], measure="AxIoU@10")
