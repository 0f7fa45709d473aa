"""Commands on folders and files of a library: roots, move, forget, removed, restore; duplicates."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from moviola.cli.app import Cell, JsonOption, app, note, show, show_records, some
from moviola.cli.library import library_group
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, reading, writing
from moviola.errors import counted


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

    From Python: `moviola.Library.move`.
    """
    with writing(library) as lib:
        moved = lib.move(old, new, check=not force)
    show(json, {"moved": moved}, f"{library}: {counted(moved, 'file')} now in {new}")


@library_group.command()
def forget(
    root: Annotated[Path, Argument(help="A folder, as `moviola library roots` prints it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Remove a folder with all its videos from the library, for a drive that is lost. Files stay.

    Videos of which a copy lies elsewhere stay; `moviola library restore` brings the others back.

    Example: `moviola library forget /media/lost-drive`

    From Python: `moviola.Library.forget_root`.
    """
    with writing(library) as lib:
        removed = lib.forget_root(root)
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

    From Python: `moviola.Library.restore`.
    """
    if bool(videos) == all_:
        raise BadParameter("name videos, or give --all")
    with writing(library) as lib:
        wanted = [one.video_id for one in lib.catalogue.removed()] if all_ else videos or []
        restored = lib.restore(wanted)
        count = len(lib)
    searched = f"{counted(count, 'video')} can be searched"
    show(json, {"restored": restored}, f"{library}: {len(restored)} restored; {searched}")


@app.command()
def duplicates(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List files with the same bytes, and videos that show the same: encoded otherwise, or a part.

    The result is kept: answers fold copies from then on, and the next call compares new videos only.

    Example: `moviola duplicates --library films`

    From Python: `moviola.library.near_copies.exact_copies`, `moviola.library.near_copies.find_near_copies`.
    """
    from moviola.library.near_copies import exact_copies, find_near_copies, without_fingerprint

    with (writing if os.access(library, os.W_OK) else reading)(library) as lib:
        exact, near = exact_copies(lib.store), find_near_copies(lib.store)
        lacking = without_fingerprint(lib.store)
    records = [*({"kind": "exact", **asdict(one), "wasted": one.wasted} for one in exact), *near]
    rows: list[tuple[Cell, ...]] = [
        ("exact", ", ".join(one.video_ids), tuple(one.paths), f"{one.size / 2**20:.1f} MiB each")
        for one in exact
    ]
    for pair in near:
        videos = zip(pair.video_ids, pair.spans, strict=True)
        spans = (f"{video} {span.start:.1f}-{span.end:.1f} s" for video, span in videos)
        rows.append((pair.kind, *spans, f"{pair.certainty:.2f}"))
    show_records(json, records, ("kind", "video", "copies", "size or certainty"), rows)
    if lacking:
        note(
            f"{counted(len(lacking), 'video')} without a fingerprint, compared by bytes only: "
            f"{some(lacking)}; `moviola index` of their folders makes them without encoding"
        )
    wasted, copies = sum(one.wasted for one in exact) / 2**20, counted(len(near), "near copy")
    found = f"{wasted:.1f} MiB stored more than once, {copies}" if exact or near else "no copies"
    note(f"{library}: {found}")
