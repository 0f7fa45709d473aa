"""Addresses of Milvus servers, with the collection and the search type of a library."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

from moviola.errors import InvalidValue

__all__ = ["TOKEN_VARIABLE", "MilvusAddress"]

TOKEN_VARIABLE = "MOVIOLA_MILVUS_TOKEN"
"""Environment variable with the token (or ``user:password``) of the server."""

_FORM = "milvus://HOST:PORT/COLLECTION"
_SCHEMES = {"milvus": "http", "milvus+https": "https"}
_KINDS = ("flat", "ivf", "ivfpq")
_PORT, _TIMEOUT, _LISTS = 19530, 30.0, 1024
Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class MilvusAddress:
    """A server address: ``milvus://host:19530/collection?index=ivf&lists=1024``.

    Attributes:
        scheme: ``milvus``, or ``milvus+https`` for an encrypted connection.
        host, port: of the server; 19530 by default.
        collection: prefix of the names of the collections; letters, digits and ``_``.
        kind: search type of the server: ``flat`` exact, ``ivf`` and ``ivfpq`` as the types of those names.
        lists: number of lists per server segment, of ``ivf`` and ``ivfpq``.
        timeout: seconds to wait for the server.
        token: never printed.
    """

    scheme: str
    host: str
    port: int
    collection: str
    kind: str = "flat"
    lists: int = _LISTS
    timeout: float = field(default=_TIMEOUT, compare=False)
    token: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read an address; raises :class:`InvalidValue`, without a secret in its message, for other text."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port or _PORT
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError:
            raise _refused(text, f"not an address; write {_FORM}") from None
        if parts.scheme not in _SCHEMES or not host:
            raise _refused(text, f"not an address of a Milvus server; write {_FORM}")
        if parts.username is not None:
            raise _refused(text, f"names a user; put user:password into {TOKEN_VARIABLE}")
        collection = parts.path.removeprefix("/")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,199}", collection):
            raise _refused(text, f"a collection's name is letters, digits and _; write {_FORM}")
        unknown = options.keys() - {"index", "lists", "timeout", "token"}
        if unknown or parts.fragment:
            option = min(unknown, default="#")
            raise _refused(text, f"unknown option {option!r}; there are index, lists, timeout")
        kind = options.get("index", "flat")
        if kind not in _KINDS:
            raise _refused(text, f"index={kind} is unknown; choose {', '.join(_KINDS)}")
        lists = _number(text, options, "lists", _LISTS, 65536)
        timeout = _number(text, options, "timeout", _TIMEOUT, 3600)
        token = options.get("token", "")
        return cls(parts.scheme, host, port, collection, kind, lists, timeout, token)

    def __str__(self) -> str:
        """The address without its secret and without search options."""
        options = "" if self.kind == "flat" else f"?index={self.kind}&lists={self.lists}"
        return f"{self.scheme}://{self._server}/{self.collection}{options}"

    @property
    def uri(self) -> str:
        """The address as Milvus' client expects it."""
        return f"{_SCHEMES[self.scheme]}://{self._server}"

    @property
    def credential(self) -> str:
        """The token: that of the environment, else that of the address."""
        return os.environ.get(TOKEN_VARIABLE, "") or self.token

    @property
    def _server(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _number(text: str, options: dict[str, str], name: str, default: Number, most: int) -> Number:
    """An option as a number of its default's type, from 1 to ``most``."""
    value, kind = options.get(name, str(default)), type(default)
    try:
        number = kind(value)
    except ValueError:
        number = kind(0)
    if not 1 <= number <= most:
        said = "whole number" if kind is int else "number"
        raise _refused(text, f"{name}={value}: must be a {said} from 1 to {most}")
    return number


def _refused(text: str, reason: str) -> InvalidValue:
    """An error that shows the address without users and options: a token may be written in many ways."""
    shown = re.sub(r"(?s)//.*@.*|\?.*", "…", text)
    return InvalidValue(f"index {shown!r}: {reason}")
