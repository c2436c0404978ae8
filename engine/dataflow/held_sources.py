"""What the joins and groups of a graph hold of streams, beside what is retained of them.

Rows are asked for at the end of a step, when streams have let go of some.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np

from engine.dataflow.node import Node
from engine.dataflow.operators.held_scan import HeldScanNode
from engine.dataflow.operators.releasing_group import ReleasingGroupNode
from engine.dataflow.operators.releasing_join import ReleasingJoinNode
from engine.dataflow.releases.held_rows import Gone, HeldRows
from engine.model.batch import Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.persistence import HeldState
from engine.model.source import SourceName, Stream


class HeldSources:
    """Keeps the rows that one graph holds of streams. One writer."""

    def __init__(
        self,
        streams: Mapping[SourceName, Stream],
        nodes: Mapping[Hashable, Node],
        capacities: Capacities = USUAL,
    ) -> None:
        """nodes: those of the graph, as they come and go."""
        self._nodes = nodes
        self._capacities = capacities
        self._streams = streams
        self._rows: dict[SourceName, HeldRows] = {}

    def __bool__(self) -> bool:
        """Whether any stream is held."""
        return bool(self._rows)

    def of(self, source: SourceName) -> HeldRows:
        """The rows of a stream."""
        if source not in self._rows:
            self._rows[source] = HeldRows(self._streams[source].stored_schema, self._capacities)
        return self._rows[source]

    def only_needed(self) -> None:
        """Streams that no node holds any more are let go of."""
        scans = {node.kind.source for node in self._nodes.values() if isinstance(node, HeldScanNode)}
        self._rows = {name: rows for name, rows in self._rows.items() if name in scans}

    def take(self, gone: Mapping[SourceName, Gone], step: int) -> None:
        """A step is over, in which streams let go of rows."""
        for name, held in self._rows.items():
            if name in gone:
                needed = self._needed(name)
                held.take(gone[name], needed, step)
                if needed is not None:
                    held.sweep(needed)

    def remember(self, ends: Mapping[SourceName, int]) -> None:
        """State of nodes is about to be lost. ends: the ordinals behind the rows that they have seen."""
        for node in self._nodes.values():
            if isinstance(node, HeldScanNode):
                source = node.kind.source
                needed = self._needed(source)
                if needed is not None:
                    self._rows[source].remember(needed, ends[source])
                    node.resumed()

    def renumbered(self, source: SourceName, base: int, first: int, from_ms: int | None) -> None:
        """History of a stream came back."""
        if source in self._rows:
            self._rows[source].renumbered(base, first, from_ms)

    def _needed(self, source: SourceName) -> Int64Array | None:
        """The ordinals of rows that joins and groups keep, ascending; None: of some that is not known."""
        keeping = [
            node for node in self._nodes.values() if isinstance(node, ReleasingJoinNode | ReleasingGroupNode)
        ]
        if any(node.is_coming for node in keeping):
            return None
        ordinals = [each for node in keeping for each in node.needs(source)]
        found: Int64Array = np.sort(np.concatenate([np.empty(0, np.int64), *ordinals]))
        first = np.ones(len(found), np.bool_)
        first[1:] = found[1:] != found[:-1]
        return found[first]

    # --- the store's side -------------------------------------------------------------------------

    def states(
        self, over: Sequence[SourceName], ends: Mapping[SourceName, int] | None
    ) -> Iterator[HeldState]:
        """As they are stored. ends: as for :meth:`remember`; None: nodes have seen nothing yet."""
        for name, held in self._rows.items():
            needed = None if ends is None else self._needed(name)
            yield held.state(over, name, needed, 0 if ends is None else ends[name])

    def restore(self, state: HeldState) -> None:
        """Back from a store; passed over where nothing holds the stream any more."""
        for node in self._nodes.values():
            if isinstance(node, HeldScanNode) and node.kind.source == state.source:
                self.of(state.source).restore(state)
                node.resumed()

    @property
    def nbytes(self) -> int:
        return sum(held.nbytes for held in self._rows.values())

    def _check(self) -> None:
        for held in self._rows.values():
            held._check()
