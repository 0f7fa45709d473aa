"""What worker processes must do for indexing; a plug-in of ``moviola.workers`` has them.

A call of a function with one item is a task. Workers place tasks, notice processes and machines that die, and
try their tasks again elsewhere. Results come in the order of the items, so that they are stored the same in
every run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.files.reasons import reason
from moviola.library.disk.places import is_there
from moviola.plugins import plugin

__all__ = ["Lost", "Workers", "open_workers", "require_seen"]

Item = TypeVar("Item")
Result = TypeVar("Result")

LOCAL = "local"
"""Name of the plug-in for a number of processes on this machine; others go by the scheme of an address."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Result of an item whose workers died: number of attempts, and Ray's message."""

    reason: str


class Workers(Protocol):
    """Worker processes; started, or connected to, when first needed."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """End the processes, or leave the cluster, which drops unfinished work."""

    def require(self, check: Callable[[Item], object], item: Item) -> None:
        """Call a function, which raises where a machine cannot do the work, once on every machine.

        Raises:
            WorkersError: names the machine, with the function's error.
        """

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, gpu: bool = False
    ) -> Iterator[Result | Lost]:
        """Call a function with each item on all workers, and on a GPU where wanted and there is one; results
        come in the order of the items. Each worker unpickles the function once, so what it loads serves all
        its items.

        Raises:
            MoviolaError: raised by the function.
            WorkersError: the workers are gone.
        """


def open_workers(where: int | str) -> Workers:
    """A number of processes on this machine, or workers at an address such as ``"ray://host:port"``.

    Raises:
        InvalidValue: neither of them, or more than this machine has cores.
        MissingDependency: what runs them is not installed.
        BrokenPlugin: the plug-in fails.
    """
    scheme, separator, _ = str(where).partition("://")
    added = plugin("moviola.workers", scheme if separator else LOCAL)
    if added is None:
        raise InvalidValue(f"workers {str(where)!r}: give a number of them, or the address ray://HOST:PORT")
    found: Workers = added.make(Workers, where)
    return found


def require_seen(files: Iterable[tuple[Path, int]]) -> None:
    """Fail with :class:`UnreadableMedia` where this machine does not see the same files, by path and size in
    bytes, as the one that hands out the work.
    """
    for path, size in files:
        if not is_there(path, size):
            raise UnreadableMedia(path, reason("not on node", size=size))
