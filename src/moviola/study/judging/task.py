"""The file of a judging task: moments to judge, held batches, and every answer as soon as it is given.

One SQLite file, in WAL mode: several raters write at the same time, from one server or from several, and an
answer that was acknowledged survives a process that is killed. It needs the library only to show the moments.
"""

from __future__ import annotations

import re
import sqlite3
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path

from moviola.errors import AlreadyJudged, DataError, InvalidValue, NotFound
from moviola.files.writing import draft_of
from moviola.library.disk.database import Database, named
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.datasets.building.consensus import LEVELS
from moviola.study.judging.schedule import (
    Answer,
    Outcome,
    due_pairs,
    hidden_order,
    missing,
    next_batch,
    outcome,
)

__all__ = ["Batch", "BatchMoment", "JudgingTask", "TaskSettings", "folded_name", "shown_name"]

FORMAT = 1
REMEDY = "restore a copy or make a new task"
HOLD_SECONDS = 1800.0  # for which a batch is kept for an inactive rater
LONGEST_NAME = 60
LARGEST_SEED = 2**53  # the file holds every number up to it

_SCHEMA = """
CREATE TABLE settings (key TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE pairs (
    place INTEGER PRIMARY KEY, pair_id TEXT NOT NULL UNIQUE, query_id TEXT NOT NULL, query TEXT NOT NULL,
    video_name TEXT NOT NULL, start REAL NOT NULL, end REAL NOT NULL, duration REAL NOT NULL,
    caption TEXT NOT NULL, similarity REAL NOT NULL, rank INTEGER NOT NULL
);
CREATE TABLE raters (name TEXT PRIMARY KEY, folded TEXT NOT NULL UNIQUE) WITHOUT ROWID;
CREATE TABLE answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT, pair_id TEXT NOT NULL, rater TEXT NOT NULL, level INTEGER,
    UNIQUE (pair_id, rater)
);
CREATE TABLE held (
    pair_id TEXT NOT NULL, rater TEXT NOT NULL, since REAL NOT NULL, PRIMARY KEY (pair_id, rater)
) WITHOUT ROWID;
"""
_PAIR = ", ".join(field.name for field in fields(Pair))


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Settings of a judging task.

    Attributes:
        raters: raters per moment: 2 (the paper; four if the two differ), 4 from the beginning, or 1 for one
            person alone, without agreement.
        seed: of the order of queries and moments, 0 to 2**53.
        last, threshold: when a second batch is due; see
            :func:`~moviola.study.datasets.building.candidate_pairs.needs_second_batch`.

    Raises:
        InvalidValue: a number outside its range.
    """

    raters: int = 2
    seed: int = 0
    last: int = 5
    threshold: float = 2.0

    def __post_init__(self) -> None:
        if self.raters not in (1, 2, 4):
            raise InvalidValue(
                f"raters={self.raters}: give 1, 2 or 4; the rule of consensus takes two or four"
            )
        if not 0 <= self.seed <= LARGEST_SEED:
            raise InvalidValue(f"seed={self.seed}: give a number from 0 to {LARGEST_SEED:,}")
        if self.last < 1:
            raise InvalidValue(f"last={self.last}: give at least 1 moment")


@dataclass(frozen=True, slots=True)
class BatchMoment:
    """A moment to judge, without rank, systems or other raters' levels.

    ``level`` is this rater's, None before; ``passed``: it was skipped.
    """

    pair_id: str
    video_id: str
    start: float
    end: float
    level: int | None = None
    passed: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Moments of one query, in the rater's order, judged ones included."""

    query_id: str
    query: str
    moments: tuple[BatchMoment, ...]


def shown_name(name: str) -> str:
    """A rater's name without further blanks, in Unicode's normal form C.

    Raises:
        InvalidValue: the name is empty, too long, or unprintable.
    """
    shown = " ".join(unicodedata.normalize("NFC", name).split())
    if not 0 < len(shown) <= LONGEST_NAME or re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", shown):
        raise InvalidValue(f"name {name[:80]!r}: give 1 to {LONGEST_NAME} letters")
    return shown


def folded_name(name: str) -> str:
    """The form in which names of one rater are equal; errors as in :func:`shown_name`."""
    return shown_name(name).casefold()


