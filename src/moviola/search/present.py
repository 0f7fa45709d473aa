"""Answers while another process writes: a video may be removed after it was found."""

from __future__ import annotations

from dataclasses import replace

from moviola.library import Catalogue, VideoRow, present_path
from moviola.search.found import SearchResult

__all__ = ["still_there"]


def still_there(
    found: SearchResult, catalogue: Catalogue
) -> tuple[SearchResult, dict[str, VideoRow], set[str]]:
    """The moments of an answer whose videos still exist, and these videos.

    Args:
        found: an answer.
        catalogue: of the same library.

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
