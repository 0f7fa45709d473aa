"""How videos are listened to: which of their sound tracks, and in which language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from moviola.errors import InvalidValue

__all__ = ["AS_PLAYED", "Listening"]


@dataclass(frozen=True, slots=True)
class Listening:
    """How videos are listened to.

    Attributes:
        track: ``"default"``: the sound track that is heard unless another is chosen; ``"all"``; else a number
            from 1 on, or a language.
        language: that is spoken, as ISO 639-1 has it; None: the reader finds out.
    """

    track: str = "default"
    language: str | None = None

    @classmethod
    def chosen(cls, track: str | None, language: str | None) -> Self:
        """By option.

        Raises:
            InvalidValue: no such track can be, or no such language.
        """
        from moviola.media import language_of, require_track_choice

        if track not in (None, "default", "all"):
            track = str(require_track_choice(str(track)))
        if language is not None and not (spoken := language_of(language)):
            raise InvalidValue(f"speech language {language!r}: give it as ISO 639 has it, such as de")
        return cls(track or "default", spoken if language is not None else None)

    def noted(self, revision: str) -> str:
        """A reader's revision as a library records it: followed by what was chosen."""
        chosen = {"track": self.track if self.track != "default" else "", "language": self.language}
        return "; ".join([revision, *(f"{name} {value}" for name, value in chosen.items() if value)])

    def same(self, noted: str) -> bool:
        """Whether what a library records was listened to in this way."""
        return self.noted("").partition(";")[2] == noted.partition(";")[2]


AS_PLAYED = Listening()
"""The track that players choose, in whatever language."""
