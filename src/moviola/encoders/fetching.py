"""Large files of the hub, fetched so that an interrupted download goes on: ``huggingface_hub`` begins a file
again, and waits for as long as one byte comes every ten seconds.

A file lies as a part in the hub's cache until it is whole and has its digest; there ``huggingface_hub`` finds
it, and links it into the snapshot.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

from moviola.errors import MissingModel
from moviola.files.locks import exclusive

__all__ = ["fetch_large_files", "paced", "unfinished_bytes"]

PART = ".part.incomplete"
"""How names of parts end."""
_LARGE = 16 << 20  # bytes; a smaller file is soon there again
_WINDOW, _LEAST = 60.0, 64 << 10
"""Seconds, and bytes that must come in them, some 1 kB/s: less will never be whole."""
_SHA256 = 64  # hexadecimal digits


def fetch_large_files(name: str, patterns: Sequence[str], *, least: int = _LARGE) -> None:
    """Put those files of a model that match patterns, and have at least some bytes, into the hub's cache.

    Raises:
        MissingModel: a file is not the one that the hub names.
        OSError, and errors of ``huggingface_hub``: the hub does not give them, or too slowly.
    """
    import huggingface_hub as hub

    info = hub.HfApi().model_info(name, files_metadata=True)
    for one in info.siblings or ():
        if any(fnmatch(one.rfilename, pattern) for pattern in patterns) and int(one.size or 0) >= least:
            _fetch(name, one.rfilename, info.sha)


def unfinished_bytes(name: str) -> int:
    """Bytes of files of a model whose download was interrupted; the next one goes on from there."""
    return sum(path.stat().st_size for path in _blobs(name).glob(f"*{PART}"))


def paced(
    chunks: Iterator[bytes], clock: Callable[[], float] = time.monotonic, window: float = _WINDOW
) -> Iterator[bytes]:
    """Chunks of a file. Raises TimeoutError: they come too slowly for it ever to be whole."""
    since, come = clock(), 0
    for chunk in chunks:
        yield chunk
        come += len(chunk)
        if clock() - since >= window:
            if come < _LEAST:
                raise TimeoutError(f"{come:,} bytes came in {window:g} s")
            since, come = clock(), 0


def _blobs(name: str) -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "blobs")


def _fetch(name: str, file: str, revision: str) -> None:
    import huggingface_hub as hub

    url = hub.hf_hub_url(name, file, revision=revision)
    about = hub.get_hf_file_metadata(url)
    if not about.etag or not about.size or len(about.etag) != _SHA256:
        return  # of no known digest: huggingface_hub fetches it as a whole
    whole = _blobs(name) / about.etag
    part = whole.with_name(f"{whole.name}{PART}")
    whole.parent.mkdir(parents=True, exist_ok=True)
    lock = Path(f"{part}.lock")
    with exclusive(lock, wait=True):
        if whole.exists():
            return
        with part.open("ab") as out:
            _append(url, out, about.size, file)
        with part.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != about.etag:
            part.unlink()
            raise MissingModel(
                f"{name}: {file} came with the SHA-256 {found:.12}…, not {about.etag:.12}… as the hub names; "
                "fetch it again"
            )
        part.replace(whole)
    lock.unlink(missing_ok=True)


def _append(url: str, out: IO[bytes], size: int, file: str) -> None:
    """Fetch what is missing at the end of a part, with a bar at a terminal."""
    import huggingface_hub as hub
    from huggingface_hub import utils

    if (there := out.seek(0, os.SEEK_END)) >= size:
        return
    headers = {**utils.build_hf_headers(), "Accept-Encoding": "identity"}
    if there:
        headers["Range"] = f"bytes={there}-"
    request = hub.get_session().stream(
        "GET", url, headers=headers, follow_redirects=True, timeout=hub.constants.HF_HUB_DOWNLOAD_TIMEOUT
    )
    with request as answer:
        utils.hf_raise_for_status(answer)
        if answer.status_code != 206:  # of a server that gives whole files alone
            there = 0
            out.truncate(0)
        bar: Any = utils.tqdm(
            total=size, initial=there, unit="B", unit_scale=True,
            desc=file,
        )  # fmt: skip
        with closing(bar):
            for chunk in paced(answer.iter_bytes()):
                out.write(chunk)
                bar.update(len(chunk))
