"""``moviola models``: encoders of this machine and of the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument

from moviola.cli.app import JsonOption, command_group, note, show, show_records
from moviola.words.language_names import language_title

models = command_group("models", "Encoders of this machine and of the hub; trained models and checkpoints.")


@models.command("list")
def list_models(json: JsonOption = False) -> None:
    """List the models that load without a network: built-in ones and those in the hub's cache; then which
    others are recommended for this machine.

    Example: `moviola models list`

    From Python: `moviola.encoders.available_models`, `moviola.encoders.recommended`.
    """
    from moviola.encoders import available_models, recommended
    from moviola.encoders.published import this_machine, users_language

    found = available_models()
    rows = (
        (model.name, model.kind, model.source, f"{model.size / 2**20:.1f}", model.knows) for model in found
    )
    show_records(json, found, ("model", "kind", "source", "MiB", "knows"), rows)
    machine, language = this_machine(), users_language()
    texts = f"queries in {language_title(language)}" if language else "queries in whatever language"
    note(
        f"Recommended for this machine ({machine}) and {texts}, the best one first, by `moviola models pull "
        "NAME`; milliseconds as they were measured on another one:"
    )
    for one in recommended(machine, language):
        note(f"  {one}{' (is here)' if one.model.name in {model.name for model in found} else ''}")


@models.command()
def pull(
    name: Annotated[str, Argument(help="Hub id, organisation/model.")], json: JsonOption = False
) -> None:
    """Download an encoder, a sentence or Whisper model from the hub, only the needed files.

    Nothing is downloaded while HF_HUB_OFFLINE is set.

    Example: `moviola models pull google/siglip2-base-patch16-224`

    From Python: `moviola.encoders.pull_model`.
    """
    from moviola.encoders import pull_model

    folder = pull_model(name)
    show(json, {"name": name, "folder": str(folder)}, f"{name} is in {folder}")


@models.command()
def unpickle(
    pickle: Annotated[Path, Argument(help="open_clip_pytorch_model.bin, or PE-Core-….pt.")],
    folder: Annotated[Path, Argument(help="New folder for the checkpoint.")],
    json: JsonOption = False,
) -> None:
    """Convert an encoder that was published as a pickle into safetensors, once; it needs the extra train.

    An open_clip_pytorch_model.bin needs its open_clip_config.json beside it. The tokenizer's files are copied
    if they are there, too.

    Example: `moviola models unpickle PE-Core-S16-384.pt pe-core-s`

    From Python: `moviola.encoders.convert_pickle`.
    """
    from moviola.encoders import convert_pickle

    made = convert_pickle(pickle, folder)
    show(json, {"pickle": str(pickle), "folder": str(made)}, f"{pickle} is now a checkpoint in {made}")
