"""Worker processes on this machine or on many: by Ray, which is imported here and nowhere else.

A call of a function with one item is a task of Ray's. Ray places tasks on nodes, notices processes and nodes
that die, and tries their tasks again elsewhere. This module adds that results come in the order of the items,
so that they are stored the same in every run; that few items are in flight at a time; and that a task whose
worker died at every attempt is given up, while the others continue.

A node's cores are shared out: each task has some for itself, and its libraries use as many threads.
"""

from __future__ import annotations

import logging
import math
import os
import pickle
import secrets
import signal
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from types import ModuleType
from typing import Any, Self, TypeVar

from moviola.errors import InvalidValue, MissingDependency, MoviolaError, WorkersError
from moviola.library.ingest.workers import Lost
from moviola.threads import available_cores

__all__ = ["ATTEMPTS", "Share", "Workers", "shared_out"]

Item = TypeVar("Item")
Result = TypeVar("Result")

ATTEMPTS = 3
"""Attempts per item while its workers die."""

REMOTE = "ray://"

# Cores per task of a cluster, where nodes have enough: one decodes while the other encodes.
_CORES = 2
# Environment variables that computing libraries read when they are loaded.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Items in flight per running task: a fast worker continues while others are at work.
_AHEAD = 4
# Bytes of results in memory before Ray writes them to disk, on this machine only.
_STORE = 128 * 2**20
# Seconds between checks whether any node is left.
_LOOK = 20.0


@dataclass(frozen=True, slots=True)
class Share:
    """Number of tasks that run at once, and cores of each, both >= 1; and its share of a GPU, in [0, 1], a
    multiple of .0001: 0 for all if any node has none, so that all compute alike.
    """

    tasks: int
    cores: int
    gpus: float


