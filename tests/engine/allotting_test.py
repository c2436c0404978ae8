"""Queries that are given less, where something refuses: what stands, and what is told."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from engine.model.allotment import NOTHING_LESS, Allotment, ScanAllotment
from engine.model.limits import Limits
from engine.model.step import Allocate, Register, Registration, StepResult
from tests.engine.feed import Feed, ticks
from tests.queries.subscriptions import SLIDING, folded, register, spelled, step
from tureen.errors import AllotmentRefused, LimitExceeded, UnknownQuery

WIDE = SLIDING.replace("5 MILL", "500 MILL")
NARROW = Allotment((ScanAllotment(window_ms=5),))


def tight() -> Feed:
    """A followed query with a window of 500 ms, given 5; its whole answer is too large to be told."""
    feed = Feed()
    feed.engine._parts.settings.limits = feed.engine._following.answers._limits = Limits(changes_max=3)
    register(feed, "q", WIDE, max_fn="1")
    allocate(feed, "q", Allotment((ScanAllotment(window_ms=5),)))
    feed.put(*ticks([10, 20, 30, 40]))
    feed.put(*ticks([50, 60, 70, 80]))
    return feed


def allocate(feed: Feed, query_id: str, allotment: Allotment) -> StepResult:
    return step(feed, Allocate(((query_id, allotment),)))


def test_an_answer_too_large_to_tell_leaves_the_query_as_it_was() -> None:
    feed = tight()
    result = allocate(feed, "q", NOTHING_LESS)
    assert isinstance(result.failed["q"], LimitExceeded)
    assert not result.broken
    feed.put(*ticks([90, 100]))
    assert folded(spelled(feed.told), "q") == Counter(feed.rows("q"))
    assert [tag.amount for tag in feed.engine.view().snapshot("q").approximation] == [5]
    feed.engine._check()


def test_a_query_that_may_not_be_given_less_any_more_and_cannot_be_told_all_is_told_of_no_more() -> None:
    feed = tight()
    result = step(feed, Register((Registration("q", WIDE),)))
    assert isinstance(result.broken["q"], LimitExceeded)
    assert not result.failed
    feed.engine._check()


@pytest.mark.parametrize(
    ("query_id", "allotment", "error"),
    [
        ("nobody", NARROW, UnknownQuery),
        ("exact", NARROW, AllotmentRefused),
        ("q", Allotment(()), None),
        ("q", Allotment((ScanAllotment(window_ms=5), ScanAllotment(window_ms=5))), AllotmentRefused),
        ("q", Allotment((ScanAllotment(window_ms=500),)), AllotmentRefused),
        ("q", Allotment((ScanAllotment(window_ms=0),)), AllotmentRefused),
        ("q", Allotment((ScanAllotment(window_ms=-3),)), AllotmentRefused),
        ("q", Allotment((ScanAllotment(percent=Decimal(0)),)), AllotmentRefused),
        ("q", Allotment((ScanAllotment(percent=Decimal(101)),)), AllotmentRefused),
        ("q", Allotment((ScanAllotment(percent=Decimal("NaN")),)), AllotmentRefused),
        ("q", NARROW, None),
    ],
)
def test_what_is_not_tolerated_is_refused_and_changes_nothing(
    query_id: str, allotment: Allotment, error: type[Exception] | None
) -> None:
    feed = Feed()
    register(feed, "q", WIDE, max_fn="1")
    register(feed, "exact", WIDE)
    result = allocate(feed, query_id, allotment)
    assert {name: type(one) for name, one in result.failed.items()} == ({query_id: error} if error else {})
    given_less = bool(feed.engine.view().approximation("q"))
    assert given_less == (error is None and bool(allotment))
