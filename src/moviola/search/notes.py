"""What an answer says of itself besides its moments: how a query was read, and what is not known.

A note has a kind and what it is about, so that a page can say it in the language of its readers; its text is
plain English.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from moviola.words import language_title

__all__ = ["Note", "NoteKind"]

NoteKind = Literal[
    "without", "only without", "unknown word", "no concept", "unmeasured", "language", "date", "place",
    "looked", "not looked", "words alone", "in part", "by key frames", "by both",
]  # fmt: skip
"""What a note says: words of the query were read as an exclusion; the query only says what is not wanted; no
line and no name holds a word; ``@name`` names no concept; scores of an encoder were not measured; the query
was read in a language other than English, which encoders may not know; a date, or a name that may be a
place, is searched for as words, where a filter would choose videos by it; a model looked at moments; it did
not judge some; it judged by the words of the query, and not by its pictures and marks; only the
first parts of a video are in the library yet; videos are known by their key frames alone yet; videos are
answered by two encoders, since the library is being changed from one to the other.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to know about an answer.

    Attributes:
        about: the words that it is about: what is wanted, a word, a name, a date, an encoder, the tag of a
            language, empty for one that is not known, a model, or why it did not judge, the id of
            a video, or the number of videos.
        others: what is excluded, words of the library that are spelt like an unknown one, encoders that do
            not know the language, or the date as a filter has it; of a look the numbers of yes, partly, no
            and all, the probability that a verdict is right, and whether that was measured, ``"measured"``
            or ``"assumed"``; of no judgement the numbers of these and of all; minutes of
            a video that are in, and of all of it where that is known; the number of all that were
            searched; numbers of the videos that the new encoder answers, and of all.
        remedy: a command that helps; empty without one. Of an unknown word one that helps if it is of
            another language than English.
    """

    kind: NoteKind
    about: str
    others: tuple[str, ...] = ()
    remedy: str = ""

    def __str__(self) -> str:
        if self.kind in ("language", "without", "only without"):
            return self._how_read()
        if self.kind == "unknown word":
            alike = f"; {' or '.join(self.others)}?" if self.others else ""
            foreign = f"; if it is not English: {self.remedy} adds many languages" if self.remedy else ""
            return f"no “{self.about}” here{alike}{foreign}"
        if self.kind == "no concept":
            return f"no concept is called {self.about}; it is searched for as a word"
        if self.kind in ("date", "place", "in part", "by key frames", "by both"):
            return self._of_videos()
        if self.kind in ("looked", "not looked", "words alone"):
            return self._by_model()
        return (
            f"scores of {self.about} were not measured, so how likely a moment is right is a cautious guess"
        )

    def _by_model(self) -> str:
        if self.kind == "words alone":
            return f"the model judged by the words alone, “{self.about}”, and not by pictures or marks"
        if self.kind == "not looked":
            count, all = self.others
            return f"{count} of {all} {'was' if count == '1' else 'were'} not judged: {self.about}"
        yes, partly, no, all, right, known = self.others
        measured = "" if known == "measured" else "not measured, but "
        return (
            f"{self.about} judged {int(yes) + int(partly) + int(no)} of {all}: {yes} yes, {partly} partly, "
            f"{no} no; a verdict is {measured}taken to be right with a probability of {right}"
        )

    def _of_videos(self) -> str:
        if self.kind == "in part":
            return f"{self.about}: {' of '.join(self.others)} min in; the rest is not searched yet"
        if self.kind == "by key frames":
            (all,) = self.others
            return (
                f"{self.about} of {all} videos: known by key frames alone so far; their moments begin and "
                "end only as exactly as these lie, and words in them are not searched yet"
            )
        if self.kind == "by both":
            return (
                f"{' of '.join(self.others)} videos are answered by {self.about}, to which the library is "
                "being changed, the others by the encoder before"
            )
        if self.kind == "place":
            return f"if “{self.about}” is a place: what was filmed there is found by --near LAT,LON"
        (date,) = self.others
        return f"“{self.about}” is searched for as words; what was filmed then is found by --taken {date}"

    def _how_read(self) -> str:
        if self.kind == "only without":
            return (
                f"“{self.about}” says only what is not wanted, so pictures are not searched for it; say what "
                "is wanted and exclude the rest, or put it in quotation marks"
            )
        if self.kind == "without":
            excluded = " and without ".join(f"“{one}”" for one in self.others)
            return (
                f"read as “{self.about}” without {excluded}; in quotation marks words are taken as they are"
            )
        read = f"read as {language_title(self.about)}" if self.about else "not read as English"
        if not self.others:
            return read
        know = "does not know it" if len(self.others) == 1 else "do not know it"
        return (
            f"{read}; {' and '.join(self.others)} {know}, so what is seen or meant may be missed. "
            f"{self.remedy} adds many languages; so do encoders that `moviola models list` names"
        )
