"""What statements and questions are answered with, besides snapshots: tables, plans, matches.

Every value keeps the message it was made from, so that what a newer broker adds is not lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tureen.errors import TureenError
from tureen.facts import error_from


@dataclass(frozen=True, slots=True)
class Listing:
    """What a statement answered: a table, or, without columns, what became of the thing that ``facts`` names.

    Iterating gives rows as dictionaries.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Listing:
        return cls(
            tuple(message.get("columns") or ()),
            tuple(tuple(row) for row in message.get("rows") or ()),
            dict(message),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Matches:
    """The standing queries that a record satisfies.

    query_ids: public ids, as many as were asked for at most; total: how many there are. error: why the record
    is none.
    """

    query_ids: tuple[str, ...]
    total: int
    error: TureenError | None = None

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Matches:
        error = message.get("error")
        return cls(
            tuple(message.get("queries") or ()),
            int(message.get("total") or 0),
            error_from(error) if error else None,
        )


@dataclass(frozen=True, slots=True)
class EndedQueries:
    """What became of queries that were to end.

    query_ids: those that ended. pending: their end is written, its outcome not known yet. unknown: places of
    what was given that is no query's, with the error.
    """

    query_ids: tuple[str, ...]
    pending: tuple[str, ...] = ()
    unknown: tuple[tuple[int, TureenError], ...] = ()

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> EndedQueries:
        return cls(
            tuple(message.get("ended") or ()),
            tuple(message.get("pending") or ()),
            tuple((int(one["place"]), error_from(one["error"])) for one in message.get("unknown") or ()),
        )


@dataclass(frozen=True, slots=True)
class Promised:
    """What a heartbeat did.

    raised: the partitions whose watermark rose by it. unchanged: those that were as far already. now_ms: NOW
    of the stream after it, ms since 1970; None: it has none yet.
    """

    raised: tuple[int, ...]
    unchanged: tuple[int, ...]
    now_ms: int | None

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Promised:
        return cls(tuple(message["raised"]), tuple(message["unchanged"]), message["now_ms"])


@dataclass(frozen=True, slots=True)
class Dropped:
    """What went with a stream, a table or a view: ids of queries, names of views."""

    query_ids: tuple[str, ...] = ()
    views: tuple[str, ...] = ()

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Dropped:
        return cls(tuple(message.get("ended") or ()), tuple(message.get("dropped") or ()))
