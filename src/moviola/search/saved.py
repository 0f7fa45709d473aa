"""Saved searches: questions that are kept under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

from moviola.errors import InvalidValue
from moviola.search.asked import Asked, picture_of, renamed
from moviola.search.found import SearchResult
from moviola.search.options import OptionChanges
from moviola.search.queries import KeptPicture, LikePicture

if TYPE_CHECKING:
    from moviola.library.userdata.entries import UserData
    from moviola.library.userdata.values import Entry

__all__ = ["SavedSearches"]


class SavedSearches:
    """The saved searches of a library.

    Args:
        userdata: what people keep.
        search: as :meth:`moviola.search.Library.search`.
    """

    def __init__(self, userdata: UserData, search: Callable[..., SearchResult]) -> None:
        self._userdata, self._search = userdata, search

    def asked(self, name: str) -> Asked:
        """The question of a saved search; it calls no model that looks, which each run has to name.

        Raises:
            NotFound: no search of this name is saved.
            InvalidValue: it can never run.
        """
        from moviola.library.userdata.values import SavedSearch

        saved = self._userdata.entry("search", name).value
        assert isinstance(saved, SavedSearch)
        try:
            return Asked.from_json(saved.root).unchecked
        except InvalidValue as error:
            raise InvalidValue(f"search {name!r}: {error}; save it again") from error

    def search(self, name: str, **changes: Unpack[OptionChanges]) -> SearchResult:
        """:meth:`moviola.search.Library.search` for a saved search, ``changes`` as there; errors as in
        :meth:`asked`, too.
        """
        question = self.asked(name)
        return self._search(question.query, question.options.with_changes(**changes))

    def save(
        self,
        name: str,
        asked: Asked | Mapping[str, Any],
        version: int | None = None,
        picture: Callable[[str], LikePicture | KeptPicture] = picture_of,
    ) -> Entry:
        """Save a question under a name, replacing the one of that name.

        Args:
            asked: the question, or its JSON, which is kept as it is but for its pictures: these are kept with
                it, large ones made smaller (:func:`moviola.media.small_picture`), and get other names.
                ``check`` is not kept: no saved search calls a model that looks.
            version: see :meth:`moviola.library.userdata.entries.UserData.put`.
            picture: gives the pictures that are named in JSON.

        Raises:
            InvalidValue: it can never run.
            MediaError: a picture cannot be read.
            OutOfDate, LibraryError: see :meth:`moviola.library.userdata.entries.UserData.put`.
        """
        from moviola.library.userdata.pictures import picture_to_keep

        row = asked.to_json() if isinstance(asked, Asked) else asked
        names: dict[str, str] = {}
        contents: dict[str, bytes] = {}

        def keep(given: str) -> LikePicture | KeptPicture:
            found = picture(given)
            if isinstance(found, LikePicture):
                names[given], content = picture_to_keep(found.path)
                contents[names[given]] = content
            return found

        Asked.from_json(row, keep)
        row = {name: value for name, value in row.items() if name != "check"}
        return self._userdata.put("search", name, renamed(row, names), version, contents)
