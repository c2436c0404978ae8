"""Users' functions in processes of their own that end again and again: the engine against the reference,
which calls them in its own process, where they raise instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.functions import load
from broker.runtime.isolated_functions import IsolatedFunctions
from engine.eddy.choices import POLICIES
from engine.language.functions import FunctionCatalogue
from engine.model.source import Stream
from engine.model.step import Step
from engine.model.types import BIGINT, DOUBLE, STRING
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.sql_selects import Selects
from tests.sql_strategies import Writer
from tests.strategies import journeys

MODULE = "tests.differential.crashing_functions"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def functions() -> Iterator[FunctionCatalogue]:
    path = [*sys.path]
    isolated = IsolatedFunctions([MODULE], ROOT, call_ms=30_000, memory_bytes=1 << 30, processes=2)
    catalogue = load([MODULE], ROOT, isolated.caller)
    isolated.start()
    yield catalogue
    isolated.stop()
    sys.path[:] = path


class Calling(Writer):
    """Expressions in which they stand among others."""

    def leaf(self, depth: int) -> str:
        if self.draw(st.integers(0, 2)):
            return super().leaf(depth)
        return self.pick(
            f"third(CAST({self.expression(BIGINT, depth)} AS BIGINT)) > 1",
            f"is_near({self.expression(DOUBLE, depth)})",
            f"shouted({self.expression(STRING, depth)}) = 'AB'",
        )


class CallingSelects(Selects):
    expressions = Calling


def statement(draw: st.DrawFn, stream: Stream) -> str:
    return CallingSelects(draw, stream).select(0)


@given(steps=journeys(statement, legs=3), first=st.integers(0, len(POLICIES) - 1))
def test_a_process_that_ends_costs_its_row_alone(
    functions: FunctionCatalogue, steps: list[Step], first: int
) -> None:
    """Queries come and go and rows are replayed by the reference; routes change from step to step."""
    engine, reference = EngineSubject(small_engine(functions=functions)), Reference(functions=functions)
    for number, step in enumerate(steps, first):
        for source in engine.engine.catalogue:
            policy = [*POLICIES][number % len(POLICIES)]
            engine.engine.set_attribute(f"query-stem/{source}", "policy", policy)
        assert told(engine.apply(step)) == told(reference.apply(step))
    assert_same_answers(engine, reference, [0, 20])
