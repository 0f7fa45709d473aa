"""What marks teach, by simulated users: truth marks the first five pieces of each round, the rest are scored.

    python benchmarks/marks/simulated_users.py [--videos FOLDER] [--encoder conse-lite1] [--choose 6 7]
        [--report 5 8 1] [--draws 20] [--gridhouse WORLD] [--features FOLDER] [--out results.csv]

Films of 14 shots are cut from real clips with a seed each (`benchmarks/footage/query_films.py`, 12 films) and
taken in pieces of three seconds: straight through, where a piece answers if half of it shows what does, or
inside shots, with nothing from two of them. A round shows the user the best five pieces that are not marked,
who marks them right or wrong; nDCG@10 is that of the pieces that are not marked yet, for the queries with at
least eight right pieces, before any mark and after one, two and three rounds. Queries are those of
`benchmarks/footage/queries.csv` and, apart, those of `queries.csv` here, which are broader.

The settings of every rule are the best of some random ones on the films of the seeds to choose by (mean of
the first two rounds); reported are films of other seeds. They are of the same clips. A world of gridhouse
(made by `moviola gridhouse`) is reported besides, by the demo's encoder and by this one.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from marking_rules import RANGES, Floats, Given, Rule, Settings, drawn
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola.encoders import FrameTextEncoder, PictureEncoder, load_encoder
from moviola.files.rows import read_json
from moviola.media import sample_frames
from moviola.retrieval import Marks
from moviola.retrieval.segments import mean_pooled, normalised

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "footage"))

from query_films import Query, Shot, make_films, read_queries

HERE = Path(__file__).resolve().parent
VIDEOS = HERE.parents[2] / "shared" / "videos"
FILMS, SECONDS, FIRST, ROUNDS, LEAST, DEPTH = 12, 3, 5, 3, 8, 10
GRADE = 2  # of gridhouse's relevance, from which on a moment is right

Truth = NDArray[np.bool_]
Frames = tuple[Floats, Floats]
"""Features of a film's frames, one a second: (n, d) for texts, (n, p) of likeness."""


@dataclass(frozen=True)
class SimulatedQuery:
    """A query: its text, its vector (d,) and (n,) whether each piece answers it."""

    text: str
    vector: Floats
    truth: Truth