def shared_out(nodes: Sequence[Mapping[str, float]], cores: int = _CORES) -> Share:
    """Share out nodes, at least one, by their resources, ``"CPU"`` >= 1 and perhaps ``"GPU"``; the cores
    wanted per task are limited to those of the smallest node.
    """
    cores = min(cores, *(int(node["CPU"]) for node in nodes))
    tasks = [int(node["CPU"]) // cores for node in nodes]
    gpus = min(node.get("GPU", 0.0) / count for node, count in zip(nodes, tasks, strict=True))
    return Share(sum(tasks), cores, math.floor(min(gpus, 1.0) * 10_000) / 10_000)


class Workers:
    """Worker processes; started, or connected to, when first needed: a number of them on this machine, or
    ``"ray://host:port"``, the address of a cluster's Ray Client server.

    Raises:
        InvalidValue: neither of them, or more than this machine has cores.
        MissingDependency: Ray is not installed.
    """

    def __init__(self, where: int | str) -> None:
        self._where = _place(where)
        self._ray = _import_ray(alone=isinstance(self._where, int))
        self._cores = available_cores() // self._where if isinstance(self._where, int) else _CORES
        self._connected = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes, or leave the cluster, which drops unfinished work."""
        if self._connected:
            self._ray.shutdown()
            self._connected = False
            if self._handler is not None and threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, self._handler)

    def require(self, check: Callable[[Item], object], item: Item) -> None:
        """Call a function, which raises where a node cannot do the work, once on every living node of a
        cluster; processes of this machine need no check.

        Raises:
            WorkersError: names the node, with the function's error.
        """
        if isinstance(self._where, int):
            return
        self._connect()
        raised = self._ray.exceptions
        pinned = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        pickled = self._ray.cloudpickle.dumps(check)
        try:
            answers = [
                (node, self._task(num_cpus=0, scheduling_strategy=there).remote(pickled, item))
                for node in self._nodes()
                for there in [pinned(node["NodeID"], soft=False)]
            ]
        except ImportError as error:
            raise WorkersError(f"{self._where}: its head: {error}; install the same moviola there") from error
        for node, answer in answers:
            try:
                self._ray.get(answer)
            except (raised.TaskUnschedulableError, raised.NodeDiedError):
                continue  # it has died, which Ray notices after a while, and gets no work
            except raised.RayError as error:
                name = f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})"
                raise WorkersError(f"{self._where}: node {name}: {_in_one_line(error)}") from error

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, gpu: bool = False
    ) -> Iterator[Result | Lost]:
        """Call a function with each item on all workers, and on a GPU where wanted and there is one; results
        come in the order of the items. Each worker unpickles the function once, so what it loads serves all
        its items.

        Raises:
            MoviolaError: raised by the function.
            WorkersError: the cluster is gone, or has no node left.
        """
        self._connect()
        try:
            share = shared_out([node["Resources"] for node in self._nodes()], self._cores)
            variables = dict.fromkeys(_THREADS, str(share.cores))
            task = self._task(
                num_cpus=share.cores, num_gpus=share.gpus if gpu else 0, max_retries=ATTEMPTS - 1,
                scheduling_strategy="SPREAD", runtime_env={"env_vars": variables},
            )  # fmt: skip
            pickled = self._ray.cloudpickle.dumps(function)
            in_flight: deque[Any] = deque()
            for item in items:
                if len(in_flight) == _AHEAD * share.tasks:
                    yield self._result(in_flight.popleft())
                in_flight.append(task.remote(pickled, item))
            while in_flight:
                yield self._result(in_flight.popleft())
        except ConnectionError as error:
            raise WorkersError(
                f"{self._where}: the connection to Ray was lost ({error}); finished videos are in, "
                "so run the same command again"
            ) from error

    def _result(self, answer: Any) -> Any:
        raised = self._ray.exceptions
        died = (
            raised.WorkerCrashedError, raised.NodeDiedError, raised.ObjectLostError, raised.OutOfMemoryError,
        )  # fmt: skip
        try:
            while not self._ray.wait([answer], timeout=_LOOK)[0]:
                self._nodes()
            return self._ray.get(answer)
        except raised.RayTaskError as error:
            if isinstance(error.cause, MoviolaError):
                raise error.cause from error
            raise
        except died as error:
            return Lost(f"its worker died at each of {ATTEMPTS} attempts ({_in_one_line(error)})")
        except raised.RayError as error:
            raise WorkersError(f"{self._where}: {_in_one_line(error)}") from error

    def _connect(self) -> None:
        if self._connected:
            return
        ray = self._ray
        if ray.is_initialized():
            raise WorkersError("this process is connected to Ray already; call `ray.shutdown()` first")
        self._handler = signal.getsignal(signal.SIGTERM)
        self._connected = True
        try:
            if isinstance(self._where, int):
                ray.init(
                    "local", num_cpus=self._where * self._cores, object_store_memory=_STORE,
                    include_dashboard=False, log_to_driver=False, logging_level="ERROR",
                )  # fmt: skip
            else:
                self._join(self._where)
        except (OSError, RuntimeError, ray.exceptions.RayError) as error:
            raise WorkersError(
                f"workers {self._where}: Ray cannot be used ({_in_one_line(error)}); start a cluster's head "
                "with `ray start --head --ray-client-server-port PORT`, with the same versions of Python "
                "and Ray; if it wants a token, set RAY_AUTH_MODE=token"
            ) from error

    def _join(self, address: str) -> None:
        logging.getLogger("ray.client_builder").setLevel(logging.WARNING)  # it logs arguments
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the timeout, which is raised, too
            for knocks in count(1):
                try:
                    self._ray.init(address, log_to_driver=False)
                    return
                except ConnectionAbortedError:  # the process that the head forks for a client may die at once
                    if knocks == ATTEMPTS:
                        raise

    def _task(self, **options: Any) -> Any:
        return self._ray.remote(**options)(_call)

    def _nodes(self) -> list[Any]:
        """The nodes that can work; a head without cores only leads."""
        nodes = [node for node in self._ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        if not nodes:
            raise WorkersError(
                f"{self._where}: no node is left that has a core; finished videos are in, so start "
                "nodes (`ray start --address HOST:PORT`) and run the same command again"
            )
        return nodes


def _place(where: int | str) -> int | str:
    text, cores = str(where), available_cores()
    if text.startswith(REMOTE) and text != REMOTE:
        return text
    if not text.isdecimal() or int(text) < 1:
        raise InvalidValue(f"workers {text!r}: give a number of them, or the address ray://HOST:PORT")
    if int(text) > cores:
        raise InvalidValue(f"workers {text}: this machine has {cores} cores; give at most as many")
    return int(text)


def _import_ray(*, alone: bool) -> ModuleType:
    # Read when Ray is imported: no usage reports; and processes of this machine need a token that only this
    # process has, for Ray listens to the network, too.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if alone and "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingDependency(f"workers need {error.name}", "ray") from error
    return ray


# Unpickled once per process: what it has loaded stays loaded.
_unpickled = lru_cache(maxsize=1)(pickle.loads)


def _call(function: bytes, item: Any) -> Any:
    return _unpickled(function)(item)


def _in_one_line(error: BaseException) -> str:
    """An error's message in one line; of an error in a worker its cause, without the place."""
    said = str(getattr(error, "cause", None) or error).strip()
    return said.partition("\n")[0] or type(error).__name__
