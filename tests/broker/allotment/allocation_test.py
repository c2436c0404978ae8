"""The allocation problem of queries that stand, and what its solutions give them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from broker.allotment.allocation import Shares, commands_of, of_shard, together
from engine.model.allotment import Allotment, ScanAllotment
from engine.model.step import Allocate
from engine.overload.precision.allocation import solve
from engine.overload.precision.problem import Allocation
from engine.queries.allocating import EngineProblem
from tests.engine.feed import Feed, ticks
from tests.queries.subscriptions import register, step

JOIN = "SELECT a.k, b.v FROM s [RANGE {}] a JOIN s [RANGE {}] b ON a.k = b.k"
WIDE = "SELECT k, v FROM s [RANGE 1000 MILLISECONDS DOWN TO 100 MILLISECONDS]"


def fed(retain: str = "1 MILLISECOND", /, **queries: str) -> Feed:
    """queries: by id, each with its options behind a bar."""
    feed = Feed(retain=retain)
    for query_id, text in queries.items():
        sql, *options = text.split(" | ")
        register(feed, query_id, sql, **dict(one.split("=") for one in options))
    feed.put(*ticks(list(range(1, 2_001, 4))))
    return feed


def problem(feed: Feed) -> EngineProblem:
    found = feed.engine.allocation_problem()
    assert found is not None
    return found


def solved(
    feed: Feed, bytes_: float, last: Allocation | None = None
) -> tuple[Allocation, dict[str, Allotment]]:
    found = problem(feed)
    allocation = solve(replace(found.found.problem, budget_bytes=bytes_), last)
    return allocation, found.allotments(allocation)


def give(feed: Feed, allotments: dict[str, Allotment]) -> None:
    assert not step(feed, Allocate(tuple(allotments.items()))).failed


def test_nobody_tolerates_anything() -> None:
    feed = fed(q=WIDE.replace(" DOWN TO 100 MILLISECONDS", ""))
    assert feed.engine.allocation_problem() is None


def test_rows_go_with_the_budget_and_come_with_it() -> None:
    feed = fed(q=WIDE)
    whole = problem(feed).bytes_now
    rows = len(feed.rows("q"))
    assert whole > 0
    allocation, allotments = solved(feed, whole / 2)
    (given,) = allotments["q"].scans
    assert given.window_ms == pytest.approx(500, rel=0.02)
    assert allotments["q"].expected.fn == pytest.approx(0.5, rel=0.02)
    give(feed, allotments)
    assert len(feed.rows("q")) == pytest.approx(rows / 2, rel=0.05)
    after = problem(feed)
    (store,) = after.found.problem.entities
    assert after.bytes_now == pytest.approx(store.bytes / 2, rel=0.05)
    tag = feed.engine.view().snapshot("q").approximation[0]
    assert (tag.kind, tag.origin, tag.amount, tag.asked) == ("window", "dynamic", given.window_ms, 1_000)
    _, none_left = solved(feed, 0.0, allocation)
    assert none_left["q"].scans == (ScanAllotment(100),)
    _, all_again = solved(feed, 10 * whole, allocation)
    assert not all_again["q"]
    give(feed, all_again)
    answer = feed.engine.view().snapshot("q")
    assert answer.approximation == ()
    assert not answer.complete
    assert answer.complete_from_ms is not None


def test_what_is_missing_is_measured_beside_what_is_expected() -> None:
    feed = fed("1 DAY", q="SELECT k, v FROM s [RANGE 1000 MILLISECONDS] | max_fn=0.9")
    assert feed.engine.measured("q") is None
    hand = feed.engine.expecting("q", Allotment((ScanAllotment(500),), by_hand=True))
    give(feed, {"q": hand})
    # Half of the time, but most of the rows: they came in a burst.
    feed.put(*ticks(list(range(2_001, 2_600, 20))))
    told = feed.engine.measured("q")
    assert told is not None
    expected, found = told
    assert expected.fn == pytest.approx(0.5)
    stamps = [*range(1, 2_001, 4), *range(2_001, 2_600, 20)]
    now_ms = feed.now_ms()
    due = sum(now_ms - 1_000 <= at <= now_ms for at in stamps)
    assert found.fn == pytest.approx(1 - len(feed.rows("q")) / due)
    assert found.fn > 0.7


def test_what_exact_readers_need_stays_and_costs_nothing() -> None:
    feed = fed(exact="SELECT k FROM s [RANGE 700 MILLISECONDS]", q=WIDE)
    exact = feed.rows("exact")
    _, allotments = solved(feed, 0.0)
    assert allotments["q"].scans == (ScanAllotment(700),)
    give(feed, allotments)
    assert feed.rows("exact") == exact
    assert problem(feed).bytes_now == 0


def test_rows_that_retention_keeps_are_no_reason_but_pairs_of_joins_are() -> None:
    feed = fed("1 DAY", q=WIDE)
    assert problem(feed).bytes_now == 0
    assert not solved(feed, 0.0)[1]["q"]
    register(feed, "joined", JOIN.format("1000 MILLISECONDS", "1000 MILLISECONDS"), max_fn="0.95")
    assert problem(feed).bytes_now > 0
    allocation, allotments = solved(feed, problem(feed).bytes_now / 4)
    assert all(scan.window_ms is not None and scan.window_ms < 500 for scan in allotments["joined"].scans)
    give(feed, allotments)
    assert allocation.unreachable == frozenset()


def test_what_is_set_by_hand_stays_and_bounds_that_cannot_be_kept_are_told() -> None:
    feed = fed(hand=WIDE, q="SELECT k FROM s [RANGE 1000 MILLISECONDS] | max_fn=0.05")
    give(feed, {"hand": Allotment((ScanAllotment(400),), by_hand=True)})
    allocation, allotments = solved(feed, 1.0)
    assert "hand" not in allotments
    assert allocation.unreachable == {"q"}
    assert allotments["q"].scans == (ScanAllotment(400),)  # what is set by hand holds the rows
    (refusal,) = allocation.refusals().values()
    assert refusal.code == "precision_unreachable"


def test_shards_share_a_budget_by_weight() -> None:
    heavy, light = fed(q=WIDE), fed(q=WIDE)
    problems = {2: problem(heavy), 7: problem(light)}
    weighty = replace(
        problems[2].found,
        problem=replace(
            problems[2].found.problem,
            queries=[replace(one, weight=50.0) for one in problems[2].found.problem.queries],
        ),
    )
    problems[2] = replace(problems[2], found=weighty)
    whole = problems[2].bytes_now
    allocation = solve(together(problems, 1.1 * whole))
    more, less = (problems[n].allotments(of_shard(allocation, n))["q"] for n in (2, 7))
    assert not more
    assert less.scans[0].window_ms == pytest.approx(100, abs=20)
    commands, given_less = commands_of(problems[7], of_shard(allocation, 7), light.engine.view().standing)
    assert ([one.allotment for one in commands], given_less) == ([less], 1)
    give(light, {"q": less})
    again, _ = commands_of(problems[7], of_shard(allocation, 7), light.engine.view().standing)
    assert again == []


def test_between_end_and_begin_nothing_moves() -> None:
    shares = Shares(0.75, 0.7, 0.6)
    for share, given_less, changed, wanted in (
        (0.74, False, True, False),
        (0.75, False, False, True),
        (0.61, True, False, False),
        (0.61, True, True, True),
        (0.59, True, False, True),
        (0.59, False, True, False),
    ):
        assert shares.wanted(share, given_less=given_less, changed=changed) == wanted
    assert shares.left_bytes(1_000, 900, 500) == pytest.approx(300)
    assert shares.left_bytes(1_000, 400, 500) == pytest.approx(800)
    assert shares.left_bytes(1_000, 1_900, 500) == 0
