"""Encoders of frames and texts by name, and the default one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from moviola.encoders.checkpoints import CONSE, DEMO
from moviola.encoders.contract import FrameTextEncoder
from moviola.encoders.device_choice import DeviceChoice
from moviola.errors import MoviolaError
from moviola.plugins import plugin

if TYPE_CHECKING:
    from moviola.encoders.published import Machine

__all__ = ["BUILTIN", "BestEncoder", "best_encoder", "load_encoder"]


def _open_checkpoint(name: str, choice: DeviceChoice) -> FrameTextEncoder:
    from moviola.encoders.clip import open_checkpoint

    return open_checkpoint(name, choice)


def _open_conse(_: str, choice: DeviceChoice) -> FrameTextEncoder:
    from moviola.encoders.conse import ConseEncoder

    return ConseEncoder(choice)


BUILTIN: dict[str, Callable[[str, DeviceChoice], FrameTextEncoder]] = {
    DEMO: _open_checkpoint,
    CONSE: _open_conse,
}
"""Openers of packaged encoders, by name; any other name is a checkpoint."""


def load_encoder(
    name: str,
    *,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    resident: bool = False,
) -> FrameTextEncoder:
    """Open an encoder of frames and texts; weights are read when first needed.

    Args:
        name: one of :data:`BUILTIN`; of a plug-in (:mod:`moviola.plugins`); a folder with a checkpoint in one
            of the formats of :mod:`moviola.encoders.formats`; or a hub id that was pulled or cached before.
        device: ``"auto"`` (cuda, mps, cpu), or one of them.
        precision: ``"auto"`` (half on a GPU; on the CPU fp32, and 8 bits for frames where layers are wide),
            ``"fp32"``, ``"fp16"`` or ``"bf16"``.
        batch_size: frames or texts at once; by default suited to the device.
        resident: for a process that encodes many texts one after another: opens the compiled tower (half a
            second, then a third of the time per text).

    Raises:
        MissingModel: not on this machine; the message says how to get it.
        MissingDependency: torch is needed (another device or precision than the CPU's own, weights that are
            no safetensors), and is not installed.
        InvalidValue: a checkpoint of another kind, or an option outside its range.
        DataError: the checkpoint's files contradict each other or cannot be read.
        BrokenPlugin: the plug-in fails.
    """
    choice = DeviceChoice(device, precision, batch_size, resident)
    if name not in BUILTIN and (added := plugin("moviola.encoders", name)):
        encoder: FrameTextEncoder = added.make(FrameTextEncoder, name, choice)
        return encoder
    return BUILTIN.get(name, _open_checkpoint)(name, choice)


@dataclass(frozen=True, slots=True)
class BestEncoder:
    """A chosen encoder: its name, and how to get a better one, empty if there is none."""

    name: str
    better: str


def best_encoder(machine: Machine | None = None, language: str | None = None) -> BestEncoder:
    """The best encoder of real pictures on this machine; loads and fetches nothing.

    Of the CLIPs and SigLIPs in the hub's cache whose texts are in the user's language, or else in English,
    the one that does most work a frame and still keeps pace, or the fastest one; without any
    :data:`moviola.encoders.checkpoints.CONSE`, which the package carries. The demo's tiny CLIP knows only its
    own little world, and is never chosen.

    Args:
        machine, language: as in :func:`moviola.encoders.published.recommended`.
    """
    from moviola.encoders.clip import ClipEncoder
    from moviola.encoders.hub import available_models
    from moviola.encoders.published import pace_rank, recommended, this_machine, users_language

    machine = this_machine() if machine is None else machine
    language = users_language() if language is None else language
    better = recommended(machine, language)[0].model.name
    ranked = []
    for model in available_models():
        if (model.kind, model.source) != ("clip", "hub cache"):
            continue
        with suppress(MoviolaError):  # an error for those who name it, not for all others
            encoder = load_encoder(model.name, device="cpu")
            assert isinstance(encoder, ClipEncoder)
            own = not encoder.languages or language in encoder.languages
            if own or "en" in encoder.languages:
                ranked.append(((own, *pace_rank(model.name, encoder.work, machine)), model.name, own))
    if ranked:
        _, name, own = max(ranked)
        return BestEncoder(name, "" if own or not language else _instead(better))
    return BestEncoder(CONSE, _instead(better))


def _instead(name: str) -> str:
    return f"`moviola models pull {name}`, then `--encoder {name}`; it can be changed later"
