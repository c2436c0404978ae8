"""The nodes of a graph: made from plans, each once, and let go of when nobody reads them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar
from weakref import WeakKeyDictionary

from engine.changes.streams import Streams
from engine.dataflow.buffers.buffer import Work
from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.entities import digest, word_of
from engine.dataflow.held_sources import HeldSources
from engine.dataflow.node import Node
from engine.dataflow.operators.entries import EntriesNode
from engine.dataflow.operators.exits import ExitsNode
from engine.dataflow.operators.flow import FlowNode
from engine.dataflow.operators.held_scan import HeldScanNode, Holding
from engine.dataflow.operators.readers import SeenByReaders
from engine.dataflow.operators.rows import ConditionNode
from engine.dataflow.operators.scan import ScanNode
from engine.dataflow.operators.session import SessionNode
from engine.dataflow.operators.two_inputs import TwoInputs
from engine.dataflow.operators.window_extreme import WindowExtremeNode
from engine.dataflow.plan import (
    Combined,
    Exits,
    Joined,
    OpaqueLeaf,
    OperatorOver,
    Plan,
    ScanLeaf,
    key_of,
    node_of,
    node_of_two,
)
from engine.language.query import Scan
from engine.standing.query import StandingQuery
from engine.windows.assignment import Session
from engine.windows.clauses import TimeWindow

Leaf = ScanNode | FlowNode
AnyLeaf = TypeVar("AnyLeaf", bound=Leaf)


@dataclass(frozen=True, slots=True)
class Built:
    """A query's way down the graph. keys: of its nodes, those below first."""

    keys: tuple[Hashable, ...]
    node: Node
    column: int


class GraphNodes:
    """Keeps the nodes of one graph."""

    def __init__(
        self, settings: StateSettings, held: HeldSources, streams: Streams, by_key: dict[Hashable, Node]
    ) -> None:
        """held: what its scans hold of streams. streams: gives those of subqueries. by_key: takes the nodes,
        each behind those below it.
        """
        self._settings = settings
        self._held = held
        self._streams = streams
        self.by_key = by_key
        self.leaves: dict[Hashable, Leaf] = {}
        """Those of them that read sources."""
        self._ids: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
        """Under which nodes are told of, of those that were."""

    def build(self, plan: Plan, standing: StandingQuery, since: int, own: Hashable | None) -> Built:
        """The nodes of a plan, those that are not there made. own: whose alone they are; None: of all."""
        match plan:
            case ScanLeaf() | OpaqueLeaf():
                return self._build_leaf(plan, standing, since, own)
            case OperatorOver(_, constants, below, span_ms=span_ms):
                under = self.build(below, standing, since, own)
                key = key_of(plan, under.keys[-1])
                node = self.by_key.get(key)
                if node is None:
                    node = self.by_key[key] = node_of(plan, under.node)
                column = under.column
                if isinstance(node, ConditionNode):
                    column = node.column(column, constants)
                elif isinstance(node, WindowExtremeNode):
                    assert span_ms is not None
                    column = node.column(column, span_ms)
                return Built((*under.keys, key), node, column)
            case Exits(below, edge):
                under = self.build(below, standing, since, own)
                key = key_of(plan, under.keys[-1])
                node = self.by_key.get(key)
                if node is None:
                    node = self.by_key[key] = ExitsNode(under.node, edge)
                return Built((*under.keys, key), node, under.column)
            case Joined(_, left, right) | Combined(_, left, right):
                one = self.build(left, standing, since, own)
                other = self.build(right, standing, since, own)
                both = key_of(plan, one.keys[-1], other.keys[-1])
                node = self.by_key.get(both)
                if node is None:
                    node = self.by_key[both] = node_of_two(plan, one.node, other.node)
                assert isinstance(node, TwoInputs)
                spans = plan.spans if isinstance(plan, Joined) else None
                column = node.column(one.column, other.column, spans)
                return Built((*one.keys, *other.keys, both), node, column)

    def _build_leaf(
        self, plan: ScanLeaf | OpaqueLeaf, standing: StandingQuery, since: int, own: Hashable | None
    ) -> Built:
        key, settings = key_of(plan) if own is None else (own, key_of(plan)), self._settings
        match plan:
            case OpaqueLeaf(query):
                leaf = self._leaf(key, FlowNode, lambda: FlowNode(query, self._streams, settings))
                leaf.readers[standing.query_id] = standing
                return Built((key,), leaf, 0)
            case ScanLeaf(Scan(assignment=Session(), window=TimeWindow()) as kind):
                sessions = self._leaf(key, SessionNode, lambda: SessionNode(kind, settings))
                sessions.readers[standing.query_id] = standing
                return Built((key,), sessions, sessions.column(None))
        kind, scan = plan.kind, plan.scan
        slot = None if scan.predicate is None else standing.slot_of(scan.source, scan.predicate)
        if plan.held:
            rows = self._held.of(scan.source)
            held = self._leaf(key, HeldScanNode, lambda: HeldScanNode(kind, rows, settings))
            holding = Holding(standing.query_id, scan.predicate, slot, since)
            return Built((key,), held, held.column_of(holding))
        scanned: ScanNode
        if plan.entries:
            scanned = self._leaf(key, EntriesNode, lambda: EntriesNode(kind, settings))
        else:
            make = lambda: ScanNode(kind, exits_known=plan.exits_known, settings=settings)  # noqa: E731
            scanned = self._leaf(key, ScanNode, make)
        return Built((key,), scanned, scanned.column(scan.predicate if slot is None else slot))

    def _leaf(self, key: Hashable, of: type[AnyLeaf], make: Callable[[], AnyLeaf]) -> AnyLeaf:
        leaf = self.leaves.get(key)
        if leaf is None:
            leaf = self.leaves[key] = self.by_key[key] = make()
        assert isinstance(leaf, of)
        return leaf

    def leave(self, query_id: str, keys: Sequence[Hashable]) -> set[Node]:
        """A query goes. keys: of its nodes, those below first. Returns those of them that stay, and kept
        state for many more columns.
        """
        for key in dict.fromkeys(reversed(keys)):
            leaf = self.leaves.get(key)
            if isinstance(leaf, SeenByReaders):
                leaf.readers.pop(query_id, None)
            if not self.by_key[key].columns.count:
                del self.by_key[key]
                self.leaves.pop(key, None)
        there = [self.by_key[key] for key in keys if key in self.by_key]
        return {node for node in there if node.columns.few_left()}

    def take_over(self, other: GraphNodes) -> None:
        """Those of another graph come, with their state."""
        self.by_key |= other.by_key
        self.leaves |= other.leaves

    def id_of(self, key: Hashable, node: Node, over: str) -> str:
        """Under which it is told of. over: the names of the sources."""
        known = self._ids.get(node)
        if known is None:
            known = self._ids[node] = f"operator/{over}/{word_of(node)}-{digest(key)}"
        return known

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(node.nbytes for node in self.by_key.values())

    @property
    def visited(self) -> int:
        """Rows that operators looked at since they came."""
        return sum(node.visited for node in self.by_key.values())

    @property
    def state_work(self) -> Work:
        """What operators did to the entries that they keep."""
        return sum((node.state_work for node in self.by_key.values()), Work())

    def _check(self) -> None:
        for node in self.by_key.values():
            assert node.columns.count
            assert node.refused is None
            node._check()
