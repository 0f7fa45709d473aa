"""SPR_CLIP was never released: a reference of it in NumPy, written from the paper's text (section 3.3.2).

One window and one query at a time, in double precision, with loops; only the weights are the model's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from moviola.study.models.batches import PairBatch
from moviola.study.models.refining import Windows
from moviola.study.models.spr import SprClip, SprClipConfig

Floats = NDArray[np.float64]
DIM, HEADS, LENGTH = 8, 2, 9
CONFIG = SprClipConfig(hidden_size=DIM, heads=HEADS, layers=2, max_clips=LENGTH, longest_span=5)


@dataclass(frozen=True)
class Reference:
    """The model's weights by name."""

    weights: dict[str, Floats]

    def linear(self, name: str, x: Floats) -> Floats:
        found: Floats = x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]
        return found

    def norm(self, name: str, x: Floats) -> Floats:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        found: Floats = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return found

    def attention(self, name: str, x: Floats) -> Floats:
        parts = x @ self.weights[f"{name}.in_proj_weight"].T + self.weights[f"{name}.in_proj_bias"]
        query, key, value = np.split(parts, 3, axis=-1)
        size, mixed = DIM // HEADS, np.zeros_like(x)
        for head in range(HEADS):
            own = slice(head * size, (head + 1) * size)
            for frame in range(len(x)):
                weight = softmax(key[:, own] @ query[frame, own] / math.sqrt(size))
                mixed[frame, own] = weight @ value[:, own]
        return self.linear(f"{name}.out_proj", mixed)

    def frames(self, window: Floats) -> Floats:
        """F^M: each frame with what it sees of the others, projected."""
        x = window + self.weights["frame_position_embeddings.weight"][: len(window)]
        for layer in range(CONFIG.layers):
            block = f"seq_transf.resblocks.{layer}"
            x = x + self.attention(f"{block}.attn", self.norm(f"{block}.ln_1", x))
            hidden = self.linear(f"{block}.mlp.c_fc", self.norm(f"{block}.ln_2", x))
            x = x + self.linear(f"{block}.mlp.c_proj", hidden / (1 + np.exp(-1.702 * hidden)))
        return self.linear("temp_proj", unit(window + x))

    def query(self, vector: Floats) -> Floats:
        return self.linear("qfeat_proj", vector)

    def phi(self, query: Floats, frames: Floats) -> float:
        """The largest cosine of the query with a frame."""
        return float((unit(frames) @ unit(query)).max())

    def curves(self, query: Floats, frames: Floats) -> tuple[Floats, Floats]:
        """Logits of start and end: a convolution over the similarity of the frames with the query."""
        seen = self.weights["scale"] * (unit(frames) @ unit(self.linear("span_query", query)))
        return self.smoothed("start_predictor", seen), self.smoothed("end_predictor", seen)

    def smoothed(self, name: str, curve: Floats) -> Floats:
        kernel = self.weights[f"{name}.weight"][0, 0]
        half = len(kernel) // 2
        wide = np.concatenate([np.zeros(half), curve, np.zeros(half)])
        return np.array([kernel @ wide[place : place + len(kernel)] for place in range(len(curve))])


def unit(x: Floats) -> Floats:
    found: Floats = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return found


def softmax(x: Floats) -> Floats:
    found: Floats = np.exp(x - x.max())
    return found / found.sum()


@pytest.fixture(scope="module")
def model() -> SprClip:
    torch.manual_seed(4)
    made = SprClip(CONFIG)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return made.eval()


@pytest.fixture(scope="module")
def reference(model: SprClip) -> Reference:
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    return Reference(weights | {"scale": np.exp(weights["pt_clip_logit_scale"])})


def windows(count: int, seed: int) -> tuple[list[Floats], torch.Tensor, torch.Tensor]:
    """Windows of 5 to 9 frames, one by one and as a batch with its mask."""
    draw = np.random.default_rng(seed)
    made = [draw.normal(size=(int(draw.integers(5, LENGTH + 1)), DIM)) for _ in range(count)]
    batch, mask = torch.zeros(count, LENGTH, DIM), torch.zeros(count, LENGTH)
    for row, window in enumerate(made):
        batch[row, : len(window)] = torch.from_numpy(window).float()
        mask[row, : len(window)] = 1
    return made, batch, mask


