"""``moviola list``, ``show`` and ``remove``: the videos of a library, and what is known of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from typer import Argument

from moviola.cli.app import JsonOption, app, lines_of_values, show, show_records
from moviola.cli.options import (
    DEFAULT_LIBRARIES,
    DEFAULT_LIBRARY,
    LibrariesOption,
    LibraryOption,
    reading,
    reading_all,
    writing,
)
from moviola.cli.transcripts import VideoArgument, tracks_of
from moviola.files.names import name_now
from moviola.types import CUE_KINDS, clock

if TYPE_CHECKING:
    from moviola.library.disk.catalogue import Reading


@app.command("list")
def list_(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List the videos of a library by the names of their files, refused ones with the reason.

    Example: `moviola list --library films`

    From Python: `moviola.library.Catalogue.videos`, of `moviola.Library.catalogue`.
    """
    with reading(library) as lib:
        videos = lib.catalogue.videos()
        away = lib.store.paths_of(video.video_id for video in videos)[1]
        recordings = lib.recordings
    fields = ("video_id", "duration", "state", "error", "path")
    records = [
        {
            **{field: getattr(video, field) for field in fields},
            "away": video.video_id in away,
            "recording": recordings[video.video_id].video_ids if video.video_id in recordings else (),
        }
        for video in videos
    ]
    rows = []
    for v in videos:
        state = v.state + (f": {v.error}" if v.error else "") + (", away" if v.video_id in away else "")
        if recording := recordings.get(v.video_id):
            state += f", {recording.said_of(v.video_id)}"
        rows.append((name_now(v.video_id, v.path), clock(v.duration), state))
    show_records(json, records, ("video", "duration", "state"), rows)


@app.command("show")
def show_(
    video: VideoArgument, library: LibrariesOption = DEFAULT_LIBRARIES, json: JsonOption = False
) -> None:
    """Show what the library knows of one video, with its shots.

    Example: `moviola show holiday/beach`

    From Python: `moviola.library.Catalogue.video`, of `moviola.Library.catalogue`.
    """
    from moviola.search.found import whereabouts

    with reading_all(library) as lib:
        row = lib.catalogue.video(video)
        video_id, cues, shots = row.video_id, lib.catalogue.cues(row.row), lib.catalogue.shots(row.row)
        readings = lib.catalogue.readings(row.row)
        place, account = whereabouts(row, lib.catalogue), lib.catalogue.account(row.row)
        said = lib.catalogue.sayings([row.row]).get(row.row, ())
        fields = ("state", "error", "duration", "width", "height", "codec", "size")
        about: dict[str, object] = {
            "video_id": video_id,
            "path": row.path,
            "copies": place.pop("paths")[1:],
            **place,
            **{field: getattr(row, field) for field in fields},
            "frames": row.frames.count if row.frames else 0,
            "repeats": lib.catalogue.repeats(row.row),
            "recording": [*lib.recordings[video_id].video_ids] if video_id in lib.recordings else [],
            "cues": len(cues),
            "kinds": {kind: sum(cue.kind == kind for cue in cues) for kind in CUE_KINDS},
            "languages": {title: len(own) for title, own in tracks_of(cues).items()},
            "readers": {kind: _reader_of(kind, one) for kind, one in readings.items()},
            "subtitles": [*account.problems, *account.notes],
            "says": [asdict(one) for one in said],
            "holds": [str(one) for one in account.holdings or ()],
            "shots": [
                {"start": shot.start, "end": end, "opening": shot.opening}
                for shot, end in zip(shots, [*(shot.start for shot in shots[1:]), row.duration], strict=False)
            ],
        }
    below = "\n" + " " * 12
    lists = {
        "subtitles": account.problems + account.notes,
        "says": (f"{one.kind}: {' '.join(one.text.split())}" for one in said),
        "holds": map(str, account.holdings or ()),
    }
    texts = about | {name: below.join(lines) for name, lines in lists.items()}
    texts |= {"duration": clock(row.duration), "shots": len(shots) or "not detected"}
    openings = [f"{n:>10}  {clock(shot.start)}  {shot.opening}" for n, shot in enumerate(shots, start=1)]
    show(json, about, *lines_of_values(texts, 10), *openings)


def _reader_of(kind: str, reading: Reading) -> str:
    """What read words of a kind, and what it says of them."""
    from moviola.encoders.readers import said_of_reader

    text = f"{reading.reader} {reading.revision}"
    if reading.language:
        text += f", heard {reading.language}"
    if kind == "text" and (knows := said_of_reader(reading.reader)):
        text += f" ({knows})"
    return f"{text}; {reading.unread}" if reading.unread else text


@app.command()
def remove(
    videos: Annotated[list[str], Argument(help="Ids, as `moviola list` prints them.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Remove videos from a library. Their files stay; `moviola library restore` brings the videos back.

    So does the next `moviola index` of their folder; to keep a file out, give it to `--exclude` there.

    Example: `moviola remove holiday/beach holiday/harbour`

    From Python: `moviola.library.Indexer.remove`.
    """
    with writing(library) as lib:
        removed = lib.indexer.remove(videos)
    said = f"{library}: {len(removed)} removed; `moviola library restore` brings them back"
    show(json, {"removed": removed}, said)
