"""Clips without a subtitle take no part in the stream of subtitles, and streams count as the query asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from moviola.errors import InvalidValue
from moviola.study.models.batches import PairBatch
from moviola.study.models.conquer import Conquer, ConquerConfig
from moviola.study.models.layers import clip_cosine
from moviola.study.models.reloclnet import ReLoCLNet, ReLoCLNetConfig
from moviola.study.models.xml import ENDPOINTS, XML, XMLConfig, with_endpoints

LENGTH, DIM = 6, 4
SIZES: dict[str, Any] = {
    "visual_size": DIM, "subtitle_size": DIM, "query_size": DIM, "hidden_size": 8, "heads": 2, "dropout": 0.0,
    "max_clips": 12, "max_tokens": 5,
}  # fmt: skip
ENDED = SIZES | {"visual_size": DIM + ENDPOINTS, "subtitle_size": DIM + ENDPOINTS}
MODELS: dict[str, Callable[..., nn.Module]] = {
    "xml": lambda **more: XML(XMLConfig(**{**ENDED, **more})),
    "reloclnet": lambda **more: ReLoCLNet(ReLoCLNetConfig(**{**SIZES, **more})),
    "conquer": lambda **more: Conquer(
        ConquerConfig(**{**SIZES, "feed_forward_size": 8, "clusters": 2, "clip_score_size": 8, **more})
    ),
}
SUBTITLES: dict[str, Callable[[Any], Tensor]] = {
    "xml": lambda context: context.retrieval[:, 1],
    "reloclnet": lambda context: context.clips[1],
    "conquer": lambda context: context.subtitles,
}
"""What a model's context holds of the stream of subtitles, (V, L, D)."""


def model_of(name: str, **more: object) -> Any:
    """With weights, biases among them, that are large enough for scores to differ."""
    torch.manual_seed(0)
    model = MODELS[name](**more).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def films(name: str, lines: list[list[int]]) -> tuple[Tensor, Tensor, Tensor]:
    """Films with a line in the clips named, and rows of zeros elsewhere; every line has a zero as well."""
    generator = torch.Generator().manual_seed(1)
    visual, said = (torch.randn(len(lines), LENGTH, DIM, generator=generator) for _ in range(2))
    said[..., 0] = 0
    spoken = torch.zeros(len(lines), LENGTH, 1)
    for film, clips in enumerate(lines):
        spoken[film, clips] = 1
    mask = torch.ones(len(lines), LENGTH)
    if name == "xml":
        return with_endpoints(visual, mask), mask, with_endpoints(said * spoken, mask)
    return visual, mask, said * spoken


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_a_silent_clip_becomes_nothing_and_a_line_stays(name: str) -> None:
    context = model_of(name).encode_context(*films(name, [[1, 4], []]))
    there = SUBTITLES[name](context).abs().sum(-1) > 0
    assert there[0].nonzero().flatten().tolist() == [1, 4]
    assert not there[1].any()
    assert torch.isfinite(SUBTITLES[name](context)).all()
    literal = model_of(name, mask_silent=False).encode_context(*films(name, [[1, 4], []]))
    assert (SUBTITLES[name](literal).abs().sum(-1) > 0).all()


@torch.inference_mode()
def test_conquer_encodes_its_lines_as_if_silent_clips_were_masked() -> None:
    encoder = model_of("conquer").encoder["videoEncoder"]
    visual, mask, subtitles = films("conquer", [[1, 4], [], [0, 2, 5]])
    mask[2, 5] = 0
    embed, encode = encoder.transformer["embeddings"], encoder.transformer["encoder"]
    parts = embed(encoder.img_linear(visual), 0), embed(encoder.text_linear(subtitles), 1)
    said = mask * (subtitles != 0).any(dim=-1)
    pictures, words = encode(torch.cat(parts, dim=1), torch.cat([mask, said], dim=1)).chunk(2, dim=1)
    found = encoder(visual, subtitles, mask)
    torch.testing.assert_close(found[0], pictures)
    torch.testing.assert_close(found[1], words * said[..., None])


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@torch.inference_mode()
def test_subtitles_score_by_their_best_line(name: str) -> None:
    model, query = model_of(name), torch.randn(3, 5, DIM, generator=torch.Generator().manual_seed(2))
    queries = model.encode_query(query, torch.ones(3, 5))
    context = model.encode_context(*films(name, [[2], [], [0, 5]]))
    vectors = queries.retrieval if name == "xml" else queries.vectors
    clips = context.retrieval.unbind(1) if name == "xml" else context.clips
    pictures = clip_cosine(vectors[:, 0], clips[0]).amax(-1)
    lines = clip_cosine(vectors[:, 1], clips[1])
    best = torch.stack([lines[:, 0, 2], torch.zeros(3), torch.maximum(lines[:, 2, 0], lines[:, 2, 5])], dim=1)
    torch.testing.assert_close(model.video_scores(queries, context), (pictures + best) / 2)


