"""What an answer says of itself besides its moments: how a query was read, and what is not known.

A note has a kind and what it is about, so that a page can say it in the language of its readers; its text is
plain English.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Note", "NoteKind"]

NoteKind = Literal["without", "only without", "unknown word", "no concept", "unmeasured"]
"""What a note says: words of the query were read as an exclusion; the query only says what is not wanted; no
line and no name holds a word; ``@name`` names no concept; scores of an encoder were not measured.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about an answer.

    Attributes:
        about: the words that it is about: what is wanted, a word, a name, an encoder.
        others: what is excluded, or words of the library that are spelt like an unknown one.
    """

    kind: NoteKind
    about: str
    others: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.kind == "without":
            excluded = " and without ".join(f"“{one}”" for one in self.others)
            return (
                f"read as “{self.about}” without {excluded}; in quotation marks words are taken as they are"
            )
        if self.kind == "only without":
            return (
                f"“{self.about}” says only what is not wanted, so pictures are not searched for it; say what "
                "is wanted and exclude the rest, or put it in quotation marks"
            )
        if self.kind == "unknown word":
            alike = f"; {' or '.join(self.others)}?" if self.others else ""
            return f"no “{self.about}” here{alike}"
        if self.kind == "no concept":
            return f"no concept is called {self.about}; it is searched for as a word"
        return (
            f"scores of {self.about} were not measured, so how likely a moment is right is a cautious guess"
        )
