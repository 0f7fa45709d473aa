"""Options that several commands share, each with one name and one meaning."""

from __future__ import annotations

import inspect
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Context, Option

from moviola.cli.config import usual_device

if TYPE_CHECKING:
    from moviola.search import Library

DEFAULT_LIBRARY = Path("moviola-library")
DEFAULT_LIBRARIES = [DEFAULT_LIBRARY]

LibraryOption = Annotated[
    Path, Option("--library", "-l", envvar="MOVIOLA_LIBRARY", help="The library folder.")
]
LibrariesOption = Annotated[
    list[Path],
    Option(
        "--library",
        "-l",
        envvar="MOVIOLA_LIBRARY",
        help="The library folder; repeatable: several are searched as one.",
    ),
]
EncoderOption = Annotated[
    str | None,
    Option(
        envvar="MOVIOLA_ENCODER",
        help="Visual encoder of a new library: a name of `moviola models list`, a hub id, a folder, or none; "
        "by default the best on this machine.",
    ),
]
DeviceOption = Annotated[str, Option(envvar="MOVIOLA_DEVICE", help="Device: cpu, cuda, cuda:N, mps or auto.")]


def out_option(help: str) -> Any:
    """``--out`` of what is written without a library at hand; refused inside the folder of any."""

    def outside(out: Path) -> Path:
        from moviola.library import require_no_library

        require_no_library(out)
        return out

    return Option("--out", "-o", help=help, callback=outside)


def reading_options(
    ocr: Annotated[
        bool | None,
        Option(
            "--ocr/--no-ocr",
            envvar="MOVIOLA_OCR",
            help="Read text in pictures; by default in all but small ones.",
            show_default=False,
        ),
    ] = None,
    ocr_reader: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_OCR_READER",
            help="Reader of text in pictures: rapidocr, tesseract, a folder with a model of RapidOCR's, or a "
            "plug-in's name; it reads small pictures, too. By default by the language.",
            show_default=False,
        ),
    ] = None,
    ocr_language: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_OCR_LANGUAGE",
            help="Languages of text in pictures, such as ru or ru,en; by default those in Latin, Chinese and "
            "Japanese letters. Others are read by Tesseract, where it is installed.",
            show_default=False,
        ),
    ] = None,
    speech: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_SPEECH",
            help="Speech recogniser for videos without subtitles: tiny.en (English, offline), a Whisper "
            "model such as Systran/faster-whisper-small, or a folder; by default tiny.en, if installed.",
            show_default=False,
        ),
    ] = None,
    no_speech: Annotated[bool, Option("--no-speech", help="Read no speech.")] = False,
    sounds: Annotated[
        str | None,
        Option(
            envvar="MOVIOLA_SOUNDS",
            help="Reader of sounds: yamnet, or a folder with its files; by default yamnet, if installed.",
            show_default=False,
        ),
    ] = None,
    no_sounds: Annotated[bool, Option("--no-sounds", help="Read no sounds.")] = False,
    speech_language: Annotated[
        str | None,
        Option(envvar="MOVIOLA_SPEECH_LANGUAGE", help="Spoken language, such as de; else detected."),
    ] = None,
) -> None:
    """Options of :meth:`moviola.library.Indexer.index` by their names; see :func:`as_reading`."""


