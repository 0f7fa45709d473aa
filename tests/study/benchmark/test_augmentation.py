"""Augmented batches: what was added answers as what it was copied from, and the rest is as it was."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue
from moviola.study.models.reel import AnswerBatch
from reel_ideas.augmentation import Augmentation


def batch_of(
    seed: int, *, queries: int = 6, videos: int = 4, clips: int = 20, heard: bool = True
) -> AnswerBatch:
    """Videos of different lengths, each clip unlike all others; every query has an answer, some have two."""
    draw = torch.Generator().manual_seed(seed)
    counts = torch.randint(clips // 2, clips + 1, (videos,), generator=draw)
    mask = (torch.arange(clips) < counts[:, None]).float()
    visual = torch.rand(videos, clips, 5, generator=draw) * mask[..., None]
    tokens = torch.randint(1, 4, (queries,), generator=draw)
    query_mask = (torch.arange(3) < tokens[:, None]).float()
    answer, span = [], []
    for query in [*range(queries), 0, 1]:
        video = int(torch.randint(videos, (), generator=draw))
        start = 4 * torch.rand((), generator=draw) + torch.randint(3, (), generator=draw)
        answer.append([query, video])
        span.append([float(start), float(start) + 2.5])
    return AnswerBatch(
        torch.rand(queries, 3, 5, generator=draw) * query_mask[..., None], query_mask, visual, mask,
        torch.rand(videos, clips, 2, generator=draw) * mask[..., None] if heard else None,
        (torch.rand(videos, clips, generator=draw) < 0.2).float() * mask, torch.tensor(answer),
        torch.tensor(span), torch.rand(len(answer), generator=draw),
    )  # fmt: skip


def augmented(batch: AnswerBatch, seed: int, **shares: float) -> AnswerBatch:
    before = [getattr(batch, field.name) for field in fields(batch)]
    kept = [None if value is None else value.clone() for value in before]
    found = Augmentation(**shares)(batch, torch.Generator().manual_seed(seed))
    for value, old in zip(before, kept, strict=True):  # what was given stays as it was
        assert value is old or torch.equal(value, old)
    return found


seeds = st.integers(0, 10_000)


@given(seed=seeds, heard=st.booleans())
def test_a_moved_moment_looks_the_same_and_covers_no_answer(seed: int, heard: bool) -> None:
    batch = batch_of(seed, heard=heard)
    found = augmented(batch, seed, moved=1.0)
    old = len(batch.answer)
    assert torch.equal(found.answer[:old], batch.answer) and torch.equal(found.span[:old], batch.span)
    streams = ["visual", "cuts", *(["subtitles"] if heard else [])]
    for query, video, span, similarity in zip(
        found.answer[old:, 0], found.answer[old:, 1], found.span[old:], found.similarity[old:], strict=True
    ):
        first, stop = int(span[0].floor()), int(span[1].ceil())
        assert 0 <= first < stop <= found.mask[video].sum()
        rows = [
            row
            for row in range(old)
            if batch.answer[row, 0] == query
            and batch.similarity[row] == similarity
            and torch.isclose(batch.span[row, 1] - batch.span[row, 0], span[1] - span[0])
            and (begin := int(batch.span[row, 0].floor())) + stop - first <= batch.mask.shape[1]
            and all(
                torch.equal(
                    getattr(found, name)[video, first:stop],
                    getattr(batch, name)[batch.answer[row, 1], begin : begin + stop - first],
                )
                for name in streams
            )
        ]
        assert rows, "shows something else than an answer of its query"
        assert all(batch.answer[row, 1] != video for row in rows)
    for video, span in zip(batch.answer[:, 1], batch.span, strict=True):
        own = slice(int(span[0].floor()), int(span[1].ceil()))
        assert torch.equal(found.visual[video, own], batch.visual[video, own])


def test_a_moment_is_moved_with_every_query_that_it_answers() -> None:
    batch = batch_of(1)
    answer, span = batch.answer.clone(), batch.span.clone()
    answer[1, 1], span[1] = answer[0, 1], span[0]  # one moment of the queries 0 and 1
    batch = replace(batch, answer=answer, span=span)
    together = 0
    for seed in range(40):
        found = augmented(batch, seed, moved=1.0)
        places: dict[tuple[float, ...], dict[float, int]] = {}
        for row in range(len(answer), len(found.answer)):
            place = (float(found.answer[row, 1]), *found.span[row].tolist())
            places.setdefault(place, {})[float(found.similarity[row])] = int(found.answer[row, 0])
        for queries in places.values():
            if float(batch.similarity[0]) in queries:
                assert sorted(queries.values()) == [0, 1]
                together += 1
    assert together > 0


@given(seed=seeds)
def test_mixed_clips_keep_their_length_and_padding_stays_empty(seed: int) -> None:
    batch = batch_of(seed)
    batch = replace(batch, visual=torch.nn.functional.normalize(batch.visual, dim=-1))
    found = augmented(batch, seed, mixed=1.0)
    length, before = found.visual.norm(dim=-1), batch.visual.norm(dim=-1)
    torch.testing.assert_close(length, before)
    assert (found.visual[batch.mask == 0] == 0).all()
    cosine = torch.cosine_similarity(found.visual, batch.visual, dim=-1)[batch.mask > 0]
    # .7 of one and .3 of another at a right angle: .919
    assert (cosine > 0.919).all() and (cosine < 0.9999).any()
    untouched = augmented(batch, seed, mixed=0.0)
    assert untouched.visual is batch.visual


@given(seed=seeds, share=st.floats(0.05, 1.0))
def test_a_query_keeps_a_token(seed: int, share: float) -> None:
    batch = batch_of(seed)
    mask = augmented(batch, seed, dropped=share).query_mask
    assert (mask <= batch.query_mask).all() and (mask.sum(dim=1) >= 1).all()


def test_the_share_is_about_that_of_what_is_changed() -> None:
    mask = torch.ones(400, 10)
    batch = batch_of(0)
    wide = replace(batch, query_mask=mask)
    kept = Augmentation(0.0, 0.0, 0.15)(wide, torch.Generator().manual_seed(0)).query_mask.mean()
    assert 0.83 < kept < 0.87


@given(seed=seeds)
def test_the_generator_is_the_only_chance(seed: int) -> None:
    batch = batch_of(seed)
    one = Augmentation(0.5, 0.5, 0.5)(batch, torch.Generator().manual_seed(seed))
    torch.rand(3)
    two = Augmentation(0.5, 0.5, 0.5)(batch, torch.Generator().manual_seed(seed))
    for field in fields(batch):
        assert torch.equal(getattr(one, field.name), getattr(two, field.name))


@pytest.mark.parametrize("wrong", [{"moved": -0.1}, {"mixed": 1.5}, {"dropped": float("nan")}])
def test_shares_are_shares(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidValue, match=f"{name}="):
        Augmentation(**wrong)
