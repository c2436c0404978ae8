"""What the state takes is counted by structure, and what a pause would free is told of the right query."""

from __future__ import annotations

from engine.engine import Engine
from engine.model.step import Position, Register, Registration, Step, Unregister
from tests.engine.feed import Feed

ROWS = 20_000


def register(engine: Engine, query_id: str, sql: str, **options: str) -> None:
    position = Position(engine.position.epoch, engine.position.sequence + 1)
    engine.enqueue(Step(position, 0, Register((Registration(query_id, sql, options=options),))))
    (result,) = engine.run()
    assert not result.failed


def test_rows_count_by_source_and_go_with_their_window() -> None:
    feed = Feed(retain="1 SECOND")
    before = feed.engine.footprint()
    feed.put(*((place, f"k{place % 10}", 1.0) for place in range(ROWS)))
    after = feed.engine.footprint()
    held = after.by_source["s"]
    # a double, an instant twice, an offset, a partition and a code of a string: tens of bytes each
    assert 8 * feed.engine.stats()["data-stem/s"]["rows"] < held < 200 * ROWS
    assert held == after.rows + after.pending
    assert after.total == sum(after.structures.values())
    assert after.total > before.total
    register(feed.engine, "q", "SELECT k FROM s WHERE v > 0")
    assert feed.engine.footprint().queries > after.queries
    feed.engine.enqueue(
        Step(Position(feed.engine.position.epoch, feed.engine.position.sequence + 1), 0, Unregister(("q",)))
    )
    feed.engine.run()
    assert feed.engine.footprint().queries == after.queries


def test_the_heaviest_is_the_query_that_keeps_most_and_a_pause_frees_it() -> None:
    feed = Feed(retain="1 DAY")
    feed.put(*((place, f"k{place % 10}", float(place)) for place in range(ROWS)))
    assert feed.engine.heaviest() is None
    register(feed.engine, "lazy", "SELECT k, v FROM s", maintenance="lazy")
    assert feed.engine.heaviest() is None  # it keeps matches alone, which others may share
    register(feed.engine, "few", "SELECT v FROM s WHERE v < 100", maintenance="eager")
    register(feed.engine, "many", "SELECT v, v + 1 AS w FROM s", maintenance="eager")
    feed.engine.view()
    heavy = feed.engine.heaviest()
    assert heavy is not None
    assert heavy.query_id == "many"
    assert heavy.nbytes >= 16 * (ROWS - 1)
    counted = feed.engine.footprint().answers
    assert counted >= heavy.nbytes
    register(feed.engine, "many", "SELECT v, v + 1 AS w FROM s", maintenance="eager", paused="true")
    feed.engine.view()
    assert feed.engine.footprint().answers <= counted - heavy.nbytes
    heavy = feed.engine.heaviest()
    assert heavy is not None
    assert heavy.query_id == "few"


def test_what_followed_queries_keep_counts_for_each_by_its_part() -> None:
    feed = Feed(retain="1 DAY")
    for name, sql in (
        ("groups", "SELECT k, COUNT(*) AS n FROM s GROUP BY k"),
        ("same", "SELECT k, COUNT(*) AS n FROM s GROUP BY k"),
        ("few", "SELECT v, COUNT(*) AS n FROM s WHERE v < 10 GROUP BY v"),
    ):
        register(feed.engine, name, sql)
        feed.engine.follow(name)
    feed.put(*((place, f"k{place}", float(place)) for place in range(ROWS)))
    counted = feed.engine.footprint().changes
    heavy = feed.engine.heaviest()
    assert heavy is not None
    assert heavy.query_id in ("groups", "same")
    assert counted / 3 < heavy.nbytes <= counted / 2
    for name in ("groups", "same"):
        register(feed.engine, name, "SELECT k, COUNT(*) AS n FROM s GROUP BY k", paused="true")
    assert feed.engine.footprint().changes < counted / 4
    heavy = feed.engine.heaviest()
    assert heavy is not None
    assert heavy.query_id == "few"


def test_composites_count_for_the_queries_that_share_them() -> None:
    feed = Feed(retain="1 DAY")
    sql = "SELECT a.v FROM s a JOIN s b ON a.k = b.k WHERE a.v < b.v"
    register(feed.engine, "joined", sql, maintenance="lazy")
    for name in [one for one in feed.engine.modules() if one.startswith("join/")]:
        feed.engine.set_attribute(name, "composites", "on")
    feed.put(*((place, f"k{place % 500}", float(place)) for place in range(2_000)))
    counted = feed.engine.footprint()
    assert counted.indexes > 0
    assert counted.composites > 0
    heavy = feed.engine.heaviest()
    assert heavy is not None
    assert (heavy.query_id, heavy.nbytes) == ("joined", counted.composites)
