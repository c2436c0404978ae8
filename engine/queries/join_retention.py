"""Rows that streams let go of and joins of followed queries hold, as long as these need them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Set

from engine.dataflow.releases.held_rows import Gone
from engine.model.defects import Defects
from engine.model.persistence import HeldState
from engine.model.source import SourceName
from engine.queries.followed_graphs import FollowedGraphs
from engine.sources.source import Source
from engine.standing.query import SetKey
from engine.stems.rows import Rows

BeforeRetention = Mapping[SourceName, tuple[Rows, int]]
"""The rows of streams, and the first ordinal that is retained."""


class JoinRetention:
    """One owner, as the engine."""

    def __init__(self, graphs: FollowedGraphs, sources: Mapping[str, Source], defects: Defects) -> None:
        """As :class:`engine.queries.subscriptions.Subscriptions` has them."""
        self._graphs = graphs
        self._sources = sources
        self._defects = defects

    def before(self, names: Collection[SourceName] | None) -> BeforeRetention:
        """Streams of which joins hold rows, before a step lets go of any. names: those that it touches; None:
        all.
        """
        every = {name for _, name in self.streams()} if names is None else names
        held = {name for name in every if self._graphs.holds_of(name)}
        rows = {name: self._sources[name].rows.rows() for name in held}
        return {name: (was, self._first_retained(name, was)) for name, was in rows.items()}

    def _first_retained(self, name: SourceName, rows: Rows) -> int:
        """The first ordinal that is retained: there may be rows below it, for windows of rows."""
        from_ms = self._sources[name].retained_from_ms
        return rows.base if from_ms is None else rows.first_at_or_after(from_ms)

    def hold(self, before: BeforeRetention, step: int) -> None:
        """A step, of this sequence number, is over, and told: of what streams let go of joins hold what they
        need. before: as :meth:`before` has it.
        """
        gone = {
            name: Gone(was, first, self._first_retained(name, was)) for name, (was, first) in before.items()
        }
        for key, graph in list(self._graphs.by_set.items()) if gone else ():
            try:
                graph.held.take(gone, step)
            except Exception as defect:  # noqa: BLE001  (it is of those that hold rows)
                self._failed(key, defect)

    def _failed(self, key: SetKey, defect: Exception) -> None:
        """What joins over these sources hold is not known any more: their queries end."""
        graph = self._graphs.by_set[key]
        self._defects.note([name for name in graph.query_ids if graph.holds_for(name)], defect)
        self._graphs.remake(key, self._defects)

    def renumbered(self, name: SourceName) -> None:
        """History of a stream came back: its rows have other ordinals."""
        rows, from_ms = self._sources[name].rows.rows(), self._sources[name].retained_from_ms
        first = self._first_retained(name, rows)
        for key, graph in list(self._graphs.by_set.items()):
            if name in key:
                try:
                    graph.renumbered(name, rows.base, first, from_ms)
                except Exception:  # noqa: BLE001  (its state was to be made anew anyway)
                    self._graphs.remake(key)

    def streams(self) -> set[tuple[SetKey, SourceName]]:
        """Returns the streams of which joins hold rows, each with the key of the set whose queries they are
        for.
        """
        return {(key, name) for key, graph in self._graphs.by_set.items() if graph.held for name in key}

    def states(self, names: Set[SourceName]) -> Iterator[HeldState]:
        """What joins over any of these hold, as it is stored."""
        for key, graph in list(self._graphs.by_set.items()):
            if graph.held and not names.isdisjoint(key):
                try:
                    yield from list(graph.held_states(key))
                except Exception as defect:  # noqa: BLE001  (its queries go with the next step)
                    self._failed(key, defect)

    def restore(self, states: Iterable[HeldState]) -> None:
        """Back from a store, once the queries are back; what nobody holds any more is passed over."""
        for state in states:
            key = SetKey(state.over)
            graph = self._graphs.by_set.get(key)
            if graph is not None:
                try:
                    graph.held.restore(state)
                except Exception as defect:  # noqa: BLE001  (its queries go with the next step)
                    self._failed(key, defect)
