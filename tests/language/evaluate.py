"""Data and helpers that ``evaluate_test.py`` shares with other tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.language.evaluate import evaluate
from tests.language.fixtures import columns_of, outputs, stream_of

ERROR = "error"

COLUMNS = (
    "i INTEGER, b BIGINT, d DOUBLE, m DECIMAL(18, 2), s STRING, k BOOLEAN, e DOUBLE, c BIGINT, u STRING, "
    "n DECIMAL(18, 4), day DATE, ts TIMESTAMP"
)

STREAMS = stream_of(COLUMNS)

NAMES = [field.name for field in STREAMS["t"].schema]


def values(expression: str, *rows: dict[str, Any]) -> list[Any]:
    """The expression for each row; ``ERROR`` where it is an error."""
    (output,) = outputs(f"SELECT {expression} AS x FROM t", STREAMS)
    table = [[row.get(name) for name in NAMES] for row in rows]
    columns = columns_of(STREAMS["t"], table)
    before = [column.values.copy() for column in columns]
    result = evaluate(output.expression, columns, len(rows))
    assert all(
        np.array_equal(a, c.values, equal_nan=a.dtype.kind == "f")
        for a, c in zip(before, columns, strict=True)
    )
    assert len(result.column) == len(rows)
    assert result.column.type == output.type
    assert result.column.values.dtype == output.type.dtype
    dictionary = result.column.dictionary
    if dictionary is not None:
        assert len(set(dictionary.to_pylist())) == len(dictionary)
    found = result.column.to_arrow().to_pylist()
    if result.error is None:
        return found
    assert result.column.valid is not None
    assert not (result.column.valid & result.error).any()
    return [ERROR if wrong else value for value, wrong in zip(found, result.error, strict=True)]


def value(expression: str, **row: Any) -> Any:
    """Over one row, over many of the same, and folded where there are no columns: all must agree."""
    (one,) = values(expression, row)
    many = values(expression, *[row] * 5)
    assert [_plain(v) for v in many] == [_plain(one)] * 5
    assert values(expression) == []
    return one


def _plain(found: Any) -> Any:
    return "NaN" if isinstance(found, float) and math.isnan(found) else found
