"""Aggregates over groups whose rows come and go: the value of a call in each piece of time.

To the bit what :mod:`engine.operators.aggregate` gives for the rows that are there. Counts and exact sums are
added up over events, those of doubles by :mod:`engine.kernels.piece_sums`; of MIN, MAX, FIRST, LAST each row
that moves claims its pieces, the best first. What is left, sketches and arrays, repeats each row for every
piece that it is there in.

Cost: O(rows + pieces) and a sort of the rows that move; what is repeated: O(rows there, summed over pieces).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.changes.pieces import Placed
from engine.kernels import piece_sums
from engine.kernels import pieces as kernels
from engine.language.aggregates import Statistic
from engine.language.expressions import Expression
from engine.language.query import AggregateCall
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.limits import Limits
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregate import FUNCTIONS
from engine.operators.aggregates import moments, totals
from engine.operators.aggregates.members import Members, select
from engine.operators.keys import encode, order_keys, with_one_zero
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded

CHUNK_ROWS = 1_000_000


class Calls:
    """The rows of an aggregate, in pieces.

    relation: the rows, in their order where it matters.
    """

    def __init__(self, relation: Relation, placed: Placed, limits: Limits) -> None:
        self._relation = relation
        self._rows = _Members(None, placed)
        self._limits = limits
        self._known: dict[tuple[Expression | None, Expression | None, bool], _Members] = {}

    def column(self, call: AggregateCall) -> Column:
        """The value of a call in each piece. Raises LimitExceeded."""
        members = self._members(call)
        function = call.function
        if function == "COUNT":
            return Column(BIGINT, (members.distinct() if call.distinct else members).counts)
        if function in ("SUM", "AVG"):
            members = members.distinct() if call.distinct else members
            return (_doubles if members.column.type.kind is Kind.DOUBLE else _whole)(members, call)
        if call.aggregate.statistic is Statistic.SPREAD:
            return _spread(members, call)
        if function in _PICKS:
            column = members.column.take_or_null(_PICKS[function](members))
            return with_one_zero(column) if function in ("MIN", "MAX") else column
        return self._repeated(members, call)

    def counts(self) -> Int64Array:
        """int64[pieces]: how many rows each has."""
        return self._rows.counts

    def firsts(self) -> Int64Array:
        """int64[pieces]: the first row of each; -1 of none."""
        return firsts(self._rows.placed, self._rows.stay)

    def _members(self, call: AggregateCall) -> _Members:
        argument = call.arguments[0] if call.arguments else None
        known = (argument, call.filter, call.aggregate.keeps_nulls)
        if known == (None, None, False):
            return self._rows
        if known not in self._known:
            self._known[known] = self._selected(*known)
        return self._known[known]

    def _selected(self, argument: Expression | None, condition: Expression | None, nulls: bool) -> _Members:
        relation, every = self._relation, self._rows
        n = len(relation)
        members, _ = select(relation, argument, condition, nulls, np.arange(n), n)
        rows = members.codes
        assert rows is not None
        if len(rows) == n:
            return _Members(members.column, every.placed, every.stay)
        return _Members(members.column, every.placed.take(rows))

    def _repeated(self, members: _Members, call: AggregateCall) -> Column:
        """By the operator itself, over pieces as groups, some of them at a time."""
        counts = members.counts
        total = int(counts.sum())
        rows_max = self._limits.intermediate_rows_max
        if total > rows_max:
            hint = f"narrow the window: {call.function} is computed again at each instant"
            raise LimitExceeded("intermediate_rows_max", rows_max, total, hint=hint)
        before = np.cumsum(counts) - counts
        bounds = np.flatnonzero(np.diff(before // CHUNK_ROWS, prepend=-1))
        columns = []
        for start, stop in zip(bounds, [*bounds[1:], len(before)], strict=True):
            part = members.repeated(int(start), int(stop))
            column, _ = FUNCTIONS[call.function](part.distinct() if call.distinct else part, call)
            columns.append(column)
        return concatenate_columns(call.type, columns)


class _Members:
    """What a call is over: values of rows, in order, and the pieces that each is there in.

    column: the argument; None where there is none.
    """

    def __init__(
        self,
        column: Column | None,
        placed: Placed,
        stay: Int64Array | None = None,
    ) -> None:
        self._column = column
        self.placed = placed
        self._stay = stay
        self._counts: Int64Array | None = None

    def __len__(self) -> int:
        return len(self.placed)

    @property
    def column(self) -> Column:
        assert self._column is not None
        return self._column

    @property
    def stay(self) -> Int64Array:
        """int64[groups]: how many rows of each stay."""
        if self._stay is None:
            self._stay = self.placed.staying()
        return self._stay

    @property
    def counts(self) -> Int64Array:
        """int64[pieces]: how many rows are there."""
        if self._counts is None:
            self._counts = self.placed.counts(self.stay)
        return self._counts

    def some(self) -> BoolArray | None:
        """bool[pieces]: where there are rows; None: everywhere."""
        some: BoolArray = self.counts > 0
        return None if some.all() else some

    def distinct(self) -> _Members:
        """Equal values of a group once, for as long as one of them is there. Their order is of no meaning."""
        placed = self.placed
        m, moving = len(self), placed.moving
        same, first = encode([self.column, Column(BIGINT, placed.codes)], m)
        rows, left = np.empty(m, np.int64), np.empty(len(moving), np.int64)
        found, count = kernels.unite(same, moving, rows, np.empty(len(first), np.bool_), left)
        left = left[:count]
        left = left[np.lexsort((placed.low[left], same[moving[left]]))]
        kept, low, high = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
        runs = kernels.join_runs(same[moving], left, placed.low, placed.high, kept, low, high)
        rows = np.concatenate([rows[:found], moving[kept[:runs]]])
        codes, low, high = placed.codes[rows], low[:runs], high[:runs]
        moves = found + np.arange(runs)
        return _Members(self.column.take(rows), Placed(placed.pieces, codes, moves, low, high))

    def repeated(self, start: int, stop: int) -> Members:
        """The rows of pieces start to stop, once for each that they are there in; those are the groups."""
        placed, starts = self.placed, self.placed.pieces.starts
        low, high = starts[placed.codes], starts[placed.codes + 1]
        low[placed.moving], high[placed.moving] = placed.low, placed.high
        rows = np.flatnonzero((low < stop) & (high > start))
        low, high = np.maximum(low[rows], start), np.minimum(high[rows], stop)
        times = high - low
        repeats = np.repeat(rows, times)
        codes = np.arange(len(repeats)) - np.repeat(np.cumsum(times) - times - (low - start), times)
        column = None if self._column is None else self._column.take(repeats)
        return Members(column, len(repeats), codes, stop - start)


# --- whole numbers ------------------------------------------------------------------------------------


def _whole(members: _Members, call: AggregateCall) -> Column:
    """SUM, AVG of whole numbers and decimals."""
    placed = members.placed
    pieces = placed.pieces
    high, low = np.empty(len(pieces) + 1, np.int64), np.empty(len(pieces) + 1, np.int64)
    values = members.column.values.astype(np.int64, copy=False)
    of = (placed.codes, placed.moving, placed.low, placed.high, pieces.starts)
    kernels.totals(values, *of, high, low)
    if call.function == "SUM":
        return totals.fitted(high[:-1], low[:-1], members.counts, call.type)[0]
    scale = members.column.type.scale
    return Column(DOUBLE, totals.quotients(high[:-1], low[:-1], members.counts, scale), members.some())


# --- one of the rows ----------------------------------------------------------------------------------


def firsts(placed: Placed, stay: Int64Array) -> Int64Array:
    """int64[pieces]: the first row of each piece; -1 of none. stay: how many rows of each group stay."""
    best = np.empty(len(stay), np.int64)
    kernels.end_staying(placed.codes, placed.moving, stay, False, best)
    return _least(placed, placed.moving, best, best)


def _lasts(members: _Members) -> Int64Array:
    placed, best = members.placed, np.empty(members.placed.pieces.groups, np.int64)
    kernels.end_staying(placed.codes, placed.moving, members.stay, True, best)
    return _least(placed, ~placed.moving, best, ~best)


def _best(members: _Members, keys: Int64Array) -> Int64Array:
    """The first row with the least key."""
    placed, best = members.placed, np.empty(members.placed.pieces.groups, np.int64)
    kernels.best_staying(keys, placed.codes, placed.moving, best)
    best_keys = keys[best] if len(keys) else best  # of none: not looked at
    return _least(placed, keys[placed.moving], best, best_keys)


def _least(placed: Placed, keys: Int64Array, best: Int64Array, best_keys: Int64Array) -> Int64Array:
    """keys: of the moving rows; best, best_keys: of the rows that stay in each group."""
    pieces, rows = placed.pieces, np.empty(len(placed.pieces), np.int64)
    by_key = np.argsort(keys, kind="stable")
    kernels.least(keys, placed.moving, by_key, placed.low, placed.high, pieces.starts, best, best_keys, rows)
    return rows


_PICKS: dict[str, Callable[[_Members], Int64Array]] = {
    "MIN": lambda members: _best(members, order_keys(members.column)),
    "MAX": lambda members: _best(members, ~order_keys(members.column)),
    "BOOL_AND": lambda members: _best(members, order_keys(members.column)),
    "BOOL_OR": lambda members: _best(members, ~order_keys(members.column)),
    "FIRST": lambda members: firsts(members.placed, members.stay),
    "LAST": _lasts,
}
"""Which row is taken."""


# --- doubles ------------------------------------------------------------------------------------------


def _doubles(members: _Members, call: AggregateCall) -> Column:
    """SUM, AVG."""
    out = np.empty(len(members.placed.pieces), np.int64)
    piece_sums.sums(*_by_group(members), members.counts, call.function == "AVG", out)
    return Column(DOUBLE, out.view(np.float64), members.some())


def _spread(members: _Members, call: AggregateCall) -> Column:
    out = np.empty(len(members.placed.pieces), np.int64)
    piece_sums.variances(*_by_group(members), members.counts, moments.less(call), out)
    return moments.finished(out.view(np.float64), members.counts, call)


def _by_group(
    members: _Members,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, BoolArray]:
    """The bits of the values as doubles, group by group, where groups begin, and the pieces and events of
    these rows, as :mod:`engine.kernels.piece_sums` takes them.
    """
    placed = members.placed
    pieces, rows = placed.pieces, placed.moving
    bits = moments.doubles(members.column).view(np.int64)
    starts = np.array([0, len(placed)], np.int64)
    if pieces.groups > 1:
        starts, order = np.empty(pieces.groups + 1, np.int64), np.empty(len(placed), np.int64)
        rows = np.empty(len(placed.moving), np.int64)
        kernels.together(placed.codes, placed.moving, starts, order, rows)
        bits = bits[order]
    return (bits, starts, pieces.starts, *placed.events(rows), placed.at_first(rows))
