"""State as a tree of plain values, and back: what the store writes of parts whose state is dataclasses of
arrays and numbers.

A tree is None, a bool, an int, a float, a str, a NumPy array, a list of trees, or a dict of trees by text. A
dataclass or a named tuple becomes a dict of its fields; a tuple and a list become a list; a mapping by
another key than text becomes a list of [key, value]. The types of the fields say how to go back.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin

import numpy as np

Tree = Any
"""See above; a recursive type that nothing checks but the codec of the store."""

T = TypeVar("T")


def as_tree(value: Any) -> Tree:
    """Arrays are taken as they are, not copied. Raises TypeError: the value has no form as a tree."""
    if value is None or isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: as_tree(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: as_tree(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: as_tree(each) for key, each in value.items()}
        return [[as_tree(key), as_tree(each)] for key, each in value.items()]
    if isinstance(value, Sequence):
        return [as_tree(each) for each in value]
    raise TypeError(f"{type(value).__name__} is no state")


def of_tree(kind: type[T], tree: Tree) -> T:
    """The inverse of :func:`as_tree`, for a value of this type. Raises TypeError, ValueError, KeyError."""
    made: T = _made(kind, tree)
    return made


def _made(kind: Any, tree: Tree) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if tree is None or kind is Any:
        return tree
    if origin in (types.UnionType, typing.Union):
        return _made(next(one for one in inner if one is not type(None)), tree)
    if origin is typing.Annotated:
        return _made(inner[0], tree)
    if kind is np.ndarray or origin is np.ndarray or isinstance(tree, np.ndarray):
        return tree
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _with_fields(kind, tree)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return tuple(_made(inner[0], each) for each in tree)
        return tuple(_made(one, each) for one, each in zip(inner, tree, strict=True))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = tree.items() if isinstance(tree, dict) else tree
        return {_made(inner[0], key): _made(inner[1], each) for key, each in pairs}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return [_made(inner[0], each) for each in tree]
    return float(tree) if kind is float else tree


def _with_fields(kind: Any, tree: Tree) -> Any:
    hints = typing.get_type_hints(kind)
    return kind(**{name: _made(hints[name], each) for name, each in tree.items()})
