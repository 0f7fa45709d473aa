"""Training and answering: all steps from features and pair files to a folder, or to a run.

:func:`train_model` is ``moviola train`` from Python, :func:`answer` is ``moviola answer``. Between them are
:class:`Experiment` (prepared, not yet trained) and :class:`AnsweringModel` (ready to answer any split).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from torch import nn

from moviola.devices import available_device
from moviola.errors import InvalidValue
from moviola.features import FeatureSource, SourceFacts
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.measures import Qrels, Run
from moviola.models.checks import require_known
from moviola.models.description import read_description, require_new
from moviola.models.pretrained import from_pretrained, save_pretrained
from moviola.retrieval import SEGMENTS, Calibration, Moments
from moviola.retrieval.refiners import CONTEXT, SAME_MOMENT
from moviola.retrieval.trained_refiners import other_stage1, proposal_weight_of
from moviola.training.cards import described, facts, model_card, plain
from moviola.training.compatibility import require_same_encoder, require_same_sizes, sampling_of
from moviola.training.data import Split
from moviola.training.data_sets import settings_of_data_set
from moviola.training.first_stage import FirstStage, open_first_stage, require_one_text
from moviola.training.fit_calibration import calibration_of
from moviola.training.one_video import (
    SEGMENTS_IN_VIDEO,
    qrels_in_one_video,
    recall_in_one_video,
    run_in_one_video,
)
from moviola.training.recipe import AnswerSettings, Recipe, Trained, train
from moviola.training.recipes import recipe, recipe_of
from moviola.training.settings import TrainingSettings, differences, read_settings
from moviola.training.validation import judge, judge_videos, run_of, video_qrels

__all__ = ["TASKS", "Answer", "AnsweringModel", "Experiment", "TrainedModel", "answer", "train_model"]

_FEATURES = "features"
_PAIR_FILES = "contents of the pair files"

Progress = Callable[[int, int, Mapping[str, float]], None]


# ---- training --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainedModel:
    """The result of a training.

    Attributes:
        folder: of the model, with its card and its log.
        trained: the model, its phases, and its training settings.
        facts: content of its ``config.json``: figures on val, steps, seconds, data, calibration.
        calibrated: whether its scores in `moviola search` are probabilities: not if they do not separate
            right answers from wrong ones on val; None for a model that is no refiner.
    """

    folder: Path
    trained: Trained
    facts: Mapping[str, Any]
    calibrated: bool | None


@dataclass(frozen=True)
class Experiment:
    """A prepared training: everything is read and checked, nothing is trained or written.

    Attributes:
        name: the model, a name in :data:`moviola.training.recipes.RECIPES`.
        source, settings: properties of the features that the model depends on, and the training's settings.
        learned, val: training split and validation split, still without proposals.
        built_on: source of proposals or video scores for ``learned`` and ``val``; None for models that need
            none.
        data, stage1, candidates: description of both splits and names of the sources, for the model's folder.
        pair_files: digests of the contents of both pair files.
    """

    name: str
    source: SourceFacts
    settings: TrainingSettings
    learned: Split
    val: Split
    built_on: tuple[FirstStage | None, FirstStage | None]
    data: Mapping[str, Mapping[str, Any]]
    stage1: str | None = None
    candidates: str | None = None
    pair_files: tuple[str, ...] = ()

    @classmethod
    def prepare(
        cls,
        name: str,
        source: FeatureSource,
        *,
        train: Path,
        val: Path,
        train_videos: Sequence[str] | None = None,
        val_videos: Sequence[str] | None = None,
        top: int | None = None,
        stage1: Path | None = None,
        candidates: Path | None = None,
        val_candidates: Path | None = None,
        segments: int = SEGMENTS,
        data_set: str = "tvr",
        settings: Mapping[str, Any] | None = None,
        overrides: Sequence[str] = (),
    ) -> Experiment:
        """Read and check everything; arguments and errors as in :func:`train_model`."""
        how = recipe(name)
        own = settings_of_data_set(data_set, name, source.facts.clip_seconds)
        for table, values in (settings or {}).items():
            own[table] = {**own.get(table, {}), **values}
        tables = _with_segments_of(source.facts, how, own)
        chosen = _on_devices(read_settings(how, tables, overrides))
        how.require_measured(chosen)  # else the first evaluation would find out, after a whole epoch

        def first_stage(found: Path | None) -> FirstStage | None:
            return open_first_stage(
                name, how, source.facts, stage1=stage1, candidates=found, segments=segments,
                device=next(iter(chosen.loops.values())).device,
            )  # fmt: skip

        before = first_stage(candidates)
        before_val = first_stage(val_candidates) if val_candidates else before
        learned = Split.read(source, train, train_videos, top=top)
        learned.require_answers(train)
        learned = replace(learned, pairs=learned.pairs.of_answers())
        if train_videos is None:
            learned = learned.of_own_videos()
        judged = Split.read(source, val, val_videos)
        judged.require_answers(val)  # else the first evaluation would find out
        if candidates and val_candidates in (None, candidates):
            require_one_text(learned.pairs, judged.pairs, candidates)
        shared = len(set(learned.features.video_ids) & set(judged.features.video_ids))
        data = {
            "train": described(learned, train.name),
            "val": described(judged, val.name) | {"videos_learned_from": shared},
        }
        return cls(
            name, source.facts, chosen, learned, judged, (before, before_val), data,
            stage1=stage1.resolve().name if stage1 else None,
            candidates=candidates.name if candidates else None,
            pair_files=tuple(sha256(path.read_bytes()).hexdigest()[:16] for path in (train, val)),
        )  # fmt: skip

    @property
    def shared(self) -> int:
        """Number of videos of val that are also in training, so that val is too optimistic."""
        return int(self.data["val"]["videos_learned_from"])

    def train(
        self, out: Path, *, resume: bool = False, tensorboard: bool = False, progress: Progress | None = None
    ) -> TrainedModel:
        """Train, calibrate and save; arguments and errors as in :func:`train_model`."""
        how = recipe(self.name)
        _begin(out, resume, self._identity())
        before, before_val = self.built_on
        learned = self.learned if before is None else before.complete(self.learned, how.needs)
        val = self.val if before_val is None else before_val.complete(self.val, how.needs)
        trained = train(
            how, learned, val, self.settings, stage1=before.model if before else None,
            folder=out / "run", resume=resume, tensorboard=tensorboard, progress=progress,
        )  # fmt: skip
        answering, settled = self._answering(how, trained, val)
        calibration = None
        if how.refines:
            calibration = calibration_of(how, trained.model, val, answering, self.learned.queries.texts)
        about = facts(self.name, trained, self.source, self.data, self.stage1, calibration=calibration)
        about |= settled
        if calibration is None:  # search compares with random windows then, to which no stage 1 gave a score
            answering = replace(answering, proposal_weight=0.0)
        if answering.proposal_weight:
            about["proposal_weight"] = answering.proposal_weight
        if how.refines:
            about["val"] = judge(how.run(trained.model, val, answering), val)
        if self.candidates is not None:
            about["candidates"] = self.candidates
        elif before is not None:
            about["stage1_revision"] = before.mark
        card = model_card(self.name, asdict(cast("Any", trained.model).config), about)
        save_pretrained(trained.model, out, card=card, extra=about)
        return TrainedModel(out, trained, about, calibration is not None if how.refines else None)

    def _answering(
        self, how: Recipe, trained: Trained, val: Split
    ) -> tuple[AnswerSettings, Mapping[str, float]]:
        """How the trained model answers: the context of its training, and what val chooses besides.

        Scores of another system have a scale of their own, so its proposals have no weight.
        """
        context = getattr(self.settings.sampling, "context", CONTEXT)
        settings, model = AnswerSettings(context=context), trained.model
        select = list(self.settings.loops.values())[-1].select
        if self.candidates is None:
            weight = how.proposal_weight(model, val, settings, select)
            settings = replace(settings, proposal_weight=weight)
        return settings, how.settle(model, val, settings, select)

    def _identity(self) -> dict[str, Any]:
        """Values that must be the same to resume an interrupted training."""
        return {
            "model": self.name,
            "settings": self.settings.described(),
            "data": self.data,
            _FEATURES: asdict(self.source),
            _PAIR_FILES: list(self.pair_files),
            "stage 1 or candidates": [before and before.mark for before in self.built_on],
        }


def train_model(
    name: str,
    source: FeatureSource,
    *,
    train: Path,
    val: Path,
    out: Path,
    train_videos: Sequence[str] | None = None,
    val_videos: Sequence[str] | None = None,
    top: int | None = None,
    stage1: Path | None = None,
    candidates: Path | None = None,
    val_candidates: Path | None = None,
    segments: int = SEGMENTS,
    data_set: str = "tvr",
    settings: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    resume: bool = False,
    tensorboard: bool = False,
    progress: Progress | None = None,
) -> TrainedModel:
    """Train a model, calibrate it on val if it refines, and save it with its card and its log.

    Args:
        name: the model, a name in :data:`moviola.training.recipes.RECIPES`.
        source: features of the videos and of the queries: a library or a folder of features.
        train, val: TVR-Ranking pair files for training, and for choosing the weights. Pairs of relevance 0
            are not learned from.
        out: a new folder for the model.
        train_videos, val_videos: ids of the videos: by default those that ``train`` names, and all with
            features, as in TVR-Ranking, which has one corpus for all queries.
        top: number of training moments per query, the first in the file; None for all.
        stage1: folder of a trained stage 1, for refiners and ``conquer``.
        candidates, val_candidates: instead of it, runs of another system that answer the queries of ``train``
            and of ``val``; by default the first answers both, so that an id has to mean the same query.
        segments: number of segments that a stage 1 retrieves per query.
        data_set: a name in :data:`moviola.training.data_sets.DATA_SETS`, for its paper's settings.
        settings: tables ``model``, ``sampling``, ``loop`` or a phase's name, overriding those of the paper.
        overrides: further settings as text, ``"loop.steps=100"``.
        resume: continue what an interrupted call left in ``out``.
        tensorboard, progress: see :func:`moviola.training.loop.fit`.

    Raises:
        InvalidValue: a wrong setting, or a wrong source of proposals; a pair file whose moments answer
            nothing in its videos; one run for two texts under one id; or ``out`` holds a training, or a file
            of the name of one of a model's.
        NotFound, DataError: a file is missing or damaged, or a video or query has no features.
        EncoderMismatch: the stage 1 was trained on other features.
    """
    experiment = Experiment.prepare(
        name, source, train=train, val=val, train_videos=train_videos, val_videos=val_videos, top=top,
        stage1=stage1, candidates=candidates, val_candidates=val_candidates, segments=segments,
        data_set=data_set, settings=settings, overrides=overrides,
    )  # fmt: skip
    return experiment.train(out, resume=resume, tensorboard=tensorboard, progress=progress)


def _with_segments_of(source: SourceFacts, how: Recipe, tables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings; without a segment's length, that of the features is used."""
    sampling = how.settings.sampling
    if sampling is None or "segment_clips" not in {field.name for field in fields(sampling)}:
        return tables
    return {**tables, "sampling": {"segment_clips": source.segment_clips, **tables.get("sampling", {})}}


