"""What people keep in several libraries that are searched as one, as far as it belongs to their videos.

Tags and ratings are those of all; what changes them goes to the library of their video, under the id that
the video has there. Collections of all can be read, and are changed in the library that has them. Saved
searches belong to one library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from pydantic import BaseModel

from moviola.errors import LibraryError, NotFound
from moviola.files.names import nearest
from moviola.library.united_store import UnitedStore, belongs_to_one, tags_in
from moviola.library.userdata.entries import UserData
from moviola.library.userdata.values import Collection, Entry, Kind, Mark, checked_kind, entry_of

__all__ = ["UnitedUserData"]


class UnitedUserData:
    """Tags, ratings and collections of several libraries, with the ids that videos have among all.

    Methods are those of :class:`moviola.library.userdata.entries.UserData`; whatever is no mark is only read.

    Raises:
        LibraryError: the entry that is read, or changed, belongs to one library.
    """

    def __init__(self, store: UnitedStore) -> None:
        self._store = store
        self._parts = [UserData(part.folder, lengths=part.catalogue.lengths_of) for part in store.parts]

    def close(self) -> None:
        """Close the files of all."""
        for part in self._parts:
            part.close()

    def entries(self, kind: Kind | None = None) -> list[Entry]:
        """Marks and collections of all, by kind and name. A collection whose name several libraries have
        bears that of its library before it, as an id does.
        """
        if kind is not None and checked_kind(kind) == "search":
            raise self._belongs_to_one("saved searches")
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
        """None: pictures belong to saved searches."""
        return {}

    def put(
        self, kind: Kind, name: str, value: Mapping[str, Any] | BaseModel, version: int | None = None
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
        """Refused: lines of all that is kept are read into one library, as saved searches are run in one."""
        raise self._belongs_to_one("saved searches, and the lines of all that is kept,")

    export = take = alerted = opened = open_to = refuse

    def _belongs_to_one(self, what: str) -> LibraryError:
        return belongs_to_one(self._store, what)

    def _own(self, mark: Mark) -> tuple[int, Mark]:
        """Place of the library of a mark's video, and the mark as it is there."""
        place, video = self._store.catalogue.own(self._store.catalogue.video(mark.video_id))
        return place, mark.model_copy(update={"video_id": video.video_id})

    def _all(self) -> Iterator[tuple[int, Entry]]:
        """Marks and collections with the place of their library, named as they are among all."""
        every = [
            (place, entry)
            for place, part in enumerate(self._parts)
            for kind in ("collection", "mark")
            for entry in part.entries(kind)
        ]
        names = [entry.name for _, entry in every if entry.kind == "collection"]
        for place, entry in every:
            named = self._named(place, entry)
            if entry.kind == "collection" and names.count(entry.name) > 1:
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
        return entry
