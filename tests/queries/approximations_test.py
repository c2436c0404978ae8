"""Tags of answers: who tells them, where they are shown, and that they come back with the query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.model.approximation import Approximation, Expected
from engine.model.step import Alter, Position, Registration, Unregister
from engine.queries.approximations import Approximations, Teller
from engine.standing.query import StandingQuery
from tests.capacities import small_restored
from tests.engine.feed import Feed, ticks
from tests.memory_state import MemoryState
from tests.queries.subscriptions import COUNTS, SLIDING, register, step

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
    feed.engine._parts.tags.approximations = Approximations(tellers)
    return feed


SAMPLED = "SELECT k, v FROM s SAMPLE(10) [RANGE 5 MILLISECONDS]"


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        (SAMPLED, [(10.0, 0.9)]),
        (SAMPLED.replace("SAMPLE(10)", "sample (0.5)") + " WHERE v > 1 AND k = 'SAMPLE'", [(0.5, 0.995)]),
        (SAMPLED.replace("10", "100"), []),
        (SLIDING.replace("k, v", "k, 'sample' AS v"), []),
        (SAMPLED.replace("RANGE 5 MILLISECONDS", "ROWS 5"), [(10.0, None)]),
        ("SELECT COUNT(*) AS n FROM s SAMPLE(10)", [(10.0, None)]),
        ("SELECT k FROM sampled_below", [(25.0, 0.75)]),
        (f"SELECT k FROM plain UNION ALL SELECT k FROM ({SAMPLED}) t", [(10.0, None)]),
        (
            "SELECT a.v FROM s SAMPLE(10) [RANGE 5 MILLISECONDS] a JOIN sampled_below b ON a.k = b.k",
            [(10.0, None), (25.0, None)],
        ),
    ],
)
def test_samples_that_the_text_and_its_views_declare(
    sql: str, told: list[tuple[float, float | None]]
) -> None:
    feed = Feed()
    feed.engine.create("CREATE VIEW plain AS SELECT k, v FROM s [RANGE 9 MILLISECONDS]")
    feed.engine.create("CREATE VIEW sampled_below AS SELECT k, v FROM s SAMPLE(25) [RANGE 9 MILLISECONDS]")
    register(feed, "q", sql)
    tags = feed.answer("q").approximation
    assert [(tag.amount, tag.expected.fn and round(tag.expected.fn, 9)) for tag in tags] == told
    assert {(tag.kind, tag.where, tag.origin, tag.unit, tag.asked) for tag in tags} <= {
        ("sample", "s", "declared", "percent", 100.0)
    }
    store = MemoryState()
    feed.engine.save(store)
    assert small_restored(store).view().snapshot("q").approximation == tags


def test_texts_of_one_shape_have_each_their_own_sample() -> None:
    feed = Feed()
    for percent in (10, 20, 30, 40):
        register(feed, f"q{percent}", SAMPLED.replace("10", str(percent)))
    amounts = {
        info.query_id: [tag.amount for tag in info.approximation] for info in feed.engine.view().queries()
    }
    assert amounts == {f"q{percent}": [float(percent)] for percent in (10, 20, 30, 40)}
    step(feed, Alter((Registration("q10", SAMPLED.replace("10", "11")),)))
    assert [tag.amount for tag in feed.answer("q10").approximation] == [11.0]


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
    monkeypatch.setattr("engine.tags.Approximations", lambda _: Approximations((of_sliding,)))
    assert small_restored(store).view().snapshot("q").approximation == (SAMPLE,)