def _on_devices(settings: TrainingSettings) -> TrainingSettings:
    """The settings with existing devices; auto becomes the best one."""
    loops = {
        name: replace(loop, device=available_device(loop.device)) for name, loop in settings.loops.items()
    }
    return replace(settings, loops=loops)


def _begin(out: Path, resume: bool, identity: Mapping[str, Any]) -> None:
    """Record what is trained in a folder, so that only the same training can be resumed there."""
    path = out / "run" / "settings.json"
    begun = (out / "config.json").exists() or any((out / "run").glob("**/state.pt"))
    if begun and not resume:
        raise InvalidValue(f"{out}: holds a training; give a new folder, or --resume to go on with it")
    if not begun:
        require_new(out)
    if resume and not path.is_file():
        raise InvalidValue(f"{out}: nothing to resume; train without --resume first")
    noted = _but_devices(plain(identity))
    # Trainings that earlier versions have begun do not say which features and pair files they read.
    unsaid = {name: noted[name] for name in (_FEATURES, _PAIR_FILES)}
    if begun and (old := {**unsaid, **_but_devices(read_json(path))}) != noted:
        differ = ", ".join(
            name + "".join(f" ({how})" for how in differences(old.get(name), noted[name]))
            for name in noted
            if old.get(name) != noted[name]
        )
        raise InvalidValue(f"{out}: begun with other {differ}; give what it was begun with, or a new folder")
    write_json(path, noted, indent=1)


