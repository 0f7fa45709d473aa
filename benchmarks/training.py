"""Steps per second of training, beside the plain way to feed the same pairs to the same model.

    python benchmarks/training.py [--models xml reloclnet spr-relo] [--videos 600] [--steps 5] [--batch 64]

Ours: a batch holds each video (or window) once, pairs of alike lengths go together, padding ends with the
longest of the batch. Plain, as the releases do it: plain shuffling, every pair's video read and encoded for
itself even if the batch holds it twice, clips padded to 128 and tokens to 30. Both read the same
memory-mapped shards, start from the same weights and have no dropout. First the losses of the same pairs are
compared; then both take steps in turn (reading, forward, backward, optimiser), and their times are set
against each other. Where there is no GPU these are the processor's, so that other work on the machine does
not count. Features are random numbers; lengths are TVR's: 76 s with a deviation of 25 s at 1.5 s a clip, 5
moments a video, queries of about 13 tokens, 20 moments a query.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from moviola.features import Computed, FeatureFolder, Integers, convert
from moviola.retrieval import Proposals
from moviola.retrieval.saved.clip_windows import LABELS, ClipWindows
from moviola.study.models.batches import PairBatch
from moviola.study.models.pretrained import build
from moviola.study.models.refining import Windows
from moviola.study.training.batches import padded, token_batch, window_batch
from moviola.study.training.corpus import PooledVideos
from moviola.study.training.data import Split, batches_by_length
from moviola.study.training.optimizers import OptimizerConfig, make_optimizer
from moviola.study.training.recipe import Recipe
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import TrainingSettings, read_settings
from moviola.study.training.tasks.pairs import PairTask
from moviola.study.training.tasks.windows import WindowBatch, WindowTask

CLIPS, TOKENS = 128, 30
LEAST_RATIO = 2.0
CLIP_SECONDS = 1.5
SIZES = {"visual": 1024, "subtitles": 768, "queries": 768}
MODELS = ("xml", "reloclnet", "spr-relo")


# ---- the plain way ---------------------------------------------------------------------------------------


def long(values: Tensor, length: int) -> Tensor:
    """(B, L, …) padded with zeros to (B, length, …)."""
    out = values.new_zeros(len(values), length, *values.shape[2:])
    out[:, : values.shape[1]] = values
    return out


def lengthened(batch: PairBatch) -> PairBatch:
    """The same batch with fixed padding."""
    return replace(
        batch,
        query=long(batch.query, TOKENS),
        query_mask=long(batch.query_mask, TOKENS),
        visual=long(batch.visual, CLIPS),
        mask=long(batch.mask, CLIPS),
        subtitles=None if batch.subtitles is None else long(batch.subtitles, CLIPS),
    )


def each(videos: PooledVideos, rows: Integers) -> tuple[Tensor, Tensor, Tensor | None]:
    """Videos read one by one and padded to fixed length."""
    parts = [videos.batch(row[None]) for row in rows]
    visual, mask, heard = zip(*parts, strict=True)
    subtitles = [long(part, CLIPS) for part in heard if part is not None]
    return (
        torch.cat([long(part, CLIPS) for part in visual]),
        torch.cat([long(part, CLIPS) for part in mask]),
        torch.cat(subtitles) if subtitles else None,
    )


class PlainPairs(PairTask):
    """Every pair with a video of its own."""

    def batches(self, epoch: int, draw: Generator, pool: int = 1) -> Iterator[PairBatch]:
        lengths = self.videos.counts[self.pairs.video[self.pairs.moment]]
        for rows in batches_by_length(lengths, self.batch_size, draw, pool=pool):
            yield self.batch(rows, draw)

    def batch(self, rows: Integers, draw: Generator) -> PairBatch:
        moments = self.pairs.moment[rows]
        tokens, token_mask = token_batch(self.queries, self.pairs.query[rows])
        visual, mask, heard = each(self.videos, self.pairs.video[moments])
        labels = self.videos.labels(
            self.pairs.video[moments], self.pairs.start[moments], self.pairs.end[moments]
        )
        return PairBatch(
            query=long(tokens, TOKENS),
            query_mask=long(token_mask, TOKENS),
            visual=visual,
            mask=mask,
            subtitles=heard,
            video=torch.arange(len(rows)),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(self.pairs.similarity[rows]),
            positives=self.pairs.positives(rows),
            rows=torch.from_numpy(rows),
        )


class PlainWindows(WindowTask):
    """Every pair with a window of its own."""

    def batches(self, epoch: int, draw: Generator, pool: int = 1) -> Iterator[WindowBatch]:
        examples, longest = self.examples, self.refiner.max_clips
        drawn = self._drawn(draw)
        assert drawn.weak is not None
        assert drawn.free is not None
        video = examples.moments(drawn.pairs)[0]
        windows = examples.around(drawn.pairs, draw, longest)
        weak = examples.around(drawn.weak, draw, longest)
        free = examples.beside(drawn.free, longest)
        for rows in batches_by_length(windows.clips, self.batch_size, draw, pool=pool):
            yield WindowBatch(
                self._pairs(drawn.pairs[rows], video[rows], windows.take(rows)),
                self._windows(examples.proposals.video[drawn.free[rows]], free.take(rows)),
                self._windows(examples.moments(drawn.weak[rows])[0], weak.take(rows)),
            )

    def _pairs(self, rows: Integers, video: Integers, windows: ClipWindows) -> PairBatch:
        pairs = self.examples.pairs
        _, start, end = self.examples.moments(rows)
        beside = self._windows(video, windows)
        tokens = [self.refiner.query_rows(self.queries, query) for query in pairs.query[rows].tolist()]
        query, query_mask = padded(tokens)
        labels = windows.labels(start, end, LABELS[self.refiner.labels])
        return PairBatch(
            query=long(query, TOKENS),
            query_mask=long(query_mask, TOKENS),
            visual=beside.visual,
            mask=beside.mask,
            subtitles=beside.subtitles,
            video=torch.arange(len(rows)),
            labels=torch.from_numpy(labels),
            similarity=torch.from_numpy(pairs.similarity[rows]),
            positives=pairs.positives(rows),
        )

    def _windows(self, video: Integers, windows: ClipWindows) -> Windows:
        features = self.refiner.streams(self.examples.features)
        visual, mask, heard = window_batch(features, video, windows)
        return Windows(long(visual, CLIPS), long(mask, CLIPS), None if heard is None else long(heard, CLIPS))


PLAIN: dict[type[Any], type[Any]] = {PairTask: PlainPairs, WindowTask: PlainWindows}


# ---- what is measured ------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--videos", type=int, default=600)
    parser.add_argument("--steps", type=int, default=5, help="steps of each, in turn")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        split = synthetic(Path(scratch), options.videos)
        rows = [measured(name, split, options) for name in options.models]
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        report(rows, options)
    if not all(row["ratio"] >= LEAST_RATIO for row in rows):
        sys.exit(f"a ratio is below {LEAST_RATIO}")


def report(rows: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Print the table."""
    about = f"{torch.get_num_threads()} threads, {options.device}, batches of {options.batch}"
    table = Table(title=f"steps per second; {about}, {options.videos} videos")
    columns = {
        "model": "model", "ours": "ours", "plain": "plain", "ratio": "ratio",
        "difference": "losses differ by", "held": "videos a batch", "longest": "clips a video",
    }  # fmt: skip
    for title in columns.values():
        table.add_column(title)
    for row in rows:
        table.add_row(*(f"{row[key]:.3g}" if isinstance(row[key], float) else row[key] for key in columns))
    Console().print(table)


