"""The graph of the queries over one set of sources: operators that they share, and who reads them.

Nodes are the same where operator, input and arguments are, so that all queries of a shape are columns of the
same nodes, and a transition costs Python O(nodes), whatever the number of queries. State is a function of
the retained rows and NOW: nothing is stored, and where a transition does not begin where the last one ended
it is made anew.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np

from engine.changes.course import Course
from engine.changes.lives import Lives, Way
from engine.changes.touching import Touching
from engine.changes.trip import Trip
from engine.dataflow.node import Node
from engine.dataflow.operators.flow import FlowNode
from engine.dataflow.operators.rows import ConditionNode
from engine.dataflow.operators.scan import Predicate, ScanNode
from engine.dataflow.plan import Plan, is_selection, node_of, own_of, plan_of, shape_of
from engine.dataflow.sinks import ChangeSink, Sink, WholeSink
from engine.dataflow.turn import Turn
from engine.language.query import Query, Scan
from engine.limits import Limits
from engine.model.changes import Changes, Operator
from engine.model.source import SourceName
from engine.operators.gather import schema_of
from engine.standing import StandingQuery
from tureen.errors import TureenError

TURN_PAIRS = 1 << 20
"""A turn has about so many pairs of a row and a query at most, unless one instant alone has more."""

Leaf = ScanNode | FlowNode


@dataclass(slots=True)
class _Tree:
    """A leaf, the operators above it, each behind those below, and who reads them."""

    leaf: Leaf
    nodes: dict[Hashable, Node] = field(default_factory=dict)
    sinks: dict[Hashable, Sink] = field(default_factory=dict)

    @property
    def members(self) -> Iterator[str]:
        """The queries."""
        for sink in self.sinks.values():
            yield from sink.query_ids

    def changes(self, trip: Trip, broken: dict[str, Exception], now_ms: int) -> list[Changes]:
        """What leaves on a transition. broken: gets the queries of which too much would. Raises
        LimitExceeded.
        """
        moved = self.leaf.moved(trip)
        if not len(moved) and all(sink.only_differences for sink in self.sinks.values()):
            return []
        for node in self.nodes.values():
            node.begin(trip)
        for sink in self.sinks.values():
            sink.begin(trip)
        for way in _ways(trip.way, moved, self.leaf.columns.count):
            turn = Turn(trip, way)
            for sink in self.sinks.values():
                sink.take(turn)
        return [each for sink in self.sinks.values() for each in sink.give(trip, broken, now_ms)]

    def rest(self) -> None:
        """Let go of what was worked out for a transition."""
        self.leaf.rest()
        for node in self.nodes.values():
            node.rest()

    def forget(self) -> None:
        """State is made anew with the next transition."""
        for node in self.nodes.values():
            node.forget()
        for sink in self.sinks.values():
            sink.forget()


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a query is: its tree, the keys of its nodes from below, its sink."""

    tree: Hashable
    nodes: tuple[Hashable, ...]
    sink: Hashable


