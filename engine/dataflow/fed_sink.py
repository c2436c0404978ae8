"""A sink of a graph with the nodes that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from engine.changes.context import EvaluationContext
from engine.dataflow.node import Node
from engine.dataflow.sinks import ChangeSink, Sink
from engine.dataflow.turn import Turn
from engine.dataflow.whole_sink import WholeSink
from engine.language.query import Query
from engine.model.changes import Changes, Operator
from engine.model.defects import refusal_of
from engine.model.usage import Usage
from engine.operators.gather import schema_of
from tureen.errors import TureenError


@dataclass(slots=True)
class FedSink:
    """A sink, the nodes that it depends on, and which of them are leaves."""

    sink: Sink
    nodes: tuple[Node, ...]
    leaves: frozenset[Node]
    usage: Usage = field(default_factory=Usage)
    _refused: TureenError | None = None

    def concerns(self, looked_at: Collection[Node], moving: Collection[Node]) -> bool:
        """Whether it has to be asked. looked_at: leaves of a transition; moving: those of them that give
        something.
        """
        asking = moving if self.sink.only_differences else looked_at
        return not self.leaves.isdisjoint(asking)

    def begin(self, context: EvaluationContext) -> None:
        """A transition begins; the nodes have begun it."""
        self._refused = next((node.refused for node in self.nodes if node.refused is not None), None)
        self.tell(lambda sink: sink.begin(context))

    def tell(self, what: Callable[[Sink], None]) -> None:
        """Tell the sink something, until that is refused."""
        if self._refused is None:
            try:
                what(self.sink)
            except Exception as error:  # noqa: BLE001  (its queries are told)
                self._refused = refusal_of(error)

    def take(self, turn: Turn) -> None:
        """What changes on a turn."""
        laps = turn.context.laps
        if laps is not None:
            laps.enter(self.usage)
        self.tell(lambda sink: sink.take(turn))
        if laps is not None:
            laps.leave()

    def give(
        self, context: EvaluationContext, broken: dict[str, Exception], now_ms: int
    ) -> Sequence[Changes] | None:
        """What leaves on a transition; None: it cannot be told. broken: gets the queries for which that is
        so.
        """
        given: list[Changes] = []
        refused: dict[str, Exception] = {}
        self.tell(lambda sink: given.extend(sink.give(context, refused, now_ms)))
        if self._refused is not None:
            broken.update(dict.fromkeys(self.sink.query_ids, self._refused))
            self._refused = None
            self.sink.forget()
            return None
        broken.update(refused)
        self.usage.rows_out += sum(len(changes) for changes in given)
        self.usage.bytes_out += sum(changes.table.nbytes for changes in given)
        return given


def sink_over(top: Node, query: Query, operator: Operator, *, copies: bool, limited: bool) -> Sink:
    """The sink of a query's changes over its last node."""
    schema = schema_of(query.columns)
    if operator == "rstream":
        return WholeSink(top, schema)
    return ChangeSink(top, operator, schema, counts_copies=copies, limited=limited)
