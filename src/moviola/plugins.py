"""Plug-ins: what other installed packages add to moviola, found by their entry points.

Examples:
    >>> from moviola.plugins import plugin
    >>> plugin("moviola.workers", "ray").point.attr
    'Workers'

=====================  =====================================================================================
``moviola.encoders``   a function of a name and a :class:`moviola.encoders.DeviceChoice`; gives a
                       :class:`moviola.encoders.FrameTextEncoder`
``moviola.readers``    a function of a language, or None; gives a :class:`moviola.encoders.readers.TextReader`
                       or a :class:`moviola.encoders.readers.SpeechReader`
``moviola.exporters``  a :class:`moviola.export.MomentFormat` of the entry point's name
``moviola.refiners``   a function of a model's folder, its revision, a device, ``context`` and
                       ``calibration``; gives a :class:`moviola.retrieval.Refiner`. The entry point's name is
                       the ``architecture`` of the folder's ``config.json``
``moviola.indexes``    a subclass of :class:`moviola.index.Index`; one that has addresses goes by their scheme
``moviola.models``     a function of a model's folder and a device of torch; gives a
                       :class:`moviola.retrieval.opening.OpenModel`. The entry point's name is the
                       ``architecture`` of the folder's ``config.json``
``moviola.workers``    a function of a number of processes, or of an address; gives
                       :class:`moviola.library.ingest.workers.Workers`. The entry point's name is the scheme
                       of the address, or ``local``
``moviola.commands``   a ``typer.Typer``, whose commands and groups become those of ``moviola``. The entry
                       point's name is that of a command or group in it
``moviola.routes``     a :class:`ServerAddition`
=====================  =====================================================================================

A plug-in is imported when its name is used, never before. Names of moviola's own come first. Code that
calls plug-ins runs inside :func:`naming_plugins`.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from moviola.errors import BrokenPlugin, MoviolaError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUPS", "Plugin", "ServerAddition", "naming_plugins", "plugin", "plugins", "server_additions",
]  # fmt: skip

GROUPS = {
    "moviola.encoders": "encoder",
    "moviola.readers": "reader",
    "moviola.exporters": "exporter",
    "moviola.refiners": "refiner",
    "moviola.indexes": "index",
    "moviola.models": "model",
    "moviola.commands": "commands",
    "moviola.routes": "addition to the server",
    "moviola.workers": "workers",
}
"""Groups of entry points, and what each entry point in them is."""

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point in one of :data:`GROUPS`.

    Attributes:
        point: name, group and object.
        distribution: name and version of the package that has it.
    """

    point: EntryPoint
    distribution: str

    def __str__(self) -> str:
        return f"{GROUPS[self.point.group]} {self.point.name!r} of {self.distribution}"

    def load(self, kind: type[Kind]) -> Kind:
        """The object.

        Raises:
            BrokenPlugin: it cannot be imported, or is something else.
        """
        try:
            found = self.point.load()
        except Exception as error:  # code of others may raise anything
            raise self.broken(error) from error
        if not isinstance(found, kind):
            raise self.broken(TypeError(f"{self.point.value} is no {kind.__name__}"))
        return found

    def make(self, contract: type[Any], *args: Any, **options: Any) -> Any:
        """What the object gives when it is called, which must have all members of a protocol.

        Raises:
            BrokenPlugin: it cannot be imported, returns None or what lacks a member, or fails by an error
                that is not moviola's.
        """
        called: Any = self.load(object)
        try:
            if (made := called(*args, **options)) is None:
                raise TypeError(f"{self.point.value} returns nothing")
            if lacking := _lacking(made, contract):
                kind = f"{contract.__module__}.{contract.__qualname__}"
                raise TypeError(
                    f"{type(made).__qualname__} lacks {', '.join(lacking)}, which {kind} asks for"
                )
            return made
        except MoviolaError:
            raise
        except Exception as error:
            raise self.broken(error) from error

    def broken(self, error: Exception) -> BrokenPlugin:
        """The error that names the plug-in and what failed."""
        return BrokenPlugin(f"{self}: {type(error).__name__}: {error}; update the package, or uninstall it")


def _lacking(made: object, contract: type[Any]) -> list[str]:
    """Public members of a protocol that an object lacks; those of its class are not evaluated."""
    parts = [part for part in reversed(contract.__mro__) if getattr(part, "_is_protocol", False)]
    names = dict.fromkeys(name for part in parts for name in (*part.__annotations__, *vars(part)))
    wanted = (name for name in names if not name.startswith("_"))
    return [name for name in wanted if not (hasattr(type(made), name) or hasattr(made, name))]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddition:
    """What a plug-in adds to a library's server, below ``/api/NAME``; ``NAME`` is that of the entry point.

    Attributes:
        options: function whose parameters are options of ``moviola serve``, as Typer reads them; gives the
            settings, None where the addition is not wanted.
        opened: function of the served :class:`moviola.Library` and the settings; gives what the routes work
            on, with a method ``close``.
        router: function that gives FastAPI's ``APIRouter``; ``service.additions.get(NAME)`` in a route is
            what was opened, None without settings.
        right: right that requests need which are not GET or HEAD.
        pages: folder of files that are served below ``/static``; each ``PAGE.html`` in it is at ``/PAGE``.
    """

    options: Callable[..., Any]
    opened: Callable[[Any, Any], Any]
    router: Callable[[], Any]
    right: Literal["read", "change"] = "change"
    pages: Path | None = None


def plugins(group: str | None = None) -> list[Plugin]:
    """The installed plug-ins, of one group or of all; none is imported."""
    from importlib.metadata import entry_points  # its import takes a twentieth of a cold search

    groups = (group,) if group else tuple(GROUPS)
    return [
        Plugin(point, f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package")
        for one in groups
        for point in sorted(entry_points(group=one))
    ]


def plugin(group: str, name: str) -> Plugin | None:
    """The plug-in of a name; None without.

    Raises:
        BrokenPlugin: two packages have one of that name.
    """
    found = [one for one in plugins(group) if one.point.name == name]
    if len(found) > 1:
        raise BrokenPlugin(f"{' and '.join(map(str, found))} have one name; uninstall one of the packages")
    return found[0] if found else None


@cache
def server_additions() -> dict[str, ServerAddition]:
    """What installed packages add to ``moviola serve``, by name.

    Raises:
        BrokenPlugin: one cannot be imported, is something else, or shares its name with another one.
    """
    names = dict.fromkeys(one.point.name for one in plugins("moviola.routes"))
    found = ((name, plugin("moviola.routes", name)) for name in names)
    return {name: one.load(ServerAddition) for name, one in found if one is not None}


@contextmanager
def naming_plugins() -> Iterator[None]:
    """Errors that a plug-in raises at its work, other than moviola's own, as errors that name its package.

    Raises:
        BrokenPlugin: an error comes of a plug-in's module, or of what that calls.
    """
    try:
        yield
    except MoviolaError:
        raise
    except Exception as error:
        if broken := _blamed(error):
            raise broken from error
        raise


def _blamed(error: Exception) -> BrokenPlugin | None:
    """The error that names a package; None where the last code of moviola's or of plug-ins is not of one."""
    packages = {one.point.module.partition(".")[0]: one.distribution for one in plugins()}
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        top = str(frame.f_globals.get("__name__")).partition(".")[0]
        if top == "moviola":
            return None
        if top in packages:
            return BrokenPlugin(
                f"{packages[top]}: {frame.f_code.co_qualname} failed ({type(error).__name__}: {error}); "
                "update the package, or uninstall it"
            )
    return None
