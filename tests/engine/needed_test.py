"""What a stream's rows are needed for: what a restore may leave out that comes back without some queries."""

from __future__ import annotations

from tests.engine.feed import Feed


def test_retention_and_windows_say_what_is_needed() -> None:
    feed = Feed(retain="1 SECOND")
    assert feed.engine.needs.rows("s") is None  # without NOW nothing is known
    feed.put(*((place, "k", 1.0) for place in range(5_000)))
    (now_ms,) = [info.now_ms for info in feed.engine.view().sources()]
    assert now_ms is not None
    assert feed.engine.needs.rows("s") == (now_ms - 1_000, 0)
    feed.engine.register("wide", "SELECT k FROM s [RANGE 3 SECONDS]")
    feed.engine.register("last", "SELECT k FROM s [ROWS 10]")
    assert feed.engine.needs.rows("s") == (now_ms - 3_000, 10)
    feed.engine.unregister("wide")
    assert feed.engine.needs.rows("s") == (now_ms - 1_000, 10)
