"""Settings that are read one by one, and of which none is passed over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from moviola.errors import DataError, InvalidValue

__all__ = ["Section", "tower_settings"]

_WHOLE = frozenset({
    "hidden_size", "num_hidden_layers", "num_attention_heads", "image_size", "patch_size", "num_patches",
    "max_position_embeddings", "vocab_size", "context_length", "projection_size",
})  # fmt: skip
_TOKENS = frozenset({"eos_token_id", "pad_token_id"})


class Section:
    """An object in a file of settings.

    Args:
        path: the file.
        name: of the object, as ``model_cfg.vision_cfg``.
        given: what stands there.

    Raises:
        DataError: it is no object; later, a setting is of another kind.
    """

    def __init__(self, path: Path, name: str, given: Any) -> None:
        if not isinstance(given, dict):
            raise DataError(f"{path}: {name} is {_said(given)}, no object; fetch the checkpoint again")
        self.path, self._name, self._left = path, name, dict(given)

    def __contains__(self, key: str) -> bool:
        return self._left.get(key) is not None

    def section(self, key: str) -> Section:
        """An object inside; empty where it is not stated."""
        given = self._left.pop(key, None)
        return Section(self.path, self._at(key), {} if given is None else given)

    def given(self, key: str) -> Any:
        """Its value, of any kind; None where it is not stated."""
        return self._taken(key, None)

    def whole(self, key: str, default: int) -> int:
        """A whole number above 0."""
        given = self._taken(key, default)
        if isinstance(given, bool) or not isinstance(given, int) or given < 1:
            raise self.wrong(key, given, "a whole number above 0")
        return given

    def number(self, key: str, default: float) -> float:
        """A number above 0."""
        given = self._taken(key, default)
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < float("inf"):
            raise self.wrong(key, given, "a number above 0")
        return float(given)

    def epsilon(self, key: str, default: float) -> float:
        """What a norm adds to a variance: above 0, below 1."""
        given = self.number(key, default)
        if given >= 1:
            raise self.wrong(key, given, "a number above 0, below 1")
        return given

    def three(self, key: str, default: Iterable[float], *, above_zero: bool = False) -> list[float]:
        """A finite number for each channel of a pixel."""
        given = self._taken(key, list(default))
        if (
            not isinstance(given, list)
            or len(given) != 3
            or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in given)
            or not all(abs(one) < float("inf") and (one > 0 or not above_zero) for one in given)
        ):
            raise self.wrong(key, given, f"three numbers{' above 0' * above_zero}")
        return [float(one) for one in given]

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false."""
        given = self._taken(key, default)
        if not isinstance(given, bool):
            raise self.wrong(key, given, "true or false")
        return given

    def text(self, key: str, default: str = "") -> str:
        """Some text."""
        given = self._taken(key, default)
        if not isinstance(given, str):
            raise self.wrong(key, given, "a text")
        return given

    def one_of(self, key: str, known: Mapping[str, Any], default: str) -> Any:
        """What the name that is stated stands for; errors like those of :meth:`known`."""
        return self.known(key, self.text(key, default), known)

    def known(self, key: str, name: str, known: Mapping[str, Any]) -> Any:
        """What a name stands for. Raises InvalidValue: it is none of the known ones."""
        if name not in known:
            raise InvalidValue(
                f"{self.path}: {self._at(key)} is {name!r:.80}, which moviola does not compute; it knows "
                f"{', '.join(filter(None, known))}; take a checkpoint with one of these"
            )
        return known[name]

    def side(self, key: str, default: int) -> int:
        """The side of a square, as one number or two equal ones."""
        given = self._left.get(key)
        if isinstance(given, list) and len(given) == 2 and given[0] == given[1]:
            self._left[key] = given[0]
        elif isinstance(given, list):
            raise InvalidValue(
                f"{self.path}: {self._at(key)} is {_said(given)}; moviola takes square pictures; take a "
                "checkpoint "
                "for those"
            )
        return self.whole(key, default)

    def done(self, *ignored: str) -> None:
        """Refuse what was not read, unless it is switched off, or ignored: answers would be wrong in silence.

        Raises:
            InvalidValue: a setting is left.
        """
        left = [
            key for key, value in self._left.items() if value not in (None, False, "") and key not in ignored
        ]
        if left:
            raise InvalidValue(
                f"{self.path}: {self._at(left[0])} is {_said(self._left[left[0]])}, a setting that moviola "
                "does not "
                "know; take a checkpoint without it"
            )

    def wrong(self, key: str, given: Any, due: str) -> DataError:
        """The error of a setting of another kind."""
        return DataError(
            f"{self.path}: {self._at(key)} is {_said(given)}; give {due}, or fetch the checkpoint again"
        )

    def _taken(self, key: str, default: Any) -> Any:
        given = self._left.pop(key, None)
        return default if given is None else given

    def _at(self, key: str) -> str:
        return f"{self._name}.{key}" if self._name else key


def tower_settings(
    path: Path, name: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """The complete settings of a tower in transformers' format; those that are computed with are numbers as
    they must be, and one that is null is as if missing.

    Raises:
        DataError: a setting is of another kind; with the file, its name and its value.
    """
    stated = {key: value for key, value in given.items() if value is not None or key in _TOKENS}
    made = {**defaults, **stated}
    section = Section(path, name, made)
    for key in sorted(made.keys() & _WHOLE):
        made[key] = section.whole(key, 1)
    for key in sorted(made.keys() & _TOKENS):
        token = made[key]
        if token is not None and (isinstance(token, bool) or not isinstance(token, int) or token < 0):
            raise section.wrong(key, token, "the number of a token")
    made["layer_norm_eps"] = section.epsilon("layer_norm_eps", 1)
    made["hidden_act"] = section.text("hidden_act")
    return made


def _said(value: Any) -> str:
    return f"{value!r:.80}"
