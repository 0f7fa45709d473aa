"""Options of reading speech: the sound track and the language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from moviola.errors import InvalidValue

__all__ = ["AS_PLAYED", "Listening"]


@dataclass(frozen=True, slots=True)
class Listening:
    """Options of reading speech.

    Attributes:
        track: ``"default"``: the track that players choose; ``"all"``; else a number from 1 on, or a
            language.
        language: spoken language (ISO 639-1); None: detected.
    """

    track: str = "default"
    language: str | None = None

    @classmethod
    def chosen(cls, track: str | None, language: str | None) -> Self:
        """From options of the command line.

        Raises:
            InvalidValue: an impossible track or language.
        """
        from moviola.media import language_of, require_track_choice

        if track not in (None, "default", "all"):
            track = str(require_track_choice(str(track)))
        if language is not None and not (spoken := language_of(language)):
            raise InvalidValue(f"speech language {language!r}: give an ISO 639 code, such as de")
        return cls(track or "default", spoken if language is not None else None)

    def noted(self, revision: str) -> str:
        """A reader's revision as a library records it, followed by these options."""
        chosen = {"track": self.track if self.track != "default" else "", "language": self.language}
        return "; ".join([revision, *(f"{name} {value}" for name, value in chosen.items() if value)])

    def same(self, noted: str) -> bool:
        """Whether a recorded reading was made with these options."""
        return self.noted("").partition(";")[2] == noted.partition(";")[2]


AS_PLAYED = Listening()
"""The track that players choose, in any language."""
