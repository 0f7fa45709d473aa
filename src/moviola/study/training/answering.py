"""Answers of a trained model, to the queries of a pair file.

:func:`answer` is ``moviola answer`` from Python; :class:`AnsweringModel` answers any split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from moviola.devices import available_device
from moviola.errors import InvalidValue
from moviola.features import FeatureSource, SourceFacts
from moviola.retrieval import SEGMENTS, Calibration, Moments
from moviola.retrieval.proposals import APART
from moviola.retrieval.refiners import CONTEXT, SAME_MOMENT
from moviola.retrieval.saved.description import read_description
from moviola.retrieval.trained_models import other_stage1, proposal_weight_of
from moviola.study.measures import Qrels, Run
from moviola.study.models.checks import require_known
from moviola.study.models.pretrained import from_pretrained
from moviola.study.training.compatibility import require_same_encoder, require_same_sizes, sampling_of
from moviola.study.training.data import Split
from moviola.study.training.first_stage import (
    FirstStage,
    UnusableCandidates,
    open_first_stage,
    unusable_candidates,
)
from moviola.study.training.one_video import (
    SEGMENTS_IN_VIDEO,
    qrels_in_one_video,
    recall_in_one_video,
    run_in_one_video,
)
from moviola.study.training.recipe import AnswerSettings, Recipe
from moviola.study.training.recipes import recipe, recipe_of
from moviola.study.training.validation import judge, judge_videos, run_of, video_qrels

__all__ = ["TASKS", "Answer", "AnsweringModel", "answer"]


@dataclass(frozen=True)
class AnsweringModel:
    """A saved model with its source of proposals, ready to answer the queries of any split.

    Attributes:
        recipe, model: its recipe, and itself in evaluation mode.
        how: the context, the segments and the calibration of its training.
        built_on: source of its proposals or video scores; None for models that need none.
        other_stage1: a note where the stage 1 is not that of its training; else "".
    """

    recipe: Recipe
    model: nn.Module
    how: AnswerSettings
    built_on: FirstStage | None
    other_stage1: str = ""

    @classmethod
    def open(
        cls,
        folder: Path,
        source: SourceFacts,
        *,
        stage1: Path | None = None,
        candidates: Path | None = None,
        segments: int = SEGMENTS,
        merge: str | None = None,
        suppress_above: float = SAME_MOMENT,
        as_search: bool = False,
        recipe_name: str | None = None,
        device: str = "cpu",
    ) -> AnsweringModel:
        """A model from its folder, checked against the features; arguments, errors as in :func:`answer`."""
        device = available_device(device)
        about = read_description(folder)
        name = recipe_name or recipe_of(about)
        how = recipe(name)
        require_same_encoder(folder, about, source)
        if how.architecture != about.architecture:
            raise InvalidValue(
                f"{folder}: a model of architecture {about.architecture!r}; the recipe asks for "
                f"{how.architecture!r}; give the recipe that it was trained with"
            )
        merge = merge or (APART if candidates else str(about.extra.get("merge", APART)))
        built_on = open_first_stage(
            name, how, source, stage1=stage1, candidates=candidates, segments=segments, merge=merge,
            device=device,
        )  # fmt: skip
        require_same_sizes(folder, about, how, source)
        weight = proposal_weight_of(about.extra, folder)
        if weight and candidates is not None and as_search:
            raise InvalidValue(
                f"{folder}: its scores in search count those of a stage 1, and {candidates} has others; give "
                "a stage 1, or leave as_search out"
            )
        sampling = sampling_of(about, source)
        settings = AnswerSettings(
            segment_clips=int(sampling["segment_clips"]),
            segments=segments,
            context=float(sampling.get("context", CONTEXT)),
            suppress_above=suppress_above,
            proposal_weight=weight if candidates is None else 0.0,
            calibration=Calibration.of(about.extra, folder),
            scored=as_search,
            merge=merge,
        )
        said = other_stage1(about.extra, built_on.mark) if built_on and stage1 else ""
        return cls(how, from_pretrained(folder, device), settings, built_on, said)

    def completed(self, split: Split) -> Split:
        """A split with the model's proposals or video scores."""
        return split if self.built_on is None else self.built_on.complete(split, self.recipe.needs)

    def moments(self, split: Split) -> Moments:
        """Its answers to the queries of a split."""
        return self.recipe.moments(self.model, self.completed(split), self.how)

    def run(self, split: Split) -> Run:
        """The same as measures take them; scores are matching scores, or those that search shows."""
        moments = self.moments(split)
        return run_of(moments, split, moments.score if self.how.scored else moments.match)

    def video_run(self, split: Split) -> Run:
        """Whole videos instead of moments (VR); see :meth:`Recipe.rank_videos`."""
        return self.recipe.video_run(self.model, self.completed(split), self.how)


