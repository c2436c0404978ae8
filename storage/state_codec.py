"""Sources, queries and positions as stored: JSON in a versioned frame, a position as three integers.

    position    | epoch, 8 | sequence, 8 | saves, 8 |    big-endian; saves counts the commits of this store

The count of saves tells a commit that was made from one that was not, even at the same position.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from engine.model.allotment import Allotment
from engine.model.last_answer import LastAnswer
from engine.model.persistence import (
    ConstraintState,
    PartitionClock,
    PromiseState,
    QueryState,
    SourceState,
)
from engine.model.plain import (
    registration_as_dict,
    registration_from_dict,
    stream_as_dict,
    stream_from_dict,
)
from engine.model.shed import ShedPiece, ShedRun
from engine.model.source import Derived
from engine.model.step import Position
from storage.frames import corrupt, unwrap, wrap

FORMAT_VERSION = 1
POSITION_VERSION = 1
SOURCE_VERSION = 1
QUERY_VERSION = 3
QUERY_VERSION_WHOLE = 2
"""Version of queries that run and are given all they ask for, as earlier releases read them."""
QUERY_VERSION_PLAIN = 1
"""Version of such queries that have no parameters."""
DERIVED_VERSION = 1
TABLE_VERSION = 2
"""Version of a table derived from a query, which earlier releases do not know."""

_POSITION = struct.Struct(">QQQ")


def encode_format() -> bytes:
    """The mark of a store in the layout of :mod:`storage.keys`."""
    return wrap(FORMAT_VERSION, b"")


def check_format(value: bytes, key: str) -> None:
    """Raises StoreVersionUnknown for a store in another layout, StoreCorrupt for a broken mark."""
    unwrap(value, FORMAT_VERSION, key)


def encode_position(position: Position, saves: int) -> bytes:
    """The position of a commit and the commit's number."""
    return wrap(POSITION_VERSION, _POSITION.pack(position.epoch, position.sequence, saves))


def decode_position(value: bytes, key: str) -> tuple[Position, int]:
    """(position, saves). Raises StoreVersionUnknown, StoreCorrupt."""
    payload = unwrap(value, POSITION_VERSION, key)
    if len(payload) != _POSITION.size:
        raise corrupt(key, f"it has {len(payload)} bytes")
    epoch, sequence, saves = _POSITION.unpack(payload)
    return Position(epoch, sequence), saves


def encode_source(state: SourceState) -> bytes:
    """Everything about a source but its rows."""
    return _encode_json(
        SOURCE_VERSION,
        {
            "stream": stream_as_dict(state.stream),
            "sql": state.sql,
            "now_ms": state.now_ms,
            "clock_ms": state.clock_ms,
            "retained_from_ms": state.retained_from_ms,
            "base": state.base,
            "end": state.end,
            "late": state.late,
            "rejected": state.rejected,
            "partitions": [
                [partition, clock.timestamp_max_ms, clock.active_clock_ms, clock.next_offset]
                + ([] if clock.promised_ms is None else [clock.promised_ms])
                for partition, clock in sorted(state.partitions.items())
            ],
        }
        | ({"origin": state.origin} if state.origin else {})
        | ({} if state.complete_from_ms is None else {"whole_from_ms": state.complete_from_ms})
        | ({"unreadable": state.unreadable} if state.unreadable else {})
        | ({} if state.counted_from_ms is None else {"counted_from_ms": state.counted_from_ms})
        | ({} if state.promises is None else {"promises": _promises_as_dict(state.promises)})
        | ({"sheds": [_shed_run(run) for run in state.sheds]} if state.sheds else {}),
    )


def _shed_run(run: ShedRun) -> list[Any]:
    ranges = [[partition, *bounds] for partition, bounds in sorted(run.ranges.items())]
    since = run.since
    told = [since.epoch, since.sequence, run.until_ms, run.level, ranges, run.rows, run.unread, run.spent]
    return [*told, [list(piece) for piece in run.pieces]]


def _shed_run_of(facts: list[Any]) -> ShedRun:
    epoch, sequence, until_ms, level, ranges, rows, unread, spent, *more = facts
    bounds = {partition: (first, until) for partition, first, until in ranges}
    pieces = tuple(ShedPiece(*piece) for piece in (more[0] if more else ()))
    return ShedRun(Position(epoch, sequence), until_ms, level, bounds, rows, unread, spent, pieces)


def decode_source(value: bytes, key: str) -> SourceState:
    """The inverse of ``encode_source``. Raises StoreVersionUnknown, StoreCorrupt."""
    payload = unwrap(value, SOURCE_VERSION, key)
    try:
        facts = _decode_json(payload)
        stream = stream_from_dict(facts.pop("stream"))
        partitions = {partition: PartitionClock(*clock) for partition, *clock in facts.pop("partitions")}
        promises = facts.pop("promises", None)
        sheds = tuple(_shed_run_of(run) for run in facts.pop("sheds", ()))
        return SourceState(
            stream=stream,
            partitions=partitions,
            complete_from_ms=facts.pop("whole_from_ms", None),
            promises=None if promises is None else _promises_of(promises),
            sheds=sheds,
            **facts,
        )
    except (ValueError, TypeError, KeyError) as error:
        raise corrupt(key, repr(error)) from error


