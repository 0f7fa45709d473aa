"""PREM has no released code or numbers: every equation is worked by hand on small cases."""

from __future__ import annotations

import math
from dataclasses import astuple, replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from moviola.errors import InvalidValue
from moviola.study.models.batches import CandidateBatch, PairBatch
from moviola.study.models.prem import (
    Prem,
    PremConfig,
    PremLocalizer,
    PremRetriever,
    relevant_spans,
    stream_mask,
    suppress_spans,
)

TINY = PremConfig(
    visual_size=6,
    subtitle_size=5,
    query_size=7,
    hidden_size=8,
    feed_forward_size=16,
    heads=2,
    dropout=0.0,
    max_clips=24,
    max_tokens=9,
    top_videos=3,
    longest_span=6,
    top_moments=20,
    clip_seconds=2.0,
)
PICTURES = replace(TINY, subtitle_size=0)
WORDS_SPOKEN = replace(TINY, visual_size=0)
CONFIGS = [
    TINY,
    PICTURES,
    WORDS_SPOKEN,
    replace(TINY, mask_silent=False),
    replace(TINY, pooling="mean"),
    replace(TINY, pooling="max"),
    replace(TINY, positives="strong"),
    replace(TINY, positives="video"),
    replace(TINY, video_to_query=False),
    replace(TINY, gate="literal"),
    replace(TINY, gate="none"),
    replace(TINY, shared_norm=False),
    replace(TINY, adversarial_weight=0.0),
    replace(TINY, fusion_layers=1),
]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mask_of(lengths: list[int], size: int) -> Tensor:
    return (torch.arange(size) < torch.tensor(lengths)[:, None]).float()


