"""One reader per data set: public annotation files to
:class:`~moviola.study.datasets.annotations.Annotations`.

Durations are in separate files for some sets; those readers take a ``durations`` file. All raise
:class:`NotFound` where there is no file, and :class:`DataError` with the file, the row and the field where
one is damaged.

Examples:
    >>> from pathlib import Path
    >>> from moviola.study.datasets.readers import read_annotations
    >>> line = "AO8RW 0.0 6.9##a person is putting a book on a shelf."
    >>> _ = Path("charades_sta_test.txt").write_text(line)
    >>> found = read_annotations("charades_sta_test.txt")
    >>> len(found), found.videos, found.captions
    (1, ('AO8RW',), ('a person is putting a book on a shelf.',))
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moviola.study.datasets.annotations import Annotations
from moviola.study.datasets.readers.detection import durations_beside, kind_of
from moviola.study.datasets.readers.moments import (
    read_activitynet,
    read_charades,
    read_didemo,
    read_qvhighlights,
    read_tacos,
)
from moviola.study.datasets.readers.public import QUESTIONS, annotations_reader, read_questions
from moviola.study.datasets.readers.queries import QUERY_KEYS, kind_of_keys, read_query_keys
from moviola.study.datasets.readers.tvr import read_tvr, write_tvr
from moviola.study.datasets.readers.tvr_ranking import (
    asked_rows,
    ranked_queries,
    read_tvr_ranking,
    write_own_pairs,
)
from moviola.study.datasets.readers.videos import read_video_corpus, read_videos
from moviola.types import require_known

__all__ = [
    "QUERIES_OF", "QUERY_KEYS", "QUESTIONS", "READERS", "asked_rows", "durations_beside", "kind_of",
    "kind_of_keys", "ranked_queries", "read_activitynet", "read_annotations", "read_charades",
    "read_didemo", "read_query_keys", "read_questions", "read_qvhighlights", "read_tacos", "read_tvr",
    "read_tvr_ranking", "read_video_corpus", "read_videos", "write_own_pairs", "write_tvr",
]  # fmt: skip

READERS: dict[str, Callable[[Path, Path | None], Annotations]] = {
    "tvr": read_tvr,
    "tvr_ranking": read_tvr_ranking,
    "charades": read_charades,
    "activitynet": read_activitynet,
    "tacos": read_tacos,
    "qvhighlights": read_qvhighlights,
    "didemo": read_didemo,
    **{kind: annotations_reader(kind) for kind in QUESTIONS},
}

QUERIES_OF: dict[str, Callable[[Path], list[str]]] = {"tvr_ranking": ranked_queries}
"""Query texts of the data sets whose queries are not the captions of their moments."""


def read_annotations(
    path: str | Path, kind: str | None = None, durations: str | Path | None = None
) -> Annotations:
    """Read the annotation file of a data set.

    Args:
        kind: the data set, a key of :data:`READERS`; None: found out (:func:`kind_of`), with the file of
            durations that lies beside one of Charades-STA (:func:`durations_beside`).
        durations: file of durations, if the data set has one.

    Raises:
        InvalidValue: an unknown data set.
        NotFound, DataError: as all readers; also where no data set is found out.
    """
    if kind is None:
        kind = kind_of(path)
        durations = durations or (durations_beside(path) if kind == "charades" else None)
    require_known("data set", kind, READERS)
    return READERS[kind](Path(path), None if durations is None else Path(durations))
