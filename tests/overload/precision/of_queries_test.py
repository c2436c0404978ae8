"""Queries that stand over the same streams as one problem of allocation, and what a solution gives each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from engine.engine import Engine
from engine.language.query import Query
from engine.model.source import SourceName, Stream
from engine.model.tolerance import EXACT, Tolerance
from engine.overload.precision.allocation import solve
from engine.overload.precision.freedom import FLOOR, Freedom, freedoms
from engine.overload.precision.of_queries import QueriesProblem, Reader, ScanShare, Store, problem_of
from tests.capacities import small_engine

HOUR = "[RANGE 1 HOUR]"
HOUR_MS = 3_600_000
SOME = Tolerance(max_fn=0.9)
OFF = Tolerance(max_error=0.5)


@pytest.fixture(scope="module")
def engine() -> Engine:
    made = small_engine()
    for name in "st":
        made.create(
            f"CREATE STREAM {name} (k STRING, v BIGINT, ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts')"
        )
    made.create("CREATE TABLE d (k STRING, name STRING, PRIMARY KEY (k))")
    return made


def bound(engine: Engine, sql: str) -> Query:
    query = engine.prepare(sql)
    assert isinstance(query, Query)
    return query


def streams(engine: Engine) -> Mapping[SourceName, Stream]:
    return {name: one for name, one in engine.catalogue.items() if isinstance(one, Stream)}  # type: ignore[misc]


def rows_of(query: Query) -> Sequence[float]:
    return [1_000.0 / 2**place for place in range(len(query.stages) + 1)]


def problem(
    engine: Engine,
    readers: Sequence[tuple[str, Tolerance]],
    bytes_: float | None = None,
    cpu: float | None = None,
) -> QueriesProblem:
    """Streams of 10 rows of 100 bytes a second, queries of 1 ms a second, weights 1, 2, ..."""
    stores = {name: Store(one, 10.0, 100.0) for name, one in streams(engine).items()}
    asked = [
        Reader(f"q{place}", bound(engine, sql), tolerance, place + 1.0, 1e6)
        for place, (sql, tolerance) in enumerate(readers)
    ]
    return problem_of(asked, stores, rows_of, bytes_, cpu)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT v FROM s {HOUR} WHERE v > 1", [Freedom(FLOOR, FLOOR)]),
        ("SELECT v FROM s", [Freedom(None, FLOOR)]),
        (f"SELECT DISTINCT v FROM s {HOUR}", [Freedom()]),
        (f"SELECT v FROM s {HOUR} ORDER BY v LIMIT 3", [Freedom()]),
        (f"SELECT v FROM s {HOUR} ORDER BY v FETCH FIRST 3 ROWS WITH TIES", [Freedom()]),
        (f"SELECT s.v FROM s {HOUR} JOIN t {HOUR} ON s.k = t.k", [Freedom(FLOOR), Freedom(FLOOR)]),
        (f"SELECT s.v FROM s {HOUR} LEFT JOIN t {HOUR} ON s.k = t.k", [Freedom(FLOOR), Freedom()]),
        (f"SELECT s.v FROM s {HOUR} JOIN d ON s.k = d.k", [Freedom(FLOOR, FLOOR), Freedom()]),
        (f"SELECT s.v FROM s {HOUR} JOIN d ON s.k = d.name", [Freedom(FLOOR), Freedom()]),
        (f"SELECT v FROM s {HOUR} WHERE v NOT IN (SELECT v FROM t {HOUR})", [Freedom(FLOOR), Freedom()]),
        (f"SELECT v FROM s {HOUR} WHERE v IN (SELECT v FROM t {HOUR})", [Freedom(FLOOR), Freedom(FLOOR)]),
        (f"SELECT k FROM s {HOUR} EXCEPT ALL SELECT k FROM t {HOUR}", [Freedom(FLOOR), Freedom()]),
        (f"SELECT k FROM s {HOUR} UNION ALL SELECT k FROM t {HOUR}", [Freedom(FLOOR, FLOOR)] * 2),
        (f"SELECT k FROM s {HOUR} UNION SELECT k FROM t {HOUR}", [Freedom(), Freedom()]),
        (f"SELECT k FROM TUMBLE(s, ts, INTERVAL '1' MINUTE) {HOUR}", [Freedom()]),
    ],
)
def test_scans_that_may_be_given_less(engine: Engine, sql: str, expected: list[Freedom]) -> None:
    query = bound(engine, sql)
    assert list(freedoms(query, streams(engine), SOME)) == expected
    assert set(freedoms(query, streams(engine), EXACT)) == {Freedom()}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT COUNT(*) AS n, AVG(v) AS a FROM s {HOUR}", Freedom(FLOOR, FLOOR)),
        (f"SELECT MAX(v) AS n FROM s {HOUR}", Freedom(FLOOR)),
        (f"SELECT COUNT(DISTINCT v) AS n FROM s {HOUR}", Freedom(FLOOR)),
        (f"SELECT k, COUNT(*) AS n FROM s {HOUR} GROUP BY k HAVING COUNT(*) < 3", Freedom()),
    ],
)
def test_aggregates_are_free_by_their_error(engine: Engine, sql: str, expected: Freedom) -> None:
    query = bound(engine, sql)
    assert freedoms(query, streams(engine), OFF) == (expected,)
    assert freedoms(query, streams(engine), SOME) == (Freedom(),)


def test_store_shrinks_for_the_least_weighty_to_what_fits(engine: Engine) -> None:
    sql = f"SELECT v FROM s {HOUR} WHERE v > 1"
    whole = 3_600 * 10 * 100
    found = problem(engine, [(sql, SOME)], bytes_=whole / 4)
    allocation = solve(found.problem)
    assert allocation.bytes <= whole / 4 * 1.001
    ((given,),) = found.given(allocation).values()
    assert given.window_ms == pytest.approx(HOUR_MS / 4, rel=1e-3)
    assert given.rate is None
    assert allocation.expected["q0"].fn == pytest.approx(0.75, abs=1e-3)


def test_exact_reader_holds_the_store(engine: Engine) -> None:
    exact = "SELECT v FROM s [RANGE 30 MINUTES]"
    found = problem(engine, [(f"SELECT v FROM s {HOUR}", SOME), (exact, EXACT)], bytes_=1.0)
    allocation = solve(found.problem)
    assert list(found.plans) == ["q0"]
    ((given,),) = found.given(allocation).values()
    assert given.window_ms == pytest.approx(HOUR_MS / 2, rel=1e-3)


def test_wider_exact_reader_leaves_windows_whole(engine: Engine) -> None:
    exact = "SELECT v FROM s [RANGE 2 HOURS]"
    found = problem(engine, [(f"SELECT v FROM s {HOUR}", SOME), (exact, EXACT)], bytes_=1.0)
    assert found.given(solve(found.problem)) == {"q0": (ScanShare(),)}


def test_narrower_window_is_whole_while_the_store_reaches_as_far(engine: Engine) -> None:
    narrow = "SELECT v FROM s [RANGE 10 MINUTES]"
    found = problem(engine, [(narrow, SOME), (f"SELECT v FROM s {HOUR}", SOME)], bytes_=3_600 * 10 * 100 / 3)
    allocation = solve(found.problem)
    given = found.given(allocation)
    assert given["q0"] == (ScanShare(),)
    assert allocation.expected["q0"].fn == pytest.approx(0.0, abs=1e-6)
    assert given["q1"][0].window_ms == pytest.approx(HOUR_MS / 3, rel=1e-2)


def test_bound_is_kept_or_told_to_be_out_of_reach(engine: Engine) -> None:
    sql = f"SELECT s.v FROM s {HOUR} JOIN t {HOUR} ON s.k = t.k"
    whole = 2 * 3_600 * 10 * 100
    kept = solve(problem(engine, [(sql, Tolerance(max_fn=0.3))], bytes_=whole * 0.9).problem)
    assert kept.unreachable == frozenset()
    assert kept.expected["q0"].fn == pytest.approx(1 - 0.9**2, abs=1e-2)
    assert kept.expected["q0"].fn_changes == pytest.approx(0.1, abs=1e-2)
    # Of its changes a fifth would be missing, but of what is fetched more than may be.
    broken = solve(problem(engine, [(sql, Tolerance(max_fn=0.3))], bytes_=whole * 0.8).problem)
    assert broken.unreachable == {"q0"}
    assert broken.expected["q0"].fn > 0.3
    (refusal,) = broken.refusals().values()
    assert refusal.fn == pytest.approx(broken.expected["q0"].fn)


def test_bounds_of_a_query_that_emits_what_comes_are_those_of_its_changes(engine: Engine) -> None:
    sql = f"ISTREAM (SELECT s.v FROM s {HOUR} JOIN t {HOUR} ON s.k = t.k) EMIT CHANGES WITH (format = 'diff')"
    bytes_ = 2 * 3_600 * 10 * 100 * 0.8
    found = solve(problem(engine, [(sql, Tolerance(max_fn=0.3))], bytes_=bytes_).problem)
    assert found.unreachable == frozenset()
    assert found.expected["q0"].missing == pytest.approx(0.2, abs=1e-2)


def test_nothing_is_promised_where_nothing_tells(engine: Engine) -> None:
    asof = f"SELECT s.v FROM s {HOUR} ASOF JOIN t {HOUR} ON s.k = t.k AND t.ts <= s.ts"
    for sql, tolerance, free in (
        (f"SELECT MAX(v) AS n FROM s {HOUR}", OFF, [None]),
        (f"SELECT MAX(v) AS n FROM s {HOUR}", Tolerance(max_error=1.0), [FLOOR]),
        ("SELECT MAX(v) AS n FROM s [RANGE 1 HOUR DOWN TO 30 MINUTES]", OFF, [0.5]),
        (f"SELECT COUNT(*) AS n FROM s {HOUR}", OFF, [FLOOR]),
        (asof, SOME, [FLOOR, None]),
    ):
        found = freedoms(bound(engine, sql), streams(engine), tolerance, promised=True)
        assert [one.window for one in found] == free, sql


def test_time_is_divided_by_weight_over_samplers(engine: Engine) -> None:
    sql = "SELECT COUNT(*) AS n FROM s"
    found = problem(engine, [(sql, OFF), ("SELECT v FROM s", SOME), ("SELECT k FROM t", EXACT)], cpu=2.2e6)
    allocation = solve(found.problem)
    # The exact query takes 1 ms of 2.2, the others 2 where they may.
    assert allocation.cpu_ns <= 1.2e6 * 1.001
    given = found.given(allocation)
    assert set(given) == {"q0", "q1"}
    rates = [1.0 if each[0].rate is None else each[0].rate for each in given.values()]
    assert sum(rates) == pytest.approx(1.2, rel=1e-2)


def test_queries_of_one_plan_get_the_same(engine: Engine) -> None:
    sql = "SELECT COUNT(*) AS n FROM s"
    stores = {name: Store(one, 10.0, 100.0) for name, one in streams(engine).items()}
    readers = [Reader(f"q{place}", bound(engine, sql), OFF, 1.0, 1e6) for place in range(200)]
    found = problem_of(readers, stores, rows_of, None, 50e6)
    given = found.given(solve(found.problem))
    assert [each[0].rate for each in given.values()] == pytest.approx([0.25] * 200, rel=1e-4)
