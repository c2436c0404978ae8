"""What policies choose, given what visits did."""

from __future__ import annotations

import numpy as np
import pytest

from engine.eddy.choices import POLICIES
from engine.eddy.policies import FixedOrder, Random, RoutingPolicy, Tickets, Visit
from tests.eddy.policies import Stop


class Stream:
    """Rows of 1,000 a batch through modules that let through a share each, independently; cost a row each."""

    def __init__(
        self, policy: RoutingPolicy, passes: dict[str, float], queries: dict[str, int] | None = None
    ) -> None:
        self.policy = policy
        self.passes = passes
        self.cost = dict.fromkeys(passes, 1.0)
        self.stops = [Stop(name, (queries or {}).get(name, 1)) for name in passes]

    def batch(self) -> list[str]:
        """The order taken."""
        self.policy.begin()
        ready, order, rows = list(self.stops), [], 1_000.0
        while ready:
            stop = self.policy.choose(ready)
            ready.remove(stop)
            passed = rows * self.passes[stop.name]
            ended = (rows - passed) * stop.queries
            self.policy.observe(
                stop, Visit(round(rows), round(passed), round(ended), rows * self.cost[stop.name])
            )
            order.append(stop.name)
            rows = passed
        return order

    def firsts(self, batches: int) -> dict[str, int]:
        """How often each came first."""
        firsts = [self.batch()[0] for _ in range(batches)]
        return {stop.name: firsts.count(stop.name) for stop in self.stops}


@pytest.mark.parametrize("policy", ["tickets", "optimal"])
def test_the_killer_comes_first(policy):
    stream = Stream(POLICIES[policy](), {"a": 0.9, "b": 0.1, "c": 0.6})
    stream.firsts(20)
    assert stream.firsts(100)["b"] >= 90


@pytest.mark.parametrize("policy", ["tickets", "optimal"])
def test_of_two_alike_the_cheap_comes_first(policy):
    stream = Stream(POLICIES[policy](), {"slow": 0.5, "quick": 0.5})
    stream.cost["slow"] = 50.0
    stream.firsts(20)
    assert stream.firsts(100)["quick"] >= 95


@pytest.mark.parametrize("policy", ["tickets", "optimal"])
def test_of_two_that_end_nothing_the_cheap_comes_first(policy):
    """Back-pressure."""
    stream = Stream(POLICIES[policy](), {"slow": 1.0, "quick": 1.0})
    stream.cost["slow"] = 20.0
    stream.firsts(40)
    assert stream.firsts(100)["quick"] >= 60


def test_a_visit_is_worth_the_queries_it_ends():
    stream = Stream(Tickets(), {"few": 0.3, "many": 0.4}, {"few": 1, "many": 20})
    stream.firsts(20)
    assert stream.firsts(100)["many"] >= 95


@pytest.mark.parametrize("policy", ["tickets", "optimal"])
def test_drift_is_followed_within_tens_of_batches(policy):
    stream = Stream(POLICIES[policy](), {"a": 0.1, "b": 0.9, "c": 0.9})
    stream.firsts(300)
    stream.passes.update(a=0.95, c=0.1)
    stream.firsts(40)
    assert stream.firsts(50)["c"] >= 45


def test_what_was_not_needed_for_long_is_tried_again():
    """All rows end at a, which is dear: whether c would do as well is found out."""
    stream = Stream(Tickets(), {"a": 0.3, "c": 1.0})
    stream.cost["a"] = 10.0
    stream.firsts(50)
    stream.passes["a"] = 0.0
    assert stream.firsts(50)["a"] >= 40
    stream.passes["c"] = 0.0
    assert stream.firsts(300)["c"] >= 200


@pytest.mark.parametrize("policy", ["tickets", "optimal"])
def test_a_join_that_lets_out_more_than_went_in_comes_late(policy):
    """However cheap it is."""
    stream = Stream(POLICIES[policy](), {"fans out": 30.0, "more": 90.0, "passes": 1.0, "ends": 0.9})
    stream.cost["passes"] = stream.cost["ends"] = 1_000.0
    stream.firsts(20)
    orders = [stream.batch() for _ in range(50)]
    assert all(order[2:] == ["fans out", "more"] for order in orders)
    assert orders.count(["ends", "passes", "fans out", "more"]) >= 45


def test_random_takes_all_alike():
    firsts = Stream(Random(), dict.fromkeys("abcd", 0.5)).firsts(2_000)
    assert all(400 < times < 600 for times in firsts.values())


def test_fixed_takes_the_order_given_then_that_of_registration():
    passes = dict.fromkeys("abcd", 0.5)
    assert Stream(FixedOrder(), passes).batch() == list("abcd")
    assert Stream(FixedOrder(["c", "b"]), passes).batch() == list("cbad")


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_visits_lead_to_the_same_routes(policy):
    passes = {"a": 0.5, "b": 0.4, "c": 0.45, "d": 0.6}
    first, second = (Stream(POLICIES[policy](), passes) for _ in range(2))
    assert [first.batch() for _ in range(60)] == [second.batch() for _ in range(60)]


def test_seeds_differ():
    passes = dict.fromkeys("abcd", 0.5)
    routes = {tuple(Stream(Tickets(seed), passes).batch()) for seed in range(20)}
    assert len(routes) > 3


@pytest.mark.parametrize("policy", POLICIES)
def test_a_module_that_went_and_came_again_is_new(policy):
    stream = Stream(POLICIES[policy](), {"a": 0.1, "b": 0.9})
    stop = stream.stops[0]
    unknown = stream.policy.tickets(stop)
    stream.firsts(30)
    for each in stream.stops:
        stream.policy.forget(each.name)
    assert stream.policy.tickets(stop) == unknown


@pytest.mark.parametrize("policy", POLICIES)
def test_tickets_are_numbers_whatever_visits_did(policy):
    held = POLICIES[policy]()
    stop = Stop("a", 0)
    for visit in (Visit(0, 0, 0, 0.0), Visit(5, 500, 0, 0.0), Visit(1, 0, 10**9, 1e12)):
        held.begin()
        held.observe(stop, visit)
        assert np.isfinite(held.tickets(stop))
        assert held.choose([stop, Stop("b")]).name in "ab"
