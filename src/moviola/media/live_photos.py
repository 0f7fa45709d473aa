"""Live Photos: the short film that a phone takes with a picture, known among films."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["still_of"]

# Apple's name for what picture and film have in common; it stands in no other film.
_IDENTIFIER = "com.apple.quicktime.content.identifier"
_FILMS, _STILLS = frozenset({".mov", ".mp4"}), (".heic", ".heif", ".jpg", ".jpeg")
# Seconds that a phone takes, and a little.
_LONGEST = 4.0
# Between name and suffix, where a service has written the film again.
_REWRITTEN = "_HEVC"


def still_of(path: Path, tags: Mapping[str, str], seconds: float | None) -> str | None:
    """Of the film of a Live Photo, the name of the picture beside it, empty where that is not there; None of
    any other film.

    A film is one by its tag, names in small letters, or if it is short and a picture with its name lies
    beside.

    Args:
        seconds: by the file's header, None if that is silent.
    """
    if path.suffix.lower() not in _FILMS:
        return None
    names = {path.stem, path.stem.removesuffix(_REWRITTEN)}
    pictures = (f"{name}{suffix}" for name in sorted(names, key=len) for suffix in _spelt(_STILLS))
    beside = next((name for name in pictures if path.with_name(name).is_file()), "")
    if _IDENTIFIER in tags or (beside and seconds is not None and seconds <= _LONGEST):
        return beside
    return None


def _spelt(suffixes: tuple[str, ...]) -> list[str]:
    return [*map(str.upper, suffixes), *suffixes]