@dataclass(frozen=True)
class Answer:
    """Answers of a model, and their quality.

    Attributes:
        run, qrels: moments of each query, or whole videos, best first, and the judgements that count in them.
        figures: by name of the measure: NDCG, or recall in one video.
        videos: number of searched videos.
        left_out: number of the pair file's moments in other videos; they do not count.
        other_stage1: a note where the stage 1 is not that of the model's training; else "".
        unusable: moments of ``candidates`` that do not count.
    """

    run: Run
    qrels: Qrels
    figures: Mapping[str, float]
    videos: int
    left_out: int
    other_stage1: str = ""
    unusable: UnusableCandidates = field(default_factory=UnusableCandidates)


def _in_corpus(ready: AnsweringModel, split: Split) -> tuple[Run, Qrels, dict[str, float]]:
    run = ready.run(split)
    return run, split.pairs.qrels, judge(run, split)


def _in_one_video(ready: AnsweringModel, split: Split) -> tuple[Run, Qrels, dict[str, float]]:
    run = run_in_one_video(ready.run, split)
    return run, qrels_in_one_video(split), recall_in_one_video(run, split)


def _videos(ready: AnsweringModel, split: Split) -> tuple[Run, Qrels, dict[str, float]]:
    run = ready.video_run(split)
    return run, video_qrels(split), judge_videos(run, split)


TASKS: dict[str, Callable[[AnsweringModel, Split], tuple[Run, Qrels, dict[str, float]]]] = {
    "vcmr": _in_corpus,
    "svmr": _in_one_video,
    "vr": _videos,
}
"""Tasks: moments of all videos, moments of the one video with the answer, whole videos."""


def answer(
    model: Path,
    source: FeatureSource,
    queries: Path,
    *,
    task: str = "vcmr",
    videos: Sequence[str] | None = None,
    stage1: Path | None = None,
    candidates: Path | None = None,
    segments: int | None = None,
    merge: str | None = None,
    suppress_above: float = SAME_MOMENT,
    as_search: bool = False,
    recipe_name: str | None = None,
    device: str = "cpu",
) -> Answer:
    """Answer the queries of a pair file with a saved model.

    Args:
        model: its folder.
        source, queries: features as in :meth:`moviola.study.training.experiment.Experiment.prepare`, and a
            TVR-Ranking pair file.
        task: a name in :data:`TASKS`. For "svmr" a query's video is that of the first of its best moments.
        videos: ids of those to search; None: all with features.
        stage1, candidates: source of a refiner's or ``conquer``'s proposals, as in ``prepare``, too.
        segments: number of segments that a stage 1 retrieves per query, >= 1; by default 200, in one video 5.
        merge: which of these segments merge, a name in :data:`moviola.retrieval.proposals.MERGES`; by default
            as in the model's training.
        suppress_above: IoU, in [0, 1], above which the worse of two refined moments of a video is dropped, as
            is one that contains the other; 1 keeps all, as the release of SPR does.
        as_search: give the scores of `moviola search`, in [0, 1], not the model's own matching scores. Those
            of a stage 1, and of a refiner without a calibration, are set against chance in the searched
            videos alone: in ``videos``, for "svmr" in the one video. Search takes the whole library for that,
            whatever videos it is limited to.
        recipe_name: its recipe; by default that of the model's folder.
        device: "cpu", "cuda", "cuda:N", "mps" or "auto".

    Raises:
        InvalidValue: a missing or superfluous source of proposals; ``segments`` or ``suppress_above`` out of
            range; an unknown ``task``; or ``as_search`` for whole videos, for a model that search does not
            use, or with ``candidates`` for one whose scores count those of a stage 1.
        EncoderMismatch: the model or its stage 1 was trained on other features.
        NotFound, DataError: a file is missing or damaged, or a video or query has no features.
    """
    if not 0 <= suppress_above <= 1:
        raise InvalidValue(
            f"suppress_above={suppress_above}: an overlap (IoU) lies between 0 and 1; 1 keeps all"
        )
    require_known("task", task, TASKS)
    if task == "vr" and as_search:
        raise InvalidValue("task 'vr': `moviola search` shows moments, not videos; leave as_search out")
    ready = AnsweringModel.open(
        model, source.facts, stage1=stage1, candidates=candidates,
        segments=(SEGMENTS_IN_VIDEO if task == "svmr" else SEGMENTS) if segments is None else segments,
        merge=merge, suppress_above=suppress_above, as_search=as_search, recipe_name=recipe_name,
        device=device,
    )  # fmt: skip
    split = Split.read(source, queries, videos)
    return Answer(
        *TASKS[task](ready, split), len(split.features), split.pairs.left_out, ready.other_stage1,
        unusable_candidates([ready.built_on], source),
    )  # fmt: skip
