"""The graph of the queries over one set of sources: operators that they share, and who reads them.

Nodes are the same where operator, input and arguments are, so that all queries of a shape are columns of the
same nodes, and a transition costs Python O(nodes), whatever the number of queries. State is a function of
the retained rows and NOW: nothing is stored, and where a transition does not begin where the last one ended
it is made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.changes.affected_queries import AffectedQueries
from engine.changes.context import EvaluationContext
from engine.changes.streams import Streams
from engine.changes.transition import Transition
from engine.dataflow import graph_report
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.entities import GraphEntities
from engine.dataflow.fed_sink import FedSink, sink_over
from engine.dataflow.graph_nodes import GraphNodes, Leaf
from engine.dataflow.graph_sinks import GraphSinks
from engine.dataflow.held_sources import HeldSources
from engine.dataflow.node import Node
from engine.dataflow.operator_tree import ExpectedOf, OperatorTree, operator_tree
from engine.dataflow.operators.entries import EntriesNode
from engine.dataflow.operators.flow import FlowNode
from engine.dataflow.operators.held_scan import HeldScanNode
from engine.dataflow.operators.releasing_join import joins_of
from engine.dataflow.operators.scan import ScanNode
from engine.dataflow.physical import operators_of
from engine.dataflow.plan import Plan, is_selection, scans_of
from engine.dataflow.policy import TOLD, Policy
from engine.dataflow.stands import Stand, ends_of, stands_of
from engine.dataflow.turn import Turn
from engine.dataflow.turns import moving_of, pairs_of, turns_of
from engine.dataflow.whole_sink import WholeSink
from engine.language.query import Query
from engine.language.templates import FixedQuery
from engine.model.batch import Column, Int64Array
from engine.model.changes import Changes, Operator
from engine.model.limits import Limits
from engine.model.persistence import HeldState
from engine.model.source import SourceName, Stream
from engine.model.step import BEGINNING, Registration
from engine.model.usage import Clock, Laps
from engine.operators.gather import schema_of
from engine.operators.relation import Relation
from engine.standing.query import StandingQuery
from engine.stems.table_stem import TableRows


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a query is: the keys of its nodes, those below first, and of its sink; and what it came with."""

    nodes: tuple[Hashable, ...]
    sink: Hashable
    standing: StandingQuery
    query: Query
    operator: Operator
    copies: bool
    limited: bool
    policy: Policy
    since: int
    own: Hashable | None


class CannotCome(Exception):
    """A query could not be put in a graph, which is of no more use then."""

    def __init__(self, query_id: str, defect: Exception) -> None:
        self.query_id = query_id
        self.defect = defect
        super().__init__(query_id)


