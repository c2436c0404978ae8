"""What all engines of a worker are made with: limits, functions for SQL, measured costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from time import perf_counter_ns, thread_time_ns

from broker.base import logs
from broker.base.parsed import Parsed
from broker.base.settings import Settings
from engine.dataflow.buffers.settings import StateSettings
from engine.eddy.eddy import Timer
from engine.engine import Engine
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.model.batch import Batch
from engine.model.capacities import Capacities
from engine.model.limits import Limits
from engine.model.maintenance import Costs
from engine.model.persistence import HeldState, QueryState, SourceState, StateSource
from engine.model.source import Derived, SourceName, Stream
from engine.model.state_tree import Tree
from engine.model.step import Position
from engine.queries.summaries import stored_definitions
from tureen.errors import LimitExceeded, QueryError

log = logs.get()


def limits(settings: Settings) -> Limits:
    """The engine's limits as the settings say."""
    return Limits(
        sql_bytes_max=settings.sql_bytes_max,
        nesting_max=settings.nesting_max,
        queries_max=settings.queries_max,
        snapshot_rows_max=settings.snapshot_rows_max,
        changes_max=settings.changes_max,
        archive_rows_max=settings.archive_rows_max,
        analyze_rows_max=settings.analyze_rows_max,
    )


def state_settings(settings: Settings, capacities: Capacities) -> StateSettings:
    """What the engines of this process keep rows in is made as the settings say."""
    state = StateSettings(capacities)
    for one in state.attributes():
        state.change(one.name, getattr(settings, one.name))
    return state


@dataclass(frozen=True, slots=True)
class Engines:
    """Makes engines alike."""

    limits: Limits
    functions: FunctionCatalogue = BUILT_IN
    costs: Costs | None = None
    scheduler: str = "fifo"
    """The scheduling policy that they begin with."""
    timer: Timer = perf_counter_ns
    """By which they measure; it is read amid long work."""
    state: StateSettings = field(default_factory=StateSettings)
    """What their state is made with, shared by all of them."""

    def fresh(self) -> Engine:
        """One that holds nothing."""
        engine = Engine(
            self.limits,
            functions=self.functions,
            costs=self.costs,
            timer=self.timer,
            clock=thread_time_ns,
            state=self.state,
        )
        engine.scheduler.set_policy(self.scheduler)
        return engine

    def restored(self, stored: StateSource) -> Engine:
        """One as stored, but for queries that are refused now: a function they call may be gone.

        Those stay in the store. The registry says them again, and their refusal is then their state.
        """
        try:
            return self._restored(stored)
        except (QueryError, LimitExceeded):
            accepted = _Accepted(stored, self)
            return self._restored(accepted)

    def _restored(self, stored: StateSource) -> Engine:
        engine = Engine.restore(
            stored,
            self.limits,
            functions=self.functions,
            costs=self.costs,
            timer=self.timer,
            clock=thread_time_ns,
            state=self.state,
        )
        engine.scheduler.set_policy(self.scheduler)
        return engine


class _Accepted:
    """What is stored, without the queries that are refused."""

    def __init__(self, stored: StateSource, engines: Engines) -> None:
        self._stored = stored
        self._engines = engines

    def position(self) -> Position | None:
        return self._stored.position()

    def sources(self) -> Iterable[SourceState]:
        return self._stored.sources()

    def derived(self) -> Iterable[Derived]:
        return self._stored.derived()

    def rows(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        return self._stored.rows(source)

    def pending(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        return self._stored.pending(source)

    def held(self) -> Iterable[HeldState]:
        return self._stored.held()

    def state_parts(self, prefix: str) -> Iterable[tuple[str, Tree]]:
        return self._stored.state_parts(prefix)

    def queries(self) -> Iterable[QueryState]:
        catalogue: dict[str, Stream | Derived] = {state.stream.name: state.stream for state in self.sources()}
        catalogue.update((one.name, one) for one in self.derived())
        summaries = stored_definitions(self._stored)
        parsed = Parsed(catalogue, self._engines.limits, self._engines.functions, summaries)
        for state in self._stored.queries():
            registration = state.registration
            try:
                parsed.read(registration.sql, registration.parameters)
            except (QueryError, LimitExceeded) as refused:
                log.warning("query_refused_at_start", query=registration.query_id, code=refused.code)
                continue
            yield state
