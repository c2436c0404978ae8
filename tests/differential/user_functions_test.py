"""Functions that users wrote, in queries of all kinds: the engine against the reference.

Some raise for some rows, one gives what its type cannot hold, one is vectorised: only the rows concerned are
errors, and only where nothing else decides.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.language.functions import FunctionCatalogue
from engine.model.expressions import UserFunction
from engine.model.source import Stream
from engine.model.step import Step
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, STRING
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.sql_selects import Selects
from tests.sql_strategies import Writer
from tests.strategies import journeys


def half(number: int) -> int:
    if number % 2:
        raise ValueError("odd")
    return number // 2


def near_zero(numbers: Any) -> Any:
    """Vectorised; raises as soon as one is large."""
    if (abs(numbers) > 50).any():
        raise ValueError("too large")
    return abs(numbers) < 2


FUNCTIONS = FunctionCatalogue(
    [
        UserFunction("HALF", (BIGINT,), BIGINT, half, deterministic=True),
        UserFunction("CUBE_OF", (BIGINT,), BIGINT, lambda number: number**3),
        UserFunction("SHOUT", (STRING,), STRING, lambda text: text.upper() or None),
        UserFunction("NEAR_ZERO", (DOUBLE,), BOOLEAN, near_zero, vectorised=True, deterministic=True),
    ]
)


class Calling(Writer):
    """Expressions in which users' functions stand among others."""

    def leaf(self, depth: int) -> str:
        if self.draw(st.integers(0, 2)):
            return super().leaf(depth)
        number = f"CAST({self.expression(BIGINT, depth)} AS BIGINT)"
        return self.pick(
            f"half({number}) > 1",
            f"cube_of({number}) BETWEEN -10 AND 30",
            f"shout({self.expression(STRING, depth)}) = 'AB'",
            f"near_zero({self.expression(DOUBLE, depth)})",
        )


class CallingSelects(Selects):
    expressions = Calling


def statement(draw: st.DrawFn, stream: Stream) -> str:
    """Without subqueries, whose columns would be asked of a binder that does not know the functions."""
    return CallingSelects(draw, stream).select(0)


@given(steps=journeys(statement, legs=3))
def test_rows_err_for_the_queries_that_call(steps: list[Step]) -> None:
    engine, reference = EngineSubject(small_engine(functions=FUNCTIONS)), Reference(functions=FUNCTIONS)
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
    assert_same_answers(engine, reference, [0, 20])
