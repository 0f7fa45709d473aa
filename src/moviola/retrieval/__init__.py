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
"""

from moviola.retrieval.background import Background, unrelated_queries
from moviola.retrieval.calibration import STRONG, Calibration, Chance
from moviola.retrieval.feedback import Marks
from moviola.retrieval.pipeline import SEGMENTS, Moments, Retrieval, Scope
from moviola.retrieval.proposals import Hits, Proposals, propose
from moviola.retrieval.refiners import CurveRefiner, Refiner, ShotRefiner
from moviola.retrieval.stage1 import MeanPooling, Stage1, TrainedStage1, segment_index
from moviola.retrieval.trained_models import load_refiner, load_stage1, refiner_of, stage1_of

__all__ = [
    "SEGMENTS", "STRONG", "Background", "Calibration", "Chance", "CurveRefiner", "Hits",
    "Marks", "MeanPooling", "Moments", "Proposals", "Refiner", "Retrieval", "Scope", "ShotRefiner", "Stage1",
    "TrainedStage1", "load_refiner", "load_stage1", "propose", "refiner_of", "segment_index",
    "stage1_of",    "unrelated_queries",
]  # fmt: skip
