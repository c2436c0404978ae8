"""Records with columns in their keys: the key of a table's record holds its key columns, that of a stream's
those that say KEY, the value the others.

The key is JSON as well, in one of these forms, read by the types of the key columns as :mod:`topics.codec`
has it::

    7    "N123"             the value, of one key column
    N123                    of one STRING column also bare text that does not begin with " { or [
    ["N123", 7]             the values in the order of PRIMARY KEY
    {"tail": "N123", "leg": 7}      by name; other members are passed over

The value is an object as without a key; members named like key columns are passed over. NULL is no key of a
table, whose records delete by a null value; in a stream the columns of such a key are NULL. The instant of a
table's row is its timestamp column, or the log's timestamp in arrival time; that of a deletion, which has no
columns, is the timestamp of its record in either case.

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
    """Records of a stream or a table as they were read; messages: for their headers, and for their keys.
    Heartbeats among them give no rows.

    exact: as in :func:`topics.codec.decode`. Raises RegistryUnavailable where they name schemas.
    """
    headers = [message.headers() for message in messages]
    keys = None
    if stream.keyed or any(field.name == "_key" for field in metadata_of(stream)):
        keys = [message.key() for message in messages]
    written = Written(values, partition, offset, append_ms, keys, headers)
    return decode_records(stream, written, heartbeats(headers), exact=exact)


def decode_records(
    stream: Stream, written: Written, told: Heartbeats = NO_HEARTBEATS, *, exact: bool = False
) -> Decoded:
    """Records of a stream or of a table; with columns in their keys these are known. told: which of them are
    heartbeats. exact: as in :func:`topics.codec.decode`. Raises RegistryUnavailable where they name schemas.
    """
    found, refused = told
    given: list[bytes | None] = list(written.values)
    if found or refused:
        given = [None if place in found or place in refused else one for place, one in enumerate(given)]
    texts = with_metadata(stream, texts_of(stream, given), written)
    left_out, unknown = {**texts.bad, **refused}, texts.unknown
    tombstones: frozenset[int] = frozenset()
    if stream.format.changelog:
        nulls = {place for place, text in enumerate(texts.values) if text is None}
        tombstones = frozenset(nulls - found.keys() - left_out.keys())
    keys = written.keys if stream.keyed else None
    if keys is not None:
        told_keys = keys_of(stream, keys)
        keys, unknown = told_keys.values, unknown | told_keys.unknown
        bad_keys = {place: f"key: {reason}" for place, reason in told_keys.bad.items()}
        left_out = {place: reason for place, reason in bad_keys.items() if place not in tombstones} | left_out
    partition, offset, append_ms = (
        np.asarray(one) for one in (written.partition, written.offset, written.append_ms)
    )
    if not found and not left_out and not unknown and not tombstones:
        return _decoded(stream, keys, texts.values, partition, offset, append_ms, exact)
    rows = np.delete(np.arange(len(given)), [*found, *left_out, *tombstones])
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
    return Decoded(decoded.batch, reasons, found, unknown, tombstones)


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
    return decode_keyed(stream, keys, values, partition, offset, append_ms, exact=exact)


def decode_keyed(
    source: Stream,
    keys: Sequence[bytes | None],
    values: Sequence[bytes | None],
    partition: npt.ArrayLike,
    offset: npt.ArrayLike,
    append_ms: npt.ArrayLike,
    *,
    exact: bool = False,
) -> Decoded:
    """Records of a stream to rows, of a table to its versions, of ``stored_schema``. Never raises for data.
    exact: as in :func:`topics.codec.decode`.
    """
    names, is_table = source.keyed, source.is_table
    key_part, value_part = _parts(source)
    objects, bad = _objects(source, keys)
    aside = frozenset(field.name for field in value_part.schema)
    key_pieces, bad_keys = read(key_part, objects, aside, exact=exact)
    for one in bad_keys:
        bad.setdefault(one.place, f"key: {one.reason}")
    live = np.array([place for place, value in enumerate(values) if value is not None], np.int64)
    if not is_table:
        bad |= {place: "the value is null" for place, value in enumerate(values) if value is None}
    given = [value for value in values if value is not None]
    value_pieces, bad_values = read(value_part, given, frozenset(names), exact=exact)
    for one in bad_values:
        bad.setdefault(int(live[one.place]), one.reason)
    good = np.ones(len(values), np.bool_)
    good[list(bad)] = False
    places = np.flatnonzero(good)
    deleted = np.ones(len(values), np.bool_)
    deleted[live] = False
    found = _columns(key_part.schema, key_pieces, places)
    found |= _columns(value_part.schema, [(live[rows], columns) for rows, columns in value_pieces], places)
    columns = tuple(found[field.name] for field in source.schema)
    timestamp = np.asarray(append_ms, np.int64)[places]
    if source.timestamp_column is not None:
        logged = timestamp
        timestamp = np.where(deleted[places], logged, found[source.timestamp_column].values)
        refused = [] if exact else implausible(source, timestamp, logged)
        if refused:
            bad |= {int(places[row]): reason for row, reason in refused}
            kept = np.delete(np.arange(len(places)), [row for row, _ in refused])
            places, timestamp = places[kept], timestamp[kept]
            columns = tuple(column.take(kept) for column in columns)
    batch = Batch(
        source.schema,
        columns,
        np.asarray(partition, np.int32)[places],
        np.asarray(offset, np.int64)[places],
        timestamp,
    )
    reasons = tuple(Bad(place, bad[place]) for place in sorted(bad))
    return Decoded(versions(source, batch, deleted[places]) if is_table else batch, reasons)


def _parts(source: Stream) -> tuple[Stream, Stream]:
    """The columns of keys and those of values, as streams of their own."""
    names, timestamp = source.keyed, source.timestamp_column
    keyed = [field for field in source.schema if field.name in names]
    others = [field for field in source.schema if field.name not in names]
    required = {one.name for one in keyed if source.is_table or not one.nullable or one.name == timestamp}
    schema = Schema(tuple(replace(one, nullable=one.name not in required) for one in keyed))
    own_time = timestamp if timestamp not in names else None
    return (
        replace(source, schema=schema, timestamp_column=None, key=()),
        replace(source, schema=Schema(tuple(others)), timestamp_column=own_time, key=()),
    )


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


def _objects(source: Stream, keys: Sequence[bytes | None]) -> tuple[list[bytes], dict[int, str]]:
    """Each key as a JSON object of the key columns; and of those that are none of its forms, why."""
    keyed = source.keyed
    names = [orjson.dumps(name) for name in keyed]
    place_of_text = source.schema.index(keyed[0]) if len(names) == 1 else None
    takes_text = place_of_text is not None and source.schema.fields[place_of_text].type.kind is Kind.STRING
    forms = "the value, an array or an object" if len(names) == 1 else "an array or an object"
    objects, bad = [], {}
    for place, key in enumerate(keys):
        made: bytes | None = None
        if key is None:
            if source.is_table:
                bad[place] = "a record of a table needs a key"
        elif key.lstrip()[:1] == b"{":
            made = key
        elif len(names) == 1 and takes_text and key.lstrip()[:1] not in (b'"', b"["):
            try:
                made = orjson.dumps({keyed[0]: key.decode("utf-8")})
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
            bad[place] = f"key: expected {forms} of {', '.join(keyed)}, as JSON"
        objects.append(b"{}" if made is None else made)
    return objects, bad
