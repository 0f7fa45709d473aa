"""What people keep in a library: ``moviola mark``, ``teach``, ``concepts``, and the entries of ``kept``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, BadParameter, Option
from typer.core import TyperCommand

from moviola.cli.app import (
    JsonOption,
    YesOption,
    app,
    command_group,
    leave_partial,
    note,
    require_consent,
    show,
    show_records,
)
from moviola.cli.looking import looker_options
from moviola.cli.options import (
    DEFAULT_LIBRARIES,
    DEFAULT_LIBRARY,
    LibrariesOption,
    LibraryOption,
    WeakOption,
    WhyOption,
    reading,
    with_options,
    writing,
)
from moviola.cli.search import answer_and_keep
from moviola.errors import InvalidValue, MoviolaError, NotFound, counted
from moviola.files.names import folded
from moviola.files.rows import read_text
from moviola.files.writing import write_text

if TYPE_CHECKING:
    from moviola.library.userdata.values import Entry, Mark, SavedSearch
    from moviola.search import Library

kept_group = command_group("kept", "Saved searches, collections, tags and ratings of a library.")

KindName = Literal["search", "collection", "mark"]
Place = Annotated[
    str, Argument(metavar="VIDEO[@START-END]", help="A video by its id, or a moment: beach@1:05-1:20.")
]


@kept_group.command("list")
def list_(
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """List what is kept, by kind and name.

    Example: `moviola kept list`

    From Python: `moviola.library.userdata.entries.UserData.entries`, of `moviola.Library.userdata`.
    """
    with reading(library) as lib:
        entries, sizes = lib.userdata.entries(), lib.userdata.pictures()
    rows = ((e.kind, e.name, str(e.version), _summary(e, sizes)) for e in entries)
    show_records(json, [e.model_dump() for e in entries], ("kind", "name", "version", "content"), rows)


def _summary(entry: Entry, sizes: Mapping[str, int] = {}) -> str:
    """The content of an entry in a line; ``sizes``: bytes of kept pictures."""
    from moviola.library.userdata.values import Collection, SavedSearch

    value = entry.value
    if isinstance(value, Collection):
        return counted(len(value.moments), "moment")
    if isinstance(value, SavedSearch):
        return _question(value, sizes)
    return ", ".join([*value.tags, *([f"rated {value.rating}"] if value.rating else [])])


def _question(value: SavedSearch, sizes: Mapping[str, int]) -> str:
    from moviola.search import Asked

    try:
        question = Asked.from_json(value.root)
    except InvalidValue as error:  # of a later version that has more fields
        return f"cannot be run: {error}"
    given = {**question.options.filter.texts(), **question.options.changed()}
    parts = [str(question.query), *(f"{name} {one}" for name, one in given.items())]
    if value.pictures:
        size = sum(sizes.get(name, 0) for name in value.pictures)
        parts.append(f"{counted(len(value.pictures), 'picture')} of {size / 1000:,.1f} kB")
    return ", ".join(parts)


def _show(entry: Entry, json: bool) -> None:
    show(json, entry.model_dump(), f"{entry.kind} {entry.name}: version {entry.version}; {_summary(entry)}")


@kept_group.command()
@with_options("looking", looker_options)
def run(
    *,
    name: Annotated[str, Argument(help="Name of the saved search.")],
    top_k: Annotated[
        int | None, Option("--top-k", "-k", min=1, help="Number of moments; by default that of the search.")
    ] = None,
    check: Annotated[
        int | None, Option(min=1, help="Let the model of --looker look at the best N moments.")
    ] = None,
    weak: WeakOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    looking: dict[str, Any],
    json: JsonOption = False,
) -> None:
    """Run a search that `moviola search --save` or the page has saved. The answer is kept, like that of
    `moviola search`. Without --check no model looks at it, whatever it was saved with.

    Example: `moviola kept run "beach days"`

    From Python: `moviola.search.SavedSearches.search`.
    """
    with reading(library) as lib:
        question = lib.saved.asked(name)
    count = question.options.top_k if top_k is None else top_k
    question = replace(question, options=replace(question.options, top_k=count, check=check))
    answer_and_keep([library], question, looking=looking if check else {}, weak=weak, json=json)


@kept_group.command()
def tag(
    place: Place,
    tags: Annotated[list[str], Argument(help="Tags to add.")],
    remove: Annotated[bool, Option("--remove", help="Remove the tags instead.")] = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Tag a video or a moment. A tag to remove that it does not bear is named; the exit code is then 3.

    Example: `moviola kept tag holiday/beach@1:05-1:20 dog favourite`

    From Python: `moviola.library.userdata.entries.UserData.mark`, of `moviola.Library.userdata`.
    """
    _mark(library, place, json, **{"remove" if remove else "add": tags})


