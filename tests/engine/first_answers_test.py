"""First answers that are made beside and kept up: what is told is what it is without that."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.changes.copies import copies_of_whole
from engine.changes.difference import difference
from engine.changes.folded_answer import Contradiction, FoldedAnswer
from engine.model.step import Register, Registration
from engine.preparing import Preparation
from tests.engine.first_answers import EMITS, QUERIES, TABLES, Calls, twins_of
from tests.engine.prepared_twins import Twins, make_small


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def prepared(twins: Twins, registration: Registration) -> Preparation:
    """Rows come while it is prepared, and after."""
    (one,) = twins.timed.preparing.of([registration]).values()
    while one.some():
        twins.rows(1)
    assert one.beside
    twins.rows(5)
    one.run()
    twins.rows(9)
    while one.some():
        pass
    return one


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("sql", QUERIES + TABLES)
def test_the_step_calls_no_function_for_rows_of_before(sql: str, emit: str) -> None:
    calls = Calls()
    twins = twins_of(8, sql, calls)
    twins.rows(140)
    registration = Registration("q", f"{sql} {emit}")
    one = prepared(twins, registration)
    before = calls.count
    told = twins.apply(twins.timed, Register((registration,)))
    assert calls.count == before
    assert told == twins.apply(twins.plain, Register((registration,)))
    one.dismiss()
    twins.standing.append("q")
    twins.rows(40)
    twins.check()


@given(
    st.integers(0, 2**32),
    st.sampled_from(QUERIES + TABLES),
    st.sampled_from(EMITS),
    st.lists(st.tuples(st.sampled_from("srrbhw"), st.integers(1, 9)), max_size=8),
)
@settings(max_examples=70, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_course_until_it_comes(seed: int, sql: str, emit: str, course: list[tuple[str, int]]) -> None:
    twins = twins_of(seed, sql, Calls())
    twins.rows(100)
    registration = Registration("q", f"{sql} {emit}")
    (one,) = twins.timed.preparing.of([registration]).values()
    for step, count in course:
        match step:
            case "s":
                while one.some():
                    pass
            case "r":
                twins.rows(6 * count)
            case "b" if one.is_made and not one.is_done:
                one.run()
            case "h":
                twins.history(count)
            case "w":
                twins.step(Register((Registration(f"w{count}", f"SELECT a FROM s [RANGE {count} SECONDS]"),)))
    twins.step(Register((registration,)))
    one.dismiss()
    twins.standing.append("q")
    twins.check()
    twins.rows(20)
    twins.check()


VALUES = st.tuples(
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, [1.0], [float("nan")]]),
)
SCHEMA = pa.schema(
    [("d", pa.float64()), ("t", pa.string()), ("i", pa.int32()), ("l", pa.list_(pa.float64()))]
)


def table_of(rows: list[tuple[object, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@given(st.lists(st.lists(VALUES, max_size=12), min_size=2, max_size=5), st.booleans(), st.integers(0, 4))
def test_an_answer_is_kept_up_with_its_changes(
    answers: list[list[tuple[object, ...]]], copies: bool, settles: int
) -> None:
    kept = FoldedAnswer(table_of(answers[0]), copies=copies)
    for place, (before, after) in enumerate(pairwise(answers)):
        table, weights, _ = difference(table_of(before), table_of(after))
        kept.take(table, weights)
        if place == settles:
            kept.settle()
    found, numbers = kept.now()
    expected = table_of(answers[-1])
    assert difference(found, expected)[1].size == 0
    if copies:
        assert numbers is not None
        assert numbered(found, numbers) == numbered(expected, copies_of_whole(expected))
    else:
        assert numbers is None


def numbered(table: pa.Table, numbers: np.ndarray) -> list[str]:
    return sorted(map(repr, zip(table.to_pylist(), numbers.tolist(), strict=True)))


def test_a_row_that_is_not_there_cannot_go() -> None:
    kept = FoldedAnswer(table_of([(1.5, "a", 1, None)] * 2), copies=True)
    kept.take(table_of([(1.5, "a", 1, None)] * 3), np.full(3, -1, np.int8))
    with pytest.raises(Contradiction):
        kept.now()
