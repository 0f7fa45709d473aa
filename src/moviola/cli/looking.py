"""A model that looks at moments: the options that name it, and ``moviola ask``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Option

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note
from moviola.cli.config import usual_number
from moviola.cli.options import DEFAULT_LIBRARIES, LibrariesOption, reading_all, with_options
from moviola.errors import InvalidValue, counted
from moviola.files.names import name_now
from moviola.files.plain import plain

if TYPE_CHECKING:
    from moviola.library import LibraryStore
    from moviola.looker import Answer, Endpoint, Looker, Sending
    from moviola.types import Moment


def looker_options(
    looker: Annotated[
        str | None,
        Option(
            metavar="URL",
            envvar="MOVIOLA_LOOKER",
            help="Server of a model that looks at moments, in OpenAI's chat form, such as "
            "http://localhost:11434/v1. Its key comes in MOVIOLA_LOOKER_KEY.",
            show_default=False,
        ),
    ] = None,
    looker_model: Annotated[
        str | None,
        Option(metavar="NAME", envvar="MOVIOLA_LOOKER_MODEL", help="Its name there.", show_default=False),
    ] = None,
) -> None:
    """What names a model that looks."""


def endpoint_of(looker: str | None = None, looker_model: str | None = None) -> Endpoint | None:
    """The model of :func:`looker_options`; None where none is named."""
    if looker is None:
        if looker_model is not None:
            raise BadParameter("--looker-model: name its server, too, in --looker")
        return None
    if looker_model is None:
        raise BadParameter("--looker: name the model, too, in --looker-model")
    from moviola.looker import Endpoint

    seconds = usual_number("looker_seconds")
    return Endpoint(looker, looker_model, seconds=60.0 if seconds is None else seconds)


def looker_of(store: LibraryStore, **looking: Any) -> Looker | None:
    """What looks at moments of a library for :func:`looker_options`, and says before what it sends; None
    where none is named.
    """
    endpoint = endpoint_of(**looking)
    if endpoint is None:
        return None
    from moviola.looker import Looker

    return Looker(store, endpoint, right=usual_number("looker_right"), announce=_say)


def _say(sending: Sending) -> None:
    note(str(sending))


@app.command()
@with_options("looking", looker_options)
def ask(
    *,
    question: Annotated[str, Argument(help="What you want to know of the films.")],
    library: LibrariesOption = DEFAULT_LIBRARIES,
    looking: dict[str, Any],
    json: JsonOption = False,
) -> None:
    """Answer a question about the films, in sentences that cite moments.

    The model of --looker searches the library and looks at stills; nothing else can it do. Each sentence ends
    with the moments that it cites, which were found and can be played by `moviola open`; sentences without
    such a moment are not shown. Whether a moment shows what a sentence says is for you to see.

    Example: `moviola ask "Who carries the ladder, and when?" --looker http://localhost:11434/v1
    --looker-model qwen2.5vl`

    From Python: `moviola.looker.ask`.
    """
    endpoint = endpoint_of(**looking)
    if endpoint is None:
        raise InvalidValue(
            "no model is named; give --looker URL and --looker-model NAME, or write them into config.toml"
        )
    from moviola.looker import ask as ask_model

    with reading_all(library) as lib:
        answer = ask_model(lib, endpoint, question, announce=_say)
        moments = _cited(answer)
        paths, away = lib.store.paths_of({moment.video_id for moment in moments})
    if json:
        emit_json(_row(question, endpoint.model, answer, paths, away))
    else:
        _print(answer, {name: Path(path) for name, path in paths.items() if name not in away})
    _account(answer, endpoint.model)
    if answer.sentences:
        _keep(library, question, moments)
    if answer.left_out or answer.cause:
        leave_partial()


def _cited(answer: Answer) -> list[Moment]:
    """The cited moments, each once, with ranks in the order in which they are cited."""
    cited = {one.name: one.moment for sentence in answer.sentences for one in sentence.cites}
    return [replace(moment, rank=rank) for rank, moment in enumerate(cited.values(), 1)]


def citation(moment: Moment, path: str | Path = "") -> str:
    """``[beach 0:12–0:19]``, in whole seconds that hold the moment; by the name that its file has now."""

    def short(seconds: int) -> str:
        minutes, rest = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"

    return f"[{name_now(moment.video_id, path)} {short(floor(moment.start))}–{short(ceil(moment.end))}]"


def _print(answer: Answer, files: dict[str, Path]) -> None:
    """The sentences, each with its citations, which a terminal links to the files."""
    from rich.text import Text

    for sentence in answer.sentences:
        line = Text(plain(sentence.text))
        for one in sentence.cites:
            file = files.get(one.moment.video_id)
            link = (
                f"link {file.absolute().as_uri()}#t={one.moment.start:g},{one.moment.end:g}" if file else ""
            )
            line.append(" ").append(plain(citation(one.moment, file or "")).replace("\n", "\ufffd"), link)
        console.rich.print(line)
    if answer.untold:
        console.print("The films do not say.")


def _account(answer: Answer, model: str) -> None:
    """What the answer rests on, and what is missing of it."""
    searched = "; ".join(answer.searches) or "nothing"
    note(
        f"{counted(answer.stills, 'still')} seen by {model}; searched for: {searched}. What the films show "
        "was not checked"
    )
    if answer.failed:
        note(f"{counted(len(answer.failed), 'step')} could not be taken: {'; '.join(answer.failed)}")
    if answer.left_out:
        note(f"{counted(answer.left_out, 'sentence')} not shown: without a citation that exists")
    if answer.cause:
        note(f"no answer: {answer.cause}")


def _row(question: str, model: str, answer: Answer, paths: dict[str, str], away: set[str]) -> dict[str, Any]:
    def cites(sentence: Any) -> Sequence[dict[str, Any]]:
        return [
            {
                "video_id": one.moment.video_id, "start": one.moment.start, "end": one.moment.end,
                "path": paths[one.moment.video_id], "away": one.moment.video_id in away, "looked": one.looked,
            }
            for one in sentence.cites
        ]  # fmt: skip

    return {
        "question": question, "model": model, "untold": answer.untold,
        "answer": [{"text": sentence.text, "cites": cites(sentence)} for sentence in answer.sentences],
        "left_out": answer.left_out, "cause": answer.cause, "searches": answer.searches,
        "failed": answer.failed, "looked": answer.looked, "stills": answer.stills,
    }  # fmt: skip


def _keep(libraries: Sequence[Path], question: str, moments: list[Moment]) -> None:
    """Keep the cited moments as the last answer, so that they can be played and cut by their numbers."""
    from moviola.search import Asked
    from moviola.search import Text as Words
    from moviola.search.last_answer import KeptAnswer, keep_answer

    try:
        further = tuple(libraries) if len(libraries) > 1 else ()
        keep_answer(libraries[0], KeptAnswer(Asked(Words(question)), moments, further))
    except InvalidValue as error:
        note(f"not kept for `moviola open` and `cut`: {error}")
    else:
        note(f"{counted(len(moments), 'cited moment')}, in their order: `moviola open 1` plays the first")
