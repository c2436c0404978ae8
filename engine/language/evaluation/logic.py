"""AND, OR and NOT over TRUE, FALSE, NULL and error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.language.evaluation.vector import Vector, but_not, either
from engine.model.batch import BoolArray
from engine.model.types import BOOLEAN


def conjunction(operands: Sequence[Vector]) -> Vector:
    """FALSE if any is FALSE, else NULL if any is NULL, else an error if any is one, else TRUE."""
    return _connect(operands, deciding=False)


def disjunction(operands: Sequence[Vector]) -> Vector:
    """TRUE if any is TRUE, else NULL if any is NULL, else an error if any is one, else FALSE."""
    return _connect(operands, deciding=True)


def _connect(operands: Sequence[Vector], deciding: bool) -> Vector:
    decided: BoolArray | None = None
    null: BoolArray | None = None
    error: BoolArray | None = None
    for operand in operands:
        decides = operand.values if deciding else ~operand.values
        unusable = operand.unusable
        if unusable is not None:
            decides = decides & ~unusable
        decided = decides if decided is None else decided | decides
        null, error = either(null, operand.null), either(error, operand.error)
    assert decided is not None
    null = but_not(null, decided)
    error = but_not(error, either(decided, null))
    return Vector(BOOLEAN, decided if deciding else ~decided, null, error)


def negation(operand: Vector) -> Vector:
    """NULLs and errors stay."""
    return Vector(BOOLEAN, ~operand.values, operand.null, operand.error)


def is_null(operand: Vector) -> Vector:
    """TRUE where NULL; an error stays one."""
    values = np.zeros(len(operand.values), np.bool_) if operand.null is None else operand.null
    return Vector(BOOLEAN, values, None, operand.error)
