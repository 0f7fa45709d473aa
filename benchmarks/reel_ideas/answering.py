"""How variants of Reel answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from moviola.features import QueryFeatures, VideoFeatures, normalise_rows
from moviola.index.half_rows import widened
from moviola.retrieval import Moments, Proposals, Retrieval
from moviola.retrieval.model_parts import Decoded, ReelParts
from moviola.retrieval.refiners import Refined
from moviola.retrieval.refiners.trained import Cuts, ReelRefiner
from moviola.retrieval.saved.clip_windows import ClipWindows
from moviola.study.models.running import TorchRunner
from moviola.study.training.data import Split
from moviola.study.training.recipe import AnswerSettings
from moviola.study.training.recipes.reel import ReelRecipe
from moviola.study.training.validation import judge
from reel_ideas.models import Again, FinerTimes

__all__ = ["AgainRefiner", "FeedbackRecipe", "FinerRefiner", "VariantRecipe"]


class _Whole(TorchRunner):
    """A variant, which has no parts of its own, in the place of parts."""

    def run(self, name: str, *inputs: NDArray[np.float32] | None, threads: int = 1) -> tuple[Any, ...]:
        model = self.network
        device = next(model.parameters()).device
        given = [torch.from_numpy(each).to(device) for each in inputs if each is not None]
        steps = {
            "clips": lambda seen, said=None: (model.encode_clips(seen, torch.ones_like(seen[..., 0]), said),),
            "query": lambda tokens, mask: (model.encode_query(tokens, mask),),
            "spans": model.best_spans,
        }
        with torch.inference_mode():
            return tuple(each.cpu().numpy() for each in steps[name](*given))


@dataclass(frozen=True)
class VariantRecipe(ReelRecipe):
    """Answers by the refiner of a variant.

    Attributes:
        refiner: of its parts; takes the options of :class:`ReelRefiner`.
    """

    refiner: type[ReelRefiner] = ReelRefiner

    def options(self) -> Mapping[str, Any]:
        """Further options of the refiner."""
        return {}

    def moments(self, model: nn.Module, split: Split, how: AnswerSettings) -> Moments:
        """Proposals refined, suppressed and re-ranked."""
        refiner = self.refiner(
            ReelParts(_Whole(model)), "answering", context=how.context, suppress_above=how.suppress_above,
            proposal_weight=how.proposal_weight, **self.options(),
        )  # fmt: skip
        retrieval = Retrieval.of_proposals(split.features.with_fresh_cache(), refiner, how.segment_clips)
        return retrieval.moments(split.queries, split.proposals, scored=False)


@dataclass(frozen=True)
class FinerRefiner(ReelRefiner):
    """Moves boundaries by the offsets of a :class:`FinerTimes`."""

    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """Within the windows alone, so that the network keeps the offsets of all of them."""
        encoded = self.model.encode_query(queries.tokens(query))
        return self.best_spans(encoded, cuts, np.arange(len(windows.first)), windows.first, windows.stop)

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal."""
        found = super().refine(queries, query, features, proposals)
        if not len(proposals.video):
            return found
        network: FinerTimes = self.model.runner.network  # type: ignore[attr-defined]  # the one just run
        start, end = (network.moved * features.clip_seconds).cpu().numpy().T.astype(np.float64)
        # An end that was cut at the video's is moved from there, not from its clip's.
        moved = features.clip_spans(proposals.video, found.start + start, found.end + end)
        return Refined(*moved, found.score)


@dataclass(frozen=True)
class AgainRefiner(ReelRefiner):
    """Looks at the best moments again, with an :class:`Again`."""

    def refine(
        self, queries: QueryFeatures, query: int, features: VideoFeatures, proposals: Proposals
    ) -> Refined:
        """The best span of each proposal, the best ones with other scores."""
        found = super().refine(queries, query, features, proposals)
        network: Again = self.model.runner.network  # type: ignore[attr-defined]
        best = np.argsort(-found.score, kind="stable")[: network.spans]
        if not len(best):
            return found
        encodings = [widened(self._encoding(features, video)) for video in proposals.video[best].tolist()]
        longest = max(map(len, encodings))
        clips = np.zeros((len(best), longest, *encodings[0].shape[1:]), np.float32)
        mask = np.zeros((len(best), longest), np.float32)
        for row, own in enumerate(encodings):
            clips[row, : len(own)], mask[row, : len(own)] = own, 1
        first = np.rint(found.start[best] / features.clip_seconds).astype(np.int64)
        last = np.ceil(found.end[best] / features.clip_seconds - 1e-6).astype(np.int64) - 1
        device = next(network.parameters()).device
        spans = torch.from_numpy(np.stack([np.arange(len(best)), first, last], axis=1)).to(device)
        tokens = torch.from_numpy(queries.cut(self.max_tokens).tokens(query))[None].to(device)
        with torch.inference_mode():
            shown, there, inside = network.around(
                torch.from_numpy(clips).to(device), torch.from_numpy(mask).to(device), spans
            )
            ones = torch.ones_like(tokens[..., 0])
            added = network.verdicts(
                network.tokens(tokens, ones).expand(len(best), -1, -1), ones.expand(len(best), -1),
                shown, there, inside,
            )  # fmt: skip
        score = found.score.copy()
        score[best] += added.cpu().numpy()
        return replace(found, score=score)


# ---- feedback --------------------------------------------------------------------------------------------

_FED_BACK = 5  # spans


@dataclass(frozen=True)
class _OfQuery(ReelParts):
    """Parts with a vector of the query that is given."""

    vectors: Any = None

    def encode_query(self, tokens: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(self.vectors, dtype=np.float32)


@dataclass(frozen=True)
class FeedbackRefiner(ReelRefiner):
    """Answers twice: the second time, the mean of what the best spans show is a part of the query.

    Attributes:
        share: of that mean in the query's vector for "inside".
    """

    share: float = 0.0

    def decode(self, queries: QueryFeatures, query: int, cuts: Cuts, windows: ClipWindows) -> Decoded:
        """Logits (N,), first and last clip (N,) of the best span of each window."""
        score, first, last = super().decode(queries, query, cuts, windows)
        if not self.share:
            return score, first, last
        shown = []
        for row in np.argsort(-score, kind="stable")[:_FED_BACK].tolist():
            begin = int(windows.first[row])
            own = self._encoding(cuts.features, int(cuts.video[row]))
            shown.append(widened(own[begin + first[row] : begin + last[row] + 1])[:, 0].mean(axis=0))
        vectors = self.model.encode_query(queries.tokens(query)).copy()
        mixed = (1 - self.share) * vectors[0] + self.share * normalise_rows(np.mean(shown, axis=0)[None])[0]
        vectors[0] = normalise_rows(mixed[None])[0]
        again = replace(self, model=_OfQuery(self.model.runner, vectors), share=0.0)
        return again.decode(queries, query, cuts, windows)


@dataclass(frozen=True)
class FeedbackRecipe(VariantRecipe):
    """With a share that val chooses, of :attr:`tried`."""

    refiner: type[ReelRefiner] = FeedbackRefiner
    share: float = 0.0
    tried = (0.0, 0.1, 0.2, 0.4)

    def options(self) -> Mapping[str, Any]:
        return {"share": self.share}

    def chosen(self, model: nn.Module, val: Split, how: AnswerSettings, select: str) -> FeedbackRecipe:
        """The one that is best on val, the smallest of equal ones."""
        each = [replace(self, share=share) for share in self.tried]
        values = [judge(own.run(model, val, how), val)[select] for own in each]
        return each[values.index(max(values))]
