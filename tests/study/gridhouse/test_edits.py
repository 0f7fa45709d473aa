"""Edited films: the editor's rules, what is true of a film, and pictures that agree with it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.media import probe, read_subtitles, write_video
from moviola.study.datasets import gridhouse
from moviola.study.datasets.gridhouse.edit import Card, Edit, Footage, Format, Shot, Take, View, film_moments
from moviola.study.datasets.gridhouse.editor import edited
from moviola.study.datasets.gridhouse.episode import Beat, Episode, GridMoment
from moviola.study.datasets.gridhouse.motion import looked_at
from moviola.study.datasets.gridhouse.projection import frames, signs_seen
from moviola.study.datasets.gridhouse.vocabulary import Slots, Thing

NUMBERS = range(12)
SMALL = Format(10.0, (64, 48), (64, 36), 0.0, 30)
FOLLOW = View("follow", None, (7.0, 7.0))


@pytest.fixture(scope="module")
def films() -> list[Edit]:
    return [edited(3, number=number) for number in NUMBERS]


def take(number: int, *, seconds: float = 60.0, every: float = 10.0) -> Take:
    """A robot that stands in its room; an event of 2 s in every 10, each 6 s after the end of that before."""
    beat = Beat(0.0, seconds, "wait", "red", (2, 2), 0, None, (3, 2), ())
    slots = Slots("red", "go to", Thing("green", "key"), None, "blue")
    moments = tuple(
        GridMoment(time, time + every, time + every - 2, slots, f"take {number}, {time:g} s")
        for time in np.arange(0.0, seconds, every).tolist()
    )
    episode = Episode(f"take-{number}", 0, (beat,), moments, {(0, 0): "blue"}, (6, 6), (1, 1))
    return Take(episode, (), (1.0, 1.0, 1.0))


TAKES = (take(0), take(1))


def shows_event(shows: Footage | Card, first: int, stop: int) -> bool:
    """Whether there is something of an event in some frames of a shot, counted from its first."""
    if isinstance(shows, Card):
        return False
    start, end = shows.start + first / 10, min(shows.start + stop / 10, shows.end)
    return any(start < m.end and m.event < end for m in TAKES[shows.take].episode.moments)


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    """Any shots of two takes, each shown forwards, with cards, dissolves and held stills; any event cut, but
    as the editor has it, none touched by a dissolve.
    """
    shots: list[Shot] = []
    at, shown = 0, [0.0, 0.0]
    for _ in range(draw(st.integers(1, 12))):
        which = draw(st.sampled_from([0, 1, None]))
        if which is None:
            shows: Footage | Card = Card("Later")
            length = draw(st.integers(5, 30))
        else:
            start = shown[which] + draw(st.integers(0, 80)) / 10
            frames_shown = draw(st.integers(5, 200))
            if start + frames_shown / 10 > 60:
                continue
            shows = Footage(which, round(start, 3), round(start + frames_shown / 10, 3), FOLLOW)
            shown[which] = shows.end
            length = frames_shown + draw(st.sampled_from([0, 0, 10]))
        most = min(length, shots[-1].stop - shots[-1].first) // 3 if shots else 0
        mixed = draw(st.integers(0, most))
        if mixed:
            lasts = shots[-1].stop - shots[-1].first
            if shows_event(shots[-1].shows, lasts - mixed, lasts) or shows_event(shows, 0, mixed):
                mixed = 0
        first = at - mixed
        shots.append(Shot(first, first + length, shows, "dissolve" if mixed else "cut", mixed))
        at = first + length
    return Edit(0, SMALL, TAKES, tuple(shots) or (Shot(0, 10, Card("The End")),))


@given(edits())
def test_moments_lie_in_the_film_and_in_footage_of_their_own_take(edit: Edit) -> None:
    for moment in film_moments(edit):
        assert 0 <= moment.start <= moment.event < moment.end <= edit.duration + 1e-6
        own = int(moment.caption[5])
        for frame in range(math.ceil(moment.start * 10 - 1e-6), math.ceil(moment.end * 10 - 1e-6)):
            shown = [shot.shows for shot in edit.shots if shot.first <= frame < shot.stop]
            assert own in [shows.take for shows in shown if isinstance(shows, Footage)]


@given(edits())
def test_moments_are_those_whose_events_are_whole_in_a_shot_each_once(edit: Edit) -> None:
    footage = [shot.shows for shot in edit.shots if isinstance(shot.shows, Footage)]
    whole = [
        moment.caption
        for part in footage
        for moment in TAKES[part.take].episode.moments
        if part.start <= moment.event and moment.end <= part.end
    ]
    assert [moment.caption for moment in film_moments(edit)] == whole
    assert len(set(whole)) == len(whole)


@given(edits())
def test_moments_follow_each_other_and_events_take_as_long_as_they_do(edit: Edit) -> None:
    found = film_moments(edit)
    for before, after in pairwise(found):
        assert before.event < after.event and before.end < after.end
    for moment in found:
        assert moment.end - moment.event == pytest.approx(2.0, abs=0.002)


@given(edits())
def test_the_film_shows_each_event_at_its_time(edit: Edit) -> None:
    """The other way round: the frame in the middle of the event shows the take at that time."""
    for moment in film_moments(edit):
        frame = round((moment.event + moment.end) / 2 * SMALL.rate)
        shots = [shot for shot in edit.shots if shot.first <= frame < shot.stop]
        times = [edit.source_time(s, frame) for s in shots if isinstance(s.shows, Footage)]
        source = next(m for t in TAKES for m in t.episode.moments if m.caption == moment.caption)
        assert any(source.event < time < source.end for time in times)


def cut(*shots: tuple[int | str, float, float], rate: float = 10.0) -> Edit:
    """Hard cuts of (take, from, to) and of (card, 0, seconds)."""
    laid: list[Shot] = []
    for what, start, end in shots:
        first = laid[-1].stop if laid else 0
        shows = Card(what) if isinstance(what, str) else Footage(what, start, end, FOLLOW)
        laid.append(Shot(first, first + round((end - start) * rate), shows))
    return Edit(0, SMALL, TAKES, tuple(laid))


def spans(edit: Edit) -> dict[str, tuple[float, float]]:
    return {moment.caption: (moment.start, moment.end) for moment in film_moments(edit)}


def test_film_times_of_moments() -> None:
    # Whole; time left out on the way; the way cut off by another take and by a card; the event cut away.
    assert spans(cut((0, 0, 10))) == {"take 0, 0 s": (0, 10)}
    assert spans(cut((0, 0, 3), (0, 6, 10))) == {"take 0, 0 s": (0, 7)}
    assert spans(cut((0, 0, 3), (1, 0, 5), (0, 3, 10))) == {"take 0, 0 s": (8, 15)}
    assert spans(cut((0, 0, 3), ("Later", 0, 2), (0, 3, 20))) == {
        "take 0, 0 s": (5, 12),
        "take 0, 10 s": (12, 22),
    }
    assert spans(cut((0, 0, 9), (0, 9, 10), (1, 5, 10))) == {"take 1, 0 s": (10, 15)}
    assert spans(cut(("Title", 0, 4))) == {}


def test_a_still_that_is_held_on_the_way_is_a_part_of_it() -> None:
    edit = cut((0, 0, 3), (0, 3, 10))
    held = (Shot(0, 50, edit.shots[0].shows), Shot(50, 120, edit.shots[1].shows))
    assert spans(Edit(0, SMALL, TAKES, held)) == {"take 0, 0 s": (0, 12)}
    assert edit.source_time(held[0], 49) == 3


def test_same_seed_same_edit() -> None:
    assert edited(5, number=1) == edited(5, number=1)
    assert edited(5, number=1) != edited(5, number=2) != edited(6, number=2)


def test_the_editor_uses_all_that_films_have(films: list[Edit]) -> None:
    shots = [shot for film in films for shot in film.shots]
    assert {shot.opening for shot in shots} == {"cut", "dissolve", "fade"}
    kinds = {shot.shows.view.kind for shot in shots if isinstance(shot.shows, Footage)}
    assert kinds == {"follow", "close", "room", "wide", "pan", "zoom"}
    assert len({film.format.rate for film in films}) > 2 and len({film.format.size for film in films}) > 3
    assert {film.format.noise > 0 for film in films} == {True, False}
    assert {film.format.picture == film.format.size for film in films} == {True, False}
    assert all(len(film.takes) > 1 and film_moments(film) for film in films)
    assert sum(isinstance(shot.shows, Card) for shot in shots) > len(films)
    held = [
        s
        for film in films
        for s in film.shots
        if isinstance(s.shows, Footage)
        and (s.stop - s.first) / film.format.rate - (s.shows.end - s.shows.start) > 0.5
    ]
    assert held


def test_no_event_is_cut_or_mixed_with_another_picture(films: list[Edit]) -> None:
    for film in films:
        rate = film.format.rate
        mixed = []
        for before, shot in pairwise(film.shots):
            assert shot.first == before.stop - (shot.mixed if shot.opening == "dissolve" else 0)
            begins = shot.first - (shot.mixed if shot.opening == "fade" else 0)
            mixed.append((begins / rate, (shot.first + shot.mixed) / rate))
        for moment in film_moments(film):
            assert all(end <= moment.event or moment.end <= start for start, end in mixed)


def test_moments_of_a_film_do_not_overlap(films: list[Edit]) -> None:
    for film in films:
        for before, after in pairwise(film_moments(film)):
            assert before.end <= after.start


def test_actions_are_in_the_picture(films: list[Edit]) -> None:
    for film in films:
        for shot in film.shots:
            if not isinstance(shot.shows, Footage):
                continue
            episode, part = film.takes[shot.shows.take].episode, shot.shows
            for moment in episode.moments:
                if not (part.start <= moment.event and moment.end <= part.end):
                    continue
                beat = episode.beat_at(moment.event)
                for time in np.linspace(moment.event, moment.end, 5).tolist():
                    share = (time - part.start) / (part.end - part.start)
                    robot = looked_at(episode.beat_at(time), time)
                    left, top, right, bottom = part.view.box(share, robot, film.format.aspect)
                    for x, y in (beat.position, beat.target):
                        assert left <= x and x + 1 <= right and top <= y and y + 1 <= bottom


def test_an_hour_has_hundreds_of_moments_and_long_stretches_without() -> None:
    film = edited(8, number=0, seconds=3600)
    moments = film_moments(film)
    assert 3600 <= film.duration < 3900
    assert len(moments) > 150
    assert max(after.start - before.end for before, after in pairwise(moments)) > 60


def test_frames_show_bars_cards_and_mixtures() -> None:
    edit = Edit(
        0,
        SMALL,
        TAKES,
        (
            Shot(0, 10, Card("Title")),
            Shot(7, 17, Footage(0, 0.0, 1.0, FOLLOW), "dissolve", 3),
            Shot(17, 27, Footage(1, 0.0, 1.0, FOLLOW), "fade", 4),
        ),
    )
    drawn = list(frames(edit))
    assert len(drawn) == 27 and {frame.shape for frame in drawn} == {(48, 64, 3)}
    assert all(not frame[:6].any() and not frame[42:].any() for frame in drawn)
    light = np.array([frame[6:42].mean() for frame in drawn])
    assert 0 < light[0] < 20  # few white words on black
    assert np.all(np.diff(light[6:11]) > 0)  # the picture comes
    assert np.all(np.diff(light[12:17]) < 0) and np.all(np.diff(light[17:22]) > 0)
    assert light[17] < light[11] / 2
    again = list(frames(edit))
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))


def test_signs_are_seen_where_the_annotation_says(films: list[Edit]) -> None:
    """Taking a sign off its wall changes the frames in which it is noted, as much as a board is large."""
    film, noted = next((film, seen[:4]) for film in films if (seen := signs_seen(film)))
    bare = replace(film, takes=tuple(replace(take, signs=()) for take in film.takes))
    silent = replace(bare.format, noise=0.0), replace(film.format, noise=0.0)
    wanted = {round((start + end) / 2 * film.format.rate) for start, end, _ in noted}
    pairs = zip(frames(replace(bare, format=silent[0])), frames(replace(film, format=silent[1])), strict=True)
    for number, (without, with_signs) in enumerate(islice(pairs, max(wanted) + 1)):
        if number in wanted:
            changed = np.abs(without.astype(int) - with_signs).max(axis=2) > 60
            assert changed.sum() > 200


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("edited")
    gridhouse.build(folder, videos=2, seed=3, write_video=write_video, edited=True, subtitles=True)
    return folder


def test_a_data_set_of_edited_films(world: Path, tmp_path: Path) -> None:
    corpus, edits = (json.loads((world / name).read_text()) for name in ("video_corpus.json", "edits.json"))
    assert set(corpus) == set(edits)
    for name, duration in corpus.items():
        info, edit = probe(world / "videos" / f"{name}.mp4"), edits[name]
        assert info.duration == pytest.approx(duration, abs=0.01)
        assert [info.width, info.height] == edit["size"]
        assert edit["shots"][0]["card"] and edit["shots"][-1]["end"] == duration
        cues = read_subtitles(world / "videos" / f"{name}.srt").cues
        assert {text for _, _, text in edit["said"]} <= {cue.text for cue in cues}
    assert json.loads((world / "gridhouse.json").read_text())["edited"] is True
    assert json.loads((world / "train_top01.json").read_text())
    gridhouse.annotate(tmp_path, world, similarity="slots")
    for path in world.glob("*.json"):
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_edited_films_beside_plain_ones(tmp_path: Path) -> None:
    """Each kind is split for itself, and queries are judged over both."""
    gridhouse.build(tmp_path, videos=4, edited_videos=3, seed=5, write_video=write_video)
    names = {split: set(own) for split, own in json.loads((tmp_path / "splits.json").read_text()).items()}
    assert names["train"] == {"gh-0001", "gh-0002", "edited-0001", "edited-0002"}
    assert names["test"] == {"gh-0004", "edited-0003"}
    edits = json.loads((tmp_path / "edits.json").read_text())
    assert set(edits) == {"edited-0001", "edited-0002", "edited-0003"}
    judged = {
        moment["video_name"]
        for row in json.loads((tmp_path / "test.json").read_text())
        for moment in row["relevant_moment"]
    }
    assert {name.partition("-")[0] for name in judged} == {"gh", "edited"}
