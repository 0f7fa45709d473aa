"""What a hub offers, asked before anything is fetched; and why it cannot be asked, in words.

``HF_HUB_OFFLINE``, ``HF_ENDPOINT`` (a mirror), tokens and proxies are those of ``huggingface_hub``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from urllib.parse import urlsplit

from moviola.errors import MissingModel

__all__ = ["HubOffer", "hub_offer", "require_online", "why_not_fetched"]

_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy")
_PATIENCE = 5.0
"""Seconds that a question to the hub may take."""


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
    import huggingface_hub.errors

    require_online(name)
    try:
        info = hub.HfApi().model_info(name, files_metadata=True, timeout=_PATIENCE)
    except (OSError, ValueError, hub.errors.HTTPError, hub.errors.HfHubHTTPError) as error:
        raise why_not_fetched(name, error) from error
    needed = {
        one.rfilename: one.size or 0
        for one in info.siblings or ()
        if any(fnmatch(one.rfilename, pattern) for pattern in patterns)
    }
    there = (file for file in needed if isinstance(hub.try_to_load_from_cache(name, file), str))
    whole = sum(needed[file] for file in there)
    total = sum(needed.values())
    return HubOffer(name, hub_in_use(), total, min(total, whole + _unfinished_bytes(name)))


def hub_in_use() -> str:
    """Where models are fetched from: the name of its machine."""
    from huggingface_hub import constants

    return urlsplit(str(constants.ENDPOINT)).hostname or str(constants.ENDPOINT)


def _unfinished_bytes(name: str) -> int:
    """Bytes of files of a model whose download was interrupted; it goes on from there."""
    from huggingface_hub import constants

    blobs = Path(constants.HF_HUB_CACHE, f"models--{name.replace('/', '--')}", "blobs")
    return sum(path.stat().st_size for path in blobs.glob("*.incomplete"))


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
    left = _unfinished_bytes(name)
    kept = f"; {left / 2**20:.0f} MiB of it are kept, and the same command goes on" if left else ""
    return MissingModel(
        f"{name}: the hub {where} cannot be reached{_through_proxy(os.environ)} ({reason}){kept}; try again "
        "with a network, or use an encoder that is here: `moviola models list`"
    )


def _through_proxy(environment: Mapping[str, str]) -> str:
    """The proxy that is asked, without what may be a password in it."""
    for variable in _PROXIES:
        if environment.get(variable):
            host = urlsplit(environment[variable]).hostname or "a proxy"
            return f" through the proxy {host} of {variable}"
    return ""
