"""What queries may expect that read less than they ask for, and how EXPLAIN shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from engine.dataflow.cost.flows import JoinedInput
from engine.engine import Engine
from engine.language.query import Query
from engine.overload.precision.aggregated import INTERVAL
from engine.overload.precision.of_query import Copies, approximate_steps, shape_of_query, shares_of
from engine.overload.precision.problem import Outcome
from tests.capacities import small_engine
from tests.strategies import batch_of
from tureen import plans

ASKED, GIVEN = "[RANGE 100 SECONDS]", "[RANGE 40 SECONDS]"


@pytest.fixture
def engine() -> Engine:
    made = small_engine()
    for name in "st":
        made.create(
            f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
        )
    return made


def bound(engine: Engine, sql: str) -> Query:
    query = engine.prepare(sql)
    assert isinstance(query, Query)
    return query


def rows_of(query: Query) -> Sequence[float]:
    """100 rows from each scan, half of what comes into each stage leaves it."""
    return [100.0 / 2**place for place in range(len(query.stages) + 1)]


def expected(engine: Engine, sql: str) -> Outcome:
    """The expected precision of the answer, where the first window is shorter than asked for."""
    asked = bound(engine, sql.format(ASKED))
    found = approximate_steps(bound(engine, sql.format(GIVEN)), rows_of, asked=asked)
    assert found is not None
    assert len(found) == len(asked.stages) + 1
    return found[-1]


def test_shorter_window_of_a_selection_misses_rows(engine: Engine) -> None:
    one = expected(engine, "SELECT v FROM s {} WHERE v > 3")
    assert (one.fp, one.fn, one.error) == (0.0, pytest.approx(0.6), None)


def test_shorter_window_of_a_join_misses_pairs_that_are_there_and_pairs_that_come(engine: Engine) -> None:
    one = expected(engine, "SELECT s.v FROM s {} JOIN t [RANGE 60 SECONDS] ON s.k = t.k")
    assert one.fn == pytest.approx(1 - (40 * 60) / (100 * 60))
    assert one.fn_changes == pytest.approx(1 - (40 + 60) / (100 + 60))


def test_rows_that_come_are_none_the_fewer_in_a_shorter_window(engine: Engine) -> None:
    one = expected(engine, "SELECT v FROM s {} WHERE v > 3 UNION ALL SELECT v FROM t [RANGE 60 SECONDS]")
    assert one.fn > 0.2
    assert one.fn_changes == pytest.approx(0.0)


def test_changes_of_several_joins_come_by_the_last_of_their_rows(engine: Engine) -> None:
    one = expected(
        engine,
        "SELECT s.v FROM s {} JOIN t [RANGE 60 SECONDS] ON s.k = t.k "
        "JOIN t [RANGE 20 SECONDS] u ON s.k = u.k",
    )
    due, given = (a * 60 + a * 20 + 60 * 20 for a in (100, 40))
    assert one.fn_changes == pytest.approx(1 - given / due)


def test_window_that_lags_or_slides_is_kept_by_its_length(engine: Engine) -> None:
    for whole, less, share in (
        ("[RANGE 60 SECONDS SLIDE 30 SECONDS]", "[RANGE 30 SECONDS SLIDE 30 SECONDS]", 1 / 2),
        ("BEGIN NOW - 60 SECONDS END NOW - 10 SECONDS", "BEGIN NOW - 30 SECONDS END NOW - 10 SECONDS", 2 / 5),
    ):
        asked, given = (bound(engine, f"SELECT v FROM s {one}") for one in (whole, less))
        shares = shares_of(asked, given)
        assert shares is not None
        assert shares[0] == pytest.approx(share)


def test_row_is_matched_while_any_of_its_partners_is_left(engine: Engine) -> None:
    asked, given = (
        bound(engine, f"SELECT v FROM s {ASKED} WHERE k IN (SELECT k FROM t {one})") for one in (ASKED, GIVEN)
    )
    found = approximate_steps(given, rows_of, asked=asked, copies_of=lambda query, place: Copies(right=20.0))
    assert found is not None
    assert found[-1].fn == pytest.approx(math.exp(-20 * 0.4), abs=2e-3)


def test_window_of_an_inner_query_counts_there(engine: Engine) -> None:
    one = expected(engine, "SELECT v FROM s [ROWS 5] WHERE v IN (SELECT v FROM t {})")
    assert one.fn == pytest.approx(0.6)


def test_less_on_the_right_of_a_negation_gives_wrong_rows(engine: Engine) -> None:
    one = expected(engine, "SELECT v FROM s [ROWS 5] WHERE v NOT IN (SELECT v FROM t {})")
    assert one.fn == 0.0
    # Half of the rows are on the right, of which three in five are not found there.
    assert one.fp == pytest.approx(0.3 / (0.3 + 0.5))


def test_union_is_weighed_by_rows(engine: Engine) -> None:
    one = expected(engine, "SELECT v FROM s {} UNION ALL SELECT v FROM t [RANGE 100 SECONDS]")
    assert one.fn == pytest.approx(0.3, abs=0.11)
    assert one.fp == 0.0


def test_value_is_missing_when_all_its_copies_are(engine: Engine) -> None:
    found = expected(engine, "SELECT DISTINCT v FROM s {}").fn
    rate = 1.5936  # so many rows of each value, those without any too, make two of those that there are
    assert found == pytest.approx(1 - (1 - math.exp(-0.4 * rate)) / (1 - math.exp(-rate)), abs=1e-3)


def test_aggregate_has_an_error(engine: Engine) -> None:
    one = expected(engine, "SELECT COUNT(*) AS n FROM s {}")
    assert (one.fp, one.fn) == (0.0, 0.0)
    assert one.error == pytest.approx(0.6)


def test_nothing_is_expected_of_exact_queries_and_of_windows_where_none_was(engine: Engine) -> None:
    query = bound(engine, f"SELECT v FROM s {ASKED}")
    assert approximate_steps(query, rows_of) is None
    assert approximate_steps(query, rows_of, asked=bound(engine, "SELECT v FROM s")) is None


def test_slots_are_two_for_each_scan(engine: Engine) -> None:
    query = bound(engine, f"SELECT s.v FROM s {ASKED} JOIN t {ASKED} ON s.k = t.k")
    shape = shape_of_query(query, rows_of)
    assert shape.slots == 4
    other = bound(engine, f"SELECT s.v FROM s {ASKED} JOIN t {GIVEN} ON s.k = t.k")
    shares = shares_of(query, other)
    assert shares is not None
    assert shares.tolist() == pytest.approx([1.0, 1.0, 0.4, 1.0])
    assert shape.plan.slots == 4


def test_late_rows_are_missing(engine: Engine) -> None:
    schema = engine.catalogue["s"].schema
    rows = [(0, place, 1_000 * place, ("k", place)) for place in range(15)]
    engine.ingest("s", batch_of(schema, rows), clock_ms=10**6)
    assert engine.explain(sql="SELECT v FROM s").steps[0].expected is None
    late = [(0, 15 + place, 0, ("k", 0)) for place in range(5)]
    engine.ingest("s", batch_of(schema, late), clock_ms=10**6)
    plan = engine.explain(sql="SELECT v FROM s")
    share = engine.stats()["source/s"]["late_rows"] / (5 + 14)  # type: ignore[operator]
    assert [step.expected is not None and step.expected.fn for step in plan.steps] == [
        pytest.approx(share)
    ] * 2
    shown = plan.as_dict()
    assert plans.columns(shown)[-3:] == plans.PRECISION_COLUMNS
    assert plans.rows(shown)[0][-3:] == ("0 %", "26.3 %", None)


def error_over_a_join(engine: Engine, given: Sequence[str], sql: str, *inputs: JoinedInput) -> float:
    """Where a group has 5,000 pairs. given: the windows of the two inputs."""
    asked, less = (bound(engine, sql.format(*windows)) for windows in ([ASKED, ASKED], given))
    copies = Copies(left=5_000.0, values=4.0, inputs=inputs)
    found = approximate_steps(less, rows_of, asked=asked, copies_of=lambda query, place: copies)
    assert found is not None
    assert found[-1].error is not None
    return found[-1].error


PAIRS = "FROM s {} JOIN t {} ON s.k = t.k"


def test_pairs_of_a_group_scatter_as_the_rows_of_the_input_that_it_is_of(engine: Engine) -> None:
    sql = f"SELECT s.v, COUNT(*) AS n {PAIRS} GROUP BY s.v"
    inputs = JoinedInput(250.0, grouped=True), JoinedInput(1_000.0)
    pairs = INTERVAL**2 * 0.4 * 0.6 / 5_000
    # The window of t is as even in one group as in another: what it lacks is a shift, and scatters none.
    found = error_over_a_join(engine, [ASKED, GIVEN], sql, *inputs)
    assert found == pytest.approx(0.6 + math.sqrt(pairs))
    found = error_over_a_join(engine, [GIVEN, ASKED], sql, *inputs)
    assert found == pytest.approx(0.6 + math.sqrt(pairs + INTERVAL**2 * 0.4 * 0.6 / 250))


def test_sums_over_a_join_scatter_as_the_values_of_the_input_that_they_are_of(engine: Engine) -> None:
    sql = f"SELECT SUM(s.v) AS n {PAIRS}"
    inputs = JoinedInput(1_000.0, summed=True), JoinedInput(1_000.0)
    ways = [error_over_a_join(engine, given, sql, *inputs) for given in ([ASKED, GIVEN], [GIVEN, ASKED])]
    assert ways[0] < ways[1]


def test_rows_with_unlike_numbers_of_partners_scatter(engine: Engine) -> None:
    sql = f"SELECT COUNT(*) AS n {PAIRS}"
    even, uneven = (
        error_over_a_join(
            engine, [GIVEN, ASKED], sql, JoinedInput(1_000.0, unevenness=by), JoinedInput(1_000.0)
        )
        for by in (0.0, 3.0)
    )
    own = INTERVAL**2 * 0.4 * 0.6
    assert even == pytest.approx(0.6 + math.sqrt(own / 5_000))
    assert uneven == pytest.approx(0.6 + math.sqrt(own / 5_000 + 3.0 * own / 1_000))


def test_pairs_that_satisfy_a_condition_are_some_by_chance(engine: Engine) -> None:
    inputs = JoinedInput(1_000.0), JoinedInput(1_000.0)
    plain, filtered = (
        error_over_a_join(engine, [GIVEN, ASKED], f"SELECT COUNT(*) AS n {PAIRS}{where}", *inputs)
        for where in ("", " WHERE s.v > t.v")
    )
    assert plain < filtered
