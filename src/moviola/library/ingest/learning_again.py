"""Concepts, learnt again from their moments when features of frames are made by another encoder."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from moviola.errors import MoviolaError, NotFound
from moviola.features import Extent, FeatureShards
from moviola.features.videos import floats
from moviola.library.disk.settings import Settings
from moviola.library.disk.store import LibraryStore
from moviola.library.userdata.concepts import Concept, concepts_of, keep_concept, read_concept
from moviola.retrieval import Marks
from moviola.retrieval.segments import normalised

__all__ = ["learn_again"]

# As in features.videos: a time that is a frame's but for the last digit is that frame's.
_ROUNDING = 1e-6


def learn_again(
    store: LibraryStore,
    settings: Settings,
    features: FeatureShards,
    extents: Mapping[str, Extent],
    *,
    of_videos: Collection[str] | None = None,
    next_: bool = False,
) -> dict[str, str]:
    """Learn the concepts of a library from features by an encoder, under the write lock.

    Args:
        settings: with that encoder.
        features, extents: the features of frames, and where those of each video lie.
        of_videos: only the concepts with a moment of one of these videos.
        next_: keep them beside those in use, see :func:`.userdata.concepts.keep_concept`.

    Returns:
        Messages on those that were not learnt, or not from all of their moments, by name.
    """
    said = {}
    for name in concepts_of(store.folder):
        try:
            concept = read_concept(store.folder, settings, name, of_any_encoder=True)
        except MoviolaError as error:
            said[name] = str(error)
            continue
        if of_videos is not None and not any(_parsed(one)[0] in of_videos for one in concept.moments):
            continue
        learnt, problem = _learnt(store, settings, features, extents, concept)
        if problem:
            said[name] = problem
        if learnt is not None:
            keep_concept(store.folder, settings, learnt, next_=next_)
    return said


def _learnt(
    store: LibraryStore,
    settings: Settings,
    features: FeatureShards,
    extents: Mapping[str, Extent],
    concept: Concept,
) -> tuple[Concept | None, str]:
    """A concept by other features, None where it cannot be learnt; and a message on it."""
    wrong = concept.wrong_moments
    if wrong is None and len(concept.right) + len(concept.wrong) == len(concept.moments):
        wrong = concept.moments[len(concept.right) :]
    if wrong is None:
        return (
            None,
            "an earlier moviola kept it, without saying which moments are wrong; teach it again",
        )
    rows: dict[bool, list[NDArray[np.float32]]] = {True: [], False: []}
    missing = []
    for moment in concept.moments:
        video_id, start, end = _parsed(moment)
        extent = _extent_of(store, extents, video_id)
        if extent is None:
            missing.append(moment)
        else:
            rows[moment not in wrong].append(_likeness(settings, features, extent, start, end))
    if not rows[True]:
        return None, f"none of its right moments can be looked at now ({', '.join(missing)})"
    dim = settings.picture_dim or settings.encoder_dim
    marks = Marks.of(*(np.array(rows[right], np.float32).reshape(-1, dim) for right in (True, False)))
    problem = f"learnt without {', '.join(missing)}, which cannot be looked at now" if missing else ""
    return replace(concept, right=marks.right, wrong=marks.wrong, wrong_moments=tuple(wrong)), problem


def _extent_of(store: LibraryStore, extents: Mapping[str, Extent], video_id: str) -> Extent | None:
    if (found := extents.get(video_id)) is not None:
        return found
    try:
        return extents.get(store.catalogue.video(video_id).video_id)
    except NotFound:
        return None


def _likeness(
    settings: Settings, features: FeatureShards, extent: Extent, start: float, end: float
) -> NDArray[np.float32]:
    """(d,) float32, the mean of the unit features of likeness of a moment's frames."""
    first = min(math.floor(start * settings.frame_rate + _ROUNDING), extent.count - 1)
    stop = min(max(math.ceil(end * settings.frame_rate - _ROUNDING), first + 1), extent.count)
    dim = settings.picture_dim or settings.encoder_dim
    clips = floats(features.checked(extent)[first:stop], unit=True)
    return np.asarray(normalised(clips[:, -dim:]).mean(axis=0))


def _parsed(moment: str) -> tuple[str, float, float]:
    """``VIDEO@START-END``, times in seconds."""
    video_id, _, times = moment.rpartition("@")
    start, _, end = times.partition("-")
    return video_id, float(start), float(end)
