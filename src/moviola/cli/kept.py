"""``moviola kept``: saved searches, collections, tags and ratings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, show_table
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption
from moviola.cli.search import WeakOption, answer_rows, print_moments, print_others
from moviola.errors import InvalidValue

if TYPE_CHECKING:
    from moviola.library.kept.entries import Entry, Mark

kept_group = typer.Typer(
    name="kept",
    help="What people keep of a library: searches, collections, tags, ratings.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(kept_group)

KindName = Literal["search", "collection", "mark"]
Place = Annotated[
    str, typer.Argument(metavar="VIDEO[@START-END]", help="A video by its id, or a moment: beach@1:05-1:20.")
]


@kept_group.command("list")
def list_(
    kind: Annotated[KindName | None, typer.Option(help="Only these.")] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """What is kept, by kind and name.

    Example: `moviola kept list --kind search`

    From Python: `moviola.library.kept.entries.Kept.entries`, of `moviola.Library.kept`.
    """
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        entries = lib.kept.entries(kind)
    if json:
        emit_json([entry.model_dump() for entry in entries])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kind", "name", "version", "holds"):
        table.add_column(column, overflow="fold")
    show_table(table, ((e.kind, e.name, str(e.version), _said(e)) for e in entries))


def _said(entry: Entry) -> str:
    from moviola.library.kept.entries import Collection, SavedSearch

    value = entry.value
    if isinstance(value, SavedSearch):
        more = [*value.then, *(f"not {text}" for text in value.without)]
        return ", ".join([value.text, *more, *(f"{key} {text}" for key, text in value.filter.items())])
    if isinstance(value, Collection):
        return f"{len(value.moments)} moments"
    rated = [f"rated {value.rating}"] if value.rating else []
    return ", ".join([*value.tags, *rated])


def _show(entry: Entry, json: bool) -> None:
    if json:
        emit_json(entry.model_dump())
    else:
        console.print(f"{entry.kind} {entry.name}: version {entry.version}; {_said(entry)}")


@kept_group.command()
def search(
    name: Annotated[str, typer.Argument(help="What to call it.")],
    text: Annotated[str, typer.Argument(help="What to look for.")],
    then: Annotated[list[str] | None, typer.Option(help="What comes later; repeatable.")] = None,
    not_: Annotated[
        list[str] | None, typer.Option("--not", help="What must not be there; repeatable.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", metavar="FIELD=TEXT", help="Such as taken=2023 or camera=iphone; repeatable."
        ),
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Save a search under a name, in place of what had it.

    Example: `moviola kept search "beach days" "a dog runs on a beach" --filter taken=2023`

    From Python: `moviola.library.kept.entries.Kept.put`, of `moviola.Library.kept`.
    """
    from moviola.library.kept.entries import SavedSearch
    from moviola.search import Filter, Library

    filter: dict[str, str] = {}
    for one in where or ():
        field, sign, value = one.partition("=")
        if not sign or field not in Filter.__dataclass_fields__:
            known = ", ".join(Filter.__dataclass_fields__)
            raise InvalidValue(f"--filter {one!r}: write FIELD=TEXT, with one of {known}")
        filter[field] = value
    Filter.parse(**filter)
    with Library(library, read_only=True) as lib:
        saved = SavedSearch(text=text, then=then or [], without=not_ or [], filter=filter)
        _show(lib.kept.put("search", name, saved), json)


@kept_group.command()
def run(
    name: Annotated[str, typer.Argument(help="Of a saved search.")],
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="Number of moments.")] = 10,
    weak: WeakOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Ask a saved search again.

    Example: `moviola kept run "beach days"`

    From Python: `moviola.Library.search_saved`.
    """
    from moviola.search import Library
    from moviola.search.present import still_there

    with Library(library, read_only=True) as lib:
        found, videos, away = still_there(lib.search_saved(name, top_k=top), lib.catalogue)
    paths = {video_id: video.path for video_id, video in videos.items()}
    if json:
        emit_json(answer_rows(found, paths, away))
    else:
        moments = list(found) if weak else found.strong
        print_moments(moments, paths, away)
        print_others(moments, found)


@kept_group.command()
def tag(
    place: Place,
    tags: Annotated[list[str], typer.Argument(help="To give.")],
    remove: Annotated[bool, typer.Option("--remove", help="Take them away instead.")] = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Give tags to a video or a moment.

    Example: `moviola kept tag holiday/beach@1:05-1:20 dog favourite`

    From Python: `moviola.library.kept.entries.Kept.mark`, of `moviola.Library.kept`.
    """
    _mark(library, place, json, **{"remove" if remove else "add": tags})


