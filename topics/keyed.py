"""Records of tables: the message key holds the key columns, the value the others, a null value deletes.

The key is JSON as well, in one of these forms, read by the types of the key columns as :mod:`topics.codec`
has it::

    7    "N123"             the value, of a table with one key column
    N123                    of one STRING column also bare text that does not begin with " { or [
    ["N123", 7]             the values in the order of PRIMARY KEY
    {"tail": "N123", "leg": 7}      by name; other members are passed over

NULL is no key. The value is an object as that of a stream's record; members named like key columns are
passed over. A row's instant is its timestamp column, or the log's timestamp in arrival time; that of a
deletion, which has no columns, is the timestamp of its record in either case.

Cost: about 0.5 us a record more than for a stream.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from engine.model.batch import Batch, Column, Int64Array, concatenate_columns, versions
from engine.model.source import Schema, Stream
from engine.model.types import Kind, Type
from topics.codec import Bad, Decoded, Piece, decode, read
from topics.event_times import implausible
from topics.formats.metadata import Written, metadata_of, with_metadata
from topics.formats.table import keys_of, texts_of
from topics.in_band import NO_HEARTBEATS, Heartbeats, heartbeats

_SCALAR = rb'"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|true|false|null'
_ONE = re.compile(rb"\s*(?:" + _SCALAR + rb")\s*", re.DOTALL)
_LIST = re.compile(rb"\s*\[\s*(?:" + _SCALAR + rb")(?:\s*,\s*(?:" + _SCALAR + rb"))*\s*\]\s*", re.DOTALL)
_EACH = re.compile(_SCALAR, re.DOTALL)


def decode_messages(
    stream: Stream,
    messages: Sequence[Any],
    values: Sequence[bytes | None],
    partition: npt.ArrayLike,
    offset: npt.ArrayLike,
    append_ms: npt.ArrayLike,
    *,
    exact: bool = False,
) -> Decoded:
    """Records of a stream or a table as they were read; messages: for their headers, and for their keys,
    which only tables have. Heartbeats among them give no rows.

    exact: as in :func:`topics.codec.decode`. Raises RegistryUnavailable where they name schemas.
    """
    headers = [message.headers() for message in messages]
    keys = None
    if stream.is_table or any(field.name == "_key" for field in metadata_of(stream)):
        keys = [message.key() for message in messages]
    written = Written(values, partition, offset, append_ms, keys, headers)
    return decode_records(stream, written, heartbeats(headers), exact=exact)


def decode_records(
    stream: Stream, written: Written, told: Heartbeats = NO_HEARTBEATS, *, exact: bool = False
) -> Decoded:
    """Records of a stream or of a table, whose keys are known. told: which of them are heartbeats. exact: as
    in :func:`topics.codec.decode`. Raises RegistryUnavailable where they name schemas.
    """
    found, refused = told
    given: list[bytes | None] = list(written.values)
    if found or refused:
        given = [None if place in found or place in refused else one for place, one in enumerate(given)]
    texts = with_metadata(stream, texts_of(stream, given), written)
    left_out, unknown = {**texts.bad, **refused}, texts.unknown
    keys = written.keys if stream.is_table else None
    if keys is not None:
        told_keys = keys_of(stream, keys)
        keys, unknown = told_keys.values, unknown | told_keys.unknown
        left_out = {place: f"key: {reason}" for place, reason in told_keys.bad.items()} | left_out
    partition, offset, append_ms = (
        np.asarray(one) for one in (written.partition, written.offset, written.append_ms)
    )
    if not found and not left_out and not unknown:
        return _decoded(stream, keys, texts.values, partition, offset, append_ms, exact)
    rows = np.delete(np.arange(len(given)), [*found, *left_out])
    decoded = _decoded(
        stream,
        None if keys is None else [keys[place] for place in rows.tolist()],
        [texts.values[place] for place in rows.tolist()],
        partition[rows],
        offset[rows],
        append_ms[rows],
        exact,
    )
    bad = [Bad(int(rows[one.place]), one.reason) for one in decoded.bad]
    bad += [Bad(place, reason) for place, reason in left_out.items()]
    reasons = tuple(sorted(bad, key=lambda one: one.place))
    return Decoded(decoded.batch, reasons, found, unknown)


def _decoded(
    stream: Stream,
    keys: Sequence[bytes | None] | None,
    values: Sequence[bytes | None],
    partition: npt.ArrayLike,
    offset: npt.ArrayLike,
    append_ms: npt.ArrayLike,
    exact: bool,
) -> Decoded:
    if keys is None:
        return decode(stream, values, partition, offset, append_ms, exact=exact)
    return decode_table(stream, keys, values, partition, offset, append_ms, exact=exact)


def decode_table(
    table: Stream,
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    partition: npt.ArrayLike,
    offset: npt.ArrayLike,
    append_ms: npt.ArrayLike,
    *,
    exact: bool = False,
) -> Decoded:
    """Records of a table to its versions, of ``stored_schema``. Never raises for data. exact: as in
    :func:`topics.codec.decode`.
    """
    keyed = [field for field in table.schema if field.name in table.key]
    others = [field for field in table.schema if field.name not in table.key]
    key_part = replace(
        table,
        schema=Schema(tuple(replace(field, nullable=False) for field in keyed)),
        timestamp_column=None,
        key=(),
    )
    own_time = table.timestamp_column if table.timestamp_column not in table.key else None
    value_part = replace(table, schema=Schema(tuple(others)), timestamp_column=own_time, key=())
    objects, bad = _objects(table, keys)
    key_pieces, bad_keys = read(key_part, objects, frozenset(field.name for field in others), exact=exact)
    for one in bad_keys:
        bad.setdefault(one.place, f"key: {one.reason}")
    live = np.array([place for place, value in enumerate(values) if value is not None], np.int64)
    given = [value for value in values if value is not None]
    value_pieces, bad_values = read(value_part, given, frozenset(table.key), exact=exact)
    for one in bad_values:
        bad.setdefault(int(live[one.place]), one.reason)
    good = np.ones(len(values), np.bool_)
    good[list(bad)] = False
    places = np.flatnonzero(good)
    deleted = np.ones(len(values), np.bool_)
    deleted[live] = False
    found = _columns(key_part.schema, key_pieces, places)
    found |= _columns(value_part.schema, [(live[rows], columns) for rows, columns in value_pieces], places)
    columns = tuple(found[field.name] for field in table.schema)
    timestamp = np.asarray(append_ms, np.int64)[places]
    if table.timestamp_column is not None:
        logged = timestamp
        timestamp = np.where(deleted[places], logged, found[table.timestamp_column].values)
        refused = [] if exact else implausible(table, timestamp, logged)
        if refused:
            bad |= {int(places[row]): reason for row, reason in refused}
            kept = np.delete(np.arange(len(places)), [row for row, _ in refused])
            places, timestamp = places[kept], timestamp[kept]
            columns = tuple(column.take(kept) for column in columns)
    batch = Batch(
        table.schema,
        columns,
        np.asarray(partition, np.int32)[places],
        np.asarray(offset, np.int64)[places],
        timestamp,
    )
    reasons = tuple(Bad(place, bad[place]) for place in sorted(bad))
    return Decoded(versions(table, batch, deleted[places]), reasons)


def _columns(schema: Schema, pieces: Sequence[Piece], wanted: Int64Array) -> dict[str, Column]:
    """Columns of the records at these places by name, NULL at places that no piece has."""
    have = np.concatenate([places for places, _ in pieces]) if pieces else np.empty(0, np.int64)
    found = {}
    for place, field in enumerate(schema):
        if not len(have):
            found[field.name] = _nulls(field.type, len(wanted))
            continue
        column = concatenate_columns(field.type, [columns[place] for _, columns in pieces])
        at = np.minimum(have.searchsorted(wanted), len(have) - 1)
        taken = column.take(at)
        missing = have[at] != wanted
        if missing.any():
            valid = ~missing if taken.valid is None else taken.valid & ~missing
            taken = Column(field.type, taken.values, valid, taken.strings)
        found[field.name] = taken
    return found


def _nulls(type_: Type, n: int) -> Column:
    texts = pa.array([], pa.string()) if type_.kind is Kind.STRING else None
    return Column(type_, np.zeros(n, type_.dtype), np.zeros(n, np.bool_), texts)


def _objects(table: Stream, keys: Sequence[bytes | None]) -> tuple[list[bytes], dict[int, str]]:
    """Each key as a JSON object of the key columns; and of those that are none of its forms, why."""
    names = [orjson.dumps(name) for name in table.key]
    place_of_text = table.schema.index(table.key[0]) if len(names) == 1 else None
    takes_text = place_of_text is not None and table.schema.fields[place_of_text].type.kind is Kind.STRING
    forms = "the value, an array or an object" if len(names) == 1 else "an array or an object"
    objects, bad = [], {}
    for place, key in enumerate(keys):
        made: bytes | None = None
        if key is None:
            bad[place] = "a record of a table needs a key"
        elif key.lstrip()[:1] == b"{":
            made = key
        elif len(names) == 1 and takes_text and key.lstrip()[:1] not in (b'"', b"["):
            try:
                made = orjson.dumps({table.key[0]: key.decode("utf-8")})
            except UnicodeDecodeError:
                bad[place] = "key: not UTF-8"
        elif len(names) == 1 and _ONE.fullmatch(key):
            made = b"{" + names[0] + b":" + key + b"}"
        elif _LIST.fullmatch(key):
            given = _EACH.findall(key)
            if len(given) == len(names):
                made = b"{" + b",".join(n + b":" + one for n, one in zip(names, given, strict=True)) + b"}"
            else:
                bad[place] = f"key: {len(given)} values for {len(names)} key columns"
        else:
            bad[place] = f"key: expected {forms} of {', '.join(table.key)}, as JSON"
        objects.append(b"{}" if made is None else made)
    return objects, bad
