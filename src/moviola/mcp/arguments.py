"""Arguments that a tool cannot take, said so that an agent can mend them."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

__all__ = ["complaint", "require_known"]

# What agents call arguments that have another name here.
_MEANT = {"not": "without", "exclude": "without", "query": "text", "limit": "top", "top_k": "top"}


def require_known(tool: str, given: Collection[str], known: Collection[str]) -> None:
    """Refuse arguments that a tool does not have: passed over in silence they would change the answer.

    Raises:
        ToolError: naming them, and those that there are.
    """
    for name in sorted(set(given) - set(known)):
        meant = _MEANT.get(name, "")
        likely = [meant] if meant in known else get_close_matches(name, known, 1)
        hint = f"did you mean {likely[0]}? " if likely else ""
        raise ToolError(
            f"{name!r:.100}: {tool} has no such argument; {hint}It takes {', '.join(sorted(known))}"
        )


def complaint(error: ValidationError) -> str:
    """The first value that is wrong: which argument, what was given, what it should be."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"{place}: is missing; give it"
    wanted = _wanted(first)
    return f"{place} {first['input']!r:.100}: give {wanted}"


def _wanted(error: Any) -> str:
    limits = error.get("ctx", {})
    match error["type"]:
        case "less_than_equal":
            return f"at most {limits['le']:g}"
        case "greater_than_equal":
            return f"at least {limits['ge']:g}"
        case "string_too_long":
            return f"at most {limits['max_length']} characters"
        case "too_long":
            return f"at most {limits['max_length']}"
        case "literal_error":
            return f"one of {limits['expected']}"
    return str(error["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