@kept_group.command()
def rate(
    place: Place,
    rating: Annotated[int, typer.Argument(min=0, max=5, help="1 to 5; 0 takes it away.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Rate a video or a moment.

    Example: `moviola kept rate holiday/beach 5`

    From Python: `moviola.library.kept.entries.Kept.mark`, of `moviola.Library.kept`.
    """
    _mark(library, place, json, rating=rating)


def _mark(library: Path, place: str, json: bool, **changes: object) -> None:
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        mark = _place(place)
        lib.catalogue.video(mark.video_id)
        entry = lib.kept.mark(mark, **changes)  # type: ignore[arg-type]
    if entry is not None:
        _show(entry, json)
    elif json:
        emit_json(None)
    else:
        console.print(f"mark {mark.name}: says nothing any more, and is not kept")


def _place(text: str) -> Mark:
    """A video, or a moment of it."""
    from moviola.library.kept.entries import Mark
    from moviola.search.times import parse_seconds

    video, sign, times = text.rpartition("@")
    start, dash, end = times.partition("-")
    if not (sign and dash):
        return Mark(video_id=text)
    span = parse_seconds(start, "start"), parse_seconds(end, "end")
    if span[1] <= span[0]:
        raise InvalidValue(f"{text}: the end must come after the start")
    return Mark(video_id=video, start=span[0], end=span[1])


@kept_group.command()
def collect(
    name: Annotated[str, typer.Argument(help="Of the collection; made where there is none.")],
    places: Annotated[list[str], typer.Argument(metavar="VIDEO@START-END...", help="Moments to add.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Add moments to a collection.

    Example: `moviola kept collect "dogs" holiday/beach@1:05-1:20 holiday/park@0:03-0:09`

    From Python: `moviola.library.kept.entries.Kept.put`, of `moviola.Library.kept`.
    """
    from moviola.errors import NotFound
    from moviola.library.kept.entries import Collection, KeptMoment
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        moments = []
        for text in places:
            mark = _place(text)
            lib.catalogue.video(mark.video_id)
            if mark.start is None or mark.end is None:
                raise InvalidValue(f"{text}: name a moment, as in {text}@1:05-1:20")
            moments.append(KeptMoment(video_id=mark.video_id, start=mark.start, end=mark.end))
        try:
            before = lib.kept.entry("collection", name)
        except NotFound:
            held, version = [], 0
        else:
            assert isinstance(before.value, Collection)
            held, version = before.value.moments, before.version
        _show(lib.kept.put("collection", name, Collection(moments=[*held, *moments]), version), json)


@kept_group.command()
def delete(
    kind: Annotated[KindName, typer.Argument(help="Of what.")],
    name: Annotated[str, typer.Argument(help="As `moviola kept list` prints it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Keep something no longer.

    Example: `moviola kept delete search "beach days"`

    From Python: `moviola.library.kept.entries.Kept.delete`, of `moviola.Library.kept`.
    """
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        lib.kept.delete(kind, name)
    if json:
        emit_json({"deleted": name})
    else:
        console.print(f"{kind} {name}: not kept any more")


@kept_group.command("export")
def export_(
    out: Annotated[Path, typer.Argument(help="A file of JSON lines.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Write all that is kept to a file of JSON lines.

    Example: `moviola kept export kept.jsonl`

    From Python: `moviola.library.kept.entries.Kept.export`, of `moviola.Library.kept`.
    """
    from moviola.files.writing import write_text
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        lines = list(lib.kept.export())
    write_text(out, "".join(f"{line}\n" for line in lines))
    if json:
        emit_json({"entries": len(lines), "file": str(out)})
    else:
        console.print(f"{out}: {len(lines)} entries")


@kept_group.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A file of `moviola kept export`.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Keep what a file of JSON lines holds; of what is kept already the later one stays.

    Example: `moviola kept import kept.jsonl --library films`

    From Python: `moviola.library.kept.entries.Kept.take`, of `moviola.Library.kept`.
    """
    from moviola.search import Library

    with Library(library, read_only=True) as lib:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidValue(f"{file}: cannot be read ({error}); give a file of JSON lines") from error
        taken = lib.kept.take(text.splitlines(), f"{file}:")
    if json:
        emit_json([entry.model_dump() for entry in taken])
    else:
        console.print(f"{library}: {len(taken)} entries taken in")
