"""Rows of a stream as parts of any size, sealed and open, with or without kept matches; and as the reference
holds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from engine.model.batch import Batch
from engine.model.expressions import Expression
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, DOUBLE, INTEGER, STRING, TIMESTAMP
from engine.operators.scan import ScanAt
from engine.reference.rows import Row, Source
from engine.reference.seen import Seen
from engine.stems.entering import EnteringRows
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.stems.segment import Tail
from engine.stems.stream_strings import StreamStrings
from engine.store.matches.chunks import CHUNKS
from tests.operators.relations import PRICE, column

NAME = SourceName("s")
TYPES = (INTEGER, BIGINT, DOUBLE, STRING, PRICE)
SCHEMA = Schema(
    (
        *(Field(f"c{place}", type_) for place, type_ in enumerate(TYPES)),
        Field("ts", TIMESTAMP, nullable=False),
    )
)


def batch(rows: Sequence[Sequence[Any]], stamps: Sequence[int], first: int = 0) -> Batch:
    """Rows of SCHEMA; offsets count from ``first``."""
    columns = [column(type_, [row[place] for row in rows]) for place, type_ in enumerate(TYPES)]
    timestamp = np.array(stamps, np.int64)
    offset = np.arange(first, first + len(rows))
    return Batch(
        SCHEMA,
        (*columns, column(TIMESTAMP, list(stamps))),
        np.zeros(len(rows), np.int32),
        offset,
        timestamp,
    )


def parts(
    rows: Sequence[Sequence[Any]],
    stamps: Sequence[int],
    cuts: Sequence[int],
    predicates: Sequence[Expression] = (),
    base: int = 0,
) -> tuple[Rows, dict[Expression, int]]:
    """Parts, all but the last sealed, with ordinals from ``base``; and the slots of these predicates.

    Strings are of three generations at most: the first part has one of its own, the last two share theirs.
    """
    stem = QueryStem(SCHEMA)
    slots = stem.add(list(predicates)).slots
    made = []
    bounds = sorted({0, *(cut for cut in cuts if cut < len(rows)), len(rows)})
    strings = StreamStrings(SCHEMA)
    for low, high in pairwise(bounds):
        if len(made) == 1 or len(made) == len(bounds) - 3:
            strings.clear()
        tail = Tail(SCHEMA, base + low, stem.cohorts, CHUNKS, strings.tables)
        piece = batch(rows[low:high], stamps[low:high], low)
        written = tail.write(EnteringRows.of(piece), 0, len(piece))
        tail.take(len(piece), stem.match(written, tail.bits, 0))
        made.append(tail.part() if high == len(rows) else tail.seal())
    stored = Rows(SCHEMA, tuple(made), base, base + len(rows))
    return stored, dict(zip(predicates, slots, strict=True))


def scan_at(stored: Rows, slots: dict[Expression, int]) -> ScanAt:
    """At the last row's instant, nothing being gone."""
    now_ms = stored.timestamp_of(stored.end - 1) if stored.end > stored.base else None
    retained_ms = None if now_ms is None else -(10**15)
    return ScanAt.now(stored, now_ms, retained_ms).with_slots(slots.get)


def reference(rows: Sequence[Sequence[Any]], stamps: Sequence[int]) -> Seen:
    """The rows as a source of the reference, seen at NOW."""
    stream = Stream(NAME, SCHEMA, "s", "ts")
    source = Source(stream, retained_from=-(10**15))
    source.rows = [
        Row(stamp, 0, offset, (*row, stamp))
        for offset, (row, stamp) in enumerate(zip(rows, stamps, strict=True))
    ]
    source.now = stamps[-1] if stamps else None
    return Seen(source, source.now)