def _but_devices(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Without the devices of the loops: what began on a GPU may go on without one."""
    loops = {
        name: {key: value for key, value in loop.items() if key != "device"}
        for name, loop in identity["settings"]["loops"].items()
    }
    return {**identity, "settings": {**identity["settings"], "loops": loops}}


# ---- answering -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AnsweringModel:
    """A saved model with its source of proposals, ready to answer the queries of any split.

    Attributes:
        recipe, model: its recipe, and itself in evaluation mode.
        how: the context, the segments and the calibration of its training.
        built_on: source of its proposals or video scores; None for models that need none.
        other_stage1: what to say of a stage 1 that is not that of its training; "" if it is.
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
        suppress_above: float = SAME_MOMENT,
        as_search: bool = False,
        recipe_name: str | None = None,
        device: str = "cpu",
    ) -> AnsweringModel:
        """A model from its folder, checked against the features; see :func:`answer`."""
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
        built_on = open_first_stage(
            name, how, source, stage1=stage1, candidates=candidates, segments=segments, device=device
        )
        require_same_sizes(folder, about, how, source)
        weight = proposal_weight_of(about.extra, folder)
        if weight and candidates is not None and as_search:
            raise InvalidValue(
                f"{folder}: its scores in search count those of a stage 1, and {candidates} has others; give "
                "--stage1, or leave --as-search out"
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
        other_stage1: what to say of a stage 1 that is not that of the model's training; "" if it is.
    """

    run: Run
    qrels: Qrels
    figures: Mapping[str, float]
    videos: int
    left_out: int
    other_stage1: str = ""


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
    suppress_above: float = SAME_MOMENT,
    as_search: bool = False,
    recipe_name: str | None = None,
    device: str = "cpu",
) -> Answer:
    """Answer the queries of a pair file with a saved model.

    Args:
        model: its folder.
        source, queries: features as of :func:`train_model`, and a TVR-Ranking pair file.
        task: a name in :data:`TASKS`. For "svmr" a query's video is that of the first of its best moments.
        videos: ids of those to search; None: all with features.
        stage1, candidates: source of a refiner's or ``conquer``'s proposals, see :func:`train_model`.
        segments: number of segments that a stage 1 retrieves per query; by default 200, in one video 5.
        suppress_above: IoU, in [0, 1], above which the worse of two refined moments of a video is dropped, as
            is one that contains the other; 1 keeps all, as the release of SPR does.
        as_search: give the scores of `moviola search`, in [0, 1], not the model's own matching scores. Those
            of a stage 1, and of a refiner without a calibration, are set against chance in the searched
            videos alone: in ``videos``, for "svmr" in the one video. Search takes the whole library for that,
            whatever videos it is limited to.
        recipe_name: its recipe; by default that of the model's folder.
        device: "cpu", "cuda", "cuda:N", "mps" or "auto".

    Raises:
        InvalidValue: a missing or superfluous source of proposals; ``suppress_above`` out of range; an
            unknown ``task``; or ``as_search`` for whole videos, for a model that search does not use, or with
            ``candidates`` for one whose scores count those of a stage 1.
        EncoderMismatch: the model or its stage 1 was trained on other features.
        NotFound, DataError: a file is missing or damaged, or a video or query has no features.
    """
    if not 0 <= suppress_above <= 1:
        raise InvalidValue(f"suppress {suppress_above}: an overlap (IoU) lies between 0 and 1; 1 keeps all")
    require_known("task", task, TASKS)
    if task == "vr" and as_search:
        raise InvalidValue("task 'vr': `moviola search` shows moments, not videos; leave as_search out")
    ready = AnsweringModel.open(
        model, source.facts, stage1=stage1, candidates=candidates,
        segments=segments or (SEGMENTS_IN_VIDEO if task == "svmr" else SEGMENTS),
        suppress_above=suppress_above, as_search=as_search, recipe_name=recipe_name, device=device,
    )  # fmt: skip
    split = Split.read(source, queries, videos)
    return Answer(*TASKS[task](ready, split), len(split.features), split.pairs.left_out, ready.other_stage1)
