"""Promising joins against nested loops, whatever the preference, the zones, the windows and the grants."""

from __future__ import annotations

from tests.promising.streams import Streams, join_query, pairs_of, rows_of, spend_all


def test_smoke() -> None:
    streams = Streams(granularity_ms=1000)
    group = streams.group(join_query())
    streams.step({"a": rows_of([1, 2, 3], [5, 5, 3]), "b": rows_of([1, 2, 3], [5, 5, 9])}, 3)
    group.arrive(streams.at(), streams.now_ms)
    spend_all(group, streams)
    assert pairs_of(group) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    print(group.counts)
