"""UNNEST: rows, each once for each element of its arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from engine.algebra.unnest.stage import Unnest
from engine.model.expressions import Value
from engine.model.types import Logical, Type
from engine.reference.joins import values_of
from engine.reference.nested import value_of
from engine.reference.rows import Placed
from engine.reference.values import ERROR, Outcome


def unnest(stage: Unnest, rows: Sequence[Placed]) -> tuple[list[Placed], int]:
    """The rows with their elements, and how many arrays are errors or too long."""
    made, errors = list[Placed](), 0
    for row in rows:
        arrays, met = values_of(stage.arrays, row.values)
        errors += met
        columns: list[list[Value]] = []
        for array, given in zip(stage.arrays, arrays, strict=True):
            parts = _elements(array.type, given)
            errors += len(parts[0]) > stage.elements_max
            columns += [[] if len(part) > stage.elements_max else part for part in parts]
        count = max(map(len, columns))
        for number in range(max(count, int(stage.keeps))):
            own = [column[number] if number < len(column) else None for column in columns]
            if stage.ordinality is not None:
                own.append(number + 1 if number < count else None)
            made.append(replace(row, values=(*row.values, *own)))
    return made, errors


def _elements(type_: Type, value: Value) -> list[list[Value]]:
    """The elements of an ARRAY; the keys and the values of a MAP. NULL has none."""
    assert type_.element is not None
    parts = json.loads(str(value)) if value is not None else {} if type_.logical is Logical.MAP else []
    found = list(parts.values()) if isinstance(parts, dict) else parts
    values = [_no_error(value_of(type_.element, part)) for part in found]
    return [list(parts), values] if isinstance(parts, dict) else [values]


def _no_error(outcome: Outcome) -> Value:
    assert outcome is not ERROR
    return outcome
