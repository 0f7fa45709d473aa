"""A world that models are compared on: films, features of pictures and of subtitles, three splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from comparison.plan import WHOLE, Cut
from comparison.streams import export_two_streams, scramble_texts
from moviola.encoders import DEMO, find_checkpoint
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.errors import EncoderMismatch, InvalidValue
from moviola.features import FeatureFolder
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.study.datasets.gridhouse.dataset import SLOTS, annotate, build
from moviola.study.datasets.gridhouse.films import SHARES
from moviola.study.datasets.readers import ranked_queries
from moviola.study.training.data import Split

__all__ = ["World", "prepare", "present_encoder", "require_encoder"]

_PAIRS = {"train": "train_top40.json", "val": "val.json", "test": "test.json"}


@dataclass(frozen=True)
class World:
    """A gridhouse folder with its library and features under one folder.

    Attributes:
        folder: where it lies.
        cut: what is taken of it.
        queries: number of training queries that were drawn of all; None for all.
    """

    folder: Path
    cut: Cut = WHOLE
    queries: int | None = None

    def of_clips(self, name: str) -> Path:
        """A folder of that name, apart for clips that are not a second long."""
        seconds = self.cut.clip_seconds
        return self.folder / (name if seconds == 1 else f"{name}-{seconds:g}s")

    @property
    def annotations(self) -> Path:
        """Where the pair files are: beside the films, or in a folder of their own for another similarity or
        a share; of a share those of training alone are used.
        """
        by = [] if self.cut.similarity == SLOTS else [self.cut.similarity]
        part = [f"share{self.cut.share:g}"] if self.cut.share < 1 else []
        part += ["pool"] if self.cut.one_pool else []
        return self.folder / ("-".join(["annotations", *by, *part]) if by or part else "films")

    @cached_property
    def features(self) -> FeatureFolder:
        """The features of every film and query."""
        return FeatureFolder.open(self.of_clips("features-scrambled" if self.cut.scrambled else "features"))

    def videos(self, split: str) -> list[str]:
        """Ids of a split's films: 60 : 10 : 30 by number within each kind, as gridhouse has it; or all."""
        if self.cut.one_pool:
            return sorted(self.features.durations)
        kinds = groupby(sorted(self.features.durations), key=lambda name: name.rpartition("-")[0])
        names = [list(_of_split(split, list(own))) for _, own in kinds]
        kept = self.cut.share if split == "train" else 1.0
        return [name for own in names for name in own[: round(kept * len(own))]]

    def pairs(self, split: str) -> Path:
        """The pair file of a split: "train", "val" or "test"."""
        if self.cut.share < 1 and split != "train":
            return replace(self, cut=replace(self.cut, share=1.0)).pairs(split)
        drawn = "" if self.queries is None else f"{self.queries}-"
        return self.annotations / f"{drawn}{_PAIRS[split]}"

    def training(self, top: int) -> dict[str, Any]:
        """What a model learns from and is judged by, as ``Experiment.prepare`` takes it; N is ``top``."""
        return {
            "source": self.features, "train": self.pairs("train"), "val": self.pairs("val"), "top": top,
            "train_videos": self.videos("train"), "val_videos": self.videos("val"),
        }  # fmt: skip

    def split(self, name: str, top: int | None = None) -> Split:
        """Queries about, and moments of, the films of a split alone; at most ``top`` moments per query."""
        return Split.read(self.features, self.pairs(name), self.videos(name), top=top)

    def types(self, split: str) -> dict[str, str]:
        """Of each query by id what answers it: pictures (v), subtitles (t), or both (vt)."""
        return {str(row["query_id"]): str(row["type"]) for row in read_json(self.pairs(split))}


