"""The answer of a query over a period: each of its rows with the instants between which it is there.

The answer at the first instant is evaluated, and what changes from there on is worked out by operators of the
query's own, in one transition. So the cost is that of one answer and of the changes, however many instants
there are. Rows that come and rows that go are matched afterwards: of equal rows the one goes first that came
first.

The rows that are valid at an instant are the answer there, over the rows known now.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.changes.equality import codes_of_table
from engine.changes.transition import SourceTransition, Transition
from engine.dataflow.graph import changes_of
from engine.model.answer import AnswerColumns
from engine.model.batch import Int64Array
from engine.model.changes import Changes, Operator
from engine.model.interruption import require_room
from engine.model.limits import Limits
from engine.model.period import period_names
from engine.model.source import SourceName
from engine.model.types import TIMESTAMP
from engine.sources.source_view import SourceView, sources_at, timeless
from engine.standing.query import StandingQuery
from tureen.errors import LimitExceeded


def changes_between(
    standing: StandingQuery,
    operator: Operator,
    sources: Mapping[SourceName, SourceView],
    since_ms: int,
    until_ms: int,
    rows_max: int,
    limits: Limits,
) -> Changes:
    """What changes in an answer at the instants since_ms < t <= until_ms, over the rows known now; NEVER:
    from the beginning on. For the first all rows are there. until_ms: at most NOW.

    Cost: O(rows of the windows). Raises LimitExceeded: they are more than rows_max.
    """
    still = timeless([source.stream for source in sources.values()])
    by_source = {
        name: SourceTransition(at, moves=name not in still)
        for name, at in standing.at(sources_at(sources, until_ms)).items()
    }
    return changes_of(
        replace(standing, slots=()),  # matches of the rows of the windows may not be made yet
        operator,
        Transition(since_ms, until_ms, by_source),
        replace(limits, changes_max=rows_max),
        until_ms,
        tables=[name for name, source in sources.items() if source.stream.is_table],
    )


def rows_until(
    standing: StandingQuery,
    sources: Mapping[SourceName, SourceView],
    first: pa.Table,
    from_ms: int,
    last_ms: int,
    rows_max: int,
    limits: Limits,
) -> AnswerColumns:
    """The rows that are there at an instant of from_ms <= t <= last_ms, each as often as it is, with
    ``valid_from`` and ``valid_to`` behind its columns: cut off at the ends of the period, in their order.
    Where the answer has columns of these names, ``_`` is added to them.

    first: the answer at from_ms, for which all rows are there. last_ms: at most NOW.
    Cost: O(rows of the windows), and a sort of the answer and of its changes. Raises LimitExceeded.
    """
    changes = changes_between(standing, "changes", sources, from_ms, last_ms, rows_max, limits)
    rows = pa.concat_tables([first, changes.table])
    require_room(rows.nbytes + 64 * rows.num_rows)
    n = first.num_rows
    at_ms = np.concatenate([np.full(n, from_ms), changes.at_ms])
    came, valid_to = _matched(
        codes_of_table(rows), np.concatenate([np.ones(n, np.int8), changes.weights]), at_ms, last_ms + 1
    )
    valid_from = at_ms[came]
    there = np.flatnonzero(valid_from < valid_to)
    if len(there) > rows_max:
        raise LimitExceeded("snapshot_rows_max", rows_max, len(there), hint="ask for a shorter period")
    there = there[np.lexsort((came[there], valid_to[there], valid_from[there]))]
    found = rows.take(came[there])
    for name, values in zip(period_names(found.column_names), (valid_from, valid_to), strict=True):
        found = found.append_column(name, pa.array(values[there]).cast(TIMESTAMP.arrow))
    return AnswerColumns.of_table(found)


def _matched(
    codes: Int64Array, weights: np.ndarray[tuple[int], np.dtype[np.int8]], at_ms: Int64Array, end_ms: int
) -> tuple[Int64Array, Int64Array]:
    """(came, left_ms), int64[m] each: the places of the m rows that came, and when each left; end_ms where
    none did. codes: equal for equal rows. O(n log n).
    """
    order = np.lexsort((at_ms, codes))
    came, left = order[weights[order] > 0], order[weights[order] < 0]
    kinds = codes[left]
    nth = np.arange(len(left)) - np.searchsorted(kinds, kinds)
    left_ms = np.full(len(came), end_ms)
    left_ms[np.searchsorted(codes[came], kinds) + nth] = at_ms[left]
    return came, left_ms
