"""CONQUER against the published code: forward values, loss, gradients and ranked moments, by similarity."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from moviola.retrieval.saved.clip_windows import LABELS
from moviola.study.models.batches import CandidateBatch, Ranked
from moviola.study.models.conquer import Conquer, ConquerConfig, Scores


@dataclass(frozen=True)
class Case:
    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    model: Conquer

    def input(self, name: str) -> Tensor:
        array = torch.from_numpy(self.arrays[f"in/{name}"])
        return array.float() if "mask" in name else array

    def output(self, name: str) -> NDArray[Any]:
        return self.arrays[f"out/{name}"]

    def close(self, found: Tensor, name: str, kind: str = "forward", where: Any = ...) -> None:
        tolerance = self.facts["tolerance"][kind]
        np.testing.assert_allclose(found.detach().numpy()[where], self.output(name)[where], **tolerance)

    @property
    def stored_scores(self) -> Scores:
        video = torch.from_numpy(self.output("video_score")) if "out/video_score" in self.arrays else None
        start, end = (torch.from_numpy(self.output(f"{name}_logit")) for name in ("start", "end"))
        return Scores(start, end, video)

    @property
    def first_stage(self) -> Tensor:
        """Of the candidates, which are the videos from 1 on; 0 is the ground truth."""
        return self.input("first_stage_score")


def config_of(facts: dict[str, Any]) -> ConquerConfig:
    config, decoding, state = facts["config"], facts["decoding"], facts["state"]
    model = config["model_config"]
    transformer, convolution = model["bert_config"], model["moment_localization_config"]["conv_cfg_1"]
    return ConquerConfig(
        visual_size=config["visual_dim"],
        subtitle_size=config["text_dim"],
        query_size=config["query_dim"],
        hidden_size=config["hidden_dim"],
        heads=transformer["num_attention_heads"],
        feed_forward_size=transformer["intermediate_size"],
        layers=transformer["num_hidden_layers"],
        max_clips=state["encoder.videoEncoder.transformer.embeddings.position_embeddings.weight"][0],
        max_tokens=state["encoder.queryEncoder.transformer.embeddings.position_embeddings.weight"][0],
        clusters=model["netvlad_config"]["text_cluster"],
        clip_score_size=convolution["out_channels"],
        video_score_size=model["video_scoring_config"]["linear_1_cfg"]["out_features"],
        kernel=convolution["kernel_size"],
        dropout=0.0,
        similarity=config["similarity_measure"],
        span_weight=config["lw_st_ed"],
        video_weight=config["lw_video_ce"],
        clip_seconds=decoding["clip_length"],
        top_videos=decoding["top_videos"],
        top_moments=decoding["top_moments"],
        shortest_span=decoding["min_pred_l"],
        longest_span=decoding["max_pred_l"],
        reference_padding=True,
        mask_silent=False,
    )


@pytest.fixture(scope="module", params=["general", "disjoint", "exclusive"])
def case(golden: Path, request: pytest.FixtureRequest) -> Case:
    facts = json.loads((golden / f"model_conquer_{request.param}.json").read_text())
    with np.load(golden / f"model_conquer_{request.param}.npz", allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    model = Conquer(config_of(facts))
    model.load_state_dict({name: torch.from_numpy(arrays[f"state/{name}"]) for name in facts["state"]})
    return Case(facts, arrays, model.eval())


def forward(case: Case) -> Scores:
    """Every query in its own videos."""
    visual, mask, subtitles = (case.input(name) for name in ("visual_feat", "mask", "sub_feat"))
    with torch.no_grad():
        context = case.model.encode_context(visual.flatten(0, 1), mask.flatten(0, 1), subtitles.flatten(0, 1))
        queries = case.model.encode_query(case.input("query_feat"), case.input("query_mask"))
        return case.model.match(
            queries, context.select(torch.arange(mask[..., 0].numel()).view(mask.shape[:2]))
        )


def videos(scores: Scores, chosen: slice) -> Scores:
    video = None if scores.video is None else scores.video[:, chosen]
    return Scores(scores.start[:, chosen], scores.end[:, chosen], video)


def test_parameters(case: Case) -> None:
    found = sum(parameter.numel() for parameter in case.model.parameters())
    assert found == case.facts["number_of_parameters"]


@torch.no_grad()
def test_encoders(case: Case) -> None:
    queries = case.model.encode_query(case.input("query_feat"), case.input("query_mask"))
    case.close(queries.tokens, "query_encoded", where=case.arrays["in/query_mask"] == 1)
    assert queries.fusion is not None
    case.close(queries.fusion, "fusion_weight")
    context = case.model.encode_context(
        *(case.input(name)[:, 0] for name in ("visual_feat", "mask", "sub_feat"))
    )
    valid = case.arrays["in/mask"][:, 0] == 1
    assert context.subtitles is not None
    case.close(context.visual, "visual_encoded_first", where=valid)
    case.close(context.subtitles, "sub_encoded_first", where=valid)


def test_logits(case: Case) -> None:
    scores, valid = forward(case), case.arrays["in/mask"] == 1
    for name, found in (("start_logit", scores.start), ("end_logit", scores.end)):
        case.close(found, name, where=valid)
        assert (found.numpy()[~valid] < -1e9).all()
    assert (scores.video is not None) == ("out/video_score" in case.arrays)
    if scores.video is not None:
        case.close(scores.video, "video_score")


def test_labels(case: Case) -> None:
    times, clips = case.arrays["in/train_timestamp"], case.arrays["in/train_mask"][:, 0].sum(axis=1)
    found = LABELS["conquer"].labels(times[:, 0], times[:, 1], clips, case.model.config.clip_seconds)
    np.testing.assert_array_equal(found, case.arrays["in/train_st_ed_indices"])


def test_loss_and_gradients(case: Case) -> None:
    visual, mask, subtitles = (case.input(f"train_{name}") for name in ("visual_feat", "mask", "sub_feat"))
    candidates = torch.arange(mask.shape[0] * mask.shape[1]).view(mask.shape[:2])
    batch = CandidateBatch(
        query=case.input("train_query_feat"),
        query_mask=case.input("train_query_mask"),
        visual=visual.flatten(0, 1),
        mask=mask.flatten(0, 1),
        subtitles=subtitles.flatten(0, 1),
        candidates=candidates,
        labels=case.input("train_st_ed_indices").long(),
        similarity=torch.ones(len(mask)),
    )
    case.model.train().zero_grad()
    terms = case.model.loss(batch)
    loss = torch.stack(list(terms.values())).sum()
    loss.backward()
    case.model.eval()
    stored = {name.removeprefix("out/loss_") for name in case.arrays if name.startswith("out/loss_")}
    released = {"span": "moment"}  # the release's name of the term
    assert {released.get(name, name) for name in terms} == stored
    for name, term in terms.items():
        case.close(term, f"loss_{released.get(name, name)}", "loss")
    case.close(loss, "loss", "loss")
    parameters = dict(case.model.named_parameters())
    gradients = [name.removeprefix("grad/") for name in case.arrays if name.startswith("grad/")]
    assert gradients
    for name in gradients:
        found, expected = parameters[name].grad, case.arrays[f"grad/{name}"]
        assert found is not None, name
        assert np.abs(found.numpy() - expected).max() <= 1e-3 * np.abs(expected).max(), name


def check_moments(case: Case, ranked: Ranked, kind: str, rtol: float) -> None:
    np.testing.assert_allclose(ranked.score.numpy(), case.output(f"{kind}_score"), rtol=rtol)


def check_spans(case: Case, ranked: Ranked, kind: str) -> None:
    found = torch.stack([ranked.start, ranked.end], dim=-1).numpy()
    np.testing.assert_array_equal(found, case.output(f"{kind}_seconds"))


def test_corpus_moments_from_stored_logits(case: Case) -> None:
    ranked = case.model.decode(videos(case.stored_scores, slice(1, None)), case.first_stage)
    np.testing.assert_array_equal(ranked.video.numpy(), case.output("corpus_candidate"))
    check_spans(case, ranked, "corpus")
    check_moments(case, ranked, "corpus", 1e-4)


def test_moments_of_one_video_from_stored_logits(case: Case) -> None:
    scores = videos(case.stored_scores, slice(0, 1))
    ranked = case.model.decode(scores, torch.ones(len(scores.start), 1))
    check_spans(case, ranked, "single")
    check_moments(case, ranked, "single", 1e-4)


def test_ranked_videos_from_stored_logits(case: Case) -> None:
    terms = case.model.video_terms(videos(case.stored_scores, slice(1, None)), case.first_stage)
    found = case.model.similarity.finish(terms)
    best = found.topk(case.model.config.top_videos)
    np.testing.assert_array_equal(best.indices.numpy(), case.output("ranked_candidate"))
    np.testing.assert_allclose(best.values.numpy(), case.output("ranked_candidate_score"), rtol=1e-4)


def test_moments_from_a_forward_pass(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranking a corpus end to end: all videos of all queries, those of other queries being no candidates."""
    monkeypatch.setattr("moviola.study.models.conquer.model.PAIRS_AT_ONCE", 3)
    visual, mask, subtitles = (case.input(name)[:, 1:] for name in ("visual_feat", "mask", "sub_feat"))
    queries, candidates = mask.shape[:2]
    rows = torch.arange(queries * candidates).view(queries, candidates)
    first_stage = torch.full((queries, queries * candidates), -torch.inf)
    first_stage.scatter_(1, rows, case.first_stage)
    with torch.inference_mode():
        context = case.model.encode_context(visual.flatten(0, 1), mask.flatten(0, 1), subtitles.flatten(0, 1))
        ranked = case.model.rank(
            case.input("query_feat"),
            case.input("query_mask"),
            context,
            first_stage=first_stage,
        )
    assert (ranked.video // candidates == torch.arange(queries)[:, None]).all()
    check_moments(case, ranked, "corpus", 1e-3)
    for query in range(queries):
        check_ranking(case, ranked, query, candidates, 1e-3)


def check_ranking(case: Case, ranked: Ranked, query: int, candidates: int, rtol: float) -> None:
    """Each moment has the score that the release gave it, not only the sorted scores are alike.

    At the end of the list a moment may be missing on one side, if it scores like the last one.
    """
    columns = (ranked.video[query] % candidates, ranked.start[query], ranked.end[query], ranked.score[query])
    found = {tuple(row): score for *row, score in zip(*(c.tolist() for c in columns), strict=True)}
    expected = {
        (video, *span): score
        for video, span, score in zip(
            *(case.output(f"corpus_{name}")[query].tolist() for name in ("candidate", "seconds", "score")),
            strict=True,
        )
    }
    assert len(found) == len(expected) == case.model.config.top_moments
    last = min(expected.values())
    for moment in found.keys() | expected.keys():
        one, other = found.get(moment, last), expected.get(moment, last)
        assert one == pytest.approx(other, rel=rtol), moment
