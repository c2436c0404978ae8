"""The lines of a feed: JSON objects, as NDJSON or as server-sent events.

    {"type":"snapshot","position":p,"now_ms":n,"columns":[..],"operator":o,"complete_from_ms":null,
     "approximation":[..],"rows":[[..]..],"more":false}
    {"type":"changes","position":p,"now_ms":n,"approximation":[..],"changes":[[weight,at_ms,[..]]..],
     "more":false}
    {"type":"progress","position":p,"now_ms":n,"approximation":[..]}
    {"type":"end","reason":r,"position":p,"now_ms":n,"error":{..}}

What is too long for a line comes in several; all but the last say ``"more":true`` and have no position, so
that nobody goes on from the middle. Of a snapshot the first line has ``catching_up``, ``errors`` and
``condition_errors`` of the answer where there are any. ``approximation`` has the tags of
the answer as of that line; a line without it is of an exact answer. Values are those of answers in JSON
(:mod:`topics.json_rows`).
Cost: some tenths of a microsecond a value, and 0.2 ms for what has more than a few rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from broker.base.cursor import Cursor
from engine.model.answer import Answer
from engine.model.approximation import Approximation
from engine.model.json_texts import json_values
from tureen.errors import TureenError

Form = Literal["ndjson", "sse"]
CONTENT_TYPES: dict[Form, str] = {"ndjson": "application/x-ndjson", "sse": "text/event-stream; charset=utf-8"}

FEW_ROWS = 64

LINE_ROWS = 1_000
"""A line has no more rows."""

RETRY = b"retry: 1000\n\n"
"""Tells event sources how soon to come again."""

_CHANGES = b'"changes":['
_WHOLE = b'],"more":false}\n'
_MORE = b'],"more":true}\n'


def row_texts(table: pa.Table) -> list[bytes]:
    """Each row as an array of JSON."""
    if table.num_rows <= FEW_ROWS:
        return [orjson.dumps(row) for row in _few_rows(table)]
    pieces: list[str | pa.Array] = []
    written = "["
    for column in table.columns:
        pieces += [written, json_values(column)]
        written = ","
    return _joined([*pieces, "]"])


def change_texts(table: pa.Table, weights: npt.NDArray[np.int8], at_ms: npt.NDArray[np.int64]) -> list[bytes]:
    """Each change as ``[weight,at_ms,[values]]``."""
    if table.num_rows <= FEW_ROWS:
        rows = zip(weights.tolist(), at_ms.tolist(), _few_rows(table), strict=True)
        return [orjson.dumps(change) for change in rows]
    pieces: list[str | pa.Array] = ["[", _digits(weights), ",", _digits(at_ms)]
    written = ",["
    for column in table.columns:
        pieces += [written, json_values(column)]
        written = ","
    return _joined([*pieces, "]]"])


def _few_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Rows as values that JSON has; sooner than by columns of text where there are few."""
    return zip(*(_values(column) for column in table.columns), strict=True)


def _values(column: pa.ChunkedArray) -> list[Any]:
    type_ = column.type
    if pa.types.is_floating(type_):
        return [_double(value) for value in column.to_pylist()]
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_string(type_):
        return cast("list[Any]", column.to_pylist())
    return [orjson.Fragment(text) for text in json_values(column).to_pylist()]


