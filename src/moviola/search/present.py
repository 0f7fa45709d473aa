"""Present paths of videos: of those in an answer, and of one video with its capture details."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from moviola.library import Catalogue, VideoRow, present_path, taken_of
from moviola.search.found import SearchResult

__all__ = ["still_there", "whereabouts"]


def still_there(
    found: SearchResult, catalogue: Catalogue
) -> tuple[SearchResult, dict[str, VideoRow], set[str]]:
    """The moments of an answer whose videos still exist: another process may have removed some meanwhile.

    Returns:
        the answer without moments of removed videos, ranked without gaps; the videos by id, each with an
        existing path if there is one; and the ids of those that are away.
    """
    videos, away = catalogue.videos_named({moment.video_id for moment in found}), set()
    for video_id, video in videos.items():
        path = present_path(video, catalogue.copies_of(video.row))
        if path is None:
            away.add(video_id)
        else:
            videos[video_id] = replace(video, path=str(path))
    kept = [moment for moment in found if moment.video_id in videos]
    ranked = (replace(moment, rank=rank) for rank, moment in enumerate(kept, 1))
    answer = SearchResult(ranked, confident=found.confident)
    answer.timings = found.timings
    return answer, videos, away


def whereabouts(video: VideoRow, catalogue: Catalogue) -> dict[str, Any]:
    """Facts about a video by name: its paths, whether all are away, its time, place and camera.

    Raises:
        NotFound: the video was removed meanwhile.
    """
    copies, capture = catalogue.copies_of(video.row), catalogue.capture(video.row)
    taken = taken_of(video, capture)
    return {
        "paths": [catalogue.video(video.video_id).path, *(copy.path for copy in copies)],
        "away": present_path(video, copies) is None,
        "taken": str(taken),
        "taken_from": taken.source,
        "taken_zone": taken.zone,
        "latitude": capture.latitude,
        "longitude": capture.longitude,
        "camera": capture.camera,
    }
