"""Heartbeats among records: which they are, and that the rest decodes as without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.shard.promises import cut_at_promises
from broker.shard.taken import TakenRows
from engine.model.batch import concatenate
from engine.model.shed import Shed
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import Records
from engine.model.types import BIGINT, TIMESTAMP, TIMESTAMP_MS_MAX
from topics.codec import decode
from topics.consumer import Polled
from topics.in_band import heartbeats
from topics.keyed import decode_messages
from tureen.protocol import HEADER_HEARTBEAT

STREAM = Stream(
    name=SourceName("s"),
    topic="s",
    schema=Schema((Field("id", BIGINT), Field("ts", TIMESTAMP, nullable=False))),
    timestamp_column="ts",
)


@dataclass(frozen=True)
class Message:
    """A record as a consumer has it."""

    bytes_: bytes | None
    own: list[tuple[str, bytes | None]] | None = None

    def value(self) -> bytes | None:
        return self.bytes_

    def headers(self) -> list[tuple[str, bytes | None]] | None:
        return self.own


def row(number: int) -> Message:
    return Message(b'{"id": %d, "ts": %d}' % (number, 1_700_000_000_000 + number), [("trace", b"x")])


def beat(text: bytes | None, value: bytes | None = None) -> Message:
    return Message(value, [("other", b"1"), (HEADER_HEARTBEAT, text)])


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (b"17", 17),
        (b"-5", -5),
        (b"0", 0),
        (b"", None),
        (b"1.5", None),
        (b" 1", None),
        (b"1e3", None),
        ("١".encode(), None),
        (b"\xff", None),
        (b"9" * 18, None),
        (b"9" * 400, None),
        (str(TIMESTAMP_MS_MAX).encode(), TIMESTAMP_MS_MAX),
        (str(TIMESTAMP_MS_MAX + 1).encode(), None),
        (None, None),
    ],
)
@pytest.mark.parametrize("value", [None, b"", b'{"id": 1, "ts": 1}'])
def test_the_header_alone_decides(text: bytes | None, ms: int | None, value: bytes | None) -> None:
    found, refused = heartbeats([one.headers() for one in (row(1), beat(text, value), row(2))])
    assert (dict(found), set(refused)) == (({1: ms}, set()) if ms is not None else ({}, {1}))


def test_of_several_headers_the_last_counts() -> None:
    found, _ = heartbeats([None, [(HEADER_HEARTBEAT, b"1"), ("x", None), (HEADER_HEARTBEAT, b"2")]])
    assert found == {1: 2}


@given(
    kinds=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["row", "row", "bad", "beat", "broken"])), max_size=20
    )
)
def test_cut_behind_heartbeats_everything_is_in_one_part_and_in_order(kinds: list[tuple[int, str]]) -> None:
    kinds = sorted(kinds, key=lambda one: one[0])
    made = {"bad": Message(b"{"), "broken": beat(b"x")}
    messages = [
        row(place) if kind == "row" else beat(b"%d" % place) if kind == "beat" else made[kind]
        for place, (_, kind) in enumerate(kinds)
    ]
    n = len(messages)
    values = [one.value() for one in messages]
    partition, offset = np.array([one for one, _ in kinds], np.int32), np.arange(n) * 2
    stamps = np.full(n, 1_700_000_000_000)
    decoded = decode_messages(STREAM, messages, values, partition, offset, stamps)
    rows = [place for place, (_, kind) in enumerate(kinds) if kind == "row"]
    alone = decode(
        STREAM, [values[place] for place in rows], partition[rows], offset[rows], stamps[rows]
    ).batch
    assert decoded.batch.to_arrow().equals(alone.to_arrow())
    assert {one.place for one in decoded.bad} == {
        at for at, (_, k) in enumerate(kinds) if k in ("bad", "broken")
    }
    assert dict(decoded.heartbeats) == {at: at for at, (_, kind) in enumerate(kinds) if kind == "beat"}
    if not decoded.heartbeats:
        return
    next_offsets = {int(one): 2 * n + 1 for one in set(partition.tolist())}
    polled = Polled("s", values, partition, offset, stamps, list(messages), next_offsets, frozenset({9}))
    bad = [(one.place, one.reason) for one in decoded.bad]
    spans = {int(one): (0, 2 * n + 1) for one in set(partition.tolist())}
    body = Records(
        STREAM.name,
        decoded.batch,
        next_offsets,
        frozenset({9}),
        complete_from_ms=3,
        unreadable=len(bad),
        shed=Shed(7, spans),
    )
    whole = TakenRows(
        body, list(messages), np.array(rows, np.int64), bad, sum(len(v or b"") for v in values), polled.ranges
    )
    parts = list(cut_at_promises(whole, polled, decoded.heartbeats))
    assert [message for part in parts for message in part.messages] == list(messages)
    batch = concatenate(STREAM.schema, [part.body.batch for part in parts])
    assert batch.to_arrow().equals(decoded.batch.to_arrow())
    assert sum(part.size for part in parts) == whole.size
    assert sum(part.body.unreadable for part in parts) == len(bad)
    assert [part.body.complete_from_ms for part in parts] == [3, *[None] * (len(parts) - 1)]
    assert parts[-1].body.next_offsets == next_offsets
    for number in spans:
        shed = [part.body.shed.ranges.get(number) for part in parts if part.body.shed is not None]
        ends = [0, *(at for one in shed if one is not None for at in one), 2 * n + 1]
        assert ends[::2] == ends[1::2]  # each begins where the one before ends
    start = 0
    for part in parts:
        stop = start + len(part.messages)
        assert sum(one.count for one in part.ranges) == len(part.messages)
        assert [part.messages[place] for place in part.rows.tolist()] == [
            messages[place] for place in rows if start <= place < stop
        ]
        assert [place + start for place, _ in part.bad] == [
            place for place, _ in bad if start <= place < stop
        ]
        promises = [(one.place + start, one.partition, one.ms) for one in part.promises]
        assert promises == [(at, kinds[at][0], at) for at in range(start, stop) if kinds[at][1] == "beat"]
        if stop < n:  # behind a promise there is nothing but other promises
            first = part.promises[0].place
            assert [kinds[at][1] for at in range(start + first, stop)] == ["beat"] * (stop - start - first)
        assert part.body.lagging == {9, *partition[stop:].tolist()}
        start = stop
