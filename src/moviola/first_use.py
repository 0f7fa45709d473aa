"""Public names of a room that are imported when they are used.

A first search needs half of all modules, and imports take most of its time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["on_first_use"]


def on_first_use(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """A ``__getattr__`` for a package whose public names are imported when they are used.

    Args:
        package: its name.
        modules: names of its modules, and public names of each.
    """
    homes = {name: module for module, names in modules.items() for name in names}

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return found
