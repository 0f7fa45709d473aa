"""Encoders of frames and texts that others have published and that run here, and which suit a machine.

Parameters and work follow from their architectures; ``benchmarks/published_encoders.py`` counts them, and
measures what they cost. Quality is stated where its source was read. Nothing here decides what runs: a
checkpoint is what its own files say (:mod:`moviola.encoders.formats`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moviola.devices import available_device, has_torch, may_have_gpu
from moviola.threads import available_cores

__all__ = ["PUBLISHED", "Machine", "Published", "Suggestion", "suggested", "this_machine"]


@dataclass(frozen=True, slots=True)
class Published:
    """A published encoder.

    Attributes:
        name: hub id.
        architecture: of its pictures' tower.
        parameters: of both towers, in millions.
        work: multiplications, each with an addition, for a frame, in thousand millions.
        languages: in a word.
        licence: of its weights, and whether it was not verified here.
        any_use: whether it allows any use.
        quality: as its authors report it; empty where no source was read.
        milliseconds: processor time of a frame where ``benchmarks/published_encoders.json`` was measured, in
            the precision that moviola takes by itself; None: not measured.
    """

    name: str
    architecture: str
    parameters: int
    work: float
    languages: str
    licence: str
    any_use: bool = True
    quality: str = ""
    milliseconds: int | None = None

    @property
    def megabytes(self) -> int:
        """Of its weights in 32 bits."""
        return 4 * self.parameters


_MIT, _APACHE, _MANY = "MIT, not verified", "Apache-2.0, not verified", "many languages"

PUBLISHED = (
    Published(
        "laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "ViT-B/32, 224 px", 151, 4.4, "English", _MIT,
        milliseconds=20,
    ),
    Published("timm/PE-Core-T-16-384", "ViT-T/16, 384 px", 70, 4.7, "English", "Apache-2.0", milliseconds=48),
    Published(
        "timm/PE-Core-S-16-384", "ViT-S/16, 384 px", 87, 15.7, "English", "Apache-2.0", milliseconds=112,
    ),
    Published(
        "laion/CLIP-ViT-B-16-DataComp.XL-s13B-b90K", "ViT-B/16, 224 px", 150, 17.6, "English", _MIT,
        milliseconds=83,
    ),
    Published(
        "timm/PE-Core-B-16", "ViT-B/16, 224 px", 448, 17.8, "English", "Apache-2.0",
        quality="MSR-VTT 47.6", milliseconds=86,
    ),
    Published("laion/CLIP-ViT-L-14-DataComp.XL-s13B-b90K", "ViT-L/14, 224 px", 428, 81.0, "English", _MIT),
    Published("laion/CLIP-ViT-H-14-laion2B-s32B-b79K", "ViT-H/14, 224 px", 986, 167.3, "English", _MIT),
    Published(
        "timm/PE-Core-L-14-336", "ViT-L/14, 336 px", 671, 192.2, "English", "Apache-2.0",
        quality="MSR-VTT 50.3",
    ),
    Published(
        "apple/DFN5B-CLIP-ViT-H-14-378", "ViT-H/14, 378 px", 987, 503.5, "English", "apple-amlr (research)",
        any_use=False,
    ),
    Published(
        "laion/CLIP-ViT-B-32-xlm-roberta-base-laion5B-s13B-b90k", "ViT-B/32, 224 px", 366, 4.4, _MANY, _MIT,
        milliseconds=21,
    ),
    Published(
        "google/siglip2-base-patch16-224", "ViT-B/16, 224 px", 375, 17.7, _MANY, _APACHE, milliseconds=81,
    ),
    Published("timm/ViT-B-16-SigLIP-i18n-256", "ViT-B/16, 256 px", 371, 23.4, _MANY, _APACHE),
    Published(
        "OFA-Sys/chinese-clip-vit-base-patch16", "ViT-B/16, 224 px", 189, 17.6, "Chinese", "not verified",
        any_use=False, milliseconds=81,
    ),
)  # fmt: skip
"""One of each architecture that people mostly ask for, smaller ones first, by the languages of texts."""

_FRAMES_A_SECOND = 10
"""Frames, each a second of film, that a suggested encoder is to encode in a second."""

# Of the machine's memory that the weights in 32 bits may fill.
_MEMORY_SHARE = 1 / 4


@dataclass(frozen=True, slots=True)
class Machine:
    """What computes: cores that this process may use, whether torch has a GPU, and memory in gigabytes, None
    where the system does not say.
    """

    cores: int
    gpu: bool
    memory: float | None

    def __str__(self) -> str:
        memory = "memory unknown" if self.memory is None else f"{self.memory:.0f} GB of memory"
        cores = "1 core" if self.cores == 1 else f"{self.cores} cores"
        return f"{cores}, {'a GPU' if self.gpu else 'no GPU'}, {memory}"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An encoder for a machine; ``milliseconds`` of a frame there are an estimate: those that were measured,
    shared by the cores; None on a GPU, where nothing was measured.
    """

    model: Published
    milliseconds: float | None

    def __str__(self) -> str:
        pace = "on the GPU" if self.milliseconds is None else f"about {self.milliseconds:.0f} ms a frame"
        return (
            f"{self.model.name}: {self.model.languages}, {self.model.licence}, "
            f"{self.model.megabytes} MB, {pace}"
        )


def this_machine() -> Machine:
    """The machine that this process runs on, or the part of it that it may use."""
    gpu = may_have_gpu() and has_torch() and available_device("auto") != "cpu"
    return Machine(available_cores(), gpu, min(_memories(), default=None))


def _memories() -> Iterator[float]:
    """Memory of the machine, and that to which a container is limited, in gigabytes."""
    with suppress(AttributeError, ValueError, OSError):  # Windows has none of these
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    for file in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(ValueError, OSError):  # "max" is no limit
            yield int(Path(file).read_text(encoding="ascii")) / 1e9


def suggested(machine: Machine) -> list[Suggestion]:
    """For each kind of languages the encoder that does most work a frame and still keeps pace on a machine,
    or the fastest one; of those that were measured and whose licence allows any use.
    """
    open_ones = [model for model in PUBLISHED if model.any_use and model.milliseconds is not None]
    kinds = dict.fromkeys(model.languages for model in open_ones)
    return [_best([model for model in open_ones if model.languages == kind], machine) for kind in kinds]


def _best(models: list[Published], machine: Machine) -> Suggestion:
    def milliseconds(model: Published) -> float:
        return (model.milliseconds or 0) / machine.cores

    room = float("inf") if machine.memory is None else 1000 * machine.memory * _MEMORY_SHARE
    pace = 1000 / _FRAMES_A_SECOND
    fit = [model for model in models if model.megabytes <= room]
    fit = fit or [min(models, key=lambda model: model.megabytes)]
    fast = fit if machine.gpu else [model for model in fit if milliseconds(model) <= pace]
    chosen = max(fast, key=lambda model: model.work) if fast else min(fit, key=milliseconds)
    return Suggestion(chosen, None if machine.gpu else milliseconds(chosen))
