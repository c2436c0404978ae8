"""Where the archive's tables are, and which columns they have.

::

    <root>/streams/<stream>/        rows of a stream, or versions of a table     by _date, _hour or by _date
    <root>/results/<topic>/         records of a result topic                    partitioned by _date
    <root>/current/<topic>/         the answers that result records fold to      made by compaction
    <root>/history/<topic>/         the same with intervals of validity          made by compaction
    <root>/queries/<query id>/      current and history of one query, with typed columns
    <root>/quarantine/<name>/       records that do not decode, of the stream or the result topic

All are Delta tables without column mapping and without deletion vectors, so that every reader of Delta reads
them. A name that is no plain file name is written with ``~`` and two hexadecimal digits for each byte of what
is not; so is what Delta does not take in names of columns. ``_date`` and ``_hour`` are of the row's
``_timestamp`` in UTC, never of when it was archived: the rows of an hour lie in one place however late they
came.

Columns of ours come first, since Delta keeps statistics of a file's first 32 columns alone. All columns may
be NULL: files from before a column was added lack it.
"""

from __future__ import annotations

import os
import re
from typing import Literal

import pyarrow as pa

from engine.model.source import Stream
from engine.model.types import Kind, Type
from storage.archive.errors import ArchiveMismatch

Area = Literal["streams", "results", "current", "history", "queries", "quarantine"]

PARTITION = "_partition"
OFFSET = "_offset"
TIMESTAMP = "_timestamp"
DATE = "_date"
HOUR = "_hour"
DELETED = "_deleted"

KEY_PROPERTY = "tureen.key"
"""A table's property: the columns of its PRIMARY KEY, as archived, as a JSON list; ``[]`` of a stream."""
TIME_PROPERTY = "tureen.timestamp"
"""A table's property: the column that ``_timestamp`` is, as declared; empty: the topic's own time."""

PartitionBy = Literal["hour", "day"]
STREAM_PARTITIONS: dict[PartitionBy, tuple[str, ...]] = {"hour": (DATE, HOUR), "day": (DATE,)}
"""Columns that a table of ``streams`` is partitioned by, as chosen when it was made."""
RESULT_PARTITIONS = (DATE,)

INSTANT = pa.timestamp("us", "UTC")

_PLACE = (pa.field(PARTITION, pa.int32()), pa.field(OFFSET, pa.int64()), pa.field(TIMESTAMP, pa.int64()))

RESULT_SCHEMA = pa.schema(
    [
        *_PLACE,
        pa.field(DATE, pa.date32()),
        pa.field("query_id", pa.string()),
        pa.field("format", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("op", pa.string()),
        pa.field("key", pa.string()),
        pa.field("row", pa.string()),
        pa.field("before", pa.string()),
        pa.field("weight", pa.int32()),
        pa.field("position", pa.string()),
        pa.field("sequence", pa.int64()),
        pa.field("at_ms", pa.int64()),
        pa.field("occasion", pa.string()),
        pa.field("raw_key", pa.binary()),
        pa.field("raw_value", pa.binary()),
    ]
)
"""The columns of a table of ``results``; ``_timestamp`` is the Kafka record's own.

query_id, and ``key``: what the record's key says besides, as JSON: ``{"v":0.0}`` or ``"<hash>-<copy>"``.
format: upsert, debezium, diff. encoding: json, json_schema, avro.
kind: ``row``, the key stands for a row of the answer, and records of the same ``query_id`` and ``key``
    replace each other (or add up, in diff); ``log``, every record stands for itself (ISTREAM, DSTREAM,
    RSTREAM).
op: c, u, d, r as Debezium writes them; u or d of upsert (d: a null value, with ``row`` NULL); of diff c for
    weight 1 and d for -1; NULL of a ``log`` in upsert, which does not tell whether its row came or went.
row, before: the row that came (in diff and a log: the row) and the one that went, as JSON the way snapshots
    write it, whatever the encoding; NULL where there is none.
weight: of diff, 1 or -1; NULL of others.
position, sequence, at_ms, occasion: the headers: after which step, the number behind its ``-``, the instant,
    and ``snapshot`` or ``end`` where it is no step's change. NULL where a record has no such header.
"""

QUARANTINE_SCHEMA = pa.schema(
    [
        *_PLACE,
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("reason", pa.string()),
    ]
)
"""The columns of a table of ``quarantine``; ``_timestamp`` is the Kafka record's own."""

_PLAIN_FILE = re.compile(r"[^A-Za-z0-9_.-]|^\.")
_NOT_IN_COLUMNS = re.compile(r"[ ,;{}()\n\t=~]")


def whole_root(root: str) -> str:
    """The root as every reader and writer understands it: a URI as it is, a path from the file system's root,
    since Spark SQL takes no other one for a table's name.

    >>> whole_root("/lake/tureen/"), whole_root("s3://lake/tureen")
    ('/lake/tureen', 's3://lake/tureen')
    """
    return root if not root or "://" in root or root.startswith("file:") else os.path.abspath(root)


def table_uri(root: str, area: Area, name: str) -> str:
    """Where a table is.

    >>> table_uri("s3://lake/tureen/", "streams", "my orders")
    's3://lake/tureen/streams/my~20orders'
    """
    return f"{area_uri(root, area)}/{_escaped(_PLAIN_FILE, name)}"


def area_uri(root: str, area: Area) -> str:
    """The directory whose directories are the tables of an area."""
    return f"{root.rstrip('/')}/{area}"


def table_name(directory: str) -> str:
    """The stream or topic of a table's directory.

    >>> table_name("my~20orders")
    'my orders'
    """
    data = re.sub(rb"~([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), directory.encode())
    return data.decode("utf-8")


def column_name(name: str) -> str:
    """A declared column's name in the archive."""
    return _escaped(_NOT_IN_COLUMNS, name)


def column_type(type_: Type) -> pa.DataType:
    """A declared column's type in the archive: TIMESTAMP in microseconds with UTC, as Delta has it; nested
    values, BYTES and UUID as their canonical texts.
    """
    if type_.logical is not None:
        return pa.string()
    return INSTANT if type_.kind is Kind.TIMESTAMP else type_.arrow


def stream_schema(stream: Stream) -> pa.Schema:
    """The columns of a stream's table: ours, then the declared ones.

    Raises ArchiveMismatch: names that Delta takes for one, as it does not tell capitals, or that are ours.
    """
    own = [*_PLACE, pa.field(DATE, pa.date32()), pa.field(HOUR, pa.int32())]
    if stream.is_table:
        own.append(pa.field(DELETED, pa.bool_()))
    taken = {name: name for name in (PARTITION, OFFSET, TIMESTAMP, DATE, HOUR, DELETED)}
    fields = []
    for field in stream.schema:
        name = column_name(field.name)
        other = taken.setdefault(name.casefold(), name)
        if other is not name:
            raise ArchiveMismatch(
                f"the archive cannot distinguish column {field.name} of {stream.name} from {other}",
                hint="Delta tables ignore case in names, and names such as _offset are "
                "the archive's own: declare the stream with another name for it",
            )
        fields.append(pa.field(name, column_type(field.type)))
    return pa.schema([*own, *fields])


def _escaped(pattern: re.Pattern[str], name: str) -> str:
    return pattern.sub(lambda found: "".join(f"~{byte:02X}" for byte in found[0].encode()), name)
