"""Aggregates over groups whose rows come and go: the value of a call in each piece of time.

To the bit what :mod:`engine.operators.aggregate` gives for the rows that are there. Counts and exact sums are
added up over events; of MIN, MAX, FIRST, LAST each row that moves claims its pieces, the best first; doubles are
folded in their tree, of which only what changed is done anew (:mod:`engine.kernels.piece_folds`). What is left,
sketches, arrays and sums of distinct doubles, repeats each row for every piece that it is there in.

Cost: O(rows + pieces) and a sort of the rows that move; what is repeated: O(rows there, summed over pieces).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from engine.changes.pieces import Pieces
from engine.kernels import grouping, piece_folds
from engine.kernels import pieces as kernels
from engine.language.evaluation.arithmetic import as_double
from engine.language.evaluation.vector import from_column
from engine.language.expressions import Expression
from engine.language.query import AggregateCall
from engine.limits import Limits
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregate import FUNCTIONS, KEEPS_NULLS
from engine.operators.aggregates import moments, totals
from engine.operators.aggregates.members import Members, select
from engine.operators.keys import encode, order_keys
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded

Doubles = npt.NDArray[np.float64]

SPREADS = {"VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP"}
REPEATED = {"ARRAY_AGG", "APPROX_COUNT_DISTINCT", "APPROX_QUANTILE"}
"""What is computed from all rows of each piece."""
CHUNK_ROWS = 1_000_000
VISITS_MAX = 5_000_000_000
"""Rows looked at to fold doubles: some ten seconds."""


def depends_on_order(call: AggregateCall, numbered: bool) -> bool:
    """Whether a value depends on the order of rows; numbered: ordinals stand for it where numbers are added."""
    function = call.function
    if function in ("FIRST", "LAST") or function in REPEATED:
        return True
    if not call.arguments or function == "COUNT":
        return False
    double = call.arguments[0].type.kind is Kind.DOUBLE
    if function in ("MIN", "MAX"):
        return double  # which of two zeros
    return not numbered and (function in SPREADS or (function in ("SUM", "AVG") and double))


class Calls:
    """The rows of an aggregate, cut into pieces.

    relation: the rows, those of ``pieces``; numbered by a stream, or in their order.
    """

    def __init__(self, relation: Relation, pieces: Pieces, limits: Limits) -> None:
        self._relation = relation
        self._pieces = pieces
        self._rows_max = limits.intermediate_rows_max
        self._known: dict[tuple[Expression | None, Expression | None, bool], _Members] = {}

    def column(self, call: AggregateCall) -> Column:
        """The value of a call in each piece. Raises LimitExceeded."""
        members = self._members(call)
        function = call.function
        if function == "COUNT":
            return Column(BIGINT, (members.distinct() if call.distinct else members).counts)
        if function in ("SUM", "AVG"):
            if members.column.type.kind is not Kind.DOUBLE:
                return _exact(members.distinct() if call.distinct else members, call)
            if not call.distinct:
                return _sum(members, call)
        if function in SPREADS:
            return _spread(members, call)
        if function in _PICKS:
            return _picked(members, call)
        return self._repeated(members, call)

    def _members(self, call: AggregateCall) -> _Members:
        argument = call.arguments[0] if call.arguments else None
        known = (argument, call.filter, call.function in KEEPS_NULLS)
        if known not in self._known:
            self._known[known] = self._selected(*known)
        return self._known[known]

    def _selected(self, argument: Expression | None, condition: Expression | None, nulls: bool) -> _Members:
        relation, pieces = self._relation, self._pieces
        n = len(relation)
        members, _ = select(relation, argument, condition, nulls, np.arange(n), n)
        rows = members.codes
        assert rows is not None
        number = members.ordinals if relation.numbered else None
        if len(rows) == n:
            return _Members(
                members.column, number, pieces.low, pieces.high, pieces.codes, pieces.counts, pieces
            )
        low, high = pieces.low[rows], pieces.high[rows]
        return _Members(members.column, number, low, high, pieces.codes[rows], None, pieces)

    def _repeated(self, members: _Members, call: AggregateCall) -> Column:
        """By the operator itself, over pieces as groups, some of them at a time."""
        total = int(members.counts.sum())
        if total > self._rows_max:
            hint = f"narrow the window: {call.function} is computed anew whenever a row of its group comes or goes"
            raise LimitExceeded("intermediate_rows_max", self._rows_max, total, hint=hint)
        before = np.cumsum(members.counts) - members.counts
        bounds = np.flatnonzero(np.diff(before // CHUNK_ROWS, prepend=-1))
        columns = []
        for start, stop in zip(bounds, [*bounds[1:], len(before)], strict=True):
            part = members.repeated(int(start), int(stop))
            column, _ = FUNCTIONS[call.function](part.distinct() if call.distinct else part, call)
            columns.append(column)
        return concatenate_columns(call.type, columns)


class _Members:
    """What a call is over: values of m rows, in order, and the pieces that each is there in.

    column: the argument; None where there is none. number: makes the rows' ordinals; None: they are counted.
    counts: int64[pieces], where known.
    """

    def __init__(
        self,
        column: Column | None,
        number: Callable[[], Int64Array] | None,
        low: Int64Array,
        high: Int64Array,
        codes: Int64Array,
        counts: Int64Array | None,
        pieces: Pieces,
    ) -> None:
        self._column = column
        self.number = number
        self.low = low
        self.high = high
        self.codes = codes
        self._counts = counts
        self.pieces = pieces

    def __len__(self) -> int:
        return len(self.low)

    @property
    def column(self) -> Column:
        assert self._column is not None
        return self._column

    @property
    def counts(self) -> Int64Array:
        """int64[pieces]: how many rows are there."""
        if self._counts is None:
            counts = np.empty(len(self.pieces) + 1, np.int64)
            kernels.counts(self.low, self.high, counts)
            self._counts = counts[:-1]
        return self._counts

    def some(self) -> BoolArray | None:
        """bool[pieces]: where there are rows; None: everywhere."""
        some: BoolArray = self.counts > 0
        return None if some.all() else some

    def distinct(self) -> _Members:
        """Equal values of a group once, for as long as one of them is there."""
        m = len(self)
        same, firsts = encode([self.column, Column(BIGINT, self.codes)], m)
        rows, lows, highs = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m, np.int64)
        moving, stays = np.empty(m, np.int64), np.empty(len(firsts), np.bool_)
        found, left = kernels.unite(
            same, self.codes, self.low, self.high, self.pieces.starts, rows, lows, highs, stays, moving
        )
        moving = moving[:left]
        moving = moving[np.lexsort((self.low[moving], same[moving]))]
        found = kernels.join_runs(same, moving, self.low, self.high, rows, lows, highs, found)
        rows = rows[:found]
        column = self.column.take(rows)
        return _Members(column, None, lows[:found], highs[:found], self.codes[rows], None, self.pieces)

    def repeated(self, start: int, stop: int) -> Members:
        """The rows of pieces start to stop, once for each that they are there in; those are the groups."""
        rows = np.flatnonzero((self.low < stop) & (self.high > start))
        low, high = np.maximum(self.low[rows], start), np.minimum(self.high[rows], stop)
        times = high - low
        repeats = np.repeat(rows, times)
        codes = np.arange(len(repeats)) - np.repeat(np.cumsum(times) - times - (low - start), times)
        column = None if self._column is None else self._column.take(repeats)
        number = self.number
        ordinals = None if number is None else lambda: number()[repeats]
        return Members(column, len(repeats), codes, stop - start, ordinals)

    def by_group(self) -> tuple[Int64Array | None, Int64Array, Int64Array | None]:
        """(rows group by group, by ordinal, or in order where they are counted, None: as they are; where each
        group begins; the ordinals of the rows so).
        """
        groups, codes, ordinals = self.pieces.groups, self.codes, None if self.number is None else self.number()
        order = None
        if ordinals is not None and len(ordinals) > 1 and bool((ordinals[1:] < ordinals[:-1]).any()):
            order = np.argsort(ordinals, kind="stable")
            ordinals, codes = ordinals[order], codes[order]
        starts = np.array([0, len(codes)], np.int64)
        if groups > 1:
            starts, together = np.empty(groups + 1, np.int64), np.empty(len(codes), np.int64)
            grouping.bring_together(codes, starts, together)
            order = together if order is None else order[together]
            ordinals = None if ordinals is None else ordinals[together]
        return order, starts, ordinals


# --- whole numbers ------------------------------------------------------------------------------------


def _exact(members: _Members, call: AggregateCall) -> Column:
    """SUM, AVG of whole numbers and decimals."""
    pieces = len(members.pieces)
    high, low = np.empty(pieces + 1, np.int64), np.empty(pieces + 1, np.int64)
    values = members.column.values.astype(np.int64, copy=False)
    kernels.totals(values, members.low, members.high, high, low)
    if call.function == "SUM":
        return totals.fitted(high[:-1], low[:-1], members.counts, call.type)[0]
    scale = members.column.type.scale
    return Column(
        DOUBLE, totals.quotients(high[:-1], low[:-1], members.counts, scale), members.some()
    )


# --- one of the values --------------------------------------------------------------------------------


def _in_order(members: _Members) -> Int64Array:
    return np.arange(len(members))


_PICKS: dict[str, Callable[[_Members], Int64Array]] = {
    "MIN": lambda members: order_keys(members.column),
    "MAX": lambda members: ~order_keys(members.column),
    "BOOL_AND": lambda members: order_keys(members.column),
    "BOOL_OR": lambda members: ~order_keys(members.column),
    "FIRST": _in_order,
    "LAST": lambda members: ~_in_order(members),
}
"""Keys of which the least is taken."""


def _picked(members: _Members, call: AggregateCall) -> Column:
    rows = _least(_PICKS[call.function](members), members)
    there = rows >= 0
    values = members.column
    if there.all():
        return values.take(rows)
    if not len(values):
        nothing = np.zeros(len(rows), values.values.dtype)
        return Column(values.type, nothing, there, values.dictionary)
    taken = values.take(rows)  # -1 takes the last, which is in range
    return Column(values.type, taken.values, there, values.dictionary)


def firsts(pieces: Pieces) -> Int64Array:
    """int64[pieces]: the first row of each piece; -1 of none."""
    members = _Members(None, None, pieces.low, pieces.high, pieces.codes, None, pieces)
    return _least(_in_order(members), members)


def _least(keys: Int64Array, members: _Members) -> Int64Array:
    """int64[pieces]: the first row with the least key of each; -1 of none."""
    pieces = members.pieces
    best, moving = np.empty(pieces.groups, np.int64), np.empty(len(members), np.int64)
    count = kernels.part(keys, members.codes, members.low, members.high, pieces.starts, best, moving)
    moving = moving[:count]
    moving = moving[np.argsort(keys[moving], kind="stable")]
    rows = np.empty(len(pieces), np.int64)
    kernels.least(keys, members.low, members.high, pieces.starts, best, moving, rows)
    return rows


# --- doubles ------------------------------------------------------------------------------------------


def _sum(members: _Members, call: AggregateCall) -> Column:
    values, _ = _folded(members, members.column.values, spread=False)
    if call.function == "AVG":
        values = totals.divided(values, members.counts)
    return Column(DOUBLE, values, members.some())


def _spread(members: _Members, call: AggregateCall) -> Column:
    doubles = as_double(from_column(members.column))
    _, squares = _folded(members, doubles, spread=True)
    return moments.finished(squares, members.counts, call)


def _folded(members: _Members, values: Doubles, *, spread: bool) -> tuple[Doubles, Doubles]:
    """Totals, or means and squares, of each piece."""
    order, starts, ordinals = members.by_group()
    low, high = members.low, members.high
    if order is not None:
        values, low, high = values[order], low[order], high[order]
    pieces = members.pieces
    event_starts, event_rows = np.empty(len(pieces) + 1, np.int64), np.empty(2 * len(low), np.int64)
    piece_folds.events(low, high, starts, pieces.starts, event_starts, event_rows)
    results, squares = np.empty(len(pieces), np.float64), np.empty(len(pieces), np.float64)
    of = (low, high, starts, pieces.starts, event_starts, event_rows, VISITS_MAX, results, squares)
    if ordinals is not None:
        whole = piece_folds.fold_numbered(spread, ordinals, values, *of)
    else:
        whole = piece_folds.fold_counted(spread, values, *of)
    if not whole:
        hint = "narrow the window, or sum DECIMALs, which are added up exactly"
        raise LimitExceeded("folded_rows_max", VISITS_MAX, VISITS_MAX + 1, hint=hint)
    return results, squares
