"""The options of ``moviola serve`` for DRES, and what they open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from typer import BadParameter, Option

from moviola.addons.dres import PASSWORD
from moviola.plugins import ServerAddition

if TYPE_CHECKING:
    from moviola.addons.dres.dres import Dres

__all__ = ["ADDITION"]


def _options(
    dres: Annotated[str, Option(help="Address of a DRES evaluation server to submit moments to.")] = "",
    dres_user: Annotated[
        str, Option(help=f"Account there; its password stands in {PASSWORD}.", show_default=False)
    ] = "",
    dres_evaluation: Annotated[
        str, Option(help="Name or id of the evaluation; by default the only active one.", show_default=False)
    ] = "",
) -> tuple[str, str, str, str] | None:
    """Address, user, password and evaluation."""
    if (dres_user or dres_evaluation) and not dres:
        raise BadParameter("--dres-user and --dres-evaluation: name the server, too, with --dres")
    return (dres, dres_user, os.environ.get(PASSWORD, ""), dres_evaluation) if dres else None


def _opened(_: Any, account: tuple[str, str, str, str]) -> Dres:
    from moviola.addons.dres.dres import Dres

    return Dres(*account)


def _router() -> Any:
    from moviola.addons.dres.routes import router

    return router


ADDITION = ServerAddition(options=_options, opened=_opened, router=_router)
"""The addition ``dres``."""
