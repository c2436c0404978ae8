"""Records of result topics to rows of their tables, whatever their format and encoding.

The records say themselves what they are (:mod:`topics.results` has how they are written). A row's members are
never objects, so a value whose members are before, after, op, ts_ms, or row and weight, with an object where
the row belongs, is Debezium's or a diff, and any other object is a row. In a registry's wire format a zero
byte and the schema's id come first; JSON goes on with a brace, which Avro never does here: its data begins
with the length of the query's id or with the number of a union's branch. Avro is read by the schema of its
id, and written as the JSON that the other encodings have.

Runs on executors, in ``mapInArrow``; the driver has fetched the schemas. Cost: some 10 us a record.
"""

from __future__ import annotations

import datetime
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import orjson
import pyarrow as pa

from engine.model.source import DAY_MS
from spark_jobs.archive.rows import refusals, with_reasons
from spark_jobs.decoding import heartbeats_of
from storage.archive.layout import DATE, OFFSET, PARTITION, RESULT_SCHEMA, TIMESTAMP
from tureen.protocol import HEADER_AT_MS, HEADER_OCCASION, HEADER_POSITION

PREFIX_BYTES = 5
_HASHED = re.compile(r"[0-9a-f]{32}(-[0-9]+)?")
_NUMBERED = re.compile(r"[0-9]{1,19}-[0-9]+")
_DEBEZIUM = ("before", "after", "op", "ts_ms")
_DIFF = ("row", "weight")


class NoResult(ValueError):
    """A record that is none of a result topic's; the text says why."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a value says; texts are JSON."""

    format: str
    op: str | None
    row: str | None
    before: str | None = None
    weight: int | None = None


def result_rows(batches: Iterable[pa.RecordBatch], schemas: Mapping[int, str]) -> Iterator[pa.RecordBatch]:
    """Records (``RECORD_COLUMNS``) to rows (``with_reasons`` of RESULT_SCHEMA).

    schemas: Avro schemas by id, those that the records have; None of them is asked for here.
    """
    schema = with_reasons(RESULT_SCHEMA)
    readers = {number: _AvroReader(text) for number, text in schemas.items()}
    for records in batches:
        rows, bad, reasons = [], [], []
        beats, no_beats = heartbeats_of(records)
        for place, record in enumerate(records.to_pylist()):
            if place in beats:
                continue
            try:
                if place in no_beats:
                    raise NoResult(no_beats[place])
                rows.append(_row(record, readers))
            except NoResult as reason:
                bad.append(place)
                reasons.append(str(reason))
        good = pa.Table.from_pylist(rows, RESULT_SCHEMA)
        wrong = refusals(records, np.array(bad, np.int64), reasons)
        whole = pa.concat_tables([good, wrong], promote_options="default")
        yield from whole.select(schema.names).cast(schema).to_batches()


def avro_id(data: bytes | None) -> int | None:
    """The id of the schema that a key or value in Avro begins with; None where it is no Avro."""
    if (
        data is None
        or len(data) <= PREFIX_BYTES
        or data[0] != 0
        or data[PREFIX_BYTES : PREFIX_BYTES + 1] == b"{"
    ):
        return None
    return int.from_bytes(data[1:PREFIX_BYTES], "big")


