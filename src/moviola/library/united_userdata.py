"""What people keep in several libraries that are searched as one, as far as it belongs to their videos.

Tags and ratings are those of all; what changes them goes to the library of their video, under the id that
the video has there. Collections and saved searches of all can be read, and are changed in the library that
has them. A saved search asks all libraries; what is new since it was opened is known to its library alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NoReturn

from pydantic import BaseModel

from moviola.errors import LibraryError, NotFound
from moviola.files.names import nearest
from moviola.library.united_store import UnitedStore, belongs_to_one, saved_picture_in, tags_in
from moviola.library.userdata.entries import UserData
from moviola.library.userdata.values import Collection, Entry, Kind, Mark, SavedSearch, checked_kind, entry_of

__all__ = ["UnitedUserData"]


class UnitedUserData:
    """Tags, ratings, collections and saved searches of several libraries, with the ids that videos have among
    all.

    Methods are those of :class:`moviola.library.userdata.entries.UserData`; whatever is no mark is only read.

    Raises:
        LibraryError: the entry that is changed belongs to one library.
    """

    def __init__(self, store: UnitedStore) -> None:
        self._store = store
        self._parts = [UserData(part.folder, lengths=part.catalogue.lengths_of) for part in store.parts]

    def close(self) -> None:
        """Close the files of all."""
        for part in self._parts:
            part.close()

    def entries(self, kind: Kind | None = None) -> list[Entry]:
        """All entries, by kind and name. A collection or search whose name several libraries have bears that
        of its library before it, as an id does.
        """
        if kind is not None:
            checked_kind(kind)
        return sorted(
            (entry for _, entry in self._all() if kind in (None, entry.kind)),
            key=lambda entry: (entry.kind, entry.name),
        )

    def entry(self, kind: Kind, name: str) -> Entry:
        """One of :meth:`entries`; errors as there, and :class:`NotFound` where there is none."""
        entries = self.entries(kind)
        found = next((entry for entry in entries if entry.name == name), None)
        if found is None:
            near = nearest(name, [entry.name for entry in entries])
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise NotFound(f"{kind} {name!r}: no such entry{hint}")
        return found

    def tagged(self) -> dict[str, frozenset[str]]:
        """Ids of the videos that bear a tag, by tag."""
        return tags_in(self._store)

    def pictures(self) -> dict[str, int]:
        """Sizes in bytes of the pictures of saved searches, by name."""
        return {name: size for part in self._parts for name, size in part.pictures().items()}

    def picture(self, name: str) -> bytes:
        """A picture of a saved search; the errors are those of one library."""
        return saved_picture_in(self._store, name)

    def put(
        self,
        kind: Kind,
        name: str,
        value: Mapping[str, Any] | BaseModel,
        version: int | None = None,
        pictures: Mapping[str, bytes] = {},
    ) -> Entry:
        """Store a mark in the library of its video; :class:`NotFound` where no library has that."""
        if checked_kind(kind) != "mark":
            raise self._belongs_to_one("collections" if kind == "collection" else "saved searches")
        given = entry_of(kind, name, value).value
        assert isinstance(given, Mark)
        place, own = self._own(given)
        return self._named(place, self._parts[place].put("mark", own.name, own, version))

    def mark(
        self,
        mark: Mark,
        *,
        add: Iterable[str] = (),
        remove: Iterable[str] = (),
        rating: int | None = None,
    ) -> Entry | None:
        """Change tags and rating in the library of the mark's video."""
        place, own = self._own(mark)
        stored = self._parts[place].mark(own, add=add, remove=remove, rating=rating)
        return None if stored is None else self._named(place, stored)

    def delete(self, kind: Kind, name: str, version: int | None = None) -> None:
        """Delete a mark, also one of a video that was taken out."""
        if checked_kind(kind) != "mark":
            raise self._belongs_to_one("collections" if kind == "collection" else "saved searches")
        for place, part in enumerate(self._parts):
            for own in part.entries("mark"):
                if self._named(place, own).name == name:
                    return part.delete("mark", own.name, version)
        self.entry(kind, name)  # says that there is none
        return None

    def refuse(self, *_: object) -> NoReturn:
        """Refused: lines of all that is kept are read into one library, and what is new is counted in one."""
        raise self._belongs_to_one("what is new in saved searches, and the lines of all that is kept,")

    export = take = alerted = opened = open_to = refuse

    def _belongs_to_one(self, what: str) -> LibraryError:
        return belongs_to_one(self._store, what)

    def _own(self, mark: Mark) -> tuple[int, Mark]:
        """Place of the library of a mark's video, and the mark as it is there."""
        place, video = self._store.catalogue.own(self._store.catalogue.video(mark.video_id))
        return place, mark.model_copy(update={"video_id": video.video_id})

    def _all(self) -> Iterator[tuple[int, Entry]]:
        """Entries with the place of their library, named as they are among all."""
        every = [(place, entry) for place, part in enumerate(self._parts) for entry in part.entries()]
        names = Counter((entry.kind, entry.name) for _, entry in every)
        for place, entry in every:
            named = self._named(place, entry)
            if entry.kind != "mark" and names[entry.kind, entry.name] > 1:
                name = f"{self._store.catalogue.names[place]}:{entry.name}"
                named = named.model_copy(update={"name": name})
            yield place, named

    def _named(self, place: int, entry: Entry) -> Entry:
        """An entry with the ids that videos have among all."""
        id_of = self._store.catalogue.id_of
        value = entry.value
        if isinstance(value, Mark):
            value = value.model_copy(update={"video_id": id_of(place, value.video_id)})
            return entry.model_copy(update={"name": value.name, "value": value})
        if isinstance(value, Collection):
            moments = [
                one.model_copy(update={"video_id": id_of(place, one.video_id)}) for one in value.moments
            ]
            return entry.model_copy(update={"value": value.model_copy(update={"moments": moments})})
        question = _with_ids(value.root, partial(id_of, place))
        return entry.model_copy(update={"value": SavedSearch(question)})


def _with_ids(row: Any, id_of: Callable[[str], str]) -> Any:
    """The JSON of a question with other ids of its videos.

    >>> _with_ids({"query": {"wrong": [{"video_id": "beach"}]}, "videos": ["beach"]}, "2025:{}".format)
    {'query': {'wrong': [{'video_id': '2025:beach'}]}, 'videos': ['2025:beach']}
    """
    if isinstance(row, Mapping):
        return {
            key: id_of(value) if key == "video_id"
            else [*map(id_of, value)] if key == "videos" and value
            else _with_ids(value, id_of)
            for key, value in row.items()
        }  # fmt: skip
    return [_with_ids(one, id_of) for one in row] if isinstance(row, list) else row
