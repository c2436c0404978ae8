"""The estimated order of a join: the cheapest of all, by the estimate."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.joins.estimated_order import JoinSizes, estimated_order
from engine.joins.shape import JoinEdge


def edge(left: int, right: int) -> JoinEdge:
    return JoinEdge(left, right, (), ())


@st.composite
def sizes(draw: st.DrawFn) -> JoinSizes:
    n = draw(st.integers(2, 5))
    rows = draw(st.lists(st.integers(0, 1_000), min_size=n, max_size=n))
    pairs = {(draw(st.integers(0, place - 1)), place) for place in range(1, n)}
    pairs |= draw(st.sets(st.sampled_from([(a, b) for b in range(n) for a in range(b)])))
    edges = [edge(*pair) for pair in sorted(pairs)]
    unlike = [(draw(st.integers(0, rows[one.left])), draw(st.integers(0, rows[one.right]))) for one in edges]
    return JoinSizes(rows, edges, unlike)


def cost(sizes: JoinSizes, order: tuple[int, ...]) -> float | None:
    """What an order costs, by definition; None where there is no edge to one of its inputs."""
    total, inputs = 0.0, 1 << order[0]
    for place in order[1:]:
        numbers = [
            number
            for number, one in enumerate(sizes.edges)
            if place in (one.left, one.right) and inputs >> one.other(place) & 1
        ]
        if not numbers:
            return None
        found = min(sizes.fan_out(number, place) for number in numbers)
        total += sizes.among(inputs) * (1 + found)
        inputs |= 1 << place
    return total


@given(sizes(), st.data())
def test_it_is_the_cheapest(sizes: JoinSizes, data: Any) -> None:
    n = len(sizes.rows)
    driver = data.draw(st.integers(0, n - 1))
    steps = estimated_order(sizes, driver)
    places = (driver, *(step.place for step in steps))
    assert sorted(places) == list(range(n))
    for at, step in enumerate(steps):
        before = set(places[: at + 1])
        joined = {
            number
            for number, one in enumerate(sizes.edges)
            if step.place in (one.left, one.right) and one.other(step.place) in before
        }
        assert set(step.edges) == joined
        fans = [sizes.fan_out(number, step.place) for number in step.edges]
        assert fans == sorted(fans)
    costs = [cost(sizes, order) for order in permutations(range(n)) if order[0] == driver]
    assert cost(sizes, places) == pytest.approx(min(one for one in costs if one is not None))


def test_a_way_through_few_keys_is_not_taken() -> None:
    """Suppliers and customers meet by 25 nations too: nearly all pairs of them."""
    nation, supplier, customer, orders, items = range(5)
    edges = [
        edge(nation, supplier), edge(supplier, customer), edge(customer, orders), edge(supplier, items),
        edge(orders, items),
    ]  # fmt: skip
    unlike = [(25, 25), (25, 25), (15_000, 10_000), (1_000, 1_000), (150_000, 150_000)]
    sizes = JoinSizes((25, 1_000, 15_000, 150_000, 600_000), edges, unlike)
    assert [step.place for step in estimated_order(sizes, nation)] == [supplier, items, orders, customer]