def corpus(lengths: list[int], size: int, seed: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Features of pictures and subtitles and the mask; every third clip is silent, lines have zeros too."""
    mask = mask_of(lengths, size)
    spoken = (torch.arange(size) % 3 != 1).float()[:, None]
    visual = normal(len(lengths), size, TINY.visual_size, seed=seed) * mask[..., None]
    subtitles = normal(len(lengths), size, TINY.subtitle_size, seed=seed + 1) * mask[..., None] * spoken
    subtitles[..., 0] = 0
    return visual, mask, subtitles


def questions(lengths: list[int], size: int, seed: int = 3) -> tuple[Tensor, Tensor]:
    mask = mask_of(lengths, size)
    return normal(len(lengths), size, TINY.query_size, seed=seed) * mask[..., None], mask


def pair_batch() -> PairBatch:
    """Four pairs over three videos: pairs 0 and 2 share one, pair 3's moment is all of its video."""
    visual, mask, subtitles = corpus([7, 5, 4], 7)
    query, query_mask = questions([4, 2, 3, 5], 5)
    video = torch.tensor([0, 1, 0, 2])
    return PairBatch(
        query=query,
        query_mask=query_mask,
        visual=visual,
        mask=mask,
        subtitles=subtitles,
        video=video,
        labels=torch.tensor([[2, 4], [0, 1], [6, 6], [0, 3]]),
        similarity=torch.tensor([1.0, 0.5, 1.0, 0.25]),
        positives=video[:, None] == video,
    )


def localizer_batch() -> CandidateBatch:
    visual, mask, subtitles = corpus([7, 5, 4, 6], 7)
    query, query_mask = questions([4, 2, 3], 5)
    return CandidateBatch(
        query=query,
        query_mask=query_mask,
        visual=visual,
        mask=mask,
        subtitles=subtitles,
        candidates=torch.tensor([[0, 1, 2], [1, 3, 0], [3, 2, 1]]),
        labels=torch.tensor([[2, 4], [0, 1], [5, 5]]),
        similarity=torch.tensor([1.0, 0.5, 0.25]),
    )


def number(scalar: Tensor) -> float:
    """The value alone, without its history."""
    return scalar.detach().item()


def built(config: PremConfig, seed: int = 0) -> Prem:
    torch.manual_seed(seed)
    return Prem(config).eval()


def unread(parts: torch.nn.Module) -> set[str]:
    return {name for name, value in parts.named_parameters() if value.grad is None or not value.grad.any()}


# --- retriever ---------------------------------------------------------------------------------------------


def test_a_query_vector_is_the_softmax_weighted_sum_of_its_words() -> None:
    """Equation 5, one set of weights per stream, padding left out."""
    model = built(TINY).retriever
    query, mask = questions([3], 5)
    words = model.query_encoder(query, mask > 0, model.video_encoder)[0, :3]
    expected, by_stream = [], model.token_weights(query, mask)[0]
    for weights, said in zip(model.pooling.weight, by_stream, strict=True):
        share = torch.exp(words @ weights)
        expected.append((share[:, None] * words).sum(0) / share.sum())
        torch.testing.assert_close(said, torch.cat([share / share.sum(), torch.zeros(2)]))
    torch.testing.assert_close(model.encode_query(query, mask)[0], F.normalize(torch.stack(expected), dim=-1))


@pytest.mark.parametrize(("pooling", "reduce"), [("mean", torch.mean), ("max", torch.amax)])
def test_other_poolings_give_both_streams_one_vector(pooling: str, reduce: object) -> None:
    model = built(replace(TINY, pooling=pooling)).retriever
    query, mask = questions([3], 5)
    words = model.query_encoder(query, mask > 0, model.video_encoder)[0, :3]
    vector = F.normalize(reduce(words, dim=0), dim=-1)  # type: ignore[operator]
    torch.testing.assert_close(model.encode_query(query, mask)[0], vector.expand(2, -1))
    with pytest.raises(InvalidValue, match=f"pooling '{pooling}': has no weights"):
        model.token_weights(query, mask)


def test_a_video_scores_the_mean_of_its_best_picture_and_its_best_subtitle() -> None:
    """Equation 6 on vectors in a plane: cosines 0.6 and 1 of pictures, 0 and 0.8 of subtitles."""
    queries = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    units = torch.tensor([[[[0.6, 0.8], [1.0, 0.0]], [[1.0, 0.0], [0.6, 0.8]]]])
    model = built(TINY).retriever
    everything = torch.ones(1, 2, 2, dtype=torch.bool)
    torch.testing.assert_close(model.score(queries, units, everything), torch.tensor([[0.9]]))
    first_only = torch.tensor([[[True, False], [True, False]]])
    torch.testing.assert_close(model.score(queries, units, first_only), torch.tensor([[0.3]]))
    silent = torch.tensor([[[True, True], [False, False]]])
    torch.testing.assert_close(model.score(queries, units, silent), torch.tensor([[1.0]]))


def test_one_stream_alone_is_not_halved() -> None:
    model = built(PICTURES).retriever
    units = torch.tensor([[[[0.6, 0.8]]]])
    score = model.score(torch.tensor([[[1.0, 0.0]]]), units, torch.ones(1, 1, 1, dtype=torch.bool))
    torch.testing.assert_close(score, torch.tensor([[0.6]]))


def by_hand(model: PremRetriever, batch: PairBatch) -> dict[str, float]:
    """Equations 7 and 8 and L^q, one number at a time."""
    t = model.config.temperature
    units = model.encode_context(batch.visual, batch.mask, batch.subtitles)
    queries = model.encode_query(batch.query, batch.query_mask)
    takes_part = stream_mask(model.config, batch.mask, batch.subtitles)

    def s(i: int, video: int, clips: list[int]) -> Tensor:
        """The similarity of query i and the best of these clips, over t."""
        heard = {d: [c for c in clips if takes_part[video, d, c]] for d in range(units.shape[1])}
        phi = [max(queries[i, d] @ units[video, d, c] for c in those) for d, those in heard.items() if those]
        return sum(phi, torch.tensor(0.0)) / len(phi) / t

    count = len(batch)
    length = batch.mask.sum(1).long().tolist()
    video = batch.video.tolist()
    total = {"strong": 0.0, "weak": 0.0, "query": 0.0, "video": 0.0, "video_query": 0.0}
    for i in range(count):
        first, last = batch.labels[i].tolist()
        every = list(range(length[video[i]]))
        inside = list(range(first, last + 1))
        outside = [c for c in every if c not in inside]
        others = [j for j in range(count) if video[j] != video[i]]
        rivals = sorted({video[j] for j in others if not batch.positives[i, j]})
        videos = [s(i, rival, list(range(length[rival]))) for rival in rivals]
        askers = [s(j, video[i], every) for j in others if not batch.positives[j, i]]
        weight = number(batch.similarity[i]) / count

        def nce(positive: Tensor, negatives: list[Tensor], weight: float = weight) -> float:
            return weight * number(torch.logsumexp(torch.stack([positive, *negatives]), 0) - positive)

        total["strong"] += nce(s(i, video[i], inside), videos)
        total["query"] += nce(s(i, video[i], inside), askers)
        total["video"] += nce(s(i, video[i], every), videos)
        total["video_query"] += nce(s(i, video[i], every), askers)
        if outside:
            total["weak"] += model.config.weak_weight * nce(s(i, video[i], outside), videos)
    return total


@pytest.mark.parametrize("config", [TINY, PICTURES, WORDS_SPOKEN, replace(TINY, temperature=0.3)])
def test_the_contrastive_terms_are_those_of_the_paper(config: PremConfig) -> None:
    batch = pair_batch()
    model = built(config).retriever
    expected = by_hand(model, batch)
    terms = model.loss(batch)
    assert set(terms) == {"strong", "weak", "query"}
    for name, term in terms.items():
        assert number(term) == pytest.approx(expected[name], rel=1e-4, abs=1e-5)


def test_switches_of_table_2_leave_terms_out() -> None:
    batch = pair_batch()
    strong = built(replace(TINY, positives="strong")).retriever
    assert set(strong.loss(batch)) == {"strong", "query"}
    assert set(built(replace(TINY, positives="strong", video_to_query=False)).retriever.loss(batch)) == {
        "strong"
    }
    whole = built(replace(TINY, positives="video")).retriever
    expected = by_hand(whole, batch)
    terms = whole.loss(batch)
    assert number(terms["video"]) == pytest.approx(expected["video"], rel=1e-4)
    assert number(terms["query"]) == pytest.approx(expected["video_query"], rel=1e-4)


def test_a_moment_that_answers_the_query_is_no_negative() -> None:
    """Nor the query one of the moment; at a temperature at which every negative shows."""
    batch = pair_batch()
    answers = batch.positives.clone()
    answers[0, batch.video == batch.video[1]] = True
    model = built(replace(TINY, temperature=1.0)).retriever
    changed = replace(batch, positives=answers)
    expected = by_hand(model, changed)
    terms = model.loss(changed)
    for name, term in terms.items():
        assert number(term) == pytest.approx(expected[name], rel=1e-4)
    assert number(terms["strong"]) < number(model.loss(batch)["strong"])


def test_a_video_that_pairs_share_is_one_negative() -> None:
    """Two pairs of one video say of a third query what one of them says."""
    batch = pair_batch()
    assert batch.subtitles is not None
    rows, video = torch.tensor([0, 1, 1]), torch.tensor([0, 1, 1])
    twice = PairBatch(
        batch.query[rows], batch.query_mask[rows], batch.visual[:2], batch.mask[:2], batch.subtitles[:2],
        video, torch.tensor([[0, 1], [0, 1], [0, 1]]), torch.tensor([1.0, 0.0, 0.0]),
        video[:, None] == video,
    )  # fmt: skip
    once = replace(
        twice, query=twice.query[:2], query_mask=twice.query_mask[:2], video=video[:2],
        labels=twice.labels[:2], similarity=twice.similarity[:2], positives=twice.positives[:2, :2],
    )  # fmt: skip
    model = built(TINY).retriever
    more, less = (number(model.loss(own)["strong"]) * len(own) for own in (twice, once))
    assert more == pytest.approx(less, rel=1e-5)
    assert more > 0


def test_a_batch_of_one_video_has_nothing_to_compare() -> None:
    batch = pair_batch()
    rows = torch.tensor([0, 2])
    same = PairBatch(
        batch.query[rows], batch.query_mask[rows], batch.visual[:1], batch.mask[:1], batch.subtitles[:1],
        torch.zeros(2, dtype=torch.long), batch.labels[rows], batch.similarity[rows],
        torch.ones(2, 2, dtype=torch.bool),
    )  # fmt: skip
    terms = built(TINY).retriever.loss(same)
    assert {name: number(term) for name, term in terms.items()} == pytest.approx(
        {"strong": 0, "weak": 0, "query": 0}, abs=1e-5
    )


def test_silent_clips_are_left_out() -> None:
    subtitles = torch.tensor([[[0.0, 0.0], [0.0, 3.0], [0.0, 0.0]]])
    mask = torch.tensor([[1.0, 1.0, 0.0]])
    literal = stream_mask(replace(TINY, mask_silent=False), mask, subtitles)
    assert literal.tolist() == [[[True, True, False], [True, True, False]]]
    masked = stream_mask(TINY, mask, subtitles)
    assert masked.tolist() == [[[True, True, False], [False, True, False]]]
    alone = stream_mask(WORDS_SPOKEN, mask, subtitles)
    assert alone.tolist() == [[[True, True, False]]]


# --- localizer ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gate", "scale"), [("literal", 1.0), ("rescaled", 8**0.5)])
def test_the_gate_has_unit_length_over_the_features(gate: str, scale: float) -> None:
    """Equation 9."""
    model = built(replace(TINY, gate=gate)).localizer
    content, focus = normal(2, 2, 3, 8), normal(2, 2, 8, seed=1)
    passed = model.focus(content, focus)
    for stream in range(2):
        key = model.gates[stream](content[1, stream, 2]) * focus[1, stream]
        expected = scale * key / key.norm() * content[1, stream, 2]
        torch.testing.assert_close(passed[1, stream, 2], expected)
    assert torch.equal(built(replace(TINY, gate="none")).localizer.focus(content, focus), content)


def test_the_papers_example_of_positive_spans() -> None:
    pair, start, end = relevant_spans(torch.tensor([[5, 8]]), torch.tensor([20]), 20, TINY)
    assert pair.tolist() == [0] * 5
    assert set(zip(start.tolist(), end.tolist(), strict=True)) == {(4, 8), (5, 7), (6, 8), (5, 9), (5, 8)}


def test_an_overlap_of_exactly_the_threshold_is_not_above_it_and_spans_end_with_the_video() -> None:
    labels = torch.tensor([[0, 9], [0, 9]])
    pair, start, end = relevant_spans(labels, torch.tensor([30, 10]), 30, TINY)
    first = set(zip(start[pair == 0].tolist(), end[pair == 0].tolist(), strict=True))
    assert (0, 6) not in first, "7 of 10 clips are an IoU of exactly 0.7"
    assert {(0, 7), (0, 13)} <= first
    assert int(end[pair == 1].max()) == 9


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_positive_spans_are_exactly_those_above_the_threshold(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    first = data.draw(st.integers(0, length - 1))
    last = data.draw(st.integers(first, length - 1))
    expected = set()
    for i in range(length):
        for j in range(i, length):
            shared = len(set(range(i, j + 1)) & set(range(first, last + 1)))
            union = len(set(range(i, j + 1)) | set(range(first, last + 1)))
            if 10 * shared > 7 * union:
                expected.add((i, j))
    _, start, end = relevant_spans(torch.tensor([[first, last]]), torch.tensor([length]), length + 2, TINY)
    assert set(zip(start.tolist(), end.tolist(), strict=True)) == expected


def run_alone(model: PremLocalizer, batch: CandidateBatch, i: int, row: int) -> tuple[Tensor, Tensor, Tensor]:
    """Start and end scores and fused clips of one query and one video, without any padding."""
    words, clips = int(batch.query_mask[i].sum()), int(batch.mask[row].sum())
    query, word_mask = batch.query[i : i + 1, :words], batch.query_mask[i : i + 1, :words]
    visual, mask = batch.visual[row : row + 1, :clips], batch.mask[row : row + 1, :clips]
    subtitles = batch.subtitles[row : row + 1, :clips]
    encoded, focus = model.encode_query(query, word_mask)
    content = model.encode_context(visual, mask, subtitles)
    found = model(encoded, word_mask > 0, focus, content, stream_mask(model.config, mask, subtitles))
    return found.start[0], found.end[0], found.fused[0]


@pytest.mark.parametrize("config", [TINY, PICTURES, replace(TINY, shared_norm=False)])
def test_the_localizers_losses_are_those_of_the_paper(config: PremConfig) -> None:
    """Equations 11 and 12, one query and one video at a time."""
    batch = localizer_batch()
    model = built(config).localizer
    expected = {"start": 0.0, "end": 0.0}
    spans: list[tuple[float, float, Tensor]] = []  # weight, target, logit
    for i in range(len(batch)):
        first, last = batch.labels[i].tolist()
        alone = [run_alone(model, batch, i, row) for row in batch.candidates[i].tolist()]
        for name, side, label in (("start", 0, first), ("end", 1, last)):
            rivals = torch.cat([found[side] for found in (alone if config.shared_norm else alone[:1])])
            missed = torch.logsumexp(rivals, 0) - alone[0][side][label]
            expected[name] += number(batch.similarity[i] * missed) / len(batch)
        for candidate, (start, end, fused) in enumerate(alone):
            count = len(start)
            every = [(a, b) for a in range(count) for b in range(a, count)]
            if candidate == 0:
                chosen = [
                    (a, b)
                    for a, b in every
                    if 10 * (min(b, last) - max(a, first) + 1) > 7 * (max(b, last) - min(a, first) + 1)
                ]
            else:
                allowed = [(a, b) for a, b in every if config.shortest_span <= b - a < config.longest_span]
                chosen = sorted(allowed, key=lambda span: -number(start[span[0]] + end[span[1]]))[:5]
            states = model.classifier.layer(fused[None])[0]
            for a, b in chosen:
                logit = model.classifier.score(states[a : b + 1].amax(0))[0]
                spans.append((number(batch.similarity[i]), float(candidate == 0), logit))
    weighted = [
        weight * number(F.binary_cross_entropy_with_logits(logit, torch.tensor(target)))
        for weight, target, logit in spans
    ]
    expected["adversarial"] = config.adversarial_weight * sum(weighted) / len(weighted)
    terms = model.loss(batch)
    assert {name: number(term) for name, term in terms.items()} == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_predicted_negatives_keep_to_the_allowed_lengths() -> None:
    """With one allowed length the number of spans to classify is known."""
    config = replace(TINY, shortest_span=2, longest_span=3, adversarial_predictions=50)
    model = built(config).localizer
    seen: list[Tensor] = []
    model.classifier.register_forward_pre_hook(lambda _, args: seen.append(torch.stack(args[2:])))
    model.loss(localizer_batch())
    row, start, end = seen[0]
    wrong = row % 3 > 0
    assert (end - start + 1)[wrong].unique().tolist() == [3]
    lengths = localizer_batch().mask.sum(1)[localizer_batch().candidates[:, 1:]]
    assert int(wrong.sum()) == int((lengths - 2).sum())


def test_switches_of_table_6() -> None:
    batch = localizer_batch()
    plain = built(replace(TINY, adversarial_weight=0.0)).localizer
    assert set(plain.loss(batch)) == {"start", "end"}
    assert not any(name.startswith("classifier") for name in plain.state_dict())
    ungated = built(replace(TINY, gate="none")).localizer
    assert not any(name.startswith(("gates", "pooling")) for name in ungated.state_dict())
    pictures = built(PICTURES)
    silent = replace(batch, subtitles=None)
    assert number(pictures.localizer.loss(silent)["start"]) == number(pictures.localizer.loss(batch)["start"])


# --- both --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS)
def test_gradients_reach_every_parameter(config: PremConfig) -> None:
    model = built(config).train()
    sum(model.retriever.loss(pair_batch()).values()).backward()  # type: ignore[union-attr]
    sum(model.localizer.loss(localizer_batch()).values()).backward()  # type: ignore[union-attr]
    assert unread(model) == set()


@pytest.mark.parametrize("config", CONFIGS)
def test_shapes_and_order_of_an_answer(config: PremConfig) -> None:
    model = built(config)
    lengths = [7, 5, 4, 9]
    context = model.encode_context(*corpus(lengths, 9))
    streams = len(config.stream_sizes)
    assert context.units.shape == context.content.shape == (4, streams, 9, 8)
    assert context.mask.shape == (4, streams, 9)
    query, mask = questions([4, 2], 4)
    with torch.inference_mode():
        found = model.rank(query, mask, context)
    assert found.video.shape == found.start.shape == found.end.shape == found.score.shape == (2, 20)
    assert found.video.dtype == torch.int64
    assert found.start.dtype == found.end.dtype == found.score.dtype == torch.float32
    for q in range(2):
        scores = found.score[q].tolist()
        assert all(a >= b for a, b in pairwise(scores))
        for video, start, end in zip(found.video[q], found.start[q], found.end[q], strict=True):
            assert 0 <= start < end <= 2.0 * lengths[int(video)]
            assert config.shortest_span <= (end - start) / 2.0 - 1 < config.longest_span


def test_an_answer_is_found_by_trying_everything() -> None:
    """Equation 13 and suppression, against loops: best videos, then every span of each."""
    config = replace(TINY, top_videos=2, shortest_span=1, longest_span=4, top_moments=12, nms=0.5)
    model = built(config)
    lengths = [7, 5, 4, 9]
    visual, mask, subtitles = corpus(lengths, 9)
    context = model.encode_context(visual, mask, subtitles)
    query, query_mask = questions([4, 2], 4)
    queries = model.encode_query(query, query_mask)
    scores = model.retriever.score(queries.units, context.units, context.mask)
    found = model.rank(query, query_mask, context)
    for q in range(2):
        spans = []
        for video in scores[q].topk(2).indices.tolist():
            part = torch.tensor([video])
            boundaries = model.localizer(
                queries.tokens[q : q + 1], queries.mask[q : q + 1], queries.focus[q : q + 1],
                context.select(part).content, context.select(part).mask,
            )  # fmt: skip
            spans += [
                (
                    number(
                        scores[q, video] / config.temperature + boundaries.start[0, a] + boundaries.end[0, b]
                    ),
                    video,
                    a,
                    b + 1,
                )
                for a in range(lengths[video])
                for b in range(a + 1, min(a + 4, lengths[video]))
            ]
        kept: list[tuple[float, int, int, int]] = []
        for score, video, a, b in sorted(spans, reverse=True):
            shared = [max(0, min(b, d) - max(a, c)) for _, v, c, d in kept if v == video]
            sizes = [d - c for _, v, c, d in kept if v == video]
            if all(2 * s <= (b - a + n - s) for s, n in zip(shared, sizes, strict=True)):
                kept.append((score, video, a, b))
        kept = kept[:12]
        assert found.video[q].tolist()[: len(kept)] == [video for _, video, _, _ in kept]
        assert found.start[q].tolist()[: len(kept)] == [2.0 * a for _, _, a, _ in kept]
        assert found.end[q].tolist()[: len(kept)] == [2.0 * b for _, _, _, b in kept]
        assert found.score[q].tolist()[: len(kept)] == pytest.approx(
            [score for score, _, _, _ in kept], rel=1e-5
        )


@torch.inference_mode()
def test_another_first_stage_takes_the_place_of_the_retriever() -> None:
    """PREM†: with the retriever's own scores nothing changes; else the best videos by others are searched."""
    model = built(TINY)
    context = model.encode_context(*corpus([7, 5, 4, 9], 9))
    query, mask = questions([4, 2], 4)
    own = model.video_scores(query, mask, context).exp()
    for found, expected in zip(
        astuple(model.rank_given(query, mask, context, first_stage=own)),
        astuple(model.rank(query, mask, context)),
        strict=True,
    ):
        torch.testing.assert_close(found, expected)
    other = torch.tensor([[0.5, 3.0, 1.0, 2.0], [4.0, 1.0, 3.0, 2.0]])
    found = model.rank_given(query, mask, context, first_stage=other)
    for row, best in zip(found.video.tolist(), ({1, 2, 3}, {0, 2, 3}), strict=True):
        assert row[0] in best and set(row) <= best | {-1}
    raised = model.rank_given(query, mask, context, first_stage=other * 10)
    there = found.video >= 0
    torch.testing.assert_close(
        (raised.score - found.score)[there],
        torch.full_like(found.score, math.log(10) / TINY.temperature)[there],
    )


def test_localizing_in_a_corpus_of_one_video() -> None:
    model = built(TINY)
    context = model.encode_context(*corpus([7, 5, 4], 7))
    query, mask = questions([4, 2], 4)
    for q, (own, clips) in enumerate(((2, 4), (0, 7))):
        alone, only = context.select(torch.tensor([own])), (query[q : q + 1], mask[q : q + 1])
        found = model.rank(*only, alone)
        assert set(found.video[0].tolist()) <= {0, -1}
        of_video = model.rank_videos(*only, alone, keep=1)[1] / model.config.temperature
        boundaries = model.boundaries(model.encode_query(*only), context, torch.tensor([own]))
        best = max(
            number(boundaries.start[0, a] + boundaries.end[0, b])
            for a in range(clips)
            for b in range(a, min(clips, a + 6))
        )
        assert number(found.score[0, 0] - of_video) == pytest.approx(best, rel=1e-3)


def test_an_answer_is_the_same_without_gradients() -> None:
    """PyTorch takes another path through its transformer layers then."""
    model = built(TINY)
    videos, (query, mask) = corpus([7, 5, 4], 7), questions([4, 2], 4)
    found = model.rank(query, mask, model.encode_context(*videos))
    with torch.inference_mode():
        again = model.rank(query, mask, model.encode_context(*videos))
    torch.testing.assert_close(again.score, found.score, atol=1e-3, rtol=1e-5)


def test_videos_are_ranked_by_their_score() -> None:
    model = built(TINY)
    context = model.encode_context(*corpus([7, 5, 4], 7))
    query, mask = questions([4, 2], 4)
    units = model.encode_query(query, mask).units
    scores = model.retriever.score(units, context.units, context.mask)
    rows, best = model.rank_videos(query, mask, context, keep=10)
    assert rows.shape == best.shape == (2, 3)
    torch.testing.assert_close(best, scores.sort(descending=True).values)
    torch.testing.assert_close(best, scores.gather(1, rows))


@pytest.mark.parametrize("numbers", [1, 5000])
def test_working_in_chunks_changes_nothing(monkeypatch: pytest.MonkeyPatch, numbers: int) -> None:
    model = built(TINY)
    context = model.encode_context(*corpus([7, 5, 4, 9, 3], 9))
    query, mask = questions([4, 2, 1], 4)
    with torch.inference_mode():
        whole = model.rank(query, mask, context)
        monkeypatch.setattr("moviola.study.models.batches._LARGEST", numbers)
        parts = model.rank(query, mask, context)
    assert torch.equal(whole.video, parts.video)
    assert torch.equal(whole.start, parts.start)
    assert torch.equal(whole.end, parts.end)
    torch.testing.assert_close(whole.score, parts.score)


def test_too_few_moments_are_filled_up() -> None:
    scores = torch.full((1, 2, 3, 2), -torch.inf)
    scores[0, 1, 0, 0], scores[0, 0, 1, 1], scores[0, 0, 1, 0] = 3.0, 2.0, 1.0
    place, first, last, score = suppress_spans(scores, threshold=0.4, keep=14)
    assert place.tolist() == [[1, 0] + [-1] * 12]
    assert first[0, :2].tolist() == [0, 1]
    assert last[0, :2].tolist() == [0, 2]
    assert score.tolist() == [[3.0, 2.0] + [-float("inf")] * 12]


@settings(max_examples=25, deadline=None)
@given(
    config=st.sampled_from([TINY, PICTURES, replace(TINY, mask_silent=False), replace(TINY, pooling="max")]),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    words=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    more_clips=st.integers(1, 6),
    more_words=st.integers(1, 4),
    seed=st.integers(0, 5),
)
def test_padding_more_changes_nothing(
    config: PremConfig, lengths: list[int], words: list[int], more_clips: int, more_words: int, seed: int
) -> None:
    model = built(config, seed)
    clips = max(lengths)
    visual, mask, subtitles = corpus(lengths, clips, seed)
    query, query_mask = questions(words, max(words), seed)
    context = model.encode_context(visual, mask, subtitles)
    # The content of the padding must not matter either.
    longer = model.encode_context(
        F.pad(visual, (0, 0, 0, more_clips), value=3.0),
        F.pad(mask, (0, more_clips)),
        F.pad(subtitles, (0, 0, 0, more_clips), value=-2.0),
    )
    padded = F.pad(query, (0, 0, 0, more_words), value=1.0), F.pad(query_mask, (0, more_words))
    there = context.mask[..., None]
    torch.testing.assert_close(
        longer.units[:, :, :clips] * there, context.units * there, atol=1e-5, rtol=1e-4
    )
    found, again = model.rank(query, query_mask, context), model.rank(*padded, longer)
    torch.testing.assert_close(found.score, again.score, atol=1e-3, rtol=1e-5)


def test_padding_more_changes_no_loss() -> None:
    model = built(TINY)
    pairs, queries = pair_batch(), localizer_batch()
    for loss, batch in ((model.retriever.loss, pairs), (model.localizer.loss, queries)):
        longer = replace(
            batch,
            visual=F.pad(batch.visual, (0, 0, 0, 4), value=2.0),
            subtitles=F.pad(batch.subtitles, (0, 0, 0, 4), value=2.0),
            mask=F.pad(batch.mask, (0, 4)),
            query=F.pad(batch.query, (0, 0, 0, 2), value=2.0),
            query_mask=F.pad(batch.query_mask, (0, 2)),
        )
        for name, term in loss(batch).items():
            assert number(loss(longer)[name]) == pytest.approx(number(term), rel=1e-4, abs=1e-5)


def test_a_tiny_problem_is_learned() -> None:
    """Six videos, two queries each; a query names the pictures of its moment: all are found, first."""
    torch.manual_seed(0)
    config = replace(
        TINY, visual_size=16, query_size=16, subtitle_size=0, hidden_size=32, feed_forward_size=64
    )
    videos, clips = 6, 12
    visual = normal(videos, clips, config.visual_size) * 0.3
    labels = torch.tensor([[1, 3], [7, 10]]).repeat(videos, 1)
    video = torch.arange(videos).repeat_interleave(2)
    names = normal(2 * videos, config.visual_size, seed=5)
    for row, (first, last), name in zip(video.tolist(), labels.tolist(), names, strict=True):
        visual[row, first : last + 1] += name
    query, query_mask = names[:, None].repeat(1, 3, 1), torch.ones(2 * videos, 3)
    mask = torch.ones(videos, clips)
    ones = torch.ones(2 * videos)
    pairs = PairBatch(
        query, query_mask, visual, mask, None, video, labels, ones, torch.eye(2 * videos, dtype=torch.bool)
    )
    candidates = torch.stack([video, (video + 1) % videos, (video + 2) % videos], 1)
    hard = CandidateBatch(query, query_mask, visual, mask, None, candidates, labels, ones)
    model = Prem(config).train()
    for part, batch, steps in ((model.retriever, pairs, 60), (model.localizer, hard, 80)):
        optimizer = torch.optim.AdamW(part.parameters(), lr=3e-3)
        for _ in range(steps):
            optimizer.zero_grad()
            sum(part.loss(batch).values()).backward()
            optimizer.step()
    model.eval()
    with torch.inference_mode():
        context = model.encode_context(visual, mask, None)
        found = model.rank(query, query_mask, context)
    assert found.video[:, 0].tolist() == video.tolist()
    assert (found.start[:, 0] / 2.0).tolist() == labels[:, 0].tolist()
    assert (found.end[:, 0] / 2.0 - 1).tolist() == labels[:, 1].tolist()


def test_mixed_precision_learns_the_same() -> None:
    model = built(TINY).train()
    for part, batch in ((model.retriever, pair_batch()), (model.localizer, localizer_batch())):
        whole = part.loss(batch)
        with torch.autocast("cpu", torch.bfloat16):
            half = part.loss(batch)
        for name, term in half.items():
            assert term.dtype == torch.float32
            assert number(term) == pytest.approx(number(whole[name]), rel=0.1, abs=0.3)


def test_a_corpus_smaller_than_the_number_of_videos_is_searched_whole() -> None:
    model = built(replace(TINY, top_videos=10))
    context = model.encode_context(*corpus([2, 1], 2))
    found = model.rank(*questions([2], 2), context)
    assert set(found.video[0].tolist()) == {0, 1, -1}, "3 + 1 spans, then nothing"
    assert found.score[0, 4:].tolist() == [-float("inf")] * 16


def test_dropout_works_in_training_alone() -> None:
    model = built(replace(TINY, dropout=0.5))
    videos = corpus([5], 5)
    assert torch.equal(model.encode_context(*videos).content, model.encode_context(*videos).content)
    model.train()
    assert not torch.equal(model.encode_context(*videos).content, model.encode_context(*videos).content)


def test_the_papers_sizes() -> None:
    config = PremConfig()
    assert (config.hidden_size, config.feed_forward_size, config.heads) == (384, 1536, 4)
    with torch.device("meta"):
        model = Prem(config)
    wide, narrow = model.localizer.start.wide, model.localizer.start.narrow
    assert (wide.in_channels, wide.out_channels, wide.kernel_size) == (384, 128, (5,))
    assert (narrow.in_channels, narrow.out_channels, narrow.kernel_size) == (128, 1, (1,))
    assert len(model.localizer.fusion) == 2


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"visual_size": 0, "subtitle_size": 0}, "at least one stream"),
        ({"heads": 3}, "multiple of heads 3"),
        ({"shortest_span": 6}, "0 <= shortest_span < longest_span"),
        ({"gate": "open"}, "choose .*rescaled"),
        ({"pooling": "sum"}, "choose .*modality"),
        ({"positives": "all"}, r"choose .*strong\+weak"),
    ],
)
def test_a_wrong_config_is_refused(change: dict[str, object], remedy: str) -> None:
    with pytest.raises(InvalidValue, match=remedy):
        replace(TINY, **change)  # type: ignore[arg-type]


def test_wrong_inputs_are_refused() -> None:
    model = built(TINY)
    visual, mask, _ = corpus([5], 5)
    with pytest.raises(InvalidValue, match="subtitles missing: this model has subtitle_size 5"):
        model.encode_context(visual, mask, None)
    with pytest.raises(InvalidValue, match="sequence of 25 positions: this model has 24"):
        model.encode_context(*corpus([25], 25))
    with pytest.raises(InvalidValue, match=r"pair 1: moment \[0, 5\]"):
        model.retriever.loss(replace(pair_batch(), labels=torch.tensor([[2, 4], [0, 5], [6, 6], [0, 3]])))
    with pytest.raises(InvalidValue, match=r"pair 2: moment \[3, 2\]"):
        model.localizer.loss(replace(localizer_batch(), labels=torch.tensor([[2, 4], [0, 1], [3, 2]])))


def test_batches_move_between_devices() -> None:
    batch = localizer_batch().to("meta")
    assert len(batch) == 3
    assert {batch.query.device.type, batch.candidates.device.type, batch.subtitles.device.type} == {"meta"}
    assert replace(localizer_batch(), subtitles=None).to("meta").subtitles is None
