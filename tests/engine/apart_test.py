"""Followed queries that are set apart after a restart are told what they would have been told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engine.dataflow.operators.scan import ScanNode
from engine.engine import Engine
from engine.model.allotment import NOTHING_LESS
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import (
    Allocate,
    Alter,
    Backfill,
    Body,
    Claim,
    Position,
    Register,
    Registration,
    Rejoin,
    SetApart,
    Step,
    StepResult,
    Unregister,
)
from tests.engine.faulty import VICTIM, Fault, faulty
from tests.engine.prepared_twins import CLOCK_MS, Slow, Twins, make_small, rows_of, visited

Told = Counter[tuple[Any, ...]]
"""What was told, with the sequence numbers of the steps in which it changed."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


class Restarting(Twins):
    """Twin engines, of which one restarts: from its store, and a journal of the steps since."""

    def __init__(self, seed: int, kind: str = "STREAM") -> None:
        super().__init__(seed, kind)
        self.told: dict[str, Told] = {"timed": Counter(), "plain": Counter()}
        self.waiting: Told = Counter()
        """What is to be written after the step that told it, as a replay has to tell it again."""
        self.journal: list[tuple[Step, bool]] = []
        """Steps since the store was saved, and whether what they told waits."""
        self.timed.save(self.store)

    def step(self, body: Body) -> None:
        self.take(body, body)

    def take(self, body: Body, of_plain: Body, *, is_later: bool = False) -> None:
        """A step of both. is_later: what it tells waits to be written."""
        position = Position(0, self.timed.position.sequence + 1)
        step = Step(position, CLOCK_MS, body)
        self.journal.append((step, is_later))
        found = self.tells(self.timed, step)
        if is_later:
            self.waiting += found
        else:
            self.told["timed"] += found
        self.told["plain"] += self.tells(self.plain, Step(position, CLOCK_MS, of_plain))

    def tells(self, one: Engine, step: Step) -> Told:
        one.enqueue(step)
        (result,) = one.run()
        assert not result.failed
        assert not result.broken
        return told(result)

    def set_apart(self) -> None:
        names = self.timed.preparing.of_followed()
        if names:
            self.take(SetApart(names), Claim("nobody"))

    def made(self, count: int) -> None:
        """State of some is made, and goes through what came."""
        for one in self.timed.apart()[:count]:
            if not one.is_begun:
                one.run()
            else:
                one.some()

    def rejoin(self, *, is_later: bool) -> None:
        ready = [one for one in self.timed.apart() if one.is_ready]
        if ready and not self.waiting:
            one = self.rng.choice(ready)
            self.take(Rejoin(tuple(sorted(one.query_ids))), Claim("nobody"), is_later=is_later)

    def written(self) -> None:
        """What waited is written; that it was is in the journal, too."""
        self.told["timed"] += self.waiting
        self.waiting = Counter()
        self.journal = [(step, False) for step, _ in self.journal]

    def save(self) -> None:
        if not self.timed.apart() and not self.waiting:
            self.timed.save(self.store)
            self.journal = []

    def restart(self) -> None:
        """What waited is told by the replay, and nothing else is."""
        self.timed = Engine.restore(self.store, self.limits, timer=Slow(), functions=self.functions)
        self.waiting = Counter()
        for step, is_later in self.journal:
            self.timed.tells = is_later
            found = self.tells(self.timed, step)
            assert is_later or not found
            self.waiting += found
        self.timed.tells = True

    def registration(self) -> Registration:
        made = super().registration()
        operator = self.rng.choice(["", "", "ISTREAM", "DSTREAM", "RSTREAM"])
        sql = made.sql.removesuffix(" EMIT CHANGES")
        return Registration(made.query_id, f"{operator}({sql}) EMIT CHANGES" if operator else made.sql)

    def come(self) -> None:
        registration = self.registration()
        self.step(Register((registration,)))
        self.standing.append(registration.query_id)

    def go(self) -> None:
        apart = {name for one in self.timed.apart() for name in one.query_ids}
        left = [name for name in self.standing if name not in apart and not self.waiting]
        if left:
            name = self.rng.choice(left)
            self.standing.remove(name)
            self.step(Unregister((name,)))

    def finish(self) -> None:
        """All rejoin, and all is written."""
        self.written()
        while self.timed.apart():
            self.made(len(self.timed.apart()))
            self.rejoin(is_later=False)
        self.rows(5)
        self.check()
        assert self.told["timed"] == self.told["plain"]


def told(result: StepResult) -> Told:
    return Counter(
        ((changes.position or result.position).sequence, *row)
        for changes in result.changes
        for row in rows_of(changes)
    )


