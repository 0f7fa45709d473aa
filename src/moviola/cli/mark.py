"""``moviola mark``, ``teach`` and ``concepts``: answers that learn from marks."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, BadParameter, Option
from typer.core import TyperCommand

from moviola.cli.app import JsonOption, app, command_group, note, show, show_records
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, WeakOption, WhyOption, reading, writing
from moviola.cli.search import answer_and_keep
from moviola.errors import NotFound

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
    library: LibraryOption = DEFAULT_LIBRARY,
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
    kept = kept_answer(library)
    marked = Marked.of(kept.query, *(list(map(kept.moment, ranks or [])) for ranks in (right, wrong)))
    answer_and_keep(library, marked, kept.options, weak=weak, why=why, json=json)


@app.command()
def teach(
    name: Annotated[str, Argument(help="Name of the concept, such as 'our logo'.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Keep the marks on the last answer as a concept of the library; `@name` stands for it in queries.

    Example: `moviola mark --right 1 3 && moviola teach "our logo" && moviola search "@our-logo on a shelf"`

    From Python: `moviola.Library.teach`.
    """
    from moviola.search import Marked
    from moviola.search.last_answer import kept_answer

    marked = kept_answer(library).query
    if not isinstance(marked, Marked):
        raise NotFound(f"{library}: the last answer has no marks; run `moviola mark --right RANK` first")
    with writing(library) as lib:
        made = lib.teach(name, marked)
    counts = {"name": made, "right": len(marked.right), "wrong": len(marked.wrong)}
    show(json, counts, f"@{made} is a concept now; use it in a query")


@concepts_group.command("list")
def list_(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """List the concepts of a library.

    Example: `moviola concepts list`

    From Python: `moviola.Library.concepts`.
    """
    with reading(library) as lib:
        found = lib.concepts()
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
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Delete a concept.

    Example: `moviola concepts forget our-logo`

    From Python: `moviola.Library.forget`.
    """
    with writing(library) as lib:
        lib.forget(name)
    show(json, {"deleted": name}, f"@{name}: deleted")
