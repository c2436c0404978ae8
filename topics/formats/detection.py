"""Which format the records of a sample are in, and what they are as JSON.

Records that most begin as the wire format of a registry does are what their schema's kind says, where the
registry knows it. Most objects that have an op and a row, alone or as payload beside a schema, are change
events of Debezium. Others are JSON. Of compacted topics and of change events keys are looked at as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import orjson

from engine.model.record_format import USUAL, FormatName, RecordFormat
from engine.model.source import Field
from engine.model.types import STRING, TIMESTAMP
from topics.formats.debezium import Debezium
from topics.formats.schemas import schemas
from topics.formats.table import key_reader, read_some, whole_reader
from topics.formats.texts import Format, Texts
from topics.formats.wire import ids_of
from topics.inferred_columns import Sampled
from topics.registry import SchemaKind
from tureen.errors import RegistryUnavailable

_OPS = ("c", "r", "u", "d", "t")
_NAMES: dict[SchemaKind, FormatName] = {"AVRO": "avro", "JSON": "json-schema"}
_OF_CHANGES = (Field("_op", STRING), Field("_source_ts", TIMESTAMP))
"""Columns that a stream of changes has besides those of its rows."""


@dataclass(frozen=True, slots=True)
class Detected:
    """What was found.

    format: of the records. records: with keys and values as JSON; what cannot be read is as it was. events:
    they are change events, of a table where they have keys.
    """

    format: RecordFormat
    records: list[Sampled]
    events: bool = False


def detect(records: Sequence[Sampled]) -> Detected:
    """The format of a sample."""
    values = [one.value for one in records]
    kind = _kind_of(values)
    name: FormatName = "json" if kind is None else _NAMES[kind]
    read = list(values) if kind is None else _read(whole_reader(), values)
    if _are_events(read):
        has_keys = all(one.key is not None for one in records)
        return _events(records, changelog=not has_keys)
    key = _kind_of([one.key for one in records])
    keys = (
        [one.key for one in records] if key is None else _keys(whole_reader(), [one.key for one in records])
    )
    found = [replace(one, key=k, value=v) for one, k, v in zip(records, keys, read, strict=True)]
    format_ = replace(USUAL, value=name)
    if key is not None:
        format_ = replace(format_, key="avro" if key == "AVRO" else "json-schema")
    return Detected(format_, found)


def _kind_of(values: Sequence[bytes | None]) -> SchemaKind | None:
    """The kind of schema that most values name; None: they name none, or the registry does not tell."""
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
            return registered.kind if registered.kind in _NAMES else None
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


def _events(records: Sequence[Sampled], *, changelog: bool) -> Detected:
    format_ = RecordFormat("debezium", changelog=changelog)
    fields = _OF_CHANGES if changelog else ()
    values = _read(Debezium(whole_reader(), fields, changelog), [one.value for one in records])
    keys = [one.key for one in records]
    if not changelog:
        reader = key_reader(format_)
        assert reader is not None
        keys = _keys(reader, keys)
    found = [replace(one, key=k, value=v) for one, k, v in zip(records, keys, values, strict=True)]
    return Detected(format_, found, events=True)
