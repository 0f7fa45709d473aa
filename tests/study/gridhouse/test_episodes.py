"""What happens in films: determinism, statistics, and pictures that agree with the annotation."""

from __future__ import annotations

import numpy as np
import pytest

from moviola.errors import InvalidValue
from moviola.study.datasets.gridhouse import Camera, simulate
from moviola.study.datasets.gridhouse.sprites import PAINT

SEEDS = range(60)


@pytest.fixture(scope="module")
def episodes() -> list:  # type: ignore[type-arg]
    return [simulate(seed) for seed in SEEDS]


def test_same_seed_same_film() -> None:
    assert simulate(5) == simulate(5)
    assert simulate(5).beats != simulate(6).beats
    assert simulate(5).beats != simulate(5, number=0).beats


def test_statistics_are_like_tvrs(episodes: list) -> None:  # type: ignore[type-arg]
    """TVR: 76 s a video, 5 moments each, 8.7 s a moment (TVR-Ranking, Table 1)."""
    moments = [moment for episode in episodes for moment in episode.moments]
    assert 70 < np.mean([episode.duration for episode in episodes]) < 90
    assert 4.5 < len(moments) / len(episodes) < 7
    assert 7 < np.mean([m.end - m.start for m in moments]) < 10.5
    assert {m.slots.action for m in moments} == {"go to", "pick up", "put", "drop", "open", "close"}


def test_holds_vary(episodes: list) -> None:  # type: ignore[type-arg]
    """The deciding frame must not always sit at the same distance from a moment's end."""
    after = [m.end - m.event for episode in episodes for m in episode.moments]
    assert np.std(after) > 0.5


def test_moments_follow_each_other_within_the_film(episodes: list) -> None:  # type: ignore[type-arg]
    for episode in episodes:
        ends = 0.0
        for moment in episode.moments:
            assert ends <= moment.start < moment.event < moment.end <= episode.duration
            ends = moment.end


def test_beats_leave_no_gap(episodes: list) -> None:  # type: ignore[type-arg]
    for episode in episodes:
        assert episode.beats[0].start == 0
        for before, after in zip(episode.beats[:-1], episode.beats[1:], strict=True):
            assert before.end == after.start


def test_events_do_what_they_say(episodes: list) -> None:  # type: ignore[type-arg]
    """The world after an event differs from the world before it as the caption says."""
    for episode in episodes:
        for moment in episode.moments:
            slots = moment.slots
            before, after = episode.beat_at(moment.event), episode.beat_at(moment.end - 1e-6)
            held = (before.carrying, after.carrying)
            door = {p.cell: p.open for p in after.placed if p.type == "door"}
            match slots.action:
                case "pick up":
                    assert held == (None, slots.thing)
                case "drop" | "put":
                    assert held == (slots.thing, None)
                case "open":
                    assert door[before.target]
                case "close":
                    assert not door[before.target]
                case "go to":
                    assert any(p.cell == before.target and p.type == slots.thing.type for p in before.placed)
            assert before.robot == slots.robot
            assert episode.floor_at(before.position) == slots.room
            if slots.second is not None:
                x, y = before.target
                beside = {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)}
                assert (slots.second.type, slots.second.colour) in {
                    (p.type, p.colour) for p in after.placed if p.cell in beside
                }


def test_in_filler_nothing_happens() -> None:
    for seed in range(5):
        assert simulate(seed, filler=True).moments == ()


def test_length_can_be_asked_for() -> None:
    assert 120 < simulate(1, seconds=120).duration < 150
    with pytest.raises(InvalidValue, match="at least 10 s"):
        simulate(1, seconds=3)


def test_the_robot_in_the_middle_has_its_colour() -> None:
    for seed in range(8):
        episode = simulate(seed)
        camera = Camera(episode)
        moment = episode.moments[0]
        image = camera.frame(moment.start)
        middle = image[80:144, 80:144].reshape(-1, 3).astype(int)
        paint = np.array(PAINT[str(moment.slots.robot)])
        assert (np.abs(middle - paint).sum(axis=1) < 60).sum() > 20


def test_frames_move_and_are_the_same_each_time() -> None:
    camera = Camera(simulate(3), 112)
    first, second = list(camera.frames(1)), list(Camera(simulate(3), 112).frames(1))
    assert first[0].shape == (112, 112, 3)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert len({image.tobytes() for image in first}) > len(first) / 3
    with pytest.raises(InvalidValue, match="multiple of 7"):
        Camera(simulate(3), 100)
