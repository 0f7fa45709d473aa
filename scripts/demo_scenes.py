"""What single frames of gridhouse show, and sentences about them: what the demo's encoder is trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from moviola.study.datasets.gridhouse.edit import Box
from moviola.study.datasets.gridhouse.episode import Episode
from moviola.study.datasets.gridhouse.motion import Point, beside, between, eased, moved, share_of
from moviola.study.datasets.gridhouse.vocabulary import COLOURS, TYPES, Slots, Thing, caption, imprecise

# How often a frame of an event is described by the event rather than by how things stand.
_DOING = 0.75

IN_PATCH = (("nothing", *TYPES, "robot", "acting robot"), ("nothing", *COLOURS),
            ("other", "faced", "carried", "second"))  # fmt: skip
"""What a patch may hold: the type of a thing or robot, its colour, and its part in what goes on."""
_LARGE = 0.7  # of a cell: a thing's width and height
_FILLED = 0.1  # of a thing or of the patch, from which on it counts


@dataclass(frozen=True, slots=True)
class Scene:
    """What one frame shows. ``doing`` is filled from just before an event to the end of its moment."""

    robot: str
    room: str
    carrying: Thing | None
    facing: Thing | None
    facing_open: bool
    doing: Slots | None


def scene_at(episode: Episode, time: float) -> Scene:
    """What a frame at a time in seconds shows."""
    beat = episode.beat_at(time)
    before = {placed.cell: placed for placed in beat.placed}.get(beat.target)
    return Scene(
        robot=beat.robot,
        room=episode.floor_at(beat.position),
        carrying=beat.carrying,
        facing=Thing(before.colour, before.type) if before else None,
        facing_open=bool(before and before.open),
        doing=_event_at(episode, time),
    )


def _event_at(episode: Episode, time: float) -> Slots | None:
    """What happens, from just before an event to the end of its moment."""
    return next((m.slots for m in episode.moments if m.event - 0.2 <= time < m.end), None)


def scene_caption(scene: Scene, generator: Generator) -> str:
    """A sentence that is true of a frame, worded like captions and queries, with facts left out at random.

    Around an event it mostly says what the robot does ("a red robot picks up a green key in the blue room"),
    else how things stand ("a red robot carrying a green key in front of a closed door").
    """
    if scene.doing is not None and generator.random() < _DOING:
        if generator.random() < 0.4:
            return caption(scene.doing, generator)
        return imprecise(scene.doing, generator)[0]
    words = [f"a {scene.robot} robot" if generator.random() < 0.8 else "a robot"]
    if scene.carrying is not None and generator.random() < 0.85:
        words.append(f"carrying {_named(scene.carrying, generator)}")
    if scene.facing is not None and generator.random() < 0.7:
        words.append(f"in front of {_faced(scene, generator)}")
    if generator.random() < 0.7 or len(words) == 1:
        words.append(f"in the {scene.room} room")
    return " ".join(words).replace("a orange", "an orange")


def _faced(scene: Scene, generator: Generator) -> str:
    assert scene.facing is not None
    if scene.facing.type != "door":
        return _named(scene.facing, generator)
    state = "open" if scene.facing_open else "closed"
    colour = f"{scene.facing.colour} " if generator.random() < 0.8 else ""
    article = "an" if state == "open" else "a"
    return f"{article} {state} {colour}door"


def _named(thing: Thing, generator: Generator) -> str:
    choice = generator.random()
    if choice < 0.15:
        return f"a {thing.type}"
    if choice < 0.25 and thing.type != "robot":
        return f"something {thing.colour}"
    return f"a {thing.colour} {thing.type}"


def in_patches(episode: Episode, time: float, square: Box, picture: Box, side: int) -> NDArray[np.int8]:
    """The thing or robot that fills most of each patch of a frame; one that takes part counts double.

    Args:
        episode: what is filmed.
        time: of the frame, in seconds of the episode.
        square: what the model sees, in cells.
        picture: what is not covered by bars, in cells.
        side: patches a side.

    Returns:
        (side * side, 3) int8, positions in IN_PATCH.
    """
    things = _things(episode, time)
    held, boxes = np.array([part for part, _ in things]), np.array([box for _, box in things])
    boxes = np.clip(boxes, (*picture[:2], *picture[:2]), (*picture[2:], *picture[2:]))
    columns, rows = (np.linspace(square[k], square[k + 2], side + 1) for k in (0, 1))
    wide, tall = (
        np.maximum(
            0, np.minimum(boxes[:, k + 2, None], edges[1:]) - np.maximum(boxes[:, k, None], edges[:-1])
        )
        for k, edges in ((0, columns), (1, rows))
    )
    shared = (tall[:, :, None] * wide[:, None, :]).reshape(len(things), -1)
    largest = (shared * np.where(held[:, 2:] > 0, 2, 1)).argmax(0)
    patch = (columns[1] - columns[0]) * (rows[1] - rows[0])
    filled = shared[largest, np.arange(side * side)] > _FILLED * min(_LARGE**2, patch)
    return np.where(filled[:, None], held[largest], 0).astype(np.int8)


def _things(episode: Episode, time: float) -> list[tuple[tuple[int, int, int], Box]]:
    """All things and robots, as positions in IN_PATCH, and where they are, in cells."""
    beat = episode.beat_at(time)
    event = _event_at(episode, time)
    second = event.second if event is not None else None
    found = []
    for placed in beat.placed:
        part = "other"
        if placed.cell == beat.target:
            part = "faced"
        elif second == Thing(placed.colour, placed.type) and math.dist(placed.cell, beat.target) == 1:
            part = "second"
        found.append(_held(placed.type, placed.colour, part, placed.cell))
    where = moved(beat, eased(share_of(beat, time)))
    found.append(_held("acting robot", beat.robot, "other", where))
    if (carried := beat.carrying) is not None and carried.type is not None and carried.colour is not None:
        hands = between(where, beside(where, beat.heading), 0.5)
        found.append(_held(carried.type, carried.colour, "carried", hands))
    return found


def _held(kind: str, colour: str, part: str, where: Point) -> tuple[tuple[int, int, int], Box]:
    types, colours, parts = IN_PATCH
    edge = (1 - _LARGE) / 2
    x, y = where
    box = (x + edge, y + edge, x + 1 - edge, y + 1 - edge)
    return (types.index(kind), colours.index(colour), parts.index(part)), box
