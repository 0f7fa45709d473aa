"""``Libraries``: several libraries, searched and answered as one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING

from moviola.library import LibraryStore
from moviola.library.united_store import UnitedStore, tags_in
from moviola.search.filters import COLUMNS
from moviola.search.library import Library
from moviola.timing import stage
from moviola.types import several

if TYPE_CHECKING:
    from moviola.library.united_userdata import UnitedUserData

__all__ = ["Libraries"]


class Libraries(Library):
    """Several libraries that are searched as one, with one ranked answer; their videos are only read.

    An answer is the one of a single library that has the videos of the first, then those of the second, and
    so on: scores, order and what is folded. Words weigh by the lines and names of all, and chance is that of
    all. Only an index that is not exact may give other segments than that of a single library. A video of
    which two libraries have the same file is shown once, the other as its copy.

    Ids of videos are those of their libraries; where several have a video of one id, each has the name of its
    library before it: ``holiday:beach``. An error of one library is an error of the search: nothing is left
    out in silence. Tags and ratings are those of all, and are kept in the library of their video; saved
    searches, collections and concepts of all are read (:mod:`moviola.library.united_userdata`); of two
    concepts of one name, that of the first.

    Args:
        folders: of the libraries, all built with the same encoders, models, segment length and frame rate.
        device, precision, resident: as in :class:`Library`.

    Raises:
        NotFound: a folder without a library.
        InvalidValue: none, or one folder twice.
        EncoderMismatch: built with different settings; the message names the library and both values.

    >>> both = Libraries(["2024", "2025"])  # doctest: +SKIP
    >>> best, *others = both.search("a red door")  # doctest: +SKIP
    """

    def __init__(
        self,
        folders: Sequence[str | PathLike[str]],
        *,
        device: str = "auto",
        precision: str = "auto",
        resident: bool = False,
    ) -> None:
        with stage("opening"), ExitStack() as opened:
            parts = [
                opened.enter_context(
                    LibraryStore(
                        folder,
                        read_only=True,
                        device=device,
                        precision=precision,
                        resident=resident,
                        columns=COLUMNS,
                    )
                )
                for folder in several("folders", folders)
            ]
            united = UnitedStore(parts)
            opened.pop_all()
        self._over(united)

    def _tagged(self) -> Mapping[str, Collection[str]]:
        return tags_in(self.store)

    @cached_property
    def userdata(self) -> UnitedUserData:  # type: ignore[override]  # most is only read
        """Tags, ratings, collections and saved searches of all."""
        from moviola.library.united_userdata import UnitedUserData

        assert isinstance(self.store, UnitedStore)
        return UnitedUserData(self.store)
