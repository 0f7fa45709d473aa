"""The visible text of cues: without tags, commands, entities and needless white space."""

from __future__ import annotations

import html
import re

__all__ = ["JOINER", "of_commands", "of_tags", "without_commands"]

# Commands of SubStation Alpha, which players understand in other files too, there with a backslash.
_COMMANDS, _CERTAIN_COMMANDS = re.compile(r"\{[^}]*\}"), re.compile(r"\{\\[^{}]*\}")
# Those that begin or end a drawing (`\p1`, `\p0`), and that reset the style.
_DRAWING = re.compile(r"\\(?:p([0-9])|r([a-zA-Z_0-9 ]*))")
# A backslash before a letter breaks a line in SubStation Alpha, unless an invisible letter stands between.
JOINER = "\u2060"
"""An invisible letter, which is not shown."""
_ESCAPES = re.compile(r"\\([Nnh])")
# Tags that players know, with attributes where there are such, and times of words; any other sign is text.
_TAGS = re.compile(
    r"</?(?:[biusc]|em|strong|strike|sub|sup|tt|small|big|center|ruby|rb|rp|rt)(?:\.[^<>\s]*)?[ \t]*/?>"
    r"|</?(?:font|span|div|p|v|lang|c|i|b|u)(?:\.[^<>\s]*)?"
    r"(?:[ \t]+[\w:-]+[ \t]*=[ \t]*(?:\"[^\"<>]*\"|'[^'<>]*'|[^\s<>\"']*))*[ \t]*/?>"
    r"|<(?:v|lang)(?:\.[^<>\s]*)?[ \t][^<>]*>"
    r"|<(?:\d+:)?\d\d:\d\d[.,]\d{2,3}>",
    re.IGNORECASE,
)
# Tags that stand between words, and the sign that they become.
_BREAKS = re.compile(r"<br[ \t]*/?>|</?(?:p|div)>", re.IGNORECASE)
_READINGS = re.compile(r"<rt(?:\.[^<>\s]*)?>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:[a-zA-Z][a-zA-Z0-9]{1,31}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_SIGNS = re.compile(r"[<&{\\\u2060]|\s\s|[\t\r\f\v\x1c-\x1f\x85\xa0\u2000-\u200a\u2028\u2029\u3000]")


def of_tags(text: str) -> str:
    """The visible letters of a cue of SubRip or WebVTT, its lines kept; none where commands draw a shape."""
    if not _SIGNS.search(text):
        return "\n".join(line.strip() for line in text.split("\n") if line and not line.isspace())
    if "<" in text:
        text = _TAGS.sub("", _READINGS.sub(" ", _BREAKS.sub("\n", text)))
    if "{\\" in text:
        commands = _CERTAIN_COMMANDS.findall(text)
        if _draws(commands):
            return ""
        text = _CERTAIN_COMMANDS.sub("", text)
    return _lines_of(text)


def of_commands(text: str) -> str:
    """The visible letters of an event of SubStation Alpha, its lines kept; none where commands draw a shape.

    pysubs2's own properties take time quadratic in the commands, or in braces that are opened alone.
    """
    if _draws(_COMMANDS.findall(text[: text.rfind("}") + 1])):
        return ""
    return _lines_of(without_commands(text))


def without_commands(text: str) -> str:
    """The text of an event of SubStation Alpha without what stands in braces."""
    end = text.rfind("}") + 1  # behind it, every open brace would be searched to the end
    return _COMMANDS.sub("", text[:end]) + text[end:]


def _draws(commands: list[str]) -> bool:
    drawing = False
    for block in commands:
        for number, style in _DRAWING.findall(block):
            # A reset to a named style changes nothing: there are no styles here.
            drawing = int(number) > 0 if number else drawing and bool(style)
        if drawing:
            return True
    return False


def _lines_of(text: str) -> str:
    if "\\" in text:
        text = _ESCAPES.sub(lambda found: " " if found[1] == "h" else "\n", text)
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]), text)
    lines = text.replace(JOINER, "").splitlines()
    return "\n".join(shown for line in lines if (shown := " ".join(line.split())))
