"""The file of a task: batches, answers, changes; raters at the same time; killed and opened again."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from full_disk import full_disk
from moviola.errors import AlreadyJudged, DataError, InvalidValue, LibraryError, NotFound
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.consensus import Rating, agree, consensus
from moviola.study.judging import JudgingTask, TaskSettings
from moviola.study.judging.task import HOLD_SECONDS

NewTask = Callable[..., JudgingTask]


def judge_all(task: JudgingTask, rater: str, level: int) -> list[str]:
    """One rater judges all that is left for them; gives the pairs."""
    task.sign_in(rater)
    done = []
    while batch := task.next_batch(rater):
        for moment in batch.moments:
            if moment.level is None and not moment.passed:
                task.answer(rater, moment.pair_id, level)
                done.append(moment.pair_id)
    return done


def test_two_raters_come_to_an_agreement(new_task: NewTask) -> None:
    task = new_task(queries=2, moments=25)
    assert len(judge_all(task, "Anna", 3)) == 40  # nobody has agreed, so no second batch is due
    assert len(judge_all(task, "Ben", 2)) == 50  # and now it is: the first ends relevant
    assert len(judge_all(task, "Anna", 3)) == 10
    assert judge_all(task, "Carla", 3) == []
    found = task.outcome()
    assert set(found.agreed.values()) == {3} and len(found.agreed) == 50


def test_a_batch_is_twenty_moments_of_one_query(new_task: NewTask) -> None:
    task = new_task(queries=3, moments=40)
    task.sign_in("Anna")
    batch = task.next_batch("Anna")
    assert batch is not None
    assert len(batch.moments) == 20
    assert {moment.pair_id.partition(":")[0] for moment in batch.moments} == {batch.query_id}
    assert task.next_batch("Anna") == batch  # it is held until it is judged
    task.answer("Anna", batch.moments[0].pair_id, 4)
    again = task.next_batch("Anna")
    assert again is not None and again.moments[0].level == 4 and again.moments[1:] == batch.moments[1:]


def test_raters_who_disagree_are_followed_by_two_more(new_task: NewTask) -> None:
    task = new_task(moments=2)
    assert len(judge_all(task, "Anna", 0)) == 2
    assert len(judge_all(task, "Ben", 4)) == 2
    assert task.outcome().standing == {"1:1": "open", "1:2": "open"}
    assert judge_all(task, "Anna", 0) == []
    assert len(judge_all(task, "Carla", 1)) == 2
    task.sign_in("Dirk")
    task.answer("Dirk", "1:1", 1)
    task.answer("Dirk", "1:2", 4)
    found = task.outcome()
    assert found.agreed == {"1:1": 1}
    assert found.standing["1:2"] == "discarded"
    assert judge_all(task, "Eva", 3) == []


def test_work_is_not_done_three_times(new_task: NewTask) -> None:
    """Two hold the only batch, so that a third gets nothing, until one of them has been away for too long."""
    task = new_task()
    for rater in ("Anna", "Ben", "Carla"):
        task.sign_in(rater)
    assert task.next_batch("Anna") and task.next_batch("Ben")
    assert task.next_batch("Carla") is None
    with pytest.raises(AlreadyJudged, match="1:1: others have judged it"):
        task.answer("Carla", "1:1", 3)


def test_a_query_held_for_too_long_goes_to_another(new_task: NewTask, clock: Callable[[], float]) -> None:
    task = new_task()
    for rater in ("Anna", "Ben", "Carla"):
        task.sign_in(rater)
    assert task.next_batch("Anna") and task.next_batch("Ben")
    clock.now += HOLD_SECONDS / 2  # type: ignore[attr-defined]
    task.answer("Ben", "1:1", 2)  # Ben is still there
    clock.now += HOLD_SECONDS / 2 + 1  # type: ignore[attr-defined]
    batch = task.next_batch("Carla")
    assert batch is not None and {moment.pair_id for moment in batch.moments} == {"1:1", "1:2", "1:3"}
    with pytest.raises(AlreadyJudged, match="others have judged it"):
        task.answer("Anna", "1:2", 2)
    back = task.next_batch("Anna")
    assert back is None


def taken_over_from_anna(new_task: NewTask, clock: Callable[[], float]) -> JudgingTask:
    """Ben and Carla hold what Anna held too long; of 1:1, which Ben cannot judge, one place is free again."""
    task = new_task()
    for rater in ("Anna", "Ben", "Carla"):
        task.sign_in(rater)
    assert task.next_batch("Anna")
    clock.now += HOLD_SECONDS + 1  # type: ignore[attr-defined]
    assert task.next_batch("Ben") and task.next_batch("Carla")
    task.answer("Ben", "1:1", None)
    return task


def test_what_others_took_over_does_not_come_back_by_asking_again(
    new_task: NewTask, clock: Callable[[], float]
) -> None:
    task = taken_over_from_anna(new_task, clock)
    for _ in range(2):
        batch = task.next_batch("Anna")
        assert batch is not None and [moment.pair_id for moment in batch.moments] == ["1:1"]
    task.answer("Anna", "1:1", 3)
    with pytest.raises(AlreadyJudged):
        task.answer("Anna", "1:2", 3)


def test_what_others_took_over_does_not_come_back_by_answering_the_rest(
    new_task: NewTask, clock: Callable[[], float]
) -> None:
    task = taken_over_from_anna(new_task, clock)
    task.answer("Anna", "1:1", 3)
    with pytest.raises(AlreadyJudged):
        task.answer("Anna", "1:2", 3)


def test_an_answer_of_an_earlier_batch_that_is_withdrawn_comes_with_its_own_query(new_task: NewTask) -> None:
    task = new_task(queries=2, raters=1)
    task.sign_in("Anna")
    first = task.next_batch("Anna")
    assert first is not None
    for moment in first.moments:
        task.answer("Anna", moment.pair_id, 3)
    second = task.next_batch("Anna")
    assert second is not None and second.query_id != first.query_id
    task.undo("Anna", first.moments[0].pair_id)
    for shown in (first, second):
        batch = task.next_batch("Anna")
        assert batch is not None and batch.query_id == shown.query_id
        assert {moment.pair_id for moment in batch.moments} == {moment.pair_id for moment in shown.moments}
        for moment in batch.moments:
            task.answer("Anna", moment.pair_id, 3)
    assert task.next_batch("Anna") is None


def test_answers_can_be_changed_passed_over_and_taken_back(new_task: NewTask) -> None:
    task = new_task(moments=1)
    judge_all(task, "Anna", 0)
    judge_all(task, "Ben", 1)
    assert task.outcome().agreed == {"1:1": 1}
    task.answer("Anna", "1:1", 4)
    assert task.outcome().standing == {"1:1": "open"}
    task.answer("Anna", "1:1", 2)
    assert task.outcome().agreed == {"1:1": 2}
    task.undo("Anna", "1:1")
    assert [answer.rater for answer in task.answers()] == ["Ben"]
    assert task.next_batch("Anna")  # it is hers still
    task.answer("Anna", "1:1", None)
    task.sign_in("Carla")
    batch = task.next_batch("Carla")
    assert batch is not None and batch.moments[0].pair_id == "1:1"
    with pytest.raises(NotFound, match="Carla has given no answer"):
        task.undo("Carla", "1:1")


def test_a_rater_sees_nothing_of_ranks_systems_and_others(new_task: NewTask) -> None:
    task = new_task(moments=20)
    judge_all(task, "Anna", 4)
    task.sign_in("Ben")
    batch = task.next_batch("Ben")
    assert batch is not None
    assert {field for moment in batch.moments for field in moment.__slots__} == {
        "pair_id", "video_id", "start", "end", "level", "passed"
    }  # fmt: skip
    assert all(moment.level is None for moment in batch.moments)
    assert [moment.start for moment in batch.moments] != sorted(moment.start for moment in batch.moments)


def test_names_are_one_however_they_are_written(new_task: NewTask) -> None:
    task = new_task()
    assert task.sign_in("  Anna   Berg ") == "Anna Berg"
    assert task.sign_in("anna berg") == "Anna Berg"
    assert task.raters() == ["Anna Berg"]
    for name in ("", "  ", "x" * 61, "a\x00b", "\ud800"):
        with pytest.raises(InvalidValue, match="give 1 to 60 letters"):
            task.sign_in(name)


@pytest.mark.parametrize(("rater", "pair", "level"), [("Zoe", "1:1", 3), ("Anna", "9:9", 3)])
def test_unknown_raters_and_pairs(new_task: NewTask, rater: str, pair: str, level: int) -> None:
    task = new_task()
    task.sign_in("Anna")
    with pytest.raises(NotFound):
        task.answer(rater, pair, level)


@pytest.mark.parametrize("level", [-1, 5, 2.5])
def test_levels_out_of_range(new_task: NewTask, level: int) -> None:
    task = new_task()
    task.sign_in("Anna")
    with pytest.raises(InvalidValue, match="give 0 to 4"):
        task.answer("Anna", "1:1", level)
    assert task.answers() == []


def test_files_that_are_no_task(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="moviola judge new"):
        JudgingTask(tmp_path / "none.sqlite")
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE t (x)")
    with pytest.raises(DataError, match="is no judging task"):
        JudgingTask(tmp_path / "other.sqlite")
    (tmp_path / "noise.sqlite").write_bytes(b"noise" * 1000)
    with pytest.raises(LibraryError, match=r"damaged judging task .*make a new task"):
        JudgingTask(tmp_path / "noise.sqlite")


def test_a_task_is_not_written_over(new_task: NewTask, tmp_path: Path) -> None:
    task = new_task()
    with pytest.raises(InvalidValue, match="exists already"):
        JudgingTask.create(task.path, task.pairs, TaskSettings())
    with pytest.raises(InvalidValue, match="no moment to judge"):
        JudgingTask.create(tmp_path / "empty.sqlite", [], TaskSettings())
    with pytest.raises(InvalidValue, match="a pair id is given twice"):
        JudgingTask.create(tmp_path / "twice.sqlite", [*task.pairs, *task.pairs], TaskSettings())
    assert not (tmp_path / "empty.sqlite").exists()


@pytest.mark.parametrize("wrong", [{"raters": 3}, {"raters": 0}, {"last": 0}, {"seed": -1}, {"seed": 2**64}])
def test_settings_out_of_range(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidValue):
        TaskSettings(**wrong)


def test_many_raters_at_once(new_task: NewTask) -> None:
    """Eight threads judge; every moment ends with two ratings and none with more."""
    task = new_task(queries=4, moments=10)
    names = [task.sign_in(f"rater {number}") for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(judge_all, task, name, 3) for name in names]:
            done.result()
    count: dict[str, int] = defaultdict(int)
    for answer in task.answers():
        count[answer.pair_id] += 1
    assert set(count.values()) == {2} and len(count) == 40


KILLED = """
import os, signal, sys
from pathlib import Path
from moviola.study.judging import JudgingTask
task = JudgingTask(Path(sys.argv[1]))
task.sign_in("Anna")
for moment in task.next_batch("Anna").moments:
    task.answer("Anna", moment.pair_id, 3)
    print(moment.pair_id, flush=True)
    if moment.pair_id == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_that_was_answered_is_lost_when_the_process_is_killed(new_task: NewTask) -> None:
    task = new_task(moments=20)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(task.path), "1:7"],
        capture_output=True, text=True, check=False, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    acknowledged = done.stdout.split()
    assert "1:7" in acknowledged
    task.close()
    again = JudgingTask(task.path)
    assert [answer.pair_id for answer in again.answers()] == acknowledged
    left = again.next_batch("Anna")
    assert left is not None and sum(moment.level is None for moment in left.moments) == 20 - len(acknowledged)


