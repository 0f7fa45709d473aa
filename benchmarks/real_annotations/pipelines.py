"""The pipelines of TVR-Ranking (paper 000) on human annotations at full size: TVR's val and Charades-STA.

    python benchmarks/real_annotations/pipelines.py DATA [--out RESULTS] [--work FOLDER]

DATA holds `tvr/tvr_val_release.jsonl`, `charades-sta/charades_sta_train.txt` and `charades_sta_test.txt`,
and, for statistics alone, `activitynet-captions/val_2.json` and `tacos/val.json`. They are the published
files; none of them is part of the project, and the results hold no sentence of theirs.

Statistics (Tables 1 and 4); imprecise captions by rules with both checks (§3.1, Table 3); the draw of 500
and 2,781 queries, and 40 candidates of each (§3.2); ratings of these and consensus; pseudo training sets of
N = 1, 20, 40 (§3.3). Candidates and pseudo sets go by MiniLM, the paper's by SimCSE.

Nobody has rated these candidates, so the raters are made: what a pair is worth follows its similarity
alone, spread over the levels as the paper's release has them, and a rater adds noise. Its size is the one
at which as many pairs go to four raters as in the release (18.1 %); what it then gives for pairs that are
discarded and for second batches was not fitted.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders import load_sentence_encoder
from moviola.files.rows import read_json_lines
from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.building.candidate_pairs import BATCH, draw_queries, needs_second_batch
from moviola.study.datasets.building.consensus import LEVELS, Rating, agreement, consensus
from moviola.study.datasets.building.nearest import TextEncoder, embed, nearest, unit_rows
from moviola.study.datasets.building.pseudo import pseudo_training_set
from moviola.study.datasets.building.steps import Rewritten, rewrite_captions
from moviola.study.datasets.readers import read_annotations
from moviola.study.datasets.statistics import Statistics, statistics

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from measure_studies.judged_pairs import caption_changes, replacements

Floats = NDArray[np.float64]

FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tvr-val": ("tvr", ("tvr/tvr_val_release.jsonl",)),
    "charades-sta": (
        "charades",
        ("charades-sta/charades_sta_train.txt", "charades-sta/charades_sta_test.txt"),
    ),
    "activitynet-captions-val_2": ("activitynet", ("activitynet-captions/val_2.json",)),
    "tacos-val": ("tacos", ("tacos/val.json",)),
}
BUILT = {"tvr-val": ("v",), "charades-sta": ()}
"""Sets that ranked data are built of, and of which types of moments; all without any."""
SPLITS = {"val": 500, "test": 2781}
TOPS = (1, 20, 40)
PAPER_THRESHOLD = 0.4
THRESHOLD = 0.25
"""Least similarity before and after of what is kept: MiniLM falls further than SimCSE where names go."""
RELEASED = (5929, 19245, 30056, 24439, 14773)
"""Agreed pairs of TVR-Ranking's release by level, which the made raters' worth follows."""
FOUR_RATERS = (227_808 / (94_442 + 2_041) - 2) / 2
"""Share of the release's pairs that four raters saw: it has 227,808 ratings of 96,483 pairs, two or four."""
SEED = 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of published annotations")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    parser.add_argument("--work", type=Path, help="journals of rewriting; kept, so that a run goes on")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    encoder = load_sentence_encoder("minilm")
    with TemporaryDirectory() as scratch:
        work = options.work or Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            found = read(options.data, name)
            result: dict[str, Any] = {
                "statistics": plain(statistics(found, count_verbs=True)),
                "flaws": found.flaw_counts,
            }
            if name in BUILT:
                result |= built(found, name, encoder, work)
            path = options.out / f"{name}.json"
            path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
            print(f"{path}\n{json.dumps(result, indent=1)}", flush=True)


