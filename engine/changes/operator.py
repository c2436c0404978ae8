"""Which of the changes of an answer leave it."""

from __future__ import annotations

from collections.abc import Container, Mapping

from engine.language.exits import exits, leave
from engine.language.query import Query
from engine.language.update_patterns import Pattern
from engine.model.changes import Operator
from engine.model.source import SourceName, Stream


def operator_of(query: Query, tables: Container[SourceName]) -> Operator:
    """What the text says; without that ISTREAM where retention alone takes rows away, else all. tables: which
    sources are.
    """
    if query.operator is not None:
        return query.operator
    return "changes" if leave(query, tables, "istream") else "istream"


def operator_over(query: Query, streams: Mapping[SourceName, Stream]) -> Operator:
    """Returns the operator of a query (:func:`operator_of`), given the streams and tables that it reads."""
    return operator_of(query, _tables(streams))


def operator_rule(query: Query, streams: Mapping[SourceName, Stream]) -> str:
    """Which rule gives :func:`operator_over`, in words, for EXPLAIN."""
    if query.operator is not None:
        return f"{query.operator.upper()} as written"
    told = next(exits(query, _tables(streams), Pattern.MON), None)
    if told is None:
        return "ISTREAM by default: rows come, and go by RETAIN alone"
    return f"a relation by default: rows of {told} go or change"


def _tables(streams: Mapping[SourceName, Stream]) -> list[SourceName]:
    return [name for name, stream in streams.items() if stream.is_table]
