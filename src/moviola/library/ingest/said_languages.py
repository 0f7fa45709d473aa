"""The language of cues, corrected by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.errors import InvalidValue, NotFound
from moviola.library.derived.name_table import publish_names
from moviola.types import CUE_KINDS, CueKind, require_known
from moviola.words import language_title, require_language

if TYPE_CHECKING:
    from moviola.library.disk.store import LibraryStore

__all__ = ["say_language"]


def say_language(
    store: LibraryStore, video_id: str, language: str, before: str | None = None, kind: CueKind = "subtitle"
) -> int:
    """Give cues of one kind of a video another language, which later readings keep; returns how many they
    are.

    Args:
        language: a tag of BCP 47, a code of ISO 639 or a name.
        before: the language that they have now, in the same form, empty where it is not known; None: the only
            one.

    Raises:
        NotFound: no such video, or it has no such cues.
        InvalidValue: no language, or several, of which one must be named.
    """
    require_known("kind", kind, CUE_KINDS)
    catalogue, tag = store.catalogue, require_language("language", language)
    with store.writing():
        row = catalogue.video(video_id).row
        tracks = [one for one in catalogue.tracks([row]).get(row, ()) if one.kind == kind]
        there = list(dict.fromkeys(one.language for one in tracks))
        listed = ", ".join(f"{language_title(one)} ({one or 'und'})" for one in there) or "none"
        if before is None and len(there) > 1:
            raise InvalidValue(
                f"{video_id}: {kind} in several languages, {listed}; name the one that is wrong"
            )
        if before is None:
            before = there[0] if there else ""
        elif before:
            before = "" if before.casefold() == "und" else require_language("language", before)
        if before not in there:
            raise NotFound(f"{video_id}: no {kind} in {language_title(before)}; there is {listed}")
        with catalogue.transaction():
            changed = catalogue.say_language(row, kind, before, tag)
        publish_names(store, encode=False)
    return changed
