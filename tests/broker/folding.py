"""Result topics as a reader folds them, and how they compare with what HTTP answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from engine.model.step import Position
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id

Rows = Counter[str]
"""Rows as JSON arrays, with how many there are of each."""


def position_of(record: Any) -> Position:
    return Position.parse(dict(record.headers())["tureen-position"].decode())


def at_ms(record: Any) -> int:
    return int(dict(record.headers())["tureen-at-ms"])


def occasion_of(record: Any) -> str:
    told: bytes = dict(record.headers()).get("tureen-occasion", b"step")
    return told.decode()


def of_query(records: Iterable[Any], handle: str) -> list[Any]:
    """JSON records of one query, in the order of each partition."""
    name = query_id(handle)
    return [record for record in records if json.loads(record.key())["query"] == name]


def folded(records: Iterable[Any], form: str, until: Position | None = None) -> Rows:
    """What the records up to a position come to; of no query twice the same row by key."""
    by_key: dict[bytes, Any] = {}
    rows: Rows = Counter()
    for record in records:
        if until is not None and position_of(record).sequence > until.sequence:
            continue
        value = None if record.value() is None else json.loads(record.value())
        if form == "diff":
            rows[line(value["row"].values())] += value["weight"]
            continue
        row = value if form == "upsert" or value is None else value["after"]
        if row is None:
            del by_key[record.key()]
        else:
            by_key[record.key()] = row
    assert min(rows.values(), default=0) >= 0
    return +rows + Counter(line(row.values()) for row in by_key.values())


def line(values: Iterable[Any]) -> str:
    return json.dumps(list(values))


def compare(one: Broker, handle: str, topic: str, form: str = "upsert") -> Rows:
    """As :func:`compare_all`, of one query; the rows of both."""
    return compare_all(one, [handle], topic, form)[handle]


def compare_all(one: Broker, handles: Collection[str], topic: str, form: str = "upsert") -> dict[str, Rows]:
    """Assert that the folded topic is each query's answer at the answer's position.

    What comes between two looks may be waited for.
    """
    snapshots = {handle: one.snapshot(handle) for handle in handles}
    wanted = {handle: Counter(line(row) for row in told["rows"]) for handle, told in snapshots.items()}
    found: dict[str, Rows] = {}

    def same() -> bool:
        records = one.records(topic)
        for handle, told in snapshots.items():
            until = Position.parse(told["position"])
            found[handle] = folded(of_query(records, handle), form, until)
        return found == wanted

    try:
        wait_until(same)
    except AssertionError:
        differ = [handle for handle in handles if found[handle] != wanted[handle]]
        told = [
            (
                one.http.get(f"/queries/{handle}").text,
                found[handle] - wanted[handle],
                wanted[handle] - found[handle],
            )
            for handle in differ
        ]
        raise AssertionError(f"too many, missing: {told}") from None
    return found
