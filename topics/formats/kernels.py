"""The kernels that read formats: each is compiled at its first use on a machine, for some ten seconds.

A kernel is compiled once for all schemas, so whoever reads one record with it has it compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.model.record_format import RecordFormat
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT
from topics.formats.avro_reader import read_avro
from topics.formats.csv import read_csv
from topics.formats.protobuf_reader import read_protobuf
from topics.formats.table import texts_of

KERNELS: Mapping[str, Callable[..., Any]] = {"csv": read_csv, "avro": read_avro, "protobuf": read_protobuf}
"""By the format that they read."""


def kernels_of(written: RecordFormat, *, has_registry: bool) -> list[str]:
    """The formats whose kernels may read a topic's records. has_registry: events of Debezium, which are JSON
    or Avro, may name schemas.

    >>> kernels_of(RecordFormat("debezium"), has_registry=True), kernels_of(RecordFormat(), has_registry=True)
    (['avro'], [])
    """
    named: list[str] = [one for one in (written.value, written.key) if one is not None and one in KERNELS]
    if written.value == "debezium" and has_registry:
        named.append("avro")
    return named


_AVRO = '{"type": "record", "name": "R", "fields": [{"name": "i", "type": "long"}]}'
_PROTOBUF = 'syntax = "proto3"; message R { int64 i = 1; }'
_RECORDS: Mapping[str, tuple[RecordFormat, bytes]] = {
    "csv": (RecordFormat("csv"), b"1"),
    "avro": (RecordFormat("avro", schema=_AVRO, framed=False), b"\x02"),
    "protobuf": (RecordFormat("protobuf", schema=_PROTOBUF, framed=False), b"\x08\x01"),
}


def read_one(name: str) -> bytes | None:
    """Read a record of one column of a format, so that its kernel is compiled. Returns the record as JSON.

    >>> [read_one(name) for name in KERNELS]
    [b'{"i":1}', b'{"i":1}', b'{"i":1}']
    """
    written, record = _RECORDS[name]
    source = Stream(SourceName("s"), Schema((Field("i", BIGINT, True),)), "s", format=written)
    (text,) = texts_of(source, [record]).values
    return text
