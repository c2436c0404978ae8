"""Columns that tell of a record and are no part of its value: where it stands, when, its key and its headers.

A column without a PATH that has one of these names is read from there::

    _partition, _offset    numbers
    _timestamp             the log's timestamp, ms since 1970
    _key                   text of a STRING, bytes of BYTES
    _headers               an object by name, of several with one name the last; values as of ``_key``

Cost: about 1 us a record.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from engine.model.record_format import METADATA
from engine.model.source import Field, Stream
from engine.model.types import Logical
from topics.formats.texts import Texts
from topics.in_band import Headers


@dataclass(frozen=True, slots=True)
class Written:
    """Records as they stand in a topic, n of each.

    partition: int32, offset: int64, append_ms: int64, the log's timestamps. keys, headers: None: nobody knows
    them.
    """

    values: Sequence[bytes | None]
    partition: npt.ArrayLike
    offset: npt.ArrayLike
    append_ms: npt.ArrayLike
    keys: Sequence[bytes | None] | None = None
    headers: Sequence[Headers] | None = None


def metadata_of(stream: Stream) -> tuple[Field, ...]:
    """The columns of a source that are read from there."""
    return tuple(
        one
        for one in stream.schema
        if one.name in METADATA and one.path is None and one.name not in stream.keyed
    )


def with_metadata(stream: Stream, told: Texts, written: Written) -> Texts:
    """Texts of values with the members that these columns are. What is no object stays as it is."""
    fields = metadata_of(stream)
    if not fields:
        return told
    columns = [_column(one, written) for one in fields]
    heads = [b'"%s":' % one.name.encode() for one in fields]
    found, bad = list(told.values), dict(told.bad)
    for place, text in enumerate(told.values):
        if text is None or place in bad:
            continue
        body = text.rstrip()
        if not body.endswith(b"}"):
            continue
        members = []
        for head, column, one in zip(heads, columns, fields, strict=True):
            try:
                members.append(head + orjson.dumps(column(place)))
            except UnicodeDecodeError as error:
                bad[place] = f"column {one.name}: not UTF-8: {error.reason}; BYTES takes any bytes"
        body = body[:-1].rstrip()
        found[place] = body + (b"" if body.endswith(b"{") else b",") + b",".join(members) + b"}"
    return Texts(found, bad, told.unknown)


def _column(field: Field, written: Written) -> Any:
    """What gives the value of a record by its place."""
    if field.name in ("_partition", "_offset", "_timestamp"):
        numbers = {
            "_partition": written.partition,
            "_offset": written.offset,
            "_timestamp": written.append_ms,
        }
        return np.asarray(numbers[field.name]).tolist().__getitem__
    if field.name == "_key":
        keys = written.keys
        as_bytes = field.type.logical is Logical.BYTES
        return lambda place: None if keys is None else _shown(keys[place], as_bytes)
    headers, inner = written.headers, field.type.element
    of_bytes = inner is not None and inner.logical is Logical.BYTES
    return lambda place: (
        None if headers is None else {name: _shown(value, of_bytes) for name, value in headers[place] or ()}
    )


def _shown(value: bytes | None, as_bytes: bool) -> str | None:
    if value is None:
        return None
    return base64.b64encode(value).decode() if as_bytes else value.decode()
