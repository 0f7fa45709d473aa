"""Models that learn a space from nothing, started in the space of one encoder of pictures and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.prem import PremConfig, PremRetriever
from moviola.study.models.prem.encoders import stream_mask
from moviola.study.models.reloclnet import ReLoCLNet, ReLoCLNetConfig
from moviola.study.models.xml import ENDPOINTS, XML, XMLConfig, with_endpoints

DIM, FILMS, CLIPS = 32, 24, 6
SIZES: dict[str, Any] = {"query_size": DIM, "subtitle_size": 0, "hidden_size": 32, "dropout": 0.0}

Scores = Callable[[Tensor, Tensor, dict[str, Any]], tuple[Tensor, torch.nn.Module]]


def of_xml(clips: Tensor, query: Tensor, more: dict[str, Any]) -> tuple[Tensor, torch.nn.Module]:
    model = XML(XMLConfig(visual_size=DIM + ENDPOINTS, **{**SIZES, **more}))
    mask = torch.ones(clips.shape[:2])
    context = model.encode_context(with_endpoints(clips, mask), mask)
    return model.video_scores(model.encode_query(query, torch.ones(len(query), 1)), context), model


def of_reloclnet(clips: Tensor, query: Tensor, more: dict[str, Any]) -> tuple[Tensor, torch.nn.Module]:
    model = ReLoCLNet(ReLoCLNetConfig(visual_size=DIM, **{**SIZES, "heads": 4, **more}))
    context = model.encode_context(clips, torch.ones(clips.shape[:2]), None)
    return model.video_scores(model.encode_query(query, torch.ones(len(query), 1)), context), model


def of_prem(clips: Tensor, query: Tensor, more: dict[str, Any]) -> tuple[Tensor, torch.nn.Module]:
    model = PremRetriever(PremConfig(visual_size=DIM, feed_forward_size=16, **{**SIZES, **more}))
    mask = torch.ones(clips.shape[:2])
    units = model.encode_context(clips, mask, None)
    queries = model.encode_query(query, torch.ones(len(query), 1))
    return model.score(queries, units, stream_mask(model.config, mask, None)), model


MODELS: dict[str, Scores] = {"xml": of_xml, "reloclnet": of_reloclnet, "prem": of_prem}


@pytest.mark.parametrize("name", MODELS)
def test_an_untrained_model_finds_what_its_features_find_and_still_learns(name: str) -> None:
    """From a random start the space of features is lost; every part that adds nothing yet has a gradient."""
    torch.manual_seed(0)
    clips = torch.randn(FILMS, CLIPS, DIM)
    wanted = torch.arange(FILMS)
    query = (clips[wanted, wanted % CLIPS] + 0.3 * torch.randn(FILMS, DIM))[:, None]
    found = {}
    for aligned in (False, True):
        scores, model = MODELS[name](clips, query, {"aligned_start": aligned})
        found[aligned] = int((scores.argmax(dim=1) == wanted).sum())
    assert found[True] == FILMS
    assert found[False] < FILMS / 2
    scores.diagonal().sum().backward()
    last = [
        value.grad
        for part, value in model.named_parameters()
        if part.endswith(("dense.weight", "out_proj.weight", "linear2.weight")) and value.grad is not None
    ]
    assert last and all(gradient.any() for gradient in last)


@pytest.mark.parametrize("name", MODELS)
def test_features_of_two_encoders_have_no_common_space(name: str) -> None:
    with pytest.raises(InvalidValue, match=r"one encoder of pictures and texts, or set model\.aligned_start"):
        MODELS[name](
            torch.zeros(1, 1, DIM), torch.zeros(1, 1, DIM), {"aligned_start": True, "query_size": DIM + 1}
        )
