"""Several tracks of subtitles beside one film: their languages, and what two of them say alike."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from moviola.media.subtitles.values import Notes
from moviola.types import Cue
from moviola.words import base_language, detected, each_detected, fold

__all__ = ["in_language", "joined_tracks"]

# Seconds between the starts of what two tracks say alike.
_TOGETHER = 1.0
# Which form of a line is kept.
_FORCED = "forced"
_ORDER: dict[str, int] = {"": 0, "hearing impaired": 1, _FORCED: 2}
_Starts = dict[tuple[str, str], list[float]]
_WORD = re.compile(r"\w+")
# What subtitles for the deaf say besides: "[door slams]", "ANNA: Come in!".
_SOUND = re.compile(r"[\[(（［【][^\])）］】]*[\])）］】]")
_SPEAKER = re.compile(r"^[^\w\n]*([^\W\d_][^:：\n]{0,30})[:：](?=\s)", re.MULTILINE)


def in_language(cues: Sequence[Cue], language: str, form: str, *, default: str = "") -> list[Cue]:
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


def joined_tracks(tracks: Iterable[tuple[str, Sequence[Cue]]], notes: Notes) -> list[Cue]:
    """Cues of tracks of one film, each with its title, in order of time, without those whose text another in
    the same language has at the same time. A further track of a language and form gets a form of its own, its
    title, or a number; it stays whole where less than half of it is in others.

    Two forms of a line are the same text where they differ in sounds, in brackets, or in the speaker, in
    capitals; of the form that comes later the sounds stay, as a cue of their own.
    """
    ordered = sorted(
        (track for track in tracks if track[1]), key=lambda track: (_rank(track[1][0].form), bool(track[0]))
    )
    alike = Counter(_main(cues) for _, cues in ordered)
    seen: Counter[tuple[str, str]] = Counter()
    starts: _Starts = defaultdict(list)
    kept: list[Cue] = []
    for title, cues in ordered:
        language, form = main = _main(cues)
        new = _new_of(cues, starts)
        whole = sum(cue.text == there.text for cue, there in new)
        if form != _FORCED and 2 * whole > len(cues):
            new = [(cue, cue) for cue in cues]
        elif len(new) < len(cues):
            notes.add("doubled", cues[0].text, len(cues) - len(new))
        name = title if alike[main] > 1 and title else str(seen[main] + 1) if seen[main] else ""
        seen[main] += bool(new)
        own = ", ".join(filter(None, (form, name)))
        kept += [replace(cue, form=own) if cue.language == language else cue for cue, _ in new]
    return sorted(kept, key=lambda cue: (cue.start, cue.end))


def _rank(form: str) -> int:
    return _ORDER.get(form, len(_ORDER))


def _main(cues: Sequence[Cue]) -> tuple[str, str]:
    """The language that most cues of a track are in, and its form."""
    return Counter(cue.language for cue in cues).most_common(1)[0][0], cues[0].form


def _new_of(cues: Sequence[Cue], starts: _Starts) -> list[tuple[Cue, Cue]]:
    """What a track says that none before says, each with the cue as it is there; ``starts`` is what those
    before say, and becomes larger.
    """

    def is_new(text: str, cue: Cue) -> bool:
        own = starts[cue.language, " ".join(_WORD.findall(fold(text))) or text]
        place = bisect_left(own, cue.start)
        if any(abs(cue.start - other) < _TOGETHER for other in own[max(place - 1, 0) : place + 1]):
            return False
        own.insert(place, cue.start)
        return True

    kept = []
    for cue in sorted(cues, key=lambda cue: (cue.start, cue.end)):
        sounds, said = " ".join(_SOUND.findall(cue.text)), _said(cue.text)
        has_new_sounds = bool(sounds and said) and is_new(sounds, cue)
        if is_new(said or cue.text, cue):
            kept.append((cue, cue))
        elif has_new_sounds:
            kept.append((replace(cue, text=sounds), cue))
    return kept


def _said(text: str) -> str:
    """A line without sounds and speakers, empty where it has nothing else."""
    words = _SPEAKER.sub(lambda found: "" if found[1].isupper() else found[0], _SOUND.sub(" ", text))
    return words if _WORD.search(words) else ""
