"""Records of small batches, one after another, without the fixed cost of Arrow's reader.

Arrow's reader takes some 200 us however few records it is given. Here each record is parsed by orjson, and
its values are taken where they are plainly what their columns want. Of any other record nothing is decided:
it goes the way of :mod:`topics.codec`, which scans it and reads it by :mod:`topics.careful`. So a record
gives the same values, or the same reason, whichever way it goes.

What is plain: UTF-8 JSON without a backslash (so equal names have equal bytes, and no half of a surrogate
pair is hidden), not nested deeply, each column's member given once and in one spelling, with a value of the
JSON type that the column's type takes. Of numbers orjson keeps integers of 64 bits as integers, and rounds
all others once: the former are taken for columns of integers and for DOUBLE, the latter for DOUBLE.

Cost: some 1 us a record and 0.3 us a value.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from engine.model.nested.canonical import Misfit, canonical_of, is_exact
from engine.model.paths import value_at
from engine.model.source import Field, Stream
from engine.model.types import Kind
from topics.careful import RANGES, BadRecord, converted
from topics.members import Members

RECORDS_MAX = 32
"""Batches of at most so many records are read here; of more, Arrow's reader is as fast."""

_PLAIN = {
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.TIMESTAMP: int,
    Kind.DOUBLE: float,
    Kind.STRING: str,
}
_NEGATIVE_ZERO = re.compile(rb":\s*-0")


class NotPlain(Exception):
    """The record needs a closer look; whether it is a good one is not said."""


def plain_row(
    stream: Stream, members: Members, record: bytes, depth_max: int, *, is_nested: bool
) -> list[Any]:
    """The row's values in schema order, as :func:`topics.careful.row_of` gives them. Raises NotPlain.

    is_nested: a column is read apart from the members of its record (:attr:`Field.is_apart`).
    """
    if b"\\" in record or record.count(b"{") + record.count(b"[") > depth_max:
        raise NotPlain
    try:
        given = orjson.loads(record)
    except ValueError:
        raise NotPlain from None
    spelling = members.spelling(tuple(given)) if type(given) is dict else None
    if spelling is None:
        raise NotPlain
    row: list[Any] = []
    spelt = iter(spelling)
    # Of nested records the names of columns may well be those of other members inside.
    if is_nested and orjson.dumps(given).count(b":") != record.count(b":"):  # a member is given twice
        raise NotPlain
    for field in stream.schema:
        if field.path is not None:
            value = value_at(field.path, given)
        else:
            name, quoted = next(spelt)
            if not is_nested and record.count(quoted) > 1:  # given twice, or a text that is equal to the name
                raise NotPlain
            value = given.get(name)
        if value is None:
            if not field.nullable or field.name == stream.timestamp_column:
                raise NotPlain
        elif field.type.logical is not None or type(value) is not _PLAIN.get(field.type.kind):
            value = _converted(field, value, record)
        elif type(value) is int:
            low, high = RANGES[field.type.kind]
            if not low <= value <= high:
                raise NotPlain
        row.append(value)
    return row


def _converted(field: Field, value: Any, record: bytes) -> Any:
    """A value of another JSON type than that which its column mostly has."""
    kind = field.type.kind
    if field.type.logical is not None:
        if is_exact(field.type):
            raise NotPlain
        try:
            return canonical_of(field.type, value)
        except Misfit:
            raise NotPlain from None
    if kind is Kind.DOUBLE and type(value) is int and (value or not _NEGATIVE_ZERO.search(record)):
        return float(value)
    if type(value) is str and kind in (Kind.DATE, Kind.TIMESTAMP, Kind.DECIMAL):
        try:
            return converted(field, value)
        except BadRecord:
            pass
    raise NotPlain
