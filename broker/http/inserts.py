"""INSERT over HTTP: rows become records of the topic of their stream or table.

All rows are checked before one is written, by the reader that will read them, so a row that would become a
dead letter refuses the statement. Whether a row is late is found when it is read.
"""

from __future__ import annotations

import asyncio
import time
from operator import attrgetter
from typing import Any

import orjson

from broker.http.errors import status_of
from broker.http.writes import Answer
from broker.runtime.publisher import Publisher
from engine.language.query import Insert, InsertedRow
from topics.codec import Bad
from topics.formats.metadata import Written
from topics.keyed import decode_records
from tureen.errors import KafkaUnavailable

TOLD_MAX = 100
"""Rows that are refused, each with its reason."""


async def insert(statement: Insert, publisher: Publisher) -> Answer:
    """(status, how many records are written, and where), or (400, which rows do not fit and why).

    503: some records are not confirmed; ``unwritten`` has their rows.
    """
    stream = statement.stream
    records = [_record(row) for row in statement.rows]
    refused = await asyncio.to_thread(_refused, statement, records)
    if refused:
        first = refused[0]
        return 400, {
            "code": "bad_record",
            "message": f"{len(refused):,} of {len(records):,} rows do not fit {stream.name}, so none is "
            f"written: row {first['row']:,}: {first['reason']}",
            "line": first["line"],
            "column": first["column"],
            "hint": f"DESCRIBE {stream.name} has its columns and their types",
            "refused": refused[:TOLD_MAX],
        }
    places = await publisher.publish_many(
        stream.topic, [(None if key is None else key.decode(), value) for key, value in records]
    )
    written = [(one[1], one[2]) for one in places if not isinstance(one, KafkaUnavailable)]
    told: dict[str, Any] = {
        "name": stream.name,
        "kind": stream.kind,
        "topic": stream.topic,
        "state": "WRITTEN",
        "written": len(written),
        "records": [{"partition": partition, "offset": offset} for partition, offset in written],
    }
    failed = [(row, one) for row, one in enumerate(places, 1) if isinstance(one, KafkaUnavailable)]
    if failed:
        error = failed[0][1].as_dict()
        return status_of(error), told | {"state": "ERROR", "unwritten": [row for row, _ in failed]} | error
    return 200, told


def _record(row: InsertedRow) -> tuple[bytes | None, bytes]:
    """Key and value, as the topic is to have them."""
    key = None if row.key is None else orjson.dumps(row.key)  # NULL as text would be the text null
    return key, orjson.dumps(row.members)


def _refused(statement: Insert, records: list[tuple[bytes | None, bytes]]) -> list[dict[str, Any]]:
    """The rows that would give no row of the stream, with their places in the text. Any thread."""
    stream, count = statement.stream, len(records)
    now_ms = time.time_ns() // 1_000_000
    limit_ms = now_ms + stream.future_max_ms
    keys = [key for key, _ in records] if stream.keyed else None
    values = [value for _, value in records]
    decoded = decode_records(stream, Written(values, [0] * count, list(range(count)), [now_ms] * count, keys))
    rows = statement.rows
    ahead = [
        Bad(int(place), f"the timestamp is beyond the clock plus future_max ({limit_ms} ms since 1970)")
        for place in decoded.batch.offset[decoded.batch.timestamp > limit_ms]
    ]
    return [
        {
            "row": one.place + 1,
            "line": rows[one.place].line,
            "column": rows[one.place].column,
            "reason": one.reason,
        }
        for one in sorted((*decoded.bad, *ahead), key=attrgetter("place"))
    ]
