"""Heartbeats: made where they may move NOW, and nowhere else."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

from broker.shard.pace import Pace
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, TIMESTAMP

NONE: frozenset[int] = frozenset()
SCHEMA = Schema((Field("id", BIGINT), Field("ts", TIMESTAMP)))


def stream(*, event_time: bool = True, idle_advances: bool = False) -> Stream:
    return Stream(
        SourceName("s"),
        SCHEMA,
        "s",
        timestamp_column="ts" if event_time else None,
        idle_timeout_ms=1_000,
        idle_advances=idle_advances,
    )


def beats(pace: Pace, start_ms: int, stop_ms: int, lagging: frozenset[int] = NONE) -> list[int]:
    """When heartbeats are made, looked at every 50 ms."""
    made = []
    for clock_ms in range(start_ms, stop_ms, 50):
        if pace.is_due(clock_ms, lagging):
            pace.stepped(clock_ms, (), lagging)
            made.append(clock_ms)
    return made


def test_a_stream_that_never_had_a_row_is_left_alone() -> None:
    for one in (stream(), stream(event_time=False), stream(idle_advances=True)):
        assert beats(Pace(one, 250, 0), 0, 10_000) == []


def test_arrival_time_follows_the_clock_once_read_up() -> None:
    pace = Pace(stream(event_time=False), 250, 0)
    pace.stepped(0, [0], frozenset({0}))
    assert beats(pace, 50, 1_000, frozenset({0})) == []
    assert beats(pace, 1_000, 2_000) == [1_000, 1_250, 1_500, 1_750]


def test_event_time_beats_once_for_each_partition_that_falls_idle() -> None:
    pace = Pace(stream(), 250, 0)
    pace.stepped(0, [0], NONE)
    pace.stepped(600, [1], NONE)
    assert beats(pace, 650, 10_000) == [1_000, 1_600]


def test_idle_advances_goes_on() -> None:
    pace = Pace(stream(idle_advances=True), 250, 0)
    pace.stepped(0, [0], NONE)
    assert beats(pace, 50, 2_000) == [1_000, 1_250, 1_500, 1_750]


def test_a_partition_that_is_read_up_no_longer_holds_now() -> None:
    pace = Pace(stream(), 250, 0)
    pace.stepped(0, [0], frozenset({1}))
    assert not pace.is_due(10, frozenset({1}))
    assert pace.is_due(10, NONE)


def test_after_a_restart_old_partitions_fall_idle_anew() -> None:
    pace = Pace(stream(), 250, 5_000, seen=[0, 1])
    assert beats(pace, 5_000, 20_000) == [6_000]


def test_what_the_clock_alone_would_move_rests_while_no_answer_depends_on_it() -> None:
    for one in (stream(event_time=False), stream(idle_advances=True)):
        pace = Pace(one, 250, 0)
        pace.stepped(0, [0], NONE)
        made = [at for at in range(50, 10_000, 50) if _beat_where_nothing_depends(pace, at)]
        assert len(made) <= 1 + one.event_time
        assert pace.is_due(10_000, NONE, needed=True)


def _beat_where_nothing_depends(pace: Pace, clock_ms: int) -> bool:
    due = pace.is_due(clock_ms, NONE, needed=False)
    if due:
        pace.stepped(clock_ms, (), NONE)
    return due


def test_a_stream_that_rests_is_due_at_no_later_time() -> None:
    """Until a step of it is made, or a partition lags, or somebody needs its clock: so it need not be looked
    at."""
    rng = random.Random(3)
    rested: Counter[bool] = Counter()
    for event_time, idle_advances, needed in product((True, False), repeat=3):
        for _ in range(100):
            one = stream(event_time=event_time, idle_advances=idle_advances)
            pace, clock_ms = Pace(one, 250, 0, [0] * rng.randrange(2)), 0
            for _ in range(rng.randrange(12)):
                clock_ms += rng.choice([1, 250, 600, 1_500])
                pace.stepped(
                    clock_ms, rng.choice([(), (0,), (0, 1)]), rng.choice([NONE, NONE, frozenset({1})])
                )
            rests = pace.rests(NONE, needed)
            rested[rests] += 1
            if rests:
                assert not any(pace.is_due(clock_ms + later, NONE, needed) for later in range(0, 5_000, 50))
            assert not pace.rests(frozenset({0}), needed)
    assert min(rested.values()) > 50
