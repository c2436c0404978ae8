"""Keys and values of result records as bytes: JSON, JSON with a schema, Avro; :mod:`topics.results_protobuf`
has Protobuf.

Those with a schema begin with its id (:mod:`topics.registry`). What the JSON of a value looks like is
said in :mod:`topics.json_rows`, what its schemas are in :mod:`topics.results_schema`.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fastavro
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.batch import Int32Array, Int64Array
from engine.model.changes import Weights
from topics.json_rows import json_objects
from topics.registry import wire_prefix
from topics.results_schema import ResultSchemas, field_names

HASH_DIGITS = 32


@dataclass(frozen=True, slots=True)
class EncodedChanges:
    """n records. rows: the row that gives each its key, ascending; at_ms: when. before, after: places of the
    rows that went and that came, -1 for none; None: of no record. weights: of a diff, one a record.
    """

    rows: Int64Array
    at_ms: Int64Array
    before: Int64Array | None = None
    after: Int64Array | None = None
    weights: Weights | None = None
    snapshot: bool = False

    def operations(self) -> pa.StringArray:
        """What Debezium calls each: c, u, d, or r where it is of a snapshot."""
        assert self.before is not None
        assert self.after is not None
        chosen = np.where(self.after < 0, 0, np.where(self.before < 0, 1, 2))
        return pa.array(["d", "r" if self.snapshot else "c", "u"]).take(pa.array(chosen))


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of n records. query_ids: the queries that have some. places: int32[n], into query_ids."""

    query_ids: Sequence[str]
    places: Int32Array

    @classmethod
    def of(cls, query_ids: Sequence[str], places: Int64Array) -> Owners:
        """places: into all query_ids."""
        if len(query_ids) == 1 and len(places):
            return cls(list(query_ids), np.zeros(len(places), np.int32))
        used = np.zeros(len(query_ids), np.bool_)
        used[places] = True
        numbers = np.cumsum(used, dtype=np.int32) - 1
        return cls([query_ids[place] for place in np.flatnonzero(used).tolist()], numbers[places])

    def each(self, of_queries: Sequence[str]) -> pa.StringArray:
        """string[n]: what each record has of its query."""
        return pa.array(of_queries, pa.string()).take(pa.array(self.places))


class Rows(Protocol):
    """Rows of changes, and their JSON."""

    table: pa.Table

    def json(self, rows: Int64Array) -> pa.LargeBinaryArray: ...


class Codec(Protocol):
    """What writes keys and values."""

    def keys(
        self, owners: Owners, columns: pa.Table | None, texts: pa.StringArray | None
    ) -> pa.LargeBinaryArray:
        """One a record; of ``columns`` and ``texts`` one is given."""

    def values(self, form: str, told: EncodedChanges, rows: Rows) -> pa.LargeBinaryArray:
        """One a record, NULL for a deletion."""


class JsonCodec:
    """JSON; with a schema, where the prefixes of its wire format are given."""

    def __init__(self, key_id: int | None = None, value_id: int | None = None) -> None:
        self.key_prefix = b"" if key_id is None else wire_prefix(key_id)
        self.value_prefix = b"" if value_id is None else wire_prefix(value_id)

    def keys(
        self, owners: Owners, columns: pa.Table | None, texts: pa.StringArray | None
    ) -> pa.LargeBinaryArray:
        prefix = self.key_prefix
        member = ',"key":{' if columns is not None else ',"row":"'
        heads = owners.each([f'{{"query":{orjson.dumps(one).decode()}{member}' for one in owners.query_ids])
        if columns is None:
            assert texts is not None
            return _joined(prefix, heads.cast(pa.binary()), texts.cast(pa.binary()), b'"}')
        # A table without columns does not know how many rows it has.
        if not columns.num_columns:
            return _joined(prefix, heads.cast(pa.binary()), b"}}")
        found = json_objects(columns, heads, "}}")
        return _joined(prefix, found) if prefix else found

    def values(self, form: str, told: EncodedChanges, rows: Rows) -> pa.LargeBinaryArray:
        prefix = self.value_prefix
        if form == "diff":
            weights = told.weights
            assert weights is not None
            ends = pa.array([b',"weight":-1}', b',"weight":1}']).take(pa.array(np.where(weights > 0, 1, 0)))
            return _joined(prefix + b'{"row":', rows.json(told.rows), ends)
        after = _placed(rows, told.after)
        if form == "upsert":
            return _joined(prefix, after) if prefix else after
        before = _placed(rows, told.before)
        return _joined(
            prefix + b'{"before":',
            before.fill_null(b"null"),
            b',"after":',
            after.fill_null(b"null"),
            b',"op":"',
            told.operations().cast(pa.binary()),
            b'","ts_ms":',
            pc.cast(pa.array(told.at_ms), pa.string()).cast(pa.binary()),
            b"}",
        )


