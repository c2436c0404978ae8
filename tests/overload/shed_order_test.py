"""Sources shed in the order of what is lost for the time that is won, as much as it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overload.shed_order import STEP, TARGET, QueueLook, ShedOrder


def looks(*queued: int, load: float = 0.1) -> list[QueueLook]:
    """a: of weight 3, b: of weight 1, c: of queries that see all."""
    weights = (3.0, 1.0, None)
    return [
        QueueLook(name, size, load, weight) for name, size, weight in zip("abc", queued, weights, strict=True)
    ]


def test_cheapest_source_sheds_whoever_is_full() -> None:
    order = ShedOrder(1_000)
    assert order.look(looks(0, 0, 799), 0.0) == {}
    assert order.look(looks(0, 0, 800), 0.1) == {"b": 1.0}


def test_the_last_that_sheds_sheds_as_much_as_it_takes() -> None:
    shares = ShedOrder(1_000).look(looks(900, 0, 0, load=0.7), 0.0)
    assert shares == {"b": 1.0, "a": pytest.approx((1.4 - TARGET) / 0.7)}


def test_time_that_is_won_counts_against_the_weight() -> None:
    slow, quick = QueueLook("slow", 900, 2.0, weight=2.0), QueueLook("quick", 0, 0.1, weight=1.0)
    assert set(ShedOrder(1_000).look([slow, quick], 0.0)) == {"slow"}
    read_all_the_same = QueueLook("slow", 900, 2.0, weight=2.0, won=0.01)
    assert next(iter(ShedOrder(1_000).look([read_all_the_same, quick], 0.0))) == "quick"


def test_less_load_is_left_every_five_seconds_while_a_queue_is_full() -> None:
    order = ShedOrder(1_000)
    first = order.look(looks(900, 0, 0, load=0.7), 0.0)
    assert order.look(looks(900, 0, 0, load=0.9), 4.9) == first
    then = order.look(looks(900, 0, 0, load=0.7), 5.0)
    assert then["a"] == pytest.approx(first["a"] + STEP / 0.7)
    assert order.look(looks(799, 0, 0, load=0.7), 20.0) == then


def test_nothing_changes_between_half_and_80_percent_and_none_sheds_below() -> None:
    order = ShedOrder(1_000)
    order.look(looks(900, 0, 0), 0.0)
    assert order.look(looks(700, 0, 0), 9.0) == {"b": 1.0}
    assert order.look(looks(499, 0, 0), 9.1) == {}
    assert order.look(looks(1_000, 0, 0), 14.0) == {}
    assert order.look(looks(1_000, 0, 0), 14.1) == {"b": 1.0}


def test_sources_whose_queries_see_all_never_shed() -> None:
    seen = [QueueLook(name, 5_000, 2.0) for name in "abc"]
    assert ShedOrder(1_000).look(seen, 0.0) == {}


LOOKS = st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 9), st.floats(0.1, 1)), min_size=1, max_size=6)


@given(drawn=LOOKS)
def test_enough_is_shed_and_no_source_is_spared_for_a_dearer_one(
    drawn: list[tuple[float, float, float]],
) -> None:
    seen = [QueueLook(str(at), 1_000, load, weight, share) for at, (load, weight, share) in enumerate(drawn)]
    shares = ShedOrder(1_000).look(seen, 0.0)
    assert all(0 < shares[one.name] <= one.share for one in seen if one.name in shares)
    left = sum(one.load * (1 - shares.get(one.name, 0.0)) for one in seen)
    whole = {one.name for one in seen if shares.get(one.name) == one.share}
    assert left <= TARGET + 1e-9 or len(whole) == len(seen)
    price = {one.name: (one.weight or 0) / max(one.load, 1e-9) for one in seen}
    for one in seen:
        if one.name not in whole:
            assert all(price[other] <= price[one.name] for other in shares)