class Graph:
    """One owner, as the engine."""

    def __init__(
        self,
        tables: Container[SourceName] = (),
        clock: Clock | None = None,
        streams: Mapping[SourceName, Stream] | None = None,
        settings: StateSettings | None = None,
    ) -> None:
        """tables: which of the sources are. clock: measures operators. streams: the sources, of whose
        constraints joins make use; None: they do not. settings: what state is made with.
        """
        self._clock = clock
        self._settings = settings or StateSettings()
        self._laps = Laps(clock)
        self._tables = tables
        self._streams = streams or {}
        nodes: dict[Hashable, Node] = {}
        self.held = HeldSources(self._streams, nodes, self._settings.capacities)
        """What its joins hold of rows that streams let go of."""
        self.nodes = GraphNodes(self._settings, self.held, STREAMS, nodes)
        self.sinks = GraphSinks()
        self._members: dict[str, _Member] = {}
        self._affected_queries = AffectedQueries()
        self._stands: Stand | None = None

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, query_id: str) -> bool:
        return query_id in self._members

    # --- queries ----------------------------------------------------------------------------------

    def add(
        self,
        standing: StandingQuery,
        query: Query,
        operator: Operator,
        *,
        copies: bool = False,
        limited: bool | None = None,
        policy: Policy = TOLD,
        since: int = 0,
        own: Hashable | None = None,
    ) -> None:
        """A query comes. copies: which of equal rows comes or goes is wanted; of all changes alone. limited:
        whether ``changes_max`` holds; None: but for selections, which have no more changes than rows move.
        policy: how its operators keep rows. since: the step in which it began to be followed. own: it has its
        nodes with those alone that have the same, so that another graph may take them over; None: with all.
        """
        query_id = standing.query_id
        built = self.nodes.build(self._plan_of(query, operator, policy), standing, since, own)
        scans = scans_of(query, self._tables) if operator == "rstream" else ()
        read = [self.nodes.build(plan, standing, since, own) for plan in scans]
        keys = tuple(dict.fromkeys([*(key for scan in read for key in scan.keys), *built.keys]))
        if any(isinstance(self.nodes.leaves.get(key), FlowNode) for key in keys):
            self._affected_queries.put(standing, query)
        if limited is None:
            limited = not is_selection(query)
        end = built.keys[-1], operator, copies, limited, query.columns

        def made() -> FedSink:
            sink = sink_over(built.node, query, operator, copies=copies, limited=limited)
            leaves = frozenset(self.nodes.leaves[key] for key in keys if key in self.nodes.leaves)
            return FedSink(sink, tuple(self.nodes.by_key[key] for key in keys), leaves)

        sink = self.sinks.enter(end, policy.strategy, made).sink
        sink.add(query_id, built.column)
        if isinstance(sink, WholeSink):
            sink.read_scans(query_id, [(scan.node, scan.column) for scan in read])
        self._members[query_id] = _Member(
            keys, end, standing, query, operator, copies, limited, policy, since, own
        )

    def _plan_of(self, query: Query, operator: Operator, policy: Policy) -> Plan:
        return operators_of(query, operator, policy, self._tables, self._streams)

    def remove(self, query_id: str) -> None:
        """A query goes; passed over where it is not there."""
        member = self._members.pop(query_id, None)
        if member is None:
            return
        self.sinks.leave(query_id, member.sink, member.policy.strategy)
        self._forget_stale(self.nodes.leave(query_id, member.nodes))
        self.held.only_needed()
        self._affected_queries.remove(query_id)

    @property
    def query_ids(self) -> Collection[str]:
        """Its queries."""
        return self._members.keys()

    def shape_of(self, query_id: str) -> Hashable:
        """What queries have in common that leave by the same operator."""
        return self._members[query_id].sink

    def anew(self, query_ids: Iterable[str], own: Hashable | None = None) -> Graph:
        """A graph of some of its queries, whose state is still to be made. own: as for :meth:`add`; None: as
        each has it here. Raises CannotCome.
        """
        made = Graph(self._tables, self._clock, self._streams, self._settings)
        for query_id in query_ids:
            try:
                made._add_again(self._members[query_id], own=own)
            except Exception as defect:
                raise CannotCome(query_id, defect) from defect
        return made

    def _add_again(self, member: _Member, policy: Policy | None = None, own: Hashable | None = None) -> None:
        self.add(
            member.standing,
            member.query,
            member.operator,
            copies=member.copies,
            limited=member.limited,
            policy=member.policy if policy is None else policy,
            since=member.since,
            own=member.own if own is None else own,
        )

    def holds_for(self, query_id: str) -> bool:
        """Whether operators of a query may have rows that its streams let go of."""
        leaves = (self.nodes.leaves.get(key) for key in self._members[query_id].nodes)
        return any(isinstance(leaf, HeldScanNode) for leaf in leaves)

    def switch(self, query_id: str, policy: Policy) -> None:
        """The operators of a query keep rows in another way from the next transition on; its changes are the
        same.
        """
        member = self._members[query_id]
        if member.policy != policy:
            self.remove(query_id)
            self._add_again(member, policy)

    def policy_of(self, query_id: str) -> Policy | None:
        """How the operators of a query keep rows; None where it is not here. Any thread."""
        member = self._members.get(query_id)
        return None if member is None else member.policy

    def entities(self, over: str, *, members: bool = True) -> GraphEntities:
        """Its operators and sinks, and which sink each query has. over: the names of its sources. members:
        False leaves the latter out. O(nodes * sinks that read them), and with members O(queries).
        """
        sink_of = {one: each.sink for one, each in self._members.items()} if members else {}
        return graph_report.entities(self.nodes, self.sinks.by_end, sink_of, over)

    def explain(
        self, plan: Plan, sources: Collection[SourceName], expected_of: ExpectedOf = lambda _: None
    ) -> OperatorTree:
        """The operators of a plan over sources, whether they are here or not, and what those that are there
        keep. O(sinks) each.
        """
        over = "+".join(sorted(set(sources)))
        nodes, sinks = self.nodes, self.sinks.by_end
        return operator_tree(
            plan, self._tables, lambda key: graph_report.node_state(nodes, sinks, key, over), expected_of
        )

    def forget(self) -> None:
        """Rows have other ordinals now, or history came back: state is made anew."""
        self._remember()
        for node in self.nodes.by_key.values():
            node.forget()
        self.sinks.forget()
        self._stands = None

    # --- a graph that is made beside another ------------------------------------------------------

    @property
    def may_be_apart(self) -> bool:
        """Whether another graph may take it over: it has scans alone, which hold no rows that streams let go
        of.
        """
        leaves = self.nodes.leaves.values()
        return all(isinstance(leaf, ScanNode) and not isinstance(leaf, HeldScanNode) for leaf in leaves)

    def hydrate(self, transition: Transition, limits: Limits) -> None:
        """Make the state as it is at the beginning of a transition, which may be of no time."""
        context = EvaluationContext(transition, limits)
        for node in self.nodes.by_key.values():
            node.begin(context)
        for each in self.sinks.by_end.values():
            each.begin(context)
        for node in self.nodes.by_key.values():
            node.rest()
        self._stands, _ = stands_of(transition)

    def take_over(self, other: Graph, standing: Iterable[StandingQuery]) -> None:
        """The queries of a graph that was made apart come, with the state that they have there. standing: as
        they stand here. That graph has gone by the same transitions as this one; what is not so is made anew.
        """
        if not self._members or (self._stands is None and not self.held):  # no state is here
            self._stands = other._stands
        elif self._stands != other._stands:
            other.forget()
        self.nodes.take_over(other.nodes)
        self.sinks.take_over(other.sinks)
        for one in standing:
            self._members[one.query_id] = replace(other._members[one.query_id], standing=one)

    # --- transitions ------------------------------------------------------------------------------

    def advance(
        self, transition: Transition, limits: Limits, now_ms: int, broken: dict[str, Exception]
    ) -> Iterator[Changes]:
        """What changed on a transition. broken: gets the queries whose changes cannot be told, and why."""
        if not self._members:
            return
        laps = self._laps.begin()
        come = None if laps is not None else self.sinks.come(transition, now_ms)
        if come is not None:
            self._stands = None  # its operators keep nothing
            self._laps.end()
            yield from come
            return
        begin, end = stands_of(transition)
        context = EvaluationContext(transition, limits, laps)
        self._tell_exits(context)
        looked_at = self._looked_at(transition)
        moving = moving_of(looked_at, context)
        if not moving and not any(at_source.moves for at_source in transition.by_source.values()):
            for leaf in looked_at:
                leaf.rest()
            self._let_go(begin, end)
            self._laps.end()
            return
        if self._stands is not None and self._stands != begin:
            self.forget()
        self._stands = end
        sinks = self.sinks.concerned(looked_at, moving)
        active = {node for each in sinks for node in each.nodes}.union(looked_at)
        nodes = [node for node in self.nodes.by_key.values() if node in active]
        for node in nodes:
            node.begin(context)
        for each in sinks:
            each.begin(context)
        pairs = pairs_of(moving, context)
        for interval in turns_of(context.interval, [instants for _, instants in moving.values()], pairs):
            turn = Turn(context, interval)
            for each in sinks:
                each.take(turn)
        stale: set[Node] = set()
        for each in sinks:
            given = each.give(context, broken, now_ms)
            if given is None:
                stale.update(each.nodes)
            else:
                yield from given
        for node in nodes:
            node.rest()
        self._forget_stale(stale, lost=True)
        self._laps.end()

    def _forget_stale(self, stale: set[Node], *, lost: bool = False) -> None:
        """State of nodes is made anew, and that of all that stands over them; leaves have none. Nodes that a
        refused sink depends on were perhaps not taken through all turns; others kept state for many columns
        that went, and it takes memory as long as it is there. lost: the state is not true any more.
        """
        if not stale:
            return
        if not lost:
            self._remember()
        for node in list(stale):
            stale.update(joins_of(node))
        stale.difference_update(self.nodes.leaves.values())
        for node in self.nodes.by_key.values():
            if not stale.isdisjoint(node.inputs):
                stale.add(node)
        for node in stale:
            node.forget()
        self.sinks.forget(stale)

    # --- what is held of streams ------------------------------------------------------------------

    def _remember(self) -> None:
        """State is about to be lost that is true."""
        if self.held and self._stands is not None:
            self.held.remember(ends_of(self._stands))

    def renumbered(self, source: SourceName, base: int, first: int, from_ms: int | None) -> None:
        """History of a stream came back. base, first: the first ordinals of the rows that there are, and that
        are retained, those from an instant on; None: all are.
        """
        self.forget()
        self.held.renumbered(source, base, first, from_ms)

    def held_states(self, over: Sequence[SourceName]) -> Iterator[HeldState]:
        """What is held of streams, as it is stored. over: all of the sources."""
        ends = None if self._stands is None else ends_of(self._stands)
        return self.held.states(over, ends)

    def _tell_exits(self, context: EvaluationContext) -> None:
        """Queries are told exits from now on where exits that were known do not hold: retention takes rows of
        a window before their time, or a table moves alone on a clock that is ahead of NOW, so that its
        instants cannot be compared with exits.
        """
        transition = context.transition
        is_ahead = transition.instant_ms is not None and transition.until_ms > transition.instant_ms
        keys = {
            key
            for key, leaf in self.nodes.leaves.items()
            if isinstance(leaf, ScanNode)
            and leaf.exits_known
            and ((is_ahead and not isinstance(leaf, EntriesNode)) or leaf.is_cut(context))
        }
        if keys:
            for query_id, member in list(self._members.items()):
                if not keys.isdisjoint(member.nodes):
                    self.switch(query_id, TOLD)

    def _let_go(self, begin: Stand, end: Stand) -> None:
        """Sources let go of rows that no scan sees any more, and NOW stands still: state stays as it is."""
        if self._stands is not None:
            now_ms, stood = self._stands
            if stood == begin[1]:
                self._stands = now_ms, end[1]
            else:
                self.forget()

    def _looked_at(self, transition: Transition) -> list[Leaf]:
        """The leaves that a transition may concern."""
        affected = self._affected_queries.affected(transition)
        return [
            leaf
            for leaf in self.nodes.leaves.values()
            if not (isinstance(leaf, FlowNode) and affected.isdisjoint(leaf.readers))
        ]

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return self.nodes.nbytes + self.sinks.nbytes + self.held.nbytes

    def _check(self) -> None:
        self.nodes._check()
        self.held._check()
        members = self._members.values()
        assert self.sinks.strategies == Counter((each.sink, each.policy.strategy) for each in members)


