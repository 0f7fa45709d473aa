"""Imprecise captions from a chat model behind an OpenAI-compatible endpoint (TVR-Ranking, appendix A)."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from moviola.errors import InvalidValue, MoviolaError
from moviola.types import require_positive

__all__ = ["ChatEndpoint", "EndpointFailure"]

_GUIDELINES = """\
You get a JSON list of sentences that describe moments of films and series. In each sentence put general
nouns or personal pronouns (a man, a woman, a person, two people, the doctor) in the place of every name
of a person or character.
1. Keep the meaning; add nothing and leave nothing else out.
2. If a name shows the gender, use a noun of that gender.
3. Make articles and verbs agree, and count people who are named together.
Answer with nothing but a JSON list of the rewritten sentences, as many and in the same order.
For instance ["Eric and Dr. Gregory were talking.", "Rachel waves."] becomes
["Two people were talking.", "A woman waves."]."""
_BUSY = frozenset((408, 409, 425, 429, 500, 502, 503, 504, 529))
_NUMBERING = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+")


class EndpointFailure(MoviolaError):
    """The endpoint did not answer at any attempt; the captions stay open."""


class _Unusable(Exception):
    """A response without exactly one rewrite per sentence."""


@dataclass(frozen=True, slots=True)
class ChatEndpoint:
    """Client of a chat model that rewrites captions.

    Attributes:
        url: base address; ``/chat/completions`` is added.
        key: bearer token; empty for none.
        timeout: seconds to wait for a response.
        attempts: maximum number if the endpoint is busy or responds unusably, >= 1.
        back_off: seconds before the second attempt; doubled for each later one.
        sleep: waits; replaced in tests.

    Raises:
        InvalidValue: an address or a key that cannot be sent, or no attempt.
    """

    url: str
    model: str
    key: str = ""
    timeout: float = 60.0
    attempts: int = 5
    back_off: float = 1.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InvalidValue(f"endpoint {self.url!r}: give an address that starts with http:// or https://")
        for name, value in (("path of the endpoint", urlsplit(self.url).path), ("key", self.key)):
            if not (value.isascii() and value.isprintable() and " " not in value):
                raise InvalidValue(f"{name}: holds a character that a request cannot; correct it")
        require_positive(attempts=self.attempts)

    def rewrite(self, captions: Sequence[str], temperature: float) -> list[str]:
        """One rewrite per caption, in order; a batch with an unusable response is halved, down to one.

        A caption without any usable response is returned unchanged; the check for names sends it to review.

        Raises:
            EndpointFailure: no answer; nothing of this batch is kept.
            InvalidValue: the endpoint refuses the request itself (wrong key, model or address).
        """
        try:
            return self._persist(captions, temperature)
        except _Unusable:
            if len(captions) == 1:
                return list(captions)
        half = len(captions) // 2
        return self.rewrite(captions[:half], temperature) + self.rewrite(captions[half:], temperature)

    def _persist(self, captions: Sequence[str], temperature: float) -> list[str]:
        for attempt in itertools.count(1):
            wait = self.back_off * 2 ** (attempt - 1)
            try:
                return self._ask(captions, temperature)
            except _Unusable:
                if attempt == self.attempts:
                    raise
            except (OSError, http.client.HTTPException) as error:
                problem = str(error)
                if isinstance(error, urllib.error.HTTPError):
                    error.close()
                    problem, wait = f"HTTP {error.code}", max(wait, _retry_after(error))
                    if error.code not in _BUSY:
                        raise InvalidValue(
                            f"{self.url}: {problem} {error.reason}; check address, model and key"
                        ) from error
                if attempt == self.attempts:
                    raise EndpointFailure(f"{self.url}: {problem}, {attempt} times over") from error
            self.sleep(wait)
        raise AssertionError("unreachable")

    def _ask(self, captions: Sequence[str], temperature: float) -> list[str]:
        body = {
            "model": self.model,
            "temperature": temperature,
            "messages": [
                {"role": "system", "content": _GUIDELINES},
                {"role": "user", "content": json.dumps(list(captions), ensure_ascii=False)},
            ],
        }
        headers = {"Content-Type": "application/json"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        request = urllib.request.Request(
            self.url.rstrip("/") + "/chat/completions", json.dumps(body).encode(), headers, method="POST"
        )
        with urllib.request.urlopen(request, timeout=self.timeout) as answer:
            payload = answer.read()
        try:
            content = json.loads(payload)["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise _Unusable("an answer that is no chat completion") from error
        rewrites = _sentences(content)
        if len(rewrites) != len(captions):
            raise _Unusable(f"{len(rewrites)} sentences for {len(captions)}")
        return rewrites


def _retry_after(error: urllib.error.HTTPError) -> float:
    seconds = error.headers.get("Retry-After", "") if error.headers else ""
    return min(float(seconds), 60.0) if seconds.isdigit() else 0.0


def _sentences(content: object) -> list[str]:
    """A JSON list, perhaps fenced, or one sentence per line."""
    if not isinstance(content, str):
        raise _Unusable("an answer without text")
    text = re.sub(r"^```\w*\s*|\s*```$", "", content.strip())
    try:
        listed = json.loads(text[text.find("[") : text.rfind("]") + 1] or text)
    except (ValueError, RecursionError):
        listed = [_NUMBERING.sub("", line).strip().strip('"') for line in text.splitlines() if line.strip()]
    if not isinstance(listed, list) or not all(isinstance(line, str) and line.strip() for line in listed):
        raise _Unusable("an answer that is no list of sentences")
    return [" ".join(line.split()) for line in listed]