def read(data: Path, name: str) -> Annotations:
    """All files of a set as one."""
    kind, paths = FILES[name]
    parts = [read_annotations(data / path, kind) for path in paths]
    first, *others = parts
    videos = tuple(dict.fromkeys(video for part in parts for video in part.videos))
    place = {video: number for number, video in enumerate(videos)}
    durations = np.full(len(videos), np.nan)
    for part in parts:
        durations[[place[video] for video in part.videos]] = part.durations
    return Annotations(
        first.name, videos, durations,
        tuple(f"{number}-{name}" for number, part in enumerate(parts) for name in part.moment_ids),
        tuple(f"{number}-{name}" for number, part in enumerate(parts) for name in part.query_ids),
        np.concatenate([[place[part.videos[row]] for row in part.video] for part in parts]).astype(np.int64),
        np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]),
        tuple(caption for part in parts for caption in part.captions),
        tuple(kind for part in parts for kind in part.types),
        tuple(flaw for part in parts for flaw in part.flaws),
    ) if others else first  # fmt: skip


def built(found: Annotations, name: str, encoder: TextEncoder, work: Path) -> dict[str, Any]:
    """Imprecise captions, queries, candidates, ratings and pseudo sets of one data set."""
    chosen = found.select(np.isin(found.types, BUILT[name])) if BUILT[name] else found
    journal = work / f"{name}.jsonl"
    outcome = rewrite_captions(
        found, encoder, journal, journal.with_suffix(".csv"), types=BUILT[name], threshold=THRESHOLD
    )
    rewritten = outcome.moments
    rows = unit_rows(embed(rewritten.captions, encoder))
    splits = draw_queries(rewritten.captions, SPLITS, SEED)
    first_of = {text: place for place, text in reversed(list(enumerate(rewritten.captions)))}
    result: dict[str, Any] = {
        "moments": len(chosen), "imprecise": rewriting(chosen, outcome, journal),
        "captions": {"before": len(set(chosen.captions)), "after": len(set(rewritten.captions))},
        "splits": {},
    }  # fmt: skip
    for split, queries in splits.items():
        query_vectors = rows[[first_of[text] for text in queries.values()]]
        result["splits"][split] = judged(*nearest(query_vectors, rows, 2 * BATCH), rewritten)
    held_out = [text for queries in splits.values() for text in queries.values()]
    result["pseudo"] = {str(top): pseudo(rewritten, rows, top, held_out) for top in TOPS}
    return result


def rewriting(before: Annotations, outcome: Rewritten, journal: Path) -> dict[str, Any]:
    """What the rules made of the captions, what the checks say, and the words that came in (Table 3)."""
    pairs = caption_changes(before, outcome.moments)
    new = replacements(pairs)
    words = sum(one.count for one in new)
    passed = [row["similarity"] for _, row in read_json_lines(journal)]
    failed = outcome.outcome.failed
    similarity = np.array(passed + [one.similarity for one in failed])
    return {
        "captions": outcome.captions,
        "changed": outcome.changed,
        "with_names_left": sum(bool(one.names) for one in failed),
        "below": {str(limit): int((similarity < limit).sum()) for limit in (THRESHOLD, PAPER_THRESHOLD)},
        "left_out": len(failed),
        "replacement_words": words,
        "words_per_moment": words / len(pairs),
        "most_frequent": [asdict(one) for one in new[:12]],
    }


