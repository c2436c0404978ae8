"""The scheduler: estimates, charts that follow them, modules that come and go, policies that change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overload.policies.choices import SCHEDULING_POLICIES
from engine.overload.scheduled_module import WaitingBatch
from engine.overload.scheduler import REDONE_EVERY, Scheduler
from tests.overload.simulated import Plan, run_one, scheduler_of
from tureen.errors import SettingsError


def test_charts_follow_what_is_measured() -> None:
    scheduler = Scheduler("chain")
    scheduler.add("slow")
    scheduler.add("quick")
    for number in range(2 * REDONE_EVERY):
        for name, spent in (("slow", 50.0), ("quick", 2.0)):
            scheduler.put(name, WaitingBatch(number, 10.0, 1, 0.0))
            scheduler.take(scheduler[name])
            scheduler.done(scheduler[name], 10.0, spent)
    assert scheduler["slow"].chart.slope == pytest.approx(0.2)
    assert scheduler["quick"].chart.slope == pytest.approx(5)
    scheduler.put("slow", WaitingBatch(100, 10.0, 1, 0.0))
    scheduler.put("quick", WaitingBatch(101, 10.0, 1, 0.0))
    chosen = scheduler.choose(0.0)
    assert chosen is not None
    assert chosen.name == "quick"


def test_a_chart_is_redone_when_a_module_below_moves() -> None:
    scheduler = Scheduler("chain")
    scheduler.add("below", cost=1.0)
    scheduler.add("above", {"below": 0.5}, cost=1.0)
    assert scheduler["above"].chart.slope == pytest.approx(1 / 1.5)
    for _ in range(10 * REDONE_EVERY):
        scheduler.done(scheduler["below"], 1.0, 0.25)
    assert scheduler["above"].chart.slope == pytest.approx(1 / 1.125, rel=0.1)


def test_a_policy_that_is_not_there_is_refused_and_the_present_one_stays() -> None:
    scheduler = Scheduler("chain")
    with pytest.raises(SettingsError):
        scheduler.set_policy("lottery")
    assert scheduler.policy == "chain"
    with pytest.raises(SettingsError):
        Scheduler("lottery")


def test_a_module_goes_with_what_waits_at_it_and_not_before_those_that_feed_it() -> None:
    scheduler = Scheduler("chain")
    scheduler.add("below")
    scheduler.add("above", ["below"])
    scheduler.put("below", WaitingBatch(0, 4.0, 2, 0.0))
    with pytest.raises(ValueError, match="feed below"):
        scheduler.remove("below")
    scheduler.remove("above")
    scheduler.remove("below")
    assert scheduler.choose(0.0) is None
    assert scheduler.size == 0
    scheduler._check()


def test_attributes_tell_queues_ages_and_shares_of_time() -> None:
    scheduler = Scheduler()
    scheduler.add("a")
    scheduler.add("b")
    scheduler.put("a", WaitingBatch(0, 100.0, 7, 2e6))
    scheduler.put("a", WaitingBatch(1, 50.0, 3, 4e6))
    scheduler.done(scheduler["a"], 10.0, 30.0)
    scheduler.done(scheduler["b"], 10.0, 10.0)
    held = {one.name: one.value for one in scheduler.attributes_of(scheduler["a"], 9e6)}
    assert held["queued_rows"] == 10
    assert held["queued_bytes"] == 150
    assert held["oldest_ms"] == 7
    assert held["time_share"] == 0.75
    assert {one.name: one.value for one in scheduler.attributes()}["queued_bytes"] == 150


@given(
    st.lists(
        st.one_of(st.integers(0, 2), st.just("run"), st.sampled_from(list(SCHEDULING_POLICIES))), max_size=60
    )
)
def test_with_any_policy_changed_at_any_time_all_that_came_is_run_once_and_in_order(
    steps: list[int | str],
) -> None:
    plans: list[Plan] = [(1, 0.2, 0), (1, 0.9, 0.2, 0), (1, 0)]
    scheduler = scheduler_of("fifo", plans)
    came, now = 0, 0
    for step in steps:
        if isinstance(step, int):
            deadline = now + 5.0 if step == 1 else None
            scheduler.put(f"{step}.0", WaitingBatch(came, 1.0, 1, now, deadline))
            came += 1
        elif step == "run":
            waiting = any(module.queue for module in scheduler)
            assert (scheduler.choose(now) is not None) == waiting
            run_one(scheduler, plans, now)
            now += 1
        else:
            scheduler.set_policy(step)
        for module in scheduler:
            origins = [batch.origin for batch in module.queue]
            assert origins == sorted(origins)
        scheduler._check()
    while scheduler.choose(now) is not None:
        run_one(scheduler, plans, now)
        now += 1
    expected = sum((len(plans[step]) - 1) for step in steps if isinstance(step, int))
    assert sum(module.spent for module in scheduler) == expected
