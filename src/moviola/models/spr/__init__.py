"""SPR: segment retrieval (stage 1) and the CLIP refiner (stage 3).

Paper: Zhang, Zhu and Sun, "A Flexible and Scalable Framework for Video Moment Search", sections 3.1 and 3.3.

Where the text and the published code differ, the code decides, since published weights need it: the
transformer's output is added to its input once more, each frame is brought to length 1 before the mean, and
a linear layer follows the pooling; the similarity is multiplied by a learned temperature (Eq. 1 omits it).

The CLIP refiner was never published, and the text leaves open (section 3.3.2) what its span head is exactly.
Here the query passes a feed-forward layer and is compared with each frame; two convolutions over the curve
of these cosines, times a learned temperature, give the logits of start and end. ReLoCLNet, whose losses it
shares, does the same without the temperature, which embeddings of length 1 need. The frames are projected
one by one, so that the mean of F^M is what stage 1 makes of the same frames.
"""

from moviola.models.spr.clip import SprClip, SprClipConfig, SprClipContext
from moviola.models.spr.retriever import SegmentRetriever, SegmentRetrieverConfig

__all__ = ["SegmentRetriever", "SegmentRetrieverConfig", "SprClip", "SprClipConfig", "SprClipContext"]
