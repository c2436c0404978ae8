"""Partitions in order, and the frames of their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.algebra.window_functions.stage import Distance, Frame
from engine.kernels import grouping, window_frames
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.expressions import Expression
from engine.model.runs import places_of
from engine.model.types import Kind
from engine.operators.keys import encode, order_keys
from engine.operators.relation import Relation
from engine.operators.sort import sort_arrays

INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class Partitions:
    """n rows, partition by partition, each in order; int64[n] each, by place in that order.

    rows: the row of the relation. starts, stops: between which places its partition is. firsts, ends:
    between which places its peers are, the rows that are equal in ORDER BY.
    """

    rows: Int64Array
    starts: Int64Array
    stops: Int64Array
    firsts: Int64Array
    ends: Int64Array

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def numbers(self) -> Int64Array:
        """int64[n]: the number of each group of peers, from 0 on."""
        places = np.arange(len(self))
        found: Int64Array = np.cumsum(self.firsts == places) - 1
        return found

    def scattered(self, column: Column) -> Column:
        """Values by place in order, as a column of the relation."""
        back = np.empty(len(self), np.int64)
        back[self.rows] = np.arange(len(self))
        return column.take(back)


def partitioned(
    keys: Sequence[Expression], order: Sequence[SortKey], relation: Relation
) -> tuple[Partitions, int]:
    """The rows of a relation by partition, and how many keys are errors. O(rows log rows)."""
    columns, errors = relation.values_of(keys)
    arrays, wrong = sort_arrays(order, relation)
    n = len(relation)
    rows = _in_order(arrays, n)
    codes, firsts = encode(columns, n)
    if len(firsts) > 1:
        together, starts = np.empty(n, np.int64), np.empty(len(firsts) + 1, np.int64)
        grouping.bring_together(codes if rows is None else codes[rows], starts, together)
        rows = together if rows is None else rows[together]
    if rows is None:
        rows = np.arange(n)
    return _partitions(rows, codes[rows], [array[rows] for array in arrays]), errors + wrong


def in_runs(parts: Int64Array, order: Sequence[Int64Array]) -> Partitions:
    """Rows that stand part by part, each in order. parts: int64[n], ascending; order: int64[n] each, in which
    peers are equal.
    """
    return _partitions(np.arange(len(parts)), parts, order)


def _partitions(rows: Int64Array, parts: Int64Array, order: Sequence[Int64Array]) -> Partitions:
    begins = _changes([parts])
    peers = _changes([parts, *order]) if order else begins
    return Partitions(rows, *_runs(begins), *_runs(peers))


def _in_order(arrays: Sequence[Int64Array], n: int) -> Int64Array | None:
    """The places of rows in order, stably; None: as they stand."""
    if not arrays or (len(arrays) == 1 and bool((arrays[0][1:] >= arrays[0][:-1]).all())):
        return None
    return np.argsort(arrays[0], kind="stable") if len(arrays) == 1 else np.lexsort(arrays[::-1])


def _changes(arrays: Iterable[Int64Array]) -> BoolArray:
    """bool[n]: where one of some arrays is another than before, and at the first place."""
    found: BoolArray | None = None
    for array in arrays:
        if found is None:
            found = np.ones(len(array), np.bool_)
            found[1:] = array[1:] != array[:-1]
        else:
            found[1:] |= array[1:] != array[:-1]
    assert found is not None
    return found


def _runs(begins: BoolArray) -> tuple[Int64Array, Int64Array]:
    """(first place, place behind the last) of the run that each place is in."""
    firsts = np.flatnonzero(begins)
    lengths = np.diff(np.append(firsts, len(begins)))
    return np.repeat(firsts, lengths), np.repeat(firsts + lengths, lengths)


@dataclass(frozen=True, slots=True)
class Pieces:
    """The places of n frames, each a few pieces: from low to high, int64[pieces, n], ascending, a piece empty
    where low equals high.
    """

    low: Int64Array
    high: Int64Array

    def among(self, counted: BoolArray) -> Pieces:
        """The pieces in the places of a mask alone, which are numbered anew."""
        before = np.zeros(len(counted) + 1, np.int64)
        np.cumsum(counted, out=before[1:])
        return Pieces(before[self.low], before[self.high])

    def counts(self) -> Int64Array:
        """int64[n]: how many places each frame has."""
        found: Int64Array = (self.high - self.low).sum(axis=0)
        return found

    def nth(self, places: Int64Array) -> Int64Array:
        """int64[n]: the place of each frame that has so many before it in the frame, -1: there is none.
        places: int64[n], 0 or more.
        """
        found = np.full(self.low.shape[1], -1)
        for low, high in zip(self.low, self.high, strict=True):
            here = (found < 0) & (places >= 0) & (places < high - low)
            found[here] = (low + places)[here]
            places = np.where(found < 0, places - (high - low), places)
        return found

    def last(self) -> Int64Array:
        """int64[n]: the last place of each frame, -1: it has none."""
        return self.nth(self.counts() - 1)

    def members(self, some: slice) -> tuple[Int64Array, Int64Array]:
        """(frame, place) of all places of some frames, in order. frame: from 0 on."""
        low, high = self.low[:, some].T, self.high[:, some].T
        counts = (high - low).sum(axis=1)
        return np.repeat(np.arange(len(low)), counts), places_of(low.ravel(), (high - low).ravel())


def frames_of(frame: Frame, order: Sequence[SortKey], rows: Partitions, relation: Relation) -> Pieces:
    """The frame of each place. order: of the partitions, over the columns of the relation."""
    low = _bound(frame, frame.start, order, rows, relation, is_end=False)
    high = _bound(frame, frame.end, order, rows, relation, is_end=True)
    high = np.maximum(low, high)
    places = np.arange(len(rows))
    match frame.exclude:
        case "no others":
            return Pieces(low.reshape(1, -1), high.reshape(1, -1))
        case "current row":
            cuts = [(places, places + 1)]
        case "group":
            cuts = [(rows.firsts, rows.ends)]
        case "ties":
            cuts = [(rows.firsts, places), (places + 1, rows.ends)]
    lows, highs = [low], []
    for first, behind in cuts:
        highs.append(np.clip(first, low, high))
        lows.append(np.clip(behind, low, high))
    return Pieces(np.stack(lows), np.stack([*highs, high]))


def _bound(
    frame: Frame,
    distance: Distance | None,
    order: Sequence[SortKey],
    rows: Partitions,
    relation: Relation,
    *,
    is_end: bool,
) -> Int64Array:
    """Where frames begin, or the places behind their ends."""
    if distance is None:
        return rows.stops if is_end else rows.starts
    if frame.unit == "rows":
        count = int(distance)
        return np.clip(np.arange(len(rows)) + count + is_end, rows.starts, rows.stops)
    if distance == 0:
        return rows.ends if is_end else rows.firsts
    if frame.unit == "groups":
        return _by_groups(int(distance), rows, is_end=is_end)
    return _by_value(distance, order[0], rows, relation, is_end=is_end)


def _by_groups(count: int, rows: Partitions, *, is_end: bool) -> Int64Array:
    numbers = rows.numbers
    edges = np.append(np.flatnonzero(np.diff(numbers, prepend=-1)), len(rows))
    lowest, highest = numbers[rows.starts], numbers[rows.stops - 1] + 1
    found: Int64Array = edges[np.clip(numbers + count + is_end, lowest, highest)]
    return found


def _by_value(
    distance: Distance, key: SortKey, rows: Partitions, relation: Relation, *, is_end: bool
) -> Int64Array:
    """By how much the key differs. NULL and NaN are at no distance from anything but their like."""
    (column,), _ = relation.values_of([key.expression])
    column = column.take(rows.rows)
    values, there = order_keys(column), column.there()
    targets, outside = _targets(column, -distance if key.descending else distance)
    if key.descending:
        values, targets, outside = ~values, ~targets, -outside
    # Rows with a value stand together in each partition.
    before = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(~there, out=before[1:])
    missing = before[rows.stops] - before[rows.starts]
    low = rows.starts + missing if key.nulls_first else rows.starts
    high = rows.stops if key.nulls_first else rows.stops - missing
    some = np.flatnonzero(there)
    reached = np.empty(len(some), np.int64)
    window_frames.first_reaching(values, targets[some], low[some], high[some], is_end, reached)
    found = (rows.ends if is_end else rows.firsts).copy()
    found[some] = np.where(outside[some] > 0, high[some], np.where(outside[some] < 0, low[some], reached))
    return found


def _targets(column: Column, distance: Distance) -> tuple[Int64Array, Int64Array]:
    """The order keys of values at a distance; and 1 where that is above all values, -1 where it is below."""
    values = column.values
    if column.type.kind is Kind.DOUBLE:
        return order_keys(Column(column.type, values + float(distance))), np.zeros(len(values), np.int64)
    if isinstance(distance, Decimal):
        distance = int(distance.scaleb(column.type.scale))
    step, values = int(distance), values.astype(np.int64)
    outside = (values > INT64.max - step) if step > 0 else -(values < INT64.min - step).astype(np.int64)
    return np.where(outside != 0, 0, values + step), outside.astype(np.int64)
