"""Vectors on a Milvus server, for libraries that outgrow one machine. Its client is imported here only.

Published vectors are on the server; later ones are compared here, exactly, until they are written. So a
library opened read-only changes nothing there, and the manifest commits as with every other type: it names a
file with the collection's name and the ids that the server has acknowledged. Rows on the server that are not
in that file (of a writer that was killed before its commit, or is at work) are never found.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import secrets
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray

from moviola.errors import IndexServerError, InvalidValue, MissingDependency, SegmentIndexError
from moviola.files.file_rows import Rows
from moviola.index.contract import Ids, IndexStats, parts_of
from moviola.index.flat import FlatIndex
from moviola.index.ivf import IVFIndex, parts_of_codes
from moviola.index.trained import TrainedIndex

__all__ = ["TOKEN_VARIABLE", "MilvusAddress", "MilvusIndex"]

TOKEN_VARIABLE = "MOVIOLA_MILVUS_TOKEN"
"""Environment variable with the token (or ``user:password``) of the server."""

_FORM = "milvus://HOST:PORT/COLLECTION"
_SCHEMES = {"milvus": "http", "milvus+https": "https"}
_SEARCHES = ("flat", "ivf", "ivfpq")
_PORT, _TIMEOUT, _LISTS = 19530, 30.0, 1024
Number = TypeVar("Number", int, float)

# Ids that differ in these bits alone belong to one video (moviola.retrieval.segments): one number covers them
# in a filter, which is then fifteen times as fast. Other ids are listed one by one.
_BLOCK_BITS = 20

# The server's maximum per search.
_DEEPEST = 16_384
# Extra hits beyond the depth, to see whether equals of the last one follow.
_SPARE = 16
_BYTES_AT_ONCE, _IDS_AT_ONCE, _QUERIES_AT_ONCE = 1 << 23, 4096, 64
_HELD_BYTES = 1 << 28
_OWNER = "moviola.owner"
# Milvus' codes for a missing collection, and for one that is not yet in memory.
_NOT_FOUND, _NOT_LOADED = 100, (101, 103)
_PROBES = 128


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
        if kind not in _SEARCHES:
            raise _refused(text, f"index={kind} is unknown; choose {', '.join(_SEARCHES)}")
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


class MilvusIndex(TrainedIndex):
    """Vectors in a collection of a Milvus server; :meth:`at` gives the type for an address.

    The index types are Milvus' own: ``FLAT`` is exact, ``IVF_FLAT`` and ``IVF_PQ`` are those of the paper,
    with ``parameters["probes"]`` lists looked at in each of the server's segments.

    Writing inserts and deletes, and ends when the server answers with all of it. One's own writes are seen at
    once; those of others on a cluster of several query nodes after at most five seconds (Milvus' "Bounded").
    """

    LEAST = sys.maxsize  # nothing is learnt here
    ON_SERVER = True
    ADDRESS: ClassVar[MilvusAddress]

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        if self.LADDERS:
            self.parameters = {"probes": _PROBES}
        self._collection = ""
        self._main = np.empty(0, np.int64)
        self._writing = False
        self._connected: Any = None

    @classmethod
    def at(cls, address: str) -> type[Self]:
        """The type whose vectors are at an address; errors as in :meth:`MilvusAddress.of`."""
        place = MilvusAddress.of(address)
        ladders = {} if place.kind == "flat" else IVFIndex.LADDERS
        members = {"__module__": cls.__module__, "ADDRESS": place, "LADDERS": ladders}
        return type(cls.__name__, (cls,), members)

    @classmethod
    def shown(cls) -> str:
        """The address without its secret."""
        return str(cls.ADDRESS)

    # -- files -------------------------------------------------------------------------------------------

    def vectors_of(self, ids: Ids) -> None:
        """None: additions go to the server with every write."""

    def write(self, path: Path) -> None:
        """Update the server, and write a file that names its content.

        Raises:
            IndexServerError: the server does not answer, or refuses; running the same again completes it.
        """
        with self._explained():
            self._upload()
        with path.open("wb") as file:
            np.savez(file, place=str(self.ADDRESS), collection=self._collection, dim=self.dim, ids=self._main)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the ids on the server, and their place; the server itself is first contacted by a search."""
        try:
            with np.load(path, allow_pickle=False) as stored:
                place, collection = str(stored["place"]), str(stored["collection"])
                index = cls(int(stored["dim"]))
                index._main = np.asarray(stored["ids"], np.int64)
        except (OSError, ValueError, KeyError, EOFError) as error:
            raise SegmentIndexError(f"{path}: damaged index file ({error}); rebuild it") from error
        if place != str(cls.ADDRESS):
            raise SegmentIndexError(f"{path}: its vectors are at {place}, not at {cls.ADDRESS}; rebuild it")
        index._collection = collection
        return index

    def published(self) -> None:
        """Drop the collections that earlier writes of this index left on the server."""
        with self._explained():
            client = self._client()
            for name in client.list_collections(timeout=self.ADDRESS.timeout):
                if name.startswith(self._stem) and name != self._collection and self._owned(name):
                    client.drop_collection(name, timeout=self.ADDRESS.timeout)

    # -- what is on the server ---------------------------------------------------------------------------

    def take_over(self) -> bool:
        """Compare with the server before a change: ownership and number.

        A collection of another library (this one is a copy, or was moved) is left alone: all vectors go into
        a new one. Ids that are not on the server are dropped, so that the caller adds them again. From now on
        additions go to the server in large batches.
        """
        self._writing = True
        with self._explained():
            if self._exists():
                if self._owned(self._collection):
                    return self._count() != len(self._main) and self.take_stock()
                self._collection = ""
        return self._hold(np.empty(0, np.int64))

    def take_stock(self) -> bool:
        """Compare with the server id by id, and adopt its state."""
        found = []
        with self._explained():
            if self._exists():
                pages = self._answer(
                    "query_iterator", batch_size=_DEEPEST, output_fields=["id"], consistency_level="Strong"
                )
                while page := pages.next():
                    found.append(np.array([row["id"] for row in page], np.int64))
                pages.close()
        return self._hold(np.unique(np.concatenate(found)) if found else np.empty(0, np.int64))

    def _hold(self, ids: Ids) -> bool:
        if np.array_equal(ids, self._main):
            return False
        self._main, self._sorted = ids, None
        self._gone = np.intersect1d(self._gone, ids)
        self.origin = ""  # else the file that it was read from would stay, for nothing was added or removed
        return True

    def _upload(self) -> None:
        if not self._collection and not len(self._recent):
            return
        client, timeout = self._client(), self.ADDRESS.timeout
        if not self._exists():
            self._create()
        for part in parts_of(len(self._gone), _IDS_AT_ONCE):
            client.delete(self._collection, ids=self._gone[part].tolist(), timeout=timeout)
        recent = np.sort(self._recent.ids())
        for part in parts_of(len(recent), max(1, _BYTES_AT_ONCE // (4 * self.dim))):
            ids = recent[part]
            vectors = self._recent.vectors_of(ids)
            rows = [
                {"id": number, "block": number >> _BLOCK_BITS, "vector": vector}
                for number, vector in zip(ids.tolist(), vectors, strict=True)
            ]
            # An insert would duplicate rows of an interrupted write, or that the client sends twice.
            client.upsert(self._collection, rows, timeout=timeout)
        self._main = np.union1d(np.setdiff1d(self._main, self._gone), recent)
        self._gone, self._recent = self._gone[:0], FlatIndex(self.dim)
        there = self._count()
        if there != len(self._main):
            raise IndexServerError(
                f"{self.ADDRESS}: {there} vectors in {self._collection}, {len(self._main)} were put there; "
                "does something else write to it? Run the same command again"
            )

    def _create(self) -> None:
        """Make a collection: under the name of a lost one, so that readers continue, else a new one."""
        from pymilvus import DataType, MilvusClient

        self._collection = self._collection or self._stem + secrets.token_hex(6)
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        schema.add_field("block", DataType.INT64)
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=self.dim)
        index = MilvusClient.prepare_index_params()
        kind, params = self._index_type()
        index.add_index("vector", index_type=kind, metric_type="IP", params=params)
        # The owner at once: later alterations do not survive a restart of the server.
        self._client().create_collection(
            self._collection, schema=schema, index_params=index, properties={_OWNER: self._owner},
            timeout=self.ADDRESS.timeout,
        )  # fmt: skip

    def _index_type(self) -> tuple[str, dict[str, int]]:
        """Milvus' name of the type, with its parameters."""
        lists = {"nlist": self.ADDRESS.lists}
        if self.ADDRESS.kind == "flat":
            return "FLAT", {}
        if self.ADDRESS.kind == "ivf":
            return "IVF_FLAT", lists
        return "IVF_PQ", {**lists, "m": parts_of_codes(self.dim), "nbits": 8}

    def _exists(self) -> bool:
        return bool(self._collection) and bool(
            self._client().has_collection(self._collection, timeout=self.ADDRESS.timeout)
        )

    def _count(self) -> int:
        """Number of vectors in the collection; returns when all writes are searchable."""
        (row,) = self._answer("query", output_fields=["count(*)"], consistency_level="Strong")
        return int(row["count(*)"])

    @property
    def _stem(self) -> str:
        return f"{self.ADDRESS.collection}_{Path(self.home).name}_"

    @property
    def _owner(self) -> str:
        return f"{platform.node()}:{self.home}"

    def _owned(self, collection: str) -> bool:
        properties = self._client().describe_collection(collection, timeout=self.ADDRESS.timeout)
        return bool(properties.get("properties", {}).get(_OWNER) == self._owner)

    # -- contract ----------------------------------------------------------------------------------------

    def stats(self) -> IndexStats:
        lists = 0 if self.ADDRESS.kind == "flat" else self.ADDRESS.lists
        return self._stats(lists, self._index_type()[1].get("m", 4 * self.dim))

    def _add(self, ids: Ids, vectors: NDArray[np.float32]) -> None:
        super()._add(ids, vectors)
        if self._writing and 4 * self.dim * len(self._recent) > _HELD_BYTES:
            with self._explained():
                self._upload()

    def _main_count(self) -> int:
        return len(self._main)

    def _main_ids(self) -> Ids:
        return self._main

    def _forget(self) -> None:
        self._collection, self._main = "", np.empty(0, np.int64)

    def _train(self, ids: Ids, vectors: Rows) -> NoReturn:
        raise AssertionError("nothing is learnt from vectors here")

    def _search_main(
        self, queries: NDArray[np.float32], depth: int, only: Ids | None
    ) -> tuple[NDArray[np.float32], Ids]:
        if depth > _DEEPEST:
            raise InvalidValue(f"depth {depth}: {self.ADDRESS} (Milvus) returns at most {_DEEPEST} segments")
        condition = "" if only is None or len(only) == len(self._main) else _filter(only, self._main)
        parts = parts_of(len(queries), _QUERIES_AT_ONCE)
        with self._explained():
            found = [self._nearest(queries[rows], depth, condition) for rows in parts]
        scores, ids = (np.concatenate(column) for column in zip(*found, strict=True))
        return scores, ids

    def _nearest(
        self, queries: NDArray[np.float32], depth: int, condition: str
    ) -> tuple[NDArray[np.float32], Ids]:
        """The best of some queries; repeated with more depth where equals of the last one may be missing."""
        scores = np.empty((len(queries), depth), np.float32)
        ids = np.empty((len(queries), depth), np.int64)
        left, limit, everywhere = np.arange(len(queries)), min(depth + _SPARE, _DEEPEST), not self.LADDERS
        while len(left):
            again = []
            for row, hits in zip(left, self._hits(queries[left], limit, condition, everywhere), strict=True):
                own_scores, own_ids = self._known(hits)
                exhausted = len(hits) < limit or limit == _DEEPEST
                enough = len(own_ids) >= depth
                if enough and (exhausted or own_scores[depth - 1] > hits.distances[-1]):
                    scores[row], ids[row] = own_scores[:depth], own_ids[:depth]
                elif exhausted and everywhere:
                    raise IndexServerError(
                        f"{self.ADDRESS}: {len(own_ids)} of {depth} vectors are found in {self._collection}; "
                        "the others were lost there, or are being changed: try again, or upload them again "
                        "with `moviola repair`"
                    )
                else:
                    again.append(row)
            left, limit, everywhere = np.array(again, np.int64), min(4 * limit, _DEEPEST), True
        return scores, ids

    def _known(self, hits: Any) -> tuple[NDArray[np.float32], Ids]:
        """Scores and ids of a query's published hits, by falling score and rising id."""
        scores, ids = np.array(hits.distances, np.float32), np.array(hits.ids, np.int64)
        own = np.flatnonzero(self.has(ids) & ~self._recent.has(ids))
        order = own[np.lexsort((ids[own], -scores[own]))]
        return scores[order], ids[order]

    def _hits(
        self, queries: NDArray[np.float32], limit: int, condition: str, everywhere: bool
    ) -> Sequence[Any]:
        probes = self.ADDRESS.lists if everywhere else self.parameters.get("probes", 1)
        params = {"params": {"nprobe": min(probes, self.ADDRESS.lists)}} if self.LADDERS else {}
        answers: Sequence[Any] = self._answer(
            "search", data=list(queries), filter=condition, limit=limit, search_params=params,
            consistency_level="Bounded",
        )  # fmt: skip
        return answers

    # -- connection --------------------------------------------------------------------------------------

    def _client(self) -> Any:
        if self._connected is None:
            try:
                from pymilvus import MilvusClient
            except ImportError as error:
                raise MissingDependency(
                    f"{self.ADDRESS}: Milvus' client is not installed", "milvus"
                ) from error
            # The client logs every failure with a traceback before it raises it; our errors are enough.
            logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)
            place = self.ADDRESS
            self._connected = MilvusClient(place.uri, token=place.credential, timeout=place.timeout)
        return self._connected

    def _answer(self, method: str, **values: Any) -> Any:
        """The server's answer, once the collection is in memory: after a start that takes a while."""
        from pymilvus import MilvusException

        client, timeout = self._client(), self.ADDRESS.timeout
        ask = partial(getattr(client, method), self._collection, timeout=timeout, **values)
        try:
            return ask()
        except MilvusException as error:
            if error.code not in _NOT_LOADED:
                raise
            client.load_collection(self._collection, timeout=timeout)
            return ask()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Errors of the server or the connection as errors that name the address and the remedy."""
        try:
            yield
        except Exception as error:
            if not type(error).__module__.startswith(("pymilvus", "grpc")):
                raise
            self._connected = None
            if getattr(error, "code", None) == _NOT_FOUND:
                problem = f"no collection {self._collection} on the server"
                remedy = "`moviola repair` uploads it again from the features"
            else:
                problem = str(getattr(error, "message", error)).strip().rstrip(".")
                remedy = (
                    f"start the server, check that it answers and that {TOKEN_VARIABLE} is right "
                    "if it needs a token, and run the same again; nothing that was indexed is lost, and "
                    "`moviola library use --index auto` searches without it"
                )
            raise IndexServerError(f"{self.ADDRESS}: {problem}; {remedy}") from error


def _filter(wanted: Ids, present: Ids) -> str:
    """Milvus' expression for some of the ids that are present: whole blocks, then single ids."""
    blocks, counts = np.unique(wanted >> _BLOCK_BITS, return_counts=True)
    all_blocks, all_counts = np.unique(present >> _BLOCK_BITS, return_counts=True)
    whole = blocks[counts == all_counts[np.searchsorted(all_blocks, blocks)]]
    single = wanted[~np.isin(wanted >> _BLOCK_BITS, whole)]
    terms = (("block", whole), ("id", single))
    return " or ".join(f"{name} in [{','.join(map(str, ids.tolist()))}]" for name, ids in terms if len(ids))
