"""For those who have an engine in their own process: steps made and applied in one call, refusals raised."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engine.language.query import CreateFromQuery as DerivedStatement
from engine.language.query import CreateStream, Statement
from engine.language.query import CreateSummary as SummaryStatement
from engine.model.batch import Batch
from engine.model.source import SourceName
from engine.model.step import (
    Alter,
    Backfill,
    Body,
    CreateDerived,
    CreateSource,
    CreateSummary,
    Position,
    Records,
    Register,
    Registration,
    Step,
    StepResult,
    Unregister,
)
from engine.sources.source import Source
from tureen.errors import NotSupported


class Embedding(ABC):
    """The calls. What they rest on is the engine's."""

    _enqueued: Position

    @property
    @abstractmethod
    def _clock_ms(self) -> int: ...

    @abstractmethod
    def prepare(self, sql: str) -> Statement: ...

    @abstractmethod
    def enqueue(self, step: Step) -> None: ...

    @abstractmethod
    def run(self) -> list[StepResult]: ...

    @abstractmethod
    def _source(self, name: str) -> Source: ...

    def create(self, sql: str, clock_ms: int = 0) -> StepResult:
        """Make and apply the step of a text that creates a stream, view or summary. Raises its refusal."""
        statement = self.prepare(sql)
        match statement:
            case CreateStream(stream):
                return self._now(CreateSource(stream, sql), clock_ms)
            case DerivedStatement(derived):
                return self._now(CreateDerived(derived), clock_ms)
            case SummaryStatement(definition):
                return self._now(CreateSummary(definition, sql), clock_ms)
            case _:
                hint = "CREATE STREAM name (column TYPE, ...), or CREATE VIEW name AS SELECT ..."
                raise NotSupported("this is not a CREATE statement", hint=hint, line=1, column=1)

    def register(self, query_id: str, sql: str, clock_ms: int = 0) -> StepResult:
        """Make and apply the step that registers one query. Raises its refusal."""
        return self._now(Register((Registration(query_id, sql),)), clock_ms)

    def alter(self, query_id: str, sql: str, clock_ms: int = 0) -> StepResult:
        """Make and apply the step that gives a query another text. Raises its refusal, UnknownQuery."""
        return self._now(Alter((Registration(query_id, sql),)), clock_ms)

    def unregister(self, query_id: str, clock_ms: int = 0) -> StepResult:
        """Make and apply the step that removes one query."""
        return self._now(Unregister((query_id,)), clock_ms)

    def ingest(
        self, source: str, batch: Batch, clock_ms: int = 0, lagging: frozenset[int] = frozenset()
    ) -> StepResult:
        """Make and apply the step that brings these rows."""
        return self._now(Records(SourceName(source), batch, {}, lagging), clock_ms)

    def backfill(self, source: str, batch: Batch, complete_from_ms: int) -> StepResult:
        """Make and apply the step that brings these rows back. Raises its refusal."""
        name = SourceName(source)
        return self._now(Backfill(name, batch, complete_from_ms, self._source(name).boundary_ms or 0), 0)

    def _now(self, body: Body, clock_ms: int) -> StepResult:
        last = self._enqueued
        self.enqueue(Step(Position(last.epoch, last.sequence + 1), max(clock_ms, self._clock_ms), body))
        result = self.run()[-1]
        for refusal in result.failed.values():
            raise refusal
        return result
