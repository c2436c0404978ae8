"""Grants of work: free time in units, bounded so that input never waits long, none where nothing is left."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.shard.grants import HEARTBEAT_NS, MS, Grants
from broker.shard.work_units import BURST_S, UnitCost, WorkLimit

S = 1_000 * MS
STEP_MS = 20


@dataclass
class Load:
    """A shard in simulated time: records of every gap take ``step_ns`` each step, units ``unit_ns``."""

    unit_ns: float
    fixed_ns: float = 0.0
    work: int = 1 << 60
    share: float = 0.1
    per_s_max: int | None = None
    changes_max: int = 1 << 62
    now_ns: int = 0
    waits_ns: list[float] = field(default_factory=list)
    heartbeats: int = 0

    def __post_init__(self) -> None:
        self.grants = Grants(STEP_MS, self.share, self.per_s_max, self.changes_max, 0)

    def _spend(self, granted: int) -> tuple[int, int]:
        spent = min(granted, self.work)
        self.work -= spent
        self.grants.left = self.work
        return spent, int(spent * self.unit_ns + (self.fixed_ns if granted else 0.0))

    def idle_until(self, until_ns: int, rest_ms: int = 250) -> None:
        """Nothing comes until then."""
        self.grants.left = self.work
        while self.now_ns < until_ns:
            granted = self.grants.for_heartbeat(self.now_ns)
            if granted:
                spent, ns = self._spend(granted)
                self.grants.heartbeat_took(ns + HEARTBEAT_NS, granted, spent)
                self.now_ns += int(ns + HEARTBEAT_NS)
                self.heartbeats += 1
            else:
                wait_s = min(rest_ms / 1_000, self.grants.wait_s(self.now_ns))
                rest_ns = max(1_000, min(math.ceil(wait_s * 1e9), until_ns - self.now_ns))
                self.grants.rested(rest_ns)
                self.now_ns += rest_ns
        self.waits_ns.append(self.now_ns - until_ns)

    def records(self, step_ns: int, *, lagging: bool) -> float:
        """A step of records; what its grant took."""
        self.grants.records_come()
        granted = self.grants.for_records(self.now_ns, lagging=lagging)
        spent, ns = self._spend(granted)
        self.grants.records_took(step_ns + ns, granted, spent, ns)
        self.now_ns += step_ns + ns
        return ns


@pytest.mark.parametrize("unit_ns", [50, 2_000, 20_000, 1_500_000])
def test_no_heartbeat_takes_much_longer_than_it_may_once_the_cost_is_known(unit_ns: int) -> None:
    load = Load(unit_ns)
    load.idle_until(S)
    began, spent = load.now_ns, load.grants.spent
    for _ in range(20):
        before = load.now_ns
        load.idle_until(before + 1)
        assert load.now_ns - before <= (STEP_MS + 2) * MS + unit_ns
    done = (load.grants.spent - spent) * unit_ns
    assert done >= 0.8 * (load.now_ns - began)


@pytest.mark.parametrize(("fixed_ms", "unit_ns"), [(37, 20), (37, 2_000), (5, 100), (200, 100)])
def test_cost_that_grants_have_each_makes_them_no_smaller(fixed_ms: int, unit_ns: int) -> None:
    load = Load(unit_ns, fixed_ns=fixed_ms * MS)
    load.idle_until(5 * S)
    began, spent = load.now_ns, load.grants.spent
    load.idle_until(began + 5 * S)
    useful = (load.grants.spent - spent) * unit_ns / (load.now_ns - began)
    assert useful >= 0.5 * min(STEP_MS, 10) / (fixed_ms + 2 + 10)
    before = load.now_ns
    load.idle_until(before + 1)
    assert load.now_ns - before <= (max(STEP_MS, fixed_ms + STEP_MS / 2) + 5) * MS * 1.5


def test_grants_double_at_most_from_one_to_the_next_and_fall_at_once() -> None:
    cost = UnitCost()
    span_ns = STEP_MS * MS
    before = cost.units_in(span_ns)
    for _ in range(12):
        cost.measured(before, before, before * 10)
        now = cost.units_in(span_ns)
        assert before <= now <= 2 * before
        before = now
    cost.measured(before, before, 10 * span_ns)
    assert cost.units_in(span_ns) <= before / 10


def test_one_slow_grant_is_soon_forgotten() -> None:
    load = Load(100)
    load.idle_until(S)
    usual = load.grants.for_heartbeat(load.now_ns)
    load.grants.heartbeat_took(4 * S, usual, usual)
    assert load.grants.for_heartbeat(load.now_ns) <= usual / 100
    load.idle_until(load.now_ns + S // 4)
    assert load.grants.for_heartbeat(load.now_ns) >= usual / 2


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("fixed_ms", "unit_ns"), [(20, 100), (5, 20_000), (5, 1_500_000)])
def test_grants_stay_useful_on_a_busy_machine(fixed_ms: int, unit_ns: int, seed: int) -> None:
    waits = Random(seed)
    load = Load(unit_ns)
    spent = 0
    for n in range(600):
        load.fixed_ns = (fixed_ms + waits.expovariate(1 / 40) + 1_000 * (n < 2)) * MS
        load.idle_until(load.now_ns + 1)
        spent = spent or (load.grants.spent if load.now_ns > 10 * S else 0)
    useful = (load.grants.spent - spent) * unit_ns / (load.now_ns - 10 * S)
    assert useful >= 0.15


def test_one_unit_that_took_long_is_followed_by_two() -> None:
    cost = UnitCost()
    for _ in range(30):
        cost.measured(1, 1, 60 * MS)
    assert cost.units_in(cost.span_ns(STEP_MS * MS)) == 2


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0.0, 0.5, 1.0, 1e6])), min_size=1, max_size=8))
def test_grants_that_take_no_time_at_all_are_followed_by_others(grants: list[tuple[int, float]]) -> None:
    cost = UnitCost()
    for units, took_ns in grants:
        cost.measured(units, units, took_ns)
        assert 1 <= cost.units_in(cost.span_ns(1e6)) <= 2 * units


def test_span_that_is_too_short_has_no_units() -> None:
    cost = UnitCost()
    for units in (10, 1_000, 20, 2_000):
        cost.measured(units, units, 5 * MS + units * 100)
    assert cost.fixed_ns == pytest.approx(5 * MS)
    assert cost.ns == pytest.approx(100)
    assert cost.units_in(4 * MS) == 0
    assert cost.units_in(5 * MS + 500_000) >= 1


def test_input_that_is_behind_keeps_all_but_the_share() -> None:
    load = Load(200, share=0.1)
    took = 0.0
    for _ in range(400):
        took += load.records(10 * MS, lagging=True)
    assert 0.08 * load.now_ns <= took <= 0.11 * load.now_ns


def test_record_waits_for_one_grant_at_most_while_more_work_is_left_than_time() -> None:
    load = Load(200)
    load.idle_until(S)
    load.waits_ns.clear()
    for n in range(200):
        load.idle_until(load.now_ns + (1 + n % 40) * MS)
        wait = load.waits_ns[-1] + load.records(2 * MS, lagging=False)
        assert wait <= 2 * (STEP_MS + 3) * MS
    assert max(load.waits_ns) <= (STEP_MS + 3) * MS


def test_free_time_of_late_is_what_steps_of_records_have() -> None:
    load = Load(200)
    load.idle_until(S)
    assert load.records(MS, lagging=False) > 0
    taken = [load.records(30 * MS, lagging=False) for _ in range(50)]
    assert sum(taken) <= 0.12 * 50 * 30 * MS


def test_shard_without_work_makes_no_heartbeat_and_one_that_finds_none_makes_one() -> None:
    load = Load(200, work=0)
    load.idle_until(10 * S)
    assert (load.heartbeats, load.grants.granted) == (0, 0)
    grants = load.grants
    grants.left = 5
    granted = grants.for_heartbeat(load.now_ns)
    assert granted > 0
    grants.heartbeat_took(MS, granted, 0)
    assert math.isinf(grants.wait_s(load.now_ns))
    grants.stepped()
    assert grants.wait_s(load.now_ns) == 0


def test_work_that_ends_is_the_last() -> None:
    load = Load(200, work=1_000_000)
    load.idle_until(5 * S)
    assert (load.work, load.grants.spent) == (0, 1_000_000)
    beats = load.heartbeats
    load.idle_until(10 * S)
    assert load.heartbeats == beats


@pytest.mark.parametrize("per_s", [0, 3, 1_000, 1_000_000])
def test_limit_is_kept_with_few_heartbeats(per_s: int) -> None:
    load = Load(200, per_s_max=per_s)
    load.idle_until(20 * S)
    done = load.grants.spent
    assert done <= per_s * (20 + 2 * BURST_S) + 1
    assert done >= 0.9 * per_s * 20 - 1
    assert load.heartbeats <= min(per_s, 1_200) * 20


def test_limit_changes_while_it_runs() -> None:
    limit = WorkLimit(0, 0)
    assert math.isinf(limit.wait_s(1, S))
    limit.set(1_000, S)
    assert limit.left(S) == 0
    assert limit.wait_s(1_000_000, S) == pytest.approx(BURST_S)
    assert limit.left(2 * S) == 1_000 * BURST_S
    limit.set(None, 2 * S)
    assert limit.wait_s(1_000_000, 2 * S) == 0


def test_grants_leave_room_for_changes_that_wait_to_be_written() -> None:
    shard = Load(unit_ns=1.0, changes_max=4_000)
    shard.grants.left = shard.work
    assert 0 < shard.grants.for_heartbeat(0) <= 1_000
    shard.grants.waiting = 999
    assert shard.grants.for_heartbeat(0) == 1
    shard.grants.waiting = 1_000
    assert shard.grants.for_heartbeat(0) == 0
    assert math.isinf(shard.grants.wait_s(0))
    shard.records(MS, lagging=False)
    assert shard.grants.spent == 0
