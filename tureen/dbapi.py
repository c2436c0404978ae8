"""DB-API 2.0 (PEP 249) for tools that speak SQL to a database.

    import tureen.dbapi

    with tureen.dbapi.connect("http://127.0.0.1:8080") as connection:
        pandas.read_sql("SELECT city FROM orders [RANGE 1 HOUR] WHERE price > ?", connection, params=[50])

A SELECT is answered once, by the rows that are there: it is registered, answered and unregistered by each
``execute``, so nothing stays behind. Parameters fill its ``?``, each as one constant. Other statements (SHOW,
DESCRIBE, EXPLAIN, CREATE, DROP, ...) are carried out as written. There are no transactions: every statement
counts at once, ``commit`` has nothing to do and ``rollback`` is refused.

Threads may share the module and connections, not cursors. A cursor holds the whole answer, as Arrow.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any

import pyarrow as pa

from tureen.answers import Listing
from tureen.builder import Select
from tureen.client import TIMEOUT_DEFAULT_S, Client
from tureen.client import connect as connect_client
from tureen.dbapi_errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,  # noqa: A004
    translated,
)
from tureen.statements import is_query, split
from tureen.texts import text_of

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Connection",
    "Cursor",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeCode",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"

Row = tuple[Any, ...]
Column = tuple[str, "TypeCode", None, None, int | None, int | None, None]
"""Name, type, display size, internal size, precision, scale, whether it may hold NULL, which is not known."""


class TypeCode(Enum):
    """The types that ``description`` tells."""

    STRING = "string"
    BINARY = "binary"
    NUMBER = "number"
    DATETIME = "datetime"
    ROWID = "rowid"
    BOOLEAN = "boolean"
    ARRAY = "array"


STRING, BINARY, NUMBER = TypeCode.STRING, TypeCode.BINARY, TypeCode.NUMBER
DATETIME, ROWID = TypeCode.DATETIME, TypeCode.ROWID

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes
_PARAMETERS = (str, int, float, datetime.date)  # a bool is an int, a datetime is a date


def DateFromTicks(ticks: float) -> datetime.date:  # noqa: N802
    """The local date of seconds since 1970."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:  # noqa: N802
    """The local time of day of seconds since 1970."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:  # noqa: N802
    """The local date and time of seconds since 1970."""
    return datetime.datetime(*time.localtime(ticks)[:6])


def connect(
    url: str | None = None, token: str | None = None, *, timeout: float = TIMEOUT_DEFAULT_S
) -> Connection:
    """A connection to the broker at ``url``; arguments as those of :func:`tureen.connect`.

    >>> connect("http://127.0.0.1:1").cursor().execute("SHOW QUERIES")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    tureen.dbapi_errors.OperationalError: no broker answers at http://127.0.0.1:1: ...
    hint: start `tureen serve` and wait for its Ready, or give the address with --url or TUREEN_URL
    """
    with translated():
        return Connection(connect_client(url, token=token, timeout=timeout))


class Connection:
    """A client of one broker, as PEP 249 has it. Close it, or use it in a ``with``."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, client: Client) -> None:
        self._client: Client | None = client

    @property
    def client(self) -> Client:
        """What the calls go through. Raises InterfaceError once it is closed."""
        if self._client is None:
            raise InterfaceError("this connection is closed")
        return self._client

    def cursor(self) -> Cursor:
        """A new one; none knows of another."""
        _ = self.client
        return Cursor(self)

    def commit(self) -> None:
        """Nothing to do: every statement counts at once. Raises InterfaceError once it is closed."""
        _ = self.client

    def rollback(self) -> None:
        """Raises NotSupportedError: what is done is done."""
        raise NotSupportedError("there are no transactions: every statement takes effect at once")

    def close(self) -> None:
        """Cursors of it can do nothing more."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Cursor:
    """Statements one after another, each with its rows.

    description: a tuple for each column of the rows, None where a statement has none. rowcount: how many rows
    there are, -1 where there is no answer. rownumber: of the next row, from 0.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._closed = False
        self._forget()

    def _forget(self) -> None:
        self.description: tuple[Column, ...] | None = None
        self.rowcount = -1
        self.rownumber: int | None = None
        self._rows: pa.Table | list[Row] | None = None

    def execute(self, operation: str | Select, parameters: Sequence[Any] = ()) -> Cursor:
        """Answer a SELECT by its present rows, or carry another statement out. Returns the cursor.

        parameters: for each ``?`` a string, a number, a bool, a date, a datetime or None.
        Raises ProgrammingError for a refused text, and what :mod:`tureen.dbapi_errors` tells.
        """
        client = self._open()
        self._forget()
        values = _checked(parameters)
        with translated():
            text = _one(text_of(operation))
            if is_query(text):
                table = (client.ask(template=text, parameters=values) if values else client.ask(text)).table
                self.description = tuple(_column(field) for field in table.schema)
                self._rows, self.rowcount = table, table.num_rows
            elif values:
                raise ProgrammingError(
                    "parameters are supported in a SELECT only; write the constants into this statement"
                )
            else:
                self._take(client.execute(text))
        if self._rows is not None:
            self.rownumber = 0
        return self

    def executemany(self, operation: str | Select, parameters: Sequence[Sequence[Any]]) -> None:
        """Raises NotSupportedError: a SELECT has rows, and nothing else takes parameters."""
        raise NotSupportedError("executemany is not supported: produce records to a topic")

    def fetchone(self) -> Row | None:
        """The next row, None behind the last. Raises InterfaceError where there is no answer."""
        return next(iter(self.fetchmany(1)), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next ``size`` rows, ``arraysize`` by default; fewer where there are no more."""
        self._open()
        if self._rows is None or self.rownumber is None:
            raise InterfaceError("there are no rows: execute a SELECT first")
        begin = self.rownumber
        end = min(self.rowcount, begin + max(0, self.arraysize if size is None else size))
        self.rownumber = end
        if isinstance(self._rows, list):
            return self._rows[begin:end]
        columns = [column.to_pylist() for column in self._rows.slice(begin, end - begin).columns]
        return list(zip(*columns, strict=True))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self.fetchmany(self.rowcount)

    def fetch_arrow_table(self) -> pa.Table:
        """The whole answer of a SELECT as Arrow, whatever was fetched. Raises InterfaceError."""
        if not isinstance(self._rows, pa.Table):
            raise InterfaceError("there is no answer of a SELECT")
        return self._rows

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Nothing to prepare."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing to prepare."""

    def close(self) -> None:
        """Let the rows go."""
        self._closed = True
        self._forget()

    def __iter__(self) -> Iterator[Row]:
        while (row := self.fetchone()) is not None:
            yield row

    def __enter__(self) -> Cursor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> Client:
        if self._closed:
            raise InterfaceError("this cursor is closed")
        return self.connection.client

    def _take(self, listing: Listing) -> None:
        """A table as an answer; what became of a thing has no rows."""
        if listing.columns:
            columns = list(zip(*listing.rows, strict=True)) or [()] * len(listing.columns)
            self.description = tuple(
                (name, _code_of(values), None, None, None, None, None)
                for name, values in zip(listing.columns, columns, strict=True)
            )
            self._rows, self.rowcount = list(listing.rows), len(listing.rows)


def _one(text: str) -> str:
    """The only statement of a text, without a semicolon behind it. Raises ProgrammingError."""
    statements = split(text)
    if len(statements) != 1:
        raise ProgrammingError(f"one statement is executed at a time, not {len(statements)}")
    return statements[0]


def _checked(parameters: Sequence[Any]) -> list[Any]:
    """Raises ProgrammingError for what no placeholder takes."""
    if isinstance(parameters, Mapping | str | bytes):
        raise ProgrammingError("parameters must be a sequence, one value for each ?")
    for value in parameters or ():
        if value is not None and not isinstance(value, _PARAMETERS):
            raise ProgrammingError(
                f"a parameter is a string, a number, a bool, a date, a datetime or None, not {value!r}"
            )
    return list(parameters or ())


def _column(field: pa.Field) -> Column:
    kind = field.type
    precise = (kind.precision, kind.scale) if pa.types.is_decimal(kind) else (None, None)
    return field.name, _code(kind), None, None, *precise, None


def _code(kind: pa.DataType) -> TypeCode:
    if pa.types.is_boolean(kind):
        return TypeCode.BOOLEAN
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_temporal(kind):
        return DATETIME
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return TypeCode.ARRAY
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return BINARY
    return STRING


def _code_of(values: Sequence[Any]) -> TypeCode:
    """The type of a column of a listing, by what is in it."""
    said = [value for value in values if value is not None]
    if said and all(isinstance(value, bool) for value in said):
        return TypeCode.BOOLEAN
    return NUMBER if said and all(isinstance(value, int | float) for value in said) else STRING
