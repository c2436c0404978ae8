"""Which format the records of a sample are in, and what they are as JSON.

Records that most begin as the wire format of a registry does are what their schema's kind says, where the
registry knows it. Most objects that have an op and a row, alone or as payload beside a schema, are change
events of Debezium. What begins as an object is JSON, and others are lines of CSV or raw
(:mod:`topics.formats.plain_detection`). Of compacted topics and of change events keys are looked at as well.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import orjson

from engine.model.record_format import FRAMED, USUAL, FormatName, RecordFormat
from engine.model.source import Field
from engine.model.types import STRING, TIMESTAMP
from topics.formats.debezium import Debezium
from topics.formats.plain_detection import are_objects, csv_lines
from topics.formats.protobuf import first_indexes
from topics.formats.schema_columns import Declared, connect_columns, declared_columns
from topics.formats.schemas import schemas
from topics.formats.table import KINDS, key_reader, read_some, reader_of, whole_reader
from topics.formats.texts import Format, Texts
from topics.formats.wire import ids_of
from topics.inferred_columns import Sampled
from topics.registry import HEAD_BYTES, Registered, SchemaKind
from tureen.errors import RegistryUnavailable

_OPS = ("c", "r", "u", "d", "t")
_OF_CHANGES = (Field("_op", STRING), Field("_source_ts", TIMESTAMP))
"""Columns that a stream of changes has besides those of its rows."""


@dataclass(frozen=True, slots=True)
class Detected:
    """What was found.

    format: of the records. records: with keys and values as JSON; what cannot be read is as it was. events:
    they are change events, of a table where they have keys. declared: the columns that a schema tells.
    guessed: what of the format is a guess. names: how many of the records are lines of names, of CSV.
    """

    format: RecordFormat
    records: list[Sampled]
    events: bool = False
    declared: Declared = field(default_factory=dict)
    guessed: str | None = None
    names: int = 0


def detect(
    records: Sequence[Sampled], given: RecordFormat | None = None, *, is_stream: bool = False
) -> Detected:
    """The format of a sample. given: as it is known. is_stream: change events are those of a stream, whatever
    their keys are.
    """
    values = [one.value for one in records]
    schema = _schema_of(values)
    name: FormatName = given.value if given is not None else "json" if schema is None else KINDS[schema.kind]
    reader = _reader_of(given, schema)
    read = list(values) if reader is None else _read(reader, values)
    if name == "debezium" or (given is None and _are_events(read)):
        has_keys = all(one.key is not None for one in records)
        changelog = given.changelog if given is not None else is_stream or not has_keys
        return _events(records, schema, read, changelog=changelog)
    key = _schema_of([one.key for one in records])
    keys = [one.key for one in records]
    format_ = replace(USUAL, value=name) if given is None else given
    if key is not None:
        keys = _keys(whole_reader(), keys)
        format_ = replace(format_, key=format_.key or KINDS[key.kind])
    found = [replace(one, key=k, value=v) for one, k, v in zip(records, keys, read, strict=True)]
    if name in ("csv", "raw") or (given is None and schema is None and not _are_objects(values)):
        return _plain(found, format_, name)
    return Detected(format_, found, declared=_declared(values, schema, given))


def _declared(
    values: Sequence[bytes | None],
    schema: Registered | None,
    given: RecordFormat | None,
    row: str | None = None,
) -> Declared:
    """The columns that a schema tells, of the message that the records are where it has several."""
    if given is not None and given.schema is not None:
        kind: SchemaKind = "AVRO" if given.value == "avro" else "PROTOBUF"
        return declared_columns(Registered(kind, given.schema), row, given.message)
    return {} if schema is None else declared_columns(schema, row, first_indexes(values))


def _reader_of(given: RecordFormat | None, schema: Registered | None) -> Format | None:
    """What reads values; None: they are read as they are."""
    if given is None:
        return None if schema is None else whole_reader()
    if given.value in ("avro", "protobuf"):
        return reader_of(given)
    return whole_reader() if given.value in FRAMED and schema is not None else None


def _are_objects(values: Sequence[bytes | None]) -> bool:
    """Whether they are to be read as JSON objects, or begin as a wire format that no registry tells."""
    there = [one for one in values if one is not None]
    framed = sum(one[:1] == b"\0" and len(one) > HEAD_BYTES for one in there)
    return 2 * framed > len(there) or are_objects(values)


def _plain(records: list[Sampled], format_: RecordFormat, name: FormatName) -> Detected:
    """Lines of CSV, or raw ones. name: csv or raw where that is known."""
    lines = None if name == "raw" else csv_lines(records, format_.delimiter if name == "csv" else None)
    if lines is None:
        return Detected(replace(format_, value=name if name == "csv" else "raw"), records)
    names = "the names are those of a line" if lines.names else "no line has names of the columns"
    told = f"lines of fields divided by {json.dumps(lines.delimiter)} are taken for CSV, and {names}"
    found = replace(format_, value="csv", delimiter=lines.delimiter)
    return Detected(found, lines.records, guessed=told, names=lines.names)


def _schema_of(values: Sequence[bytes | None]) -> Registered | None:
    """The schema that most values name; None: they name none, or the registry does not tell."""
    there = [one for one in values if one is not None]
    named = Counter(one for one in ids_of(there).tolist() if one >= 0) if there else Counter[int]()
    if named.total() * 2 <= len(there):
        return None
    for schema_id, _ in named.most_common(3):
        try:
            registered = schemas().get(schema_id)
        except RegistryUnavailable:
            return None
        if registered is not None:
            return registered if registered.kind in KINDS else None
    return None


def _keys(format_: Format, keys: Sequence[bytes | None]) -> list[bytes | None]:
    """Keys as JSON; what cannot be read as it is."""
    return [key if text == b"" else text for key, text in zip(keys, _read(format_, keys), strict=True)]


def _read(format_: Format, values: Sequence[bytes | None]) -> list[bytes | None]:
    """Values as JSON. What cannot be read is b"": members that it may have are none of a row."""
    try:
        told: Texts = read_some(format_, values)
    except RegistryUnavailable:
        return list(values)
    return [b"" if place in told.bad else text for place, text in enumerate(told.values)]


def _are_events(values: Sequence[bytes | None]) -> bool:
    there = [one for one in values if one is not None]
    return bool(there) and 2 * sum(map(_is_event, there)) > len(there)


def _is_event(value: bytes) -> bool:
    try:
        event = orjson.loads(value)
    except ValueError:
        return False
    if isinstance(event, dict) and "schema" in event and isinstance(event.get("payload"), dict):
        event = event["payload"]
    return isinstance(event, dict) and event.get("op") in _OPS and ("after" in event or "before" in event)


def _events(
    records: Sequence[Sampled],
    schema: Registered | None,
    read: Sequence[bytes | None],
    *,
    changelog: bool,
) -> Detected:
    """read: the events as JSON."""
    format_ = RecordFormat("debezium", changelog=changelog)
    fields = _OF_CHANGES if changelog else ()
    values = _read(Debezium(whole_reader(), fields, changelog), [one.value for one in records])
    keys = [one.key for one in records]
    if not changelog:
        reader = key_reader(format_)
        assert reader is not None
        keys = _keys(reader, keys)
    found = [replace(one, key=k, value=v) for one, k, v in zip(records, keys, values, strict=True)]
    values_of = [one.value for one in records]
    declared = _beside(read) if schema is None else _declared(values_of, schema, None, "after")
    return Detected(format_, found, events=True, declared=declared)


def _beside(events: Sequence[bytes | None]) -> Declared:
    """The columns that the schema beside the first event that has one tells."""
    for event in events:
        try:
            told = orjson.loads(event or b"null")
        except ValueError:
            continue
        if isinstance(told, dict) and "payload" in told:
            return connect_columns(told.get("schema"))
    return {}
