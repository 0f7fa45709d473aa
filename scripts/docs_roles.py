"""An extension of Griffe: roles in docstrings, such as ``:func:`evaluate```, become links of the site."""

from __future__ import annotations

import re
from typing import Any

from griffe import AliasResolutionError, Extension, GriffeLoader, Module, NameResolutionError, Object

_ROLE = re.compile(r":\w+:`(~?)([\w.]+)`")
# "start, end: text" among arguments or attributes, with the lines that continue the text.
_TOGETHER = re.compile(r"^( {4,})(\w+(?:, \w+)+): (.*(?:\n\1 +\S.*)*)$", re.MULTILINE)


def one_each(found: re.Match[str]) -> str:
    """One entry per name, as parsers of docstrings want it; the text stands at the first."""
    indent, names, text = found.groups()
    first, *others = names.split(", ")
    rest = "".join(f"\n{indent}{name}: with `{first}`." for name in others)
    return f"{indent}{first}: {text}{rest}"


class Roles(Extension):
    """Rewrites the docstrings of a package once it is loaded."""

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **options: Any) -> None:
        """Go through all objects of the package."""
        del loader, options
        rewrite(pkg, pkg)


def rewrite(object_: Object, package: Module) -> None:
    """Links instead of roles, in an object's docstring and in those of its members."""
    if object_.docstring:
        text = _ROLE.sub(lambda found: link(found[2], object_, package), object_.docstring.value)
        object_.docstring.value = _TOGETHER.sub(one_each, text)
    for member in object_.members.values():
        if isinstance(member, Object):
            rewrite(member, package)


def link(name: str, object_: Object, package: Module) -> str:
    """A link to an object by its canonical path; the name alone where the reference has no entry of it."""
    shown = f"`{name.removeprefix('moviola.')}`"
    try:
        path = name if name.startswith("moviola.") else object_.resolve(name)
        found = package[path.removeprefix("moviola.")]
        target = found.final_target if found.is_alias else found
    except (KeyError, NameResolutionError, AliasResolutionError):  # a field, or a name of another package
        return shown
    return f"[{shown}][{target.path}]" if is_documented(target) else shown


def is_documented(target: Any) -> bool:
    """Whether the reference has an entry of it."""
    if target.is_module:
        return True
    holder = target.parent
    if holder.is_class:
        return not target.name.startswith("_") and target.has_docstring and is_documented(holder)
    return target.name in (holder.exports or [])
