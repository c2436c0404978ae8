"""What an engine is made of, which its steps, its readers and the store's side share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from engine.dataflow.buffers.settings import StateSettings
from engine.eddy.eddy import Timer
from engine.language.functions import FunctionCatalogue
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.maintenance import Costs
from engine.model.persistence import QueryState, SwappedQueries
from engine.model.source import SourceName
from engine.model.step import (
    BEGINNING,
    Body,
    Claim,
    CreateDerived,
    Heartbeat,
    Position,
    Records,
    Rejoin,
    SetApart,
    Written,
)
from engine.model.usage import Clock, Stopwatch, Usage
from engine.overload.scheduler import Scheduler
from engine.queries.catalogue import Catalogue
from engine.queries.grants import Grants
from engine.queries.planner import Planner
from engine.queries.source_sets import SourceSets
from engine.queries.subscriptions import Subscriptions
from engine.sources.source import Source
from engine.sources.source_view import SourceView
from engine.standing.queries import StandingQueries
from engine.standing.query import SetKey, StandingQuery
from engine.tags import Tags
from engine.views.set_view import SetView
from engine.views.view import View
from tureen.errors import (
    StepOutOfOrder,
    UnknownQuery,
)


@dataclass(slots=True)
class Stored:
    """What the store has of an engine as of its last save, and what it lacks."""

    position: Position = BEGINNING
    unsaved: set[SourceName] | None = None
    """Sources that moved since the last save; None: any may have, and there may be others."""
    unsaved_queries: set[str] = field(default_factory=set)
    dropped_queries: set[str] = field(default_factory=set)
    """Queries that the store has and that are gone. One that came after the last save was never there."""
    errors: dict[str, tuple[int, ...]] = field(default_factory=dict)
    held: set[tuple[SetKey, SourceName]] = field(default_factory=set)
    """Pairs of a set of sources and a stream: the store has rows of the stream that joins of queries over the
    set hold.
    """
    groups: set[int] = field(default_factory=set)
    """Numbers of the groups of queries with a preference that the store has."""
    swapped: dict[str, QueryState] = field(default_factory=dict)
    """Queries that were swapped out since the last save."""
    swapped_sets: set[SetKey] = field(default_factory=set)
    """Sets of which other queries are swapped out than at the last save."""
    swap_store: SwappedQueries | None = None
    """Where queries that are swapped out stand, once they are saved; None: none can be."""


@dataclass(slots=True)
class EngineSettings:
    """What an engine was made with. state: what its state is made with. usage: what steps use, besides what
    their parts use.
    """

    limits: Limits
    state: StateSettings
    timer: Timer | None
    watch: Stopwatch
    usage: Usage = field(default_factory=Usage)


@dataclass(slots=True)
class Progress:
    """How far an engine has come. position: the last step applied. clock_ms: the journalled clock. tells:
    whether steps tell what changed. may_owe: whether matches over old rows may be owed to queries.
    """

    position: Position = BEGINNING
    clock_ms: int = 0
    tells: bool = True
    may_owe: bool = True


@dataclass(slots=True)
class Shown:
    """The views that were taken last."""

    view: View | None = None
    sources: dict[str, SourceView] = field(default_factory=dict)
    sets: dict[SetKey, SetView] = field(default_factory=dict)
    moved: set[SourceName] | None = None
    """Sources that moved since these two were taken; None: any may have, and there may be others."""


class Parts:
    """Sources, queries, the sets of sources that queries stand over, and who follows them."""

    def __init__(
        self,
        limits: Limits,
        functions: FunctionCatalogue,
        costs: Costs | None,
        timer: Timer | None,
        clock: Clock | None,
        state: StateSettings,
    ) -> None:
        """As :class:`engine.engine.Engine` has them."""
        watch = Stopwatch(clock)
        self.settings = EngineSettings(limits, state, timer, watch)
        self.progress = Progress()
        self.catalogue = Catalogue(limits, functions, timer, watch, state.capacities)
        self.defects = Defects()
        """Queries whose own work failed, which a step is to remove."""
        capacities, planner = state.capacities, Planner(costs)
        self.sets = SourceSets(self.sources, limits, planner, timer, watch, self.defects, capacities)
        self.grants = Grants(self.sets)
        """What steps grant to queries with a preference."""
        units = None if costs is None else costs.units
        self.following = Subscriptions(self.sources, limits, units, watch, self.defects, state)
        self.queries = StandingQueries()
        self.tags = Tags(self.sources, self.sets, self.queries, self.defects)
        self.scheduler = Scheduler()
        self.stored = Stored()
        self._shown = Shown()

    @property
    def sources(self) -> dict[str, Source]:
        """Those there are, by name."""
        return self.catalogue.sources

    def query(self, query_id: str) -> StandingQuery:
        """Raises UnknownQuery."""
        standing = self.queries.get(query_id)
        if standing is None:
            raise UnknownQuery()
        return standing

    def view(self) -> View:
        """All answers at the last step applied; the same object until the next. O(sources that moved, and
        their segments), and a copy of what is known of all others.
        """
        shown = self._shown
        if shown.view is None:
            if shown.moved is None:
                shown.sources = {name: source.view() for name, source in self.sources.items()}
                shown.sets = self.sets.views()
            else:
                shown.sources |= {name: self.sources[name].view() for name in shown.moved}
                shown.sets |= self.sets.views_over(shown.moved)
            shown.moved = set()
            self._stand_otherwise()
            queries, strategy_of = self.queries.shown(), self.following.graphs.strategy_of
            self.tags.tag_finds()
            shown.view = View(
                self.progress.position,
                self.settings.limits,
                shown.sources.copy(),
                shown.sets.copy(),
                queries,
                strategy_of,
                self.tags.approximations.shown(),
                _defects=self.defects,
                apart=frozenset(self.following.graphs.nurseries.apart.query_ids),
            )
        return shown.view

    def _stand_otherwise(self) -> None:
        """Take over the queries whose answers were put off, or are kept again."""
        changed = self.sets.put_offs.changed
        self.queries.update(changed)
        changed.clear()

    def take_attempts(self) -> bool:
        """Views to come look at what was made beside the shard. Returns whether there is anything."""
        sources = self.sets.put_offs.ready()
        for over in self.sets.over(sources):
            over.look_again()
        if sources:
            self.outdate(sources)
        return bool(sources)

    def touched(self, body: Body) -> Collection[SourceName] | None:
        """The sources that a step may move, or let go of rows; None: any, and there may be others then."""
        match body:
            case Records(source=name) | Heartbeat(source=name):
                return {*self.sets.touched(name), *self.catalogue.references.touched(name)}
            case Claim() | Written() | SetApart() | Rejoin() | CreateDerived():
                return ()
            case _:
                return None

    def source(self, name: str) -> Source:
        source = self.sources.get(name)
        if source is None:
            raise StepOutOfOrder(f"a step names the stream {name!r}, which was not created")
        return source

    def outdate(self, touched: Iterable[SourceName] | None = None) -> None:
        """What was seen is no more as it was; touched: as :meth:`touched` has it."""
        self._shown.view = None
        self.sets.put_offs.upkeep.begin()
        if touched is None:
            self._shown.moved = None
        elif self._shown.moved is not None:
            self._shown.moved.update(touched)

    def spend(self, grant: int) -> int:
        """Groups of queries with a preference take turns; returns the units that they used, of those that
        are granted. What was seen of their sets is no more as it was.
        """
        spent, moved = self.grants.spend(grant)
        for over in moved:
            self.outdate(over.sources)
        return spent
