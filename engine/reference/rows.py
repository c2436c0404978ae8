"""Streams and rows as the reference holds them: tuples of Python values, at their place in the stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from engine.model.batch import Batch, Column
from engine.model.expressions import Value
from engine.model.shed import NOT_SHED
from engine.model.source import Stream
from engine.model.types import Kind
from engine.reference.samples import sample_key
from engine.reference.values import Identity, decimal_of, identity

Values = tuple[Value, ...]


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A row at its place in the order of the source; no two share a place. deleted: of a table, the version
    that takes its key away.
    """

    timestamp: int
    partition: int
    offset: int
    values: Values = field(compare=False)
    deleted: bool = field(default=False, compare=False)


@dataclass(slots=True)
class Partition:
    """What is known of a partition's time."""

    timestamp_max: int | None = None
    active_clock: int | None = None
    promised: int | None = None

    def watermark(self, lateness_ms: int) -> int | None:
        """The watermark of the partition; None: nothing is known of it."""
        known = [] if self.timestamp_max is None else [self.timestamp_max - lateness_ms - 1]
        known += [] if self.promised is None else [self.promised]
        return max(known, default=None)


@dataclass(slots=True)
class Source:
    """A stream or table with all rows that ever entered, in order; those before place ``base`` are gone for
    every answer.

    first: the ordinal of the first of them. lacks: more may have been before.
    complete_from: rows of earlier instants may be missing among those that are there. shed: (partition, first
    offset, offset behind the last, level) of rows that were shed.
    """

    stream: Stream
    now: int | None = None
    partitions: dict[int, Partition] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    pending: list[Row] = field(default_factory=list)
    retained_from: int | None = None
    base: int = 0
    first: int = 0
    lacks: bool = False
    complete_from: int | None = None
    idle: frozenset[int] = frozenset()
    shed: list[tuple[int, int, int, int]] = field(default_factory=list)

    def first_at_or_after(self, timestamp: int) -> int:
        """The place of the first row with this timestamp or a later one."""
        return sum(row.timestamp < timestamp for row in self.rows)

    def read(self, row: Row) -> Values:
        """What predicates read: the values, and behind those that its source stores the row's sample key and
        its shed level.
        """
        deleted = (row.deleted,) if self.stream.is_table else ()
        key = sample_key(self.stream.topic, row.partition, row.offset)
        return (*row.values, *deleted, key, self.shed_level(row))

    def shed_level(self, row: Row) -> int:
        """How much of the rows a query must let go so that it does not see this one."""
        for partition, first, until, level in self.shed:
            if partition == row.partition and first <= row.offset < until:
                return level
        return NOT_SHED

    def key_of(self, row: Row) -> Identity:
        """What versions of one row of a table have in common."""
        places = [self.stream.schema.index(name) for name in self.stream.key]
        return identity([row.values[place] for place in places if place is not None])

    def raise_now(self, candidate: int) -> None:
        self.now = candidate if self.now is None else max(self.now, candidate)


@dataclass(frozen=True, slots=True)
class Placed:
    """A row of a relation. ordinal: of a scan's row its place in the source, else None. moment: of a row of a
    stream its (timestamp, partition, offset), else None.
    """

    ordinal: int | None
    values: Values
    moment: tuple[int, int, int] | None = None


def versions(batch: Batch) -> list[Row]:
    """The rows of a batch of a table, whose last column says which are deleted."""
    return [replace(row, values=row.values[:-1], deleted=bool(row.values[-1])) for row in python_rows(batch)]


def python_rows(batch: Batch) -> list[Row]:
    """The rows of a batch as tuples of Python values."""
    columns = [python_values(column) for column in batch.columns]
    return [
        Row(
            int(batch.timestamp[i]),
            int(batch.partition[i]),
            int(batch.offset[i]),
            tuple(column[i] for column in columns),
        )
        for i in range(len(batch))
    ]


def python_values(column: Column) -> list[Value]:
    """The values of a column as :mod:`engine.model.types` says they are in Python."""
    values: list[Value] = []
    for i, value in enumerate(column.values.tolist()):
        valid = column.type.kind is not Kind.NULL and (column.valid is None or bool(column.valid[i]))
        values.append(_python_value(column, value) if valid else None)
    return values


def _python_value(column: Column, value: Any) -> Value:
    kind = column.type.kind
    if kind is Kind.STRING:
        assert column.dictionary is not None
        text: str = column.dictionary[value].as_py()
        return text
    if kind is Kind.DECIMAL:
        return decimal_of(value, column.type.scale)
    plain: Value = value
    return plain