class Judging(RuleBasedStateMachine):
    """Any order of raters' answers, changes and undoing, opened again at any time, against a plain model."""

    RATERS = ("Anna", "Ben", "Carla", "Dirk", "Eva")
    raters = st.sampled_from(RATERS)

    @initialize(wanted=st.sampled_from([1, 2, 4]))
    def begin(self, wanted: int) -> None:
        self.folder = TemporaryDirectory()
        self.now, self.wanted = 0.0, wanted
        pairs = [Pair(f"{q}:{m}", q, q, "v", m, m + 1.0, 9.0, "", 1 / m, m) for q in "qr" for m in (1, 2, 3)]
        self.path = Path(self.folder.name) / "task.sqlite"
        self.task = JudgingTask.create(self.path, pairs, TaskSettings(raters=wanted), clock=lambda: self.now)
        for rater in self.RATERS:
            self.task.sign_in(rater)
        self.model: dict[tuple[str, str], int | None] = {}

    @rule()
    def open_again(self) -> None:
        self.task.close()
        self.task = JudgingTask(self.path, clock=lambda: self.now)

    @rule(seconds=st.sampled_from([1.0, HOLD_SECONDS + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(rater=raters, levels=st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=3))
    def judge(self, rater: str, levels: list[int | None]) -> None:
        batch = self.task.next_batch(rater)
        if batch is None:
            return
        unanswered = [m for m in batch.moments if (m.pair_id, rater) not in self.model]
        assert unanswered, "a batch without anything to judge"
        for moment, level in zip(unanswered, levels, strict=False):
            self.task.answer(rater, moment.pair_id, level)
            self.model[moment.pair_id, rater] = level

    @precondition(lambda self: self.model)
    @rule(data=st.data(), level=st.none() | st.integers(0, 4))
    def change(self, data: st.DataObject, level: int | None) -> None:
        pair, rater = data.draw(st.sampled_from(list(self.model)))
        try:
            self.task.answer(rater, pair, level)
        except AlreadyJudged:
            assert self.model[pair, rater] is None  # what was passed over may be judged by others by now
        else:
            self.model[pair, rater] = level

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def undo(self, data: st.DataObject) -> None:
        pair, rater = data.draw(st.sampled_from(list(self.model)))
        self.task.undo(rater, pair)
        del self.model[pair, rater]

    @invariant()
    def answers_are_those_that_were_given(self) -> None:
        if hasattr(self, "model"):
            found = {(answer.pair_id, answer.rater): answer.level for answer in self.task.answers()}
            assert found == self.model

    @invariant()
    def the_outcome_is_the_rule_of_datasets(self) -> None:
        if not hasattr(self, "model"):
            return
        levels: dict[str, list[int]] = defaultdict(list)
        for answer in self.task.answers():
            if answer.level is not None:
                levels[answer.pair_id].append(answer.level)
        assert all(len(known) <= max(self.wanted, 4 if self.wanted > 1 else 1) for known in levels.values())
        full = {pair: known for pair, known in levels.items() if len(known) in (2, 4)}
        if self.wanted == 4:
            full = {pair: known for pair, known in full.items() if len(known) == 4}
        expected = consensus(
            Rating(pair, "", level) for pair, known in full.items() for level in known
        ).agreed
        if self.wanted == 1:
            expected = {pair: known[0] for pair, known in levels.items()}
        found = self.task.outcome()
        assert found.agreed == expected
        for pair, known in full.items():
            if agree(known) is None and len(known) == 4:
                assert found.standing[pair] == "discarded"

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.task.close()
            self.folder.cleanup()


Judging.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestJudging = Judging.TestCase


def test_a_full_disk_takes_back_an_answer_and_the_next_one_is_taken(new_task: NewTask) -> None:
    task = new_task()
    rater = task.sign_in("Anna")
    batch = task.next_batch(rater)
    assert batch is not None
    first, second, *_ = (moment.pair_id for moment in batch.moments)
    with pytest.raises(LibraryError, match="disk"), full_disk():
        task.answer(rater, first, 4)
    assert task.answers() == []
    task.answer(rater, second, 3)
    assert [(answer.pair_id, answer.level) for answer in task.answers()] == [(second, 3)]


def test_a_new_task_is_whole_before_its_draft_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says nothing where it cannot empty its journal as a file is closed, as on a full disk."""
    pairs = [Pair(f"1:{m}", "1", "Query?", "film", m, m + 0.5, 1000.0, "", 1 / m, m) for m in range(1, 40)]
    without_journal = tmp_path / "copy.sqlite"

    class Closing(sqlite3.Connection):
        def close(self) -> None:
            ((_, _, draft),) = self.execute("PRAGMA database_list").fetchall()
            shutil.copy(draft, without_journal)
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda path, **options: connect(path, **{"factory": Closing} | options)
    )
    JudgingTask.create(tmp_path / "task.sqlite", pairs, TaskSettings()).close()
    with closing(JudgingTask(without_journal)) as task:
        assert task.pairs == tuple(pairs)
