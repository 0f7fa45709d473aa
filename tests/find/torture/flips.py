"""*Flips*: one bit of a region of a file is flipped; a search, ``verify`` and ``repair`` must notice.

What must hold wherever the bit is:

- A search gives the answer of before, or refuses with an error that names the library; never a traceback.
- ``verify`` finds it, or the library refuses to open.
- ``repair`` mends what can be made anew (``index/``, ``cache/``) so that all is as before; of damaged
  features it names the video.

Neither SQLite nor TOML has digests: in ``catalogue.sqlite`` and ``moviola.toml`` a flipped bit of a text or a
number may go unnoticed, and such answers are counted. A model's card (``README.md``) is read by nobody.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from moviola.errors import MoviolaError
from moviola.search import Library
from sample import Answers, answers, films_in, library_of, restored

__all__ = ["Flips", "flip_bit"]

# Each file is divided into so many regions at most.
_REGIONS = 24
_WITHOUT_DIGEST = {"catalogue.sqlite", "kept.sqlite", "stills.sqlite", "moviola.toml"}
_REMADE = ("index/", "cache/")


class Flips:
    """A library, and every region of every file of it in an order of the seed's.

    Args:
        folder: an empty one to work in.
        seed: of the order, and of the bits.

    Attributes:
        counts: what happened so far, by outcome.
        failures: what must not happen.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._draw = random.Random(seed)
        self._original = library_of(films_in(folder / "films"), folder / "original", model=True)
        self._copy = folder / "library"
        self._expected = answers(self._original)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []

    def points(self) -> list[tuple[str, int, int]]:
        """A file and the place and bit of a flip, for every region of every file."""
        found = []
        for path in sorted(p for p in self._original.rglob("*") if p.is_file()):
            size = path.stat().st_size
            if path.name.endswith(("-shm", "-wal")) or not size:
                continue
            edges = sorted({size * part // _REGIONS for part in range(_REGIONS + 1)})
            name = path.relative_to(self._original).as_posix()
            found += [
                (name, self._draw.randrange(start, end), self._draw.randrange(8))
                for start, end in itertools.pairwise(edges)
            ]
        self._draw.shuffle(found)
        return found

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Flip one after the other until all are done, or ``goes_on`` says no."""
        for name, place, bit in self.points():
            if not goes_on():
                return
            self.counts["tried"] += 1
            for problem in self.flip(name, place, bit):
                self.failures.append(f"{name}, byte {place}, bit {bit}: {problem}")

    def flip(self, name: str, place: int, bit: int) -> Iterator[str]:
        """Flip one bit; gives what must not happen."""
        folder = restored(self._original, self._copy)
        flip_bit(folder / name, place, bit)
        undetectable = name in _WITHOUT_DIGEST or name.endswith("README.md")
        try:
            found = self._answers(folder)
            if found == self._expected:
                self.counts["answered as before"] += 1
            elif found is None:
                self.counts["refused"] += 1
            elif undetectable:
                self.counts["another answer (no digest)"] += 1
            else:
                yield "another answer, and not a word"
            if not self._is_found(folder):
                if undetectable:
                    self.counts["unnoticed by verify (no digest)"] += 1
                else:
                    yield "not found by verify"
                return
            self.counts["found by verify"] += 1
            yield from self._repaired(folder, name)
        except Exception as error:  # that none comes is what is tried
            yield f"{type(error).__name__}: {error}"

    def _answers(self, folder: Path) -> Answers | None:
        """None where the library refuses, naming itself."""
        try:
            return answers(folder)
        except MoviolaError as error:
            if str(folder) not in str(error):
                raise
            return None

    def _is_found(self, folder: Path) -> bool:
        try:
            with Library(folder, read_only=True) as library:
                return bool(library.verify())
        except MoviolaError:
            return True

    def _repaired(self, folder: Path, name: str) -> Iterator[str]:
        try:
            with Library(folder) as library:
                mended = library.repair()
                left = library.verify()
        except MoviolaError:
            if name.startswith(_REMADE):
                yield "cannot be mended, though it can be made anew"
            self.counts["to be restored from a copy"] += 1
            return
        if any(problem.repairable for problem in left):
            yield f"not mended: {left[0].message}"
        if name.startswith(_REMADE):
            if left or not mended or answers(folder) != self._expected:
                yield "not as before after it was mended"
            self.counts["mended"] += 1
        elif name.startswith("features/"):
            if not any(problem.video_id for problem in mended):
                yield "no video is named"
            self.counts["the video is named"] += 1
        else:
            self.counts["to be restored from a copy"] += 1


def flip_bit(path: Path, place: int, bit: int = 0) -> None:
    """Flip one bit of a file."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)
