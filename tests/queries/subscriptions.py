"""Data and helpers that ``subscriptions_test.py`` shares with other tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hypothesis import strategies as st

from engine.model.changes import Changes
from engine.model.step import Position, Register, Registration, Step, StepResult
from tests.engine.feed import Feed, plain

Told = tuple[str, str, int, int, tuple[Any, ...]]
"""query id, occasion, weight, instant, row."""

SLIDING = "SELECT k, v FROM s [RANGE 5 MILLISECONDS] EMIT CHANGES WITH (format = 'diff')"

COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 5 MILLISECONDS] GROUP BY k EMIT CHANGES"


def spelled(results: Iterable[StepResult]) -> Iterator[Told]:
    """Every change that these steps told."""
    for result in results:
        for changes in result.changes:
            yield from _rows(changes)


def _rows(changes: Changes) -> Iterator[Told]:
    rows = list(zip(*(plain(column) for column in changes.table.columns), strict=True))
    bounds = changes.starts.tolist()
    assert len(changes.query_ids) == len(bounds) - 1 == len(changes.now_ms)
    assert bounds[0] == 0
    assert bounds[-1] == len(rows) == len(changes.weights) == len(changes.at_ms)
    for place, query_id in enumerate(changes.query_ids):
        for row in range(bounds[place], bounds[place + 1]):
            yield (
                query_id,
                changes.occasion,
                int(changes.weights[row]),
                int(changes.at_ms[row]),
                rows[row],
            )


def folded(told: Iterable[Told], query_id: str) -> Counter[tuple[Any, ...]]:
    """What is left of all changes of a query."""
    left: Counter[tuple[Any, ...]] = Counter()
    for whose, _, weight, _, row in told:
        if whose == query_id:
            left[row] += weight
    return Counter({row: count for row, count in left.items() if count})


def step(feed: Feed, body: Any) -> StepResult:
    """Apply a body as the next step."""
    last = feed.engine.position
    feed.engine.enqueue(Step(Position(last.epoch, last.sequence + 1), feed.clock_ms, body))
    feed.told += feed.engine.run()
    return feed.told[-1]


def register(feed: Feed, query_id: str, sql: str, **options: str) -> StepResult:
    result = step(feed, Register((Registration(query_id, sql, options=options),)))
    assert not result.failed
    return result


rows = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 5)), max_size=12
)
