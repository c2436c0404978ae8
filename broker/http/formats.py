"""Answers as bytes: JSON, NDJSON, CSV, Arrow.

| type      | JSON, NDJSON                                   | CSV                         |
|-----------|------------------------------------------------|-----------------------------|
| BOOLEAN   | true, false                                    | true, false                 |
| INTEGER, BIGINT | number, all digits                       | digits                      |
| DOUBLE    | number; "NaN", "Infinity", "-Infinity" as text | number; NaN, Infinity, -Infinity |
| DECIMAL   | text with all its digits: "12.30"              | 12.30                       |
| STRING    | text                                           | always in quotes            |
| DATE      | "2013-01-31"                                   | 2013-01-31                  |
| TIMESTAMP | "2013-01-31T09:15:00.000Z"                     | 2013-01-31T09:15:00.000Z    |
| UUID      | text                                           | always in quotes            |
| BYTES     | base64 text                                    | the same in quotes          |
| JSON      | as it is                                       | the same in quotes          |
| ARRAY, STRUCT, MAP | an array or object of the values, as above | the same in quotes     |
| NULL      | null                                           | nothing, without quotes     |

Arrow is the IPC stream format with the types of :mod:`engine.model.types`; it alone loses nothing.
Cost: O(rows x columns); in JSON as :mod:`broker.http.row_texts` says, next to none in Arrow, some
microseconds a row in CSV.
"""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, cast

import orjson
import pyarrow as pa

from broker.http.row_texts import rows_text
from engine.model.answer import Answer, AnswerColumns, CatchingUp, Lost
from engine.model.approximation import Approximation
from engine.model.json_texts import json_values
from tureen.errors import LimitExceeded
from tureen.protocol import (
    METADATA_APPROXIMATION,
    METADATA_CATCHING_UP,
    METADATA_COMPLETE,
    METADATA_CONDITION_ERRORS,
    SnapshotFormat,
)

