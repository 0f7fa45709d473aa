"""The judging page: a batch by two raters to consensus, by keyboard, and on to ``moviola evaluate``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from moviola.search import Library
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.judging import JudgingTask, TaskSettings
from moviola.study.measures import Run, evaluate, read_qrels, write_run
from page_server import Served
from page_visitor import PHONE, serious

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]
LENGTH = 1.5
"""Of every moment, in seconds."""


@pytest.fixture
def task(made: Path, tmp_path: Path) -> Path:
    """Two queries; of the first, four moments of the library's videos."""
    with Library(made / "photographs", read_only=True) as library:
        videos = library.videos()
    pairs = [
        Pair(f"{query}:{rank}", query, text, videos[rank % len(videos)].video_id, float(rank), rank + LENGTH,
            videos[rank % len(videos)].duration, "", 1 / rank, rank)
        for query, text, count in (("1", "a rocket <b>rises</b>", 4), ("2", "a cat", 1))
        for rank in range(1, count + 1)
    ]  # fmt: skip
    JudgingTask.create(tmp_path / "task.sqlite", pairs, TaskSettings()).close()
    return tmp_path / "task.sqlite"


@pytest.fixture
def judging(copied: Path, task: Path) -> Iterator[Served]:
    """A server on library and task."""
    with Served(copied, options=("--judge", str(task))) as server:
        yield server


def sign_in(page: Page, name: str) -> None:
    page.get_by_label("Your name").fill(name)
    page.keyboard.press("Enter")
    expect(page.locator(".asked-query")).to_be_visible()


def shown(page: Page) -> int:
    """Which moment of the batch is shown, from 1."""
    return int(page.locator(".asked-count strong").inner_text())


def judge_batch(page: Page, level: str, count: int) -> None:
    """Press the same key for every moment of a batch."""
    for place in range(1, count + 1):
        expect(page.locator(".asked-count strong")).to_have_text(str(place))
        page.keyboard.press(level)
        if place == count:
            expect(page.get_by_role("heading", name="This batch is done")).to_be_visible()


def test_two_raters_to_consensus_and_to_an_evaluation(
    open_page: Opener, judging: Served, tmp_path: Path
) -> None:
    anna = open_page(judging, "judge")
    sign_in(anna, "Anna")
    expect(anna.locator(".asked-query")).to_have_text("a rocket <b>rises</b>")
    judge_batch(anna, "3", 4)
    anna.keyboard.press("Enter")
    expect(anna.locator(".asked-query")).to_have_text("a cat")
    judge_batch(anna, "0", 1)
    anna.keyboard.press("Enter")
    expect(anna.get_by_text("5 moments still need other raters")).to_be_visible()

    ben = open_page(judging, "judge")
    sign_in(ben, "Ben")
    judge_batch(ben, "4", 4)
    ben.keyboard.press("Enter")
    judge_batch(ben, "1", 1)
    ben.keyboard.press("Enter")
    expect(ben.get_by_role("heading", name="Everything is judged")).to_be_visible()
    ben.get_by_role("link", name="Progress and exports").click()
    expect(ben.get_by_role("heading", name="5 of 5 moments done")).to_be_visible()
    expect(ben.get_by_role("img", name="5 agreed, 0 discarded")).to_be_visible()

    with ben.expect_download() as got:
        ben.get_by_role("link", name="Graded test set").click()
    got.value.save_as(tmp_path / "judged.json")
    qrels = read_qrels(tmp_path / "judged.json")
    assert sorted(qrels.relevance.tolist()) == [1, 4, 4, 4, 4]
    best = {query: [{**row, "score": 1.0}] for query, (row, *_) in qrels.rows().items()}
    found = evaluate(Run.from_dict(best), qrels, ["nDCG@1,IoU>=0.7"])
    assert found.measures["nDCG@1,IoU>=0.7"] == 1
    write_run(Run.from_dict(best), tmp_path / "run.json")
    command = [sys.executable, "-m", "moviola", "evaluate", tmp_path / "run.json", tmp_path / "judged.json"]
    assert subprocess.run(command, check=False).returncode == 0


TWICE_AROUND = """() => new Promise((resolve) => {
  const video = document.querySelector(".loop video"), times = [];
  let rounds = 0;
  video.addEventListener("seeked", () => { rounds += 1; });
  const note = () => {
    if (!video.seeking) times.push(video.currentTime);
    if (rounds < 2) requestAnimationFrame(note);
    else resolve(times);
  };
  video.addEventListener("seeked", note, { once: true });
})"""
"""Where a moment is while it plays, from one return to its start to the next."""


