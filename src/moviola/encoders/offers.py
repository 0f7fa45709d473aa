"""What a hub offers, asked before anything is fetched; and why it cannot be asked, in words.

``HF_HUB_OFFLINE``, ``HF_ENDPOINT`` (a mirror), tokens and proxies are those of ``huggingface_hub``.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from queue import Empty, Queue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from moviola.encoders.fetching import unfinished_bytes
from moviola.errors import MissingModel

__all__ = ["HubOffer", "answering", "hub_offer", "require_online", "why_not_fetched"]

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
_PATIENCE = 5.0
"""Seconds that a hub may say nothing."""
_LONGEST = 10.0
"""Seconds that a question to a hub may take."""


@dataclass(frozen=True, slots=True)
class HubOffer:
    """A model that a hub offers: its name, where that is, the bytes of the files that are needed, and how
    many of them are on this machine from a download that was not finished.
    """

    name: str
    hub: str
    size: int
    here: int


def require_online(name: str) -> None:
    """Raise :class:`MissingModel` where ``HF_HUB_OFFLINE`` forbids to ask a hub for a model."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise MissingModel(
            f"{name}: HF_HUB_OFFLINE is set, so nothing is fetched; unset it to allow the download"
        )


def hub_offer(name: str, patterns: Sequence[str]) -> HubOffer:
    """Ask the hub for a model, of which files with these patterns are needed; nothing is fetched.

    Raises:
        MissingModel: the hub is switched off or out of reach, or does not give the model to this user.
    """
    import huggingface_hub as hub

    require_online(name)
    with answering(name):
        info = _answer_to(lambda: hub.HfApi().model_info(name, files_metadata=True, timeout=_PATIENCE))
        needed = {
            one.rfilename: max(0, int(one.size or 0))
            for one in info.siblings or ()
            if any(fnmatch(one.rfilename, pattern) for pattern in patterns)
        }
    there = (file for file in needed if isinstance(hub.try_to_load_from_cache(name, file), str))
    whole = sum(needed[file] for file in there)
    total = sum(needed.values())
    return HubOffer(name, hub_in_use(), total, min(total, whole + unfinished_bytes(name)))


@contextmanager
def answering(name: str) -> Iterator[None]:
    """Errors of a hub that does not give a model, as :class:`MissingModel`; a full disk is another matter."""
    import huggingface_hub as hub
    import huggingface_hub.errors

    try:
        yield
    except (OSError, hub.errors.HTTPError, hub.errors.HfHubHTTPError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise why_not_fetched(name, error) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise MissingModel(
            f"{name}: what {hub_in_use()} answers is no answer of a hub (a page to sign in to a network?); "
            "check HF_ENDPOINT and the network, or use an encoder that is here: `moviola models list`"
        ) from error


def _answer_to(question: Callable[[], Any]) -> Any:
    """The answer to a question; TimeoutError: not whole within :data:`_LONGEST` seconds, such as one that
    comes a byte a second.
    """
    outcome: Queue[Any] = Queue()

    def ask() -> None:
        try:
            outcome.put((question(), None))
        except BaseException as error:  # raised where it is waited for
            outcome.put((None, error))

    Thread(target=ask, name="asking a hub", daemon=True).start()
    try:
        answer, error = outcome.get(timeout=_LONGEST)
    except Empty:
        raise TimeoutError(f"no whole answer within {_LONGEST:g} s") from None
    if error is not None:
        raise error
    return answer


def hub_in_use() -> str:
    """Where models are fetched from: the name of its machine."""
    from huggingface_hub import constants

    return urlsplit(str(constants.ENDPOINT)).hostname or str(constants.ENDPOINT)


def why_not_fetched(name: str, error: Exception) -> MissingModel:
    """Why a hub did not give a model, as an error that says what helps."""
    import huggingface_hub as hub
    import huggingface_hub.errors

    status = error.response.status_code if isinstance(error, hub.errors.HfHubHTTPError) else 0
    reason = (str(error) or type(error).__name__).splitlines()[0]
    where, token = hub_in_use(), hub.get_token()
    if isinstance(error, hub.errors.GatedRepoError):
        return MissingModel(
            f"{name}: {where} gives it to those alone who agree to its terms; do so on its page there, and "
            "set HF_TOKEN to a token of yours"
        )
    if status == 401 and token:
        return MissingModel(
            f"{name}: {where} refuses the token of this user (HF_TOKEN, or a stored one); set a valid "
            "one, or none for public models"
        )
    if isinstance(error, hub.errors.RepositoryNotFoundError):
        private = "" if token else "; a private one needs HF_TOKEN"
        return MissingModel(
            f"{name}: the hub has no such public model at {where}; check the spelling{private} ({reason})"
        )
    if status in (401, 403):
        return MissingModel(
            f"{name}: {where} gives it to those alone who may read it (HTTP {status}); set HF_TOKEN to a "
            "token of yours, or use an encoder that is here: `moviola models list`"
        )
    left = unfinished_bytes(name)
    slow = "is too slow" if isinstance(error, TimeoutError) else "cannot be reached"
    trouble = f"answers with HTTP {status}" if status else slow
    kept = f"; {left / 2**20:.0f} MiB of it are kept, and the same command goes on" if left else ""
    return MissingModel(
        f"{name}: the hub {where} {trouble}{_through_proxy(os.environ)} ({reason}){kept}; try again "
        "later, with a network, or use an encoder that is here: `moviola models list`"
    )


def _through_proxy(environment: Mapping[str, str]) -> str:
    """The proxy that is asked, without what may be a password in it."""
    for variable in _PROXIES:
        if environment.get(variable):
            host = urlsplit(environment[variable]).hostname or "a proxy"
            return f" through the proxy {host} of {variable}"
    return ""
