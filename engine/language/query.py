"""A bound query: what a registered text means, ready for the engine."""

from __future__ import annotations

from dataclasses import dataclass

from engine.language.expressions import Expression
from engine.model.source import SourceName, Stream
from engine.model.types import Type
from engine.windows.clauses import Window


@dataclass(frozen=True, slots=True)
class Output:
    """One selected column."""

    name: str
    expression: Expression

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class CountRows:
    """``SELECT COUNT(*)``: the number of rows in the answer; ``name`` is the column's."""

    name: str


@dataclass(frozen=True, slots=True)
class Selection:
    """SELECT outputs FROM source [window] WHERE predicate.

    predicate: a BOOLEAN expression, or None for every row. outputs: at least one column, or CountRows.
    """

    sql: str
    source: SourceName
    window: Window
    predicate: Expression | None
    outputs: tuple[Output, ...] | CountRows


@dataclass(frozen=True, slots=True)
class CreateStream:
    """CREATE STREAM; ``if_not_exists`` makes an equal definition no error. ``partitions``: for a new
    topic.
    """

    stream: Stream
    sql: str
    partitions: int = 1
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropStream:
    """DROP STREAM name."""

    name: SourceName
    if_exists: bool = False


Statement = Selection | CreateStream | DropStream
