"""Training: all steps from features and pair files to a folder, as ``moviola train`` takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from moviola.devices import available_device
from moviola.errors import InvalidValue
from moviola.features import FeatureSource, SourceFacts
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.retrieval import SEGMENTS
from moviola.retrieval.proposals import APART
from moviola.retrieval.refiners import CONTEXT
from moviola.retrieval.saved.description import require_new
from moviola.study.measures import Run
from moviola.study.models.pretrained import save_pretrained
from moviola.study.training.cards import described, facts, model_card, plain
from moviola.study.training.data import Split
from moviola.study.training.data_sets import settings_of_data_set
from moviola.study.training.first_stage import (
    FirstStage,
    TrainedFirstStage,
    UnusableCandidates,
    open_first_stage,
    require_one_text,
    unusable_candidates,
)
from moviola.study.training.fit_calibration import calibration_of
from moviola.study.training.recipe import AnswerSettings, Recipe, Trained, train
from moviola.study.training.recipes import recipe
from moviola.study.training.settings import TrainingSettings, differences, read_settings
from moviola.study.training.validation import judge

__all__ = ["Experiment", "TrainedModel"]


Progress = Callable[[int, int, Mapping[str, float]], None]


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
        name: the model, a name in :data:`moviola.study.training.recipes.RECIPES`.
        source, settings: properties of the features that the model depends on, and the training's settings.
        learned, val: training split and validation split, still without proposals.
        built_on: source of proposals or video scores for ``learned`` and ``val``; None for models that need
            none.
        data, stage1, candidates: description of both splits and names of the sources, for the model's folder.
        pair_files: digests of the contents of both pair files.
        unusable: moments of the candidates that do not count.
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
    unusable: UnusableCandidates = field(default_factory=UnusableCandidates)

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
        merge: str = APART,
        data_set: str = "tvr",
        settings: Mapping[str, Any] | None = None,
        overrides: Sequence[str] = (),
    ) -> Experiment:
        """Read and check everything.

        Args:
            name: the model, a name in :data:`moviola.study.training.recipes.RECIPES`.
            source: features of the videos and of the queries: a library or a folder of features.
            train, val: TVR-Ranking pair files for training, and for choosing the weights. Pairs of relevance
                0 are not learned from.
            train_videos, val_videos: ids of the videos: by default those that ``train`` names, and all with
                features, as in TVR-Ranking, which has one corpus for all queries.
            top: number of training moments per query, the first in the file; None for all.
            stage1: folder of a trained stage 1, for refiners and ``conquer``.
            candidates, val_candidates: instead of it, runs of another system that answer the queries of
                ``train`` and of ``val``; by default the first answers both, so that an id has to mean the
                same query.
            segments: number of segments that a stage 1 retrieves per query, >= 1.
            merge: which of these segments merge to the proposals that a refiner learns from, a name in
                :data:`moviola.retrieval.proposals.MERGES`.
            data_set: a name in :data:`moviola.study.training.data_sets.DATA_SETS`, for its paper's settings.
            settings: tables ``model``, ``sampling``, ``loop`` or a phase's name, overriding those of the
                paper.
            overrides: further settings as text, ``"loop.steps=100"``.

        Raises:
            InvalidValue: a wrong setting, or a wrong source of proposals; a pair file whose moments answer
                nothing in its videos; one run for two texts under one id.
            NotFound, DataError: a file is missing or damaged, or a video or query has no features.
            EncoderMismatch: the stage 1 was trained on other features.
        """
        how = recipe(name)
        own = settings_of_data_set(data_set, name, source.facts.clip_seconds)
        for table, values in (settings or {}).items():
            own[table] = {**own.get(table, {}), **values}
        tables = _with_segments_of(source.facts, how, own)
        chosen = _on_devices(read_settings(how, tables, overrides))
        how.require_measured(chosen)  # else the first evaluation would find out, after a whole epoch

        def first_stage(found: Path | None) -> FirstStage | None:
            return open_first_stage(
                name, how, source.facts, stage1=stage1, candidates=found, segments=segments, merge=merge,
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
            unusable=unusable_candidates([before, before_val], source),
        )  # fmt: skip

    @property
    def shared(self) -> int:
        """Number of videos of val that are also in training, so that val is too optimistic."""
        return int(self.data["val"]["videos_learned_from"])

    def train(
        self,
        out: Path,
        *,
        resume: bool = False,
        progress: Progress | None = None,
        search: Callable[[Split], Run] | None = None,
    ) -> TrainedModel:
        """Train, calibrate on val if the model refines, and save it with its card and its log.

        Args:
            out: a new folder for the model.
            resume: continue what an interrupted call left there.
            progress: see :func:`moviola.study.training.loop.fit`.
            search: gives the answers of what a refiner is to be better than, of a library's own search, to
                the queries of val; how well they do is kept beside the refiner's own figures, and ``moviola
                library use`` compares the two.

        Raises:
            InvalidValue: ``out`` holds a training, or a file of the name of one of a model's.
        """
        how = recipe(self.name)
        _begin(out, resume, self._identity())
        before, before_val = self.built_on
        learned = self.learned if before is None else before.complete(self.learned, how.needs)
        val = self.val if before_val is None else before_val.complete(self.val, how.needs)
        trained = train(
            how, learned, val, self.settings, stage1=before.model if before else None,
            folder=out / "run", resume=resume, progress=progress,
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
            if search is not None:
                about["search_on_val"] = judge(search(val), val)
        if self.candidates is not None:
            about["candidates"] = self.candidates
        elif before is not None:
            about["stage1_revision"] = before.mark
        about |= self._merge()
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
            "features": asdict(self.source),
            "contents of the pair files": list(self.pair_files),
            "stage 1 or candidates": [before and before.mark for before in self.built_on],
        } | self._merge()

    def _merge(self) -> dict[str, str]:
        """The rule by which segments merge, where it is not the usual one."""
        before, _ = self.built_on
        merge = before.merge if isinstance(before, TrainedFirstStage) else APART
        return {} if merge == APART else {"merge": merge}


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
    if begun and (old := _but_devices(read_json(path))) != noted:
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
