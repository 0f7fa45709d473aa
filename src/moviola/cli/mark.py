"""``moviola mark``, ``teach`` and ``concepts``: answers that learn from marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from moviola.cli.app import JsonOption, app, console, emit_json
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption
from moviola.cli.search import Shown, WeakOption, WhyOption, answer_and_keep
from moviola.errors import NotFound

if TYPE_CHECKING:
    from pathlib import Path

    from moviola.search import Marked
    from moviola.types import Moment


class ManyRanks(TyperCommand):
    """A command whose options take all numbers that follow: ``--right 1 4`` is ``--right 1 --right 4``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        spread: list[str] = []
        option = ""
        for word in args:
            if word.startswith("-"):
                option = word if word in ("--right", "--wrong") else ""
            elif option and spread[-1] != option:
                spread.append(option)
            spread.append(word)
        return super().parse_args(ctx, spread)


@app.command(cls=ManyRanks)
def mark(
    right: Annotated[
        list[int] | None, typer.Option(min=1, metavar="RANK...", help="Right moments of the last answer.")
    ] = None,
    wrong: Annotated[
        list[int] | None, typer.Option(min=1, metavar="RANK...", help="Wrong moments of the last answer.")
    ] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    weak: WeakOption = False,
    why: WhyOption = False,
    json: JsonOption = False,
) -> None:
    """Mark moments of the last answer as right or wrong, and answer again.

    Marks add up from answer to answer until the next `moviola search`.

    Example: `moviola search "our logo" --weak && moviola mark --right 1 4 --wrong 2`

    From Python: `moviola.Library.search` of a `moviola.search.Marked` query.
    """
    from moviola.search import Marked
    from moviola.search.last_answer import kept_answer

    if not (right or wrong):
        raise typer.BadParameter("give ranks of the last answer: --right RANK..., --wrong RANK...")
    kept = kept_answer(library)
    chosen = [_ranked(kept.moments, ranks or []) for ranks in (right, wrong)]
    query = kept.query
    marked = Marked.of(query, *chosen)
    answer_and_keep(library, marked, kept.options, Shown(weak=weak, why=why, json=json))


def _ranked(moments: Sequence[Moment], ranks: Sequence[int]) -> list[Moment]:
    by_rank = {moment.rank: moment for moment in moments}
    for rank in ranks:
        if rank not in by_rank:
            raise NotFound(
                f"rank {rank}: the last answer has {len(moments)} moments; take one of their ranks"
            )
    return [by_rank[rank] for rank in ranks]


@app.command()
def teach(
    name: Annotated[str, typer.Argument(help="A name for what the marks show, such as 'our logo'.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Keep in the library what the marks on the last answer teach; `@name` stands for it in queries.

    Example: `moviola mark --right 1 3 && moviola teach "our logo" && moviola search "@our-logo on a shelf"`

    From Python: `moviola.Library.teach`.
    """
    from moviola.search import Library
    from moviola.search.last_answer import kept_answer

    marked = _marked(library, kept_answer(library).query)
    with Library(library) as lib:
        made = lib.teach(name, marked)
    if json:
        emit_json({"name": made, "right": len(marked.right), "wrong": len(marked.wrong)})
    else:
        console.print(f"@{made} stands for it from now on")


def _marked(library: Path, query: object) -> Marked:
    from moviola.search import Marked

    if not isinstance(query, Marked):
        raise NotFound(f"{library}: nothing of the last answer is marked; `moviola mark --right RANK` first")
    return query


@app.command()
def concepts(
    library: LibraryOption = DEFAULT_LIBRARY,
    forget: Annotated[str | None, typer.Option(metavar="NAME", help="Delete this one.")] = None,
    json: JsonOption = False,
) -> None:
    """List what was taught to a library, or delete one.

    Example: `moviola concepts --forget our-logo`

    From Python: `moviola.Library.concepts` and `forget`.
    """
    from moviola.search import Library

    with Library(library, read_only=forget is None) as lib:
        if forget is not None:
            lib.forget(forget)
        found = lib.concepts()
    if json:
        emit_json([
            {"name": one.name, "title": one.title, "right": len(one.right), "wrong": len(one.wrong),
             "moments": list(one.moments)}
            for one in found
        ])  # fmt: skip
        return
    for one in found:
        console.print(f"@{one.name}: {one.title}; {len(one.right)} right, {len(one.wrong)} wrong")
    if not found:
        console.print("nothing was taught yet; `moviola mark`, then `moviola teach NAME`")
