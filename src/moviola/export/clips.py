"""Clips: moments as MP4 files that any browser plays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

from moviola.errors import InvalidValue, MediaError, MoviolaError, NotFound
from moviola.files.names import name_now
from moviola.media import cut, probe
from moviola.types import Moment

__all__ = [
    "clip_name", "export_clip", "export_clips", "file_stem", "require_mode", "require_no_source", "source_of",
]  # fmt: skip

_SUFFIXES = {".mp4", ".m4v", ".mov"}  # container brands of MP4
_STEM_BYTES = 180  # leaves room for rank, times, suffix, and what marks a draft


def export_clips(
    moments: Sequence[Moment],
    sources: Mapping[str, str | Path],
    folder: str | Path,
    *,
    mode: Literal["exact", "key-frames"] = "exact",
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[list[Path], dict[str, str]]:
    """Cut each moment into an MP4 of its own, named by rank, video and time.

    Args:
        sources: path of each video by id.
        folder: where the clips go; made when missing.
        mode: see :func:`export_clip`.
        progress: called with the share of all that is written; what it raises ends the cutting.

    Returns:
        the clips, in the order of the moments, and the reasons of missing ones by file name.

    Raises:
        InvalidValue: nothing can be written in that folder, or another mode.
    """
    require_mode(mode)
    folder = Path(folder)
    try:  # so that not every clip fails for the same reason
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidValue(
            f"{folder}: clips cannot be written there ({error.strerror or error}); name a folder that can be "
            "written"
        ) from error
    total, before = sum(moment.end - moment.start for moment in moments), 0.0
    raised: list[BaseException] = []

    def done(seconds: float) -> None:
        """Call ``progress``; what it raises is kept, to be known from what goes wrong in a clip."""
        try:
            progress((before + seconds) / total)
        except BaseException as error:
            raised.append(error)
            raise

    written, failed = [], {}
    for moment in moments:
        out = folder / clip_name(moment, sources.get(moment.video_id, ""))
        try:
            export_clip(moment, source_of(moment.video_id, sources), out, mode=mode, progress=done)
            written.append(out)
        except (MoviolaError, OSError) as error:
            if raised:
                raise raised[0] from None
            failed[out.name] = str(error)
        before += moment.end - moment.start
    return written, failed


def export_clip(
    moment: Moment,
    source: str | Path,
    out: str | Path,
    *,
    mode: Literal["exact", "key-frames"] = "exact",
    track: int | str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> None:
    """Cut a moment into an MP4.

    Args:
        out: the MP4; it appears complete or not at all.
        mode: ``"exact"``: to the frame, H.264 without encoding where the file allows it; ``"key-frames"``:
            never encoded, from the key frame before the start on, so that programs that ignore the edit lists
            of MP4 show the same.
        track: sound track: number from 1 on, or language; None: the default one, see
            :func:`moviola.media.chosen_track`.
        progress: called with the seconds that are written; what it raises ends the cut.

    Raises:
        MediaError: the video is missing or unreadable, cannot be copied, or has no such track.
        InvalidValue: ``out`` cannot be written, or is the video itself; or another mode.
    """
    require_mode(mode)
    source, out = Path(source), Path(out)
    if out.suffix.lower() not in _SUFFIXES:
        raise InvalidValue(f"{out}: a clip is an MP4; give it the suffix .mp4")
    require_no_source(out, (source,))
    if mode == "exact" and probe(source).video_codec == "h264":  # which browsers play
        with suppress(MediaError):  # the codec alone does not say what a file allows
            cut(source, moment.span, out, mode="copy", track=track, progress=progress)
            return
    how: Literal["encode", "key-frames"] = "encode" if mode == "exact" else "key-frames"
    cut(source, moment.span, out, mode=how, track=track, progress=progress)


def source_of(video_id: str, sources: Mapping[str, str | Path]) -> Path:
    """The path of a video; NotFound where none is known."""
    if video_id not in sources:
        raise NotFound(f"{video_id}: no path is known for this video; give one, or leave its moments out")
    return Path(sources[video_id])


def require_mode(mode: str) -> None:
    """Refuse what is no mode of :func:`export_clip`."""
    if mode not in ("exact", "key-frames"):
        raise InvalidValue(f"mode {mode!r}: give exact or key-frames")


def require_no_source(out: Path, sources: Iterable[str | Path]) -> None:
    """Refuse to write over a video of which something is exported: nothing could bring it back.

    Raises:
        InvalidValue: the file is one of these videos, by this name or another one.
    """
    for source in sources:
        same = False
        with suppress(OSError, ValueError):  # one of both is not there, or no name of a file at all
            same = out.samefile(source)
        if same:
            raise InvalidValue(f"{out}: is a video that is exported from; name another file")


def clip_name(moment: Moment, source: str | Path = "") -> str:
    """A file name made of rank, video, by the name that its file has now, and time."""
    video = file_stem(name_now(moment.video_id, source, suffix=False))
    return f"{moment.rank:03d}_{video}_{moment.start:.1f}-{moment.end:.1f}.mp4"


def file_stem(text: str, empty: str = "video") -> str:
    """A video's id, or a title, as a part of file names, which file systems limit to some 255 bytes."""
    plain = re.sub(r"[^\w.-]+", "_", text).strip("._")
    return plain.encode()[:_STEM_BYTES].decode(errors="ignore") or empty