def _joined(*pieces: bytes | pa.Array) -> pa.LargeBinaryArray:
    """One after the other, for each record; NULL where one of them is."""
    large = pa.large_binary()
    told = [pa.scalar(one, large) if isinstance(one, bytes) else one.cast(large) for one in pieces]
    return pc.binary_join_element_wise(*told, pa.scalar(b"", large))


def _placed(rows: Rows, places: Int64Array | None) -> pa.LargeBinaryArray:
    """The JSON of a row for each place, NULL for -1."""
    assert places is not None
    there = places >= 0
    if there.all():
        return rows.json(places)
    found = rows.json(places[there])
    return found.take(pa.array(np.cumsum(there) - 1, mask=~there))


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
        self, owners: Owners, columns: pa.Table | None, texts: pa.StringArray | None
    ) -> pa.LargeBinaryArray:
        data = key_data(owners, columns, texts, self._key_names)
        return pa.array([_written(self._key, self._key_schema, one) for one in data], pa.large_binary())

    def values(self, form: str, told: EncodedChanges, rows: Rows) -> pa.LargeBinaryArray:
        return pa.array(
            [
                None if one is None else _written(self._value, self._value_schema, one)
                for one in value_data(form, told, rows.table, self._names)
            ],
            pa.large_binary(),
        )


def key_data(
    owners: Owners, columns: pa.Table | None, texts: pa.StringArray | None, names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The key of each record, as its schema has it. names: of the fields of a key's columns."""
    query_ids = owners.each(owners.query_ids).to_pylist()
    given: list[Any]
    if columns is not None:
        member = "key"
        given = row_dicts(columns, names) if names else [{}] * len(query_ids)
    else:
        assert texts is not None
        member, given = "row", texts.to_pylist()
    return ({"query": one, member: held} for one, held in zip(query_ids, given, strict=True))


def value_data(
    form: str, told: EncodedChanges, table: pa.Table, names: Sequence[str]
) -> Iterator[dict[str, Any] | None]:
    """The value of each record, as its schema has it; None: it deletes. names: of the fields of a row."""
    found = row_dicts(table, names)

    def placed(places: Int64Array | None) -> list[dict[str, Any] | None]:
        assert places is not None
        return [found[row] if row >= 0 else None for row in places.tolist()]

    if form == "diff":
        assert told.weights is not None
        weighed = zip(told.rows.tolist(), told.weights.tolist(), strict=True)
        yield from ({"row": found[row], "weight": weight} for row, weight in weighed)
        return
    after = placed(told.after)
    if form == "upsert":
        yield from after
        return
    operations, instants = told.operations().to_pylist(), told.at_ms.tolist()
    for old, new, operation, at_ms in zip(placed(told.before), after, operations, instants, strict=True):
        yield {"before": old, "after": new, "op": operation, "ts_ms": at_ms}


def row_dicts(table: pa.Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows as Avro and Protobuf take them: days and ms for dates and timestamps, Decimals, lists."""
    columns = [_plain(column) for column in table.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _plain(column: pa.ChunkedArray) -> list[Any]:
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_map(array.type):
        there = array.is_valid().to_pylist()
        kept = array.filter(array.is_valid())  # its keys and items have no offset
        pairs = list(zip(kept.keys.to_pylist(), _plain(kept.items), strict=True))
        cuts = iter(itertools.pairwise(kept.offsets.to_pylist()))
        return [dict(pairs[slice(*next(cuts))]) if one else None for one in there]
    if pa.types.is_struct(array.type):
        names = field_names(field.name for field in array.type)
        rows = zip(*map(_plain, array.flatten()), strict=True)
        there = array.is_valid().to_pylist()
        made = [dict(zip(names, row, strict=True)) for row in rows]
        return [one if valid else None for valid, one in zip(there, made, strict=True)]
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
