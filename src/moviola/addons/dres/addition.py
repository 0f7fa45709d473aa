"""The option of ``moviola serve`` for DRES, and the account that it opens."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from typer import Option

from moviola.addons.dres import EXAMPLE, PASSWORD
from moviola.errors import InvalidValue
from moviola.plugins import ServerAddition

if TYPE_CHECKING:
    from moviola.addons.dres.dres import Dres

__all__ = ["ADDITION"]


def _options(
    dres: Annotated[
        str,
        Option(
            metavar="https://USER@HOST[#EVALUATION]",
            help="Account on a DRES server to submit moments to, and the evaluation, by default the only "
            f"active one; the password is read from {PASSWORD}.",
            show_default=False,
        ),
    ] = "",
) -> tuple[str, str, str, str] | None:
    """Address, user, password and evaluation."""
    if not dres:
        return None
    try:
        place = urlsplit(dres)
    except ValueError as error:  # brackets that are not closed
        raise InvalidValue(f"--dres: {error}; give an address such as {EXAMPLE}") from error
    if place.password is not None:
        raise InvalidValue(f"--dres: a password in the address is seen by others; give it in {PASSWORD}")
    url = urlunsplit(place._replace(netloc=place.netloc.rpartition("@")[2], fragment=""))
    return url, unquote(place.username or ""), os.environ.get(PASSWORD, ""), unquote(place.fragment)


def _opened(_: Any, account: tuple[str, str, str, str]) -> Dres:
    from moviola.addons.dres.dres import Dres

    return Dres(*account)


def _router() -> Any:
    from moviola.addons.dres.routes import router

    return router


ADDITION = ServerAddition(options=_options, opened=_opened, router=_router)
"""The addition ``dres``."""
