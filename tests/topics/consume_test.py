"""What is taken of a consumer at once: what is there, what comes with it, and what the next fetch brings."""

from __future__ import annotations

from typing import Any

import pytest

from topics.clients import consume


class Arriving:
    """In the place of a consumer: has what came until an instant, and passes the time that is waited."""

    def __init__(self, *came: tuple[float, str]) -> None:
        """came: the instant at which each message came, in s, in order."""
        self.now_s = 0.0
        self._came = list(came)

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        until_s, taken = self.now_s + timeout_s, list[str]()
        while self._came and self._came[0][0] <= until_s and len(taken) < count:
            at_s, message = self._came.pop(0)
            self.now_s = max(self.now_s, at_s)
            taken.append(message)
        if len(taken) < count:
            self.now_s = until_s
        return taken


def taken(consumer: Arriving, count: int = 100, rest_s: float = 0.0) -> list[Any]:
    return consume(consumer, count, 1.0, 0.002, rest_s)  # type: ignore[arg-type]


FETCHES = (0.5, "a"), (0.501, "b"), (0.521, "c"), (0.522, "d"), (0.541, "e")


def test_what_arrives_with_the_first_comes_with_it() -> None:
    consumer = Arriving(*FETCHES)
    assert taken(consumer) == ["a", "b"]
    assert consumer.now_s == pytest.approx(0.502)


def test_what_the_next_fetch_brings_is_waited_for_where_that_is_wanted() -> None:
    consumer = Arriving(*FETCHES)
    assert taken(consumer, rest_s=0.03) == ["a", "b", "c", "d"]
    assert consumer.now_s == pytest.approx(0.523)
    assert taken(consumer, rest_s=0.03) == ["e"]
    assert consumer.now_s == pytest.approx(0.541 + 0.002 + 0.03)
    assert taken(consumer, rest_s=0.03) == []


@pytest.mark.parametrize(("count", "found"), [(1, "a"), (2, "ab"), (3, "abc"), (4, "abcd"), (5, "abcd")])
def test_no_more_is_taken_than_was_asked_for(count: int, found: str) -> None:
    assert taken(Arriving(*FETCHES), count, 0.03) == list(found)


def test_what_is_there_waits_for_nothing() -> None:
    consumer = Arriving((0.0, "a"), (0.01, "b"))
    assert taken(consumer, rest_s=0.03) == ["a"]
    assert consumer.now_s == 0.0
