"""CSV: one line a record, its fields in the order of the columns that are not in the key (RFC 4180).

A field may stand in quotes, in which a quote is written twice. An empty field without quotes is NULL. Numbers
may have a plus, zeros before them and blanks around them; BOOLEANs are true or false in any letter case; an
ARRAY, STRUCT, MAP or JSON is written as JSON; what others may be is as in strings of JSON.

Cost: some 2 ns a byte, beside what the JSON costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import orjson

from engine.model.source import Field
from engine.model.types import Kind
from topics.compiled import borrowing, inlined
from topics.formats.output import (
    AT,
    LIMIT,
    ByteArray,
    Int64Array,
    Output,
    begin_text,
    end_text,
    put_byte,
    put_bytes,
    put_text,
    transcoded,
)
from topics.formats.texts import Texts

TEXT, NUMBER, FLAG, NESTED = range(4)
FINE, TOO_FEW, TOO_MANY, OPEN_QUOTE, BEHIND_QUOTE, SEVERAL, TOO_LONG = range(7)
_REASONS = {
    OPEN_QUOTE: "a field in quotes does not end",
    BEHIND_QUOTE: "behind a field in quotes stands neither the delimiter nor the end",
    SEVERAL: "more than one line in the record",
    TOO_LONG: "as JSON it is longer than a record may be",
}
_NULL = np.frombuffer(b"null", np.uint8)
_FLAGS = np.frombuffer(b"truefalse", np.uint8)


class Layout(NamedTuple):
    """kinds: int64[columns], TEXT, NUMBER, ... heads, head_ends: what stands before each value in the object.
    delimiter: int64[1]. work: uint8, room for a field without its quotes.
    """

    kinds: Int64Array
    heads: ByteArray
    head_ends: Int64Array
    delimiter: Int64Array
    work: ByteArray


@inlined
def _number(data: ByteArray, begin: int, end: int, out: Output) -> bool:
    """Write a number as JSON has it; False: it is none, and nothing is written."""
    while begin < end and data[begin] == 32:
        begin += 1
    while end > begin and data[end - 1] == 32:
        end -= 1
    negative = begin < end and data[begin] == 45
    if begin < end and (data[begin] == 45 or data[begin] == 43):
        begin += 1
    at, digits = begin, 0
    while at < end and 48 <= data[at] <= 57:
        at += 1
    whole = at
    digits = at - begin
    if at < end and data[at] == 46:
        at += 1
        while at < end and 48 <= data[at] <= 57:
            at += 1
            digits += 1
    mantissa = at
    if digits and at < end and (data[at] == 101 or data[at] == 69):
        at += 1
        if at < end and (data[at] == 45 or data[at] == 43):
            at += 1
        first = at
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return False
    if not digits or at != end:
        return False
    while begin < whole - 1 and data[begin] == 48:
        begin += 1
    if negative:
        put_byte(out, 45)
    if begin == whole:
        put_byte(out, 48)
    put_bytes(out, data, begin, mantissa)
    if mantissa > whole and data[mantissa - 1] == 46:
        put_byte(out, 48)
    put_bytes(out, data, mantissa, end)
    return True


@inlined
def _flag(data: ByteArray, begin: int, end: int, out: Output) -> bool:
    first, stop = (0, 4) if end - begin == 4 else (4, 9)
    if end - begin != stop - first:
        return False
    for turn in range(stop - first):
        if data[begin + turn] | 32 != _FLAGS[first + turn]:
            return False
    put_bytes(out, _FLAGS, first, stop)
    return True


@inlined
def _value(kind: int, data: ByteArray, begin: int, end: int, out: Output) -> None:
    if kind == NESTED:
        put_bytes(out, data, begin, end)
    elif kind == TEXT or not (
        _number(data, begin, end, out) if kind == NUMBER else _flag(data, begin, end, out)
    ):
        put_text(out, data, begin, end)


@inlined
def _read_line(data: ByteArray, at: int, end: int, layout: Layout, out: Output) -> int:
    """Write one record, data[at:end], as an object."""
    if end > at and data[end - 1] == 10:
        end -= 1
        if end > at and data[end - 1] == 13:
            end -= 1
    columns, head = len(layout.kinds), 0
    for column in range(columns):
        put_bytes(out, layout.heads, head, layout.head_ends[column])
        head = layout.head_ends[column]
        kind = layout.kinds[column]
        if at < end and data[at] == 34:
            at, size = at + 1, 0
            while at < end and (data[at] != 34 or (at + 1 < end and data[at + 1] == 34)):
                at += 1 if data[at] != 34 else 2
                layout.work[size] = data[at - 1]
                size += 1
            if at >= end:
                return OPEN_QUOTE
            at += 1
            if at < end and data[at] != layout.delimiter[0]:
                return SEVERAL if data[at] == 10 or data[at] == 13 else BEHIND_QUOTE
            _value(kind, layout.work, 0, size, out)
        else:
            begin = at
            while at < end and data[at] != layout.delimiter[0]:
                if data[at] == 10 or data[at] == 13:
                    return SEVERAL
                at += 1
            if at == begin:
                put_bytes(out, _NULL, 0, 4)
            else:
                _value(kind, data, begin, at, out)
        if out.state[AT] > out.state[LIMIT]:
            return TOO_LONG
        if column < columns - 1:
            if at >= end:
                return TOO_FEW
            at += 1
    put_byte(out, 125)
    return FINE if at >= end else TOO_MANY


@borrowing
def read_csv(
    data: ByteArray, ends: Int64Array, first: int, layout: Layout, out: Output, verdicts: ByteArray
) -> int:
    """Write records from ``first`` on while there is room; the first that is not written."""
    for record in range(first, len(ends)):
        if not begin_text(out):
            return record
        begin = ends[record - 1] if record else 0
        verdicts[record] = _read_line(data, begin, ends[record], layout, out)
        end_text(out, record, verdicts[record] == FINE)
    return len(ends)


@dataclass(frozen=True, slots=True)
class Csv:
    """fields: the columns, in the order of a record's fields. delimiter: one character of ASCII."""

    fields: tuple[Field, ...]
    delimiter: str

    def texts(self, values: Sequence[bytes]) -> Texts:
        heads = [
            (b"," if place else b"{") + orjson.dumps(one.name) + b":" for place, one in enumerate(self.fields)
        ]
        layout = Layout(
            np.array([_kind(one) for one in self.fields], np.int64),
            np.frombuffer(b"".join(heads), np.uint8),
            np.cumsum([len(head) for head in heads]),
            np.array([ord(self.delimiter)], np.int64),
            np.empty(max(map(len, values), default=0) + 1, np.uint8),
        )
        texts, verdicts = transcoded(
            values, lambda data, ends, first, out, told: read_csv(data, ends, first, layout, out, told)
        )
        bad = {place: self._reason(verdicts[place]) for place in np.flatnonzero(verdicts).tolist()}
        if any(one.type.is_nested for one in self.fields):
            for place, text in enumerate(texts):
                if place not in bad and (reason := self._not_whole(text or b"")) is not None:
                    bad[place] = reason
        return Texts(texts, bad)

    def _reason(self, verdict: int) -> str:
        if verdict in (TOO_FEW, TOO_MANY):
            counted = "fewer" if verdict == TOO_FEW else "more"
            return f"{counted} fields than the {len(self.fields)} columns of the value"
        return _REASONS[verdict]

    def _not_whole(self, text: bytes) -> str | None:
        """Why a text is no object of the columns alone, as nested fields have to be JSON; None: it is one."""
        try:
            if len(orjson.loads(text)) == len(self.fields):
                return None
        except ValueError:
            try:
                text.decode()
            except UnicodeDecodeError as error:
                return f"not UTF-8: {error.reason}"
        return "a field of an ARRAY, STRUCT, MAP or JSON is not JSON"


def _kind(field: Field) -> int:
    if field.type.is_nested:
        return NESTED
    if field.type.is_numeric or field.type.kind is Kind.TIMESTAMP:
        return NUMBER
    return FLAG if field.type.kind is Kind.BOOLEAN else TEXT
