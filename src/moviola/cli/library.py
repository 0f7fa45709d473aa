"""Commands on a library, its videos, folders and files: what is in it, what it uses, whether it is sound."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option

from moviola.cli.app import (
    JsonOption,
    YesOption,
    app,
    command_group,
    leave_partial,
    lines_of_values,
    note,
    require_consent,
    show,
    show_records,
    some,
)
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, reading, writing
from moviola.cli.transcripts import VideoArgument
from moviola.errors import MissingDependency, MissingModel, counted
from moviola.files.names import name_now
from moviola.words import base_language, language_title

if TYPE_CHECKING:
    from moviola.cli.terminal import Cell
    from moviola.search import Library

library_group = command_group("library", "Settings, models, index and folders of a library.")


@library_group.command()
def info(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Show what a library was built with, its models and index, and what it holds.

    Example: `moviola library info`

    From Python: `moviola.search.Library`, whose attributes say the same.
    """
    with reading(library) as lib:
        about: dict[str, object] = {
            **asdict(lib.settings), "index": lib.settings.shown_index, "videos": len(lib),
            "frames": sum(video.frames.count for video in lib.catalogue.videos() if video.frames),
            "repeats": lib.catalogue.repeats(), "cues": lib.catalogue.cue_counts(),
            "recordings": len(set(lib.recordings.values())), "lines in": _lines_by_language(lib),
            "change": _change(lib),
            "likeness": _likeness(lib), "reads": _reads(lib), "readers": _readers(lib),
        }  # fmt: skip
    show(json, about, *lines_of_values(about, 17))


def _change(library: Library) -> str:
    """A change of encoder that was begun and is not done."""
    from moviola.library import change_begun

    return begun.said if (begun := change_begun(library.store)) else ""


def _lines_by_language(library: Library) -> dict[str, int]:
    """Number of cues by language, the most first."""
    counts: Counter[str] = Counter()
    for tracks in library.catalogue.tracks().values():
        for track in tracks:
            counts[language_title(base_language(track.language))] += track.cues
    return dict(counts.most_common())


def _reads(library: Library) -> str:
    """Which languages the encoders read; words of lines and names are compared in all."""
    from moviola.encoders.contract import KnowsLanguages

    said = []
    encoders = library.store.encoders
    for what, role in (("pictures", "visual"), ("lines by meaning", "sentences")):
        with suppress(MissingModel, MissingDependency):
            encoder = getattr(encoders, role)
            if encoder is not None:
                tags = encoder.languages if isinstance(encoder, KnowsLanguages) else ()
                said.append(f"{what} in {', '.join(map(language_title, tags)) or 'many languages'}")
    return "; ".join([*said, "words in every language"])


def _readers(library: Library) -> dict[str, str]:
    """What has read text, speech and sounds, and the letters that a reader of text knows."""
    from moviola.encoders.readers import said_of_reader

    read = library.catalogue.readers()
    texts = (f"{one} ({knows})" if (knows := said_of_reader(one)) else one for one in read.pop("text", []))
    heard = len(library.catalogue.sounds_read())
    others = {str(kind): ", ".join(names) for kind, names in read.items()}
    return {"text": ", ".join(texts), **others, "sounds": f"of {counted(heard, 'video')}" if heard else ""}


def _likeness(library: Library) -> str:
    """By which features `--like` and `--picture` compare pictures, and how to have better ones."""
    from moviola.encoders import picture_dim

    if dim := library.settings.picture_dim:
        return f"by features of pictures, {dim} numbers per frame"
    plain = "by the features that texts are compared with"
    with suppress(MissingModel, MissingDependency):
        if library.store.encoders.visual is not None and picture_dim(library.store.encoders.visual):
            return (
                f"{plain}: the library was built before features of pictures were kept; `moviola library "
                f"use --encoder {library.settings.encoder}` makes them"
            )
    return plain


