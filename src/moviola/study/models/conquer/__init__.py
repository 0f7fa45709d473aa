"""CONQUER: looks for the moment inside candidate videos that another retriever found.

Reference: Hou, Ngo and Chan, "CONQUER: Contextual Query-aware Ranking for Video Corpus Moment Retrieval"
(ACM MM 2021), as TVR-Ranking (appendix C) adapts it to ranked retrieval: the loss of a pair is weighted by
the similarity of query and caption.

How it works: both streams of a video are encoded together, without the query
(:meth:`Conquer.encode_context`), and are then, for each query, fused with weights that the query sets,
compared with the query's tokens and modelled once more in time, until each clip has a logit for the moment's
start and one for its end (:meth:`Conquer.match`).

The similarity measure says how a moment's score follows from these logits (:data:`SIMILARITIES`):

======================  ===========================================================================
``general``             first-stage score of the video x softmax of start and end within the video
``exclusive``           the same with the softmax, over the candidates, of a video head of the model
``disjoint``            start logit + end logit, over all candidates at once
======================  ===========================================================================

Departures. The release pads every video to ``max_clips`` and every query to ``max_tokens``, pools the query
and takes the video head's maximum over padding as well, and lets convolutions see the padding;
``reference_padding=True`` does the same. By default padding is left out everywhere, so that any length up to
these maxima may be given and more padding changes nothing. Candidates come from any retriever, not only from
the one whose rankings the release carries.
"""

from moviola.study.models.conquer.config import SIMILARITIES, ConquerConfig
from moviola.study.models.conquer.model import Conquer, Context, Scores

__all__ = ["SIMILARITIES", "Conquer", "ConquerConfig", "Context", "Scores"]
