"""What an engine is made of, which its steps, its readers and the store's side share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from engine.dataflow.buffers.settings import StateSettings
from engine.eddy.eddy import Timer
from engine.language.functions import FunctionCatalogue
from engine.model.approximation import Approximation
from engine.model.defects import Defects
from engine.model.limits import Limits
from engine.model.maintenance import Costs
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
    Violations,
    Written,
)
from engine.model.usage import Clock, Stopwatch, Usage
from engine.overload.scheduler import Scheduler
from engine.queries.approximations import Approximations, allotments, declared_samples, sketches
from engine.queries.catalogue import Catalogue
from engine.queries.grants import Grants
from engine.queries.planner import Planner
from engine.queries.shed_readers import ShedReaders
from engine.queries.source_sets import SourceSets
from engine.queries.subscriptions import Subscriptions
from engine.queries.touched import relying, touched_by
from engine.sources.enforcement import Enforcement
from engine.sources.references import ReferenceChecks
from engine.sources.source import Source
from engine.sources.source_view import SourceView
from engine.standing.queries import StandingQueries
from engine.standing.query import SetKey, StandingQuery
from engine.views.view import SetView, View
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
        self.watch = Stopwatch(clock)
        self.usage = Usage()
        """What steps use, besides what their parts use."""
        self.timer = timer
        self.state = state
        """What state is made with."""
        self.limits = limits
        self.position = BEGINNING
        self.clock_ms = 0
        self.tells = True
        self.may_owe = True
        """Whether matches over old rows may be owed to queries."""
        self.planner = Planner(costs)
        self.catalogue = Catalogue(limits, functions, timer, self.watch, state.capacities)
        self.sources = self.catalogue.sources
        self.references = ReferenceChecks(self.sources)
        self.defects = Defects()
        """Queries whose own work failed, which a step is to remove."""
        self.sets = SourceSets(
            self.sources, limits, self.planner, timer, self.watch, self.defects, state.capacities
        )
        units = None if costs is None else costs.units
        self.grants = Grants(self.sets)
        """What steps grant to queries with a preference."""
        self.following = Subscriptions(self.sources, limits, units, self.watch, self.defects, state)
        self.queries = StandingQueries()
        self.shed = ShedReaders(self.sources)
        self.approximations = Approximations(
            (
                declared_samples,
                sketches,
                allotments,
                self._broken_promises,
                self.shed.tags,
                self.sets.unfinished,
            )
        )
        """What of answers is not exact."""
        self.scheduler = Scheduler()
        self.stored = Stored()
        self._view: View | None = None
        self._shown: dict[str, SourceView] = {}
        self._shown_sets: dict[SetKey, SetView] = {}
        self._unshown: set[SourceName] | None = None
        """Sources that moved since these two were taken; None: any may have, and there may be others."""

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
        if self._view is None:
            if self._unshown is None:
                self._shown = {name: source.view() for name, source in self.sources.items()}
                self._shown_sets = self.sets.views()
            else:
                self._shown |= {name: self.sources[name].view() for name in self._unshown}
                self._shown_sets |= self.sets.views_over(self._unshown)
            self._unshown = set()
            self._stand_otherwise()
            sources, sets = self._shown.copy(), self._shown_sets.copy()
            queries, strategy_of = self.queries.shown(), self.following.graphs.strategy_of
            self.tag_finds()
            tags = self.approximations.shown()
            self._view = View(
                self.position,
                self.limits,
                sources,
                sets,
                queries,
                strategy_of,
                tags,
                _defects=self.defects,
                apart=frozenset(self.following.graphs.nurseries.apart.query_ids),
            )
        return self._view

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
                return {*self.sets.touched(name), *self.references.touched(name)}
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
        self._view = None
        self.sets.put_offs.upkeep.begin()
        if touched is None:
            self._unshown = None
        elif self._unshown is not None:
            self._unshown.update(touched)

    def tag(self, standing: StandingQuery) -> None:
        """A query stands, or is another now: say what of its answer is not exact."""
        self.shed.came(standing)
        with self.defects.of(standing.query_id):
            self.approximations.look(standing)

    def tag_again(self, name: SourceName) -> None:
        """Renew the tags of queries that lack more or less of a source by what was shed."""
        for query_id in self.shed.moved(name):
            with self.defects.of(query_id):
                self.approximations.look(self.queries[query_id])

    def tag_finds(self) -> None:
        """Renew the tags of queries with a preference for which something was found, or is left, since the
        last time. O(queries of groups that moved).
        """
        for over in self.sets.preferring():
            if over.promising.moved:
                over.promising.moved = False
                for query_id, tags in over.promising.all_tags():
                    self.approximations.found(query_id, tags)

    def spend(self, grant: int) -> int:
        """Groups of queries with a preference take turns; returns the units that they used, of those that
        are granted. What was seen of their sets is no more as it was.
        """
        spent, moved = self.grants.spend(grant)
        for over in moved:
            self.outdate(over.sources)
        return spent

    def promises_of(self, standing: StandingQuery) -> Iterator[tuple[Enforcement, int | None]]:
        """The constraints of a query's sources, where a source has some, each with the instant from which the
        source retains its rows.
        """
        for name in standing.sources:
            source = self.sources.get(name)
            if source is not None and source.promises is not None:
                yield source.promises, source.retained_from_ms

    def _broken_promises(self, standing: StandingQuery) -> Iterator[Approximation]:
        """A tag for each source of which rows broke a promise, since then."""
        for promises, _ in self.promises_of(standing):
            yield from promises.violations.tags(standing.query_id, standing.sources)

    def look_at_readers(self, name: SourceName, violations: Iterable[Violations]) -> None:
        """Rows of a source broke a promise: queries that lack them get tags, or tags with another amount.
        O(queries over the source).
        """
        source = self.sources[name]
        assert source.promises is not None
        promises = source.promises.violations
        standing = [one for over in self.sets.over([name]) for one in over.standing.values()]
        is_to_tell, before = promises.is_to_tell(), promises.touched.copy()
        for broken in violations:
            if broken.withheld or broken.again:
                concerned = standing if broken.withheld else relying(standing, name)
                promises.touched.update(touched_by(concerned, name, source.matches.satisfied_by(broken.rows)))
        for one in standing:
            if is_to_tell or (one.query_id in promises.touched and one.query_id not in before):
                with self.defects.of(one.query_id):
                    self.approximations.look(one)
