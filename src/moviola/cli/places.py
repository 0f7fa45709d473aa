"""Commands on where videos lie: library roots, move, forget, removed, restore; duplicates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, show_table
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption, settings_group


@settings_group.command()
def roots(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """The folders that were indexed, whether they are there now, and what is left out of them.

    Example: `moviola library roots`

    From Python: `moviola.library.root_states.roots_in`.
    """
    from dataclasses import asdict

    from moviola.library.root_states import roots_in
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        found = roots_in(lib.catalogue)
    if json:
        emit_json([asdict(one) for one in found])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("folder", "videos", "state", "left out"):
        table.add_column(column, overflow="fold")
    rows = (
        (
            one.path,
            str(one.videos),
            f"away: {one.away}" if one.away else "there",
            ", ".join([*(["the usual"] if one.defaults else []), *one.patterns]) or "nothing",
        )
        for one in found
    )
    show_table(table, rows)


@settings_group.command()
def move(
    old: Annotated[Path, typer.Argument(help="The folder where videos lay.")],
    new: Annotated[Path, typer.Argument(help="The folder that stands for it now.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    force: Annotated[
        bool, typer.Option("--force", help="Even if none of the files can be seen there now.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Say that videos lie in another folder now: nothing is read or encoded.

    Example: `moviola library move /media/old-drive /media/new-drive`

    From Python: `moviola.Library.move`.
    """
    from moviola.search import Library

    with Library(library) as lib:
        moved = lib.move(old, new, check=not force)
    if json:
        emit_json({"moved": moved})
    else:
        console.print(f"{library}: {moved} videos lie in {new} now")


@settings_group.command()
def forget(
    root: Annotated[Path, typer.Argument(help="A folder, as `moviola library roots` prints it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Take out a folder with all its videos, for one that will not come back. Files are not touched.

    `moviola library restore` brings them back.

    Example: `moviola library forget /media/lost-drive`

    From Python: `moviola.Library.forget_root`.
    """
    from moviola.search import Library

    with Library(library) as lib:
        removed = lib.forget_root(root)
    if json:
        emit_json({"removed": removed})
    else:
        console.print(f"{library}: {len(removed)} removed; `moviola library restore` brings them back")


@settings_group.command()
def removed(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """The videos that were taken out and can be brought back, newest first; `verify --compact` ends that.

    Example: `moviola library removed`

    From Python: `moviola.library.Catalogue.removed`, of `moviola.Library.catalogue`.
    """
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        found = lib.catalogue.removed()
    if json:
        emit_json([{"video_id": one.video_id, "path": one.path, "since": one.since} for one in found])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("video", "since (UTC)", "file"):
        table.add_column(column, overflow="fold")
    show_table(table, ((one.video_id, one.since, one.path) for one in found))


@settings_group.command()
def restore(
    videos: Annotated[
        list[str] | None,
        typer.Argument(help="Ids, as `moviola library removed` prints them.", show_default=False),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="All that were removed.")] = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Bring back videos that were taken out; nothing is encoded.

    Example: `moviola library restore holiday/beach`

    From Python: `moviola.Library.restore`.
    """
    from moviola.search import Library

    if bool(videos) == all_:
        raise typer.BadParameter("name videos, or give --all")
    with Library(library) as lib:
        wanted = [one.video_id for one in lib.catalogue.removed()] if all_ else videos or []
        restored = lib.restore(wanted)
        count = len(lib)
    if json:
        emit_json({"restored": restored})
    else:
        console.print(f"{library}: {len(restored)} restored; {count} videos can be searched")


@app.command()
def duplicates(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Files that are the same to the byte, and videos that show the same: encoded otherwise, or a part.

    What is found is remembered: answers show it once from then on, and the next call compares new videos
    only.

    Example: `moviola duplicates --library films`

    From Python: `moviola.library.duplicates.exact_copies`, `moviola.library.near_copies.find_near_copies`.
    """
    import os
    from dataclasses import asdict

    from moviola.library.duplicates import exact_copies
    from moviola.library.near_copies import find_near_copies, without_fingerprint
    from moviola.search import Library

    with Library(library, read_only=not os.access(library, os.W_OK)) as lib:
        exact, near = exact_copies(lib.store), find_near_copies(lib.store)
        lacking = without_fingerprint(lib.store)
    if json:
        emit_json([
            *({"kind": "exact", **asdict(one), "wasted": one.wasted} for one in exact),
            *(asdict(one) for one in near),
        ])  # fmt: skip
        return
    for one in exact:
        console.print(f"{', '.join(one.video_ids)}: {len(one.paths)} copies, {one.size / 2**20:.1f} MiB each")
        for path in one.paths:
            console.print(f"  {path}")
    for pair in near:
        longer, shorter = (
            f"{video} {span.start:.1f}-{span.end:.1f} s"
            for video, span in zip(pair.video_ids, pair.spans, strict=True)
        )
        console.print(f"{longer} = {shorter} ({pair.kind}, {pair.certainty:.2f})")
    wasted = sum(one.wasted for one in exact)
    if lacking:
        console.print(
            f"{len(lacking)} videos were indexed before fingerprints were kept, and compared by their bytes "
            f"only: {', '.join(lacking[:3])}…; `moviola remove` them and index them again to compare pictures"
        )
    console.print(
        f"{library}: {wasted / 2**20:.1f} MiB more than once, {len(near)} pairs of videos that show the same"
        if exact or near
        else f"{library}: no copies"
    )
