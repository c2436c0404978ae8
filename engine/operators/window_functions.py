"""f(...) OVER (...): of each row a value of its partition, or of the frame around it.

Cost: O(rows log rows) for the order, and for MIN and MAX. Ranks, distances, FIRST_VALUE and the like, COUNT,
SUM and AVG: O(rows), where a frame does not go back behind that of the row before. Variances, sketches,
ARRAY_AGG and DISTINCT: O(rows of all frames that differ).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import Frame, WindowFunctionCall, WindowFunctions
from engine.kernels import aggregates as limbs
from engine.kernels import window_frames
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.expressions import Column as ColumnOf
from engine.model.expressions import Literal
from engine.model.lazy_columns import LazyColumns
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.operators.aggregate import call_columns
from engine.operators.aggregates.members import select
from engine.operators.aggregates.moments import doubles, finished, less
from engine.operators.aggregates.totals import fitted, quotients
from engine.operators.frames import Partitions, Pieces, frames_of, partitioned
from engine.operators.keys import order_keys, with_one_zero
from engine.operators.relation import Relation

MEMBERS_MAX = 1 << 20
"""About so many rows of frames are looked at at a time."""


def window_functions(stage: WindowFunctions, relation: Relation) -> tuple[Relation, int]:
    """The rows with a column more for each call; how many values were errors."""
    rows, errors = partitioned(stage.keys, stage.order, relation)
    values, wrong = values_of_calls(stage.calls, stage.order, rows, relation)
    columns = [rows.scattered(column) for column in values]
    return relation.with_columns(_and_more(relation.columns, columns)), errors + wrong


def values_of_calls(
    calls: Sequence[WindowFunctionCall], order: Sequence[SortKey], rows: Partitions, relation: Relation
) -> tuple[list[Column], int]:
    """The values of calls, by place in the order of the partitions, and how many are errors. order: that of
    the partitions, over the columns of the relation.
    """
    columns, errors, frames = [], 0, dict[Frame, Pieces]()
    for call in calls:
        if _is_framed(call) and call.frame not in frames:
            frames[call.frame] = frames_of(call.frame, order, rows, relation)
        column, wrong = _value(call, rows, frames.get(call.frame), relation)
        columns.append(column)
        errors += wrong
    return columns, errors


def _and_more(columns: Sequence[Column], more: Sequence[Column]) -> LazyColumns:
    width = len(columns)
    return LazyColumns(
        width + len(more), lambda place: columns[place] if place < width else more[place - width]
    )


def _is_framed(call: WindowFunctionCall) -> bool:
    return call.aggregate is not None or WINDOW_FUNCTIONS[call.function].framed


def _value(
    call: WindowFunctionCall, rows: Partitions, pieces: Pieces | None, relation: Relation
) -> tuple[Column, int]:
    """The values of a call, by place in order, and how many are errors."""
    if _is_framed(call):
        assert pieces is not None
        if call.aggregate is not None:
            return _Aggregated(call.aggregate, rows, pieces, relation).value()
        return _of_frame(call, rows, pieces, relation)
    ranks = _RANKS.get(call.function)
    return _at_distance(call, rows, relation) if ranks is None else (ranks(call, rows), 0)


# --- places in a partition ----------------------------------------------------------------------------


def _rank(call: WindowFunctionCall, rows: Partitions) -> Column:
    return Column(BIGINT, rows.firsts - rows.starts + 1)


def _dense_rank(call: WindowFunctionCall, rows: Partitions) -> Column:
    numbers = rows.numbers
    return Column(BIGINT, numbers - numbers[rows.starts] + 1)


def _percent_rank(call: WindowFunctionCall, rows: Partitions) -> Column:
    before, others = rows.firsts - rows.starts, rows.stops - rows.starts - 1
    return Column(DOUBLE, before / np.maximum(others, 1))


def _cume_dist(call: WindowFunctionCall, rows: Partitions) -> Column:
    return Column(DOUBLE, (rows.ends - rows.starts) / np.maximum(rows.stops - rows.starts, 1))


def _ntile(call: WindowFunctionCall, rows: Partitions) -> Column:
    """The first ``longer`` parts have a row more."""
    parts, at = _literal(call, 0, 1), np.arange(len(rows)) - rows.starts
    size, longer = np.divmod(rows.stops - rows.starts, parts)
    in_longer = longer * (size + 1)
    behind = longer + (at - in_longer) // np.maximum(size, 1)
    return Column(BIGINT, np.where(at < in_longer, at // (size + 1), behind) + 1)


_RANKS: dict[str, Callable[[WindowFunctionCall, Partitions], Column]] = {
    "RANK": _rank,
    "DENSE_RANK": _dense_rank,
    "PERCENT_RANK": _percent_rank,
    "CUME_DIST": _cume_dist,
    "NTILE": _ntile,
}


def _literal(call: WindowFunctionCall, place: int, default: int) -> int:
    """A whole number among the arguments; where there is none the default."""
    if place >= len(call.arguments):
        return default
    argument = call.arguments[place]
    assert isinstance(argument, Literal)
    assert isinstance(argument.value, int)
    return argument.value


# --- values of other rows -----------------------------------------------------------------------------


def _at_distance(call: WindowFunctionCall, rows: Partitions, relation: Relation) -> tuple[Column, int]:
    """LAG and LEAD."""
    (column, *others), errors = relation.values_of((call.arguments[0], *call.arguments[2:]))
    column, distance = column.take(rows.rows), _literal(call, 1, 1)
    distance = -distance if call.function == "LAG" else distance
    low, high, places = rows.starts, rows.stops, np.arange(len(rows))
    counted: Int64Array | None = None
    if call.ignore_nulls and column.valid is not None and distance:
        counted = np.flatnonzero(column.valid)
        before = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(column.valid, out=before[1:])
        # The first behind a row that is NULL has its own number; the last before it the one below.
        places = before[:-1] - ((~column.valid) & (distance > 0))
        low, high = before[low], before[high]
    found = places + distance
    found[(found < low) | (found >= high)] = -1
    if counted is not None and len(counted):
        found = np.where(found < 0, -1, counted[found])
    values = column.take_or_null(found)
    if not others:
        return values, errors
    default = others[0].take(rows.rows)
    both = concatenate_columns(call.type, [values, default])
    return both.take(np.where(found < 0, len(rows), 0) + np.arange(len(rows))), errors


def _of_frame(
    call: WindowFunctionCall, rows: Partitions, pieces: Pieces, relation: Relation
) -> tuple[Column, int]:
    """FIRST_VALUE, LAST_VALUE and NTH_VALUE."""
    (column,), errors = relation.values_of(call.arguments[:1])
    column = column.take(rows.rows)
    if call.ignore_nulls and column.valid is not None:
        counted = np.flatnonzero(column.valid)
        pieces, column = pieces.among(column.valid), column.take(counted)
    if call.function == "LAST_VALUE":
        return column.take_or_null(pieces.last()), errors
    wanted = _literal(call, 1, 1) - 1
    return column.take_or_null(pieces.nth(np.full(len(rows), wanted))), errors


# --- aggregates ---------------------------------------------------------------------------------------


class _Aggregated:
    """An aggregate of the rows of each frame.

    values: of the rows that count, in order, None of COUNT(*); pieces: the frames among these.
    """

    def __init__(self, call: AggregateCall, rows: Partitions, pieces: Pieces, relation: Relation) -> None:
        n = len(rows)
        members, self.errors = select(
            relation, call.of_rows, call.filter, call.aggregate.keeps_nulls, np.arange(n), n
        )
        assert members.codes is not None
        self._call = call
        place = np.full(n, -1)
        place[members.codes] = np.arange(members.m)
        place = place[rows.rows]
        counted: BoolArray = place >= 0
        self._pieces = pieces if counted.all() else pieces.among(counted)
        self._values = None if members.column is None else members.column.take(place[counted])
        self._more = [column.take(place[counted]) for column in members.more]
        self._counts = self._pieces.counts()

    def value(self) -> tuple[Column, int]:
        """The values by place, and how many are errors."""
        make = None if self._call.distinct else _AGGREGATED.get(self._call.function)
        column, wrong = self._of_members() if make is None else make(self)
        return column, self.errors + wrong

    @property
    def values(self) -> Column:
        assert self._values is not None
        return self._values

    @property
    def _some(self) -> BoolArray | None:
        valid: BoolArray = self._counts > 0
        return None if valid.all() else valid

    def count(self) -> tuple[Column, int]:
        """COUNT."""
        return Column(BIGINT, self._counts), 0

    def total(self) -> tuple[Column, int]:
        """SUM."""
        if self._call.type.kind is Kind.DOUBLE:
            return Column(DOUBLE, self._doubles(means=False), self._some), 0
        return fitted(*self._exact(), self._counts, self._call.type)

    def average(self) -> tuple[Column, int]:
        """AVG."""
        type_ = self.values.type
        if type_.kind is Kind.DOUBLE:
            return Column(DOUBLE, self._doubles(means=True), self._some), 0
        return Column(DOUBLE, quotients(*self._exact(), self._counts, type_.scale), self._some), 0

    def _doubles(self, *, means: bool) -> npt.NDArray[np.float64]:
        out = np.empty(len(self._counts), np.int64)
        bits = np.ascontiguousarray(self.values.values).view(np.int64)
        window_frames.sums(bits, self._pieces.low, self._pieces.high, means, out)
        return out.view(np.float64)

    def _exact(self) -> tuple[Int64Array, Int64Array]:
        """Totals of whole numbers in two limbs, as differences of those of all rows before."""
        values = self.values.values.astype(np.int64, copy=False)
        pieces, totals = self._pieces, []
        for part in (values >> limbs.LOW_BITS, values & limbs.LOW_MASK):
            before = np.concatenate([[0], np.cumsum(part)])
            totals.append((before[pieces.high] - before[pieces.low]).sum(axis=0))
        above, below = totals
        return above + (below >> limbs.LOW_BITS), below & limbs.LOW_MASK

    def spread(self) -> tuple[Column, int]:
        """Variances and standard deviations."""
        bits = np.ascontiguousarray(doubles(self.values)).view(np.int64)
        out = np.empty(len(self._counts), np.int64)
        window_frames.variances(bits, self._pieces.low, self._pieces.high, less(self._call), out)
        return finished(out.view(np.float64), self._counts, self._call), 0

    def least(self) -> tuple[Column, int]:
        """MIN; of booleans whether all are TRUE."""
        return self._extreme(order_keys(self.values))

    def greatest(self) -> tuple[Column, int]:
        """MAX; of booleans whether any is."""
        return self._extreme(~order_keys(self.values))

    def _extreme(self, keys: Int64Array) -> tuple[Column, int]:
        places = np.empty(len(self._counts), np.int64)
        window_frames.least(keys, self._pieces.low, self._pieces.high, places)
        return with_one_zero(self.values.take_or_null(places)), 0

    def first(self) -> tuple[Column, int]:
        """FIRST."""
        return self.values.take_or_null(self._pieces.nth(np.zeros(len(self._counts), np.int64))), 0

    def last(self) -> tuple[Column, int]:
        """LAST."""
        return self.values.take_or_null(self._pieces.last()), 0

    def _of_members(self) -> tuple[Column, int]:
        """As of the rows of each frame together; of frames that are alike once."""
        pieces = self._pieces
        differs = np.ones(len(self._counts), np.bool_)
        for bounds in (pieces.low, pieces.high):
            differs[1:] &= (bounds[:, 1:] == bounds[:, :-1]).all(axis=0)
        differs[1:] = ~differs[1:]
        frames = np.flatnonzero(differs)
        some = Pieces(pieces.low[:, frames], pieces.high[:, frames])
        ends = np.cumsum(some.counts())
        total = int(ends[-1]) if len(ends) else 0
        cuts = np.unique(np.searchsorted(ends, np.arange(MEMBERS_MAX, total, MEMBERS_MAX), "right"))
        bounds_of = [0, *(int(cut) for cut in cuts if 0 < cut < len(frames)), len(frames)]
        made = [self._of_some(some, slice(low, high)) for low, high in pairwise(bounds_of)]
        column = concatenate_columns(self._call.type, made).take(np.cumsum(differs) - 1)
        wrong = 0
        if self._call.function in _MAY_FAIL:
            wrong = int(np.count_nonzero((self._counts > 0) & ~column.there()))
        return column, wrong

    def _of_some(self, pieces: Pieces, some: slice) -> Column:
        frame, place = pieces.members(some)
        columns = [column.take(place) for column in (self.values, *self._more)]
        relation = Relation(columns, len(place))
        over = [ColumnOf(at, "value", column.type) for at, column in enumerate(columns)]
        call = AggregateCall(
            self._call.name,
            self._call.function,
            (*over, *self._call.arguments[len(over) :]),
            self._call.type,
            self._call.distinct,
        )
        return call_columns([call], relation, frame, some.stop - some.start)[0]


_MAY_FAIL = ("SUM", "ARRAY_AGG", "STRING_AGG")
"""Functions that are NULL of some rows where their value is an error."""
_AGGREGATED: dict[str, Callable[[_Aggregated], tuple[Column, int]]] = {
    "COUNT": _Aggregated.count,
    "SUM": _Aggregated.total,
    "AVG": _Aggregated.average,
    "MIN": _Aggregated.least,
    "MAX": _Aggregated.greatest,
    "BOOL_AND": _Aggregated.least,
    "BOOL_OR": _Aggregated.greatest,
    "FIRST": _Aggregated.first,
    "LAST": _Aggregated.last,
    "VAR_SAMP": _Aggregated.spread,
    "VAR_POP": _Aggregated.spread,
    "STDDEV_SAMP": _Aggregated.spread,
    "STDDEV_POP": _Aggregated.spread,
}
"""By function; the others are made of the rows of each frame."""
