"""The columns of an answer as they travel in JSON: their types, and values there and back.

| type            | in JSON                                              | in Python                    |
|-----------------|------------------------------------------------------|------------------------------|
| BOOLEAN, INTEGER, BIGINT, STRING | as JSON has it                      | bool, int, str               |
| DOUBLE          | number; "NaN", "Infinity", "-Infinity"               | float                        |
| DECIMAL(p, s)   | text with all its digits                             | Decimal                      |
| DATE            | "2013-01-31"                                         | date                         |
| TIMESTAMP       | "2013-01-31T09:15:00.000Z"                           | datetime in UTC, without zone |
| ARRAY<type>     | an array of these                                    | tuple                        |
| STRUCT<...>, MAP<...> | an object                                      | Pairs, a tuple of (name, value) |
| JSON            | as it is                                             | JsonText, a str, members sorted |
| BYTES           | base64                                               | bytes                        |
| UUID            | text                                                 | str                          |
| NULL            | null                                                 | None                         |

Days and instants beyond the years 1 to 9999 are numbers in Python: days and ms since 1970, and so in JSON
when they are written again. Python's values are hashable, and equal where the values are: there is one NaN,
which equals itself within a row. Cost: O(values); columns whose values are the same in both are not touched.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tureen.errors import BrokerUnavailable

if TYPE_CHECKING:
    import pyarrow as pa

Row = tuple[Any, ...]

NAN = float("nan")
"""The one NaN: tuples compare by identity first, so rows that hold it are equal."""

_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)
_DECIMAL = re.compile(r"DECIMAL\((\d+), ?(-?\d+)\)")
_MEMBER = re.compile(r'(?:(\w+)|"((?:[^"]|"")*)") ')
_DOUBLES = {"NaN": NAN, "Infinity": math.inf, "-Infinity": -math.inf}

Read = Callable[[Any], Any]


class Pairs(tuple[tuple[str, Any], ...]):
    """A STRUCT or a MAP: its names and values."""

    __slots__ = ()


class JsonText(str):
    """A value of JSON, as text."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer: its name, and its type as SQL names it."""

    name: str
    type: str

    @property
    def arrow(self) -> pa.DataType:
        """Its type in Arrow.

        >>> Column("mean", "ARRAY<DECIMAL(10, 2)>").arrow
        ListType(list<item: decimal128(10, 2)>)
        """
        return _arrow(self.type)


def columns_of(message: Iterable[Any]) -> tuple[Column, ...]:
    """Columns as a broker tells them: objects with a name and a type."""
    return tuple(Column(str(one["name"]), str(one["type"])) for one in message)


def rows_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[Row]:
    """Rows as JSON has them, as Python does.

    >>> rows_of([Column("at", "TIMESTAMP"), Column("p", "DECIMAL(4, 1)")], [["2025-06-01T10:00:00.500Z", "9.5"]])
    [(datetime.datetime(2025, 6, 1, 10, 0, 0, 500000), Decimal('9.5'))]

    Raises BrokerUnavailable for values that their type cannot have.
    """  # noqa: E501
    readers = [_reader(column.type) for column in columns]
    try:
        if all(read is None for read in readers):
            found = [tuple(row) for row in rows]
        else:
            found = [
                tuple(
                    value if read is None or value is None else read(value)
                    for read, value in zip(readers, row, strict=True)
                )
                for row in rows
            ]
    except (ValueError, TypeError, LookupError, ArithmeticError):
        raise BrokerUnavailable("a row does not match the announced columns") from None
    if any(len(row) != len(columns) for row in found):
        raise BrokerUnavailable("a row does not match the announced columns")
    return found


def json_row(row: Row) -> list[Any]:
    """A row as it travels.

    >>> json_row((date(2025, 6, 1), NAN, (1, None)))
    ['2025-06-01', 'NaN', [1, None]]
    """
    return [_written(value) for value in row]


def arrow_table(columns: Sequence[Column], rows: Sequence[Row]) -> pa.Table:
    """Rows as Arrow, of the columns' types. O(rows x columns)."""
    import pyarrow as pa

    if not columns:
        return pa.table({})
    values = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return pa.Table.from_arrays(
        [
            pa.array([_for_arrow(one) for one in each], column.arrow)
            for column, each in zip(columns, values, strict=True)
        ],
        names=[column.name for column in columns],
    )


def _for_arrow(value: Any) -> Any:
    """With objects as dicts."""
    if isinstance(value, Pairs):
        return {name: _for_arrow(one) for name, one in value}
    return [_for_arrow(one) for one in value] if isinstance(value, tuple) else value


