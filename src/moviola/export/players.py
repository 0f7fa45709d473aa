"""Players for moments: a table of programs, each with its way to start at a time."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from moviola.errors import InvalidValue, NotFound
from moviola.media import lead_of
from moviola.types import Span

__all__ = ["PLAYERS", "folder_command", "play", "player_command"]


class _Player(NamedTuple):
    """Names or paths of a program, its arguments, and those for a film that goes on in further files, which
    stand for ``{next}``; empty for a player that takes one.
    """

    programs: tuple[str, ...]
    arguments: str
    for_several: str = ""


PLAYERS: dict[str, _Player] = {
    # Options between braces are of one file.
    "mpv": _Player(("mpv",), "--start={start} -- {path}", "--{{ --start={start} {path} --}} {next}"),
    "vlc": _Player(
        ("vlc", "/Applications/VLC.app/Contents/MacOS/VLC", r"C:\Program Files\VideoLAN\VLC\vlc.exe"),
        "--start-time={start} {path}",
        "{path} :start-time={start} {next}",
    ),
    "ffplay": _Player(("ffplay",), "-ss {start} -i {path}"),
}
"""Players by name, in order of preference."""

OPENERS: dict[str, tuple[str, ...]] = {
    "linux": ("xdg-open",),
    "darwin": ("open",),
    "win32": ("cmd", "/c", "start", ""),
}
"""Programs by ``sys.platform`` that open a file in the system's default player, from its beginning."""


def player_command(
    path: str | Path, span: Span, player: str | None = None, following: Sequence[str | Path] = ()
) -> list[str]:
    """The command that plays a moment.

    Args:
        path: the video.
        span: the moment; playback continues after its end.
        player: a name in :data:`PLAYERS`, or a command in which ``{path}`` stands for the file, and
            ``{start}`` and ``{end}``, if present, for seconds. None: the first installed one of the table,
            else the system's default player, which starts at the beginning.
        following: absolute paths of the files in which a recording goes on. mpv and VLC play them after the
            first one, and a command in which a word is ``{next}``; others play the first alone.

    Raises:
        NotFound: the player is not installed, or none is.
        InvalidValue: a command without ``{path}``, or with other braces.
    """
    if player is None:
        for known in PLAYERS.values():
            if program := _installed(known.programs):
                return [program, *_filled(_arguments(known, following), path, span, following)]
        opener = OPENERS.get(sys.platform, ())
        if opener and shutil.which(opener[0]):
            return [*opener, str(path)]
        raise NotFound(f"no player is installed; install {', '.join(PLAYERS)}, or name one with --player")
    if player in PLAYERS:
        known = PLAYERS[player]
        program = _installed(known.programs)
        if program is None:
            raise NotFound(f"{player}: not installed; install it, or name another player")
        return [program, *_filled(_arguments(known, following), path, span, following)]
    if "{path}" not in player:
        raise InvalidValue(
            f"player {player!r}: give {', '.join(PLAYERS)}, or a command with {{path}} and {{start}} in it, "
            "for instance 'mpv --start={start} {path}'"
        )
    name, *words = _filled(player, path, span, following)
    program = shutil.which(name)
    if program is None:
        raise NotFound(f"{name}: no such program; name one that is installed")
    return [program, *words]


def folder_command(path: str | Path) -> list[str]:
    """The command that shows a file in the system's file manager; on Linux its folder.

    Raises:
        NotFound: no program to open folders with is installed.
    """
    path = Path(path)
    shown = {"darwin": ["-R", str(path)], "win32": [f"/select,{path}"]}.get(sys.platform, [str(path.parent)])
    program = shutil.which({"darwin": "open", "win32": "explorer"}.get(sys.platform, "xdg-open"))
    if program is None:
        raise NotFound(f"{path.parent}: no program opens folders; install xdg-utils, or copy the path")
    return [program, *shown]


def play(command: Sequence[str]) -> None:
    """Start a player and leave it running.

    Raises:
        NotFound: it cannot be started.
    """
    nothing = subprocess.DEVNULL
    try:
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
    except OSError as error:
        raise NotFound(f"{command[0]}: cannot be started ({error.strerror}); name another player") from error


def _installed(names: Sequence[str]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


def _arguments(player: _Player, following: Sequence[str | Path]) -> str:
    return (player.for_several if following else "") or player.arguments


def _filled(arguments: str, path: str | Path, span: Span, following: Sequence[str | Path]) -> list[str]:
    """The words of a command; split before the path is inserted, so that it stays one word."""
    start, end = (time + lead_of(path) for time in (span.start, span.end))
    values = {"path": str(path), "start": f"{start:.3f}", "end": f"{end:.3f}"}
    try:
        words = (
            map(str, following) if word == "{next}" else [word.format(**values)]
            for word in shlex.split(arguments)
        )  # fmt: skip
        return [*chain.from_iterable(words)]
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        raise InvalidValue(
            f"player {arguments!r}: only {{path}}, {{start}}, {{end}} and the word {{next}} may be in "
            "braces, and quotes must be closed"
        ) from error
