"""Bad input that reaches running queries with a preference: values that are none, priorities that err, jumps
of the clock, summaries that go. What was found stays a part of the exact answer, and with time for all it is
the exact one; queries without a preference are as they were.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.model.step import DropSummary
from engine.model.summary import SummaryName
from tests.queries.preferring import JOIN, SELECTION, SUMMARY, World, odd, preferring
from tureen.errors import SummaryConflict, TureenError

YEAR_MS = 366 * 86_400_000


@pytest.mark.parametrize("order", ["desc", "asc", "weighted"])
@pytest.mark.parametrize(
    "priority",
    ["{}", "{} / 0", "{} * CAST('NaN' AS DOUBLE)", "CASE WHEN {} > 1 THEN NULL ELSE 1 END", "-{}"],
    ids=["estimate", "error", "nan", "null", "negative"],
)
def test_priorities_that_are_no_numbers_and_odd_values_lose_nothing(order: str, priority: str) -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text, priority, order))
    for start_ms in (0, 1_000, 2_000):
        for source in ("s", "t"):
            world.bring(source, odd(25, start_ms), grant=7)
        for name in ("join", "selection"):
            world.check(name, whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


@pytest.mark.parametrize("values", [lambda at: 3.0, float], ids=["one_value", "all_distinct"])
def test_rows_of_one_value_and_rows_that_all_differ(values: Callable[[int], float]) -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text))
    for source in ("s", "t", "s", "t"):
        first = world.offsets[source]
        rows = [(values(at), at, 20 * at) for at in range(first, first + 50)]
        world.bring(source, rows, grant=20)
    world.check("join", whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


def test_clock_that_jumps_by_a_year_empties_the_summaries_and_queries_go_on() -> None:
    world = World()
    for name, text in (("join", JOIN), ("selection", SELECTION)):
        world.engine.register(name, preferring(text))
    for source in ("s", "t"):
        world.bring(source, odd(30, 0))
    for start_ms in (YEAR_MS, 2 * YEAR_MS):
        for source in ("s", "t"):
            world.bring(source, odd(30, start_ms), grant=3)
        world.check("join", whole=False)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)


def test_refused_texts_leave_the_others_as_they_are() -> None:
    world = World()
    world.engine.register("join", preferring(JOIN))
    for text in (
        preferring(JOIN, window=" WINDOW 1 HOUR"),
        preferring(JOIN) + " FADE FACTOR 0.5",
        preferring(SELECTION).replace("SUMMARY", "of_t"),
        preferring(SELECTION + " LIMIT 3"),
    ):
        with pytest.raises(TureenError):
            world.engine.register("refused", text)
    for source in ("s", "t"):
        world.bring(source, odd(30, 0))
    world.work()
    world.check("join", whole=True)


@pytest.mark.parametrize("name", ["join", "selection"])
def test_summary_that_goes_while_a_query_uses_it(name: str) -> None:
    world = World()
    text = {"join": JOIN, "selection": SELECTION}[name]
    world.engine.register(name, preferring(text))
    for source in ("s", "t"):
        world.bring(source, odd(30, 0), grant=10)
    found = world.rows(name)
    with pytest.raises(SummaryConflict):
        world.engine._now(DropSummary(SummaryName("of_s")), 0)
    world.engine._now(DropSummary(SummaryName("of_s"), forced=True), 0)
    world.work()
    assert world.rows(name) == found, "what was found is kept, and nothing is looked for"
    for source in ("s", "t"):
        world.bring(source, odd(30, 500), grant=10)
    world.check(name, whole=False)
    with pytest.raises(TureenError):
        world.engine.register("another", preferring(text))
    world.engine.create(SUMMARY.format("s"))
    world.work()
    world.check(name, whole=True)


def test_step_of_another_stream_lets_a_summary_go_on_under_a_selection() -> None:
    """The join holds the summary of ``s`` back until ``t`` has come as far; rows that it lets go of then are
    no longer to be visited by queries over ``s`` alone.
    """
    world = World()
    for name, text in (("selection", SELECTION), ("join", JOIN)):  # its turn comes first
        world.engine.register(name, preferring(text, window=" WINDOW 15 SECONDS"))
        world.engine.alter(f"exact {name}", text.format("[RANGE 15 SECONDS]"))
    world.bring("t", [(1.0, at, at) for at in range(40)])
    world.bring(
        "s", [*((1.0, at, at) for at in range(40)), *((2.0, at, 39_000 + at) for at in range(40, 60))]
    )
    world.bring("t", [(2.0, at, 39_000 + at) for at in range(40, 60)], grant=500)
    world.work()
    for name in ("join", "selection"):
        world.check(name, whole=True)