@torch.inference_mode()
def test_matching_scores_and_refined_spans(model: SprClip, reference: Reference) -> None:
    each, batch, mask = windows(6, 0)
    question = np.random.default_rng(1).normal(size=DIM)
    context = model.encode_context(batch, mask)
    query = reference.query(question)
    tensor = torch.from_numpy(question).float()[None, None]
    phi = model.scores(model.encode_query(tensor), context)[0]
    score, start, end = model.refine(tensor, None, context)
    for row, window in enumerate(each):
        frames = reference.frames(window)
        assert phi[row].item() == pytest.approx(reference.phi(query, frames), abs=1e-5)
        starts, ends = (softmax(curve) for curve in reference.curves(query, frames))
        cells = {
            (m, n): starts[m] * ends[n] * math.exp(30 * reference.phi(query, frames))
            for m, n in product(range(len(window)), repeat=2)
            if 1 <= n - m < CONFIG.longest_span
        }
        best = max(cells, key=lambda cell: cells[cell])
        assert (start[row].item(), end[row].item()) == best
        assert score[row].item() == pytest.approx(cells[best], rel=1e-3)


@torch.inference_mode()
def test_every_term_of_the_loss(model: SprClip, reference: Reference) -> None:
    """FCL, VCL, start and end, both rankings with the hardest negative, hard negatives, strong over weak."""
    each, visual, mask = windows(4, 2)
    free, free_batch, free_mask = windows(5, 3)
    weak, weak_batch, weak_mask = windows(5, 4)
    questions = np.random.default_rng(5).normal(size=(5, DIM))
    video = [0, 1, 2, 3, 3]
    labels = [[0, 2], [1, 3], [2, 4], [0, 1], [3, 4]]
    positives = np.array([[v == w for w in video] for v in video])
    positives[0, 2] = True  # another window that answers the first query
    found = model.loss(
        PairBatch(
            torch.from_numpy(questions).float()[:, None], torch.ones(5, 1), visual, mask, None,
            torch.tensor(video), torch.tensor(labels), torch.ones(5), torch.from_numpy(positives),
        ),
        hard_pool=1, generator=None,
        hard_negatives=Windows(free_batch, free_mask, None),
        weak_positives=Windows(weak_batch, weak_mask, None),
    )  # fmt: skip

    queries = [reference.query(question) for question in questions]
    own = [reference.frames(each[v]) for v in video]
    phi = np.array([[reference.phi(q, frames) for frames in own] for q in queries])
    harder, weaker = (
        [reference.phi(q, reference.frames(window)) for q, window in zip(queries, part, strict=True)]
        for part in (free, weak)
    )
    scale = float(reference.weights["scale"])
    terms: dict[str, list[float]] = {name: [] for name in found}
    for i, (first, last) in enumerate(labels):
        cosine = scale * (unit(own[i]) @ unit(queries[i]))
        inside = [x for place, x in enumerate(cosine) if first <= place <= last]
        outside = [x for place, x in enumerate(cosine) if not first <= place <= last]
        terms["frame"].append(
            float(np.mean([math.log1p(math.exp(x)) - math.log(2) for x in outside]))
            - float(np.mean([math.log(2) - math.log1p(math.exp(-x)) for x in inside]))
        )
        rivals = [phi[i, i], harder[i]]
        rivals += [phi[i, j] for j in range(5) if not positives[i, j]]
        rivals += [phi[j, i] for j in range(5) if not positives[j, i]]
        terms["video"].append(math.log(sum(math.exp(scale * (r - phi[i, i])) for r in rivals)))
        starts, ends = (softmax(curve) for curve in reference.curves(queries[i], own[i]))
        terms["span"].append(-math.log(starts[first]) - math.log(ends[last]))
        other_videos = [phi[i, j] for j in range(5) if not positives[i, j]]
        other_queries = [phi[j, i] for j in range(5) if not positives[j, i]]
        terms["context"].append(max(0.0, 0.1 + max(other_videos) - phi[i, i]))
        terms["query"].append(max(0.0, 0.1 + max(other_queries) - phi[i, i]))
        terms["hard_negative"].append(max(0.0, 0.1 + harder[i] - phi[i, i]))
        terms["weak"].append(max(0.0, 0.1 + weaker[i] - phi[i, i]))
    weight = {"frame": 0.03, "video": 0.03, "span": 0.02}
    for name, values in terms.items():
        expected = weight.get(name, 1.0) * float(np.mean(values))
        assert found[name].item() == pytest.approx(expected, rel=1e-4, abs=1e-6), name
