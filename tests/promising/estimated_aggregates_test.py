"""COUNT and SUM with a preference are what was visited and an estimate of the rest; exact when nothing is
left.
"""

from __future__ import annotations

import random
from time import perf_counter_ns
from typing import Any

import pytest

from engine.model.source import SourceName
from engine.model.step import Heartbeat, Position, Step
from tests.engine.feed import Feed

PREFERENCE = "WITH PREFERENCE {order} SUMMARY.Estimate.Count(k) WINDOW 1 MINUTE"
NAMED = "WHERE k IN ('a', 'c')"


class Pair:
    """A query with a preference beside the same one without."""

    def __init__(self, text: str, order: str = "desc") -> None:
        self.feed = Feed()
        self.feed.engine.create("CREATE SUMMARY sk ON s (k) WITH GRANULARITY 10 SECONDS AND COLLAPSE (4, 3)")
        preference = PREFERENCE.format(order=order)
        self.feed.engine.register("some", f"{text} {preference}")
        self.feed.engine.register("all", text.replace("FROM s", "FROM s [RANGE 1 MINUTE]"))

    def put(self, rows: int, seed: int = 1) -> None:
        """Rows of half a minute; a is frequent, and v of each k has a mean of its own."""
        rng, now_ms = random.Random(seed), self.feed.now_ms() if self.feed.told else 0
        keys = rng.choices(["a", "b", "c", "d", None], [50, 20, 15, 10, 5], k=rows)
        stamps = sorted(now_ms + rng.randrange(30_000) for _ in keys)
        mean = {"a": 1.0, "b": 7.0, "c": 30.0, "d": 100.0, None: 3.0}
        self.feed.put(
            *((ts, k, mean[k] + rng.random()) for ts, k in zip(stamps, keys, strict=True)),
        )

    def grant(self, units: int) -> int:
        """Units that were used of so many."""
        engine = self.feed.engine
        position = Position(0, engine.position.sequence + 1)
        engine.enqueue(Step(position, self.feed.clock_ms, Heartbeat(SourceName("s"), grant=units)))
        return engine.run()[-1].spent

    @property
    def tag(self) -> dict[str, Any]:
        """The tag of the answer; empty: it is exact."""
        tags = [tag.as_dict() for tag in self.feed.answer("some").approximation]
        assert len(tags) < 2
        return tags[0] if tags else {}

    def finish(self) -> None:
        """With units for all rows the answers are the same to the bit, and nothing is estimated."""
        self.grant(10**9)
        assert self.feed.rows("some") == self.feed.rows("all")
        assert not self.tag


@pytest.mark.parametrize("where", [NAMED, "WHERE v > 2", ""], ids=["values", "others", "all"])
def test_count_and_sum_are_visited_rows_and_an_estimate_of_the_rest(where: str) -> None:
    pair = Pair(f"SELECT COUNT(*) AS n, SUM(v) AS t, MAX(v) AS top FROM s {where}", "weighted")
    pair.put(1_000)
    pair.grant(200)
    ((count, total, _),), ((true_count, true_total, _),) = pair.feed.rows("some"), pair.feed.rows("all")
    visited = pair.tag["visited"]
    assert pair.tag["unscaled"] == ["top"]
    assert visited["n"] < 0.4 * true_count
    assert visited["t"] < 0.4 * true_total
    assert count == pytest.approx(true_count, rel=0.1)
    assert total == pytest.approx(true_total, rel=0.25)
    pair.finish()


def test_groups_of_named_values_are_completed_each_by_its_own_estimate() -> None:
    pair = Pair(f"SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s {NAMED} GROUP BY k", "weighted")
    pair.put(1_000)
    pair.grant(150)
    some = {key: (count, total) for key, count, total in pair.feed.rows("some")}
    for key, count, total in pair.feed.rows("all"):
        assert some[key] == (pytest.approx(count, rel=0.1), pytest.approx(total, rel=0.1))
    assert "unscaled" not in pair.tag
    assert "visited" not in pair.tag
    pair.finish()


def test_groups_that_no_estimate_tells_of_are_what_was_visited_and_the_tag_says_so() -> None:
    pair = Pair("SELECT k, COUNT(*) AS n, COUNT(DISTINCT v) AS d, AVG(v) AS m FROM s GROUP BY k")
    pair.put(500)
    pair.grant(100)
    assert sum(count for _, count, _, _ in pair.feed.rows("some")) == 100
    assert pair.tag["unscaled"] == ["n", "d"]
    pair.finish()


def test_filters_and_expressions_over_aggregates_are_completed_too() -> None:
    columns = "COUNT(*) FILTER (WHERE v > 20) AS n, SUM(v) / COUNT(*) AS m, COUNT(v) + 1 AS c"
    pair = Pair(f"SELECT {columns} FROM s {NAMED}", "weighted")
    pair.put(1_000)
    pair.grant(200)
    ((some, mean, count),), ((true_some, true_mean, true_count),) = (
        pair.feed.rows("some"),
        pair.feed.rows("all"),
    )
    assert some == pytest.approx(true_some, rel=0.2)
    assert mean == pytest.approx(true_mean, rel=0.2)
    assert count == pytest.approx(true_count, rel=0.1)
    pair.finish()


def test_nothing_visited_counts_what_is_estimated_and_has_no_sum() -> None:
    pair = Pair(f"SELECT COUNT(*) AS n, SUM(v) AS t FROM s {NAMED}")
    assert pair.feed.rows("some") == [(0, None)]
    pair.put(400)
    ((count, total),), ((true_count, _),) = pair.feed.rows("some"), pair.feed.rows("all")
    assert count == pytest.approx(true_count, rel=0.1)
    assert total is None
    assert pair.tag["visited"] == {"n": 0.0}
    pair.finish()


def test_windows_and_retention_take_from_what_is_left_as_well() -> None:
    pair = Pair("SELECT COUNT(*) AS n FROM s WHERE v > 2")
    for seed in range(6):
        pair.put(200, seed)
        pair.grant(40)
    ((count,),), ((true_count,),) = pair.feed.rows("some"), pair.feed.rows("all")
    assert count == pytest.approx(true_count, rel=0.35)
    pair.finish()


def test_explain_analyze_shows_the_visited_part() -> None:
    pair = Pair(f"SELECT COUNT(*) AS n, MAX(v) AS top FROM s {NAMED}")
    pair.put(400)
    pair.grant(50)
    plan = pair.feed.engine.explain(query_id="some", timer=perf_counter_ns).preference
    assert plan is not None
    assert plan.unscaled == ("top",)
    assert plan.visited == pair.tag["visited"]
    pair.grant(10**9)
    plan = pair.feed.engine.explain(query_id="some", timer=perf_counter_ns).preference
    assert plan is not None
    assert not plan.visited
