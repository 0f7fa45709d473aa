"""A library's features and its encoders' view of some queries, as the folder that training reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moviola.errors import InvalidValue, LibraryError

__all__ = ["export_features"]


def export_features(library: Path, annotations: Sequence[Path], out: Path) -> dict[str, Any]:
    """Write ``visual``, ``queries`` and, where there are sentence embeddings, ``subtitles`` under ``out``.

    ``queries`` holds a row a token; its last row is the query's vector in the space of the frames. A row of
    ``subtitles`` is the mean of the sentences that are spoken during its frame, zeros where nobody speaks.

    Raises:
        InvalidValue: ``out`` holds something.
        LibraryError: the library has no visual encoder.
    """
    import numpy as np

    from moviola.datasets.features import Computed, convert
    from moviola.datasets.readers import ranked_rows
    from moviola.library import LibraryStore

    if out.exists() and any(out.iterdir()):
        raise InvalidValue(f"{out}: not empty; give a new folder")
    queries = list(dict.fromkeys(text for path in annotations for _, _, text, _ in ranked_rows(path)))
    with LibraryStore(library, read_only=True) as store:
        encoder = store.encoder
        if encoder is None:
            raise LibraryError(f"{library}: built without a visual encoder; there are no frames to train on")
        videos = {v.video_id: v for v in store.catalogue.videos() if v.state != "refused"}
        visual = convert(
            Computed(tuple(videos), lambda key: store.frame_rows(videos[key]).astype(np.float32)),
            out / "visual",
        )
        tokens = dict(zip(queries, encoder.encode_tokens(queries), strict=True))
        convert(Computed(tuple(queries), tokens.__getitem__), out / "queries")
        spoken = store.settings.sentence_dim if store.catalogue.cue_count() else 0
        if spoken:
            convert(Computed(tuple(videos), lambda key: store.heard_rows(videos[key])), out / "subtitles")
        about = {
            "clip_seconds": 1 / store.settings.frame_rate,
            "segment_clips": store.settings.frames_per_segment,
            "encoder": store.settings.encoder,
            "encoder_revision": store.settings.encoder_revision,
            "durations": {name: video.duration for name, video in videos.items()},
        }
    (out / "features.json").write_text(json.dumps(about, indent=1) + "\n")
    return {
        "videos": len(videos), "frames": sum(visual.shape(name)[0] for name in videos), "dim": visual.dim,
        "queries": len(queries), "subtitles": spoken, "clip_seconds": about["clip_seconds"], "out": str(out),
    }  # fmt: skip
