"""Where the partitions of a stream stand, as readers are told."""

from __future__ import annotations

import numpy as np

from engine.model.batch import Batch
from engine.model.source import Schema, SourceName, Stream
from engine.windows.source_clock import SourceClock

SCHEMA = Schema(())


def rows(*instants: tuple[int, int, int]) -> Batch:
    """(partition, offset, timestamp in ms) of each."""
    partition, offset, timestamp = zip(*instants, strict=True) if instants else ((), (), ())
    return Batch(
        SCHEMA, (), np.array(partition, np.int32), np.array(offset, np.int64), np.array(timestamp, np.int64)
    )


def clock_of(timestamp: str | None) -> SourceClock:
    stream = Stream(SourceName("s"), SCHEMA, "s", timestamp, lateness_ms=100, idle_timeout_ms=1_000)
    return SourceClock(stream)


def test_partition_with_the_least_watermark_tells_how_long_it_alone_holds_now_back() -> None:
    clock = clock_of("ts")
    clock.records(rows((0, 0, 500), (0, 1, 900), (1, 0, 300), (2, 0, 700)), 1_000, frozenset(), checked=True)
    told = clock.view().partitions()
    assert [(one.watermark_ms, one.latest_ms, one.behind_ms, one.next_offset) for one in told] == [
        (799, 900, 0, 2),
        (199, 300, 400, 1),
        (599, 700, 0, 1),
    ]
    assert clock.now_ms == 199
    clock.promise({1: 650}, 1_000)
    clock.heartbeat(rows(), 1_000, frozenset())
    assert clock.now_ms == 599
    assert [(one.watermark_ms, one.promised_ms, one.behind_ms) for one in clock.view().partitions()][1:] == [
        (649, 649, 0),
        (599, None, 50),
    ]


def test_idle_partition_holds_nothing_back_and_tells_since_when() -> None:
    clock = clock_of("ts")
    clock.records(rows((0, 0, 300), (1, 0, 900)), 1_000, frozenset())
    before = clock.view()
    clock.records(rows((1, 1, 1_900)), 2_500, frozenset())
    idle, active = clock.view().partitions()
    assert (idle.idle_since_ms, idle.behind_ms, idle.active_ms) == (2_000, 0, 1_000)
    assert (active.idle_since_ms, active.behind_ms, active.watermark_ms) == (None, 0, 1_799)
    assert clock.now_ms == 1_799
    assert [one.idle_since_ms for one in before.partitions()] == [None, None], "a view stays as it was"


def test_in_arrival_time_a_partition_that_was_read_stands_at_the_clock() -> None:
    clock = clock_of(None)
    clock.records(rows((0, 0, 300), (1, 0, 900)), 1_000, frozenset({0}))
    assert [one.watermark_ms for one in clock.view().partitions(frozenset({0}))] == [299, 999]
