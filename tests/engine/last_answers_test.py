"""Answers that are taken back, compared or kept when a query is removed, altered or paused: what is told is
the same where they were made beside and kept up, as where the step works them out.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.step import Alter, Body, Register, Registration, Unregister
from engine.preparing import Preparation
from tests.engine.first_answers import EMITS, QUERIES, TABLES, Calls, twins_of
from tests.engine.prepared_twins import make_small


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


OTHERS = ("SELECT costly(b) AS c FROM s [RANGE 35 MILLISECONDS]", "SELECT a, b, t FROM s [ROWS 5]")
PAUSED = {"paused": "true"}


class Course:
    """One query that stands on twins, is prepared to be something else on one of them, and then is that."""

    def __init__(self, seed: int, sql: str, emit: str) -> None:
        self.calls = Calls()
        self.twins = twins_of(seed, sql, self.calls)
        self.sql = sql = f"{sql} {emit}"
        self.twins.rows(90)
        self.twins.step(Register((Registration("q", sql),)))
        self.twins.standing.append("q")

    def prepared(self, body: Body) -> Preparation | None:
        """What is made for a step, before it."""
        match body:
            case Unregister(query_ids=names):
                return self.twins.timed.preparing.of_removals(names).get("q")
            case Register(registrations=coming) | Alter(registrations=coming):
                return self.twins.timed.preparing.of(coming).get("q")
        raise AssertionError(body)

    def resume(self) -> None:
        """It runs again where it is paused."""
        self.twins.step(Register((Registration("q", self.sql),)))


def bodies(sql: str, other: str, emit: str) -> dict[str, Body]:
    return {
        "remove": Unregister(("q",)),
        "alter": Alter((Registration("q", f"{other} {emit}"),)),
        "pause": Register((Registration("q", sql, options=PAUSED),)),
    }


def some(one: Preparation) -> None:
    while one.some():
        pass


@pytest.mark.parametrize("emit", EMITS)
@pytest.mark.parametrize("sql", QUERIES + TABLES)
@pytest.mark.parametrize("what", ["remove", "alter", "pause"])
def test_the_step_calls_no_function_for_the_answer_that_was(what: str, sql: str, emit: str) -> None:
    course = Course(5, sql, emit)
    twins, body = course.twins, bodies(course.sql, OTHERS[0], emit)[what]
    one = course.prepared(body)
    if what == "remove" and not twins.timed._following.has_end("q"):
        assert one is None
        assert not twins.apply(twins.timed, body), "nothing of it is taken back"
        return
    assert one is not None
    some(one)
    assert not one.is_done
    twins.rows(7)
    one.run()
    twins.rows(8)
    some(one)
    assert one.is_done
    before = course.calls.count
    told = twins.apply(twins.timed, body)
    assert course.calls.count == before
    assert told == twins.apply(twins.plain, body)
    one.dismiss()
    if what == "remove":
        twins.standing.clear()
    if what == "pause":
        twins.rows(12)
        course.resume()
    twins.rows(20)
    twins.check()


@given(
    st.integers(0, 2**32),
    st.sampled_from(QUERIES + TABLES),
    st.sampled_from(OTHERS),
    st.sampled_from(EMITS),
    st.sampled_from(["remove", "alter", "pause"]),
    st.lists(st.tuples(st.sampled_from("srrbhwgok"), st.integers(1, 9)), max_size=8),
)
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_course_until_it_goes(
    seed: int, sql: str, other: str, emit: str, what: str, steps: list[tuple[str, int]]
) -> None:
    course = Course(seed, sql, emit)
    twins, body = course.twins, bodies(course.sql, other, emit)[what]
    one = course.prepared(body)
    text = course.sql
    for step, count in steps:
        match step:
            case "s" if one is not None:
                some(one)
            case "r":
                twins.rows(6 * count)
            case "b" if one is not None and one.is_made and not one.is_done:
                one.run()
            case "h":
                twins.history(count)
            case "w":
                twins.step(Register((Registration(f"w{count}", f"SELECT a FROM s [RANGE {count} SECONDS]"),)))
            case "g" if one is not None:  # it is given up, and begins again
                one.dismiss()
                one = course.prepared(body)
            case "o":  # other options, the same answer
                options = {"weight": str(count), "maintenance": "eager" if count % 2 else "lazy"}
                twins.step(Register((Registration("q", text, options=options),)))
            case "k":  # another text, and back
                twins.step(Alter((Registration("q", f"{other} {emit}"),)))
                twins.step(Alter((Registration("q", text),)))
    twins.step(body)
    if one is not None:
        one.dismiss()
    if what == "remove":
        twins.standing.clear()
        twins.step(Register((Registration("q", text),)))
        twins.standing.append("q")
    elif what == "pause":
        twins.rows(8)
        course.resume()
    else:
        twins.rows(8)
        twins.step(Alter((Registration("q", text),)))
    twins.check()
    twins.rows(20)
    twins.check()
