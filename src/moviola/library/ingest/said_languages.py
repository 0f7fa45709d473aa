"""The language of cues, corrected by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.errors import InvalidValue, NotFound
from moviola.library.derived.name_table import publish_names
from moviola.types import CUE_KINDS, CueKind, require_known
from moviola.words import language_named, language_title

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
    catalogue, tag = store.catalogue, _tag(language)
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
            before = "" if before.casefold() == "und" else _tag(before)
        if before not in there:
            raise NotFound(f"{video_id}: no {kind} in {language_title(before)}; there is {listed}")
        with catalogue.transaction():
            changed = catalogue.say_language(row, kind, before, tag)
        publish_names(store, encode=False)
    return changed


def _tag(language: str) -> str:
    if tag := language_named(language):
        return tag
    raise InvalidValue(f"language {language!r:.200}: not known; give a code or a name, such as de or German")
