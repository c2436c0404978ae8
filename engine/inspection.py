"""What readers ask an engine: its modules and entities, the plans of queries, and edits while it runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.dataflow.buffers import settings as buffers
from engine.dataflow.operator_tree import ExpectedOf, OperatorTree
from engine.dataflow.plan import Plan as DataflowPlan
from engine.eddy.eddy import Timer
from engine.language.parameters import text_of
from engine.language.query import Query
from engine.model.allotment import Allotment
from engine.model.approximation import Expected
from engine.model.attributes import Attribute, AttributeValue, edits
from engine.model.expressions import Expression
from engine.model.source import SourceName
from engine.model.summary import SummaryName
from engine.overload.proposals.proposal import Proposal
from engine.parts import Parts
from engine.promising.group import GroupCounts, total_counts
from engine.queries.allocating import EngineProblem, engine_problem
from engine.queries.allotting import GivenLess, allotted, require_promised
from engine.queries.apart import Apart
from engine.queries.entities import Report, report
from engine.queries.explain import Plan, planned
from engine.queries.footprint import Footprint, Heavy, footprint, heaviest
from engine.queries.kept_rows import KeptRows, kept_rows
from engine.queries.measuring import measured
from engine.queries.plan_inputs import PlanInputs, SourcesAt
from engine.queries.plan_preference import group_id
from engine.queries.promising_attributes import promising_attributes
from engine.queries.set_plans import plan_inputs_over
from engine.queries.summary_facts import brief_facts, whole_facts
from engine.standing.query import set_key
from engine.stems.factors import Factors
from engine.summaries.description import attributes_of
from tureen.errors import InternalError, NotSupported, UnknownEntity, UnknownSource

SCHEDULER = "scheduler"


class Inspection(ABC):
    """The calls. They change no answer."""

    _parts: Parts

    @abstractmethod
    def _queued(self) -> int:
        """Steps that wait."""

    def modules(self) -> dict[str, tuple[Attribute, ...]]:
        """Every module with its attributes as they stand."""
        modules: dict[str, tuple[Attribute, ...]] = {
            "engine": (
                Attribute("position", str(self._parts.progress.position), "the last step applied"),
                Attribute("queued_steps", self._queued(), "steps that wait"),
                Attribute("queries", len(self._parts.queries), "standing queries"),
                Attribute("sources", len(self._parts.sources), "streams"),
            ),
            buffers.MODULE: self._parts.settings.state.attributes(),
            SCHEDULER: self._parts.scheduler.attributes(),
        }
        for name, source in self._parts.sources.items():
            modules[f"source/{name}"] = source.attributes()
            modules[f"data-stem/{name}"] = source.rows.attributes()
            modules[f"query-stem/{name}"] = source.queries.attributes()
            if not source.stream.is_table:
                modules[f"monitor/{name}"] = source.monitor.attributes()
            modules |= source.constraints()
            for summary, at_work in source.summarised.at_work.items():
                modules[f"summary/{summary}"] = attributes_of(at_work)
            modules[f"queue/pending/{name}"] = source.pending.attributes(source.clock.clock_ms)
        now_ns = 0 if self._parts.settings.timer is None else self._parts.settings.timer()
        for module in self._parts.scheduler:
            modules[f"queue/{module.name}"] = self._parts.scheduler.attributes_of(module, now_ns)
        for over in self._parts.sets:
            modules[f"queries/{'+'.join(over.sources)}"] = over.attributes()
            for numbered in over.promising:
                modules[group_id(numbered)] = promising_attributes(numbered)
        for name, group in self._parts.sets.groups().items():
            modules[f"join/{name}"] = group.attributes()
        return modules

    def entities(self, *, queries: bool = True) -> Report:
        """Every entity with what it uses, and what queries pay of it (:mod:`engine.queries.entities`).

        O(entities but for queries), and O(1) a query that shares a join, has something of its own or is
        followed. queries: False leaves out what single queries pay, and its cost.
        """
        following = self._parts.following.graphs.by_set.items()
        graphs = {key: graph.entities("+".join(key), members=queries) for key, graph in following}
        return report(
            str(self._parts.progress.position),
            self.modules(),
            self._parts.settings.usage,
            len(self._parts.queries),
            self._parts.sources,
            self._parts.sets,
            graphs,
            of_queries=queries,
        )

    @property
    def defects(self) -> Mapping[str, InternalError]:
        """Queries whose own work failed unexpectedly: each stands until a step removes it, which is to be the
        next one. Some are known once the view after a step was asked for.
        """
        return self._parts.defects.errors()

    def apart(self) -> list[Apart]:
        """The queries that are set apart, in groups: each is to be run once, in any thread, and once that is
        over its queries are to rejoin (:class:`engine.model.step.Rejoin`).
        """
        return list(self._parts.following.graphs.nurseries.apart.groups)

    def summary_facts(self, name: SummaryName | None = None) -> dict[SummaryName, dict[str, Any]]:
        """What is known of summaries at work, by name: of one all, of all in brief. O(zones), and of one
        O(counters).
        """
        at_work = {
            summary: each
            for source in self._parts.sources.values()
            for summary, each in source.summarised.at_work.items()
        }
        if name is None:
            return {summary: brief_facts(each) for summary, each in at_work.items()}
        return {name: whole_facts(at_work[name])} if name in at_work else {}

    def stats(self) -> dict[str, dict[str, AttributeValue]]:
        """The values alone, by module and attribute."""
        return {
            module: {attribute.name: attribute.value for attribute in attributes}
            for module, attributes in self.modules().items()
        }

    def promising_counts(self) -> GroupCounts:
        """What all groups of queries with a preference did and have before them. O(their entries)."""
        groups = (one.group for over in self._parts.sets.preferring() for one in over.promising)
        return total_counts(group.counts for group in groups if group is not None)

    def footprint(self) -> Footprint:
        """The bytes that the state takes, by structure. O(segments * columns + queries' indexes)."""
        following = self._parts.following
        return footprint(
            self._parts.sources.values(),
            self._parts.sets,
            self._parts.sets.index_bytes,
            following.nbytes,
            following.graphs.by_strategy(),
        )

    def heaviest(self) -> Heavy | None:
        """The query that pausing would free most memory of; None: of none anything. O(queries)."""
        return heaviest(self._parts.sets, self._parts.following.graphs.shares())

    def explain(
        self, *, query_id: str | None = None, sql: str | None = None, timer: Timer | None = None
    ) -> Plan:
        """The plan of a standing query, or of a SELECT that is not registered.

        timer: evaluate it too and time each stage (ANALYZE). Raises UnknownQuery, QueryError, LimitExceeded.
        """
        if query_id is not None:
            inputs = self.plan_inputs(query_id=query_id)
        else:
            inputs = self.plan_inputs(query=self._selected(sql or ""))
        return planned(inputs, lambda work: work(self), timer)

    def plan_inputs(self, *, query_id: str | None = None, query: Query | None = None) -> PlanInputs:
        """What the plan of a standing query, or of one that is not registered, is made of.
        O(sources + size of the query). Raises UnknownQuery, UnknownSource.
        """
        standing = None
        if query is None:
            standing = self._parts.query(query_id or "")
            query = standing.query
        self._require(query.sources)
        return plan_inputs_over(
            self._parts.sets.seen(set_key(query.sources)),
            query,
            standing,
            self._parts.following.graphs.strategy_inputs(query, standing),
            {name: self._parts.sets.readers(name) for name in query.sources},
            followed=query_id is not None and query_id in self._parts.following,
        )

    def operators(
        self, plan: DataflowPlan, sources: Sequence[SourceName], expected_of: ExpectedOf
    ) -> OperatorTree:
        """The operators of a plan over sources, with what those that are there keep. O(operators).

        Raises UnknownSource.
        """
        self._require(sources)
        return self._parts.following.graphs.operators(plan, sources, expected_of)

    def holders(self, predicates: Sequence[tuple[SourceName, Expression, Factors]]) -> list[int]:
        """How many standing queries have each of these predicates. O(their constants)."""
        sources = self._parts.sources
        self._require([source for source, _, _ in predicates])
        return [sources[source].queries.holders_of(one, each) for source, one, each in predicates]

    def proposals(self, *, query_id: str | None = None, sql: str | None = None) -> tuple[Proposal, ...]:
        """Texts that use fewer resources than that of a standing query, or of a SELECT that is not
        registered, with what each saves and costs; nothing changes (STREAM, section 5.1).

        Raises UnknownQuery, QueryError, LimitExceeded.
        """
        standing = None
        if query_id is not None:
            standing = self._parts.query(query_id)
            sql = text_of(standing.registration)
        query = self._selected(sql or "")
        tolerance = query.tolerance if standing is None else standing.tolerance
        definitions = self._parts.catalogue.definitions
        return self.sources_at(query).proposals(query, query.sql, definitions, self._selected, tolerance)

    def sources_at(self, query: Query) -> SourcesAt:
        """The sources of a query as they stand, to estimate by. O(sources). Raises UnknownSource."""
        self._require(query.sources)
        return self._parts.sets.seen(set_key(query.sources)).now.estimates()

    def _require(self, sources: Iterable[SourceName]) -> None:
        for name in sources:
            if name not in self._parts.sources:
                raise UnknownSource(name)

    def expecting(self, query_id: str, allotment: Allotment) -> Allotment:
        """The allotment of a standing query with the precision that its answer may then expect; nothing
        changes. Raises UnknownQuery, AllotmentRefused.
        """
        return self.less(query_id, allotment).expecting()

    def less(self, query_id: str, allotment: Allotment) -> GivenLess:
        """A standing query as it would be with an allotment. O(size of the query). Raises UnknownQuery,
        AllotmentRefused.
        """
        standing = self._parts.query(query_id)
        if not allotment:
            return GivenLess(allotment, standing, standing.query, None)
        coming = allotted(standing, allotment, self._parts.progress.position, self._parts.catalogue)
        require_promised(standing, allotment, self._parts.catalogue)
        sources = self._parts.sets.of(standing).now.estimates(self._parts.tags.shed.shares(standing))
        return GivenLess(allotment, standing, coming.query, sources)

    def measured(self, query_id: str) -> tuple[Expected, Expected] | None:
        """How precise the answer of a query that is given less, or lacks rows that were shed, is expected to
        be, and how precise it is by the rows that are there; None: it is neither. Raises UnknownQuery.
        """
        standing = self._parts.query(query_id)
        shed = self._parts.tags.shed.shares(standing)
        given = standing.allotted
        if given is None and not shed:
            return None
        expected = given.allotment.expected if given is not None else Expected()
        over = self._parts.sets.of(standing)
        return expected, measured(standing, over.sources, over.now.estimates().rows_of, shed)

    def _selected(self, sql: str) -> Query:
        """What a SELECT means."""
        statement = self._parts.catalogue.templates.statement(sql)
        if not isinstance(statement, Query):
            raise NotSupported("only a SELECT has a plan", hint="EXPLAIN SELECT ...", line=1, column=1)
        return statement

    def kept_rows(self) -> dict[SourceName, KeptRows]:
        """What the rows of each stream take, and how far the widest windows keep them. O(sources * sets)."""
        return {
            (name := source.stream.name): kept_rows(source, self._parts.sets.by_source.reaches_ms(name))
            for source in self._parts.sources.values()
            if not source.stream.is_table
        }

    def checked(
        self, module: str, values: Mapping[str, AttributeValue], version: int | None = None
    ) -> tuple[tuple[Attribute, ...], dict[str, AttributeValue]]:
        """The attributes of a module, and the values that an edit would give some of them, as :meth:`edit`
        reads them; nothing is set. Raises as that.
        """
        attributes = self._attributes_of(module)
        if attributes is None:
            raise UnknownEntity(module)
        return attributes, edits(module, attributes, values, version)

    def edit(self, module: str, values: Mapping[str, AttributeValue], version: int | None = None) -> None:
        """Set attributes of a module, all or none; no answer changes. version: that they must still have
        (:func:`engine.model.attributes.version_of`); None: whatever they are.

        Raises UnknownEntity, AttributeRefused, EditConflict.
        """
        for name, value in self.checked(module, values, version)[1].items():
            self._set(module, name, value)

    def set_attribute(self, module: str, name: str, value: AttributeValue) -> None:
        """As :meth:`edit`, of one attribute."""
        self.edit(module, {name: value})

    def _set(self, module: str, name: str, value: AttributeValue) -> None:
        kind, _, of = module.partition("/")
        match kind:
            case buffers.MODULE:
                self._parts.settings.state.change(name, value)
                self._parts.following.graphs.forget()
            case "scheduler":
                self._parts.scheduler.set_policy(str(value))
            case "query-stem":
                self._parts.sources[of].queries.eddy.set_attribute(name, str(value))
            case "monitor":
                self._parts.sources[of].monitor.set_mode(str(value))
            case "join":
                self._parts.sets.groups()[of].set_attribute(name, value)
            case "summary":
                hint = f"ALTER SUMMARY {of} SET ({name} = ...)"
                raise NotSupported(f"{name} of a summary is set by a step", hint=hint)
            case _:
                raise AssertionError(f"{module}.{name} says that it can be set")

    def _attributes_of(self, module: str) -> tuple[Attribute, ...] | None:
        """The attributes of one module; None where there is none. O(1) for the modules of a source."""
        kind, _, of = module.partition("/")
        source = self._parts.sources.get(of)
        match kind:
            case buffers.MODULE:
                return self._parts.settings.state.attributes()
            case "scheduler":
                return self._parts.scheduler.attributes()
            case "query-stem" if source is not None:
                return source.queries.attributes()
            case "monitor" if source is not None:
                return source.monitor.attributes()
        return self.modules().get(module)

    def allocation_problem(self) -> EngineProblem | None:
        """What standing queries would hold and may be given less; None: nobody tolerates that."""
        at = {name: seen for over in self._parts.sets for name, seen in over.now.at.items()}
        queries, sources = self._parts.queries.values(), self._parts.sources
        return engine_problem(queries, sources, at, self._state_bytes, self._parts.tags.shed.shares)

    def _state_bytes(self) -> dict[SourceName, float]:
        """By source, what is kept for windows over it besides its rows; that of several in equal parts."""
        found: dict[SourceName, float] = {}
        graphs = self._parts.following.graphs.by_set
        for over in self._parts.sets:
            key = tuple(over.sources)
            nbytes = over.eager.nbytes + over.joins.nbytes
            nbytes += graphs[key].nbytes if key in graphs else 0
            for name in key:
                found[name] = found.get(name, 0.0) + nbytes / len(key)
        return found
