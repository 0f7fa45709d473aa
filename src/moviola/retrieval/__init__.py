"""From features to moments: stage 1, proposals, refinement, suppression, calibration.

:class:`Retrieval` composes them; a library, ``answer`` on features, validation during training and the
benchmark all call it.

- how a segment is embedded: ``stage1``; what a segment is: ``segments``
- where hits become proposals: ``proposals``
- where a proposal becomes a moment: ``refiners``, found by ``trained_models``
- what a score means: ``calibration``
- how well something fits at all, whatever else a library holds: ``background``
- what marks on an answer teach: ``feedback``
- models that rank a whole corpus without proposals: ``corpus``

Examples:
    >>> import numpy as np
    >>> from moviola.features import FeatureRows, QueryFeatures, VideoFeatures
    >>> from moviola.retrieval import MeanPooling, Retrieval, segment_index
    >>> seen = np.repeat(np.eye(3, dtype=np.float16), 8, axis=0)  # a video of 24 s: three things, 8 s each
    >>> videos = VideoFeatures(
    ...     ("beach",), np.array([24.0]), 1.0, np.array([24]), FeatureRows(3, (0,), lambda video: seen)
    ... )
    >>> queries = QueryFeatures.of(["q"], ["the second thing"], [np.eye(3, dtype=np.float32)[1:2]])
    >>> index = segment_index(MeanPooling(), videos, 4)
    >>> retrieval = Retrieval(videos, index, MeanPooling(), None, 4, segments=2)
    >>> found = retrieval.proposals(queries)
    >>> found.start.tolist(), found.end.tolist()
    ([8.0], [16.0])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

if TYPE_CHECKING:
    from moviola.retrieval.background import Background, unrelated_queries
    from moviola.retrieval.calibration import Calibration, Chance
    from moviola.retrieval.feedback import Marks
    from moviola.retrieval.pipeline import SEGMENTS, Moments, Retrieval, Scope
    from moviola.retrieval.proposals import Hits, Proposals, propose
    from moviola.retrieval.refiners import CurveRefiner, Refiner, ShotRefiner
    from moviola.retrieval.stage1 import MeanPooling, Stage1, TrainedStage1, segment_index
    from moviola.retrieval.trained_models import load_refiner, load_stage1, refiner_of, stage1_of

__all__ = [
    "SEGMENTS", "Background", "Calibration", "Chance", "CurveRefiner", "Hits", "Marks",
    "MeanPooling", "Moments", "Proposals", "Refiner", "Retrieval", "Scope", "ShotRefiner", "Stage1",
    "TrainedStage1", "load_refiner", "load_stage1", "propose", "refiner_of", "segment_index",
    "stage1_of",    "unrelated_queries",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "background": ("Background", "unrelated_queries"),
        "calibration": ("Calibration", "Chance"),
        "feedback": ("Marks",),
        "pipeline": ("SEGMENTS", "Moments", "Retrieval", "Scope"),
        "proposals": ("Hits", "Proposals", "propose"),
        "refiners": ("CurveRefiner", "Refiner", "ShotRefiner"),
        "stage1": ("MeanPooling", "Stage1", "TrainedStage1", "segment_index"),
        "trained_models": ("load_refiner", "load_stage1", "refiner_of", "stage1_of"),
    },
)  # fmt: skip
