"""Time of a micro-batch, worked out in pieces, against the clock of the broker over all rows in one step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import Schema, SourceName, Stream
from engine.windows.source_clock import LATE, SourceClock
from spark_jobs.scale_out.clock import never_late_above, passage, with_time
from spark_jobs.scale_out.micro_batch import ClockState, RecordRange, SourceStep, Summary

PARTITIONS = 3
EMPTY = Schema(())


@st.composite
def steps(draw: st.DrawFn) -> tuple[Stream, list[tuple[int, frozenset[int], dict[int, list[list[int]]]]]]:
    """A stream, and steps: (clock, partitions that lag, timestamps of each partition's pieces)."""
    stream = Stream(
        SourceName("s"),
        EMPTY,
        "s",
        draw(st.sampled_from(["ts", "ts", None])),
        lateness_ms=draw(st.integers(0, 8)),
        idle_timeout_ms=draw(st.integers(1, 30)),
        idle_advances=draw(st.booleans()),
        future_max_ms=draw(st.integers(0, 20)),
    )
    instant = st.integers(-5, 60)
    pieces = st.lists(st.lists(instant, min_size=1, max_size=4), max_size=3)
    partition = st.integers(0, PARTITIONS - 1)
    step = st.tuples(
        st.integers(0, 60), st.frozensets(partition), st.dictionaries(partition, pieces, max_size=PARTITIONS)
    )
    return stream, draw(st.lists(step, min_size=1, max_size=5))


def _batch(rows: dict[int, list[list[int]]]) -> Batch:
    flat = [(p, ts) for p in sorted(rows) for piece in rows[p] for ts in piece]
    return Batch(
        EMPTY,
        (),
        np.array([p for p, _ in flat], np.int32),
        np.arange(len(flat)),
        np.array([ts for _, ts in flat], np.int64),
    )


@given(steps())
def test_pieces_alone_are_told_what_the_broker_says_of_all_rows(drawn: object) -> None:
    stream, script = drawn  # type: ignore[misc]
    whole = SourceClock(stream)
    state = ClockState()
    clock_ms = 0
    for clock, lagging, rows in script:
        clock_ms = max(clock_ms, clock)
        before = state
        said = whole.records(_batch(rows), clock_ms, lagging)
        ranges = tuple(RecordRange(p, 0, 0) for p in range(PARTITIONS))
        step = SourceStep(stream.name, "s", ranges, lagging, before)
        limit_ms = clock_ms + stream.future_max_ms
        summaries = []
        for partition, pieces in rows.items():
            for place, piece in enumerate(pieces):
                taken = [ts for ts in piece if ts <= limit_ms or not stream.event_time]
                summaries.append(Summary(partition, place, len(piece), max(taken, default=None)))
        step = with_time(stream, step, summaries, clock_ms)
        assert step.now_ms == whole.now_ms
        state = step.after
        assert SourceStep.from_dict(step.as_dict()) == step

        fates, instants = [], []
        for partition in sorted(rows):
            for place, piece in enumerate(rows[partition]):
                found = passage(stream, step, clock_ms, partition, place, np.array(piece, np.int64))
                fates += found.fate.tolist()
                instants += found.timestamp.tolist()
        assert fates == said.fate.tolist()
        assert instants == said.timestamp.tolist()

        if stream.event_time:
            first = 0
            for partition in sorted(rows):
                own = np.array([ts for piece in rows[partition] for ts in piece], np.int64)
                if not len(own):
                    continue
                known = before.partitions.get(partition)
                latest = None if known is None else known.timestamp_max_ms
                counted = np.where(own > limit_ms, -(2**60), own)
                safe = never_late_above(before.now_ms, latest, counted, stream.lateness_ms)
                late = np.array(fates[first : first + len(own)]) == LATE
                assert not (late & (own > safe)).any()
                first += len(own)


def test_a_state_goes_through_json() -> None:
    stream = Stream(SourceName("s"), EMPTY, "s", "ts")
    step = SourceStep(stream.name, "s", (RecordRange(0, 0, 2),), frozenset(), ClockState())
    step = with_time(stream, step, [Summary(0, 0, 2, 17)], 100)
    assert step.now_ms == 16
    assert SourceStep.from_dict(step.as_dict()) == replace(step)
    assert step.after.partitions[0].next_offset == 2


def test_time_of_a_lost_stream_stands_still() -> None:
    stream = Stream(SourceName("s"), EMPTY, "s", "ts", idle_timeout_ms=10, idle_advances=True)
    step = SourceStep(stream.name, "s", (RecordRange(0, 0, 1),), frozenset(), ClockState())
    before = with_time(stream, step, [Summary(0, 0, 1, 5)], 100).after
    quiet = SourceStep(stream.name, "s", (), frozenset(), before)
    assert with_time(stream, quiet, (), 1_000).now_ms != before.now_ms
    assert with_time(stream, replace(quiet, lost=True), (), 1_000).after == before
