"""An answer as it was fetched: rows, and the position and instant at which they are true."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tureen.approximation import Approximation, approximations_from
from tureen.catching_up import CatchingUp, catching_up_from
from tureen.errors import InstantRefused, PackageMissing
from tureen.protocol import (
    HEADER_APPROXIMATION,
    HEADER_CATCHING_UP,
    HEADER_CHANGE_POSITION,
    METADATA_APPROXIMATION,
)

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Instant = int | str | date | datetime
"""Milliseconds since 1970, such a number or ISO 8601 as text, a date (its midnight), a datetime. UTC where no
time zone is named."""


def instant_ms(at: Instant) -> int:
    """Milliseconds since 1970. Raises InstantRefused.

    >>> instant_ms(datetime(2013, 1, 1, tzinfo=UTC)), instant_ms("2013-01-01"), instant_ms(date(2013, 1, 1))
    (1356998400000, 1356998400000, 1356998400000)
    >>> instant_ms("1356998400000"), instant_ms("2013-01-01T01:00:00+01:00")
    (1356998400000, 1356998400000)
    """
    if isinstance(at, str):
        if _DIGITS.fullmatch(at.strip()):
            return int(at)
        try:
            at = datetime.fromisoformat(at.strip())
        except ValueError:
            raise InstantRefused(at) from None
    if isinstance(at, datetime):
        zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return (zoned - EPOCH) // timedelta(milliseconds=1)
    if isinstance(at, date):
        return instant_ms(datetime(at.year, at.month, at.day, tzinfo=UTC))
    try:
        return operator.index(at)
    except TypeError:
        raise InstantRefused(at) from None


_DIGITS = re.compile(r"-?\d{1,17}", re.ASCII)


def instant_of(ms: int) -> datetime:
    """The instant of so many milliseconds since 1970, in UTC. Raises OverflowError beyond the year 9999."""
    return EPOCH + timedelta(milliseconds=ms)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer as it travelled: its bytes in ``format``, and the headers (lower-case) that came along."""

    content: bytes
    format: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The answer of one query, exact for the prefix of the data that ``position`` names.

    position: opaque; two snapshots with the same position saw the same data. now_ms: NOW of the query in ms
    since 1970, None before its first row. complete: False where the window reaches back to rows that are no
    longer retained, and is complete from ``complete_from_ms`` on; and where sources are ``catching_up``: they
    have not read yet what their topics held when the broker began to read them. approximation: what of it is
    not exact and why, only ever where the query allowed that; empty: it is exact. errors: selected values
    that could not be computed and stand as NULL. condition_errors: rows whose condition could not be
    computed, which are not in it; counted while the query stands. late, dead_letters: records of its sources
    that the answer lacks, since they came at or before NOW or could not be read; counted from
    ``counted_from_ms`` on, None: from a time that is not known. change_position: where its changes go on, for
    ``query.changes(since=...)``; None where it is not told. archive_rows: how many rows of the archive it
    was made with; None: it was made without. earliest_ms: the first instant that ``at`` may name for this
    query, told with archive_rows; None: there is no bound.
    swapped_in_ms: how long it took to bring the query back from disk; None: it was in memory.
    """

    table: pa.Table
    position: str
    now_ms: int | None
    complete: bool = True
    complete_from_ms: int | None = None
    approximation: tuple[Approximation, ...] = ()
    errors: int = 0
    change_position: str | None = None
    archive_rows: int | None = None
    earliest_ms: int | None = None
    late: int = 0
    dead_letters: int = 0
    counted_from_ms: int | None = None
    catching_up: tuple[CatchingUp, ...] = ()
    condition_errors: int = 0
    swapped_in_ms: float | None = None

    @classmethod
    def of(cls, reply: Reply) -> Snapshot:
        """Read a reply in the format ``arrow`` (a stream of Arrow IPC). O(rows)."""
        with pa.ipc.open_stream(reply.content) as reader:
            table = reader.read_all()
        return cls.said(table, reply.headers)

    @classmethod
    def said(cls, table: pa.Table, headers: Mapping[str, str]) -> Snapshot:
        """What the headers of a reply say of it, with some rows of it."""

        def number(name: str) -> int | None:
            text = headers.get(name, "")
            return int(text) if text.lstrip("-").isdigit() else None

        return cls(
            table=table,
            position=headers.get("tureen-position", ""),
            now_ms=number("tureen-now-ms"),
            complete=headers.get("tureen-complete", "true").lower() == "true",
            complete_from_ms=number("tureen-complete-from-ms"),
            approximation=_tags(table, headers),
            errors=number("tureen-errors") or 0,
            change_position=headers.get(HEADER_CHANGE_POSITION) or None,
            archive_rows=number("tureen-archive-rows"),
            earliest_ms=number("tureen-earliest-ms"),
            late=number("tureen-late") or 0,
            swapped_in_ms=float(text) if (text := headers.get("tureen-swapped-in-ms")) else None,
            dead_letters=number("tureen-dead-letters") or 0,
            counted_from_ms=number("tureen-counted-from-ms"),
            catching_up=catching_up_from(headers.get(HEADER_CATCHING_UP)),
            condition_errors=number("tureen-condition-errors") or 0,
        )

    @property
    def approximate(self) -> bool:
        """Whether it is not exact."""
        return bool(self.approximation)

    @property
    def now(self) -> datetime | None:
        """NOW of the query in UTC, None before its first row.

        The timestamps in the rows are in UTC too, and without a zone, as SQL's TIMESTAMP is:
        ``now.replace(tzinfo=None)`` compares with them.
        """
        return None if self.now_ms is None else instant_of(self.now_ms)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame. Raises PackageMissing where pandas is not installed."""
        return frame_of(self.table)

    def to_polars(self) -> pl.DataFrame:
        """A polars DataFrame, uncopied where Arrow allows. Raises PackageMissing without polars."""
        return polars_of(self.table)

    def rows(self) -> list[dict[str, Any]]:
        """One dict a row, in the order of the answer: timestamp, partition, offset.

        >>> Snapshot(pa.table({"origin": ["JFK", "EWR"]}), "1-7", None).rows()
        [{'origin': 'JFK'}, {'origin': 'EWR'}]
        """
        rows: list[dict[str, Any]] = self.table.to_pylist()
        return rows

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        return f"<Snapshot of {len(self):,} rows at position {self.position}, NOW {self.now}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tureen.display import snapshot_html

        return snapshot_html(self)

    def __len__(self) -> int:
        return int(self.table.num_rows)


def _tags(table: pa.Table, headers: Mapping[str, str]) -> tuple[Approximation, ...]:
    """From the schema, which has all of them, or from the header."""
    told = (table.schema.metadata or {}).get(METADATA_APPROXIMATION.encode())
    return approximations_from(told or headers.get(HEADER_APPROXIMATION))


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A pandas DataFrame. Raises PackageMissing where pandas is not installed."""
    _need("pandas")
    frame: pd.DataFrame = table.to_pandas()
    return frame


def polars_of(table: pa.Table) -> pl.DataFrame:
    """A polars DataFrame, uncopied where Arrow allows. Raises PackageMissing without polars."""
    _need("polars")
    import polars as pl

    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _need(package: str) -> None:
    try:
        import_module(package)
    except ModuleNotFoundError:
        raise PackageMissing(
            package, hint=f"pip install {package}; to_arrow() and rows() work without it"
        ) from None
