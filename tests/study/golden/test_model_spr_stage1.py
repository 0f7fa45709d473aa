"""The segment retrieval model equal to the reference: embeddings, logits, losses and gradients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from moviola.study.models.losses import CONTRASTIVE
from moviola.study.models.spr import SegmentRetriever, SegmentRetrieverConfig

LOSSES = {
    "MILNCELoss": "mil-nce",
    "WeightedMILNCELoss": "weighted-mil-nce",
    "MILCELoss": "mil-ce",
    "InfoNCELoss": "info-nce",
}


class Case:
    """The golden file with the model that it describes."""

    def __init__(self, folder: Path) -> None:
        self.facts: dict[str, Any] = json.loads((folder / "model_spr_stage1.json").read_text())
        with np.load(folder / "model_spr_stage1.npz", allow_pickle=False) as arrays:
            self.arrays = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        self.tolerance = self.facts["tolerance"]

    def inputs(self, *names: str) -> list[torch.Tensor]:
        return [self.arrays[f"in/{name}"] for name in names]

    def model(self, loss: str = "mil-nce") -> SegmentRetriever:
        config = self.facts["config"]
        model = SegmentRetriever(
            SegmentRetrieverConfig(
                hidden_size=config["dim"],
                layers=config["num_layers"],
                heads=config["heads"],
                feed_forward_size=config["mlp_ratio"] * config["dim"],
                max_clips=config["max_position_embeddings"],
                loss=loss,
            )
        )
        model.load_state_dict({name: self.arrays[f"state/{name}"] for name in self.facts["state"]})
        return model

    def train(self, model: SegmentRetriever) -> dict[str, torch.Tensor]:
        names = ("train_segment_feat", "train_segment_mask", "train_query_feat", "train_score")
        return model.loss(*self.inputs(*names))


@pytest.fixture(scope="module")
def case(golden: Path) -> Case:
    return Case(golden)


def test_parameters_are_those_of_the_reference(case: Case) -> None:
    state = case.model().state_dict()
    assert {name: list(tensor.shape) for name, tensor in state.items()} == case.facts["state"]
    assert sum(tensor.numel() for tensor in state.values()) == case.facts["number_of_parameters"]


@torch.inference_mode()
def test_forward(case: Case) -> None:
    model = case.model().eval()
    frames, mask, query = case.inputs("segment_feat", "segment_mask", "query_feat")
    segments, queries = model.encode_segments(frames, mask), model.encode_queries(query)
    near, logits = case.tolerance["forward"], case.tolerance["logits"]
    torch.testing.assert_close(segments, case.arrays["out/segment_feature"], **near)
    torch.testing.assert_close(queries, case.arrays["out/query_feature"], **near)
    torch.testing.assert_close(model.similarity(queries, segments), case.arrays["out/logits"], **logits)


@torch.inference_mode()
def test_masked_frames_do_not_matter(case: Case) -> None:
    model = case.model().eval()
    frames, mask = case.inputs("segment_feat", "segment_mask")
    other = torch.where(mask.unsqueeze(-1) > 0, frames, torch.full_like(frames, 3.0))
    torch.testing.assert_close(
        model.encode_segments(other, mask), case.arrays["out/segment_feature"], **case.tolerance["forward"]
    )


@torch.inference_mode()
def test_training_logits(case: Case) -> None:
    model = case.model()
    frames, mask, query = case.inputs("train_segment_feat", "train_segment_mask", "train_query_feat")
    logits = model.similarity(model.encode_queries(query), model.encode_segments(frames, mask))
    torch.testing.assert_close(logits, case.arrays["out/train_logits"], **case.tolerance["logits"])


@pytest.mark.parametrize("name", LOSSES)
def test_losses(case: Case, name: str) -> None:
    assert set(case.facts["losses"]) == set(LOSSES)
    terms = case.train(case.model(LOSSES[name]))
    torch.testing.assert_close(sum(terms.values()), case.arrays[f"out/loss_{name}"], **case.tolerance["loss"])
    for direction, value in terms.items():
        expected = case.arrays.get(f"out/loss_{name}_{direction}")
        if expected is not None:
            torch.testing.assert_close(2 * value, expected, **case.tolerance["loss"])


def test_gradients(case: Case) -> None:
    stored = next(name for name in LOSSES if name in case.facts["gradients"].split("_"))
    model = case.model(LOSSES[stored])
    sum(case.train(model).values()).backward()
    parameters = dict(model.named_parameters())
    expected = {name[5:]: array for name, array in case.arrays.items() if name.startswith("grad/")}
    assert expected
    for name, gradient in expected.items():
        got = parameters[name].grad
        assert got is not None, name
        assert (got - gradient).abs().max() <= 1e-3 * gradient.abs().max(), name


def test_every_loss_has_a_golden_value() -> None:
    assert set(LOSSES.values()) == set(CONTRASTIVE)
