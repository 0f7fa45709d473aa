"""What test_workers.py runs, each in a process of its own: Ray changes the process that it is used in.

``python ray_drivers.py NAME ARGUMENTS``; what a driver has found out it prints as JSON, last of all.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from moviola.addons.ray.workers import Workers
from moviola.errors import MoviolaError, UnreadableMedia
from moviola.library import IngestProgress
from moviola.library.ingest import video_encoder as encoding
from moviola.library.ingest.plan import FoundFile
from moviola.search import Library

STORE = 80 * 2**20


def index(
    library: Path,
    films: Path,
    workers: str | int | None,
    on_video: Callable[[str], object] = str,
    ocr: bool = False,
) -> dict[str, Any]:
    """Index films; what is reported, and which videos were done in which order."""
    done: list[str] = []

    def on_step(step: IngestProgress) -> None:
        if step.step == "pictures" and step.done > len(done):
            done.append(step.video_id)
            on_video(step.video_id)

    with Library(library, encoder="demo", sentence_encoder="none") as opened:
        report = opened.index(films, ocr=ocr, workers=workers, progress=on_step)
    return {"report": asdict(report), "done": done}


@contextmanager
def cluster(nodes: int) -> Iterator[tuple[Any, list[Any], str]]:
    """A head that only leads, a number of nodes of one core, and the address for clients."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # whatever token lies in the home folder
    from ray.cluster_utils import Cluster

    port = free_port()
    common = {"object_store_memory": STORE, "include_dashboard": False}
    head = {"num_cpus": 0, "ray_client_server_port": port, **common}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        started = [cluster.add_node(num_cpus=1, **common) for _ in range(nodes)]
        yield cluster, started, f"ray://{cluster.address.partition(':')[0]}:{port}"
    finally:
        cluster.shutdown()


def free_port() -> int:
    """A port that nobody listens on."""
    import socket

    with socket.socket() as free:
        free.bind(("", 0))
        return int(free.getsockname()[1])


class Deadly(encoding.VideoEncoder):
    """Kills its worker: at a video of the name ``once`` the first time, at ``always`` whenever it is tried;
    at ``node`` it waits for its node to be killed, the first time.
    """

    folder: ClassVar[Path]

    def one(self, file: FoundFile) -> Any:
        """As the real one, if it lives."""
        first = not (seen := self.folder / f"{file.video_id}.begun").exists()
        with seen.open("a") as begun:
            begun.write(f"{os.getpid()}\n")
        if file.video_id == "always" or (file.video_id == "once" and first):
            os.kill(os.getpid(), signal.SIGKILL)
        if file.video_id == "node" and first:
            import ray

            (self.folder / "pipe").write_text(ray.get_runtime_context().get_node_id())
            signal.pause()
        return super().one(file)


def killed(library: Path, films: Path, folder: Path) -> dict[str, Any]:
    """Three nodes, of which one is killed in the middle, and workers that die; then all are killed."""
    Deadly.folder = folder
    encoding.VideoEncoder = Deadly  # type: ignore[misc]
    os.mkfifo(folder / "pipe")
    given_up = threading.Event()
    with cluster(3) as (nodes, started, address):

        def kill() -> None:
            node_id = (folder / "pipe").read_text()
            given_up.wait()
            (doomed,) = [node for node in started if node.node_id == node_id]
            nodes.remove_node(doomed, allow_graceful=False)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        results = index(library, films, address, lambda name: name == "always" and given_up.set())
        killer.join()
        with Workers(address) as workers:
            results |= mapped(workers)
            results["blind"] = failure(lambda: workers.require(blind, "harbour.mp4"))
            results["raised"] = failure(lambda: list(workers.map(blind, ["harbour.mp4"])))
            for node in list(nodes.worker_nodes):
                nodes.remove_node(node, allow_graceful=False)
            results["left"] = failure(lambda: list(workers.map(len, ["harbour.mp4"])))
    results["gone"] = failure(lambda: list(Workers(address).map(len, ["harbour.mp4"])))
    return results


def blind(path: str) -> None:
    """A node that does not see a video."""
    raise UnreadableMedia(path, "no such file here")


def failure(call: Callable[[], object]) -> list[str]:
    """Name and message of what a call raises."""
    try:
        call()
    except MoviolaError as error:
        return [type(error).__name__, str(error)]
    raise AssertionError("it should have failed")


def local(library: Path, films: Path) -> dict[str, Any]:
    """Two processes of this machine; and who may have them do something."""
    return index(library, films, 2, ocr=True) | {"auth": os.environ["RAY_AUTH_MODE"]}


def mapped(workers: Workers) -> dict[str, Any]:
    """Results of a map, how many items it has taken at most that are not done, and threads of a worker."""
    taken = most = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(40):
            taken += 1
            yield number

    squares: list[Any] = []
    for square in workers.map(squared, items()):
        most = max(most, taken - len(squares))
        squares.append(square)
    (threads,) = workers.map(setting, ["OMP_NUM_THREADS"])
    return {"squares": squares, "in_flight": most, "threads": threads}


def squared(number: int) -> int:
    """The square of a number."""
    return number * number


def setting(name: str) -> str | None:
    """A variable of the worker's environment."""
    return os.environ.get(name)


def steps(library: Path, films: Path) -> dict[str, Any]:
    """Two processes of this machine; prints which video is done, to be killed there."""
    return index(library, films, 2, lambda name: print(name, flush=True))


if __name__ == "__main__":
    name, *paths = sys.argv[1:]
    print(json.dumps(globals()[name](*map(Path, paths))))