def _promises_as_dict(state: PromiseState) -> dict[str, Any]:
    past, runs = [one.past for one in state.constraints], [one.runs for one in state.constraints]
    forgotten = [one.forgotten for one in state.constraints]
    beside: dict[str, Any] = {}
    if any(past):
        beside["past"] = [base64.b64encode(one).decode() for one in past]
    if any(runs):
        beside["runs"] = [base64.b64encode(one).decode() for one in runs]
    if any(forgotten):
        beside["forgotten"] = forgotten
    return {
        "rows": state.rows,
        "constraints": [[one.broken, one.bound, one.open, one.unchecked_from] for one in state.constraints],
        "since": None if state.since is None else str(state.since),
        "withheld_ms": state.withheld_ms,
        "touched": state.touched,
    } | beside


def _promises_of(facts: Mapping[str, Any]) -> PromiseState:
    count = len(facts["constraints"])
    past, runs = (facts.get(name) or [""] * count for name in ("past", "runs"))
    forgotten = facts.get("forgotten") or [0] * count
    constraints = tuple(
        ConstraintState(
            broken,
            bound,
            tuple((last, first, own) for last, first, own in values),
            unchecked_from,
            base64.b64decode(hashes),
            gone,
            base64.b64decode(ranges),
        )
        for (broken, bound, values, unchecked_from), hashes, gone, ranges in zip(
            facts["constraints"], past, forgotten, runs, strict=True
        )
    )
    since = None if facts["since"] is None else Position.parse(facts["since"])
    return PromiseState(facts["rows"], constraints, since, facts["withheld_ms"], tuple(facts["touched"]))


def encode_query(state: QueryState) -> bytes:
    """A registered query."""
    facts = registration_as_dict(state.registration) | {
        "born": [state.born.epoch, state.born.sequence],
        "predicate_errors": list(state.predicate_errors),
    }
    if state.last is not None:
        rows = state.last.rows
        facts["last"] = [state.last.now_ms, None if rows is None else base64.b64encode(rows).decode()]
    if state.allotment is not None and state.allotted_at is not None:
        facts["allotment"] = state.allotment.as_dict()
        facts["allotted_at"] = [state.allotted_at.epoch, state.allotted_at.sequence]
    if "last" in facts or "allotment" in facts:
        return _encode_json(QUERY_VERSION, facts)
    plain = state.registration.parameters is None
    return _encode_json(QUERY_VERSION_PLAIN if plain else QUERY_VERSION_WHOLE, facts)


def decode_query(value: bytes, key: str) -> QueryState:
    """The inverse of ``encode_query``. Raises StoreVersionUnknown, StoreCorrupt."""
    known = (QUERY_VERSION_PLAIN, QUERY_VERSION_WHOLE)
    version = next((one for one in known if value[:1] == bytes([one])), QUERY_VERSION)
    payload = unwrap(value, version, key)
    try:
        facts = _decode_json(payload)
        epoch, sequence = facts.pop("born")
        predicate_errors = tuple(facts.pop("predicate_errors"))
        last = facts.pop("last", None)
        allotment, since = facts.pop("allotment", None), facts.pop("allotted_at", None)
        return QueryState(
            registration_from_dict(facts),
            _position(epoch, sequence),
            predicate_errors,
            None if last is None else _last_answer(*last),
            None if allotment is None else Allotment.from_dict(allotment),
            None if since is None else _position(*since),
        )
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise corrupt(key, repr(error)) from error


def _last_answer(now_ms: int | None, text: str | None) -> LastAnswer:
    return LastAnswer(now_ms, None if text is None else base64.b64decode(text, validate=True))


@lru_cache(maxsize=16)
def _position(epoch: int, sequence: int) -> Position:
    """One for all queries that came in a step, which are mostly read one after another."""
    return Position(epoch, sequence)


def encode_derived(derived: Derived) -> bytes:
    """A view, a derived stream or a derived table."""
    return _encode_json(TABLE_VERSION if derived.is_table else DERIVED_VERSION, derived.as_dict())


def decode_derived(value: bytes, key: str) -> Derived:
    """The inverse of ``encode_derived``. Raises StoreVersionUnknown, StoreCorrupt."""
    version = TABLE_VERSION if value[:1] == bytes([TABLE_VERSION]) else DERIVED_VERSION
    payload = unwrap(value, version, key)
    try:
        return Derived(**_decode_json(payload))
    except (ValueError, TypeError) as error:
        raise corrupt(key, repr(error)) from error


def _encode_json(version: int, facts: Mapping[str, Any]) -> bytes:
    try:
        return wrap(version, orjson.dumps(facts))
    except TypeError:  # a number or a string that it does not take
        return wrap(version, json.dumps(facts, separators=(",", ":")).encode("ascii"))


def _decode_json(payload: memoryview) -> dict[str, Any]:
    """Raises ValueError, TypeError."""
    try:
        return dict(orjson.loads(payload))
    except orjson.JSONDecodeError:  # as above
        return dict(json.loads(bytes(payload)))
