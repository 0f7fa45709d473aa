"""Several tracks of subtitles beside one film: their languages, and what two of them say alike."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from moviola.media.subtitles.values import Notes
from moviola.types import Cue, CueForm
from moviola.words import base_language, detected, each_detected, fold

__all__ = ["in_language", "without_doubles"]

# Seconds between the starts of what two tracks say alike.
_TOGETHER = 1.0
# Which form of a line is kept.
_ORDER: dict[CueForm, int] = {"": 0, "hearing impaired": 1, "forced": 2}
_WORD = re.compile(r"\w+")
# What subtitles for the deaf say besides: "[door slams]", "ANNA: Come in!".
_SOUND = re.compile(r"[\[(（［【][^\])）］】]*[\])）］】]")
_SPEAKER = re.compile(r"^[^\w\n]*([^\W\d_][^:：\n]{0,30})[:：](?=\s)", re.MULTILINE)


def in_language(cues: Sequence[Cue], language: str, form: CueForm, *, default: str = "") -> list[Cue]:
    """The cues of one track with its form and its language, a tag of BCP 47: that which is given, else
    detected.

    Text in other letters than the language has is in another one. ``default`` is the language that
    a file has where nobody named one, so that it says nothing against what the text shows.
    """
    texts = [cue.text for cue in cues]
    if default and base_language(language) == default and detected(texts) not in ("", default):
        language = ""
    return [
        replace(cue, language=own, form=form)
        for cue, own in zip(cues, each_detected(texts, language), strict=True)
    ]


def without_doubles(cues: Iterable[Cue], notes: Notes) -> list[Cue]:
    """Cues in order of time, without those whose text another in the same language has at the same time.

    Two forms of a line are the same text where they differ in sounds, in brackets, or in the speaker, in
    capitals; of the form that comes later the sounds stay, as a cue of their own.
    """
    kept: list[Cue] = []
    starts: dict[tuple[str, str], list[float]] = defaultdict(list)

    def is_new(text: str, cue: Cue) -> bool:
        own = starts[base_language(cue.language), " ".join(_WORD.findall(fold(text))) or text]
        place = bisect_left(own, cue.start)
        if any(abs(cue.start - other) < _TOGETHER for other in own[max(place - 1, 0) : place + 1]):
            return False
        own.insert(place, cue.start)
        return True

    for cue in sorted(cues, key=lambda cue: (_ORDER[cue.form], cue.start, cue.end)):
        sounds, said = " ".join(_SOUND.findall(cue.text)), _said(cue.text)
        has_new_sounds = bool(sounds and said) and is_new(sounds, cue)
        if is_new(said or cue.text, cue):
            kept.append(cue)
        elif has_new_sounds:
            kept.append(replace(cue, text=sounds))
        else:
            notes.add("doubled", cue.text)
    return sorted(kept, key=lambda cue: (cue.start, cue.end))


def _said(text: str) -> str:
    """A line without sounds and speakers, empty where it has nothing else."""
    words = _SPEAKER.sub(lambda found: "" if found[1].isupper() else found[0], _SOUND.sub(" ", text))
    return words if _WORD.search(words) else ""
