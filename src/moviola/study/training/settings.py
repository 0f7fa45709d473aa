"""Training settings: the paper's for each model, changed by a TOML file and on the command line.

Examples:
    >>> from moviola.study.training.recipes import recipe
    >>> from moviola.study.training.settings import read_settings
    >>> settings = read_settings(recipe("reel"), overrides=["loop.steps=100", "model.hidden_size=128"])
    >>> settings.loops["train"].steps, settings.model["hidden_size"]
    (100, 128)
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any, Protocol

from moviola.errors import InvalidValue
from moviola.study.models.checks import require_known, validated
from moviola.study.training.loop import LoopConfig

__all__ = ["TrainingSettings", "differences", "read_settings"]


@dataclass(frozen=True)
class TrainingSettings:
    """All settings of a training, in one value that is saved with the model.

    Attributes:
        model: settings of the model by name, besides the sizes that follow from the features.
        loops: options of each phase; most models have the one phase "train".
        sampling: options of the batches; the recipe's own dataclass, None where it has none.
    """

    model: Mapping[str, Any] = field(default_factory=dict)
    loops: Mapping[str, LoopConfig] = field(default_factory=dict)
    sampling: Any = None

    def described(self) -> dict[str, Any]:
        """As plain values, for a file."""
        return {
            "model": dict(self.model),
            "loops": {name: asdict(loop) for name, loop in self.loops.items()},
            "sampling": None if self.sampling is None else asdict(self.sampling),
        }


class HasSettings(Protocol):
    """A recipe, with the settings of its paper."""

    @property
    def settings(self) -> TrainingSettings: ...


def read_settings(
    recipe: HasSettings, values: Mapping[str, Any] | None = None, overrides: Sequence[str] = ()
) -> TrainingSettings:
    """The recipe's settings, overridden by a file, and both by the command line.

    In either, a phase's own table overrides ``loop``, which is for every phase.

    Args:
        values: tables ``model``, ``sampling``, ``loop`` (for every phase), or a phase's name, as in a TOML
            file.
        overrides: ``"loop.steps=100"``, ``"model.hidden_size=128"``: a table, a name, and a value.

    Raises:
        InvalidValue: no such table or name, or an invalid value.
    """
    settings, given = recipe.settings, _given(values or {}, overrides)
    known = {"model", "loop", *settings.loops, *(["sampling"] if settings.sampling is not None else [])}
    for table in given:
        require_known("settings", table, sorted(known))
    sources = values or {}, _given({}, overrides)
    loops = {phase: _loop(loop, phase, sources) for phase, loop in settings.loops.items()}
    model = {**settings.model, **given.get("model", {})}
    sampling = settings.sampling
    if sampling is not None:
        sampling = _filled(sampling, given.get("sampling", {}), "sampling")
    return TrainingSettings(model, loops, sampling)


def _loop(loop: LoopConfig, phase: str, sources: Iterable[Mapping[str, Any]]) -> LoopConfig:
    """Options of a phase; each source overrides all of the one before, its tables for this phase included."""
    for tables in sources:
        for table in ("loop", phase):
            loop = _filled(loop, tables.get(table, {}), table)
    return loop


def _given(values: Mapping[str, Any], overrides: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Tables of a file with overrides inserted; ``values`` stay as they are."""
    for name, table in values.items():
        _require_table(name, table)
    given: dict[str, dict[str, Any]] = deepcopy(dict(values))
    for override in overrides:
        name, equals, value = override.partition("=")
        table, dot, key = name.strip().partition(".")
        if not (equals and dot and key):
            raise InvalidValue(f"{override!r}: write TABLE.NAME=VALUE, for instance loop.steps=100")
        _put(given.setdefault(table, {}), key.split("."), _value(value.strip()))
    return given


def _put(table: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        table = table.setdefault(name, {})
        _require_table(name, table)
    table[path[-1]] = value


def _require_table(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{name} is {value!r}: it is a table of settings; write {name}.NAME=VALUE")


def _value(text: str) -> Any:
    """A value from the command line: TOML, else text."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _filled(value: Any, changes: Mapping[str, Any], where: str) -> Any:
    """A dataclass with some fields changed and every type checked."""
    _require_table(where, changes)
    names = {f.name for f in fields(value)}
    for name in changes:
        if name not in names:
            raise InvalidValue(f"{where}.{name}: unknown; choose {', '.join(sorted(names))}")
    mixed = {f.name: getattr(value, f.name) for f in fields(value)}
    for name, change in changes.items():
        nested = mixed[name]
        mixed[name] = _filled(nested, change, f"{where}.{name}") if is_dataclass(nested) else change
    return validated(type(value), mixed, where)


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """What differs in two nested objects, each as ``loops.train.steps 4, now 8``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in {**old, **new}:
            yield from differences(old.get(name), new.get(name), f"{path}.{name}" if path else name)
    elif path and old != new:
        yield f"{path} {old}, now {new}"