@torch.inference_mode()
def test_lines_are_read_alike_however_much_is_silent() -> None:
    """The first block of XML's subtitles attends to lines alone."""
    model = model_of("xml")
    visual, mask, subtitles = films("xml", [[1, 3]])
    whole = model.encode_context(visual, mask, subtitles).retrieval[0, 1]
    short = model.encode_context(visual[:, :4], mask[:, :4], subtitles[:, :4]).retrieval[0, 1]
    torch.testing.assert_close(whole[:4], short)
    heard = model_of("xml", mask_silent=False)
    whole = heard.encode_context(visual, mask, subtitles).retrieval[0, 1]
    short = heard.encode_context(visual[:, :4], mask[:, :4], subtitles[:, :4]).retrieval[0, 1]
    assert not torch.allclose(whole[[1, 3]], short[[1, 3]], atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_film_without_a_line_can_be_learned_from(name: str) -> None:
    model = model_of(name)
    context = model.encode_context(*films(name, [[], [0]]))
    SUBTITLES[name](context).square().sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@torch.inference_mode()
def test_a_query_may_say_how_much_each_stream_counts(name: str) -> None:
    model = model_of(name, stream_weights="query")
    query = torch.randn(4, 5, DIM, generator=torch.Generator().manual_seed(2))
    queries = model.encode_query(query, torch.ones(4, 5))
    torch.testing.assert_close(queries.weights.sum(1), torch.ones(4))
    assert queries.weights[:, 0].std() > 0
    context = model.encode_context(*films(name, [[2], [1]]))
    found = model.video_scores(queries, context)
    alone = [
        model.video_scores(replace(queries, weights=torch.eye(2)[[stream] * 4]), context) for stream in (0, 1)
    ]
    torch.testing.assert_close(found, queries.weights[:, :1] * alone[0] + queries.weights[:, 1:] * alone[1])
    longer = torch.cat([query, torch.full((4, 2, DIM), 9.0)], dim=1)[:, :5]
    padded = model.encode_query(torch.cat([query[:, :3], longer[:, 3:]], 1), torch.ones(4, 5))
    torch.testing.assert_close(padded.weights, queries.weights)


def batch_of(name: str, spoken: Tensor | None) -> PairBatch:
    """Four queries of four films, two of which have lines."""
    generator = torch.Generator().manual_seed(2)
    visual, mask, subtitles = films(name, [[2], [1, 3], [], []])
    return PairBatch(
        torch.randn(4, 5, DIM, generator=generator), torch.ones(4, 5), visual, mask, subtitles,
        video=torch.arange(4), labels=torch.tensor([[1, 2]] * 4), similarity=torch.ones(4),
        positives=torch.eye(4, dtype=torch.bool), spoken=spoken,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@pytest.mark.parametrize("spoken", [False, True])
def test_streams_apart_learn_from_their_own_queries(name: str, spoken: bool) -> None:
    """Every part is of one stream, but for the choice between streams by the query."""
    model = model_of(name, stream_weights="type")
    batch = batch_of(name, torch.full((4,), spoken))
    terms = model.loss(batch, hard_pool=None, generator=torch.Generator().manual_seed(0))
    sum(terms.values()).backward()
    learned = {
        part
        for part, parameter in model.named_parameters()
        if parameter.grad is not None and parameter.grad.abs().max() > 0
    }
    shared = {part for part in learned if part.startswith("type_")}
    assert shared == {"type_predictor.weight"}
    assert learned - shared
    assert {part.startswith("sub_") for part in learned - shared} == {spoken}


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@torch.inference_mode()
def test_streams_apart_answer_as_each_alone(name: str) -> None:
    model = model_of(name, stream_weights="type")
    batch = batch_of(name, None)
    queries = model.encode_query(batch.query, batch.query_mask)
    torch.testing.assert_close(queries.weights.sum(1), torch.ones(4))
    context = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    other = model.encode_context(batch.visual, batch.mask, batch.subtitles.flip(0))
    rows = torch.arange(4)[:, None]
    pictures = replace(queries, weights=torch.tensor([[1.0, 0.0]] * 4))
    for first, second in zip(
        model.boundaries_in(pictures, context, rows), model.boundaries_in(pictures, other, rows), strict=True
    ):
        torch.testing.assert_close(first, second)
    said = replace(queries, weights=torch.tensor([[0.0, 1.0]] * 4))
    start, changed = (model.boundaries_in(said, own, rows)[0] for own in (context, other))
    assert not torch.allclose(start, changed)
    assert len(model.rank(batch.query, batch.query_mask, context).video) == 4


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@torch.inference_mode()
def test_streams_apart_find_a_line_by_its_own_words_before_they_learn(name: str) -> None:
    """One encoder reads queries and lines: a query that is a line is most like it."""
    torch.manual_seed(0)
    more = ENDPOINTS if name == "xml" else 0
    model: Any = MODELS[name](
        stream_weights="type", hidden_size=32, query_size=32, subtitle_size=32 + more
    ).eval()
    lines, mask = torch.randn(8, 1, 32, generator=torch.Generator().manual_seed(1)), torch.ones(8, 1)
    visual, subtitles = torch.zeros(8, 1, DIM + more), functional.pad(lines, (0, more))
    queries = model.encode_query(lines, mask)
    said = replace(queries, weights=torch.tensor([[0.0, 1.0]] * 8))
    scores = model.video_scores(said, model.encode_context(visual, mask, subtitles))
    assert scores.argmax(dim=1).tolist() == list(range(8))


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
@torch.inference_mode()
def test_lines_of_another_encoder_than_that_of_queries_need_an_encoder_of_their_own(name: str) -> None:
    with pytest.raises(InvalidValue, match=r"stream_weights 'type': subtitles of 4 numbers, and tokens of 3"):
        model_of(name, stream_weights="type", query_size=3)
    model = model_of(name, stream_weights="type", query_size=3, shared_encoder=False)
    query = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(2))
    context = model.encode_context(*films(name, [[2], [1, 3], [], []]))
    assert len(model.rank(query, torch.ones(4, 5), context).video) == 4


@pytest.mark.parametrize("name", ["xml", "reloclnet"])
def test_streams_apart_need_the_types_of_queries(name: str) -> None:
    model = model_of(name, stream_weights="type")
    with pytest.raises(InvalidValue, match="stream_weights 'type': a training query has no type"):
        model.loss(batch_of(name, None), hard_pool=None, generator=torch.Generator())


@torch.inference_mode()
def test_silent_clips_of_a_moment_do_not_thin_what_its_lines_say() -> None:
    """In ReLoCLNet's contrast of clips a moment, and what is outside it, are their lines alone."""
    model, batch = model_of("reloclnet"), batch_of("reloclnet", None)
    queries = replace(model.encode_query(batch.query, batch.query_mask), weights=torch.eye(2)[[1] * 4])
    found = [
        model._contrasts(
            replace(batch, labels=torch.tensor([span] * 4)), queries, model._encode(batch)[0], None
        )
        for span in ([1, 2], [1, 1])
    ]
    torch.testing.assert_close(found[0][0][1], found[1][0][1])  # the film with lines in clips 1 and 3
    assert found[0][0][1].abs() > 0.01


def test_an_unknown_weighting_is_refused() -> None:
    with pytest.raises(InvalidValue, match="stream_weights 'max': unknown"):
        cast("Any", MODELS["xml"])(stream_weights="max")
