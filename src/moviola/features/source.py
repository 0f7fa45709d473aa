"""Sources of features: a library, or a folder of converted files. Training and answering use only this."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from moviola.features.queries import QueryFeatures
from moviola.features.videos import VideoFeatures

__all__ = ["FeatureSource", "SourceFacts"]


@dataclass(frozen=True)
class SourceFacts:
    """Properties of features that a trained model depends on.

    Attributes:
        segment_clips: clips of a segment (T of SPR, section 3.1.1).
        unit: whether rows are normalised when read.
        visual_dim, subtitle_dim, query_dim: numbers in a row of each kind; 0 for subtitles without them.
    """

    encoder: str
    encoder_revision: str
    clip_seconds: float
    segment_clips: int
    unit: bool
    visual_dim: int
    subtitle_dim: int
    query_dim: int


class FeatureSource(Protocol):
    """Features of videos and of queries about them."""

    @property
    def facts(self) -> SourceFacts:
        """Properties that a model trained on these features depends on."""

    def videos(self, video_ids: Sequence[str] | None = None) -> VideoFeatures:
        """Features of some videos, of all by default. Raises NotFound: a video has no features."""

    def queries(self, query_ids: Sequence[str], texts: Sequence[str]) -> QueryFeatures:
        """Features of queries. Raises NotFound: a query has none, and they cannot be computed here."""