def prepare(
    folder: Path,
    *,
    videos: int,
    seed: int,
    workers: int,
    edited_videos: int = 0,
    subtitles: bool = False,
    queries: int | None = None,
    cut: Cut = WHOLE,
    note: Callable[[str], None] = print,
) -> World:
    """Film, index and export; what is there already is kept.

    Args:
        folder: where everything goes.
        videos: films, of which 60 % are for training.
        seed: of the world.
        workers: processes that film.
        edited_videos: further films as an editor cuts them.
        subtitles: with a narrator, whose lines are a second stream of features (:mod:`comparison.streams`).
        queries: number of training queries, drawn from all; None takes all. Of the queries of all splits,
            those that only subtitles answer are then as many as in TVR, :data:`SPOKEN_SHARE`.
        cut: what is taken; films, val and test are the same with each.
        note: called with what is being done.

    Raises:
        InvalidValue: the folder holds a world of other films.
    """
    from moviola.library import export_features
    from moviola.media import write_video
    from moviola.search import Library

    films, world = folder / "films", World(folder, replace(cut, share=1.0))
    features, seconds = world.of_clips("features"), cut.clip_seconds
    if not (folder / "features" / "features.json").is_file():
        note(f"filming {videos} films (seed {seed})")
        build(
            films, videos=videos, edited_videos=edited_videos, seed=seed, workers=workers,
            write_video=write_video, subtitles=subtitles,
        )  # fmt: skip
    if not (features / "features.json").is_file():
        note("encoding their frames")
        sentences = "minilm" if subtitles else "none"
        with Library(
            world.of_clips("library"), encoder="demo", sentence_encoder=sentences,
            frame_rate=1 / seconds, segment_seconds=4 * seconds,
        ) as library:  # fmt: skip
            library.index(films / "videos", ocr=False)  # nothing is written in its pictures
            note("exporting features")
            pairs = map(World(folder).pairs, _PAIRS)
            texts = [text for path in pairs for text in ranked_queries(path)]
            if subtitles:
                training = read_json(films / "splits.json")["train"]
                export_two_streams(library.store, texts, features, fitted_on=training)
            else:
                export_features(library.store, texts, features)
    scrambled = world.of_clips("features-scrambled")
    if cut.scrambled and not (scrambled / "features.json").is_file():
        note("scrambling the features of texts")
        scramble_texts(FeatureFolder.open(features), scrambled)
    there = read_json(films / "gridhouse.json")
    held = (there["videos"], there.get("edited_videos", 0), there["seed"])
    if held != (videos, edited_videos, seed):
        raise InvalidValue(
            f"{folder}: holds {held[0]} plain and {held[1]} edited films of seed {held[2]}, not {videos} and "
            f"{edited_videos} of seed {seed}; give another folder"
        )
    if (cut.similarity != SLOTS or cut.one_pool) and not world.pairs("train").is_file():
        note(f"choosing pseudo labels by {cut.similarity}{' from all films' if cut.one_pool else ''}")
        annotate(world.annotations, films, similarity=cut.similarity, one_pool=cut.one_pool)
    if queries is not None:
        world = _draw(world, queries, seed)
    if cut.share == 1:
        return world
    part = World(folder, cut)
    if not part.pairs("train").is_file():
        note(f"annotating {cut.share:.0%} of the training films")
        count = len(part.videos("train"))
        annotate(part.annotations, films, similarity=cut.similarity, training_videos=count)
    return part if queries is None else _draw(part, queries, seed)


def present_encoder() -> str:
    """Revision of the demo's encoder, with which films are encoded."""
    return find_checkpoint(DEMO, builtin={DEMO: DEMO_FOLDER}, instead="").revision


def require_encoder(world: World, revision: str) -> None:
    """The features of a world, or those that would be made, must be of a revision of the demo's encoder.

    Raises:
        EncoderMismatch: they are of another one.
    """
    features = world.of_clips("features")  # those of scrambled texts are made of these
    there = (features / "features.json").is_file()
    own = FeatureFolder.open(features).facts.encoder_revision if there else present_encoder()
    if own != revision:
        raise EncoderMismatch(
            f"{world.folder}: features of revision {own} of the demo's encoder, but revision {revision} is "
            "needed; delete the folders library and features where that is today's, else take a checkout in "
            "which it was, or copy the features that it made"
        )


def _of_split(split: str, names: Sequence[str]) -> Sequence[str]:
    first, second = (round(share * len(names)) for share in (SHARES[0], SHARES[0] + SHARES[1]))
    return {"train": names[:first], "val": names[first:second], "test": names[second:]}[split]


SPOKEN_SHARE = 0.09
"""Of all queries, those that only subtitles answer (type "t" of TVR)."""


def _draw(world: World, queries: int, seed: int) -> World:
    """The same with this number of training queries, and with the types of queries as in TVR."""
    drawn, draw = replace(world, queries=queries), np.random.default_rng(seed)
    for split in _PAIRS:
        rows = read_json(world.pairs(split))
        kept = _places(world, split, round(world.cut.share * queries), draw)
        if not drawn.pairs(split).is_file():
            write_json(drawn.pairs(split), [rows[place] for place in kept])
    return drawn


def _places(world: World, split: str, queries: int, draw: Generator) -> list[int]:
    """Places of the queries to keep, rising."""
    spoken = np.array([kind == "t" for kind in world.types(split).values()])
    order = draw.permutation(len(spoken))
    others = order[~spoken[order]]
    if split == "train":
        others = others[: round(queries * (1 - SPOKEN_SHARE))]
    few = round(len(others) * SPOKEN_SHARE / (1 - SPOKEN_SHARE))
    return sorted([*others.tolist(), *order[spoken[order]][:few].tolist()])
