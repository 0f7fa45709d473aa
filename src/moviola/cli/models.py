"""``moviola models``: encoders of this machine and of the hub."""

from __future__ import annotations

from typing import Annotated

from typer import Argument

from moviola.cli.app import JsonOption, command_group, note, show, show_records

models = command_group("models", "Encoders of this machine and of the hub; trained models and checkpoints.")


@models.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the models that load without a network: built-in ones and those in the hub's cache.

    Example: `moviola models list`

    From Python: `moviola.encoders.available_models`.
    """
    from moviola.encoders import available_models

    found = available_models()
    rows = (
        (model.name, model.kind, model.source, f"{model.size / 2**20:.1f}", model.knows) for model in found
    )
    show_records(json, found, ("model", "kind", "source", "MiB", "knows"), rows)
    note("Others: `moviola models pull NAME`, for instance google/siglip2-base-patch16-224.")


@models.command()
def pull(
    name: Annotated[str, Argument(help="Hub id, organisation/model.")], json: JsonOption = False
) -> None:
    """Download a CLIP, SigLIP, SigLIP 2, sentence or Whisper model from the hub, only the needed files.

    Nothing is downloaded while HF_HUB_OFFLINE is set.

    Example: `moviola models pull google/siglip2-base-patch16-224`

    From Python: `moviola.encoders.pull_model`.
    """
    from moviola.encoders import pull_model

    folder = pull_model(name)
    show(json, {"name": name, "folder": str(folder)}, f"{name} is in {folder}")
