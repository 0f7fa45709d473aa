"""Video files: what they hold, frames at exact times, stills, cuts, subtitles. Only this room uses PyAV."""

from __future__ import annotations

from moviola.media.container import VIDEO_SUFFIXES, find_videos
from moviola.media.cutting import cut
from moviola.media.frames import FrameStream, SampledFrame, sample_frames
from moviola.media.probe import MediaInfo, SubtitleStream, probe
from moviola.media.sheet import SheetCell, contact_sheet
from moviola.media.stills import frame_at, thumbnail
from moviola.media.subtitles import Subtitles, embedded_subtitles, read_subtitles, sidecars
from moviola.media.writing import write_video

__all__ = [
    "VIDEO_SUFFIXES",
    "FrameStream",
    "MediaInfo",
    "SampledFrame",
    "SheetCell",
    "SubtitleStream",
    "Subtitles",
    "contact_sheet",
    "cut",
    "embedded_subtitles",
    "find_videos",
    "frame_at",
    "probe",
    "read_subtitles",
    "sample_frames",
    "sidecars",
    "thumbnail",
    "write_video",
]
