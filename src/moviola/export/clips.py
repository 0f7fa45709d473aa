"""Moments as files that any browser plays."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile

from moviola.errors import InvalidValue, MediaError, MoviolaError
from moviola.media import cut, probe
from moviola.types import Moment

__all__ = ["clip_name", "export_clip", "export_clips"]

# What a browser plays as it is, so that a cut needs no new encoding.
_COPYABLE = {"h264"}


def export_clips(
    moments: Sequence[Moment], sources: Mapping[str, str], folder: Path
) -> tuple[list[Path], dict[str, str]]:
    """Cut each moment into an MP4 of its own, named by rank, video and time.

    Args:
        moments: what to cut.
        sources: path of each video by id.
        folder: where the clips go; made when missing.

    Returns:
        the clips that were written, in the order of the moments, and for those that could not be, the reason
        by file name. H.264 is cut without encoding it again.

    Raises:
        InvalidValue: nothing can be written in that folder.
    """
    _require_writable(folder)
    written, failed = [], {}
    for moment in moments:
        source = Path(sources[moment.video_id])
        out = folder / clip_name(moment)
        try:
            export_clip(moment, source, out)
        except (MoviolaError, OSError) as error:
            failed[out.name] = str(error)
            continue
        written.append(out)
    return written, failed


def _require_writable(folder: Path) -> None:
    """Make the folder and try it, so that not every clip fails for the same reason."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidValue(
            f"{folder}: clips cannot be written there ({reason}); name a folder that can be written"
        ) from error


def export_clip(moment: Moment, source: Path, out: Path) -> None:
    """Cut a moment into an MP4, exactly: without encoding again where the file allows it.

    Args:
        moment: what to cut.
        source: its video.
        out: the MP4; it appears whole or not at all.

    Raises:
        MediaError: the video cannot be read, or not there.
        InvalidValue: ``out`` cannot be written.
    """
    # What a file allows depends on more than the codec.
    if probe(source).video_codec in _COPYABLE:
        try:
            cut(source, moment.span, out, mode="copy")
            return
        except MediaError:
            pass
    cut(source, moment.span, out, mode="encode")


def clip_name(moment: Moment) -> str:
    """A file name of rank, video and time."""
    video = re.sub(r"[^\w.-]+", "_", moment.video_id).strip("._") or "video"
    return f"{moment.rank:03d}_{video}_{moment.start:.1f}-{moment.end:.1f}.mp4"
