"""Tags of answers: who tells them, where they are shown, and that they come back with the query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.engine import Engine
from engine.model.approximation import Approximation, Expected
from engine.model.step import Alter, Position, Registration, Unregister
from engine.queries.approximations import Approximations, Teller
from engine.standing.query import StandingQuery
from tests.engine.feed import Feed, ticks
from tests.memory_state import MemoryState
from tests.queries.subscriptions_test import COUNTS, SLIDING, register, step

SAMPLE = Approximation("sample", "s", "declared", 10.0, "percent", 100.0, expected=Expected(fn=0.9))
SHED = Approximation("shed", "s", "dynamic", 7.0, "rows", None, Position(1, 4), contiguous=True)


def of_sliding(standing: StandingQuery) -> Iterator[Approximation]:
    """The queries whose text says 5 are sampled."""
    if "5 MILL" in standing.registration.sql:
        yield SAMPLE


def of_q(standing: StandingQuery) -> Iterator[Approximation]:
    """Rows of q were shed, and its sample is told once more."""
    if standing.query_id == "q":
        yield SAMPLE
        yield SHED


def told_by(*tellers: Teller) -> Feed:
    feed = Feed()
    feed.engine._approximations = Approximations(tellers)
    return feed


def test_an_answer_without_tags_is_exact() -> None:
    feed = Feed()
    feed.put(*ticks([10, 11]))
    register(feed, "q", SLIDING)
    answer = feed.answer("q")
    assert (answer.approximation, answer.approximate) == ((), False)
    assert feed.engine.view().query("q").approximation == ()
    assert [changes.approximation for result in feed.told for changes in result.changes] == [{}]


def test_answers_lists_and_changes_have_the_tags_of_all_tellers_each_once() -> None:
    feed = told_by(of_sliding, of_q)
    feed.put(*ticks([10, 11]))
    register(feed, "q", SLIDING)
    register(feed, "other", COUNTS)
    register(feed, "exact", SLIDING.replace("5 MILL", "6 MILL"))
    view = feed.engine.view()
    assert feed.answer("q").approximation == (SAMPLE, SHED)
    assert feed.answer("q").approximate
    assert feed.answer("other").approximation == (SAMPLE,)
    assert not feed.answer("exact").approximate
    found = {info.query_id: info.approximation for info in view.queries()}
    assert found == {"q": (SAMPLE, SHED), "other": (SAMPLE,), "exact": ()}
    result = feed.put((12, "b", 12.0))
    told = {
        query_id: changes.approximation.get(query_id, ())
        for changes in result.changes
        for query_id in changes.query_ids
    }
    assert told == found
    assert [
        changes.approximation["q"]
        for result in feed.told
        for changes in result.changes
        if changes.query_ids == ("q",) and changes.occasion == "snapshot"
    ] == [(SAMPLE, SHED)]


def test_a_view_of_before_keeps_its_tags() -> None:
    feed = told_by(of_sliding)
    feed.put(*ticks([10, 11]))
    register(feed, "q", SLIDING)
    before = feed.engine.view()
    step(feed, Alter((Registration("q", SLIDING.replace("5 MILL", "6 MILL")),)))
    after = feed.engine.view()
    step(feed, Alter((Registration("q", SLIDING),)))
    assert [view.snapshot("q").approximation for view in (before, after)] == [(SAMPLE,), ()]
    assert feed.answer("q").approximation == (SAMPLE,)
    step(feed, Unregister(("q",)))
    register(feed, "q", SLIDING.replace("5 MILL", "6 MILL"))
    assert feed.answer("q").approximation == ()
    assert before.snapshot("q").approximate


def test_only_other_tags_are_news() -> None:
    feed = Feed()
    register(feed, "q", SLIDING)
    standing = feed.engine._queries["q"]
    amounts = [10.0]
    tags = Approximations(
        [lambda _: (Approximation("sample", "s", "dynamic", amount, "percent") for amount in amounts)]
    )
    assert [tags.look(standing), tags.look(standing)] == [True, False]
    shown = tags.shown()
    amounts[:] = [5.0]
    assert tags.look(standing)
    assert [tag.amount for tag in shown["q"]] == [10.0]
    assert [tag.amount for tag in tags.shown()["q"]] == [5.0]
    amounts.clear()
    assert [tags.look(standing), tags.look(standing)] == [True, False]
    assert not tags.shown()


def test_tags_come_back_from_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = told_by(of_sliding)
    feed.put(*ticks([10, 11]))
    register(feed, "q", SLIDING)
    store = MemoryState()
    feed.engine.save(store)
    monkeypatch.setattr("engine.engine.Approximations", lambda _: Approximations((of_sliding,)))
    assert Engine.restore(store).view().snapshot("q").approximation == (SAMPLE,)