def _row(record: Mapping[str, Any], readers: Mapping[int, _AvroReader]) -> dict[str, Any]:
    key, value = record["key"], record["value"]
    query_id, kind, what = _key(key, readers)
    if value is None:
        if kind != "row":
            raise NoResult("a null value, whose key is not of a row")
        told = _Told("upsert", "d", None)
    else:
        told = _value(value, kind, readers)
    headers = {one["key"]: one["value"] for one in record["headers"] or ()}
    position = _text(headers.get(HEADER_POSITION))
    at_ms = _text(headers.get(HEADER_AT_MS))
    return {
        PARTITION: record["partition"],
        OFFSET: record["offset"],
        TIMESTAMP: record["at_ms"],
        DATE: datetime.date(1970, 1, 1) + datetime.timedelta(days=record["at_ms"] // DAY_MS),
        "query_id": query_id,
        "format": told.format,
        "encoding": _encoding(key),
        "kind": kind,
        "op": told.op,
        "key": what,
        "row": told.row,
        "before": told.before,
        "weight": told.weight,
        "position": position,
        "sequence": _number(position.rpartition("-")[2]) if position else None,
        "at_ms": _number(at_ms),
        "occasion": _text(headers.get(HEADER_OCCASION)),
        "raw_key": key,
        "raw_value": value,
    }


def _encoding(key: bytes) -> str:
    if avro_id(key) is not None:
        return "avro"
    return "json_schema" if key[:1] == b"\0" else "json"


def _key(key: bytes | None, readers: Mapping[int, _AvroReader]) -> tuple[str, str, str]:
    """The query's id; row or log; what else the key says, as JSON."""
    members = _members(key, readers, "key") if key is not None else {}
    query_id, row = members.get("query"), members.get("row")
    if isinstance(query_id, str) and len(members) == 2:
        if isinstance(members.get("key"), dict):
            return query_id, "row", _json(members["key"])
        if isinstance(row, str) and _HASHED.fullmatch(row):
            return query_id, "row", _json(row)
        if isinstance(row, str) and _NUMBERED.fullmatch(row):
            return query_id, "log", _json(row)
    raise NoResult("the key is not that of a result")


def _value(value: bytes, kind: str, readers: Mapping[int, _AvroReader]) -> _Told:
    members = _members(value, readers, "value")
    names = tuple(members)
    if names == _DEBEZIUM and (isinstance(members["before"], dict) or isinstance(members["after"], dict)):
        before, after = (None if members[one] is None else _json(members[one]) for one in ("before", "after"))
        return _Told("debezium", str(members["op"]), after, before)
    if names == _DIFF and isinstance(members["row"], dict):
        weight = members["weight"]
        if weight not in (1, -1):
            raise NoResult("the weight is not 1 or -1")
        return _Told("diff", "c" if weight > 0 else "d", _json(members["row"]), None, weight)
    if any(isinstance(member, dict) for member in members.values()):
        raise NoResult("the value is of no format that results have")
    return _Told("upsert", "u" if kind == "row" else None, _json(members))


def _members(data: bytes, readers: Mapping[int, _AvroReader], what: str) -> dict[str, Any]:
    """A key or value as JSON has it."""
    number = avro_id(data)
    if number is not None:
        if number not in readers:
            raise NoResult(f"the {what} has the schema {number}, which the registry does not know")
        return readers[number].read(data, what)
    try:
        found = orjson.loads(data[PREFIX_BYTES:] if data[:1] == b"\0" else data)
    except orjson.JSONDecodeError as error:
        raise NoResult(f"the {what} is not JSON: {error.msg}") from None
    if not isinstance(found, dict):
        raise NoResult(f"the {what} is not a JSON object")
    return found


class _AvroReader:
    """Reads what was written with one schema, as the JSON of the other encodings."""

    def __init__(self, text: str) -> None:
        told = json.loads(text)
        self._schema = fastavro.parse_schema(told)
        self._names: dict[str, str] = dict(_renamed(told))

    def read(self, data: bytes, what: str) -> dict[str, Any]:
        try:
            found = fastavro.schemaless_reader(io.BytesIO(data[PREFIX_BYTES:]), self._schema, None)
            return self._plain(found)  # type: ignore[no-any-return]
        except (ValueError, EOFError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise NoResult(f"the {what} is not Avro of its schema: {error}") from None

    def _plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._names.get(name, name): self._plain(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._plain(one) for one in value]
        if isinstance(value, datetime.datetime):
            return value.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, float) and not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value


def _renamed(schema: Any) -> Iterator[tuple[str, str]]:
    """Avro's names of columns whose own name stands in ``doc``."""
    if isinstance(schema, list):
        for one in schema:
            yield from _renamed(one)
    elif isinstance(schema, dict):
        for field in schema.get("fields", ()):
            if "doc" in field:
                yield field["name"], field["doc"]
            yield from _renamed(field["type"])


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,18}", text) else None
