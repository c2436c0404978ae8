"""Groups that are gone on with from step to step are those that are worked out anew."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.changes.course import NEVER
from engine.changes.lives import Lives, Way
from engine.changes.running import run_on, runs_on, standing_of
from engine.language.query import Aggregate, AggregateCall, Output
from engine.model.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, STRING
from tests.changes.given import Given, given_rows, inputs
from tests.changes.groups_test import expected
from tests.operators.aggregate_test import call_of, column
from tests.operators.relations import PRICE, exactly, rows_of

TYPES = (BIGINT, BOOLEAN, STRING, INTEGER, PRICE)
WHERE = column(1, BOOLEAN)
CALLS = (
    AggregateCall("n", "COUNT", (), BIGINT),
    AggregateCall("m", "COUNT", (), BIGINT, False, WHERE),
    call_of("COUNT", BIGINT),
    call_of("SUM", BIGINT),
    call_of("SUM", BIGINT, filter=WHERE),
    call_of("AVG", INTEGER, 3),
    call_of("SUM", PRICE, 4),
    call_of("AVG", PRICE, 4),
)


def difference(before: list[Any], now: list[Any]) -> dict[Any, int]:
    counted: Counter[Any] = Counter(exactly(now))
    counted.subtract(exactly(before))
    return {row: count for row, count in counted.items() if count}


@given(
    st.data(), st.lists(st.sampled_from(CALLS), min_size=1, max_size=4), st.sampled_from([(), (2,), (2, 3)])
)
def test_groups_that_are_gone_on_with(data, calls, keys):
    below = data.draw(inputs(TYPES, 25))
    first = 0 if below.way.since_ms == NEVER else below.way.since_ms
    cuts = sorted(
        data.draw(st.sets(st.integers(first, below.way.until_ms), max_size=3)) | {below.way.until_ms}
    )
    stage = Aggregate(tuple(Output(f"k{n}", column(n, TYPES[n])) for n in keys), tuple(calls))
    assert runs_on(stage)
    standing, since = None, below.way.since_ms
    for until in cuts:
        if until == since:
            continue
        way = Way(since, until)
        lives = below.lives
        step = Given(lives.where((lives.begins <= until) & (lives.ends > since)), way)
        if standing is None:
            standing = standing_of(stage, step.alive(), way)
        made, standing = run_on(stage, standing, step.changed(), way)
        made._check()
        for instant in range(max(since, -1) + 1, until + 1):
            before, now = (
                rows_of(made.relation.take(made.at(each))) for each in (max(instant - 1, since), instant)
            )
            wanted_before = expected(stage, below, max(instant - 1, since))
            assert difference(before, now) == difference(wanted_before, expected(stage, below, instant))
        since = until
        assert_standing(stage, below, standing, until)


def assert_standing(stage: Aggregate, below: Given, standing: Any, instant: int) -> None:
    """What is known at the end are the groups that there are."""
    found: Lives = below.lives.take(below.lives.at(instant))
    assert sum(standing.sums[0]) == len(found)
    if stage.keys:
        assert bool((standing.sums[0] > 0).all())
        assert len(standing) == len(expected(stage, below, instant))
    else:
        assert len(standing) == 1


def test_doubles_are_no_such_groups():
    key = (Output("k", column(0, DOUBLE)),)
    assert not runs_on(Aggregate(key, CALLS[:1]))
    assert not runs_on(Aggregate((), (call_of("SUM", DOUBLE),)))
    assert not runs_on(Aggregate((), (call_of("MIN", BIGINT),)))
    assert not runs_on(Aggregate((), (call_of("COUNT", BIGINT, distinct=True),)))
    assert runs_on(Aggregate((), (call_of("COUNT", DOUBLE),)))


def test_strings_that_are_gone_are_forgotten():
    """Each step brings another key and takes one away: what is known stays small."""
    stage = Aggregate((Output("k", column(0, STRING)),), CALLS[:1])
    standing = None
    for since in range(200):
        rows = [(f"key {since - 1}",), (f"key {since}",)]
        step = given_rows(
            [STRING], rows, [(since - 1, since + 1), (since + 1, since + 2)], Way(since, since + 1)
        )
        standing = standing_of(stage, step.alive(), step.way) if standing is None else standing
        _, standing = run_on(stage, standing, step.changed(), step.way)
    assert standing is not None
    assert len(standing) == 1
    assert len(standing.keys[0].dictionary) < 40
    assert np.asarray(standing.sums).tolist() == [[1]]
