"""Result topics as a reader folds them, and how they compare with what HTTP answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from engine.model.step import Position
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.protocol import query_id

VISIBLE_S = 5.0
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
    """Assert that the folded topic is the answer at the answer's position; the rows of both.

    A commit is known a moment before readers see it, so that may be waited for.
    """
    snapshot = one.snapshot(handle)
    position = Position.parse(snapshot["position"])
    wanted = Counter(line(row) for row in snapshot["rows"])
    found: Rows = Counter()

    def same() -> bool:
        found.clear()
        found.update(folded(of_query(one.records(topic), handle), form, position))
        return found == wanted

    try:
        wait_until(same, VISIBLE_S)
    except AssertionError:
        told = one.http.get(f"/queries/{handle}").text
        raise AssertionError(f"{told}\ntoo many: {found - wanted}\nmissing: {wanted - found}") from None
    return found