def changes_of(
    standing: StandingQuery,
    operator: Operator,
    transition: Transition,
    limits: Limits,
    now_ms: int,
    *,
    tables: Container[SourceName] = (),
    copies: bool = False,
    policy: Policy = TOLD,
) -> Changes:
    """The changes of one query on a transition, by a graph of its own: O(rows of its windows).

    Raises LimitExceeded.
    """
    graph, query = Graph(tables), standing.query
    graph.add(standing, query, operator, copies=copies, limited=True, policy=policy)
    return _advanced(graph, standing.query_id, query, transition, limits, now_ms, copies=copies)


def _advanced(
    graph: Graph,
    query_id: str,
    query: Query,
    transition: Transition,
    limits: Limits,
    now_ms: int,
    *,
    copies: bool = False,
) -> Changes:
    """The changes of the only query of a graph. Raises what refused them."""
    broken = dict[str, Exception]()
    for changes in graph.advance(transition, limits, now_ms, broken):
        return changes
    for refused in broken.values():
        raise refused
    none = np.empty(0, np.int64)
    counted = np.empty(0, np.int32) if copies else None
    table = schema_of(query.columns).empty_table()
    weights = none.astype(np.int8)
    return Changes.of_one(query_id, table, weights, none, now_ms, copies=counted)


