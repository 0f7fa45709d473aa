"""JSON details of a recognised cue in the catalogue: all but its time and text."""

from __future__ import annotations

import json
from dataclasses import astuple

from moviola.types import CUE_KINDS, Box, Cue, CueKind, Word

__all__ = ["details_of", "recognised_cue"]


def details_of(cue: Cue) -> str:
    """Confidence, box and words of a recognised cue."""
    box = None if cue.box is None else astuple(cue.box)
    details = {"confidence": cue.confidence, "box": box, "words": [astuple(word) for word in cue.words]}
    return json.dumps(details, ensure_ascii=False, separators=(",", ":"))


def recognised_cue(start: float, end: float, text: str, kind: CueKind, details: str) -> Cue:
    """The cue that :func:`details_of` described.

    Raises:
        ValueError, TypeError, KeyError: the kind or the details are damaged.
    """
    if kind not in CUE_KINDS:
        raise ValueError(kind)
    known = json.loads(details)
    confidence = None if known["confidence"] is None else float(known["confidence"])
    box = None if known["box"] is None else Box(*map(float, known["box"]))
    words = tuple(Word(float(begun), float(ended), str(word)) for begun, ended, word in known["words"])
    return Cue(start, end, text, kind, confidence, box, words)