def judged(
    positions: NDArray[np.int64], similarity: NDArray[np.float32], moments: Annotations
) -> dict[str, Any]:
    """Candidates of a split (q, k) with their similarities, and what made raters make of them."""
    used = np.unique(positions)
    worth = worth_of(similarity.astype(np.float64))
    noise = noise_of(worth)
    ratings = rate(worth, noise, np.random.default_rng(SEED))
    outcome, raters = consensus(ratings), agreement(ratings)
    levels = [
        [outcome.agreed[f"{query}-{rank}"] for rank in range(BATCH) if f"{query}-{rank}" in outcome.agreed]
        for query in range(len(worth))
    ]
    pairs = worth.size
    return {
        "queries": len(worth),
        "pairs": pairs,
        "moments": len(used),
        "videos": len(np.unique(moments.video[used])),
        "similarity_at_rank": {
            str(rank): float(similarity[:, rank - 1].mean()) for rank in (1, 5, 10, 20, 40)
        },
        "made_raters": {
            "noise": noise,
            "four_raters": (len(ratings) / pairs - 2) / 2,
            "discarded": len(outcome.discarded) / pairs,
            "levels": (raters.histogram / raters.histogram.sum()).tolist(),
            "kappa": raters.kappa,
            "lowest_and_highest_differ_by": [
                float(np.trace(raters.low_high, offset=gap) / raters.low_high.sum()) for gap in range(LEVELS)
            ],
            "second_batch": float(np.mean([needs_second_batch(row) for row in levels])),
            "relevant_per_query": float(sum(level > 0 for level in outcome.agreed.values()) / len(worth)),
        },
    }  # fmt: skip


def worth_of(similarity: Floats) -> Floats:
    """(q, k) what each pair is worth: its place among all by similarity, spread as the release's levels."""
    order = similarity.ravel().argsort().argsort() + 0.5
    shares = np.concatenate([[0], np.cumsum(RELEASED)]) / sum(RELEASED)
    # Agreed levels are rounded up, which lifts them by a quarter of a level on average.
    worth = np.interp(order / similarity.size, shares, np.arange(LEVELS + 1) - 0.5) - 0.25
    return np.asarray(worth, np.float64).reshape(similarity.shape)


def levels_of(worth: Floats, noise: float, random: np.random.Generator) -> NDArray[np.int64]:
    """What one rater says of each pair."""
    said = np.rint(worth + random.normal(0, noise, worth.shape))
    return np.clip(said, 0, LEVELS - 1).astype(np.int64)


def rate(worth: Floats, noise: float, random: np.random.Generator) -> list[Rating]:
    """Two ratings of each pair, and two more where they differ by more than one."""
    said = [levels_of(worth, noise, random) for _ in range(4)]
    ratings = []
    for query, rank in np.ndindex(*worth.shape):
        given = 2 if abs(int(said[0][query, rank]) - int(said[1][query, rank])) <= 1 else 4
        ratings += [Rating(f"{query}-{rank}", f"r{n}", int(said[n][query, rank])) for n in range(given)]
    return ratings


def noise_of(worth: Floats) -> float:
    """The noise at which as many pairs go to four raters as in the release, by halving."""
    low, high = 0.0, 3.0
    for _ in range(30):
        middle = (low + high) / 2
        random = np.random.default_rng(SEED)
        first, second = levels_of(worth, middle, random), levels_of(worth, middle, random)
        low, high = (middle, high) if (abs(first - second) > 1).mean() < FOUR_RATERS else (low, middle)
    return round(high, 3)


def pseudo(moments: Annotations, rows: NDArray[np.float32], top: int, held_out: list[str]) -> dict[str, Any]:
    """A pseudo training set as Tables 1 and 4 show it."""
    entries = pseudo_training_set(moments, rows, top, held_out=held_out)
    pairs = [moment for entry in entries for moment in entry["relevant_moment"]]
    used = {moment["pair_id"] for moment in pairs}
    kept = moments.select(np.array([name in used for name in moments.moment_ids]))
    return {
        "queries": len(entries),
        "pairs": len(pairs),
        "similarity": float(np.mean([moment["similarity"] for moment in pairs])),
        # Queries, and so verbs, are those of every N.
        "statistics": plain(
            statistics(kept, [entry["query"] for entry in entries], count_verbs=top == TOPS[0])
        ),
    }


def plain(found: Statistics) -> dict[str, Any]:
    """Statistics for JSON, where what is not known is null."""

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: known(inner) for name, inner in value.items()}
        return None if isinstance(value, float) and not np.isfinite(value) else value

    shown: dict[str, Any] = known(asdict(found))
    if shown["ratio"] is None:  # durations of some videos are not there
        shown["video_hours"] = None
    return shown


if __name__ == "__main__":
    main()
