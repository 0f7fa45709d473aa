"""Video files: properties, frames at exact times, stills, cuts, subtitles. Only this room uses PyAV.

Examples:
    >>> import numpy as np
    >>> from moviola.media import probe, sample_frames, write_video
    >>> from moviola.types import FrameSize
    >>> write_video("film.mp4", (np.full((72, 96, 3), 8 * n, np.uint8) for n in range(30)), rate=10)
    >>> info = probe("film.mp4")
    >>> info.width, info.height, info.duration
    (96, 72, 3.0)
    >>> with sample_frames("film.mp4", rate=1.0, size=FrameSize(36, 48, "stretch")) as frames:
    ...     [(frame.time, frame.image.shape) for frame in frames]
    [(0.0, (36, 48, 3)), (1.0, (36, 48, 3)), (2.0, (36, 48, 3))]
"""

from moviola.media.animated_webp import is_animated
from moviola.media.capture import said_by_name, with_fixes
from moviola.media.contact_sheet import (
    SheetCell,
    contact_sheet,
    letters_without_font,
    sheet_picture,
    title_card,
)
from moviola.media.container import VIDEO_SUFFIXES, regular_file, walk_files
from moviola.media.cutting import cut, make_playable, plays_in_browsers
from moviola.media.facts import Facts, read_facts
from moviola.media.frame_selection import Parts
from moviola.media.frames import (
    FrameStream,
    SampledFrame,
    StillMaker,
    of_one_size,
    sample_frames,
    sample_stills,
)
from moviola.media.hardware import Device, Hardware, chosen_hardware
from moviola.media.joining import Card, Piece, join
from moviola.media.key_frames import key_frames
from moviola.media.length import length_of, read_through
from moviola.media.probe import MediaInfo, SubtitleStream, lead_of, probe
from moviola.media.reading_stills import ReadingStills, packed, stills_apart, unpacked
from moviola.media.routes import route_of
from moviola.media.shots import (
    Marks,
    ShotFinder,
    Sighting,
    Sightings,
    Stretch,
    TinyPictures,
    find_transitions,
    joined,
    look_through,
    shrunk,
)
from moviola.media.small_stills import SmallStills, read_small_still
from moviola.media.sound import read_sound
from moviola.media.stills import PICTURE_FORMATS, frame_at, read_picture, small_picture
from moviola.media.subtitles import (
    SUBTITLE_SUFFIXES,
    Fix,
    FolderNames,
    Notes,
    Notice,
    SidecarName,
    Subtitles,
    embedded_subtitles,
    in_language,
    joined_tracks,
    name_beside,
    read_subtitles,
    require_encoding,
    seconds_of_timecode,
    sidecar_name,
    sidecars,
    within_film,
    write_subtitles,
)
from moviola.media.tracks import SoundTrack, chosen_track, language_of, require_track_choice, track_among
from moviola.media.transitions import Slope, Transition
from moviola.media.video_writer import write_video

__all__ = [
    "PICTURE_FORMATS", "SUBTITLE_SUFFIXES", "VIDEO_SUFFIXES", "Card", "Device", "Facts", "Fix",
    "FolderNames", "FrameStream", "Hardware", "Marks", "MediaInfo", "Notes", "Notice", "Parts", "Piece",
    "ReadingStills", "SampledFrame", "SheetCell", "ShotFinder", "SidecarName", "Sighting", "Sightings",
    "Slope", "SmallStills", "SoundTrack", "StillMaker", "Stretch", "SubtitleStream", "Subtitles",
    "TinyPictures", "Transition", "chosen_hardware", "chosen_track", "contact_sheet", "cut",
    "embedded_subtitles", "find_transitions", "frame_at", "in_language", "is_animated", "join", "joined",
    "joined_tracks", "key_frames", "language_of", "lead_of", "length_of", "letters_without_font",
    "look_through", "make_playable",
    "name_beside", "of_one_size", "packed", "plays_in_browsers", "probe", "read_facts", "read_picture",
    "read_small_still", "read_sound", "read_subtitles", "read_through", "regular_file", "require_encoding",
    "require_track_choice", "route_of", "said_by_name", "sample_frames", "sample_stills",
    "seconds_of_timecode", "sheet_picture", "shrunk", "sidecar_name", "sidecars", "small_picture",
    "stills_apart", "title_card", "track_among", "unpacked", "walk_files", "with_fixes", "within_film",
    "write_subtitles", "write_video",
]  # fmt: skip