class Graph:
    """One owner, as the engine."""

    def __init__(self, tables: Container[SourceName] = ()) -> None:
        """tables: which of the sources are."""
        self._tables = tables
        self._trees: dict[Hashable, _Tree] = {}
        self._members: dict[str, _Member] = {}
        self._touching = Touching()
        self._stands: _Stand | None = None

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
    ) -> None:
        """A query comes. copies: which of equal rows comes or goes is wanted; of all changes alone. limited:
        whether ``changes_max`` holds; None: but for selections, which have no more changes than rows move.
        """
        query_id = standing.query_id
        plan = own_of(query) if operator == "rstream" else plan_of(query, self._tables)
        tree = self._tree(plan)
        if isinstance(tree.leaf, ScanNode):
            predicate: Predicate = query.scan.predicate
            if predicate is not None and (slot := standing.scan_slot) is not None:
                predicate = slot
            column = tree.leaf.column(predicate)
        else:
            tree.leaf.readers[query_id] = standing
            self._touching.put(standing, query)
            column = 0
        node: Node = tree.leaf
        key: Hashable = ()
        path = []
        for stage in plan.stages:
            shape, constants = shape_of(stage)
            key = key, shape, tuple(literal.type for literal in constants)
            path.append(key)
            known = tree.nodes.get(key)
            node = tree.nodes[key] = node_of(shape, constants, node) if known is None else known
            if isinstance(node, ConditionNode):
                column = node.column(column, constants)
        if limited is None:
            limited = not is_selection(query)
        end = key, operator, copies, limited, query.columns
        sink = tree.sinks.get(end)
        if sink is None:
            sink = tree.sinks[end] = _sink(node, query, operator, copies=copies, limited=limited)
        sink.add(query_id, column)
        self._members[query_id] = _Member(plan.leaf, tuple(path), end)

    def _tree(self, plan: Plan) -> _Tree:
        tree = self._trees.get(plan.leaf)
        if tree is None:
            leaf: Leaf = ScanNode(plan.leaf) if isinstance(plan.leaf, Scan) else FlowNode(plan.leaf)
            tree = self._trees[plan.leaf] = _Tree(leaf)
        return tree

    def remove(self, query_id: str) -> None:
        """A query goes; passed over where it is not there."""
        member = self._members.pop(query_id, None)
        if member is None:
            return
        tree = self._trees[member.tree]
        sink = tree.sinks[member.sink]
        sink.remove(query_id)
        if not sink.query_ids:
            del tree.sinks[member.sink]
        for key in reversed(member.nodes):
            if not tree.nodes[key].columns.count:
                del tree.nodes[key]
        if isinstance(tree.leaf, FlowNode):
            del tree.leaf.readers[query_id]
            self._touching.remove(query_id)
        if not tree.sinks:
            del self._trees[member.tree]

    def forget(self) -> None:
        """Rows have other ordinals now, or history came back: state is made anew."""
        for tree in self._trees.values():
            tree.forget()
        self._stands = None

    # --- transitions ------------------------------------------------------------------------------

    def advance(
        self, course: Course, limits: Limits, now_ms: int, broken: dict[str, Exception]
    ) -> Iterator[Changes]:
        """What changed on a transition. broken: gets the queries whose changes cannot be told, and why."""
        if not self._members:
            return
        begin, end = _stands(course)
        if self._stands is not None and self._stands != begin:
            self.forget()
        self._stands = end
        touched = self._touching.touched(course)
        trip = Trip(course, limits)
        for tree in self._trees.values():
            if isinstance(tree.leaf, FlowNode) and touched.isdisjoint(tree.leaf.readers):
                continue
            try:
                found = tree.changes(trip, broken, now_ms)
            except TureenError as refused:
                broken.update(dict.fromkeys(tree.members, refused))
            else:
                yield from found
            tree.rest()

    @property
    def node_count(self) -> int:
        """How many operators there are, leaves included."""
        return sum(1 + len(tree.nodes) for tree in self._trees.values())

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(node.nbytes for tree in self._trees.values() for node in tree.nodes.values())

    def _check(self) -> None:
        for tree in self._trees.values():
            assert tree.leaf.columns.count
            for node in tree.nodes.values():
                assert node.columns.count
                node._check()


def changes_of(
    standing: StandingQuery,
    operator: Operator,
    course: Course,
    limits: Limits,
    now_ms: int,
    *,
    tables: Container[SourceName] = (),
    copies: bool = False,
) -> Changes:
    """The changes of one query on a transition, by a graph of its own: O(rows of its windows).

    Raises LimitExceeded.
    """
    graph, broken, query = Graph(tables), dict[str, Exception](), standing.query
    graph.add(standing, query, operator, copies=copies, limited=True)
    for changes in graph.advance(course, limits, now_ms, broken):
        return changes
    for refused in broken.values():
        raise refused
    none = np.empty(0, np.int64)
    counted = np.empty(0, np.int32) if copies else None
    table = schema_of(query.columns).empty_table()
    weights = none.astype(np.int8)
    return Changes.of_one(standing.query_id, table, weights, none, now_ms, copies=counted)


def _sink(top: Node, query: Query, operator: Operator, *, copies: bool, limited: bool) -> Sink:
    schema = schema_of(query.columns)
    if operator == "rstream":
        assert isinstance(top, FlowNode)
        return WholeSink(top, schema)
    counted = [type_ for _, type_ in query.columns] if copies else None
    return ChangeSink(top, operator, schema, counted, limited=limited)


def _ways(whole: Way, moved: Lives, columns: int) -> Iterator[Way]:
    """A transition in turns. moved: what the leaf gives. columns: who may want each of its rows."""
    turns = -(-len(moved) * columns // TURN_PAIRS)
    if turns <= 1:
        yield whole
        return
    instants = np.sort(np.concatenate([each[whole.among(each)] for each in (moved.begins, moved.ends)]))
    ends = np.unique(instants[:: max(1, len(instants) // turns)][1:])
    since = whole.since
    for end in [*ends.tolist(), whole.until]:
        if end > since:
            yield Way(since, end)
            since = end


_Stand = tuple[int, dict[SourceName, int | None]]
"""NOW, and from when on each source is retained."""


def _stands(course: Course) -> tuple[_Stand, _Stand]:
    """How the sources of a course stand at its beginning and at its end."""
    before = {name: leg.at.retained_from_ms for name, leg in course.legs.items()}
    after = {
        name: before[name] if leg.retained_to_ms is None else leg.retained_to_ms
        for name, leg in course.legs.items()
    }
    return (course.since_ms, before), (course.until_ms, after)
