"""Followed selections that tell rows as they come, without a turn of their graph.

Where all that a graph tells is the rows that enter plain selections over whole streams (no window that rows
leave with time, ISTREAM, one query each, no more than :data:`MOST`), its operators keep nothing, and no row
that leaves takes back one that comes. Then what came is read from the rows of the stream as the operators
would give it. Where that is not so, or fails, the operators do it.

Cost: O(log rows + rows that come) a query; for few rows a third of what a turn of the graph takes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from engine.changes.ranges import ordinals
from engine.changes.temporal_relation import TemporalRelation
from engine.changes.transition import NEVER, SourceTransition, Transition
from engine.dataflow.fed_sink import FedSink
from engine.dataflow.operators.rows import ProjectNode
from engine.dataflow.operators.scan import ScanNode
from engine.dataflow.sinks import ChangeSink
from engine.model.changes import Changes
from engine.operators.gather import rows_at
from engine.operators.places import timestamps_at
from engine.stems.table_stem import TableRows
from engine.windows.clauses import Instant, TimeWindow

MOST = 4
"""The rows of more queries are better found together."""
_ALL = TimeWindow(None, Instant(relative=True, ms=0))


class Arrival:
    """A sink whose only query is a plain selection over a whole stream."""

    def __init__(
        self,
        fed: FedSink,
        sink: ChangeSink,
        only: tuple[str, int],
        scan: ScanNode,
        project: ProjectNode | None,
    ) -> None:
        """only: its query, and the column of that."""
        self._fed = fed
        self._sink = sink
        self._scan = scan
        self._project = project
        self._query_id, column = only
        self._asked = scan.asked(column)

    @classmethod
    def of(cls, fed: FedSink) -> Arrival | None:
        """Returns None where operators are needed for what it tells."""
        sink, scan, top = fed.sink, fed.nodes[0], fed.nodes[-1]
        if not isinstance(sink, ChangeSink) or not isinstance(scan, ScanNode) or type(scan) is not ScanNode:
            return None
        kind, only = scan.kind, sink.only
        is_whole = kind.window == _ALL and not (kind.predicate or kind.assignment or kind.history)
        if only is None or not is_whole or scan.exits_known:
            return None
        if top is scan:
            return cls(fed, sink, only, scan, None)
        if isinstance(top, ProjectNode) and top.below is scan:
            return cls(fed, sink, only, scan, top)
        return None

    def told(self, transition: Transition, at_source: SourceTransition, now_ms: int) -> Changes | None:
        """The rows that come on a transition; None: there are none."""
        at = at_source.at
        start, stop = ordinals(at, (transition.since_ms + 1, transition.until_ms + 1))
        if start >= stop:
            return None
        places = at.matching(None, start, stop)
        at_ms, relation = timestamps_at(places), rows_at(at.rows.schema, places)
        accepted = self._asked.places(TemporalRelation(relation, at_ms, at_ms), at.rows)
        self._scan.visited += len(at_ms)
        if len(accepted) < len(at_ms):
            relation, at_ms = relation.take(accepted), at_ms[accepted]
        n = len(at_ms)
        width = len(relation.columns)
        self._scan.passed(n, width, width)
        if not n:
            return None
        if self._project is not None:
            relation = self._project.of(relation)
            self._project.visited += n
            self._project.passed(n, len(relation.columns), width)
        table = self._sink.table(relation)
        self._fed.usage.rows_out += n
        self._fed.usage.bytes_out += table.nbytes
        return Changes.of_one(self._query_id, table, np.ones(n, np.int8), at_ms, now_ms)


def arrivals_of(sinks: Iterable[FedSink]) -> list[Arrival] | None:
    """All sinks of a graph, if they tell rows as they come and nothing else."""
    found: list[Arrival] = []
    for fed in sinks:
        arrival = Arrival.of(fed) if len(found) < MOST else None
        if arrival is None:
            return None
        found.append(arrival)
    return found


def told(arrivals: Iterable[Arrival], transition: Transition, now_ms: int) -> list[Changes] | None:
    """What is told on a transition, in the order of the sinks; None: operators are to say so."""
    if len(transition.by_source) != 1 or transition.instant_ms is not None:
        return None
    (at_source,) = transition.by_source.values()
    at = at_source.at
    if transition.since_ms == NEVER or at.now_ms is None or isinstance(at.rows, TableRows):
        return None
    if not at_source.moves:
        return []
    try:
        changes = [one.told(transition, at_source, now_ms) for one in arrivals]
    except Exception:  # noqa: BLE001  (operators find out whose it is)
        return None
    return [one for one in changes if one is not None]
