"""PREM: partial relevance enhancement (Hou et al., "Improving Video Corpus Moment Retrieval with Partial
Relevance Enhancement").

Two models trained one after the other. The *collaborative retriever* ranks videos: one query vector per
stream (pictures, subtitles), each compared with the best clip of its stream. The *focus-then-fuse localizer*
reads the best ten videos together with the query and scores every clip as a start and as an end.

Streams are stacked: ``S`` = 2 (pictures, then subtitles), or 1 where ``subtitle_size`` or ``visual_size`` is
0; scores are then those of the one stream, not halved (DiDeMo has pictures only).

No code was released; what the text leaves open is settled thus:

- A feature's fully connected layer is LayerNorm, dropout, Linear, ReLU; positions are learned vectors.
- Biases that a softmax cancels (the pooling's, the boundary heads' last) do not exist.
- A clip without subtitle takes no part in the stream of subtitles; with ``mask_silent=False`` its zero vector
  takes part like any other.
- A moment that covers its whole video has no weak term. Queries of one video are not each other's negatives,
  nor are pairs of which the batch says that the one's moment answers the other's query.
- The video-to-query loss sets the strong positive against the other queries' best clip of the whole video.
- The gate (equation 9) has unit length over the features, so it shrinks what passes by about the root of
  their number; ``"rescaled"`` multiplies by that root, ``"literal"`` does not.
- The adversarial task reads a separate one-layer transformer on top of the fused clips, so that what it
  classifies has seen the query and its loss reaches all of the localizer. The true moment is one of its
  positives: its IoU with itself is above any threshold.
- The paper's streams share every encoder and read each other; :class:`PremApart` has a model for each, and
  ``shared_encoder`` reads queries with the encoder of subtitles and adds the cosine of both to the scores of
  boundaries. Neither is the paper's.
- A pair's losses are weighted by its ``similarity`` (1 in the paper; graded in ranked sets).
"""

from moviola.study.models.prem.apart import PremApart
from moviola.study.models.prem.config import PremConfig
from moviola.study.models.prem.encoders import stream_mask
from moviola.study.models.prem.localizer import PremLocalizer
from moviola.study.models.prem.model import Prem, PremRetriever
from moviola.study.models.prem.spans import relevant_spans, suppress_spans

__all__ = [
    "Prem", "PremApart", "PremConfig", "PremLocalizer", "PremRetriever", "relevant_spans", "stream_mask",
    "suppress_spans",
]  # fmt: skip
