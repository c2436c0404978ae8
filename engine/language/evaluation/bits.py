"""Operators of bits, over BIGINTs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.language.evaluation.vector import Vector, strict
from engine.model.types import BIGINT, Type

WIDTH = 64


def both(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``&``."""
    return strict(arguments, BIGINT, arguments[0].values & arguments[1].values)


def any_of(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``|``."""
    return strict(arguments, BIGINT, arguments[0].values | arguments[1].values)


def one_of(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``#``."""
    return strict(arguments, BIGINT, arguments[0].values ^ arguments[1].values)


def inverted(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``~``."""
    return strict(arguments, BIGINT, ~arguments[0].values)


def left(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``<<``: x * 2^n; an error where that is no BIGINT, and for a negative n."""
    values, places = arguments[0].values, arguments[1].values
    within = np.clip(places, 0, WIDTH - 1)
    moved = np.left_shift(values, within)
    wrong = (places < 0) | (np.right_shift(moved, within) != values) | ((places >= WIDTH) & (values != 0))
    return strict(arguments, BIGINT, moved, wrong)


def right(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """``>>``: x / 2^n, rounded down; an error for a negative n."""
    values, places = arguments[0].values, arguments[1].values
    return strict(arguments, BIGINT, np.right_shift(values, np.clip(places, 0, WIDTH - 1)), places < 0)