def measured(name: str, split: Split, options: argparse.Namespace) -> dict[str, Any]:
    """Compare losses, then time both in turn."""
    ours, theirs = (task_of(name, split, options) for _ in range(2))
    plain = PLAIN[type(ours)](**vars(theirs))
    one = next(iter(ours.batches(0, np.random.default_rng(0))))
    two = next(iter(plain.batches(0, np.random.default_rng(0), pool=8)))
    losses = [
        {key: term.item() for key, term in task.losses(batch, 0, torch.Generator().manual_seed(0)).items()}
        for task, batch in ((ours, one), (plain, two))
    ]
    difference = max(abs(losses[0][key] - losses[1][key]) / abs(losses[1][key]) for key in losses[1])
    if difference > 1e-4:
        sys.exit(f"{name}: the losses of the same pairs differ: {losses}")
    turns = [stepping(ours), stepping(plain)]
    for turn in turns:
        next(turn)  # what is read and built once
    seconds = [[next(turn) for turn in turns] for _ in range(options.steps)]
    mine, other = (statistics.median(column) for column in zip(*seconds, strict=True))
    videos = (one if isinstance(one, PairBatch) else one.pairs).visual
    return {
        "model": name,
        "ours": 1 / mine,
        "plain": 1 / other,
        "ratio": sum(row[1] for row in seconds) / sum(row[0] for row in seconds),
        "difference": difference,
        "held": float(len(videos)),
        "longest": float(videos.shape[1]),
    }


