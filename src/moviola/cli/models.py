"""`moviola models`: encoders on this machine or from the hub; trained models converted and looked at."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, note

__all__ = ["convert", "list_models", "models", "pull", "show"]

models = typer.Typer(
    name="models",
    help="List or fetch encoders; convert published checkpoints; show what a trained model is.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(models)


@models.command("list")
def list_models(as_json: JsonOption = False) -> None:
    """List the models that load without a network: built-in ones and those in the hub's cache.

    Example:

        moviola models list

    From Python: `moviola.encoders.available_models`.
    """
    from moviola.encoders import available_models

    found = available_models()
    if as_json:
        emit_json([asdict(model) for model in found])
        return
    for model in found:
        console.print(f"{model.name}  {model.kind}  {model.source}  {model.size / 2**20:.1f} MiB")
    note("Others: `moviola models pull NAME`, for instance google/siglip2-base-patch16-224.")


@models.command()
def pull(
    name: Annotated[str, typer.Argument(help="Hub id, organisation/model.")], as_json: JsonOption = False
) -> None:
    """Fetch a CLIP, SigLIP, SigLIP 2, sentence or Whisper model from the hub, only the files needed.

    Nothing is fetched while HF_HUB_OFFLINE is set.

    Example:

        moviola models pull google/siglip2-base-patch16-224

    From Python: `moviola.encoders.pull_model`.
    """
    from moviola.encoders import pull_model

    folder = pull_model(name)
    if as_json:
        emit_json({"name": name, "folder": str(folder)})
    else:
        console.print(f"{name} is in {folder}")


@models.command()
def convert(
    checkpoint: Annotated[Path, typer.Argument(help="A published PyTorch checkpoint.")],
    release: Annotated[
        str,
        typer.Option(help="Its line, for instance spr-stage1; an unknown name lists them all."),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting of the model, name=value; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Turn a published checkpoint into a model folder. Nothing in the file is executed.

    Sizes are read from the weights; what they don't tell has the published value unless `--set` says other.

    Example:

        moviola models convert model_best.pt --release spr-stage1 --out models/stage1 --set heads=12

    From Python: `moviola.models.releases.convert_checkpoint`.
    """
    from moviola.models.releases import convert_checkpoint

    convert_checkpoint(checkpoint, release, out, **_settings(settings or []))
    facts = _facts(out)
    if as_json:
        emit_json({"out": str(out), **facts})
    else:
        console.print(f"{out}: {facts['architecture']}, {facts['parameters']:,} parameters")
    note("It does not say which features it was trained on; `moviola library use` takes it with --force.")


def _settings(words: list[str]) -> dict[str, Any]:
    """``name=value`` words; values as TOML has them, else as text."""
    import tomllib

    from moviola.errors import InvalidValue

    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name.strip()):
            raise InvalidValue(f"--set {word!r}: write NAME=VALUE, for instance heads=12")
        try:
            found[name.strip()] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = value.strip()
    return found


@models.command()
def show(
    folder: Annotated[Path, typer.Argument(help="A folder that training or `convert` wrote.")],
    as_json: JsonOption = False,
) -> None:
    """What a trained model is: architecture, size, settings, what it was trained on, and its card.

    Example:

        moviola models show models/reel

    From Python: `moviola.models.pretrained.from_pretrained` and `read_description`.
    """
    facts = _facts(folder)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    if as_json:
        emit_json({**facts, "card": text})
        return
    for name in ("architecture", "parameters", "revision", "moviola"):
        value = facts[name]
        console.print(f"{name:>13}  {f'{value:,}' if isinstance(value, int) else value}")
    for group in ("trained", "settings"):
        console.print(f"{group}:")
        for name, value in facts[group].items():
            console.print(f"{name:>25}  {value}")
    if text:
        console.print(f"\n{text}", end="")


def _facts(folder: Path) -> dict[str, Any]:
    """The facts of a model folder, which is loaded to see that it is whole."""
    from moviola.models.description import read_description, revision_of
    from moviola.models.pretrained import from_pretrained

    about, model = read_description(folder), from_pretrained(folder)
    return {
        "architecture": about.architecture,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "revision": revision_of(folder),
        "moviola": about.version,
        "trained": about.extra,
        "settings": about.config,
    }
