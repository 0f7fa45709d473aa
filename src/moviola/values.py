"""Dataclasses that are made in a third of the time, for the modules that a first search imports.

The standard library writes six methods of a frozen dataclass as text and compiles each: for the 166 classes
of a first search that took 65 ms of its 380. Here it finds the fields, and ``__init__`` alone is compiled;
the other methods are closures over the names of the fields. All else is as there: ``fields``, ``replace``,
``asdict``, patterns, pickles, messages. Classes that are ordered, inherit fields or have an ``InitVar`` are
left to the standard library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as generated
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls=None, /, *, frozen=False, eq=True, order=False, kw_only=False, slots=False,
    ):  # fmt: skip
        """As :func:`dataclasses.dataclass`, with methods that are cheaper to make."""

        def made(own):
            inherits = any(hasattr(base, "__dataclass_fields__") for base in own.__mro__[1:])
            beside = any("InitVar" in str(kind) for kind in get_annotations(own).values())
            if order or inherits or beside:
                return generated(own, frozen=frozen, eq=eq, order=order, kw_only=kw_only, slots=slots)
            return _with_methods(own, frozen=frozen, eq=eq, kw_only=kw_only, slots=slots)

        return made if cls is None else made(cls)


def _with_methods(own: type, *, frozen: bool, eq: bool, kw_only: bool, slots: bool) -> Any:
    # What a class states itself stays; Python states "no hash" for one that states `__eq__` alone.
    stated = {name for name in own.__dict__ if (name, own.__dict__[name]) != ("__hash__", None)}
    if not own.__doc__:
        own.__doc__ = own.__name__  # else its signature is made out
    cls: Any = generated(own, init=False, repr=False, eq=False, kw_only=kw_only, slots=slots)
    all_fields = fields(cls)
    methods: dict[str, Callable[..., Any]] = {"__init__": _init(cls, all_fields, frozen, slots)}
    methods["__repr__"] = _repr([field.name for field in all_fields if field.repr])
    if eq:
        methods["__eq__"] = _eq([field.name for field in all_fields if field.compare])
    if eq and frozen:
        hashed = [one.name for one in all_fields if (one.compare if one.hash is None else one.hash)]
        methods["__hash__"] = _hash(hashed)
    if frozen:
        methods |= _refusing(cls, {field.name for field in all_fields})
    if frozen and slots:  # else a copy would be made by setting
        cls.__getstate__, cls.__setstate__ = _state, _restore
    for name, method in methods.items():
        if name not in stated:
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            method.__module__ = cls.__module__
            setattr(cls, name, method)
    if eq and not frozen and "__hash__" not in stated:
        cls.__hash__ = None  # as with any class that states __eq__ alone
    params = cls.__dataclass_params__  # read by classes that inherit
    params.init, params.repr, params.eq, params.frozen = True, True, eq, frozen
    return cls


def _init(cls: Any, all_fields: tuple[Field[Any], ...], frozen: bool, slots: bool) -> Callable[..., None]:
    """The one method that is compiled: calls are many, and a loop over the fields would slow each down."""
    names: dict[str, Any] = {"_set": object.__setattr__, "_none": MISSING}
    places: list[str] = []
    by_name: list[str] = []
    body: list[str] = []
    for field in all_fields:
        name, value, default = field.name, field.name, ""
        if field.default is not MISSING:
            names[f"_of_{name}"], default = field.default, f"=_of_{name}"
        elif field.default_factory is not MISSING:
            names[f"_of_{name}"], default = field.default_factory, "=_none"
            value = f"_of_{name}() if {name} is _none else {name}"
        if field.init:
            (by_name if field.kw_only else places).append(name + default)
        elif default == "=_none":
            value = f"_of_{name}()"
        elif slots and default:
            value = f"_of_{name}"
        else:
            continue  # a default of the class, or nothing
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join(["self", *places, *(["*"] if by_name else []), *by_name])
    exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__annotations__ = {field.name: field.type for field in all_fields if field.init} | {"return": None}
    return init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of some fields."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def shown(self: Any) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({inside})"

    return shown


def _eq(names: list[str]) -> Callable[[Any, object], Any]:
    values = _values(names)

    def alike(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return alike


def _hash(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)

    def hashed(self: Any) -> int:
        return hash(values(self))

    return hashed


def _refusing(cls: Any, names: set[str]) -> dict[str, Callable[..., None]]:
    def refuse(self: Any, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def keep(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse, "__delattr__": keep}


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
