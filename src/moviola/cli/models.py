"""`moviola models`: which encoders are on this machine, and fetching one from the hub."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note

__all__ = ["list_models", "models", "pull"]

models = typer.Typer(
    name="models",
    help="List the encoders on this machine, or fetch one from the model hub.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(models)


@models.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models that load without a network: built-in ones and those in the hub's cache.

    Example:

        moviola models list
    """
    from moviola.encoders import available_models

    found = available_models()
    if as_json:
        emit_json([asdict(model) for model in found])
        return
    for model in found:
        console.print(
            f"{model.name}  {model.kind}  {model.source}  {model.size / 2**20:.1f} MiB", markup=False
        )
    note("Others: `moviola models pull NAME`, for instance google/siglip2-base-patch16-224.")


@models.command()
def pull(
    name: Annotated[str, typer.Argument(help="Hub id, organisation/model.")], as_json: JsonOption = False
) -> None:
    """Fetch a CLIP, SigLIP, SigLIP 2 or sentence model from the hub, only the files that are needed.

    Nothing is fetched while HF_HUB_OFFLINE is set.

    Example:

        moviola models pull google/siglip2-base-patch16-224
    """
    from moviola.encoders import pull_model

    folder = pull_model(name)
    if as_json:
        emit_json({"name": name, "folder": str(folder)})
    else:
        console.print(f"{name} is in {folder}", markup=False)