class _Followed:
    """The changes of a query that nobody registered, one transition after another."""

    def __init__(self, query: Query, operator: Operator) -> None:
        self._query = query
        self._operator = operator
        self._graph: Graph | None = None

    def __call__(self, transition: Transition, limits: Limits) -> tuple[Relation, Int64Array]:
        """Its rows that come, or go, and their instants. Raises LimitExceeded."""
        query = self._query
        if self._graph is None:
            by_source = transition.by_source.items()
            self._graph = Graph([name for name, of in by_source if isinstance(of.at.rows, TableRows)])
            standing = StandingQuery(Registration("", query.sql), FixedQuery.of(query), BEGINNING, "none")
            self._graph.add(standing, query, self._operator, limited=True)
        limits = replace(limits, changes_max=limits.intermediate_rows_max)
        changes = _advanced(self._graph, "", query, transition, limits, transition.until_ms)
        columns = [
            Column.from_arrow(type_, changes.table.column(place))
            for place, (_, type_) in enumerate(query.columns)
        ]
        return Relation(columns, len(changes)), changes.at_ms

    @property
    def nbytes(self) -> int:
        """Bytes of what its operators keep."""
        return 0 if self._graph is None else self._graph.nbytes


STREAMS = Streams(_Followed)
"""Gives streams of subqueries, whose changes operators work out."""
