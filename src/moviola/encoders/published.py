"""Encoders of frames and texts that others have published and that run here, and which are recommended.

Parameters and work follow from their architectures; ``benchmarks/published_encoders.py`` counts them, and
measures what they cost. Quality is stated where its source was read. Nothing here decides what runs: a
checkpoint is what its own files say (:mod:`moviola.encoders.formats`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from moviola.devices import available_device, has_torch, may_have_gpu
from moviola.threads import available_cores

__all__ = [
    "PUBLISHED", "Machine", "Published", "Recommended", "pace_rank", "recommended", "this_machine",
    "users_language",
]  # fmt: skip


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

_LANGUAGES = {"English": "en", "Chinese": "zh"}

_FRAMES_A_SECOND = 10
"""Frames, each a second of film, that a recommended encoder is to encode in a second."""

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
class Recommended:
    """An encoder for a machine.

    Attributes:
        milliseconds: of a frame there, an estimate: those that were measured on another machine, shared by
            the cores; None on a GPU, where nothing was measured.
        why: the reason, in words.
    """

    model: Published
    milliseconds: float | None
    why: str

    def __str__(self) -> str:
        pace = "on the GPU" if self.milliseconds is None else f"about {self.milliseconds:.0f} ms a frame"
        return (
            f"{self.model.name}: {self.model.languages}, {self.model.licence}, "
            f"{self.model.megabytes} MB, {pace}; {self.why}"
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


def users_language(environment: Mapping[str, str] | None = None) -> str:
    """The language that a user has set, of two letters; empty where none is, as in most containers."""
    given = os.environ if environment is None else environment
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := given.get(variable):
            found = re.match(r"([a-z]{2})(?![a-zA-Z])", value)
            return found[1] if found else ""
    return ""


def recommended(machine: Machine | None = None, language: str | None = None) -> list[Recommended]:
    """The recommended encoder, and further ones after it: the one place that says so.

    For each kind of languages it is the encoder that does most work a frame and still keeps pace on a
    machine, or the fastest one; of those that were measured and whose licence allows any use. Those whose
    texts are in the user's language alone come first, then those of many languages, then the others.

    Args:
        machine: by default this one.
        language: of queries, of two letters, empty for an unknown one; by default :func:`users_language`.
    """
    machine = this_machine() if machine is None else machine
    language = users_language() if language is None else language
    open_ones = [model for model in PUBLISHED if model.any_use and model.milliseconds is not None]
    kinds = sorted(
        dict.fromkeys(model.languages for model in open_ones), key=lambda kind: _distance(kind, language)
    )
    return [_best([model for model in open_ones if model.languages == kind], machine) for kind in kinds]


def _distance(kind: str, language: str) -> int:
    """How far texts of a kind of languages are from a language: 0 for its own, 1 for many, 2 for others."""
    return 1 if kind == _MANY else 0 if _LANGUAGES[kind] == language else 2


def _best(models: list[Published], machine: Machine) -> Recommended:
    room = float("inf") if machine.memory is None else 1000 * machine.memory * _MEMORY_SHARE
    fit = [model for model in models if model.megabytes <= room]
    fit = fit or [min(models, key=lambda model: model.megabytes)]
    chosen = max(fit, key=lambda model: pace_rank(model.name, model.work, machine))
    keeps_pace, _ = pace_rank(chosen.name, chosen.work, machine)
    limit = "fit into memory" if machine.gpu else f"encode {_FRAMES_A_SECOND} s of film a second"
    why = f"the most work a frame of those that {limit} here" if keeps_pace else "the fastest one"
    return Recommended(chosen, milliseconds_of_frame(chosen.name, chosen.work, machine), why)


def milliseconds_of_frame(name: str, work: float, machine: Machine) -> float | None:
    """About how long an encoder takes for a frame on a machine: its processor time where that was measured,
    shared by the cores; of one that was not measured, what others of as much work took. None on a GPU.

    Args:
        work: multiplications of a frame, in thousand millions.
    """
    if machine.gpu:
        return None
    measured = {model.name: model for model in PUBLISHED if model.milliseconds is not None}
    each = (measured[name],) if name in measured else measured.values()
    return work * median((model.milliseconds or 0) / model.work for model in each) / machine.cores


def pace_rank(name: str, work: float, machine: Machine) -> tuple[bool, float]:
    """How encoders are ranked for a machine, the best by the largest: those that keep pace with it first, by
    their work, which stands for what they see; then the fastest ones. Arguments are those of
    :func:`milliseconds_of_frame`.
    """
    taken = milliseconds_of_frame(name, work, machine)
    if taken is None or taken <= 1000 / _FRAMES_A_SECOND:
        return True, work
    return False, -taken
