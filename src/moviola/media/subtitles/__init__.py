"""Subtitles as timed text: from files beside a video and from streams inside it."""

from moviola.media.subtitles.embedded import embedded_subtitles
from moviola.media.subtitles.encodings import require_encoding
from moviola.media.subtitles.film import seconds_of_timecode, within_film
from moviola.media.subtitles.reading import SUBTITLE_SUFFIXES, read_subtitles
from moviola.media.subtitles.several import in_language, joined_tracks
from moviola.media.subtitles.sidecars import FolderNames, SidecarName, name_beside, sidecar_name, sidecars
from moviola.media.subtitles.values import Fix, Notes, Notice, Subtitles
from moviola.media.subtitles.writing import write_subtitles

__all__ = [
    "SUBTITLE_SUFFIXES", "Fix", "FolderNames", "Notes", "Notice", "SidecarName", "Subtitles",
    "embedded_subtitles", "in_language", "joined_tracks", "name_beside", "read_subtitles",
    "require_encoding", "seconds_of_timecode", "sidecar_name", "sidecars", "within_film",
    "write_subtitles",
]  # fmt: skip