def test_a_moment_plays_in_a_loop_within_its_span(open_page: Opener, judging: Served, task: Path) -> None:
    page = open_page(judging, "judge")
    sign_in(page, "Anna")
    times = page.evaluate(TWICE_AROUND)
    begins = {pair.start for pair in JudgingTask(task).pairs}
    begin = min(begins, key=lambda start: abs(start - times[0]))
    assert begin - 0.1 <= min(times) and max(times) <= begin + LENGTH + 0.3


def test_back_change_undo_and_pass_over_by_keys(open_page: Opener, judging: Served, task: Path) -> None:
    page = open_page(judging, "judge")
    sign_in(page, "Anna")
    page.keyboard.press("2")
    expect(page.locator(".asked-count strong")).to_have_text("2")
    page.keyboard.press("s")
    expect(page.locator(".asked-count strong")).to_have_text("3")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    pressed = page.locator(".level[aria-pressed=true]")
    expect(pressed).to_contain_text("Partly")
    page.keyboard.press("1")
    expect(page.locator(".asked-count strong")).to_have_text("2")
    page.keyboard.press("ArrowLeft")
    expect(pressed).to_contain_text("Little")
    page.keyboard.press("u")  # the last that was answered: this one, which was changed
    expect(pressed).to_have_count(0)
    judged = JudgingTask(task)
    assert [(answer.rater, answer.level) for answer in judged.answers()] == [("Anna", None)]
    page.reload()
    expect(page.locator(".asked-query")).to_be_visible()  # she is signed in still, and goes on where she was
    assert shown(page) == 1
    page.get_by_role("button", name="Anna").click()
    expect(page.get_by_label("Your name")).to_be_focused()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("3")  # of nobody
    page.evaluate("fetch('/healthz')")
    assert asked == [f"{judging.url}/healthz"]


def test_the_page_goes_on_when_the_server_comes_back(open_page: Opener, judging: Served, task: Path) -> None:
    page = open_page(judging, "judge")
    sign_in(page, "Anna")
    judging.stop()
    page.keyboard.press("3")
    expect(page.locator("#offline")).to_contain_text("does not answer")
    assert shown(page) == 1
    judging.start()
    expect(page.locator(".asked-count strong")).to_have_text("2")
    assert [answer.level for answer in JudgingTask(task).answers()] == [3]


@pytest.mark.parametrize("look", [{"color_scheme": "light"}, {"color_scheme": "dark"}, PHONE])
def test_axe_finds_nothing_serious(open_page: Opener, judging: Served, look: dict[str, object]) -> None:
    page = open_page(judging, "judge", **look)
    expect(page.get_by_label("Your name")).to_be_visible()
    found = {"sign in": serious(page)}
    sign_in(page, "Anna")
    expect(page.locator(".loop video")).to_have_js_property("paused", False)
    found["judging"] = serious(page)
    page.keyboard.press("4")
    expect(page.locator(".asked-count strong")).to_have_text("2")
    page.get_by_role("link", name="Progress").click()
    expect(page.get_by_role("heading", name="Agreement")).to_be_visible()
    found["progress"] = serious(page)
    assert not any(found.values()), found
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_without_a_task_the_page_says_what_to_do(open_page: Opener, served: Served) -> None:
    page = open_page(served, "judge")
    expect(page.get_by_role("alert")).to_contain_text("start the server with --judge TASK")


def test_an_answer_that_comes_late_draws_nothing_into_another_view(
    open_page: Opener, judging: Served
) -> None:
    page = open_page(judging, "judge")
    sign_in(page, "Anna")
    held: list[Route] = []
    page.route("**/api/judging/answers", lambda route: held.append(route))  # noqa: PLW0108 -- playwright reads its signature
    with page.expect_request("**/api/judging/answers"):
        page.keyboard.press("3")
    page.get_by_role("link", name="Progress").click()
    expect(page.get_by_role("heading", name="Agreement")).to_be_visible()
    page.clock.install()
    held[0].continue_()
    expect(page.locator('#judge-view .level[aria-pressed="true"]')).to_have_count(1)
    page.clock.run_for(1000)
    expect(page.locator("#judge-view video")).to_have_count(0)
