"""What single frames of gridhouse show, and sentences about them: what the demo's encoder is trained on."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.random import Generator

from moviola.datasets.gridhouse.episode import Episode
from moviola.datasets.gridhouse.vocabulary import Slots, Thing, caption, imprecise

# How often a frame of an event is described by the event rather than by how things stand.
_DOING = 0.75


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
    doing = next((m.slots for m in episode.moments if m.event - 0.2 <= time < m.end), None)
    return Scene(
        robot=beat.robot,
        room=episode.floor_at(beat.position),
        carrying=beat.carrying,
        facing=Thing(before.colour, before.type) if before else None,
        facing_open=bool(before and before.open),
        doing=doing,
    )


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