def _double(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _digits(values: npt.NDArray[Any]) -> pa.Array:
    return pc.cast(pa.array(values), pa.string())


def _joined(pieces: list[str | pa.Array]) -> list[bytes]:
    return cast("list[bytes]", pc.binary_join_element_wise(*pieces, "").cast(pa.binary()).to_pylist())


def columns_head(columns: Sequence[tuple[str, Any]], operator: str) -> bytes:
    """The members that every first line has: columns and operator."""
    told = [{"name": name, "type": str(type_)} for name, type_ in columns]
    return b',"columns":%b,"operator":"%b"' % (orjson.dumps(told), operator.encode())


def _now(now_ms: int | None) -> bytes:
    return b"null" if now_ms is None else b"%d" % now_ms


def _at(cursor: Cursor) -> bytes:
    return b'"position":"%b","now_ms":%b' % (str(cursor).encode(), _now(cursor.now_ms))


def tags_text(tags: Sequence[Approximation]) -> bytes:
    """The member that tells what of an answer is not exact; nothing where it is."""
    return b',"approximation":%b' % orjson.dumps([tag.as_dict() for tag in tags]) if tags else b""


def change_lines(
    texts: Sequence[bytes], cursor: Cursor, tags: Sequence[Approximation] = ()
) -> Iterator[bytes]:
    """Lines of the type changes; texts: of :func:`change_texts`. At least one."""
    told = tags_text(tags)
    last = max(0, len(texts) - 1) // LINE_ROWS * LINE_ROWS
    for first in range(0, last, LINE_ROWS):
        yield b'{"type":"changes","now_ms":%b%b,%b%b%b' % (
            _now(cursor.now_ms),
            told,
            _CHANGES,
            b",".join(texts[first : first + LINE_ROWS]),
            _MORE,
        )
    yield b'{"type":"changes",%b%b,%b%b%b' % (_at(cursor), told, _CHANGES, b",".join(texts[last:]), _WHOLE)


def changes_within(line: bytes) -> bytes:
    """The changes of a line, as they stand between its brackets."""
    start = line.index(_CHANGES) + len(_CHANGES)
    return line[start : -len(_WHOLE) if line.endswith(_WHOLE) else -len(_MORE)]


def remarks_text(answer: Answer) -> bytes:
    """The members that tell what an answer lacks besides; nothing where that is nothing."""
    told = {
        "catching_up": [one.as_dict() for one in answer.catching_up],
        "errors": answer.errors,
        "condition_errors": answer.condition_errors,
    }
    told = {name: value for name, value in told.items() if value}
    return b"," + orjson.dumps(told)[1:-1] if told else b""


def snapshot_line(
    rows: pa.Table,
    cursor: Cursor,
    head: bytes,
    complete_from_ms: int | None,
    more: bool,
    tags: Sequence[Approximation] = (),
    remarks: bytes = b"",
) -> bytes:
    """A line of the type snapshot, with these rows. head, remarks: for the first line of a feed."""
    return b'{"type":"snapshot",%b%b,"complete_from_ms":%b%b%b,"rows":[%b%b' % (
        b'"now_ms":%b' % _now(cursor.now_ms) if more else _at(cursor),
        head,
        _now(complete_from_ms),
        tags_text(tags),
        remarks,
        b",".join(row_texts(rows)),
        _MORE if more else _WHOLE,
    )


def progress_line(cursor: Cursor, head: bytes = b"", tags: Sequence[Approximation] = ()) -> bytes:
    """A line of the type progress."""
    return b'{"type":"progress",%b%b%b}\n' % (_at(cursor), head, tags_text(tags))


def end_object(reason: str, cursor: Cursor, error: TureenError | None) -> bytes:
    """The object of the type end."""
    told = b"" if error is None else b',"error":' + orjson.dumps(error.as_dict())
    return b'{"type":"end","reason":"%b",%b%b}' % (reason.encode(), _at(cursor), told)


def framed(kind: str, lines: Sequence[bytes], cursor: Cursor | None, form: Form) -> bytes:
    """Lines of one type as they are written. cursor: of the last line; None: none of them has a position."""
    if form == "ndjson":
        return lines[0] if len(lines) == 1 else b"".join(lines)
    event = b"event: %b\ndata: " % kind.encode()
    pieces = [event + line + b"\n" for line in lines]
    if cursor is not None:
        pieces[-1] = b"id: %b\n%b" % (str(cursor).encode(), pieces[-1])
    return b"".join(pieces)