COURSES = st.lists(
    st.tuples(st.sampled_from("rrrrcgxxammmjjJwsv"), st.integers(1, 9)), min_size=6, max_size=40
)


@given(st.integers(0, 2**32), st.sampled_from(["STREAM", "TABLE", "BOTH"]), COURSES)
@example(1, "STREAM", [*zip("xarrxrmrJxmrxmjr", range(1, 17), strict=True)])
@example(2, "BOTH", [*zip("xarrmrxrmJrxwr", range(1, 15), strict=True)])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_course(seed: int, kind: str, course: list[tuple[str, int]]) -> None:
    twins = Restarting(seed, kind)
    twins.rows(100)
    for _ in range(3):
        twins.come()
    twins.save()
    for step, count in course:
        match step:
            case "r":
                twins.rows(6 * count)
            case "c":
                twins.come()
            case "g":
                twins.go()
            case "x":
                twins.restart()
            case "a":
                twins.set_apart()
            case "m":
                twins.made(count)
            case "j" | "J":
                twins.rejoin(is_later=step == "J")
            case "w":
                twins.written()
            case "s":
                twins.save()
            case "v":
                twins.check()
    twins.finish()


def apart(sql: str, kind: str = "STREAM") -> Restarting:
    """A query that is set apart after a restart."""
    twins = Restarting(6, kind)
    twins.rows(140)
    twins.step(Register((Registration("q", f"{sql} EMIT CHANGES"),)))
    twins.standing.append("q")
    twins.rows(3)
    twins.save()
    twins.restart()
    twins.set_apart()
    assert [one.query_ids for one in twins.timed.apart()] == [{"q"}]
    return twins


@pytest.mark.parametrize(
    ("kind", "sql", "beside"),
    [
        ("STREAM", "SELECT b, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY b", ""),
        ("STREAM", "SELECT b, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY b", "SELECT a FROM s"),
        ("BOTH", "SELECT s.t, COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN d ON s.b = d.b GROUP BY s.t", ""),
    ],
)
def test_no_step_makes_state_that_was_made_beside(kind: str, sql: str, beside: str) -> None:
    twins = apart(sql, kind)
    if beside:  # over the same sources, and of no step since the restart
        twins.step(Register((Registration("r", f"{beside} EMIT CHANGES"),)))
        twins.standing.append("r")
    else:
        twins.rows(2)
    assert twins.timed.view().apart == {"q"}
    twins.made(1)
    twins.rejoin(is_later=False)
    assert twins.timed.view().apart == frozenset()
    before = visited(twins)
    twins.rows(1)
    timed, plain = (after - was for after, was in zip(visited(twins), before, strict=True))
    assert timed == plain
    twins.finish()


def several() -> Restarting:
    """Five queries of a shape, and one of another, that are set apart."""
    twins = Restarting(6)
    twins.rows(140)
    sql = "SELECT b, COUNT(*) AS n FROM s [RANGE 1 SECOND] WHERE a < {} GROUP BY b EMIT CHANGES"
    twins.standing += [f"q{number}" for number in range(5)]
    twins.step(Register(tuple(Registration(f"q{number}", sql.format(9 + number)) for number in range(5))))
    twins.step(Register((Registration("p", "SELECT DISTINCT t FROM s EMIT CHANGES"),)))
    twins.standing.append("p")
    twins.rows(1)
    twins.save()
    twins.restart()
    twins.set_apart()
    return twins


def test_queries_of_a_shape_share_what_is_made_for_them() -> None:
    twins = several()
    assert sorted(len(one.query_ids) for one in twins.timed.apart()) == [1, 5]
    twins.rows(9)
    twins.made(1)
    twins.rejoin(is_later=False)
    twins.restart()  # those that rejoined have not to wait for the others
    assert sorted(len(one.query_ids) for one in twins.timed.apart()) in ([1], [5])
    twins.finish()


def test_some_of_those_that_share_rejoin_before_the_others() -> None:
    """As a replay may have it, by which they were divided otherwise. What is not made is made then."""
    twins = several()
    twins.rows(9)
    twins.take(Rejoin(("q3", "q1", "p")), Claim("nobody"))
    assert [sorted(one.query_ids) for one in twins.timed.apart()] == [["q0", "q2", "q4"]]
    before = twins.timed.apart()[0]
    assert not before.is_begun
    twins.rows(9)
    twins.finish()


