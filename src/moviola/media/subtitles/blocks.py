"""SubRip and WebVTT: a line with two times, and the text below it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from moviola.media.subtitles.stamps import STAMP, seconds_of
from moviola.media.subtitles.values import Line, Notes
from moviola.media.subtitles.visible import of_tags

__all__ = ["read_subrip", "read_webvtt"]

_ARROW = "-->"
# The whole line: a text that holds two times or an arrow is none. What follows are settings of its place, but
# for SubRip that has its text there.
_TIMES = re.compile(
    rf"[ \t\ufeff]*{STAMP.format('a')}[ \t]*-->[ \t]*{STAMP.format('b')}(?:[ \t]+(?P<rest>[^\n]*))?"
)
_SETTINGS = re.compile(r"[\w-]+[ \t]*[:=]|[\d.,%\s]*$")
# What else begins like a line of times is a damaged one.
_LIKE_TIMES = re.compile(r"[ \t]*[-\u2212+]?\d+[:.,;\uff1a][^\s]{0,30}?[ \t]*-->")
# Arrows of careless programs, at the beginning of a cue.
_OTHER_ARROWS = ("=>", "- >", "- -", "-&gt;", "--->", "\u2013>", "\u2014>", "\u2212>", "\u2192")
_ARROWS = re.compile(
    rf"((?:\A|\n[ \t]*\n)(?:[ \t\ufeff]*\d+[ \t]*\n)?[ \t\ufeff]*{STAMP.format('a')})[ \t]*(?!-->)"
    r"(?:-+(?:>|&gt;)|(?:-[ \t]{0,2}){1,3}(?:>|&gt;)|[=\u2013\u2014\u2212]+(?:>|&gt;)|\u2192)"
    r"(?=[ \t]*[-+\d])"
)
_NUMBER = re.compile(r"[ \t]*#?\d{1,9}[.:]?[ \t]*")
_NUMBER_APART = re.compile(rf"\n[ \t]*\n{_NUMBER.pattern}\n[ \t]*\n\s*$")
# Blocks of WebVTT that hold no cue.
_COMMENT = re.compile(r"(?:NOTE|STYLE|REGION)(?=[ \t\n]|$)")
_ASIDE = re.compile(rf"WEBVTT(?=[ \t\n]|$)|{_COMMENT.pattern}")


def read_subrip(text: str, notes: Notes) -> Iterator[Line]:
    """Cues of SubRip, in order of the file. Empty lines inside a text belong to it, as players have it."""
    return _cues(text, notes, webvtt=False)


def read_webvtt(text: str, notes: Notes) -> Iterator[Line]:
    """Cues of WebVTT, in order of the file; no comments, styles or regions."""
    return _cues(text, notes, webvtt=True)


def _cues(text: str, notes: Notes, *, webvtt: bool) -> Iterator[Line]:
    if text.count("->") != text.count(_ARROW) or any(arrow in text for arrow in _OTHER_ARROWS):
        text = _ARROWS.sub(rf"\1 {_ARROW}", text)
    shown = _first_block if webvtt else _whole
    times: tuple[float, float] | None = None
    begin, before = 0, ""  # of the text below the last line of times, and what stands behind these
    numbered = False
    for start, stop in _lines_with_arrows(text, webvtt=webvtt):
        line = text[start:stop]
        match = _TIMES.fullmatch(line)
        if match and times and start == begin and not webvtt:
            continue  # directly below the times of a cue is its text, for players too
        if match is None and not _is_damaged(text, begin, start, line, webvtt=webvtt):
            continue
        body, name = _without_name(text[begin:start], head=not begin, numbered=numbered, webvtt=webvtt)
        if begin == 0:
            numbered = _NUMBER.fullmatch(name) is not None
            _note_head(body, notes)
        elif times and (said := of_tags(before + shown(body, notes))):
            yield Line(*times, said)
        begin = min(stop + 1, len(text))
        if match is None:
            times = None
            notes.add("damaged", line)
        else:
            times = _times_of(match, line, notes)
            rest = match["rest"]
            before = f"{rest}\n" if rest and not (webvtt or _SETTINGS.match(rest)) else ""
    if times and (said := of_tags(before + shown(text[begin:], notes))):
        yield Line(*times, said)


def _lines_with_arrows(text: str, *, webvtt: bool) -> Iterator[tuple[int, int]]:
    """Places of lines with an arrow, none of them in a comment of WebVTT."""
    place = after = 0
    while (place := text.find(_ARROW, place)) >= 0:
        start = text.rfind("\n", 0, place) + 1
        stop = text.find("\n", place)
        place = stop = len(text) if stop < 0 else stop
        block = _block_of(text, after, start)
        if webvtt and block is not None and _COMMENT.match(text, block):
            place = text.find("\n\n", stop)
            if place < 0:
                return
        else:
            yield start, stop
        after = place


def _block_of(text: str, begin: int, start: int) -> int | None:
    """Where the block of a line begins, below an empty line; None where it began before ``begin``."""
    empty = text.rfind("\n\n", max(0, begin - 1), start)
    return empty + 2 if empty >= 0 else (None if begin else 0)


def _is_damaged(text: str, begin: int, start: int, line: str, *, webvtt: bool) -> bool:
    """Whether a line with an arrow is one of times that cannot be read, not a text: by how it begins, or by
    its place, which is below the number of a cue or, in WebVTT, in the first two lines of a block.
    """
    if _LIKE_TIMES.match(line):
        return True
    above = _line_above(text, begin, start)
    if above is None:
        return webvtt
    first = _line_above(text, begin, start - len(above) - 1) is None
    return first and (webvtt or _NUMBER.fullmatch(above) is not None)


def _line_above(text: str, begin: int, start: int) -> str | None:
    """The line above another one of the same block; None if that is the first of its block, which is not
    the case directly below the times at ``begin``.
    """
    if start <= begin:
        return None if begin == 0 else ""
    end = text.rfind("\n", begin, start - 1)
    return text[end + 1 if end >= 0 else begin : start - 1] or None


def _without_name(body: str, *, head: bool, numbered: bool, webvtt: bool) -> tuple[str, str]:
    """Text without the number, or in WebVTT the name, of the next cue, and this."""
    if numbered and not webvtt:
        body = body.rstrip(" \t\n") + "\n" if _NUMBER_APART.search(body, max(0, len(body) - 40)) else body
    rest, above, last = body.removesuffix("\n").rpartition("\n")
    line_above = rest[rest.rfind("\n") + 1 :]
    apart = head if not above else not line_above or line_above.isspace()
    if last and ((webvtt and apart) or ((numbered or apart or rest) and _NUMBER.fullmatch(last))):
        return rest, last
    return body, ""


def _times_of(match: re.Match[str], line: str, notes: Notes) -> tuple[float, float] | None:
    start, end = seconds_of(match, "a"), seconds_of(match, "b")
    if start is None or end is None or end <= max(start, 0.0):
        notes.add("damaged", line)
        return None
    if start < 0:
        notes.add("before zero", line)
    return max(start, 0.0), end


def _whole(body: str, notes: Notes) -> str:
    return body


def _first_block(body: str, notes: Notes) -> str:
    """The text up to the first empty line, which in WebVTT ends a cue; what follows is noted."""
    shown, _, rest = body.removeprefix("\n").partition("\n\n")
    if body.startswith("\n") and _ASIDE.match(shown):
        shown, rest = "", body
    if rest and not rest.isspace():
        for block in rest.split("\n\n"):
            if (words := block.strip()) and not _ASIDE.match(words):
                notes.add("stray", words, words.count("\n") + 1)
    return shown


def _note_head(head: str, notes: Notes) -> None:
    """Note lines above the first cue that are no head of WebVTT."""
    if (words := head.strip("\ufeff \t\n")) and not _ASIDE.match(words):
        notes.add("stray", words, words.count("\n") + 1)
