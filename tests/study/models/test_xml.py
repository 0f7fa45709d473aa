"""XML beyond the golden numbers: padding, streams, negatives, ranking, and learning at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.models import batches
from moviola.study.models.batches import PairBatch, Ranked
from moviola.study.models.relevant_content import RelevantContent
from moviola.study.models.relevant_pairs import RelevantPairsConfig
from moviola.study.models.xml import XML, XMLConfig, XMLContext, with_endpoints

SMALL = XMLConfig(
    visual_size=6, subtitle_size=5, query_size=4, hidden_size=8, heads=2, dropout=0.0, max_clips=16,
    max_tokens=10, top_videos=3, top_moments=5, shortest_span=1, longest_span=4,
)  # fmt: skip
PICTURES = replace(SMALL, subtitle_size=0)


def model_of(config: XMLConfig, seed: int = 0) -> XML:
    """A model whose random weights are large enough for scores to differ."""
    torch.manual_seed(seed)
    model = XML(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def batch_of(config: XMLConfig, pairs: int = 5, videos: int = 4, seed: int = 1) -> PairBatch:
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    lengths = torch.tensor([9, 6, 7, 9, 5])[:videos]
    mask = (torch.arange(9) < lengths[:, None]).float()
    tokens = (torch.arange(6) < torch.tensor([6, 3, 4, 6, 2])[:pairs, None]).float()
    video = torch.arange(pairs) % videos
    start = torch.arange(pairs) % 3
    return PairBatch(
        random(pairs, 6, config.query_size) * tokens[..., None],
        tokens,
        random(videos, 9, config.visual_size) * mask[..., None],
        mask,
        random(videos, 9, config.subtitle_size) * mask[..., None] if config.subtitle_size else None,
        video,
        torch.stack([start, start + 2], dim=1),
        torch.rand(pairs, generator=generator),
        video[:, None] == video,
    )


def total(terms: dict[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()


def encoded(model: XML, batch: PairBatch) -> XMLContext:
    return model.encode_context(batch.visual, batch.mask, batch.subtitles)


@pytest.mark.parametrize("config", [SMALL, PICTURES], ids=["both", "pictures"])
@given(more=st.integers(1, 7), tokens=st.integers(1, 4), noise=st.booleans())
@settings(max_examples=15, deadline=None)
def test_more_padding_changes_nothing(config: XMLConfig, more: int, tokens: int, noise: bool) -> None:
    model, batch = model_of(config), batch_of(config)

    def padded(values: Tensor, extra: int) -> Tensor:
        filler = torch.full((len(values), extra, values.shape[2]), 3.0 if noise else 0.0)
        return torch.cat([values, filler], dim=1)

    def masked(mask: Tensor, extra: int) -> Tensor:
        return torch.nn.functional.pad(mask, (0, extra))

    wide = replace(
        batch,
        query=padded(batch.query, tokens),
        query_mask=masked(batch.query_mask, tokens),
        visual=padded(batch.visual, more),
        mask=masked(batch.mask, more),
        subtitles=None if batch.subtitles is None else padded(batch.subtitles, more),
    )
    with torch.inference_mode():
        for name, term in model.loss(batch, hard_pool=1).items():
            torch.testing.assert_close(model.loss(wide, hard_pool=1)[name], term, rtol=1e-4, atol=1e-5)
        one, other = encoded(model, batch), encoded(model, wide)
        valid = batch.mask.bool()
        pairs = [(other.localisation, one.localisation)]
        pairs += list(zip(other.retrieval.unbind(1), one.retrieval.unbind(1), strict=True))
        for found, expected in pairs:
            torch.testing.assert_close(found[:, :9][valid], expected[valid], rtol=1e-4, atol=1e-5)
        short = model.rank(batch.query, batch.query_mask, one)
        long = model.rank(wide.query, wide.query_mask, other)
    torch.testing.assert_close(long.score, short.score, rtol=1e-3, atol=0)


def test_reference_padding_lets_padding_matter() -> None:
    batch = batch_of(SMALL)
    wide = replace(
        batch,
        visual=torch.nn.functional.pad(batch.visual, (0, 0, 0, 4)),
        mask=torch.nn.functional.pad(batch.mask, (0, 4)),
        subtitles=torch.nn.functional.pad(batch.subtitles, (0, 0, 0, 4)),
    )
    model = model_of(replace(SMALL, reference_padding=True))
    assert model.loss(batch, hard_pool=1)["span"] != model.loss(wide, hard_pool=1)["span"]


def test_a_model_for_pictures_alone_has_nothing_for_subtitles() -> None:
    model = model_of(PICTURES)
    names = [name for name, _ in model.named_parameters()]
    assert not [name for name in names if name.startswith("sub_") or "cross" in name]
    assert model.modular_vector_mapping.weight.shape == (1, 8)
    batch = batch_of(PICTURES)
    queries, context = model.encode_query(batch.query, batch.query_mask), encoded(model, batch)
    cosines = torch.einsum(
        "qd,vld->qvl",
        torch.nn.functional.normalize(queries.retrieval[:, 0], dim=-1),
        torch.nn.functional.normalize(context.retrieval[:, 0], dim=-1),
    ).masked_fill(batch.mask == 0, -2)
    torch.testing.assert_close(model.video_scores(queries, context), cosines.amax(dim=-1))


def test_subtitles_that_do_not_fit_the_model_are_refused() -> None:
    both, pictures = batch_of(SMALL), batch_of(PICTURES)
    with pytest.raises(InvalidValue, match="subtitles missing"):
        model_of(SMALL).encode_context(both.visual, both.mask)
    with pytest.raises(InvalidValue, match="subtitles given"):
        model_of(PICTURES).encode_context(pictures.visual, pictures.mask, both.subtitles)


def test_videos_that_several_pairs_share_are_no_negatives() -> None:
    """Two pairs of one video have one score, so the hinge against each other would be its margin."""
    batch = batch_of(SMALL, pairs=2, videos=1)
    terms = model_of(SMALL).loss(batch, hard_pool=1)
    assert terms["context"] == 0 and terms["query"] == 0
    release = model_of(replace(SMALL, positive_mask=False)).loss(batch, hard_pool=1)
    assert release["context"].item() == pytest.approx(SMALL.margin)


def test_a_video_that_holds_an_answer_is_no_negative_whichever_pair_brings_it() -> None:
    """Pairs 0, 1, 2 are of videos 0, 1, 1; video 1 answers query 0, or moment 1 is relevant to it."""
    own = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 1, 1]]).bool()
    batch = replace(batch_of(SMALL, pairs=3), video=torch.tensor([0, 1, 1]), positives=own)
    answered = replace(batch, positives=own | torch.tensor([True, False, False])[:, None])
    relevance = torch.zeros(3, 3).bool()
    relevance[0, 1] = True
    model = model_of(replace(SMALL, margin=10.0))
    scores = model.video_scores(model.encode_query(batch.query, batch.query_mask), encoded(model, batch))
    # Query 0 is left with no negative video; the others with video 0.
    expected = sum(10 + scores[i, 0] - scores[i, 1] for i in (1, 2)) / 3
    torch.testing.assert_close(model.loss(answered, hard_pool=1)["context"], expected)
    model = model_of(replace(SMALL, margin=10.0, relevant_pairs=RelevantPairsConfig(confidence=False)))
    torch.testing.assert_close(model.loss(batch, hard_pool=1, relevance=relevance)["context"], expected)


def test_positives_of_the_query_are_no_negatives() -> None:
    batch = replace(batch_of(SMALL, pairs=4), positives=torch.ones(4, 4, dtype=torch.bool))
    assert model_of(SMALL).loss(batch, hard_pool=1)["context"] == 0
    assert model_of(replace(SMALL, positive_mask=False)).loss(batch, hard_pool=1)["context"] > 0


def test_shared_videos_give_the_losses_of_repeated_ones() -> None:
    """Encoding each video once is a shortcut only: repeated rows give the same span losses."""
    model, batch = model_of(SMALL), batch_of(SMALL, pairs=5, videos=3)
    assert batch.subtitles is not None
    repeated = replace(
        batch,
        visual=batch.visual[batch.video],
        mask=batch.mask[batch.video],
        subtitles=batch.subtitles[batch.video],
        video=torch.arange(5),
        positives=batch.video[:, None] == batch.video,
    )
    one, other = model.loss(batch, hard_pool=1), model.loss(repeated, hard_pool=1)
    for name, term in one.items():
        torch.testing.assert_close(other[name], term)


def test_similarity_weighs_only_the_span_loss() -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    full = model.loss(replace(batch, similarity=torch.ones(5)), hard_pool=1)
    half = model.loss(replace(batch, similarity=torch.full((5,), 0.5)), hard_pool=1)
    torch.testing.assert_close(half["span"], full["span"] / 2)
    assert half["context"] == full["context"] and half["query"] == full["query"]


def test_negatives_come_from_the_generator() -> None:
    model, batch = model_of(replace(SMALL, margin=1.0)), batch_of(SMALL)
    losses = {
        seed: total(model.loss(batch, hard_pool=None, generator=torch.Generator().manual_seed(seed))).item()
        for seed in (0, 0, 1, 2, 3)
    }
    again = total(model.loss(batch, hard_pool=None, generator=torch.Generator().manual_seed(0))).item()
    assert losses[0] == again and len(set(losses.values())) > 1


@pytest.mark.parametrize(
    ("extra", "added"),
    [
        (RelevantPairsConfig(), 3),
        (RelevantPairsConfig(pairs=False, segments=True), 2),
        (RelevantPairsConfig(segments=True), 7),
        (RelevantPairsConfig(segments=True, boundary_score="literal", confidence=False), 7),
    ],
)
def test_relevant_pairs_add_terms_with_gradients(extra: RelevantPairsConfig, added: int) -> None:
    batch = batch_of(SMALL, pairs=4)
    relevance = torch.zeros(4, 4, dtype=torch.bool)
    relevance[0, 1] = relevance[1, 0] = True
    plain, model = model_of(SMALL), model_of(replace(SMALL, relevant_pairs=extra))
    terms = model.loss(batch, hard_pool=1, relevance=relevance, confidence=torch.full((4, 4), 0.5))
    assert len(terms) == 3 + added
    torch.testing.assert_close(terms["span"], plain.loss(batch, hard_pool=1)["span"])
    assert all(term.isfinite() for term in terms.values())
    total(terms).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_relevant_pairs_are_no_negatives() -> None:
    batch = batch_of(SMALL, pairs=4)
    model = model_of(replace(SMALL, relevant_pairs=RelevantPairsConfig()))
    terms = model.loss(batch, hard_pool=1, relevance=torch.ones(4, 4).bool(), confidence=torch.ones(4, 4))
    assert terms["context"] == 0 and terms["query"] == 0 and terms["relevant_over_negative"] == 0


def test_a_querys_own_moment_is_not_merely_relevant() -> None:
    model = model_of(replace(SMALL, relevant_pairs=RelevantPairsConfig()))
    own = {"relevance": torch.eye(4).bool(), "confidence": torch.ones(4, 4)}
    terms = model.loss(batch_of(SMALL, pairs=4), hard_pool=1, **own)
    assert terms["relevant_span"] == 0 and terms["positive_over_relevant"] == 0


@pytest.mark.parametrize("missing", ["relevance", "confidence"])
def test_missing_relevance_is_refused(missing: str) -> None:
    given = {"relevance": torch.zeros(5, 5).bool(), "confidence": torch.zeros(5, 5), missing: None}
    model = model_of(replace(SMALL, relevant_pairs=RelevantPairsConfig()))
    with pytest.raises(InvalidValue, match=f"{missing} of the batch is missing"):
        model.loss(batch_of(SMALL), hard_pool=1, **given)


def assert_same(one: Ranked, other: Ranked) -> None:
    assert torch.equal(one.video, other.video)
    for a, b in ((one.start, other.start), (one.end, other.end), (one.score, other.score)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("config", [SMALL, PICTURES, replace(SMALL, stream_weights="query")])
@torch.no_grad()
def test_prems_losses_take_the_place_of_its_ranking(config: XMLConfig) -> None:
    """Of its own scores, one number at a time: the best clips inside and outside the moment, and queries."""
    content = RelevantContent(temperature=0.5, weak_weight=0.25)
    model, batch = model_of(replace(config, relevant_content=content)), batch_of(config)
    context, queries = encoded(model, batch), model.encode_query(batch.query, batch.query_mask)
    lengths = batch.mask.sum(1).long().tolist()

    def score(query: int, video: int, clips: Sequence[int]) -> Tensor:
        found = torch.zeros(())
        for stream, weight in enumerate(queries.weights[query]):
            vector, rows = queries.retrieval[query, stream], context.retrieval[video, stream]
            found = found + weight * max(torch.cosine_similarity(vector, rows[clip], dim=0) for clip in clips)
        return found / content.temperature

    total = dict.fromkeys(("strong", "weak", "query"), 0.0)
    for pair, video in enumerate(batch.video.tolist()):
        first, last = batch.labels[pair].tolist()
        every = range(lengths[video])
        inside = [clip for clip in every if first <= clip <= last]
        outside = [clip for clip in every if clip not in inside]
        rivals = [score(pair, other, range(lengths[other])) for other in range(4) if other != video]
        others = [score(other, video, every) for other in range(5) if not batch.positives[other, pair]]
        weight = float(batch.similarity[pair]) / 5
        for name, own, against, times in (
            ("strong", inside, rivals, 1.0), ("weak", outside, rivals, 0.25), ("query", inside, others, 1.0),
        ):  # fmt: skip
            positive = score(pair, video, own)
            nce = torch.logsumexp(torch.stack([positive, *against]), 0) - positive
            total[name] += times * weight * float(nce)
    terms = model.loss(batch, hard_pool=None)
    assert set(terms) == {"span", *total}
    for name, expected in total.items():
        assert float(terms[name]) == pytest.approx(expected, rel=1e-4)
    with pytest.raises(InvalidValue, match="both replace"):
        replace(config, relevant_content=content, relevant_pairs=RelevantPairsConfig())


def test_ranking_in_pieces_is_ranking_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    with torch.inference_mode():
        context = encoded(model, batch)
        whole = model.rank(batch.query, batch.query_mask, context)
        monkeypatch.setattr(batches, "_LARGEST", 1)
        assert_same(model.rank(batch.query, batch.query_mask, context), whole)


def test_ranking_is_the_brute_force_one() -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    with torch.inference_mode():
        context, queries = encoded(model, batch), model.encode_query(batch.query, batch.query_mask)
        found = model.rank(batch.query, batch.query_mask, context)
        scores = model.video_scores(queries, context)
        start, end = (logits.softmax(-1) for logits in model.boundary_logits(queries, context))
    for query in range(5):
        best = scores[query].topk(3).indices.tolist()
        cells = [
            ((scores[query, v] * 20).exp() * start[query, v, m] * end[query, v, n], v, m, n)
            for v in best
            for m in range(9)
            for n in range(m + 1, min(m + 4, 9))
        ]
        cells.sort(key=lambda cell: -cell[0])
        assert found.video[query].tolist() == [v for _, v, _, _ in cells[:5]]
        assert found.start[query].tolist() == [1.5 * m for _, _, m, _ in cells[:5]]
        assert found.end[query].tolist() == [1.5 * n for _, _, _, n in cells[:5]]
        torch.testing.assert_close(found.score[query], torch.stack([cell[0] for cell in cells[:5]]))


def test_the_release_ends_a_clip_later() -> None:
    batch, late = batch_of(SMALL), model_of(replace(SMALL, release_end=True))
    consistent = model_of(SMALL)
    with torch.inference_mode():
        one = consistent.rank(batch.query, batch.query_mask, encoded(consistent, batch))
        other = late.rank(batch.query, batch.query_mask, encoded(late, batch))
    assert torch.equal(one.start, other.start) and torch.equal(one.end + 1.5, other.end)


def within(model: XML, batch: PairBatch, context: XMLContext, video: Tensor) -> Ranked:
    """Moments in one given video per query, whose score is that of the span alone."""
    queries = model.encode_query(batch.query[: len(video)], batch.query_mask[: len(video)])
    return model.rank_in(queries, context, video[:, None], torch.ones(len(video), 1))


def test_single_video_and_video_ranking_agree_with_the_corpus() -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    with torch.inference_mode():
        context = encoded(model, batch)
        rows, weights = model.rank_videos(batch.query, batch.query_mask, context)
        own = within(model, batch, context, rows[:, 0])
        alone = [
            model.rank(batch.query[q : q + 1], batch.query_mask[q : q + 1], context.select(rows[q, :1]))
            for q in range(5)
        ]
    assert rows.shape == (5, 3) and (weights.diff(dim=1) <= 0).all()
    for query, expected in enumerate(alone):
        assert own.video[query].tolist() == [rows[query, 0].item()] * 5
        assert own.start[query].tolist() == expected.start[0].tolist()
        torch.testing.assert_close(own.score[query] * weights[query, 0], expected.score[0], rtol=1e-4, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_mixed_precision_trains_and_stays_near(dtype: torch.dtype) -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    exact = model.loss(batch, hard_pool=1)
    with torch.autocast("cpu", dtype):
        terms = model.loss(batch, hard_pool=1)
    for name, term in terms.items():
        assert term.dtype == torch.float32
        assert term.item() == pytest.approx(exact[name].item(), abs=0.05), name
    total(terms).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_too_few_spans_are_marked() -> None:
    config = replace(SMALL, top_moments=40, top_videos=1, shortest_span=7, longest_span=8)
    model, batch = model_of(config), batch_of(config)
    with torch.inference_mode():
        short = encoded(model, batch).select(torch.tensor([1, 0]))
        found = within(model, batch, short, torch.tensor([0, 1]))
    assert (found.video[0] == -1).all(), "6 clips have no span of 7"
    assert (found.video[1] >= 0).sum() == 2, "9 clips have two"


def test_an_empty_corpus_has_no_moments() -> None:
    model, batch = model_of(SMALL), batch_of(SMALL)
    with torch.inference_mode():
        nothing = encoded(model, batch).select(slice(0, 0))
        empty = model.rank(batch.query, batch.query_mask, nothing)
    assert empty.video.shape == (5, 0)


def test_dropout_only_when_training() -> None:
    model, batch = model_of(replace(SMALL, dropout=0.5)), batch_of(SMALL)
    assert total(model.loss(batch, hard_pool=1)) == total(model.loss(batch, hard_pool=1))
    model.train()
    assert total(model.loss(batch, hard_pool=1)) != total(model.loss(batch, hard_pool=1))


def test_it_learns_a_batch_by_heart() -> None:
    torch.manual_seed(0)
    config = replace(SMALL, span_weight=1.0, hidden_size=16, shortest_span=2, longest_span=3)
    model, batch = XML(config), batch_of(config, pairs=4)
    batch = replace(batch, similarity=torch.ones(4))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(150):
        loss = total(model.loss(batch, hard_pool=1))
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        found = model.rank(batch.query, batch.query_mask, encoded(model, batch))
    assert torch.equal(found.video[:, 0], batch.video)
    assert torch.equal(found.start[:, 0], batch.labels[:, 0] * 1.5)
    assert torch.equal(found.end[:, 0], batch.labels[:, 1] * 1.5)


def test_defaults_are_the_published_sizes() -> None:
    # TVR-Ranking's release has positions for 128 clips.
    assert sum(parameter.numel() for parameter in XML(XMLConfig()).parameters()) == 2_550_034


def test_endpoints_of_clips() -> None:
    mask = torch.tensor([[1.0, 1, 1, 1], [1, 1, 0, 0]])
    found = with_endpoints(torch.zeros(2, 4, 3), mask)
    assert found.shape == (2, 4, 5)
    assert found[0, :, 3].tolist() == [0, 0.25, 0.5, 0.75] and found[0, :, 4].tolist() == [0.25, 0.5, 0.75, 1]
    assert found[1, :, 3:].tolist() == [[0, 0.5], [0.5, 1], [0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("option", "value"), [("kernel", 4), ("ranking_loss", "cosine"), ("labels", "mine"), ("heads", 3)]
)
def test_wrong_settings_are_named(option: str, value: object) -> None:
    with pytest.raises(InvalidValue, match=str(value)):
        XML(replace(SMALL, **{option: value}))
