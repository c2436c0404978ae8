"""The sinks of a graph: one for all queries that leave by the same operator and are told alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable
from typing import get_args

from engine.changes.transition import Transition
from engine.dataflow.arrivals import Arrival, arrivals_of, told
from engine.dataflow.fed_sink import FedSink
from engine.dataflow.node import Node
from engine.dataflow.strategy_state import ByStrategy, StrategyState
from engine.model.changes import Changes
from engine.model.maintenance import Strategy


class GraphSinks:
    """Keeps the sinks of one graph."""

    def __init__(self) -> None:
        self.by_end: dict[Hashable, FedSink] = {}
        """By the key of the operator and how its changes are told."""
        self.strategies: Counter[tuple[Hashable, Strategy]] = Counter()
        """How many queries leave by a sink with a strategy."""
        self._arrivals: list[Arrival] | None = None
        self._knows_arrivals = False
        """Whether nothing came or went since those were looked for."""

    def enter(self, end: Hashable, strategy: Strategy, make: Callable[[], FedSink]) -> FedSink:
        """A query comes. Returns its sink, made where it is the first."""
        self._knows_arrivals = False
        found = self.by_end.get(end)
        if found is None:
            found = self.by_end[end] = make()
        self.strategies[end, strategy] += 1
        return found

    def leave(self, query_id: str, end: Hashable, strategy: Strategy) -> None:
        """A query goes, and its sink with the last."""
        self._knows_arrivals = False
        self.strategies[end, strategy] -= 1
        if not self.strategies[end, strategy]:
            del self.strategies[end, strategy]
        sink = self.by_end[end].sink
        sink.remove(query_id)
        if not sink.query_ids:
            del self.by_end[end]

    def take_over(self, other: GraphSinks) -> None:
        """Those of another graph come, with their state."""
        self._knows_arrivals = False
        self.by_end |= other.by_end
        self.strategies += other.strategies

    def come(self, transition: Transition, now_ms: int) -> list[Changes] | None:
        """What is told on a transition, where that is the rows that come alone; None: operators are to say
        so.
        """
        if not self._knows_arrivals:
            self._arrivals, self._knows_arrivals = arrivals_of(self.by_end.values()), True
        return None if self._arrivals is None else told(self._arrivals, transition, now_ms)

    def concerned(self, looked_at: Collection[Node], moving: Collection[Node]) -> list[FedSink]:
        """Those that have to be asked. As :meth:`engine.dataflow.fed_sink.FedSink.concerns`."""
        return [each for each in self.by_end.values() if each.concerns(looked_at, moving)]

    def forget(self, nodes: Collection[Node] | None = None) -> None:
        """State is made anew of those that depend on some of these nodes; None: of all."""
        for each in self.by_end.values():
            if nodes is None or not set(nodes).isdisjoint(each.nodes):
                each.sink.forget()

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(each.sink.nbytes for each in self.by_end.values())

    def by_strategy(self) -> ByStrategy:
        """What is kept for the queries of each strategy. O(nodes)."""
        found: dict[Strategy, StrategyState] = {}
        counted: set[Node] = set()
        for strategy in get_args(Strategy):
            ends = {end: count for (end, of), count in self.strategies.items() if of == strategy}
            nodes = {node for end in ends for node in self.by_end[end].nodes} - counted
            if ends:
                found[strategy] = StrategyState(
                    sum(ends.values()),
                    sum(node.nbytes for node in nodes),
                    sum(node.entered for node in nodes),
                    sum(node.premature for node in nodes),
                )
            counted |= nodes
        return found
