"""The table of formats: what reads the records of a stream or a table, by the format that it declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from engine.model.record_format import FormatName, KeyFormat, RecordFormat
from engine.model.source import Field, Stream
from engine.model.types import JSON, Logical
from topics.codec import RECORD_BYTES_MAX
from topics.formats.avro import AvroReader
from topics.formats.avro_program import Wanted
from topics.formats.csv import Csv
from topics.formats.debezium import Debezium
from topics.formats.metadata import metadata_of
from topics.formats.protobuf import FramedProtobuf, ProtobufReader
from topics.formats.protobuf_schema import message_named
from topics.formats.protobuf_schema import parse_schema as parse_protobuf
from topics.formats.raw import Raw
from topics.formats.schemas import schemas
from topics.formats.texts import Format, Refusing, Texts
from topics.formats.unreadable import UnreadableSchema
from topics.formats.wire import Headless, Reader, WireFormat, ids_of
from topics.members import folded
from topics.registry import HEAD_BYTES, Registered, SchemaKind

Fields = tuple[Field, ...]
"""The columns that values hold: all but those of the key."""


def _raw(_: RecordFormat, fields: Fields) -> Format:
    (column,) = fields
    return Raw(column.name, is_text=column.type.logical is not Logical.BYTES)


def _avro(written: RecordFormat, fields: Fields) -> Format:
    wanted = _wanted(fields)
    if not written.is_framed:
        assert written.schema is not None
        try:
            return AvroReader(written.schema, wanted=wanted)
        except UnreadableSchema as refused:
            return Refusing(f"the schema of the statement cannot be read: {refused}")
    return WireFormat({"AVRO": lambda one: _of_avro(one, written.schema, wanted)})


def _json_schema(written: RecordFormat, fields: Fields) -> Format:
    return WireFormat({"JSON": lambda _: Headless()})


def _protobuf(written: RecordFormat, fields: Fields) -> Format:
    wanted = _wanted(fields)
    if written.schema is None:
        return WireFormat({"PROTOBUF": lambda one: _of_protobuf(one, wanted)})
    try:
        return ProtobufReader(message_named(parse_protobuf(written.schema), written.message), wanted)
    except UnreadableSchema as refused:
        return Refusing(f"the schema of the statement cannot be read: {refused}")


def _debezium(written: RecordFormat, fields: Fields) -> Format:
    return Debezium(whole_reader(), fields, written.changelog)


def whole_reader() -> Format:
    """What reads framed records, all that they have."""
    return WireFormat(_WHOLE)


def reader_of(written: RecordFormat) -> Format:
    """What reads Avro or Protobuf as a statement says it is written, all that records have."""
    return _FORMATS[written.value](written, (Field("", JSON, path=()),))


def _of_avro(registered: Registered, reader: str | None, wanted: Wanted) -> Format:
    references = [text for _, text in registered.references]
    return AvroReader(registered.text, references, reader, wanted, HEAD_BYTES)


def _of_protobuf(registered: Registered, wanted: Wanted) -> Format:
    return FramedProtobuf(parse_protobuf(registered.text, dict(registered.references)), wanted)


_WHOLE: Mapping[SchemaKind, Reader] = {
    "AVRO": lambda one: _of_avro(one, None, lambda _: True),
    "JSON": lambda _: Headless(),
    "PROTOBUF": lambda one: _of_protobuf(one, lambda _: True),
}
"""What reads all that records have, by the kind of their schema."""
KINDS: Mapping[SchemaKind, KeyFormat] = {"AVRO": "avro", "JSON": "json-schema", "PROTOBUF": "protobuf"}
"""The format that each kind of schema is."""


def _wanted(fields: Fields) -> Wanted:
    """Which members of a record are read, of all that it has."""
    if any(field.path == () for field in fields):
        return lambda _: True
    heads = {str(field.path[0]) if field.path else field.name for field in fields}
    folds = {folded(name) for name in heads}
    return lambda name: folded(name) in folds


_FORMATS: Mapping[FormatName, Callable[[RecordFormat, Fields], Format]] = {
    "csv": lambda written, fields: Csv(fields, written.delimiter),
    "raw": _raw,
    "avro": _avro,
    "json-schema": _json_schema,
    "protobuf": _protobuf,
    "debezium": _debezium,
}
"""What makes each format. JSON needs none: its records are texts."""


@lru_cache(maxsize=256)
def _format_of(written: RecordFormat, fields: Fields) -> Format:
    return _FORMATS[written.value](written, fields)


def texts_of(stream: Stream, values: Sequence[bytes | None]) -> Texts:
    """The values of records as JSON. None stays None. Raises RegistryUnavailable."""
    if stream.format.value == "json":
        return Texts(list(values))
    return read_some(_format_of(stream.format, _fields(stream)), values)


@lru_cache(maxsize=256)
def key_reader(written: RecordFormat, fields: Fields = ()) -> Format | None:
    """What reads keys; None: they are JSON. fields: their columns, as far as they are known."""
    if written.has_framed_keys and written.key is not None:
        return WireFormat({kind: _WHOLE[kind] for kind, name in KINDS.items() if name == written.key})
    if written.key is None and written.value == "debezium":
        return Debezium(whole_reader(), fields, changelog=False, is_key=True)
    return None


def keys_of(stream: Stream, keys: Sequence[bytes | None]) -> Texts:
    """The keys of records as JSON. None stays None. Raises RegistryUnavailable."""
    fields = tuple(field for field in stream.schema if field.name in stream.keyed)
    format_ = key_reader(stream.format, fields)
    return Texts(list(keys)) if format_ is None else read_some(format_, keys)


def refusal_of(stream: Stream) -> str | None:
    """Why no record of a stream can be read, by what its statement says; None: some may be."""
    if stream.format.value == "json":
        return None
    format_ = _format_of(stream.format, _fields(stream))
    return format_.reason if isinstance(format_, Refusing) else None


def missing_schemas(stream: Stream, values: Sequence[bytes | None], messages: Sequence[Any] = ()) -> set[int]:
    """Ids of schemas that have to be asked for before these records can be read. messages: for their keys."""
    return schemas().missing(named_schemas(stream, values, messages))


def named_schemas(stream: Stream, values: Sequence[bytes | None], messages: Sequence[Any]) -> set[int]:
    """Ids of schemas that these records name. messages: for their keys."""
    found = np.unique(ids_of(values)).tolist() if stream.format.is_framed else []
    if stream.keyed and stream.format.has_framed_keys:
        found += np.unique(ids_of([one.key() for one in messages])).tolist()
    return {one for one in found if one >= 0}


def _fields(stream: Stream) -> Fields:
    apart = {*stream.keyed, *(field.name for field in metadata_of(stream))}
    return tuple(field for field in stream.schema if field.name not in apart)


def read_some(format_: Format, values: Sequence[bytes | None]) -> Texts:
    """The texts of those values that are there and not too large."""
    if None not in values and max(map(len, values), default=0) <= RECORD_BYTES_MAX:  # type: ignore[arg-type]
        return format_.texts(values)  # type: ignore[arg-type]
    found: list[bytes | None] = [None] * len(values)
    bad: dict[int, str] = {}
    given: list[tuple[int, bytes]] = []
    for place, value in enumerate(values):
        if value is None:
            continue
        if len(value) > RECORD_BYTES_MAX:
            bad[place] = f"{len(value):,} bytes are more than the {RECORD_BYTES_MAX:,} allowed"
        else:
            given.append((place, value))
    made = format_.texts([value for _, value in given])
    for (place, _), text in zip(given, made.values, strict=True):
        found[place] = text
    bad |= {given[place][0]: reason for place, reason in made.bad.items()}
    return Texts(found, bad, made.unknown)