def test_what_cannot_be_set_apart_is_passed_over() -> None:
    twins = apart("SELECT b, COUNT(*) AS n FROM s GROUP BY b")
    paused = Registration("r", "SELECT DISTINCT t FROM s EMIT CHANGES", options={"paused": "true"})
    twins.take(Register((paused,)), Claim("nobody"))
    twins.take(SetApart(("q", "r", "nobody")), Claim("nobody"))
    twins.take(Rejoin(("r", "nobody")), Claim("nobody"))
    assert [one.query_ids for one in twins.timed.apart()] == [{"q"}]
    twins.finish()


def test_one_that_is_set_apart_is_not_changed_and_gets_no_history() -> None:
    twins = apart("SELECT b, COUNT(*) AS n FROM s GROUP BY b")
    text = twins.timed._queries["q"].registration.sql
    boundary_ms = twins.timed._source("s").boundary_ms
    assert boundary_ms is not None
    bodies: list[tuple[str, Body]] = [
        ("q", Alter((Registration("q", "SELECT DISTINCT t FROM s EMIT CHANGES"),))),
        ("q", Register((Registration("q", text, options={"paused": "true"}),))),
        ("q", Allocate((("q", NOTHING_LESS),))),
        ("s", Backfill(SourceName("s"), twins.batch(1, boundary_ms - 1), boundary_ms - 1, boundary_ms)),
    ]
    for name, body in bodies:
        twins.timed.enqueue(Step(Position(0, twins.timed.position.sequence + 1), CLOCK_MS, body))
        (result,) = twins.timed.run()
        code = "being_prepared" if name == "q" else "backfill_refused"
        assert {of: error.code for of, error in result.failed.items()} == {name: code}  # type: ignore[attr-defined]
        twins.tells(twins.plain, Step(result.position, CLOCK_MS, Claim("nobody")))
        twins.journal.append((Step(result.position, CLOCK_MS, Claim("nobody")), False))
    twins.restart()
    twins.rows(2)
    twins.finish()


def test_one_that_goes_is_told_nothing_more() -> None:
    twins = apart("SELECT b, COUNT(*) AS n FROM s GROUP BY b")
    (one,) = twins.timed.apart()
    twins.rows(3)
    before = +twins.told["timed"]
    twins.take(Unregister(("q",)), Unregister(("q",)))
    assert twins.timed.apart() == []
    one.run()  # the thread that makes it ends by itself
    twins.rows(3)
    assert twins.told["timed"] == before


def test_one_whose_changes_are_too_many_ends_when_it_rejoins() -> None:
    twins = apart("SELECT b, COUNT(*) AS n FROM s GROUP BY b")
    (one,) = twins.timed.apart()
    one.limits = Limits(changes_max=1)
    twins.rows(9)
    one.run()
    twins.timed.enqueue(Step(Position(0, twins.timed.position.sequence + 1), CLOCK_MS, Rejoin(("q",))))
    (result,) = twins.timed.run()
    assert {name: getattr(why, "code", "") for name, why in result.broken.items()} == {"q": "limit_exceeded"}
    assert "q" not in twins.timed._parts.following


@pytest.mark.parametrize("where", ["standing_sets", "_changed"])
def test_a_defect_ends_the_query_whose_it_is_when_it_rejoins(where: str) -> None:
    """Others of its shape are told all."""
    twins = Restarting(6)
    twins.rows(140)
    sql = "SELECT b, COUNT(*) AS n FROM s [RANGE 1 SECOND] WHERE a < {} GROUP BY b EMIT CHANGES"
    names = ["q", VICTIM, "r"]
    twins.step(Register(tuple(Registration(name, sql.format(9 + at)) for at, name in enumerate(names))))
    twins.save()
    twins.restart()
    with faulty(ScanNode, where, Fault(ValueError)) as fault:
        twins.set_apart()
        (one,) = twins.timed.apart()
        twins.rows(4)
        fault.is_armed = True
        one.run()
        assert fault.hits
        fault.is_armed = False
    broken: list[dict[str, str]] = []
    for body, of_plain in ((Rejoin((*names,)), Claim("nobody")), (Unregister((VICTIM,)),) * 2):
        step = Step(Position(0, twins.timed.position.sequence + 1), CLOCK_MS, body)
        twins.timed.enqueue(step)
        (result,) = twins.timed.run()
        twins.told["timed"] += told(result)
        twins.told["plain"] += twins.tells(twins.plain, replace(step, body=of_plain))
        broken.append({name: getattr(why, "code", "") for name, why in result.broken.items()})
    assert broken[0] == {VICTIM: "internal_error"}
    assert not twins.timed.defects
    twins.rows(4)
    timed, plain = ({row: n for row, n in each.items() if row[2] != VICTIM} for each in twins.told.values())
    assert timed == plain
