"""Dataclasses with cheap methods behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import dataclass as generated
from dataclasses import field
from functools import cached_property, partial
from typing import Any, ClassVar

import pytest

from moviola.values import dataclass


def _family(make: Any) -> dict[str, type]:
    """The same classes by one of both decorators."""

    @make(frozen=True, slots=True)
    class Value:
        """With what a field can be."""

        kind: ClassVar[str] = "value"
        first: int
        second: str = "two"
        many: list[int] = field(default_factory=list)
        aside: float = field(default=0.5, compare=False, repr=False)
        made: dict[str, int] = field(init=False, default_factory=dict)
        fixed: int = field(init=False, default=7)
        named: int = field(default=3, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "second", self.second.strip())

    @make(frozen=True)
    class Open:
        items: tuple[int, ...]

        @cached_property
        def total(self) -> int:
            return sum(self.items)

    @make(frozen=True, eq=False)
    class Itself:
        one: int

    @make
    class Changing:
        one: int
        other: list[int] = field(default_factory=list)

    @make(frozen=True, kw_only=True)
    class Named:
        one: int
        other: int = 2

        def __repr__(self) -> str:
            return "its own"

    @make(frozen=True)
    class Alike:  # noqa: PLW1641 - the decorator adds it
        one: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Alike)

    @make(frozen=True)
    class Empty:
        pass

    @make(frozen=True)
    class Child(Open):
        more: int = 1

    @make(frozen=True, order=True)
    class Ordered:
        one: int

    @make
    class Given:
        one: int
        twice: dataclasses.InitVar[int] = 0

        def __post_init__(self, twice: int) -> None:
            self.one += twice

    found = locals()
    return {name: kind for name, kind in found.items() if isinstance(kind, type)}


OURS, THEIRS = _family(dataclass), _family(generated)


@dataclass(frozen=True, slots=True)
class _Kept:
    """One that can be found again by its name."""

    one: int
    many: tuple[int, ...] = ()


def _outcome(call: Any) -> object:
    """What a call gives or raises, without the name of the function that made its class."""
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


CALLS: dict[str, Any] = {
    "all": lambda k: k["Value"](1, " x ", [2], 0.1, named=4),
    "defaults": lambda k: k["Value"](1),
    "fields": lambda k: [(f.name, f.init, f.kw_only) for f in dataclasses.fields(k["Value"])],
    "dict": lambda k: dataclasses.asdict(k["Value"](1, many=[3])),
    "tuple": lambda k: dataclasses.astuple(k["Open"]((1, 2))),
    "replaced": lambda k: dataclasses.replace(k["Value"](1), first=5, named=9),
    "init is no argument": lambda k: dataclasses.replace(k["Value"](1), fixed=5),
    "equal": lambda k: (k["Value"](1) == k["Value"](1, aside=9.0), k["Value"](1) == k["Value"](2)),
    "other class": lambda k: k["Open"]((1,)) == k["Itself"](1),
    "itself": lambda k: (k["Itself"](1) == k["Itself"](1), len({k["Itself"](1), k["Itself"](1)})),
    "hashed": lambda k: len({k["Open"]((1,)), k["Open"]((1,)), k["Open"]((2,))}),
    "no hash of a list": lambda k: hash(k["Value"](1)),
    "no hash of what changes": lambda k: hash(k["Changing"](1)),
    "changed": lambda k: (one := k["Changing"](1), setattr(one, "one", 2), one)[-1],
    "set": lambda k: setattr(k["Value"](1), "first", 2),
    "set again": lambda k: setattr(k["Open"](()), "other", 2),
    "deleted": lambda k: delattr(k["Open"](()), "items"),
    "cached": lambda k: k["Open"]((1, 2)).total,
    "missing": lambda k: k["Value"](),
    "too many": lambda k: k["Changing"](1, [], 3),
    "unknown": lambda k: k["Named"](one=1, third=3),
    "by place": lambda k: k["Named"](1),
    "own repr": lambda k: k["Named"](one=1),
    "own __eq__": lambda k: (k["Alike"](1) == k["Alike"](2), hash(k["Alike"](1)) == hash(k["Alike"](2))),
    "empty": lambda k: (k["Empty"](), k["Empty"]() == k["Empty"](), hash(k["Empty"]()) == hash(())),
    "inherits": lambda k: (k["Child"]((1,)), k["Child"]((1,)) == k["Open"]((1,))),
    "ordered": lambda k: sorted([k["Ordered"](2), k["Ordered"](1)]),
    "InitVar": lambda k: k["Given"](1, 2),
    "copied": lambda k: (copy.copy(k["Value"](1)), copy.deepcopy(k["Value"](1, many=[4]))),
    "pattern": lambda k: (k["Value"].__match_args__, k["Named"].__match_args__),
    "signature": lambda k: [*inspect.signature(k["Value"]).parameters],
    "no new names": lambda k: hasattr(k["Value"](1), "__dict__"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_value_is_what_the_standard_library_makes(call: str) -> None:
    """A method that is made in another way must not behave in another way: equal values that differ, one that
    can be changed, a default that is shared, a copy that is refused.
    """
    ours, theirs = (_outcome(partial(CALLS[call], kinds)) for kinds in (OURS, THEIRS))
    assert repr(ours) == repr(theirs)


def test_defaults_are_of_each_value() -> None:
    one, other = OURS["Value"](1), OURS["Value"](1)
    one.many.append(3)  # type: ignore[attr-defined]
    assert other.many == []  # type: ignore[attr-defined]


def test_values_go_through_pickles() -> None:
    assert pickle.loads(pickle.dumps(_Kept(1, (2,)))) == _Kept(1, (2,))


def test_a_class_of_the_standard_library_may_inherit_from_a_value() -> None:
    """A plug-in's frozen class, which is refused where its base passes for one that can be changed."""

    @generated(frozen=True)
    class Added(OURS["Open"]):  # type: ignore[misc]
        more: int = 2

    assert repr(Added((1,))).endswith("Added(items=(1,), more=2)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Added((1,)).more = 3