@kept_group.command()
def rate(
    place: Place,
    rating: Annotated[int, Argument(min=0, max=5, help="1 to 5; 0 removes the rating.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Rate a video or a moment.

    Example: `moviola kept rate holiday/beach 5`

    From Python: `moviola.library.userdata.entries.UserData.mark`, of `moviola.Library.userdata`.
    """
    _mark(library, place, json, rating=rating)


def _mark(library: Path, place: str, json: bool, **changes: Any) -> None:
    with reading(library) as lib:
        mark = _place(lib, place)
        missing = _not_borne(lib, mark, changes.get("remove", ()))
        entry = lib.userdata.mark(mark, **changes)
    if missing:
        note(f"{mark.name}: had no tag {', '.join(missing)}")
    if entry is not None:
        _show(entry, json)
    else:
        said = f"mark {mark.name}: has no tag and no rating left, and was deleted"
        show(json, {"deleted": mark.name}, said)
    if missing:
        leave_partial()


def _not_borne(lib: Library, mark: Mark, tags: Iterable[str]) -> list[str]:
    """Those of some tags that a video or moment does not bear."""
    borne: list[str] = []
    with suppress(NotFound):
        borne = lib.userdata.entry("mark", mark.name).value.tags  # type: ignore[union-attr]  # of this kind
    return [tag for tag in tags if folded(tag) not in set(map(folded, borne))]


def _place(lib: Library, text: str) -> Mark:
    """A video of the library, whose id may read like a moment, or a moment of one."""
    from moviola.library.userdata.values import Mark
    from moviola.search.times import parse_seconds

    video, sign, times = text.rpartition("@")
    start, dash, end = times.partition("-")
    if not (sign and dash) or lib.catalogue.videos_named([text]):
        mark = Mark.of(video_id=text)
    else:
        what = f"{text!r}: the time"
        span = {"start": parse_seconds(start, what), "end": parse_seconds(end, what)}
        try:
            mark = Mark.of(video_id=video, **span)
        except InvalidValue as error:
            raise InvalidValue(f"{text!r:.200}: {error}") from error
    row = lib.catalogue.video(mark.video_id)
    # Its id as the library has it, which may differ in the form of accents.
    return mark.model_copy(update={"video_id": row.video_id})


@kept_group.command()
def collect(
    name: Annotated[str, Argument(help="Name of the collection; made if new.")],
    places: Annotated[list[str], Argument(metavar="VIDEO@START-END...", help="Moments to add.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Add moments to a collection.

    Example: `moviola kept collect "dogs" holiday/beach@1:05-1:20 holiday/park@0:03-0:09`

    From Python: `moviola.library.userdata.entries.UserData.put`, of `moviola.Library.userdata`.
    """
    from moviola.library.userdata.values import Collection, KeptMoment

    with reading(library) as lib:
        moments = []
        for text in places:
            mark = _place(lib, text)
            if mark.start is None or mark.end is None:
                raise InvalidValue(f"{text}: name a moment, as in {text}@1:05-1:20")
            moments.append(KeptMoment.of(video_id=mark.video_id, start=mark.start, end=mark.end))
        held: list[KeptMoment] = []
        version = 0
        with suppress(NotFound):
            before = lib.userdata.entry("collection", name)
            held, version = before.value.moments, before.version  # type: ignore[union-attr]  # of this kind
        _show(lib.userdata.put("collection", name, Collection(moments=[*held, *moments]), version), json)


@kept_group.command()
def delete(
    kind: Annotated[KindName, Argument(help="Kind of the entry.")],
    name: Annotated[str, Argument(help="Its name, as `moviola kept list` prints it.")],
    yes: YesOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Delete a saved search, a collection, or the tags and rating of a place, for good. It asks.

    Example: `moviola kept delete search "beach days" --yes`

    From Python: `moviola.library.userdata.entries.UserData.delete`, of `moviola.Library.userdata`.
    """
    with reading(library) as lib:
        entry = lib.userdata.entry(kind, name)
        require_consent(f"{kind} {name} ({_summary(entry)}) would be deleted for good", yes)
        lib.userdata.delete(kind, name)
    show(json, {"deleted": name}, f"{kind} {name}: deleted")


@kept_group.command("export")
def export_(
    out: Annotated[Path, Argument(help="File of JSON lines to write.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Write everything that is kept to a file of JSON lines.

    Example: `moviola kept export kept.jsonl`

    From Python: `moviola.library.userdata.entries.UserData.export`, of `moviola.Library.userdata`.
    """
    with reading(library) as lib:
        lib.store.require_outside(out)
        lines = list(lib.userdata.export())
    write_text(out, "".join(f"{line}\n" for line in lines))
    show(json, {"entries": len(lines), "out": str(out)}, f"{out}: {counted(len(lines), 'entry')}")


@kept_group.command("import")
def import_(
    file: Annotated[Path, Argument(help="File of `moviola kept export`.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Import entries of a file of JSON lines; of two versions of an entry the later one stays.

    Example: `moviola kept import kept.jsonl --library films`

    From Python: `moviola.library.userdata.entries.UserData.take`, of `moviola.Library.userdata`.
    """
    with reading(library) as lib:
        taken = lib.userdata.take(read_text(file).split("\n"), f"{file}:")
    said = f"{library}: {counted(len(taken), 'entry')} imported"
    show(json, [entry.model_dump() for entry in taken], said)


concepts_group = command_group("concepts", "Concepts that `moviola teach` has named.")


class ManyRanks(TyperCommand):
    """A command whose options take all numbers that follow: ``--right 1 4`` and ``--right=1 4`` are
    ``--right 1 --right 4``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spread: list[str] = []
        option = ""
        for word in args:
            if word.startswith("-"):
                name = word.partition("=")[0]
                option = name if name in ("--right", "--wrong") else ""
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(word)
        return super().parse_args(ctx, spread)


@app.command(cls=ManyRanks)
def mark(
    right: Annotated[list[int] | None, Option(min=1, metavar="RANK...", help="Right moments.")] = None,
    wrong: Annotated[list[int] | None, Option(min=1, metavar="RANK...", help="Wrong moments.")] = None,
    library: LibrariesOption = DEFAULT_LIBRARIES,
    weak: WeakOption = False,
    why: WhyOption = False,
    json: JsonOption = False,
) -> None:
    """Mark moments of the last answer as right or wrong, and search again.

    Marks add up until the next `moviola search`.

    Example: `moviola search "our logo" --weak && moviola mark --right 1 4 --wrong 2`

    From Python: `moviola.Library.search` of a `moviola.search.Marked` query.
    """
    from moviola.search import Marked
    from moviola.search.last_answer import kept_answer

    if not (right or wrong):
        raise BadParameter("give ranks of the last answer: --right RANK..., --wrong RANK...")
    kept = kept_answer(library[0])
    marks = (list(map(kept.moment, ranks or [])) for ranks in (right, wrong))
    marked = replace(kept.asked, query=Marked.of(kept.asked.query, *marks))
    answer_and_keep(kept.libraries or library, marked, weak=weak, why=why, json=json)


@app.command()
def teach(
    name: Annotated[str, Argument(help="Name of the concept, such as 'our logo'.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Keep the marks on the last answer as a concept of the library; `@name` stands for it in queries.

    Example: `moviola mark --right 1 3 && moviola teach "our logo" && moviola search "@our-logo on a shelf"`

    From Python: `moviola.search.Concepts.teach`.
    """
    from moviola.search import Marked
    from moviola.search.last_answer import kept_answer

    kept = kept_answer(library)
    marked = kept.asked.query
    if kept.libraries:
        names = ", ".join(map(str, kept.libraries))
        raise InvalidValue(
            f"{library}: the last answer is of several libraries ({names}); a concept belongs to one: search "
            "and mark there"
        )
    if not isinstance(marked, Marked):
        raise NotFound(f"{library}: the last answer has no marks; run `moviola mark --right RANK` first")
    with writing(library) as lib:
        made = lib.concepts.teach(name, marked)
    counts = {"name": made, "right": len(marked.right), "wrong": len(marked.wrong)}
    show(json, counts, f"@{made} is a concept now; use it in a query")


@concepts_group.command("list")
def concepts_(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List the concepts of a library.

    Example: `moviola concepts list`

    From Python: `moviola.search.Concepts.all`.
    """
    with reading(library) as lib:
        found = lib.concepts.all()
    records = [
        {"name": one.name, "title": one.title, "right": len(one.right), "wrong": len(one.wrong),
         "moments": list(one.moments)}
        for one in found
    ]  # fmt: skip
    rows = ((f"@{one.name}", one.title, str(len(one.right)), str(len(one.wrong))) for one in found)
    show_records(json, records, ("concept", "title", "right", "wrong"), rows)
    if not found:
        note("no concepts; make one with `moviola mark` and `moviola teach NAME`")


@concepts_group.command()
def forget(
    name: Annotated[str, Argument(help="Name of the concept, without @.")],
    yes: YesOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Delete a concept, for good. It asks.

    Example: `moviola concepts forget our-logo --yes`

    From Python: `moviola.search.Concepts.forget`.
    """
    with writing(library) as lib:
        require_consent(f"@{name.removeprefix('@')}: {_marks_of(lib, name)} would be deleted for good", yes)
        lib.concepts.forget(name)
    show(json, {"deleted": name}, f"@{name}: deleted")


def _marks_of(lib: Library, name: str) -> str:
    """How much a concept holds; a damaged one does not say."""
    from moviola.library import read_concept

    try:
        concept = read_concept(lib.folder, lib.settings, name.removeprefix("@"), of_any_encoder=True)
    except NotFound:
        raise
    except MoviolaError:
        return "a concept that cannot be read now"
    return counted(len(concept.right) + len(concept.wrong), "marked moment")