def task_of(name: str, split: Split, options: argparse.Namespace) -> Any:
    """The recipe's task with a model that starts from the same weights each time and has no dropout."""
    how: Recipe = recipe(name)
    settings: TrainingSettings = read_settings(
        how,
        overrides=[
            "model.dropout=0.0",
            f"model.max_clips={CLIPS}",
            f"loop.batch_size={options.batch}",
            f"loop.device={options.device}",
        ],
    )
    torch.manual_seed(0)
    model: nn.Module = build(how.architecture, {**how.sized(split.sizes), **settings.model})
    model.to(options.device)
    return next(iter(how.phases(model, split, split, settings)))


def stepping(task: Any) -> Iterator[float]:
    """Learn from one batch after the other; the seconds of each step, reading included."""
    optimizer, schedule = make_optimizer(task.model, OptimizerConfig(), 10_000)
    generator = torch.Generator().manual_seed(0)
    task.model.train()
    on_gpu = next(task.model.parameters()).is_cuda
    clock = time.perf_counter if on_gpu else time.process_time
    for epoch in itertools.count():
        started = clock()
        for batch in task.batches(epoch, np.random.default_rng(epoch)):
            loss = torch.stack(list(task.losses(batch, epoch, generator).values())).sum()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            if schedule:
                schedule.step()
            if on_gpu:
                torch.cuda.synchronize()
            yield clock() - started
            started = clock()


# ---- data ------------------------------------------------------------------------------------------------


def synthetic(folder: Path, videos: int, seed: int = 0) -> Split:
    """Random features of TVR's lengths, with pairs and coarse proposals."""
    draw = np.random.default_rng(seed)
    durations = np.clip(draw.normal(76, 25, videos), 15, CLIPS * CLIP_SECONDS)
    names = [f"v{row:05d}" for row in range(videos)]
    counts = dict(zip(names, np.ceil(durations / CLIP_SECONDS).astype(int).tolist(), strict=True))
    queries = {f"query {row}": int(n) for row, n in enumerate(np.clip(draw.normal(13, 4, videos), 5, TOKENS))}
    for stream, lengths in (("visual", counts), ("subtitles", counts), ("queries", queries)):
        convert(Computed(tuple(lengths), rows_of(lengths, SIZES[stream], draw)), folder / stream)
    about = {
        "clip_seconds": CLIP_SECONDS, "segment_clips": 4, "encoder": "random", "encoder_revision": "0",
        "durations": dict(zip(names, durations.tolist(), strict=True)),
    }  # fmt: skip
    (folder / "features.json").write_text(json.dumps(about))
    moments = [
        (row, float(start), float(min(start + length, durations[row])))
        for row in range(videos)
        for start, length in zip(
            draw.uniform(0, durations[row] - 8, 5), np.clip(draw.gamma(3, 3, 5), 2, 24), strict=True
        )
    ]
    answers = [draw.choice(len(moments), min(30, len(moments)), replace=False) for _ in queries]
    pairs = [
        {
            "query_id": number, "query": query,
            "relevant_moment": [
                {
                    "video_name": names[moments[m][0]], "timestamp": list(moments[m][1:]), "caption": str(m),
                    "similarity": round(float(draw.uniform(0.5, 1)), 3),
                }
                for m in own
            ],
        }
        for number, (query, own) in enumerate(zip(queries, answers, strict=True))
    ]  # fmt: skip
    (folder / "pairs.json").write_text(json.dumps(pairs))
    split = Split.read(FeatureFolder.open(folder), folder / "pairs.json")
    rows = [
        (query, *row) for query, own in enumerate(answers) for row in proposed(own, moments, durations, draw)
    ]
    query, video, start, end = zip(*rows, strict=True)
    found = Proposals.of_columns(query, video, start, end, np.ones(len(rows)), queries=len(answers))
    return replace(split, proposals=found)


def rows_of(lengths: dict[str, int], dim: int, draw: Generator) -> Callable[[str], Any]:
    """Random rows of a key."""
    return lambda key: draw.standard_normal((lengths[key], dim), dtype=np.float32)


def proposed(
    own: Integers, moments: list[tuple[int, float, float]], durations: Any, draw: Generator
) -> list[tuple[int, float, float]]:
    """Every answer in whole segments, and as many proposals of 6 to 18 s anywhere: video, start and end."""
    length = 4 * CLIP_SECONDS
    spans = [
        (v, float(np.floor(start / length) * length), min(np.ceil(end / length) * length, durations[v]))
        for v, start, end in (moments[m] for m in own)
    ]
    for video in draw.integers(len(durations), size=len(own)).tolist():
        start = float(np.floor(draw.uniform(0, durations[video] - 8) / length) * length)
        end = min(start + length * int(draw.integers(1, 4)), durations[video])
        spans.append((video, start, end))
    return spans


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    main()
