"""Window functions against the reference, which looks for the frame of each row."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.window_functions.stage import Frame, WindowFunctionCall, WindowFunctions
from engine.model.expressions import Arithmetic, Column
from engine.model.types import BIGINT, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP
from engine.operators import window_functions as kernels
from engine.operators.window_functions import window_functions
from engine.reference import window_functions as reference
from engine.reference.rows import Placed
from tests.operators.relations import PRICE, exactly, relation, rows_of, tables
from tests.operators.window_calls import stages

TYPES = (INTEGER, DOUBLE, STRING, PRICE, BIGINT, TIMESTAMP, DATE)
some_types = st.lists(st.sampled_from(TYPES), min_size=1, max_size=3)


def told(stage: WindowFunctions, types: list[Any], rows: list[Any]) -> None:
    """Holds the operator to the reference."""
    expected, met = reference.window_functions(stage, [Placed(None, row) for row in rows])
    result, errors = window_functions(stage, relation(types, rows, range(len(rows))))
    assert exactly(rows_of(result)) == exactly([row.values for row in expected]), stage
    assert errors == met
    assert result.stored_ordinals().tolist() == list(range(len(rows)))


@given(st.data(), some_types)
def test_every_function_over_every_frame(data: Any, types: list[Any]) -> None:
    told(data.draw(stages(types)), types, data.draw(tables(types, 14)))


@given(st.data(), some_types)
def test_frames_are_looked_at_a_few_at_a_time(data: Any, types: list[Any]) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernels, "MEMBERS_MAX", 3)
        stage = data.draw(stages(types, ("ARRAY_AGG", "COUNT", "SUM")))
        told(stage, types, data.draw(tables(types, 14)))


def test_errors_are_counted_once_a_row_and_totals_once_a_frame() -> None:
    a, b = Column(0, "a", INTEGER), Column(1, "b", BIGINT)
    ratio = Arithmetic("/", a, a, INTEGER)
    calls = (
        WindowFunctionCall("sum", "SUM", (ratio,), BIGINT, Frame("rows", -1, 1)),
        WindowFunctionCall("total", "SUM", (b,), BIGINT),
        WindowFunctionCall("lag", "LAG", (ratio,), INTEGER),
    )
    rows = [(0, 2**63 - 1), (2, 1), (3, 0)]
    result, errors = window_functions(WindowFunctions((), (), calls), relation([INTEGER, BIGINT], rows))
    assert [row[2:] for row in rows_of(result)] == [(1, None, None), (2, None, None), (2, None, 1)]
    assert errors == 1 + 3 + 1
