"""Counts that are asked again and again are what a SELECT of the same rows gives, whatever came between."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.views.view import View
from tests.engine.feed import Feed
from tests.sources.backfill import history, maintained
from tureen.errors import UnknownQuery

FEW = settings(max_examples=max(20, settings.default.max_examples))
WINDOWS = (
    ("", ""),
    ("[RANGE 40 MILLISECONDS]", ""),
    ("[RANGE 300 MILLISECONDS SLIDE 50 MILLISECONDS]", ""),
    ("[ROWS 11]", ""),
    ("[NOW]", ""),
    ("[UNBOUNDED]", ""),
    ("", "BEGIN NOW - 90 END NOW - 30"),
)
"""Clauses before WHERE and behind it."""
MODES = ("lazy", "none", "eager")


def register(feed: Feed, number: int, where: str, mode: str) -> None:
    for place, (before, behind) in enumerate(WINDOWS):
        rows = f"FROM s {before} {where} {behind}"
        maintained(feed.engine, f"n{number}.{place}", f"SELECT COUNT(*) AS n {rows}", mode)
        maintained(feed.engine, f"q{number}.{place}", f"SELECT v {rows}", "lazy")


def agree(view: View, number: int) -> None:
    for place in range(len(WINDOWS)):
        counted, rows = view.snapshot(f"n{number}.{place}"), view.snapshot(f"q{number}.{place}")
        assert counted.table.to_pylist() == [{"n": rows.table.num_rows}]
        assert (counted.now_ms, counted.complete_from_ms) == (rows.now_ms, rows.complete_from_ms)


@FEW
@given(data=st.data())
def test_counts_are_those_of_the_rows(data: st.DataObject) -> None:
    draw = data.draw
    feed = Feed(retain=draw(st.sampled_from(["60 MILLISECONDS", "10 SECONDS"])))
    standing: list[int] = []
    came, stamp, views = 0, 0, []
    for _ in range(draw(st.integers(2, 14))):
        match draw(st.sampled_from(["rows", "rows", "rows", "query", "replace", "time", "history", "drop"])):
            case "rows":
                steps = draw(st.lists(st.integers(0, 25), min_size=1, max_size=20))
                stamps = [stamp := stamp + step for step in steps]
                values = draw(st.lists(st.integers(0, 9), min_size=len(stamps), max_size=len(stamps)))
                feed.put(*((at, "k", float(value)) for at, value in zip(stamps, values, strict=True)))
            case "time" if stamp:
                feed.now(max(stamp, feed.now_ms()) + draw(st.integers(0, 60)))
                stamp = feed.now_ms()
            case "query":
                above = draw(st.sampled_from(["", "WHERE v > 2", "WHERE v > 5", "WHERE k = 'other'"]))
                register(feed, came, above, draw(st.sampled_from(MODES)))
                standing.append(came)
                came += 1
            case "replace" if standing:  # the slots of the one go to the other
                for kind in "nq":
                    for place in range(len(WINDOWS)):
                        feed.engine.unregister(f"{kind}{standing[-1]}.{place}")
                register(feed, standing[-1], "WHERE v <= 4", "lazy")
            case "drop" if standing:
                gone = standing.pop(0)
                for kind in "nq":
                    for place in range(len(WINDOWS)):
                        feed.engine.unregister(f"{kind}{gone}.{place}")
            case "history" if stamp and (boundary_ms := feed.engine.view().boundary_ms("s")) is not None:
                back_ms = draw(st.integers(1, 40))
                rows = [(boundary_ms - back_ms + n, "h", float(n)) for n in range(min(back_ms, 9))]
                feed.engine.backfill("s", history(feed.engine, *rows), boundary_ms - back_ms)
        feed.engine._check()
        view = feed.engine.view()
        for number in standing:
            if draw(st.booleans()):
                agree(view, number)
        views.append((view, tuple(standing)))
        earlier, stood = views[draw(st.integers(0, len(views) - 1))]
        for number in stood:
            try:
                agree(earlier, number)
            except UnknownQuery:  # it has gone, and its slot with it
                assert earlier is not view
    for number in standing:
        agree(feed.engine.view(), number)


def test_rows_that_history_replaced_are_counted_anew() -> None:
    feed = Feed("SELECT COUNT(*) FROM s [ROWS 11] WHERE v > 2", retain="60 MILLISECONDS")
    feed.put(*((at, "k", 1.0) for at in range(0, 201, 10)))
    feed.now(200)
    assert feed.values() == [0]
    assert feed.engine.view().boundary_ms("s") == 140
    feed.engine.backfill("s", history(feed.engine, *((at, "h", 9.0) for at in range(100, 140, 10))), 100)
    assert feed.values() == [4]


def test_rows_that_went_with_their_segment_are_not_taken_off_a_count() -> None:
    feed = Feed("SELECT COUNT(*) FROM s WHERE v > 2", retain="100 MILLISECONDS")
    for begin in range(0, 1_000, 50):
        feed.put(*((at, "k", float(at % 7)) for at in range(begin, begin + 50)))
        if begin >= 200:
            wanted = sum(at % 7 > 2 for at in range(feed.now_ms() - 100, feed.now_ms() + 1))
            assert feed.values() == [wanted]