@library_group.command()
def use(
    stage1: Annotated[
        str | None,
        Option(help="Folder of a trained stage 1, demo, or none for the mean of the frames."),
    ] = None,
    refiner: Annotated[
        str | None, Option(help="Folder of a trained reel, spr-clip or reloclnet model, demo, or none.")
    ] = None,
    index: Annotated[
        str | None,
        Option(
            help="Index of segments: flat, ivf, ivfpq, reranked; auto goes by their number; on a server "
            "milvus://HOST:PORT/COLLECTION."
        ),
    ] = None,
    sentence_encoder: Annotated[
        str | None,
        Option(
            help="Encoder of lines: minilm, e5-small, a folder, a hub id, or none. All lines are encoded "
            "again, nothing else."
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        Option(
            help="Encoder of pictures: a name of `moviola models list`, a folder or a hub id. All pictures "
            "are encoded again, nothing else; until that is done searches answer by the old one."
        ),
    ] = None,
    precision: Annotated[
        str | None, Option(help="Encode all pictures again in a precision: fp32, fp16, bf16 or auto.")
    ] = None,
    frame_rate: Annotated[
        float | None, Option(help="Encode all pictures again, by a number of frames per second.")
    ] = None,
    segment_seconds: Annotated[
        float | None, Option(help="Length of the segments; the index is made again, nothing is encoded.")
    ] = None,
    without_files: Annotated[
        bool,
        Option(
            "--without-files",
            help="Change the encoder although files of videos are away: these are found by words and names "
            "alone until their files are indexed again.",
        ),
    ] = False,
    both_from: Annotated[
        float | None,
        Option(
            metavar="SHARE",
            help="From a share of the videos on, such as 0.2, searches for words answer by both encoders, "
            "each video by the new one if it has that.",
        ),
    ] = None,
    force: Annotated[
        bool, Option("--force", help="Accept a model of unknown training data, or worse than none.")
    ] = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Choose the trained models, the type of index, and the encoders that searches use from now on.

    Models are copied into the library. `demo` is a model that moviola carries for libraries of the encoder
    demo (a folder of that name: `./demo`); `none` goes back to no model.

    Example: `moviola library use --stage1 models/stage1 --refiner models/reel`

    Another index: `moviola library use --index reranked`

    Lines in many languages: `moviola library use --sentence-encoder e5-small`

    Another encoder of pictures: `moviola library use --encoder conse-lite1`

    From Python: `moviola.library.Indexer.use`, `use_index`, `use_encoder` and `use_sentence_encoder`.
    """
    wanted = {
        "name": encoder, "precision": precision, "frame_rate": frame_rate, "segment_seconds": segment_seconds,
    }  # fmt: skip
    pictures = any(value is not None for value in wanted.values())
    if stage1 is None and refiner is None and index is None and sentence_encoder is None and not pictures:
        raise BadParameter(
            "give --stage1, --refiner, --index, --encoder, --frame-rate, --segment-seconds or "
            "--sentence-encoder; `moviola library info` shows what is in use"
        )
    if without_files and not pictures:
        raise BadParameter("--without-files: goes with --encoder, --precision or --frame-rate")
    if both_from is not None and not pictures:
        raise BadParameter("--both-from: goes with --encoder, --precision or --frame-rate")
    with writing(library) as lib:
        change = None
        if pictures:
            from moviola.cli.encoder_change import change_encoder

            change = change_encoder(lib, **wanted, without_files=without_files, both_from=both_from)
        if stage1 is not None or refiner is not None:
            _use_models(lib, stage1, refiner, force)
        if index is not None:
            lib.indexer.use_index(index)
        if sentence_encoder is not None:
            count = lib.indexer.use_sentence_encoder(sentence_encoder)
            note(f"{counted(count, 'line')} encoded")
        used: dict[str, Any] = {
            **lib.indexer.models_in_use(),
            "index": lib.settings.shown_index,
            "sentences": lib.settings.sentence_encoder or None,
            "encoder": lib.settings.encoder or None,
        }
    names = {
        what: f"{one['name']} (revision {one['revision']})" if isinstance(one, dict) else one
        for what, one in used.items()
    }
    show(json, used | ({"change": asdict(change)} if change else {}), *lines_of_values(names, 7))
    if change is not None and not change.done:
        leave_partial()


def _use_models(lib: Library, stage1: str | None, refiner: str | None, force: bool) -> None:
    """Take trained models into use, and say what they were trained on."""
    from moviola.library.disk.models_in_use import training_of

    lib.indexer.use(stage1=stage1, refiner=refiner, force=force)
    if said := lib.indexer.other_stage1():
        note(f"{lib.settings.refiner}: {said}")
    for role, given in (("stage1", stage1), ("refiner", refiner)):
        if given is not None and (trained := training_of(lib.folder, lib.settings, role)):
            note(
                f"{getattr(lib.settings, role)}: {trained}; `moviola answer` and `moviola evaluate` say "
                f"whether searches are better with it, `moviola library use --{role} none` goes back"
            )


@library_group.command()
def tune(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Measure how far searches must look in a large index to find 99 %, and keep the fastest such setting.

    Example: `moviola library tune --library films`

    From Python: `moviola.library.Indexer.tune_index`.
    """
    with writing(library) as lib:
        trials = lib.indexer.tune_index()
    columns: list[str] = []
    rows = []
    for trial in trials:
        columns = [*trial.parameters, *(f"found by {kind}" for kind in trial.recall), "ms"]
        recalls = (f"{recall:.1%}" for recall in trial.recall.values())
        rows.append((*map(str, trial.parameters.values()), *recalls, f"{trial.seconds * 1e3:.1f}"))
    show_records(json, trials, columns, rows)
    if not trials:
        note(f"{library}: the index compares every segment; there is nothing to tune")


@library_group.command()
def roots(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List the indexed folders, whether they can be read now, and what is left out of them.

    Example: `moviola library roots`

    From Python: `moviola.library.disk.root_states.roots_in`.
    """
    from moviola.library.disk.root_states import roots_in

    with reading(library) as lib:
        found = roots_in(lib.catalogue)
    rows = []
    for one in found:
        left_out = ", ".join(["the usual"] * one.defaults + list(one.patterns)) or "nothing"
        state = f"away: {one.away}" if one.away else "there"
        rows.append((one.path, str(one.videos), state, left_out))
    show_records(json, found, ("folder", "videos", "state", "left out"), rows)


@library_group.command()
def move(
    old: Annotated[Path, Argument(help="The old folder.")],
    new: Annotated[Path, Argument(help="The folder that replaces it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    force: Annotated[bool, Option("--force", help="Even if none of the files is there now.")] = False,
    json: JsonOption = False,
) -> None:
    """Give the videos of a folder a new folder, after it was moved; nothing is read or encoded.

    Example: `moviola library move /media/old-drive /media/new-drive`

    From Python: `moviola.library.Indexer.move`.
    """
    with writing(library) as lib:
        moved = lib.indexer.move(old, new, check=not force)
    show(json, {"moved": moved}, f"{library}: {counted(moved, 'file')} now in {new}")


@library_group.command()
def language(
    video: VideoArgument,
    language: Annotated[str, Argument(help="The right language: de, or German.")],
    before: Annotated[
        str | None,
        Option("--instead-of", help="The one that is wrong, where there are several; und: unknown."),
    ] = None,
    kind: Annotated[
        Literal["subtitle", "speech", "text"],
        Option(help="Subtitles, recognised speech or text in pictures."),
    ] = "subtitle",
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Correct the language of what is said or written in a video; later readings keep it.

    Example: `moviola library language interview de --instead-of nl`

    From Python: `moviola.library.say_language`.
    """
    from moviola.library import say_language

    with writing(library) as lib:
        changed = say_language(lib.store, video, language, before, kind)
    show(json, {"cues": changed}, f"{video}: {counted(changed, 'cue')} in {language}")


@library_group.command()
def forget(
    root: Annotated[Path, Argument(help="A folder, as `moviola library roots` prints it.")],
    yes: YesOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Remove a folder with all its videos from the library, for a drive that is lost. Files stay. It asks.

    Videos of which a copy lies elsewhere stay; `moviola library restore` brings the others back.

    Example: `moviola library forget /media/lost-drive --yes`

    From Python: `moviola.library.Indexer.forget_root`.
    """
    with writing(library) as lib:
        if leaving := len(lib.indexer.only_in(root)):
            of = f"{leaving} of {counted(len(lib), 'video')}"
            require_consent(
                f"{library}: {of} would be taken out, and can be brought back until compaction", yes
            )
        removed = lib.indexer.forget_root(root)
    said = f"{library}: {len(removed)} removed; `moviola library restore` brings them back"
    show(json, {"removed": removed}, said)


@library_group.command()
def removed(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List the removed videos that can be restored, newest first; `moviola compact` deletes them for good.

    Example: `moviola library removed`

    From Python: `moviola.library.Catalogue.removed`, of `moviola.Library.catalogue`.
    """
    with reading(library) as lib:
        found = lib.catalogue.removed()
    records = [{"video_id": one.video_id, "path": one.path, "since": one.since} for one in found]
    rows = ((one.video_id, one.since, one.path) for one in found)
    show_records(json, records, ("video", "since (UTC)", "file"), rows)


@library_group.command()
def restore(
    videos: Annotated[
        list[str] | None, Argument(help="Ids, as `moviola library removed` prints them.", show_default=False)
    ] = None,
    all_: Annotated[bool, Option("--all", help="All removed videos.")] = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Bring back removed videos; nothing is encoded.

    Example: `moviola library restore holiday/beach`

    From Python: `moviola.library.Indexer.restore`.
    """
    if bool(videos) == all_:
        raise BadParameter("name videos, or give --all")
    with writing(library) as lib:
        wanted = [one.video_id for one in lib.catalogue.removed()] if all_ else videos or []
        restored = lib.indexer.restore(wanted)
        count = len(lib)
    searched = f"{counted(count, 'video')} can be searched"
    show(json, {"restored": restored}, f"{library}: {len(restored)} restored; {searched}")


@app.command()
def duplicates(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List files with the same bytes, and videos that show the same: in another encoding, or a part.

    Files are compared by what indexing saw of them; only those that are there now are copies. Look at both
    before you delete one.

    The result is kept, also where it is interrupted: answers fold copies from then on, and the next call
    compares new videos only.

    Example: `moviola duplicates --library films`

    From Python: `moviola.library.near_copies.exact_copies`, `moviola.library.near_copies.find_near_copies`.
    """
    from rich.progress import BarColumn, TimeRemainingColumn

    from moviola.cli.progress import progress_bar
    from moviola.library import common_recording
    from moviola.library.near_copies import exact_copies, find_near_copies, without_fingerprint

    remedy = "what was found is kept; run the same command again for the rest"
    with (writing if os.access(library, os.W_OK) else reading)(library) as lib:
        exact = exact_copies(lib.store)
        with progress_bar(BarColumn(), TimeRemainingColumn(), remedy=remedy) as bar:
            task = bar.add_task("comparing", total=100)
            near = find_near_copies(lib.store, lambda share: bar.update(task, completed=100 * share))
        lacking, recordings = without_fingerprint(lib.store), lib.recordings
        shown = {video.video_id: name_now(video.video_id, video.path) for video in lib.catalogue.videos()}
    records = [
        *({"kind": "exact", **asdict(one), "wasted": one.wasted} for one in exact),
        *({**asdict(pair), "recording": common_recording(recordings, pair.video_ids)} for pair in near),
    ]
    rows: list[tuple[Cell, ...]] = [
        (
            "exact",
            ", ".join(shown[video_id] for video_id in one.video_ids),
            (*one.paths, *(f"{path} (away)" for path in one.away)),
            f"{one.size / 2**20:.1f} MiB each",
        )
        for one in exact
    ]
    for pair in near:
        videos = zip(pair.video_ids, pair.spans, strict=True)
        spans = (f"{shown[video]} {span.start:.1f}-{span.end:.1f} s" for video, span in videos)
        together = ", parts of one recording" if common_recording(recordings, pair.video_ids) else ""
        rows.append((pair.kind, *spans, f"{pair.certainty:.2f}{together}"))
    show_records(json, records, ("kind", "video", "copies", "size or certainty"), rows)
    if lacking:
        note(
            f"{counted(len(lacking), 'video')} without a fingerprint, compared by bytes only: "
            f"{some(lacking)}; `moviola index` of their folders makes them without encoding"
        )
    wasted, copies = sum(one.wasted for one in exact) / 2**20, counted(len(near), "near copy")
    found = f"{wasted:.1f} MiB stored more than once, {copies}" if exact or near else "no copies"
    note(f"{library}: {found}")
