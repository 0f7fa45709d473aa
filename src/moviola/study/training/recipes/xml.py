"""XML as a baseline of TVR-Ranking (appendix C), optionally with potentially relevant pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from moviola.errors import InvalidValue
from moviola.study.datasets.building.relevant_pairs import RelevantPairs, mark_of, read_relevant_pairs
from moviola.study.models.batches import PairBatch
from moviola.study.models.xml import XML
from moviola.study.training.data import Pairs, Split
from moviola.study.training.loop import LoopConfig
from moviola.study.training.recipes.ranking import PairRecipe
from moviola.study.training.settings import TrainingSettings
from moviola.study.training.tasks.pairs import PairLoss, PairSampling

__all__ = ["XML_RECIPE", "XmlSampling"]


@dataclass(frozen=True)
class XmlSampling(PairSampling):
    """Options of XML's batches.

    Attributes:
        relevant_pairs: file of `moviola dataset relevant-pairs` on the captions of the training pairs, in the
            order of :attr:`moviola.study.training.data.Pairs.captions`; needed if the model's
            ``relevant_pairs`` uses them.
    """

    relevant_pairs: str | None = None


class XmlRecipe(PairRecipe):
    """BertAdam, batches of 128; 4000, 200, 100 epochs for 1, 20, 40 moments per query (appendix C)."""

    architecture = "xml"
    endpoints = True

    settings = TrainingSettings(
        {"labels": "spr"}, {"train": LoopConfig(epochs=200, batch_size=128)}, XmlSampling()
    )

    def loss(self, model: Any, train: Split, sampling: XmlSampling) -> PairLoss:  # type: ignore[override]
        """The weighted terms of a batch.

        Raises:
            InvalidValue: the model learns from potentially relevant pairs and there are none, or they are of
                other captions.
        """
        xml = cast("XML", model)
        relevant = _relevant_pairs(xml, train.pairs, sampling)

        def loss(batch: PairBatch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
            return xml.loss(
                batch,
                hard_pool=sampling.pool(epoch),
                generator=generator,
                **_relevance(relevant, train.pairs, batch),
            )

        return loss


def _relevant_pairs(model: XML, pairs: Pairs, sampling: XmlSampling) -> RelevantPairs | None:
    """Potentially relevant pairs of the training moments, if the model uses them."""
    wanted = model.config.relevant_pairs
    if wanted is None or not wanted.pairs:
        return None
    if sampling.relevant_pairs is None:
        raise InvalidValue(
            "xml: its relevant_pairs are on, but there are none; set sampling.relevant_pairs to the file "
            "that `moviola dataset relevant-pairs` wrote"
        )
    known = read_relevant_pairs(Path(sampling.relevant_pairs))
    if known.count != len(pairs.captions):
        raise InvalidValue(
            f"relevant pairs of {known.count} captions, but the training pairs have "
            f"{len(pairs.captions)} moments; make them of this training file"
        )
    if known.mark not in ("", mark_of(pairs.captions)):
        raise InvalidValue(
            f"{sampling.relevant_pairs}: relevant pairs of other captions than the training moments', or of "
            "the same in another order; make them of this training file"
        )
    return known


def _relevance(relevant: RelevantPairs | None, pairs: Pairs, batch: PairBatch) -> dict[str, Tensor]:
    """Relevance and confidence (B, B) among the moments of a batch; a known answer is not merely relevant."""
    if relevant is None or batch.rows is None:
        return {}
    rows = batch.rows.cpu().numpy()
    queries, moments = pairs.query[rows], pairs.moment[rows]
    unique, place = np.unique(moments, return_inverse=True)
    relevance, confidence = (table[np.ix_(place, place)] for table in relevant.among(unique))
    relevance &= ~pairs.answers[queries][:, moments].toarray()
    found = {"relevance": relevance, "confidence": confidence}
    return {name: torch.from_numpy(table).to(batch.query.device) for name, table in found.items()}


XML_RECIPE = XmlRecipe()
