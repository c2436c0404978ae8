"""Timestamps in another unit than milliseconds are dead letters that say so; old data is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.plain import stream_as_dict, stream_from_dict
from engine.model.source import DAY_MS, Field, Schema, SourceName, Stream
from engine.model.types import STRING, TIMESTAMP
from engine.model.units import REACH_MS, are_seconds, unit_of
from topics.codec import decode
from topics.keyed import decode_keyed

NOW_MS = 1_748_772_000_123
STREAM = Stream(SourceName("s"), Schema((Field("v", STRING), Field("at", TIMESTAMP))), "s", "at")


def read(values: list[Any], stream: Stream = STREAM, record_ms: int = NOW_MS) -> tuple[list[int], list[str]]:
    """The timestamps of the rows, and the reasons of what is none."""
    records = [f'{{"at": {value}}}'.encode() for value in values]
    n = len(values)
    decoded = decode(stream, records, np.zeros(n), np.arange(n), np.full(n, record_ms))
    assert len(decoded.batch) + len(decoded.bad) == n
    return decoded.batch.timestamp.tolist(), [one.reason for one in decoded.bad]


def test_seconds_among_milliseconds_are_refused_and_leave_the_others() -> None:
    timestamps, reasons = read([NOW_MS, 1_748_772_000, NOW_MS + 5])
    assert timestamps == [NOW_MS, NOW_MS + 5]
    assert reasons == [
        "column at: 1748772000 looks like seconds; TIMESTAMP is read from ms since 1970 or from text"
    ]


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1_748_772_000_123_456, "microseconds"),
        (1_748_772_000_123_456_789, "nanoseconds"),
        (1_748_772_000.5, "seconds"),
    ],
)
def test_other_units_are_named(value: Any, unit: str) -> None:
    timestamps, (reason,) = read([value])
    assert not timestamps
    assert f"it looks like {unit}" in reason


@pytest.mark.parametrize(
    "value", [1_372_636_800_000, 1_436_918_400_000, 0, 1_000, 5 * DAY_MS, -DAY_MS, 2**40]
)
def test_replays_of_old_data_and_clocks_from_zero_are_rows(value: int) -> None:
    assert read([value]) == ([value], [])


def test_record_without_a_time_of_its_own_is_a_row() -> None:
    assert read([1_748_772_000], record_ms=-1) == ([1_748_772_000], [])


def test_past_max_counts_alone_where_it_is_declared() -> None:
    generous = replace(STREAM, past_max_ms=100 * 365 * DAY_MS)
    assert read([1_748_772_000], generous) == ([1_748_772_000], [])
    strict = replace(STREAM, past_max_ms=60_000)
    timestamps, reasons = read([NOW_MS - 60_000, NOW_MS - 60_001, 1_748_772_000], strict)
    assert timestamps == [NOW_MS - 60_000]
    assert reasons[0] == "column at: more than past_max (60000 ms) before the record's own timestamp"
    assert "looks like seconds" in reasons[1]


def test_tables_refuse_them_too_but_no_deletion() -> None:
    table = Stream(
        SourceName("t"),
        Schema((Field("k", STRING, nullable=False), Field("at", TIMESTAMP))),
        "t",
        "at",
        key=("k",),
    )
    values = [b'{"at": 1748772000}', None, f'{{"at": {NOW_MS}}}'.encode()]
    decoded = decode_keyed(table, [b"a", b"b", b"c"], values, [0] * 3, range(3), [NOW_MS] * 3)
    assert decoded.batch.offset.tolist() == [1, 2]
    assert ["looks like seconds" in one.reason for one in decoded.bad] == [True]


def test_option_is_bound_stored_and_refused_without_event_time() -> None:
    sql = "CREATE STREAM s (v STRING, at TIMESTAMP) WITH (timestamp = 'at', past_max = '3 days')"
    created = parse(sql, {}, Limits())
    assert isinstance(created, CreateStream)
    assert created.stream.past_max_ms == 3 * DAY_MS
    assert stream_from_dict(stream_as_dict(created.stream)) == created.stream
    assert stream_from_dict(stream_as_dict(STREAM)) == STREAM


def test_one_value_and_many_agree() -> None:
    rng = np.random.default_rng(13)
    exponents = rng.uniform(0, 14, 4_000)
    values = (10**exponents).astype(np.int64) * rng.choice([-1, 1, 1, 1], 4_000)
    near = NOW_MS + rng.integers(-REACH_MS, REACH_MS, 4_000)
    one_by_one = [unit_of(int(v), int(n)) == "seconds" for v, n in zip(values, near, strict=True)]
    assert are_seconds(values, near).tolist() == one_by_one
    assert 0 < sum(one_by_one) < len(one_by_one)
