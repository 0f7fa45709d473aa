"""What real footage and films of photographs show: labels by file and by time, made by looking at them.

`scenes.csv` and `photographs.csv` say what is seen when; scenes of one `alike` show the same. `labelled.csv`
has queries of each kind with the scenes that answer them, and scenes of which people would disagree
(`unclear`), which count neither way. `*` stands for any letters in the name of a scene.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from photo_films import shots

sys.path.append(str(Path(__file__).parents[1]))  # as a script

from measuring import csv_rows
from moviola.types import Moment, Span

HERE = Path(__file__).parent
FOOTAGE = HERE.parent / "footage"
NO_ANSWER = ("absent", "nonsense")
"""Kinds of queries that nothing answers."""


@dataclass(frozen=True)
class Scene:
    """A stretch of a video; ``alike`` names what other scenes may show, too."""

    name: str
    alike: str
    video_id: str
    span: Span

    def is_in(self, moment: Moment) -> bool:
        """Whether a moment and the scene have half of the shorter one in common."""
        if moment.video_id != self.video_id:
            return False
        common = moment.span.intersection(self.span)
        return common > 0 and common >= 0.5 * min(moment.span.duration, self.span.duration)


@dataclass(frozen=True)
class LabelledQuery:
    """A query, its kind, and the scenes that answer it, or may be said to."""

    kind: str
    text: str
    right: tuple[Scene, ...]
    unclear: tuple[Scene, ...] = ()

    def judged(self, moment: Moment) -> bool | None:
        """Whether a moment is right; None where that is unclear."""
        if any(scene.is_in(moment) for scene in self.right):
            return True
        return None if any(scene.is_in(moment) for scene in self.unclear) else False


def scenes() -> dict[str, Scene]:
    """All scenes, by name."""
    found = [
        Scene(
            row["scene"], row["alike"], Path(row["file"]).stem, Span(float(row["start"]), float(row["end"]))
        )
        for row in csv_rows(HERE / "scenes.csv")
    ]
    found += [Scene(shot.scene, shot.scene, shot.film, Span(shot.start, shot.end)) for shot in shots()]
    return {scene.name: scene for scene in found}


def labelled(file: str = "labelled.csv") -> list[LabelledQuery]:
    """The queries of a file beside this one."""
    known = scenes()
    return [
        LabelledQuery(row["kind"], row["query"], _named(row["right"], known), _named(row["unclear"], known))
        for row in csv_rows(HERE / file)
    ]


def alike() -> list[LabelledQuery]:
    """Each scene as a query, which the scenes that show the same answer."""
    known = scenes()
    return [
        LabelledQuery("likeness", name, tuple(one for one in known.values() if one.alike == scene.alike))
        for name, scene in known.items()
    ]


def earlier() -> list[LabelledQuery]:
    """Queries of other benchmarks: of `footage`, labelled by its clips, and absent ones. ConSE was tuned
    with those of the first.
    """
    clips = {
        row["clip"]: Scene(
            row["clip"], "", Path(row["file"]).stem, Span(float(row["start"]), float(row["end"]))
        )
        for row in csv_rows(FOOTAGE / "clips.csv")
    }
    # Whether a photograph answers them was not labelled.
    films = {shot.film for shot in shots()}
    unlabelled = tuple(scene for scene in scenes().values() if scene.video_id in films)
    found = [
        LabelledQuery("answerable", row["query"], tuple(clips[c] for c in row["clips"].split()), unlabelled)
        for row in csv_rows(FOOTAGE / "queries.csv")
    ]
    absent = (HERE / "queries.txt").read_text(encoding="utf-8").splitlines()
    absent += [row["query"] for row in csv_rows(HERE / "second.csv") if row["kind"] == "absent"]
    return found + [LabelledQuery("absent", text, (), unlabelled) for text in absent]


def _named(patterns: str, known: dict[str, Scene]) -> tuple[Scene, ...]:
    found: list[Scene] = []
    for pattern in patterns.split():
        own = [scene for name, scene in known.items() if fnmatchcase(name, pattern)]
        if not own:
            raise SystemExit(f"labelled.csv: {pattern!r} is no scene")
        found += own
    return tuple(found)
