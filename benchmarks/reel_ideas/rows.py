"""The ideas, a row each: what is different from the Reel of the comparison (:mod:`comparison.plan`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from moviola.study.models.reel import Reel
from reel_ideas import batches, models
from reel_ideas.answering import AgainRefiner, FeedbackRecipe, FinerRefiner, VariantRecipe
from reel_ideas.augmentation import Augmentation
from reel_ideas.batches import Change

__all__ = ["BASELINE", "ROWS", "Row"]


@dataclass(frozen=True)
class Row:
    """An idea.

    Attributes:
        name: unique, and good for a file name.
        title: for tables.
        settings: of the training, as on the command line.
        times: steps, in those of the comparison.
        model, recipe: its network, and how it answers.
        is_trained: else it has the weights of :data:`BASELINE`.
        changes: of batches.
        proposals, unknown: see :class:`reel_ideas.batches.IdeaTask`.
        weighs_proposals: whether scores of proposals count, by a weight that val chooses.
    """

    name: str
    title: str
    settings: tuple[str, ...] = ()
    times: int = 1
    model: type[Reel] = Reel
    recipe: VariantRecipe = field(default_factory=VariantRecipe)
    is_trained: bool = True
    changes: tuple[Change, ...] = ()
    proposals: bool = False
    unknown: bool = False
    weighs_proposals: bool = True


BASELINE = Row("reel", "Reel, first edition")

AVERAGE = ("loop.average=0.99",)
AUGMENTED = (Augmentation(moved=0.25, mixed=0.5, dropped=0.15),)

ROWS = (
    BASELINE,
    Row("longer", "twice the steps", times=2),
    Row("average", "a running mean of weights", AVERAGE),
    Row("longer-average", "twice the steps and a running mean of weights", AVERAGE, times=2),
    Row("negatives", "what stage 1 retrieves as negatives", proposals=True),
    Row(
        "negatives-known", "the same, spans of unknown relevance left out", model=models.UnknownLeftOut,
        proposals=True, unknown=True,
    ),
    Row("vectors-4", "four vectors of a query for inside", model=models.FourVectors),
    Row("vectors-8", "eight vectors", model=models.EightVectors),
    Row("span-map", "a small map over start and length", model=models.SpanMap),
    Row(
        "second-look", "tokens attend to the clips of the best 20 spans", model=models.Again,
        recipe=VariantRecipe(AgainRefiner),
    ),
    Row("feedback", "the mean of the best spans in the query", recipe=FeedbackRecipe(), is_trained=False),
    Row("moved", "moments in other videos (context swaps)", changes=(Augmentation(moved=0.25),)),
    Row("boundaries", "contrast at boundaries", model=models.Boundaries),
    Row("no-proposals", "without the proposals' own scores", is_trained=False, weighs_proposals=False),
    Row("finer", "times finer than a clip", model=models.FinerTimes, recipe=VariantRecipe(FinerRefiner)),
    Row("mixed", "clips mixed", changes=(Augmentation(mixed=0.5),)),
    Row("repeated", "clips left out, the one before instead", changes=(batches.clips_repeated,)),
    Row("stretched", "time stretched", changes=(batches.time_stretched,)),
    Row("imprecise", "tokens of queries dropped", changes=(Augmentation(dropped=0.15),)),
    Row("distilled", "distilled from three of the first row", model=models.Distilled),
    Row("together", "mean of weights, swaps, clips mixed, tokens dropped", AVERAGE, changes=AUGMENTED),
)  # fmt: skip
"""In the order in which they are trained; distillation needs all seeds of the first. The last one joins what
pays alone, by val.
"""