CONTENT_TYPES: dict[SnapshotFormat, str] = {
    "json": "application/json",
    "ndjson": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
AnswerForm = SnapshotFormat | Literal["rows"]
"""A format, or the rows as they are: who asked for those writes them."""
FEW_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Reached:
    """What an answer took of the archive: so many rows. earliest_ms: before it there is no archive of what
    the query reads; None: all there ever was is archived.
    """

    rows: int
    earliest_ms: int | None


def encode(
    answer: Answer,
    form: AnswerForm,
    bytes_max: int,
    change_position: str | None = None,
    archive: Reached | None = None,
) -> bytes:
    """The answer in this format. change_position, archive: where its changes go on, and what it took of the
    archive, for formats that can tell it.

    Raises LimitExceeded (snapshot_bytes_max).
    """
    # The size of the columns is a floor for all but very narrow ones, and spares the work of a hopeless text;
    # of few rows that is less work than adding up the size.
    if answer.rows.n > FEW_ROWS:
        size = answer.rows.nbytes
        if size > 4 * bytes_max or (form in ("arrow", "rows") and size > bytes_max):
            raise LimitExceeded("snapshot_bytes_max", bytes_max, size, hint=_HINT)
    if form == "rows":
        return b""
    data = _json(answer, change_position, archive) if form == "json" else _ENCODERS[form](answer)
    if len(data) > bytes_max:
        raise LimitExceeded("snapshot_bytes_max", bytes_max, len(data), hint=_HINT)
    return data


_HINT = "narrow the window or the predicate, or fetch it as arrow"


def facts(answer: Answer) -> dict[str, Any]:
    """What an answer says of itself, besides its rows."""
    return {
        "query_id": answer.query_id,
        "position": str(answer.position),
        "now_ms": answer.now_ms,
        "complete": answer.complete,
        "complete_from_ms": answer.complete_from_ms,
        "approximate": answer.approximate,
        "approximation": tag_dicts(answer.approximation),
        "catching_up": catching_up_dicts(answer.catching_up),
        "errors": answer.errors,
        "condition_errors": answer.condition_errors,
        **lost_facts(answer.lost),
    }


def tag_dicts(tags: Iterable[Approximation]) -> list[dict[str, Any]]:
    """What of an answer is not exact, as JSON has it; empty: it is exact."""
    return [tag.as_dict() for tag in tags]


def catching_up_dicts(sources: Iterable[CatchingUp]) -> list[dict[str, Any]]:
    """The sources that have not yet what their topics held, as JSON has it."""
    return [source.as_dict() for source in sources]


def tag_words(tags: Iterable[Mapping[str, Any]]) -> str:
    """Each in a few words, of what :func:`tag_dicts` gives.

    >>> tag_words([{"kind": "sample", "where": "trips", "amount": 10.0, "unit": "percent"}])
    'sample of trips: 10 percent'
    """
    return ", ".join(f"{tag['kind']} of {tag['where']}: {tag['amount']:,.6g} {tag['unit']}" for tag in tags)


def lost_facts(lost: Lost) -> dict[str, int | None]:
    """How many records of its sources an answer lacks, since when they are counted, ms since 1970."""
    return {"late": lost.late, "dead_letters": lost.broken, "counted_from_ms": lost.since_ms}


def sql_type(type_: pa.DataType) -> str:
    """The name of an answer's column type, as CREATE STREAM writes it."""
    if pa.types.is_list(type_):
        return f"ARRAY<{sql_type(type_.value_type)}>"
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    return _SQL_TYPES.get(str(type_), str(type_).upper())


_SQL_TYPES = {
    "bool": "BOOLEAN",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "string": "STRING",
    "date32[day]": "DATE",
    "timestamp[ms]": "TIMESTAMP",
    "null": "NULL",
}


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """A column as values that JSON has."""
    type_ = column.type
    if pa.types.is_floating(type_):
        values = column.to_pylist()
        if not column.null_count and math.isfinite(sum(values)):
            return cast("list[Any]", values)
        return [_double(value) for value in values]
    if pa.types.is_decimal(type_) or pa.types.is_date(type_):
        return cast("list[Any]", column.cast(pa.string()).to_pylist())
    if pa.types.is_timestamp(type_):
        return _iso(column)
    return cast("list[Any]", column.to_pylist())


def _double(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _iso(column: pa.ChunkedArray) -> list[Any]:
    # Arrow's own text lacks the T and the zone; pc.strftime has them and takes ten times as long.
    texts = column.cast(pa.string()).to_pylist()
    return [None if text is None else text.replace(" ", "T") + "Z" for text in texts]


@lru_cache(1_000)
def columns_json(schema: pa.Schema) -> bytes:
    """Names and types of an answer's columns."""
    return orjson.dumps([{"name": field.name, "type": sql_type(field.type)} for field in schema])


def _json(answer: Answer, change_position: str | None, archive: Reached | None) -> bytes:
    rows = answer.rows
    told = facts(answer) | {
        "change_position": change_position,
        "archive": None if archive is None else {"rows": archive.rows, "earliest_ms": archive.earliest_ms},
        "rows_total": rows.total,
    }
    columns = columns_json(rows.schema)
    return b"".join((orjson.dumps(told)[:-1], b',"columns":', columns, b',"rows":', rows_json(rows), b"}"))


def with_fact(data: bytes, name: str, value: float) -> bytes:
    """An answer as JSON that says one thing more.

    >>> with_fact(b'{"rows":[]}', "swapped_in_ms", 2.5)
    b'{"swapped_in_ms":2.5,"rows":[]}'
    """
    return b'{"%b":%b,%b' % (name.encode(), orjson.dumps(value), data[1:])


def rows_json(rows: AnswerColumns) -> bytes:
    """Rows as a list of lists."""
    heads = (b"[", *[b","] * (len(rows.columns) - 1))
    return b"[%b]" % rows_text(rows.columns, rows.n, heads, b"],")[:-1]


def _ndjson(answer: Answer) -> bytes:
    rows = answer.rows
    names = [orjson.dumps(name) + b":" for name in rows.schema.names]
    heads = tuple((b"," if place else b"{") + name for place, name in enumerate(names))
    return rows_text(rows.columns, rows.n, heads, b"}\n")


def _csv(answer: Answer) -> bytes:
    columns = [_quoted(answer.table.column(i)) for i in range(answer.table.num_columns)]
    head = ",".join(_quote(name) for name in answer.table.column_names)
    return "\n".join([head, *map(",".join, zip(*columns, strict=True)), ""]).encode()


def _quoted(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_nested(column.type) or isinstance(column.type, pa.JsonType):
        texts = json_values(column).to_pylist()
        there = column.is_valid().to_pylist()
        return [_in_quotes(text) if given else "" for text, given in zip(texts, there, strict=True)]
    if pa.types.is_binary(column.type):
        return ["" if value is None else f'"{b64encode(value).decode()}"' for value in column.to_pylist()]
    if pa.types.is_string(column.type):
        return ["" if value is None else _in_quotes(value) for value in column.to_pylist()]
    if pa.types.is_boolean(column.type):
        return ["" if value is None else str(value).lower() for value in column.to_pylist()]
    if pa.types.is_floating(column.type):
        return ["" if value is None else str(value) for value in _plain(column)]
    return ["" if value is None else str(value) for value in _plain(column)]


def _quote(name: str) -> str:
    return _in_quotes(name) if any(c in name for c in '",\r\n') else name


def _in_quotes(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


_STREAM_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


@lru_cache(1_000)
def _stream_head(schema: pa.Schema) -> bytes:
    return cast("bytes", schema.serialize().to_pybytes())


def _arrow(answer: Answer) -> bytes:
    batches = [one.serialize() for one in answer.rows.batches() if one.num_rows]
    schema = answer.rows.schema
    if told := _metadata(answer):
        schema = schema.with_metadata({**(schema.metadata or {}), **told})
    return b"".join((_stream_head(schema), *batches, _STREAM_END))


def _metadata(answer: Answer) -> dict[bytes, bytes]:
    """What a schema says of an answer that is not exact and whole; nothing where it is."""
    told = {}
    if answer.approximation:
        told[METADATA_APPROXIMATION] = orjson.dumps(tag_dicts(answer.approximation))
    if not answer.complete:
        told[METADATA_COMPLETE] = b"false"
    if answer.catching_up:
        told[METADATA_CATCHING_UP] = orjson.dumps(catching_up_dicts(answer.catching_up))
    if answer.condition_errors:
        told[METADATA_CONDITION_ERRORS] = b"%d" % answer.condition_errors
    return {name.encode(): value for name, value in told.items()}


_ENCODERS = {"ndjson": _ndjson, "csv": _csv, "arrow": _arrow}
