"""Keys and values of result records as bytes: JSON, JSON with a schema, Avro.

The two with a schema begin with its id (:mod:`topics.registry`). What the JSON of a value looks like is
said in :mod:`topics.json_rows`, what its schemas are in :mod:`topics.results_schema`.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro
import orjson
import pyarrow as pa

from engine.model.batch import Int64Array
from engine.model.changes import Weights
from topics.json_rows import json_objects
from topics.registry import wire_prefix
from topics.results_schema import ResultSchemas

DIFF_WEIGHT = "weight"


@dataclass(frozen=True, slots=True)
class Told:
    """n records. rows: the row that gives each its key, ascending; at_ms: when. before, after: places of the
    rows that went and that came, -1 for none; None: of no record. weights: of a diff, one a record.
    """

    rows: Int64Array
    at_ms: Int64Array
    before: Int64Array | None = None
    after: Int64Array | None = None
    weights: Weights | None = None
    snapshot: bool = False

    def operations(self) -> list[str]:
        """What Debezium calls each: c, u, d, or r where it is of a snapshot."""
        assert self.before is not None
        assert self.after is not None
        came = "r" if self.snapshot else "c"
        return [
            "d" if after < 0 else came if before < 0 else "u"
            for before, after in zip(self.before.tolist(), self.after.tolist(), strict=True)
        ]


class Rows(Protocol):
    """Rows of changes, and their JSON."""

    table: pa.Table

    def json(self, rows: Int64Array) -> list[bytes]: ...


class Codec(Protocol):
    """What writes keys and values."""

    def keys(
        self, query_ids: Sequence[str], columns: pa.Table | None, texts: Sequence[str] | None
    ) -> list[bytes]:
        """One a record; of ``columns`` and ``texts`` one is given."""

    def values(self, form: str, told: Told, rows: Rows) -> list[bytes | None]:
        """One a record, None for a deletion."""


class JsonCodec:
    """JSON; with a schema, where the prefixes of its wire format are given."""

    def __init__(self, key_id: int | None = None, value_id: int | None = None) -> None:
        self._key = b"" if key_id is None else wire_prefix(key_id)
        self._value = b"" if value_id is None else wire_prefix(value_id)

    def keys(
        self, query_ids: Sequence[str], columns: pa.Table | None, texts: Sequence[str] | None
    ) -> list[bytes]:
        member = b',"key":' if columns is not None else b',"row":"'
        heads = {one: self._key + b'{"query":' + orjson.dumps(one) + member for one in set(query_ids)}
        if columns is not None:
            # A table without columns does not know how many rows it has.
            none = [b"{}}"] * len(query_ids)
            objects = json_objects(columns, end="}}") if columns.num_columns else none
            return [heads[one] + text for one, text in zip(query_ids, objects, strict=True)]
        assert texts is not None
        return [heads[one] + text.encode() + b'"}' for one, text in zip(query_ids, texts, strict=True)]

    def values(self, form: str, told: Told, rows: Rows) -> list[bytes | None]:
        prefix = self._value
        if form == "diff":
            assert told.weights is not None
            ends = {1: b',"weight":1}', -1: b',"weight":-1}'}
            head = prefix + b'{"row":'
            weighed = zip(rows.json(told.rows), told.weights.tolist(), strict=True)
            return [head + text + ends[weight] for text, weight in weighed]
        after = _placed(rows, told.after, len(told.rows))
        if form == "upsert":
            return after if not prefix else [None if text is None else prefix + text for text in after]
        before = _placed(rows, told.before, len(told.rows))
        head, between = prefix + b'{"before":', b',"after":'
        ends_of = {one: b',"op":"' + one.encode() + b'","ts_ms":' for one in "crud"}
        return [
            head + (old or b"null") + between + (new or b"null") + ends_of[operation] + b"%d}" % at_ms
            for old, new, operation, at_ms in zip(
                before, after, told.operations(), told.at_ms.tolist(), strict=True
            )
        ]


def _placed(rows: Rows, places: Int64Array | None, n: int) -> list[bytes | None]:
    """The JSON of a row for each place, None for -1."""
    if places is None:
        return [None] * n
    there = places >= 0
    if there.all():
        return list(rows.json(places)) if n else []
    texts = iter(rows.json(places[there]))
    return [next(texts) if one else None for one in there.tolist()]


class AvroCodec:
    """Avro; ``schemas`` stand in the registry under these ids."""

    def __init__(self, schemas: ResultSchemas, key_id: int, value_id: int) -> None:
        self._names = schemas.fields
        self._key_names = schemas.key_fields
        self._key_schema = fastavro.parse_schema(schemas.avro_key())
        self._value_schema = fastavro.parse_schema(schemas.avro_value())
        self._key = wire_prefix(key_id)
        self._value = wire_prefix(value_id)

    def keys(
        self, query_ids: Sequence[str], columns: pa.Table | None, texts: Sequence[str] | None
    ) -> list[bytes]:
        told: Iterable[dict[str, Any]]
        if columns is not None:
            keyed = _records(columns, self._key_names) if self._key_names else [{}] * len(query_ids)
            told = ({"query": one, "key": key} for one, key in zip(query_ids, keyed, strict=True))
        else:
            assert texts is not None
            told = ({"query": one, "row": text} for one, text in zip(query_ids, texts, strict=True))
        return [_written(self._key, self._key_schema, one) for one in told]

    def values(self, form: str, told: Told, rows: Rows) -> list[bytes | None]:
        table, prefix, schema = rows.table, self._value, self._value_schema
        found = _records(table, self._names)
        if form == "diff":
            assert told.weights is not None
            weighed = zip(told.rows.tolist(), told.weights.tolist(), strict=True)
            return [
                _written(prefix, schema, {"row": found[row], "weight": weight}) for row, weight in weighed
            ]
        assert told.after is not None
        after = [found[row] if row >= 0 else None for row in told.after.tolist()]
        if form == "upsert":
            return [None if row is None else _written(prefix, schema, row) for row in after]
        assert told.before is not None
        before = [found[row] if row >= 0 else None for row in told.before.tolist()]
        return [
            _written(prefix, schema, {"before": old, "after": new, "op": operation, "ts_ms": at_ms})
            for old, new, operation, at_ms in zip(
                before, after, told.operations(), told.at_ms.tolist(), strict=True
            )
        ]


def _records(table: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows as Avro takes them: days and ms for dates and timestamps, Decimals, lists."""
    columns = [_plain(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_list(array.type):
        elements, ends = _plain(array.flatten()), [0]
        for length in pa.compute.fill_null(pa.compute.list_value_length(array), 0).to_pylist():
            ends.append(ends[-1] + length)
        there = array.is_valid().to_pylist()
        return [elements[ends[i] : ends[i + 1]] if there[i] else None for i in range(len(array))]
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif pa.types.is_date(array.type):
        array = array.view(pa.int32())
    values: list[Any] = array.to_pylist()
    return values


def _written(prefix: bytes, schema: Any, datum: Any) -> bytes:
    buffer = io.BytesIO()
    buffer.write(prefix)
    fastavro.schemaless_writer(buffer, schema, datum)
    return buffer.getvalue()
