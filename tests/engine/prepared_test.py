"""Queries whose matches are made in slices before they come: all answers are what they are without that."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import engine.preparing
from engine.model.step import Register, Registration
from tests.engine.prepared_twins import PAIRS, Twins, make_small, visited


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


@given(
    st.integers(0, 2**32),
    st.sampled_from(["STREAM", "TABLE", "BOTH"]),
    st.lists(st.tuples(st.sampled_from("pppsssccrrrughoc"), st.integers(1, 9)), min_size=4, max_size=24),
)
@example(154892, "STREAM", [*zip("pouspsssu", (5, 4, 6, 3, 7, 9, 5, 9, 8), strict=True)])
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_course(seed: int, kind: str, course: list[tuple[str, int]]) -> None:
    twins = Twins(seed, kind)
    twins.rows(100)
    for step, count in course:
        match step:
            case "p":
                twins.prepare()
            case "s":
                twins.some(count)
            case "c":
                twins.come()
            case "r":
                twins.rows(6 * count)
            case "u":
                twins.give_up()
            case "g":
                twins.go()
            case "h" if kind != "TABLE":
                twins.history(count)
            case "o":
                twins.timed.idle()
        twins.check()
    twins.restart()
    twins.check()
    twins.rows(20)
    twins.check()


def test_nothing_is_left_to_do_when_it_comes() -> None:
    twins = Twins(3)
    twins.rows(140)
    registration = Registration("q", "SELECT a FROM s WHERE t LIKE '%a%' EMIT CHANGES")
    (one,) = twins.timed.preparing.of([registration]).values()
    slices = 1
    while one.some():
        slices += 1
        twins.rows(1)
    assert slices > 140 / 3
    assert one.beside
    one.run()
    assert one.progress == 1.0
    before = twins.timed._source("s").queries
    looked = before.eddy.visits
    twins.step(Register((registration,)))
    one.dismiss()
    assert before.eddy.visits == looked
    twins.standing.append("q")
    twins.check()
    assert twins.timed._queries["q"].keeps_matches


def test_what_is_given_up_leaves_nothing() -> None:
    twins = Twins(4)
    twins.rows(140)
    (one,) = twins.timed.preparing.of([twins.registration()]).values()
    one.some()
    one.dismiss()
    stem = twins.timed._source("s")
    assert not stem.queries.slots.holders.any()
    assert not stem.rows.owed.ahead
    twins.check()


def test_what_is_cheap_or_does_not_need_its_matches_is_not_prepared() -> None:
    twins = Twins(5)
    twins.rows(140)
    for sql in (
        "SELECT a FROM s WHERE t LIKE '%a%'",
        "SELECT nothing FROM s EMIT CHANGES",
    ):
        assert twins.timed.preparing.of([Registration("q", sql)]) == {}
    paused = Registration("q", "SELECT a FROM s WHERE t LIKE '%a%' EMIT CHANGES", options={"paused": "true"})
    assert twins.timed.preparing.of([paused]) == {}
    twins.step(Register((paused,)))
    resumed = Registration("q", paused.sql, options={"paused": "false"})
    (one,) = twins.timed.preparing.of([resumed]).values()
    while one.some():
        twins.rows(1)
    assert one.beside
    one.run()
    twins.step(Register((resumed,)))
    one.dismiss()
    twins.standing.append("q")
    twins.check()
    assert twins.timed.preparing.of([resumed]) == {}


@pytest.mark.parametrize(
    ("kind", "sql"),
    [
        ("STREAM", "SELECT b, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY b"),
        ("STREAM", PAIRS),
        ("BOTH", "SELECT s.t, COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN d ON s.b = d.b GROUP BY s.t"),
    ],
)
def test_state_that_was_made_beside_is_not_made_again(kind: str, sql: str) -> None:
    twins = Twins(6, kind)
    twins.rows(140)
    registration = Registration("q", f"{sql} EMIT CHANGES")
    (one,) = twins.timed.preparing.of([registration]).values()
    while not one.is_made:
        one.some()
    assert one.beside
    assert not one.is_done
    twins.rows(3)
    one.run()
    assert one.is_done
    twins.rows(3)  # those that come until it does
    while one.some():
        pass
    twins.step(Register((registration,)))
    one.dismiss()
    twins.standing.append("q")
    before = visited(twins)
    twins.rows(1)
    after = visited(twins)
    assert 8 * (after[0] - before[0]) < after[1] - before[1]
    twins.check()


def test_a_join_is_prepared_where_it_has_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.preparing, "LARGE_ROWS", 1_500)
    monkeypatch.setattr(engine.preparing, "ALLOWANCE_NS", 10**12)
    twins = Twins(7)
    twins.rows(140)
    sides = "FROM s [RANGE 1 SECOND] AS x, s [RANGE 1 SECOND] AS y"
    few = Registration("few", f"SELECT x.a {sides} WHERE x.ts = y.ts EMIT CHANGES")
    many = Registration("many", f"SELECT x.a {sides} WHERE x.t = y.t EMIT CHANGES")
    (made,) = twins.timed.preparing.of([few, many]).values()
    assert made.query_id == "many"
    made.dismiss()
