"""``moviola models``: trained models and published checkpoints."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from moviola.cli.app import JsonOption, command_group, note, show
from moviola.cli.options import out_option
from moviola.errors import InvalidValue

commands = Typer()
"""What this module adds to ``moviola``."""

models = command_group("models", "Trained models and checkpoints.", below=commands)


@models.command()
def convert(
    checkpoint: Annotated[Path, Argument(help="A published PyTorch checkpoint.")],
    release: Annotated[str, Option(help="Release, such as spr-stage1; a wrong name lists all.")],
    out: Annotated[Path, out_option("New folder for the model.")],
    settings: Annotated[list[str] | None, Option("--set", help="Setting, NAME=VALUE; repeatable.")] = None,
    json: JsonOption = False,
) -> None:
    """Convert a published checkpoint into a model folder. No code in the file is executed.

    Sizes are read from the weights; other settings have the published values unless `--set` changes them.

    Example: `moviola models convert model_best.pt --release spr-stage1 --out models/stage1 --set heads=12`

    From Python: `moviola.study.models.releases.convert_checkpoint`.
    """
    from moviola.retrieval.trained_models import STAGE1S, is_refiner
    from moviola.study.models.releases import convert_checkpoint

    convert_checkpoint(checkpoint, release, out, **_settings(settings or []))
    facts = _facts(out)
    said = f"{out}: {facts['architecture']}, {facts['parameters']:,} parameters"
    show(json, {"out": str(out), **facts}, said)
    if facts["architecture"] in STAGE1S or is_refiner(facts["architecture"]):
        note("The features it was trained on are unknown; `moviola library use` accepts it with --force.")
    else:
        note(f"`moviola search` does not use it; `moviola answer --model {out}` answers with it.")


def _settings(words: list[str]) -> dict[str, Any]:
    """``NAME=VALUE`` words; values are TOML, or else text."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = map(str.strip, word.partition("="))
        if not (equals and name):
            raise InvalidValue(f"--set {word!r}: write NAME=VALUE, for instance heads=12")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            found[name] = value
    return found


@models.command("show")
def show_(
    folder: Annotated[Path, Argument(help="Folder of a trained or converted model.")],
    json: JsonOption = False,
) -> None:
    """Show a trained model: architecture, size, settings, training data, and its card.

    Example: `moviola models show models/reel`

    From Python: `moviola.study.models.pretrained.from_pretrained` and `read_description`.
    """
    facts = _facts(folder)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    first = facts | {"parameters": f"{facts['parameters']:,}"}
    lines = [f"{name:>13}  {first[name]}" for name in ("architecture", "parameters", "revision", "moviola")]
    for group in ("trained", "settings"):
        lines += [f"{group}:", *(f"{name:>25}  {value}" for name, value in facts[group].items())]
    show(json, {**facts, "card": text}, *lines, *([f"\n{text}".removesuffix("\n")] if text else []))


def _facts(folder: Path) -> dict[str, Any]:
    """Facts of a model folder; the model is loaded, as a check."""
    from moviola.retrieval.saved.description import read_description, revision_of
    from moviola.study.models.pretrained import from_pretrained

    about, model = read_description(folder), from_pretrained(folder)
    return {
        "architecture": about.architecture,
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "revision": revision_of(folder), "moviola": about.version,
        "trained": about.extra, "settings": about.config,
    }  # fmt: skip
