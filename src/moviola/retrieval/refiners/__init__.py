"""Stage 3 of SPR: proposals become moments with finer times and a better order (paper, section 3.3).

:class:`ShotRefiner` and :class:`CurveRefiner` need no training. Trained ones are found by their model's
architecture in :mod:`moviola.retrieval.trained_models`. A new one is a class that keeps the contract
:class:`Refiner`, and a line in the table there.
"""

from moviola.retrieval.refiners.contract import CONTEXT, SAME_MOMENT, Refined, Refiner
from moviola.retrieval.refiners.curve import CurveRefiner
from moviola.retrieval.refiners.shots import ShotRefiner

__all__ = ["CONTEXT", "SAME_MOMENT", "CurveRefiner", "Refined", "Refiner", "ShotRefiner"]