def _arrow(type_: str) -> pa.DataType:
    import pyarrow as pa

    if type_.startswith("ARRAY<"):
        return pa.list_(_arrow(type_[6:-1]))
    if type_.startswith("MAP<STRING, "):
        return pa.map_(pa.string(), _arrow(type_[12:-1]))
    if type_.startswith("STRUCT<"):
        return pa.struct([(name, _arrow(inner)) for name, inner in members_of(type_)])
    if found := _DECIMAL.fullmatch(type_):
        return pa.decimal128(int(found[1]), int(found[2]))
    plain = {
        "BOOLEAN": pa.bool_(),
        "INTEGER": pa.int32(),
        "BIGINT": pa.int64(),
        "DOUBLE": pa.float64(),
        "STRING": pa.string(),
        "DATE": pa.date32(),
        "TIMESTAMP": pa.timestamp("ms"),
        "NULL": pa.null(),
        "JSON": pa.string(),
        "UUID": pa.string(),
        "BYTES": pa.binary(),
    }
    if type_ not in plain:
        raise BrokerUnavailable(f"a column is of the type {type_!r}", hint="a newer client may know it")
    return plain[type_]


def _reader(type_: str) -> Read | None:
    """How a value is read that is not NULL; None where it is as JSON has it."""
    if type_.startswith("ARRAY<"):
        return _array_reader(_reader(type_[6:-1]))
    if type_.startswith("MAP<STRING, "):
        return _map_reader(_reader(type_[12:-1]))
    if type_.startswith("STRUCT<"):
        return _struct_reader({name: _reader(inner) for name, inner in members_of(type_)})
    return _READERS.get("DECIMAL" if type_.startswith("DECIMAL") else type_)


def _array_reader(read: Read | None) -> Read:
    if read is None:
        return tuple
    return lambda values: tuple(None if value is None else read(value) for value in values)


def _map_reader(read: Read | None) -> Read:
    def read_map(value: Any) -> Row:
        pairs = sorted(value.items())
        return Pairs((key, one if read is None or one is None else read(one)) for key, one in pairs)

    return read_map


def _struct_reader(members: dict[str, Read | None]) -> Read:
    def read_struct(value: Any) -> Row:
        given = [(name, value[name], read) for name, read in members.items()]
        return Pairs((name, one if read is None or one is None else read(one)) for name, one, read in given)

    return read_struct


def members_of(type_: str) -> list[tuple[str, str]]:
    """The members of a STRUCT, by name, and their types.

    >>> members_of('STRUCT<a INTEGER, "b c" ARRAY<DECIMAL(4, 1)>>')
    [('a', 'INTEGER'), ('b c', 'ARRAY<DECIMAL(4, 1)>')]
    """
    found: list[tuple[str, str]] = []
    text = type_[len("STRUCT<") : -1]
    while text:
        match = _MEMBER.match(text)
        if match is None:
            raise BrokerUnavailable(f"a column is of the type {type_!r}", hint="a newer client may know it")
        name = match[1] if match[1] is not None else match[2].replace('""', '"')
        end, depth, quoted = match.end(), 0, False
        while end < len(text) and (depth or quoted or text[end] != ","):
            quoted ^= text[end] == '"'
            depth += 0 if quoted else (text[end] in "<(") - (text[end] in ">)")
            end += 1
        found.append((name, text[match.end() : end]))
        text = text[end + 2 :]
    return found


def _json_text(value: Any) -> JsonText:
    return JsonText(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")))


def _double(value: Any) -> float:
    return _DOUBLES[value] if isinstance(value, str) else float(value)


def _instant(value: Any) -> datetime | int:
    """Without its zone, which is UTC. One that Python's calendar does not have stays a number of ms."""
    if isinstance(value, int):
        return value
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None)
    except ValueError:
        return _far_ms(value)


def _date(value: Any) -> date | int:
    """One that Python's calendar does not have stays a number of days."""
    if isinstance(value, int):
        return value
    try:
        return date.fromisoformat(value)
    except ValueError:
        return _far_ms(f"{value}T00:00:00Z") // 86_400_000


_READERS: dict[str, Read] = {
    "DOUBLE": _double,
    "DECIMAL": Decimal,
    "DATE": _date,
    "TIMESTAMP": _instant,
    "JSON": _json_text,
    "BYTES": base64.b64decode,
}


def _far_ms(text: str) -> int:
    """The ms since 1970 of an instant beyond the years 1 to 9999; the calendar repeats every 400 years."""
    found = re.fullmatch(r"([+-]?\d+)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?Z", text)
    if found is None:
        raise ValueError(text)
    year, *rest = (int(part or 0) for part in found.groups())
    eras, within = divmod(year - 2000, 400)
    month, day, hour, minute, second, ms = rest
    at = datetime(2000 + within, month, day, hour, minute, second, tzinfo=UTC).replace(tzinfo=None)
    return (at - _EPOCH) // _MS + ms + eras * 146_097 * 86_400_000


def _written(value: Any) -> Any:
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, datetime):
        return f"{value.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Pairs):
        return {name: _written(one) for name, one in value}
    if isinstance(value, tuple | list):
        return [_written(one) for one in value]
    if isinstance(value, JsonText):
        return json.loads(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value
