"""Sources shed in the order of what is lost for the time that is won, as many as it takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.overload.shed_order import QueueLook, ShedOrder


def looks(*queued: int, load: float = 0.1) -> list[QueueLook]:
    """a: of weight 3, b: of weight 1, c: of queries that see all."""
    weights = (3.0, 1.0, None)
    return [
        QueueLook(name, size, load, weight) for name, size, weight in zip("abc", queued, weights, strict=True)
    ]


def test_cheapest_source_sheds_first_whoever_is_full() -> None:
    order = ShedOrder(1_000)
    assert order.look(looks(0, 0, 799), 0.0) == frozenset()
    assert order.look(looks(0, 0, 800), 0.1) == {"b"}


def test_as_many_shed_at_once_as_the_load_takes() -> None:
    order = ShedOrder(1_000)
    assert order.look(looks(900, 0, 0, load=0.7), 0.0) == {"a", "b"}


def test_time_that_is_won_counts_against_the_weight() -> None:
    seen = [QueueLook("slow", 900, 2.0, weight=2.0), QueueLook("quick", 0, 0.1, weight=1.0)]
    assert ShedOrder(1_000).look(seen, 0.0) == {"slow"}


def test_one_more_sheds_every_five_seconds_while_a_queue_is_full() -> None:
    order = ShedOrder(1_000)
    order.look(looks(900, 0, 0), 0.0)
    assert order.look(looks(900, 0, 0), 4.9) == {"b"}
    assert order.look(looks(900, 0, 0), 5.0) == {"a", "b"}
    assert order.look(looks(900, 0, 0), 20.0) == {"a", "b"}


def test_no_more_join_between_half_and_80_percent_and_none_sheds_below() -> None:
    order = ShedOrder(1_000)
    order.look(looks(900, 0, 0), 0.0)
    assert order.look(looks(700, 0, 0), 9.0) == {"b"}
    assert order.look(looks(499, 0, 0), 9.1) == frozenset()
    assert order.look(looks(1_000, 0, 0), 14.0) == frozenset()
    assert order.look(looks(1_000, 0, 0), 14.1) == {"b"}


def test_sources_whose_queries_see_all_never_shed() -> None:
    seen = [QueueLook(name, 5_000, 2.0) for name in "abc"]
    assert ShedOrder(1_000).look(seen, 0.0) == frozenset()


LOOKS = st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 9)), min_size=1, max_size=6)


@given(drawn=LOOKS)
def test_what_sheds_is_enough_and_no_source_of_it_is_spared_for_a_dearer_one(
    drawn: list[tuple[float, float]],
) -> None:
    seen = [QueueLook(str(at), 1_000, load, weight) for at, (load, weight) in enumerate(drawn)]
    shed = ShedOrder(1_000).look(seen, 0.0)
    left = sum(one.load for one in seen if one.name not in shed)
    assert left <= 1 + 1e-9
    prices = {one.name: (one.weight or 0) / max(one.load, 1e-9) for one in seen}
    spared = [price for name, price in prices.items() if name not in shed]
    assert all(prices[name] <= min(spared, default=float("inf")) for name in shed)
