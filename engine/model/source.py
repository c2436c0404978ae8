"""What a stream is: its columns, its topic, and the rules of its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NewType

import pyarrow as pa

from engine.model.constraint import Constraint
from engine.model.paths import Path
from engine.model.record_format import USUAL, RecordFormat
from engine.model.sample import topic_seed
from engine.model.shed import Sheds
from engine.model.types import BIGINT, BOOLEAN, Type

SourceName = NewType("SourceName", str)

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

RETAIN_DEFAULT_MS = DAY_MS
IDLE_TIMEOUT_DEFAULT_MS = 30_000
FUTURE_DEFAULT_MS = DAY_MS


@dataclass(frozen=True, slots=True)
class Field:
    """One declared column. A NULL in a column that is not nullable makes the record a dead letter.

    path: where its value stands in a record's JSON; None: it is the member of the column's name. from_key: a
    stream reads it from the record's key; of a table :attr:`Stream.key` says so.
    """

    name: str
    type: Type
    nullable: bool = True
    path: Path | None = None
    from_key: bool = False

    @property
    def is_apart(self) -> bool:
        """Whether its value is read apart from the plain members of a record: at a path, or as JSON."""
        return self.path is not None or self.type.logical is not None


@dataclass(frozen=True, slots=True)
class Schema:
    """Columns in declared order; names are unique, lower-case unless they were quoted.

    sample_seed: of what a source stores, what its sample keys are made with (:mod:`engine.model.sample`).
    sheds: of a source at work, which of its rows were shed (:mod:`engine.model.shed`); None: none were.
    """

    fields: tuple[Field, ...]
    sample_seed: int = field(default=0, compare=False)
    sheds: Sheds | None = field(default=None, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def field(self, place: int) -> Field:
        """The column at a place; behind the last one stand those that are made (:data:`MADE`)."""
        stored = len(self.fields)
        return self.fields[place] if place < stored else MADE[place - stored]

    def index(self, name: str) -> int | None:
        """The place of a column, None where there is none. O(columns)."""
        for place, column in enumerate(self.fields):
            if column.name == name:
                return place
        return None

    @property
    def arrow(self) -> pa.Schema:
        return pa.schema([pa.field(f.name, f.type.arrow, nullable=f.nullable) for f in self.fields])


DELETED = Field("deleted", BOOLEAN, nullable=False)
SAMPLE_KEY = Field("sample key", BIGINT, nullable=False)
"""Which rows SAMPLE keeps: :mod:`engine.model.sample`."""
SHED_LEVEL = Field("shed level", BIGINT, nullable=False)
"""Which rows were shed: :mod:`engine.model.shed`."""
MADE = (SAMPLE_KEY, SHED_LEVEL)
"""What a source's rows have behind the columns that it stores; no row holds it, it is made of where rows come
from.
"""


@dataclass(frozen=True, slots=True)
class Stream:
    """A source: append-only, or a table where it has a key.

    key: columns of which a table has at most one row for each value: the last in order counts, and a record
    with a key alone takes the row away. retroactive: a join takes the table as it is, not as it was at the
    instant of the row that is joined. timestamp_column: the column of event time; None: arrival time, the
    topic's LogAppendTime. lateness_ms: how far behind the largest timestamp a partition's watermark stays
    (plus 1 ms). idle_timeout_ms: after so long without records a partition that is fully read holds NOW back
    no more. idle_advances: when all partitions are idle NOW goes on with the journalled clock. retain_ms:
    rows older than NOW - retain_ms may go, unless a window reaches further back. future_max_ms: a timestamp
    further ahead of the clock than this is a dead letter. past_max_ms: a timestamp further behind Kafka's own
    timestamp of the record than this is a dead letter; None: only one that is seconds taken for ms.
    constraints: what its rows promise; those that break it are late. format: how its records are written.
    """

    name: SourceName
    schema: Schema
    topic: str
    timestamp_column: str | None = None
    lateness_ms: int = 0
    idle_timeout_ms: int = IDLE_TIMEOUT_DEFAULT_MS
    idle_advances: bool = False
    retain_ms: int = RETAIN_DEFAULT_MS
    future_max_ms: int = FUTURE_DEFAULT_MS
    past_max_ms: int | None = None
    constraints: tuple[Constraint, ...] = field(default=())
    key: tuple[str, ...] = ()
    retroactive: bool = True
    format: RecordFormat = USUAL

    @property
    def is_table(self) -> bool:
        return bool(self.key)

    @property
    def kind(self) -> str:
        """What lists and messages call it."""
        return "table" if self.is_table else "stream"

    @property
    def keyed(self) -> tuple[str, ...]:
        """The columns that are read from the keys of records: of a table those of its key."""
        return self.key or tuple(one.name for one in self.schema if one.from_key)

    @property
    def stored_schema(self) -> Schema:
        """The columns that its stored rows have; those of a table also say whether the row takes its key's
        row away.
        """
        fields = (*self.schema.fields, DELETED) if self.is_table else self.schema.fields
        return Schema(fields, topic_seed(self.topic))

    @property
    def sample_place(self) -> int:
        """The place of its rows' sample keys."""
        return len(self.schema) + int(self.is_table)

    @property
    def shed_place(self) -> int:
        """The place of its rows' shed levels."""
        return self.sample_place + 1

    @property
    def event_time(self) -> bool:
        return self.timestamp_column is not None


@dataclass(frozen=True, slots=True)
class Derived:
    """A name for a SELECT: a view, or a stream or a table derived from a query.

    sql: the SELECT's text, bound anew wherever the name is used. is_stream: its rows only ever come, with
    instants of their own, so that a window may be put over it; a view is a relation, which has its windows
    inside. is_table: it is one whose rows have a key (:mod:`engine.changes.result_key`).
    """

    name: SourceName
    sql: str
    is_stream: bool = False
    is_table: bool = False

    @property
    def kind(self) -> Literal["stream", "table", "view"]:
        """What lists and statements call it."""
        return "stream" if self.is_stream else "table" if self.is_table else "view"

    def as_dict(self) -> dict[str, Any]:
        """Its fields as JSON has them; what earlier versions lack is left out where it says nothing."""
        facts = {"name": self.name, "sql": self.sql, "is_stream": self.is_stream}
        return facts | ({"is_table": True} if self.is_table else {})
