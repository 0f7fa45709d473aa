"""Sentences about single frames: what an image-text encoder for gridhouse is trained on."""

from __future__ import annotations

from numpy.random import Generator

from moviola.datasets.gridhouse.episode import Scene
from moviola.datasets.gridhouse.vocabulary import Thing, caption, imprecise

__all__ = ["scene_caption"]

# How often a frame of an event is described by the event rather than by how things stand.
_DOING = 0.75


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