class JudgingTask(Database):
    """An existing judging task, its settings and all its pairs; safe for threads and for several processes.

    ``clock`` gives rising seconds, to measure how long a batch has been held.

    Raises:
        NotFound: no such file.
        DataError: it is no judging task, or one of a later version.
        LibraryError: it is damaged.
    """

    holds, remedy = "judging task", REMEDY

    def __init__(self, path: str | Path, *, clock: Callable[[], float] = time.time) -> None:
        path = Path(path)
        if not path.is_file():
            raise NotFound(f"{path}: no such judging task; `moviola judge new` makes one")
        super().__init__(path)
        self._clock = clock
        self.settings = self._read_settings()
        self.pairs = tuple(Pair(*row) for row in self._rows(f"SELECT {_PAIR} FROM pairs ORDER BY place"))
        self._pair_of = {pair.pair_id: pair for pair in self.pairs}

    @classmethod
    def create(
        cls,
        path: str | Path,
        pairs: Iterable[Pair],
        settings: TaskSettings,
        *,
        clock: Callable[[], float] = time.time,
    ) -> JudgingTask:
        """Create a file with these pairs.

        Raises:
            InvalidValue: no pairs, a pair id given twice, or an existing file.
        """
        path, rows = Path(path), [astuple(pair) for pair in pairs]
        if not rows:
            raise InvalidValue(f"{path}: no moment to judge; use other queries, or name more systems")
        if len({row[0] for row in rows}) != len(rows):
            raise InvalidValue(f"{path}: a pair id is given twice; give each pair an id of its own")
        if path.exists():
            raise InvalidValue(f"{path}: exists already; name another file")
        values = {"format": FORMAT, **asdict(settings)}
        named_errors = named(path, cls.holds, cls.remedy)
        with draft_of(path) as draft, named_errors, closing(sqlite3.connect(draft)) as db:
            db.executescript(_SCHEMA)
            db.executemany("INSERT INTO settings VALUES (?, ?)", values.items())
            marks = ", ".join("?" * len(rows[0]))
            db.executemany(f"INSERT INTO pairs ({_PAIR}) VALUES ({marks})", rows)
            db.commit()
            # Last: what is left in a journal as the disk is full gets lost without a word when it is closed.
            db.execute("PRAGMA journal_mode = WAL")
        return cls(path, clock=clock)

    def _read_settings(self) -> TaskSettings:
        if not self._rows("SELECT 1 FROM sqlite_master WHERE name = 'held'"):
            raise DataError(f"{self.path}: is no judging task; `moviola judge new` makes one")
        values = dict(self._rows("SELECT key, value FROM settings"))
        if (written_in := values.pop("format", None)) != FORMAT:
            raise DataError(
                f"{self.path}: a judging task of format {written_in!r:.40}, but this moviola reads {FORMAT}; "
                "update moviola, or judge on with the version that made it"
            )
        raters, seed, last = (int(values[name]) for name in ("raters", "seed", "last"))
        return TaskSettings(raters, seed, last, float(values["threshold"]))

    def answers(self) -> list[Answer]:
        """All answers, in the order in which each was first given."""
        rows = self._rows("SELECT pair_id, rater, level FROM answers ORDER BY number")
        return [Answer(*row) for row in rows]

    def outcome(self, answers: Iterable[Answer] | None = None) -> Outcome:
        """The outcome of these answers, of all by default."""
        return outcome(self.pairs, self.answers() if answers is None else answers, self.settings.raters)

    def due(self, found: Outcome | None = None) -> list[Pair]:
        """Pairs that may be judged now: first batches, and second ones that are due."""
        last, threshold = self.settings.last, self.settings.threshold
        return due_pairs(self.pairs, found or self.outcome(), last=last, threshold=threshold)

    def raters(self) -> list[str]:
        """Names of the raters signed in, sorted."""
        return [name for (name,) in self._rows("SELECT name FROM raters ORDER BY folded")]

    def sign_in(self, name: str) -> str:
        """A rater's name as the task knows it; ``anna`` is ``Anna`` if that name signed in before.

        Raises:
            InvalidValue: the name is empty, too long, or unprintable.
        """
        shown = shown_name(name)
        with self._changing():
            return self._signed_in(shown)

    def _signed_in(self, shown: str) -> str:
        self._rows("INSERT OR IGNORE INTO raters VALUES (?, ?)", (shown, folded_name(shown)))
        return str(self._rows("SELECT name FROM raters WHERE folded = ?", (folded_name(shown),))[0][0])

    def next_batch(self, rater: str) -> Batch | None:
        """The batch to judge now: the one held, else another, which is held from now on; None without any.

        ``rater`` is a name from :meth:`sign_in`.

        Raises:
            NotFound: no rater of this name.
        """
        with self._changing():
            self._known(rater)
            answers = self.answers()
            own = self._unfinished(rater, answers)
            if not own:
                outcome = self.outcome(answers)
                own = next_batch(
                    self.due(outcome), answers, self._held_by_others(rater), rater,
                    raters=self.settings.raters, seed=self.settings.seed,
                )  # fmt: skip
                self._hold(rater, own)
        return self._batch(rater, own, answers) if own else None

    def answer(self, rater: str, pair_id: str, level: int | None) -> None:
        """Save an answer, or change it; it is on disk when this returns.

        Args:
            rater: a name from :meth:`sign_in`.
            level: 0 to 4; None skips the moment.

        Raises:
            NotFound: no such rater or pair.
            InvalidValue: no such level.
            AlreadyJudged: others have judged the moment in the meantime.
        """
        with self._changing():
            self._known(rater)
            self._save(rater, pair_id, level)

    def answer_as(self, name: str, pair_id: str, level: int | None) -> None:
        """Sign in and answer at once; where the answer is refused, nobody is signed in.

        Raises:
            NotFound, InvalidValue, AlreadyJudged: see :meth:`sign_in` and :meth:`answer`.
        """
        shown = shown_name(name)
        with self._changing():
            self._save(self._signed_in(shown), pair_id, level)

    def _save(self, rater: str, pair_id: str, level: int | None) -> None:
        if level is not None and level not in range(LEVELS):
            raise InvalidValue(f"level {level!r}: give 0 to {LEVELS - 1}, or none to skip the moment")
        if not self._has_place(rater, pair_id):
            raise AlreadyJudged(
                f"{pair_id}: others have judged it in the meantime; continue with the next moment"
            )
        self._rows(
            "INSERT INTO answers (pair_id, rater, level) VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET level = excluded.level",
            (pair_id, rater, level),
        )
        self._rows("DELETE FROM held WHERE pair_id = ? AND rater = ?", (pair_id, rater))
        # Not what was held for too long: others may have taken it over.
        now = self._clock()
        self._rows(
            "UPDATE held SET since = ? WHERE rater = ? AND since > ?", (now, rater, now - HOLD_SECONDS)
        )

    def undo(self, rater: str, pair_id: str) -> None:
        """Withdraw an answer; the moment stays with its rater, to be judged again.

        Raises:
            NotFound: no such rater, or no answer of this rater.
        """
        with self._changing():
            self._known(rater)
            deleted = "DELETE FROM answers WHERE pair_id = ? AND rater = ? RETURNING 1"
            if not self._rows(deleted, (pair_id, rater)):
                raise NotFound(f"{pair_id}: {rater} has given no answer; there is nothing to withdraw")
            self._rows("INSERT OR REPLACE INTO held VALUES (?, ?, ?)", (pair_id, rater, self._clock()))

    def _known(self, rater: str) -> None:
        if not self._rows("SELECT 1 FROM raters WHERE name = ?", (rater,)):
            raise NotFound(f"rater {rater[:80]!r}: not signed in; sign in first")

    def _has_place(self, rater: str, pair_id: str) -> bool:
        """Whether this rater's level is a change, or the pair needs more raters than judge or hold it."""
        if pair_id not in self._pair_of:
            raise NotFound(f"pair {pair_id[:200]!r}: not in this task")
        rows = self._rows(
            "SELECT rater, level FROM answers WHERE pair_id = ? AND level IS NOT NULL ORDER BY number",
            (pair_id,),
        )
        levels = {name: int(level) for name, level in rows}
        if rater in levels:
            return True
        left = missing(list(levels.values()), self.settings.raters)
        holds = self._rows(
            "SELECT 1 FROM held WHERE pair_id = ? AND rater = ? AND since > ?",
            (pair_id, rater, self._clock() - HOLD_SECONDS),
        )
        return left > (0 if holds else len(self._held_by_others(rater).get(pair_id, ())))

    def _held_by_others(self, rater: str) -> dict[str, set[str]]:
        held: dict[str, set[str]] = defaultdict(set)
        since = self._clock() - HOLD_SECONDS
        for pair_id, name in self._rows(
            "SELECT pair_id, rater FROM held WHERE rater <> ? AND since > ?", (rater, since)
        ):
            held[pair_id].add(name)
        return held

    def _hold(self, rater: str, pairs: Iterable[Pair]) -> None:
        """From now on this rater holds these pairs, and no others."""
        now = self._clock()
        self._rows("DELETE FROM held WHERE rater = ?", (rater,))
        self._put_all("held (pair_id, rater, since)", [(pair.pair_id, rater, now) for pair in pairs])

    def _unfinished(self, rater: str, answers: list[Answer]) -> list[Pair]:
        """The pairs that this rater holds and may still judge, of one batch; all are held from now on.

        A withdrawn answer may be of another batch than the present one; the batch with fewer pairs left comes
        first.
        """
        given = {answer.pair_id for answer in answers if answer.rater == rater}
        held = [
            self._pair_of[pair_id]
            for (pair_id,) in self._rows("SELECT pair_id FROM held WHERE rater = ?", (rater,))
            if pair_id not in given and self._has_place(rater, pair_id)
        ]
        self._hold(rater, held)
        batches: dict[tuple[str, int], list[Pair]] = defaultdict(list)
        for pair in held:
            batches[pair.query_id, pair.batch].append(pair)
        return min(batches.values(), key=len, default=[])

    def _batch(self, rater: str, own: list[Pair], answers: list[Answer]) -> Batch:
        """Pairs of one batch with the rater's judgements of the same batch."""
        query_id, number = own[0].query_id, own[0].batch
        given = {answer.pair_id: answer.level for answer in answers if answer.rater == rater}
        shown = given.keys() | {pair.pair_id for pair in own}
        moments = [
            BatchMoment(
                name, pair.video_name, pair.start, pair.end, given.get(name), given.get(name, 0) is None
            )
            for pair in self.pairs
            if (name := pair.pair_id) in shown and (pair.query_id, pair.batch) == (query_id, number)
        ]
        moments.sort(key=lambda moment: hidden_order(self.settings.seed, rater, moment.pair_id))
        return Batch(query_id, own[0].query, tuple(moments))
