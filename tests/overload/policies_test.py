"""What policies hold: the paper's example, where greedy fails, and no more than a batch above the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from engine.overload.policies.choices import SCHEDULING_POLICIES
from engine.overload.scheduled_module import WaitingBatch
from engine.overload.scheduler import Scheduler
from tests.overload.simulated import Plan, least_held, run_one, scheduler_of, sizes_held

BURST = dict.fromkeys(range(1, 8), (0,))
"""A batch at each instant from 1 to 7 (CIDR 2003, section 4.2)."""
PAPER: Plan = (1, 0.2, 0)
FLAT_FIRST: Plan = (1, 0.9, 0.2, 0)


@pytest.mark.parametrize(
    ("policy", "held"),
    [("fifo", [1, 1.2, 2, 2.2, 3, 3.2, 4]), ("chain", [1, 1.2, 1.4, 1.6, 1.8, 2, 2.2])],
)
def test_the_papers_example_is_met_and_queues_are_empty_at_15(policy: str, held: list[float]) -> None:
    found = sizes_held(policy, [PAPER], BURST, 15)
    assert found[:7] == pytest.approx(held)
    assert found[13] > 0
    assert found[14] == 0


@pytest.mark.parametrize("policy", ["fifo", "round-robin", "greedy"])
def test_others_fail_where_a_flat_module_stands_before_a_steep_one(policy: str) -> None:
    assert sizes_held(policy, [FLAT_FIRST], BURST, 7) == pytest.approx([1, 1.9, 2.2, 3, 3.9, 4.2, 5])


def test_chain_runs_a_flat_module_before_a_steep_one() -> None:
    assert sizes_held("chain", [FLAT_FIRST], BURST, 7) == pytest.approx([1, 1.9, 2.2, 3.1, 3.4, 4.3, 4.6])


@pytest.mark.parametrize("policy", SCHEDULING_POLICIES)
def test_all_policies_end_at_the_same_instant(policy: str) -> None:
    found = sizes_held(policy, [PAPER, FLAT_FIRST], dict.fromkeys(range(1, 5), (0, 1)), 22)
    assert found[19] > 0
    assert found[20] == 0


LEVELS = (0.0, 0.3, 0.7, 1.0)


def test_of_one_plan_chain_is_never_more_than_a_batch_above_the_optimum() -> None:
    plans = [(1.0, *(sizes), 0.0) for sizes in product(LEVELS[1:], repeat=2) if sizes[0] >= sizes[1]]
    plans += [(1.0, one, 0.0) for one in LEVELS[1:]]
    for plan in plans:
        for pattern in product((0, 1, 2), repeat=4):
            arrivals = {now: (0,) * count for now, count in enumerate(pattern, 1)}
            found = sizes_held("chain", [plan], arrivals, 9)
            least = least_held([plan], arrivals, 9)
            assert all(one <= best + 1 + 1e-9 for one, best in zip(found, least, strict=True)), (
                plan,
                pattern,
            )


def test_of_two_plans_chain_is_never_more_than_a_batch_a_plan_above_the_optimum() -> None:
    plans = [(1.0, 0.9, 0.2, 0.0), (1.0, 0.2, 0.0), (1.0, 0.7, 0.0)]
    for first, second in product(plans, repeat=2):
        for pattern in product(((), (0,), (1,), (0, 1)), repeat=4):
            arrivals = dict(enumerate(pattern, 1))
            found = sizes_held("chain", [first, second], arrivals, 8)
            least = least_held([first, second], arrivals, 8)
            assert all(one <= best + 2 + 1e-9 for one, best in zip(found, least, strict=True))


def test_a_batch_that_is_due_goes_before_the_steepest() -> None:
    plans: list[Plan] = [(1, 0.8, 0), (1, 0)]
    ends = {}
    for policy in ("chain", "chain-deadline"):
        scheduler = scheduler_of(policy, plans)
        scheduler.put("0.0", WaitingBatch(0, 1.0, 1, 0.0, deadline=6.0))
        now = 0
        while any(module.plan == "0" and module.queue for module in scheduler):
            scheduler.put("1.0", WaitingBatch(now + 1, 1.0, 1, now))
            run_one(scheduler, plans, now)
            now += 1
            if now == 20:
                break
        ends[policy] = now
    assert ends == {"chain": 20, "chain-deadline": 6}


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=12),
    st.sampled_from([3, 6, 10, 20]),
)
def test_with_one_latency_nothing_is_late_that_is_not_with_first_in_first_out(
    arrivals: list[list[int]], latency: int
) -> None:
    plans: list[Plan] = [(1, 0.5, 0), (1, 1, 0.25, 0), (1, 0)]
    longest = {policy: max(delays(policy, plans, arrivals, latency), default=0) for policy in LATE}
    assert longest["chain-deadline"] <= max(latency, longest["fifo"])
    event(f"chain is late: {longest['chain'] > latency >= longest['fifo']}")


LATE = ("fifo", "chain", "chain-deadline")


def delays(
    policy: str, plans: Sequence[Plan], arrivals: Sequence[Sequence[int]], latency: int
) -> list[float]:
    """Delay of each batch, from its arrival to its result. arrivals: by instant, plans that get a batch."""
    scheduler = scheduler_of(policy, plans)
    came: dict[int, int] = {}
    left: dict[int, int] = {}
    now = 0
    while now < len(arrivals) or scheduler.size:
        for plan in arrivals[now] if now < len(arrivals) else ():
            number = len(came)
            came[number] = now
            scheduler.put(f"{plan}.0", WaitingBatch(number, 1.0, 1, now, float(now + latency)))
        run_one(scheduler, plans, now)
        now += 1
        waiting = {batch.origin for module in scheduler for batch in module.queue}
        for number in came.keys() - left.keys() - waiting:
            left[number] = now
    return [left[number] - came[number] for number in came]


def test_weights_divide_the_time() -> None:
    plans: list[Plan] = [(1, 0), (1, 0)]
    scheduler = scheduler_of("weighted-fair", plans)
    scheduler.weigh("0.0", 3.0)
    for number in range(80):
        scheduler.put(f"{number % 2}.0", WaitingBatch(number, 1.0, 1, 0.0))
    for now in range(40):
        run_one(scheduler, plans, now)
    assert scheduler["0.0"].spent == 30
    assert scheduler["1.0"].spent == 10


def test_a_plan_that_had_nothing_to_do_gets_no_credit() -> None:
    plans: list[Plan] = [(1, 0), (1, 0)]
    scheduler = scheduler_of("weighted-fair", plans)
    for number in range(40):
        scheduler.put("0.0", WaitingBatch(number, 1.0, 1, 0.0))
    for now in range(20):
        run_one(scheduler, plans, now)
    for number in range(20):
        scheduler.put("1.0", WaitingBatch(40 + number, 1.0, 1, 20.0))
    for now in range(20, 30):
        run_one(scheduler, plans, now)
    assert scheduler["1.0"].spent == pytest.approx(5, abs=1)


def test_weights_of_0_or_nothing_are_refused() -> None:
    scheduler = Scheduler()
    for weight in (0.0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            scheduler.add("a", weight=weight)
