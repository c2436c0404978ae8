"""Plans of modules in rows whose work is counted and not done: time goes by what they are said to take."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import cache

from engine.overload.progress_chart import points_of
from engine.overload.scheduled_module import WaitingBatch
from engine.overload.scheduler import Scheduler

Plan = Sequence[float]
"""Sizes of a batch after 0, 1, 2 ... modules, first 1 and last 0; a module takes a unit of time."""


State = tuple[tuple[int, ...], ...]
"""By plan: how many batches stand at each module."""


def scheduler_of(policy: str, plans: Sequence[Plan]) -> Scheduler:
    """Module m of plan p is ``p.m``; its estimates are exact from the beginning."""
    scheduler = Scheduler(policy)
    for number, sizes in enumerate(plans):
        for place in range(len(sizes) - 2, -1, -1):
            size = sizes[place]
            last = place == len(sizes) - 2
            outputs = {} if last else {f"{number}.{place + 1}": sizes[place + 1] / size if size else 0.0}
            cost = 1 / size if size else 1.0
            scheduler.add(f"{number}.{place}", outputs, plan=str(number), cost=cost)
    return scheduler


def sizes_held(
    policy: str, plans: Sequence[Plan], arrivals: Mapping[int, Sequence[int]], until: int
) -> list[float]:
    """What waits at instants 1 to ``until``, after what arrives then; arrivals: by instant, plans that get a
    batch.
    """
    scheduler = scheduler_of(policy, plans)
    held, origin = [], 0
    for now in range(1, until + 1):
        for plan in arrivals.get(now, ()):
            scheduler.put(f"{plan}.0", WaitingBatch(origin, 1.0, 1, now))
            origin += 1
        held.append(round(sum(module.size for module in scheduler), 9))
        run_one(scheduler, plans, now)
        scheduler._check()
    return held


def run_one(scheduler: Scheduler, plans: Sequence[Plan], now: float) -> None:
    """Run what the policy chooses; it takes a unit of time."""
    module = scheduler.choose(now)
    if module is None:
        return
    batch = scheduler.take(module)
    number, place = map(int, module.name.split("."))
    size = plans[number][place + 1]
    consumer = f"{number}.{place + 1}"
    scheduler.done(module, batch.size, 1.0, {consumer: size} if consumer in scheduler else {})
    if consumer in scheduler:
        scheduler.put(consumer, WaitingBatch(batch.origin, size, batch.rows, now + 1, batch.deadline))


def least_held(plans: Sequence[Plan], arrivals: Mapping[int, Sequence[int]], until: int) -> list[float]:
    """What a scheduler that knows the future holds at least at each instant, of all ways to spend the time.

    Each instant has its own best way. A state is how many batches of each plan stand at each module.
    """

    @cache
    def held(state: State) -> float:
        return sum(
            count * plans[plan][place]
            for plan, counts in enumerate(state)
            for place, count in enumerate(counts)
        )

    states: set[State] = {tuple((0,) * (len(sizes) - 1) for sizes in plans)}
    least = []
    for now in range(1, until + 1):
        for plan in arrivals.get(now, ()):
            states = {
                tuple(
                    (counts[0] + 1, *counts[1:]) if number == plan else counts
                    for number, counts in enumerate(state)
                )
                for state in states
            }
        least.append(min(map(held, states)))
        after: set[State] = set()
        for state in states:
            after.add(state)
            for number, counts in enumerate(state):
                for place, count in enumerate(counts):
                    if count:
                        moved = list(counts)
                        moved[place] -= 1
                        if place + 1 < len(moved):
                            moved[place + 1] += 1
                        after.add((*state[:number], tuple(moved), *state[number + 1 :]))
        states = after
    return least


def chart(sizes: Plan) -> list[tuple[float, float]]:
    """(time spent, size left) of a plan."""
    modules = [(1.0, after / before if before else 0.0) for before, after in itertools.pairwise(sizes)]
    return [(point.spent, point.left) for point in points_of(modules)]
