"""Two PREMs: each learns from the queries of its stream and answers those alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models.batches import CandidateBatch, PairBatch
from moviola.study.models.prem import Prem, PremApart, PremConfig
from moviola.study.models.prem.model import PremContext

CONFIG = PremConfig(
    visual_size=6, subtitle_size=7, query_size=7, hidden_size=8, feed_forward_size=16, heads=2, dropout=0.0,
    max_clips=12, max_tokens=5, top_videos=3, longest_span=6, top_moments=10, shared_encoder=True,
)  # fmt: skip
VIDEOS, LENGTH, QUERIES = 4, 7, 6


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def model_of(seed: int = 0) -> PremApart:
    """With weights that choose pictures for some queries and subtitles for others."""
    torch.manual_seed(seed)
    model = PremApart(CONFIG).eval()
    with torch.no_grad():
        model.type_predictor.weight.copy_(normal(2, CONFIG.query_size, seed=5))
    return model


def films() -> tuple[Tensor, Tensor, Tensor]:
    visual, subtitles = normal(VIDEOS, LENGTH, 6, seed=1), normal(VIDEOS, LENGTH, 7, seed=2)
    return visual, torch.ones(VIDEOS, LENGTH), subtitles * (torch.arange(LENGTH) % 2)[:, None]


def queries() -> tuple[Tensor, Tensor]:
    return normal(QUERIES, 5, 7, seed=3), torch.ones(QUERIES, 5)


def pairs(spoken: Tensor | None) -> PairBatch:
    video = torch.arange(QUERIES) % VIDEOS
    return PairBatch(
        *queries(), *films(), video=video, labels=torch.tensor([[1, 3]] * QUERIES),
        similarity=torch.ones(QUERIES), positives=video[:, None] == video, spoken=spoken,
    )  # fmt: skip


def candidates(spoken: Tensor | None) -> CandidateBatch:
    rows = torch.stack([torch.arange(QUERIES) % VIDEOS, (torch.arange(QUERIES) + 1) % VIDEOS], dim=1)
    return CandidateBatch(
        *queries(), *films(), candidates=rows, labels=torch.tensor([[1, 3]] * QUERIES),
        similarity=torch.ones(QUERIES), spoken=spoken,
    )  # fmt: skip


def learned(model: PremApart) -> set[str]:
    return {name for name, value in model.named_parameters() if value.grad is not None and value.grad.any()}


@pytest.mark.parametrize("spoken", [False, True])
def test_each_learns_from_its_own_queries(spoken: bool) -> None:
    kinds = torch.full((QUERIES,), spoken)
    own = f"halves.{int(spoken)}."
    for loss, part, more in (
        ("retriever_loss", "retriever", {"type_predictor.weight"}),
        ("localizer_loss", "localizer", set()),
    ):
        model = model_of()
        batch: Any = pairs(kinds) if part == "retriever" else candidates(kinds)
        terms = getattr(model, loss)(batch)
        assert ("type" in terms) == bool(more)
        sum(terms.values()).backward()
        found = learned(model)
        assert more <= found
        assert {name.removeprefix(own).split(".")[0] for name in found - more} == {part}
        trained = {id(parameter) for parameter in getattr(model, part).parameters()}
        assert all(id(value) in trained for name, value in model.named_parameters() if name in found)


@torch.inference_mode()
def test_a_query_is_answered_by_the_half_of_its_type() -> None:
    model, (query, mask) = model_of(), queries()
    context, stream = model.encode_context(*films()), model.stream_of(query, mask)
    assert set(stream.tolist()) == {0, 1}
    found, scores = model.rank(query, mask, context), model.video_scores(query, mask, context)
    best = model.rank_videos(query, mask, context, keep=2)
    for row, number in enumerate(stream.tolist()):
        half: Any = model.halves[number]
        own = half.encode_context(*films())
        one = query[row : row + 1], mask[row : row + 1]
        alone = half.rank(*one, own)
        for name in ("video", "start", "end", "score"):
            torch.testing.assert_close(getattr(found, name)[row], getattr(alone, name)[0])
        torch.testing.assert_close(scores[row], half.video_scores(*one, own)[0])
        for column, expected in zip(best, half.rank_videos(*one, own, keep=2), strict=True):
            torch.testing.assert_close(column[row], expected[0])


@torch.inference_mode()
def test_all_queries_may_be_of_one_type() -> None:
    model, (query, mask) = model_of(), queries()
    context = model.encode_context(*films())
    assert isinstance(context, PremContext)
    assert context.units.shape == (VIDEOS, 2, LENGTH, CONFIG.hidden_size)
    model.type_predictor.weight.zero_()  # equal weights are the first half's
    assert model.stream_of(query, mask).tolist() == [0] * QUERIES
    assert len(model.rank(query, mask, context).video) == QUERIES


@pytest.mark.parametrize("loss", ["retriever_loss", "localizer_loss"])
def test_batches_of_unknown_or_both_types_are_refused(loss: str) -> None:
    batch: Any = pairs if loss == "retriever_loss" else candidates
    with pytest.raises(InvalidValue, match="prem-apart: a training query has no type"):
        getattr(model_of(), loss)(batch(None))
    with pytest.raises(InvalidValue, match="a batch has queries of both streams"):
        getattr(model_of(), loss)(batch(torch.arange(QUERIES) > 2))


def test_what_it_needs() -> None:
    with pytest.raises(InvalidValue, match="prem-apart: needs pictures and subtitles"):
        PremApart(replace(CONFIG, subtitle_size=0, shared_encoder=False))
    with pytest.raises(InvalidValue, match="shared_encoder: subtitles of 5 numbers, and tokens of 7; give"):
        replace(CONFIG, subtitle_size=5)
    with pytest.raises(InvalidValue, match="prem: shared_encoder is for subtitles alone"):
        Prem(CONFIG)
    own = PremApart(replace(CONFIG, subtitle_size=5, shared_encoder=False))
    visual, mask, lines = films()
    assert len(own.rank(*queries(), own.encode_context(visual, mask, lines[..., :5])).video) == QUERIES


@torch.inference_mode()
def test_a_query_that_says_a_line_finds_it_before_anything_is_learned() -> None:
    """One encoder reads both: nothing but positions and the stream's own vector is between them."""
    model = Prem(replace(CONFIG, visual_size=0)).eval()
    assert {name.split(".")[0] for name, _ in model.retriever.query_encoder.named_parameters()} == {
        "positions"
    }
    _, mask, lines = films()
    units = model.retriever.encode_context(lines[..., :6], mask[:, :1], lines[:, 1:2])
    query = lines[:, 1:2]
    scores = model.retriever.score(
        model.retriever.encode_query(query, torch.ones(VIDEOS, 1)), units, mask[:, None, :1] > 0
    )
    assert scores.argmax(dim=1).tolist() == list(range(VIDEOS))


@torch.inference_mode()
@pytest.mark.parametrize("gate", ["rescaled", "none"])
def test_its_clip_is_found_before_anything_is_learned(gate: Any) -> None:
    torch.manual_seed(0)
    config = replace(CONFIG, visual_size=0, hidden_size=64, gate=gate)
    model = Prem(config).eval()
    visual, mask, lines = films()
    context, clip = model.encode_context(visual, mask, lines), config.clip_seconds
    for own in range(VIDEOS):
        found = model.rank(lines[own : own + 1, 3:4], torch.ones(1, 1), context.select(slice(own, own + 1)))
        assert [found.start[0, 0], found.end[0, 0]] == [3 * clip, 4 * clip]


def test_the_weight_of_that_likeness_is_learned() -> None:
    model = model_of()
    sum(model.localizer_loss(candidates(torch.ones(QUERIES, dtype=torch.bool))).values()).backward()
    assert {name for name in learned(model) if name.endswith("likeness")} == {"halves.1.localizer.likeness"}