@dataclass(frozen=True)
class World:
    """Pieces of films with their features as a library has them (half precision), and queries."""

    name: str
    texts: Floats
    pictures: Floats
    queries: Sequence[SimulatedQuery]

    @cached_property
    def alike(self) -> Floats:
        """(n, n) float32 cosines of all pieces."""
        return self.pictures @ self.pictures.T

    def given(self, query: SimulatedQuery, marked: Truth) -> Given:
        """What a rule sees when some pieces are marked."""
        right, wrong = np.flatnonzero(marked & query.truth), np.flatnonzero(marked & ~query.truth)
        return Given(self.texts, self.pictures, self.alike, query.vector, right, wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of the clips' files")
    parser.add_argument("--encoder", default="conse-lite1")
    parser.add_argument("--choose", type=int, nargs="+", default=[6, 7], help="seeds to choose settings by")
    parser.add_argument("--report", type=int, nargs="+", default=[5, 8, 1], help="seeds to report")
    parser.add_argument("--draws", type=int, default=20, help="settings tried of each rule")
    parser.add_argument("--gridhouse", type=Path, help="a world with its films, to report besides")
    parser.add_argument("--features", type=Path, help="folder that keeps features between runs")
    parser.add_argument("--out", type=Path, help="a CSV file for all figures")
    options = parser.parse_args()
    encoder = load_encoder(options.encoder, device="cpu")
    with TemporaryDirectory() as scratch:
        kept = options.features or Path(scratch)
        kept.mkdir(parents=True, exist_ok=True)
        by_seed = {
            seed: list(worlds_of(seed, options.videos, encoder, kept))
            for seed in [*options.choose, *options.report]
        }
        grids = []
        if options.gridhouse:
            grids = [
                gridhouse_world(options.gridhouse, load_encoder(name, device="cpu"), kept)
                for name in ("demo", options.encoder)
            ]
    chosen = choose([world for seed in options.choose for world in by_seed[seed]], options.draws)
    tables: dict[str, list[World]] = {}
    for seeds, label in ((options.choose, "chosen by"), (options.report, "reported")):
        for seed in seeds:
            for world in by_seed[seed]:
                tables.setdefault(f"{label}, {world.name}", []).append(world)
    tables |= {world.name: [world] for world in grids}
    rows = [row for name, worlds in tables.items() for row in table_of(name, worlds, chosen)]
    reach([world for seed in options.report for world in by_seed[seed]])
    for name, settings in chosen.items():
        print(f"{name}: {', '.join(f'{key} {value:.3g}' for key, value in settings.items())}")
    if options.out:
        with options.out.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow(["films", "queries", "rule", *(f"round {number}" for number in range(ROUNDS + 1))])
            out.writerows(rows)


# ---- simulated users ---------------------------------------------------------------------------------------


def simulate(world: World, rule: Callable[[Given], NDArray[np.float64]]) -> NDArray[np.float64]:
    """(Q, 1 + ROUNDS) nDCG@10 of what is not marked yet; NaN where no right piece is left."""
    gains = np.empty((len(world.queries), ROUNDS + 1))
    for place, query in enumerate(world.queries):
        marked = np.zeros(len(query.truth), np.bool_)
        for number in range(ROUNDS + 1):
            scores = rule(world.given(query, marked))
            left = np.flatnonzero(~marked)
            order = left[np.argsort(-scores[left], kind="stable")]
            gains[place, number] = ndcg(query.truth[order])
            marked[order[:FIRST]] = True
    return gains


def ndcg(found: Truth) -> float:
    """nDCG@10 of pieces in order."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    best = discounts[: int(found.sum())].sum()
    return float(found[:DEPTH] @ discounts[: len(found)] / best) if best else float("nan")


def means(worlds: Sequence[World], rule: Rule, settings: Settings) -> NDArray[np.float64]:
    """(1 + ROUNDS,) over all queries of some worlds."""
    gains = [simulate(world, lambda given: rule(given, settings)) for world in worlds]
    mean: NDArray[np.float64] = np.nanmean(np.concatenate(gains), axis=0)
    return mean


def choose(worlds: Sequence[World], draws: int) -> dict[str, dict[str, float]]:
    """Of every rule with settings the best of some random ones, by the mean of the first two rounds."""
    chosen = {}
    for name, (rule, ranges) in RANGES.items():
        random = np.random.default_rng(0)
        tried = [drawn(ranges, random) for _ in range(draws if ranges else 1)]
        chosen[name] = max(tried, key=lambda settings: means(worlds, rule, settings)[1:3].sum())
    return chosen


def table_of(name: str, worlds: Sequence[World], chosen: Mapping[str, Settings]) -> Iterator[list[str]]:
    """Print a table; gives its rows."""
    queries = sum(len(world.queries) for world in worlds)
    table = Table("rule", *(f"{number}" for number in range(ROUNDS + 1)), title=f"{name}: {queries} queries")
    for rule_name, (rule, _) in RANGES.items():
        shown = [f"{mean:.3f}" for mean in means(worlds, rule, chosen[rule_name])]
        table.add_row(rule_name, *shown)
        yield [name, str(queries), rule_name, *shown]
    Console(width=100).print(table)


def reach(worlds: Sequence[World], depth: int = 20) -> None:
    """Of the right pieces that are not marked after a round: the share among the candidates.

    Candidates are the text's best, or the best of the text and of :meth:`moviola.retrieval.Marks.probes`.
    """
    shares = []
    for world in worlds:
        for query in world.queries:
            by_text = np.argsort(-(world.texts @ query.vector), kind="stable")
            marked = np.zeros(len(query.truth), np.bool_)
            marked[by_text[:FIRST]] = True
            given = world.given(query, marked)
            probes = Marks.of(world.pictures[given.right], world.pictures[given.wrong]).probes()
            near = np.argsort(-(world.pictures @ probes.T), axis=0, kind="stable")[:depth]
            wanted = query.truth & ~marked
            if wanted.any():
                found = (np.isin(np.flatnonzero(wanted), some).mean() for some in
                         (by_text[:depth], np.union1d(by_text[:depth], near)))  # fmt: skip
                shares.append(list(found))
    alone, both = np.mean(shares, axis=0)
    print(f"right pieces among the text's best {depth}: {alone:.3f}; with those of the probes: {both:.3f}")


# ---- pieces ------------------------------------------------------------------------------------------------


def worlds_of(seed: int, videos: Path, encoder: FrameTextEncoder, kept: Path) -> Iterator[World]:
    """Films of a seed, in pieces straight through and inside shots, with the queries of both files."""
    folder = kept / f"films-{seed}"
    shots = make_films(folder, videos, FILMS, seed) if not folder.exists() else _shots(folder)
    frames = features_of(folder, encoder, kept / f"films-{seed}-{encoder.id}.npz")
    for kind, cut in (("straight through", straight_through), ("inside shots", inside_shots)):
        places, shown = cut(shots, frames)
        for label, queries in (("queries of footage", read_queries()), ("broad queries", _broad())):
            truths = [np.array([_share(query, piece) >= 0.5 for piece in shown]) for query in queries]
            simulated = _simulated([query.text for query in queries], truths, encoder)
            yield World(f"{kind}, {label}", *_pooled(frames, places), simulated)


def straight_through(
    shots: Sequence[Shot], frames: Mapping[str, Frames]
) -> tuple[list[tuple[str, int, int]], list[dict[str, float]]]:
    """Film, first and last frame (exclusive) of each piece, and what share of it shows which clip."""
    places, shown = [], []
    for film, (texts, _) in frames.items():
        own = [shot for shot in shots if shot.film == film]
        for first in range(0, len(texts), SECONDS):
            stop = min(first + SECONDS, own[-1].end)
            shares: dict[str, float] = {}
            for shot in own:
                together = min(stop, shot.end) - max(first, shot.start)
                if together > 0:
                    shares[shot.clip] = shares.get(shot.clip, 0) + together / (stop - first)
            places.append((film, first, first + SECONDS))
            shown.append(shares)
    return places, shown


def inside_shots(
    shots: Sequence[Shot], frames: Mapping[str, Frames]
) -> tuple[list[tuple[str, int, int]], list[dict[str, float]]]:
    """The same, of frames that lie in one shot; what is left of a shot is no piece."""
    places, shown = [], []
    for shot in shots:
        first, stop = int(np.ceil(shot.start)), int(np.ceil(shot.end - 0.05))
        for begin, end in pairwise(range(first, stop + 1, SECONDS)):
            if end <= len(frames[shot.film][0]):
                places.append((shot.film, begin, end))
                shown.append({shot.clip: 1.0})
    return places, shown


def gridhouse_world(folder: Path, encoder: FrameTextEncoder, kept: Path) -> World:
    """The films of a world with the queries of val and test."""
    frames = features_of(folder / "videos", encoder, kept / f"gridhouse-{encoder.id}.npz")
    places = [
        (film, first, first + SECONDS)
        for film, (texts, _) in frames.items()
        for first in range(0, len(texts), SECONDS)
    ]
    queries = [query for split in ("val", "test") for query in read_json(folder / f"{split}.json")]
    truths = []
    for query in queries:
        shares = np.zeros(len(places))
        for moment in query["relevant_moment"]:
            start, end = moment["timestamp"]
            if moment["relevance"] >= GRADE:
                for place, (film, first, stop) in enumerate(places):
                    if film == moment["video_name"]:
                        shares[place] += max(0.0, min(stop, end) - max(first, start)) / SECONDS
        truths.append(shares >= 0.5)
    simulated = _simulated([query["query"] for query in queries], truths, encoder)
    return World(f"gridhouse, {encoder.id}", *_pooled(frames, places), simulated)


def _pooled(frames: Mapping[str, Frames], places: Sequence[tuple[str, int, int]]) -> Frames:
    """Both features of pieces, as those of segments are made."""
    texts, pictures = (
        np.concatenate([mean_pooled(frames[film][kind][first:stop], SECONDS) for film, first, stop in places])
        for kind in (0, 1)
    )
    return texts, pictures


def _simulated(
    texts: Sequence[str], truths: Sequence[Truth], encoder: FrameTextEncoder
) -> list[SimulatedQuery]:
    """The queries with enough right pieces."""
    vectors = normalised(encoder.encode_text(texts))
    return [
        SimulatedQuery(text, vector, truth)
        for text, vector, truth in zip(texts, vectors, truths, strict=True)
        if truth.sum() >= LEAST
    ]


def _share(query: Query, shown: Mapping[str, float]) -> float:
    """What share of a piece shows what answers a query."""
    return sum(share for clip, share in shown.items() if clip in query.clips)


def features_of(folder: Path, encoder: FrameTextEncoder, kept: Path) -> dict[str, Frames]:
    """Features of a folder's films by name, in half precision, as a library keeps them."""
    if not kept.is_file():
        arrays = {}
        for path in sorted(folder.glob("*.mp4")):
            with sample_frames(path, rate=1.0, size=encoder.frame_size) as stream:
                images = np.stack([frame.image for frame in stream])
            if isinstance(encoder, PictureEncoder):
                texts, pictures = encoder.encode_pictures(images)
            else:
                texts = pictures = encoder.encode_frames(images)
            arrays[f"{path.stem}.texts"] = texts.astype(np.float16)
            arrays[f"{path.stem}.pictures"] = pictures.astype(np.float16)
        np.savez(kept, allow_pickle=False, **arrays)
    with np.load(kept) as arrays:
        names = sorted({name.split(".")[0] for name in arrays})
        return {
            name: (normalised(arrays[f"{name}.texts"]), normalised(arrays[f"{name}.pictures"]))
            for name in names
        }


def _shots(folder: Path) -> list[Shot]:
    with (folder / "shots.csv").open(encoding="utf-8", newline="") as file:
        return [
            Shot(row["film"], float(row["start"]), float(row["end"]), row["clip"])
            for row in csv.DictReader(file)
        ]


def _broad() -> list[Query]:
    with (HERE / "queries.csv").open(encoding="utf-8", newline="") as file:
        return [Query(row["query"], frozenset(row["clips"].split())) for row in csv.DictReader(file)]


if __name__ == "__main__":
    main()
