"""GROUP BY and DISTINCT kept incrementally: at every instant what the operator that is evaluated gives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.algebra.aggregate.stage import Aggregate, AggregateCall
from engine.algebra.project.stage import Output
from engine.changes.temporal_relation import TemporalRelation
from engine.dataflow.operators.group import GroupNode, GroupSpec
from engine.dataflow.turn import Turn
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING, TIMESTAMP
from engine.operators.aggregate import aggregate
from tests.changes.given import Given, inputs
from tests.dataflow.given_node import GivenNode, transitions
from tests.dataflow.group import of_column
from tests.dataflow.watched import watched
from tests.operators.aggregate import call_of, column
from tests.operators.relations import PRICE, exactly, rows_of

TYPES = (BIGINT, BOOLEAN, STRING, INTEGER, PRICE, DOUBLE, TIMESTAMP)
WHERE = column(1, BOOLEAN)
CALLS = (
    AggregateCall("n", "COUNT", (), BIGINT),
    AggregateCall("m", "COUNT", (), BIGINT, False, WHERE),
    call_of("COUNT", BIGINT),
    call_of("COUNT", STRING, 2),
    call_of("SUM", BIGINT),
    call_of("SUM", BIGINT, filter=WHERE),
    call_of("AVG", INTEGER, 3),
    call_of("SUM", PRICE, 4),
    call_of("AVG", PRICE, 4),
    call_of("SUM", DOUBLE, 5),
    call_of("AVG", DOUBLE, 5, filter=WHERE),
    call_of("VAR_SAMP", DOUBLE, 5),
    call_of("STDDEV_POP", INTEGER, 3),
    call_of("COUNT", BIGINT, distinct=True),
    call_of("COUNT", STRING, 2, distinct=True, filter=WHERE),
    call_of("SUM", DOUBLE, 5, distinct=True),
    call_of("AVG", PRICE, 4, distinct=True),
    call_of("MIN", BIGINT),
    call_of("MAX", BIGINT, filter=WHERE),
    call_of("MIN", DOUBLE, 5),
    call_of("MAX", DOUBLE, 5),
    call_of("MAX", PRICE, 4),
    call_of("MIN", TIMESTAMP, 6),
    call_of("MIN", STRING, 2),
    call_of("MAX", STRING, 2, filter=WHERE),
    call_of("FIRST", DOUBLE, 5),
    call_of("FIRST", STRING, 2, filter=WHERE),
    call_of("LAST", BIGINT),
    call_of("LAST", DOUBLE, 5, filter=WHERE),
    call_of("BOOL_AND", BOOLEAN, 1),
    call_of("BOOL_OR", BOOLEAN, 1),
)
KEYS = ((), (2,), (2, 3), (1,), (6, 0), (5, 1))
COLUMNS = 3


def expected(stage: Aggregate, rows: TemporalRelation, instant: int) -> list[Any]:
    relation, _ = aggregate(stage, rows.relation.take(rows.at(instant)))
    return sorted(exactly(rows_of(relation)), key=repr)


@pytest.mark.parametrize("keys", KEYS)
@given(st.data(), st.lists(st.sampled_from(CALLS), max_size=4))
def test_rows_of_every_column_at_every_instant(keys: tuple[int, ...], data: Any, calls: Any) -> None:
    below: Given = data.draw(inputs(TYPES, 25))
    if not keys and not calls:
        calls = [CALLS[0]]
    owners = [data.draw(st.sets(st.integers(0, COLUMNS - 1))) for _ in range(len(below.temporal))]
    node = GivenNode(below.temporal, [sorted(each) for each in owners], range(len(owners)))
    stage = Aggregate(tuple(Output(f"k{n}", column(n, TYPES[n])) for n in keys), tuple(calls))
    in_order = bool(keys) and data.draw(st.booleans())
    group = GroupNode(node, GroupSpec(stage.keys, stage.calls, in_order))
    turns = watched(group, node, below, data, partial(expected, stage), columns=COLUMNS, cuts_max=3)
    for _, interval, wanted in turns:
        check_state(group, node, stage, wanted, interval.until)
        if in_order:
            check_order(group, node, stage, wanted, interval.until)


def check_order(group: GroupNode, node: GivenNode, stage: Aggregate, wanted: set[int], now: int) -> None:
    """By their ids rows stand as the operator gives them."""
    (delta,) = group.standing(None, np.array(sorted(wanted), np.int32))  # type: ignore[arg-type]
    for one in wanted:
        held = np.flatnonzero(delta.owners == one)
        ids = delta.ids_of()[held]
        rows = delta.temporal.relation.take(held[np.lexsort(ids.T[::-1])])
        there = node.of(one)
        given_rows, _ = aggregate(stage, there.relation.take(there.at(now)))
        assert exactly(rows_of(rows)) == exactly(rows_of(given_rows))


def check_state(group: GroupNode, node: GivenNode, stage: Aggregate, wanted: set[int], now: int) -> None:
    """What is kept is what rows that stand make."""
    columns = np.array(sorted(wanted), np.int32)
    (delta,) = group.standing(None, columns)  # type: ignore[arg-type]
    for one in wanted:
        found = sorted(exactly(rows_of(of_column(delta, one).relation)), key=repr)
        assert found == expected(stage, node.of(one), now)


def test_digits_are_carried_before_they_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals of many large values, that leave again."""
    monkeypatch.setattr("engine.dataflow.totals.CARRY_AT", 1 << 41)
    rng = np.random.default_rng(3)
    values = (rng.normal(size=600) * 10.0 ** rng.integers(-3, 4, 600)).tolist()
    from engine.changes.temporal_relation import Interval
    from tests.changes.given import given_rows

    temporal = [(place // 2 + 1, place // 2 + 101) for place in range(600)]
    below = given_rows([DOUBLE], [(value,) for value in values], temporal, Interval(0, 420))
    stage = Aggregate((), (call_of("SUM", DOUBLE), call_of("VAR_POP", DOUBLE)))
    node = GivenNode(below.temporal, [[0]] * 600)
    group = GroupNode(node, GroupSpec(stage.keys, stage.calls))
    group.want(0)
    for context, interval in transitions(below.interval, [7, 60, 100, 180, 350]):
        group.begin(context)
        group.delta(Turn(context, interval))
        check_state(group, node, stage, {0}, interval.until)
