"""Functions that users wrote, in queries of all kinds: the engine against the reference.

Some raise for some rows, one gives what its type cannot hold, one is vectorised: only the rows concerned are
errors, and only where nothing else decides.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from engine.eddy.choices import POLICIES
from engine.eddy.fusing import FUSING
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
from tureen.errors import UnknownEntity


def half(number: int) -> int:
    if number % 2:
        raise ValueError("odd")
    return number // 2


def near_zero(numbers: Any) -> Any:
    """Vectorised; raises as soon as one is large."""
    if (abs(numbers) > 50).any():
        raise ValueError("too large")
    return abs(numbers) < 2


def same_text(left: pa.Array, right: pa.Array) -> pa.Array:
    """Of Arrow; gives nothing that fits where all are empty, and NULL for some."""
    if pc.all(pc.equal(left, "")).as_py():
        return pa.array([0] * len(left))
    return pc.if_else(pc.equal(left, "b"), None, pc.equal(left, right))


FUNCTIONS = FunctionCatalogue(
    [
        UserFunction("HALF", (BIGINT,), BIGINT, half, deterministic=True),
        UserFunction("CUBE_OF", (BIGINT,), BIGINT, lambda number: number**3),
        UserFunction("SHOUT", (STRING,), STRING, lambda text: text.upper() or None),
        UserFunction("NEAR_ZERO", (DOUBLE,), BOOLEAN, near_zero, vectorised=True, deterministic=True),
        UserFunction("SAME_TEXT", (STRING, STRING), BOOLEAN, same_text, vectorised=True, arrow=True),
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
            f"same_text({self.expression(STRING, depth)}, {self.expression(STRING, depth)})",
        )


class CallingSelects(Selects):
    expressions = Calling


def statement(draw: st.DrawFn, stream: Stream) -> str:
    """Without subqueries, whose columns would be asked of a binder that does not know the functions."""
    return CallingSelects(draw, stream).select(0)


ROUTES = [(policy, mode) for policy in POLICIES for mode in FUSING]


@given(steps=journeys(statement, legs=3), first=st.integers(0, len(ROUTES) - 1))
def test_rows_err_for_the_queries_that_call(steps: list[Step], first: int) -> None:
    """Routes change from step to step; how many rows failed and why is no part of an answer."""
    engine, reference = EngineSubject(small_engine(functions=FUNCTIONS)), Reference(functions=FUNCTIONS)
    for number, step in enumerate(steps, first):
        policy, mode = ROUTES[number % len(ROUTES)]
        for source in engine.engine.catalogue:
            with suppress(UnknownEntity):  # a view has no Query SteM
                engine.engine.set_attribute(f"query-stem/{source}", "policy", policy)
                engine.engine.set_attribute(f"query-stem/{source}", "grouped_filters", mode)
        assert told(engine.apply(step)) == told(reference.apply(step))
    assert_same_answers(engine, reference, [0, 20])
