"""What queries that come cost the rows that are there, and when that is too much for one step.

What indexes hold of a predicate is applied to a million rows in milliseconds. A residual conjunct is
evaluated row by row: a disjunction of 2,500 pairs takes microseconds a row, seconds for the rows that are
retained, and all other queries of its sources would wait. So the residuals of a query that comes are timed on
some of the last rows. Where all rows would take longer than is left of the allowance, its matches are not
kept: the query's mode is ``none``, which gives the same answers. What measuring takes is taken from the
allowance too: once nothing is left, whatever would have to be measured is not affordable.

Without a timer nothing is measured and everything is affordable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from engine.eddy.eddy import Timer
from engine.language.evaluate import truth
from engine.language.query import Query
from engine.model.batch import Batch
from engine.model.expressions import And, Expression, calls_user
from engine.model.lazy_columns import readable
from engine.model.source import SourceName
from engine.sources.source import Source
from engine.stems.factors import factors
from engine.stems.residual import work

ALLOWANCE_NS = 200_000_000
SAMPLE_ROWS_FIRST = 8
SAMPLE_ROWS_MIN = 128
SAMPLE_ROWS_MAX = 8_192
SAMPLE_WORK = 2e7
"""A sample has so many rows that evaluating it is about this work, between the two."""
SAMPLE_NS = 20_000_000
"""No more rows are looked at once this time is spent."""
SURE_FACTOR = 16
"""Nothing is measured where even so many times the assumed work is affordable."""


class Allowance:
    """Time that the queries of one step, or of one revision, may take together to be applied to old rows."""

    def __init__(self, timer: Timer | None, left_ns: float = ALLOWANCE_NS) -> None:
        self._timer = timer
        self._left_ns = left_ns

    def takes(self, query: Query, sources: Mapping[SourceName, Source]) -> bool:
        """Whether a query is affordable, and if so take what it costs. O(size of its predicates), and the
        time for a sample of rows.
        """
        if self._timer is None:
            return True
        cost_ns = 0.0
        for name, predicate in query.predicates():
            source = sources[name]
            residuals = factors(predicate).residuals
            a_row = sum(map(work, residuals))
            count = len(source.rows)
            unsure = any(map(calls_user, residuals)) and count > 0
            if unsure or SURE_FACTOR * count * a_row > self._left_ns:
                if self._left_ns <= 0:
                    return False
                rows = _last(source, int(min(max(SAMPLE_WORK / a_row, SAMPLE_ROWS_MIN), SAMPLE_ROWS_MAX)))
                began_ns = self._timer()
                cost_ns += count * _row_ns(predicate, residuals, rows, self._timer)
                self._left_ns = max(0.0, self._left_ns - (self._timer() - began_ns))
            else:
                cost_ns += count * a_row / SURE_FACTOR
        if cost_ns > self._left_ns:
            return False
        self._left_ns -= cost_ns
        return True


def _row_ns(predicate: Expression, residuals: Sequence[Expression], rows: Batch, timer: Timer) -> float:
    """Nanoseconds that the residuals take for each row, where rows that indexes rule out take none."""
    operands = predicate.operands if isinstance(predicate, And) else (predicate,)
    left_over = set(residuals)
    columns = readable(rows)
    wanted = np.ones(len(rows), np.bool_)
    for operand in operands:
        if operand not in left_over:
            wanted &= truth(operand, columns, len(rows))[0]
    share = max(1, int(np.count_nonzero(wanted))) / len(rows)
    start, spent_ns, count = 0, 0, SAMPLE_ROWS_FIRST
    while start < len(rows) and spent_ns < SAMPLE_NS:
        stop = min(len(rows), start + count)
        columns = readable(rows.slice(start, stop))
        began_ns = timer()
        for residual in residuals:
            truth(residual, columns, stop - start)
        took_ns = timer() - began_ns
        row_ns = took_ns / (stop - start)  # the last and largest piece tells: calls count least in it
        start, spent_ns, count = stop, spent_ns + took_ns, 4 * count
    return float(share * row_ns)


def _last(source: Source, count: int) -> Batch:
    """The last rows, at most so many and all of one segment."""
    rows = source.rows.rows()
    *_, (_, last) = rows.slices(max(rows.base, rows.end - count), rows.end)
    return last
