"""A real Milvus server on ports of its own, which can be killed and started again."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
import urllib.error
import urllib.request
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from moviola.addons.milvus import MilvusIndex

# Seconds: it takes some five, after a kill until the dead one's lease ends, and more on a busy machine.
_PATIENCE = 240
_ETCD = """\
name: default
listen-client-urls: http://127.0.0.1:{client}
advertise-client-urls: http://127.0.0.1:{client}
listen-peer-urls: http://127.0.0.1:{peer}
initial-advertise-peer-urls: http://127.0.0.1:{peer}
initial-cluster: default=http://127.0.0.1:{peer}
"""


class RunningMilvus:
    """The standalone server of the package ``milvus``: same folder, same ports, whenever it is started.

    Args:
        folder: an empty folder for its program, data and logs (some 300 MB).
    """

    def __init__(self, folder: Path) -> None:
        import milvus

        self._folder, self._process = folder, None
        config = milvus.MilvusServerConfig(data_dir=str(folder))
        # Its own etcd would take ports 2379 and 2380, even where others have them.
        marker, etcd = "etcd:\n", folder / "etcd.yaml"
        assert marker in config.template_text
        config.template_text = config.template_text.replace(
            marker, f"{marker}  config:\n    path: {etcd}\n", 1
        )
        ports = [name for name in config.configurable_items if name.endswith("_port")]
        *free, self._health, peer = _free_ports(len(ports) + 2)
        chosen = dict(zip(ports, free, strict=True))
        self.port = chosen["proxy_port"]
        etcd.write_text(_ETCD.format(client=chosen["etcd_port"], peer=peer))
        config.update(**chosen)
        config.set("common.session.ttl", 5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # it tries ports and leaves closing to chance
            config.resolve()
        milvus._initialize_data_files(str(folder))

    def address(self, collection: str, options: str = "") -> str:
        """The address for a library."""
        return f"milvus://127.0.0.1:{self.port}/{collection}{options}"

    def start(self) -> None:
        """Start it, and wait until it says that it is well."""
        program = self._folder / "bin" / "milvus"
        environment = {
            **os.environ, "DEPLOY_MODE": "STANDALONE", "METRICS_PORT": str(self._health),
            "MILVUS_RUN_DIR": str(self._folder / "run"), "LD_LIBRARY_PATH": str(program.parent),
        }  # fmt: skip
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "run", "standalone"],
                cwd=self._folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        pause = threading.Event()
        for _ in range(_PATIENCE * 5):
            if self._process.poll() is not None or self._is_well():
                break
            pause.wait(0.2)
        if not self._is_well():
            self.kill()
            tail = (self._folder / "server.log").read_text(errors="replace")[-2000:]
            raise RuntimeError(f"Milvus does not start:\n{tail}")

    def _is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/healthz", timeout=5) as answer:
                return bool(answer.read().strip() == b"OK")
        except (urllib.error.URLError, OSError):
            return False

    def kill(self) -> None:
        """End it at once (SIGKILL); nothing happens where it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """End it, and give the disk back its 300 MB."""
        self.kill()
        shutil.rmtree(self._folder)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def written_through(server: RunningMilvus, collection: str = "through") -> type[MilvusIndex]:
    """An index that keeps nothing back: all is on the server before it is searched."""

    class WrittenThrough(MilvusIndex.at(server.address(collection))):
        def _search(self, *arguments: Any) -> Any:
            self._upload()
            return super()._search(*arguments)

    return WrittenThrough
