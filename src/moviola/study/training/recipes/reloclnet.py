"""ReLoCLNet as a baseline of TVR-Ranking (appendix C)."""

from moviola.study.training.loop import LoopConfig
from moviola.study.training.recipes.ranking import PairRecipe
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.pairs import PairSampling

__all__ = ["RELOCLNET"]


class ReLoCLNetRecipe(PairRecipe):
    """BertAdam, batches of 512; 4000, 200, 100 epochs for 1, 20, 40 moments per query (appendix C)."""

    architecture = "reloclnet"

    settings = TrainingSettings(
        {"labels": "spr"}, {"train": LoopConfig(epochs=200, batch_size=512)}, PairSampling()
    )


RELOCLNET = ReLoCLNetRecipe()
