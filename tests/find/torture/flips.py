"""*Flips*: one bit of a region of a file is flipped; ``verify`` notices, and ``doctor``'s advice mends it.

What must hold wherever the bit is:

- A search gives the answer of before, to the last digit, or refuses with an error that names the library;
  never a traceback.
- ``verify`` finds it, or the library refuses to open; of a removed video, ``restore`` refuses.
- What ``doctor`` advises mends what can be made again (``index/``, ``cache/``) so that all is as before. Of
  damaged features it names the video. It takes nothing else from the library: every other video, every kept
  entry and concept is as before, and a damaged video is in, or among the removed.

SQLite has no digests: in a database a flipped bit of a text or a number may go unnoticed, and such answers
are counted. A model's card (``README.md``) is read by nobody, nor are comments in ``moviola.toml``.
"""

from __future__ import annotations

import itertools
import random
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from moviola.errors import MoviolaError
from moviola.library import diagnosis, verify
from moviola.search import Library
from operations import todays_library
from sample import Answers, flip_bit, restored
from seen import Seen, seen

__all__ = ["Flips"]

# The most regions into which a file is divided.
_REGIONS = 24
_DATABASES = {"catalogue.sqlite", "kept.sqlite", "stills.sqlite"}
_REMADE = ("index/", "cache/")
_OF_FILE = {"concepts/": {"concepts"}, "models/": {"settings"}}
"""Parts that may differ where a file was damaged that cannot be made again."""
_OF_VIDEO = {"videos", "removed", "captures", "alerts"}
"""What may be another one of a damaged video, which has another row once it is encoded again."""
_ROUNDS = 3
"""Of advice that is followed."""


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
        self._films = folder / "films"
        self._original = todays_library(self._films, folder / "original")
        (self._films / "c.mp4").unlink()
        with Library(self._original) as library:
            library.indexer.use(refiner="demo")
            library.index(self._films, ocr=False)
        self._copy = folder / "library"
        self._before = seen(self._original)
        self._without = cache(self._answers_without)
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
        return found

    def run(self, goes_on: Callable[[], bool], share: tuple[int, int] = (0, 1)) -> None:
        """Flip one after the other until all of a share are done, or ``goes_on`` says no."""
        part, parts = share
        points = self.points()[part::parts]
        self._draw.shuffle(points)
        self.counts["points"] = len(points)
        for name, place, bit in points:
            if not goes_on():
                return
            self.counts["tried"] += 1
            for problem in self.flip(name, place, bit):
                self.failures.append(f"{name}, byte {place}, bit {bit}: {problem}")

    def flip(self, name: str, place: int, bit: int) -> Iterator[str]:
        """Flip one bit; gives what must not happen."""
        folder = restored(self._original, self._copy)
        flip_bit(folder / name, place, bit)
        undetectable = name in _DATABASES or name.endswith("README.md")
        try:
            now = self._seen(folder)
            if now is None:
                self.counts["refused"] += 1
            elif now.answers == self._before.answers:
                self.counts["answered as before"] += 1
            elif undetectable:
                self.counts["another answer (no digest)"] += 1
            else:
                yield "another answer, and not a word"
            if now is not None and now.problems == self._before.problems:
                if name == "moviola.toml" and now.parts["settings"] == self._before.parts["settings"]:
                    self.counts["another comment"] += 1
                elif undetectable:
                    self.counts["unnoticed by verify (no digest)"] += 1
                elif not self._comes_back_damaged(folder, name, now):
                    yield "not found by verify"
                return
            self.counts["found by verify"] += 1
            yield from self._mended(folder, name)
        except Exception as error:  # that none comes is what is tried
            yield f"{type(error).__name__}: {error}"

    def _seen(self, folder: Path) -> Seen | None:
        """None where the library refuses, naming itself."""
        try:
            return seen(folder)
        except MoviolaError as error:
            if str(folder) not in str(error):
                raise
            return None

    def _comes_back_damaged(self, folder: Path, name: str, now: Seen) -> bool:
        """Whether features are a removed video's, which are looked at when it is to come back."""
        before = self._before.parts["removed"]
        other = [video_id for video_id in before if now.parts["removed"].get(video_id) != before[video_id]]
        if not name.startswith("features/") or not other:
            return False
        with Library(folder) as library:
            try:
                library.indexer.restore(other)
            except MoviolaError as error:
                self.counts["found when it is to come back"] += 1
                return other[0] in str(error)
        return False

    def _mended(self, folder: Path, name: str) -> Iterator[str]:
        """Follow the advice, and look again."""
        damaged = self._damaged(folder)
        for _ in range(_ROUNDS):
            wrong = [one for one in diagnosis._library(folder) if not one.ok]
            for command in dict.fromkeys(command for one in wrong for command in one.commands):
                _follow(command)
        now = self._seen(folder)
        if now is None:
            if name.startswith(_REMADE) or name == "moviola.toml":
                yield "cannot be mended, though it can be made again"
            self.counts["to be restored from a copy"] += 1
            return
        if name in _DATABASES:
            self.counts["a database, read all the same"] += 1
            return
        if name.startswith("features/") and not damaged:
            yield "no video is named"
        yield from self._kept(now, name, damaged)
        gone = frozenset(self._before.parts["videos"]) - set(now.parts["videos"])
        if not name.startswith("models/") and now.answers != self._without(gone):
            yield f"other answers than a library without {', '.join(gone) or 'damages'}"
        self.counts["mended" if name.startswith(_REMADE) else "the rest is as before"] += 1

    def _kept(self, now: Seen, name: str, damaged: set[str]) -> Iterator[str]:
        may = next((kinds for start, kinds in _OF_FILE.items() if name.startswith(start)), set())
        if lost := self._before.known - now.known:
            yield f"lost: {', '.join(sorted(lost))}"
        for kind, before in self._before.parts.items():
            for key, value in before.items():
                if now.parts[kind].get(key) == value or kind in may:
                    continue
                if kind not in _OF_VIDEO or not damaged & _videos_in(kind, key, value):
                    yield f"{kind}: {key} is not as before"

    def _damaged(self, folder: Path) -> set[str]:
        try:
            with Library(folder, read_only=True) as library:
                return {problem.video_id for problem in verify(library.store) if problem.video_id}
        except MoviolaError:
            return set()

    def _answers_without(self, gone: frozenset[str]) -> Answers:
        """Those of a sound library from which some videos were taken out."""
        if not gone:
            return self._before.answers
        folder = self._copy.with_name("without")
        shutil.rmtree(folder, ignore_errors=True)
        with Library(restored(self._original, folder)) as library:
            library.indexer.remove(gone)
        return seen(folder).answers


def _videos_in(kind: str, key: object, value: object) -> set[object]:
    """Ids of the videos that an entry of a part is about."""
    if kind == "alerts":
        return set(value) if isinstance(value, list) else set()
    return {key[0] if isinstance(key, tuple) else key}


def _follow(command: str) -> None:
    """Run a command that was advised, and confirm it."""
    from typer.testing import CliRunner

    from moviola.cli import all_commands

    program, *words = shlex.split(command)
    assert program == "moviola", command
    for more in ([], ["--yes"]):
        outcome = CliRunner().invoke(all_commands(), [*words, *more])
        error = outcome.exception
        if error is not None and not isinstance(error, SystemExit | MoviolaError):
            raise error
        if not more and "--yes" not in f"{outcome.output} {error}":
            return