def as_reading(context: Context, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of :func:`reading_options` as arguments of :meth:`moviola.library.Indexer.index`."""
    refused = {name: "none" for name in ("speech", "sounds") if given[f"no_{name}"]}
    for name in refused:
        refuse_given(context, [name], f"contradicts --no-{name}; give one of the two")
    return {name: value for name, value in given.items() if not name.startswith("no_")} | refused


def file_options(
    suffixes: Annotated[
        list[str] | None,
        Option(
            "--suffix",
            metavar="SUFFIX",
            help="Further suffix, such as .dat, by which files in folders count as videos; repeatable; kept "
            "while the library has such videos of the folder.",
            show_default=False,
        ),
    ] = None,
    subtitle_encoding: Annotated[
        str | None,
        Option(
            metavar="ENCODING",
            help="Encoding of subtitle files that are not in Unicode, such as windows-1250; kept for these "
            "videos until given again; by default, or auto, the likeliest by their letters.",
            show_default=False,
        ),
    ] = None,
    camera_zones: Annotated[
        list[str] | None,
        Option(
            "--camera-zone",
            metavar="CAMERA=ZONE",
            help="Zone of a camera's clock, by the make and model in its files: 'HERO9 Black=Europe/Berlin', "
            "+02:00 or UTC; repeatable; kept, also for later videos; with nothing behind = as the files say.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Options of :meth:`moviola.library.Indexer.index` by their names, about files in folders."""


def alert_options(
    alert: Annotated[
        list[str] | None, Option(help="Saved search that reports new findings; repeatable; all by default.")
    ] = None,
    alert_to: Annotated[
        list[str] | None,
        Option(
            metavar="URL|COMMAND",
            help="Address to which each new finding is posted as JSON, or a command that gets it on its "
            "standard input; one of each at most.",
        ),
    ] = None,
) -> Any:
    """Their :class:`moviola.search.alerts.AlertOptions`; words of the command are separated as in a shell."""
    from moviola.search.alerts import AlertOptions

    webhooks = [one for one in alert_to or () if re.match("https?://", one)]
    commands = [one for one in alert_to or () if one not in webhooks]
    if alert and not alert_to:
        raise BadParameter("--alert: say where findings go, with --alert-to")
    if alert_to and max(len(webhooks), len(commands)) > 1:
        raise BadParameter(f"--alert-to {alert_to[-1]!r}: give one address and one command at most")
    try:
        words = tuple(shlex.split("".join(commands)))
    except ValueError as error:
        raise BadParameter(f"--alert-to {commands[0]!r}: {error}; close the quotes") from error
    return AlertOptions(tuple(alert or ()), words, "".join(webhooks))


def reading(library: Path) -> Library:
    """A library that is not changed. It is imported late: help, and wrong usage, do not wait for it."""
    from moviola.search import Library

    return used(Library(library, read_only=True, device=usual_device()), library)


def reading_all(libraries: Sequence[Path]) -> Library:
    """The same of several libraries as one; of one, that."""
    if len(libraries) == 1:
        return reading(libraries[0])
    from moviola.search import Libraries

    return used(Libraries(libraries, device=usual_device()), *libraries)


def writing(library: Path) -> Library:
    """A library to be changed."""
    from moviola.search import Library

    return used(Library(library, create=False, device=usual_device()), library)


def used(opened: Library, *libraries: Path) -> Library:
    """A library that was opened; it is remembered, and offered where none is found."""
    from moviola.files.caches import note_used

    note_used(libraries)
    return opened


def on_command_line(context: Context, name: str) -> bool:
    """Whether an option was given as a word of the command, not by the environment or config.toml."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_given(context: Context, names: Iterable[str], reason: str) -> None:
    """Refuse options that were given as words of the command and would do nothing."""
    for name in names:
        if on_command_line(context, name):
            raise BadParameter(f"--{name.replace('_', '-')}: {reason}")


def is_library(folder: Path) -> bool:
    """Whether a folder holds a library, and not a new one is to be made there."""
    from moviola.library.disk.settings import SETTINGS_FILE

    return (folder / SETTINGS_FILE).is_file()


def for_new(context: Context, library: Path, name: str, value: str | None) -> str | None:
    """A setting of a new library. One that exists keeps its own; the command line's is compared with that."""
    return None if is_library(library) and not on_command_line(context, name) else value


def encoder_for(
    context: Context, library: Path, encoder: str | None, sources: Sequence[Path] = (), *, json: bool = True
) -> str | None:
    """The encoder to open a library with, see :func:`for_new`; that of a new one is a question, once,
    unless JSON is wanted (:mod:`moviola.cli.first_encoder`), and printed.
    """
    if encoder is not None or is_library(library):
        return for_new(context, library, "encoder", encoder)
    from moviola.cli.first_encoder import first_encoder

    return first_encoder(sources, json=json)


WeakOption = Annotated[bool, Option("--weak", help="Show weak moments too, after the others.")]
WhyOption = Annotated[bool, Option("--why", help="Show the evidence for each moment, with its score.")]


def with_options(
    name: str, *options: Callable[..., Any] | Sequence[inspect.Parameter]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A command with the options of functions, and others; its argument ``name`` has the values that are not
    None.
    """
    given = (
        each if isinstance(each, Sequence) else inspect.signature(each, eval_str=True).parameters.values()
        for each in options
    )
    shared = {one.name: one for each in given for one in each}

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**given: Any) -> Any:
            own = {key: value for key in shared if (value := given.pop(key)) is not None}
            return command(**given, **{name: own})

        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            parameters += shared.values() if parameter.name == name else [parameter]
        keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters]
        run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in keywords}
        return run

    return decorate
