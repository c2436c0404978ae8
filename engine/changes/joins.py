"""Joins over a way: a pair is there while both of its rows are, and a row has no partner while none is there.

    row          10 ----------- 20
    partner             15 ----------- 25
    the pair            15 ---- 20
    no partner   10 --- 15

What changes is found from the rows that change: those of the left side with all partners, those that stay
with the partners that change. A row that is kept because it has a partner, or none, is looked at again with
all of its partners when one of them comes or goes; of ASOF only as many are looked at as it takes.

Cost: O(rows that change + their partners), and once O(rows of the windows), by hashing, to find those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from engine.changes.lives import Input, Lives, Touched, Way
from engine.kernels import covers as kernels
from engine.language.evaluate import truth
from engine.language.expressions import Column as ColumnOf
from engine.language.expressions import Expression
from engine.language.query import Join
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.limits import Limits
from engine.operators.join import find_candidates, not_after, pair_columns
from engine.operators.keys import pair_codes
from engine.operators.partners import PartnerKeys, Ranges, ranges
from engine.operators.relation import Relation
from tureen.errors import LimitExceeded

KEEPS_LEFT = ("left", "full", "semi", "anti")
"""Kinds in which it matters whether a left row has a partner."""
KEEPS_RIGHT = ("right", "full")


@dataclass(frozen=True, slots=True)
class Sides:
    """Rows of both sides. left_moves, right_moves: bool[n], which of them come or go on the way."""

    left: Lives
    right: Lives
    left_moves: BoolArray
    right_moves: BoolArray

    @classmethod
    def of(cls, left: Lives, right: Lives, way: Way) -> Sides:
        return cls(left, right, _moves(left, way), _moves(right, way))


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of both sides by place, and when both are there; -1: no partner."""

    left: Int64Array
    right: Int64Array
    begins: Int64Array
    ends: Int64Array

    def __len__(self) -> int:
        return len(self.left)

    def where(self, mask: BoolArray) -> Pairs:
        return Pairs(self.left[mask], self.right[mask], self.begins[mask], self.ends[mask])


class Joining:
    """What a join gives. Rows are in order where those of both sides are."""

    def __init__(self, stage: Join, left: Input, right: Input, limits: Limits) -> None:
        self.way: Way = left.way
        self.ordered = left.ordered and right.ordered
        self._stage = stage
        self._left = left
        self._right = right
        self._limits = limits
        self._changed: Lives | None = None
        self._alive: Lives | None = None

    def changed(self) -> Lives:
        """Rows that come or go. Raises LimitExceeded."""
        if self._changed is None:
            found = self._of(self._sides_that_change(), whole=self._looks_at_all)
            self._changed = found.changing(self.way)
        return self._changed

    def alive(self, touched: Touched | None = None) -> Lives:
        """Rows that are there at some instant. Raises LimitExceeded."""
        if touched is None:
            if self._alive is None:
                self._alive = self._all(self._left.alive(), self._right.alive())
            return self._alive
        left, right = self._pushed(touched)
        found = self._all(self._left.alive(left), self._right.alive(right))
        return found.where(touched.among(found.relation))

    @property
    def _looks_at_all(self) -> bool:
        """Whether partners of right rows are only known when all left rows have been looked at."""
        return self._stage.latest is not None and self._stage.kind in KEEPS_RIGHT

    def _all(self, left: Lives, right: Lives) -> Lives:
        return self._of(Sides.of(left, right, self.way), whole=True).there(self.way)

    # --- which rows are looked at -------------------------------------------------------------------

    def _sides_that_change(self) -> Sides:
        """Rows that change, and all that may be partners of them or share their partners."""
        left, right = self._left.changed(), self._right.changed()
        if not len(left) and not len(right):
            return Sides.of(left, right, self.way)
        kind = self._stage.kind
        if not len(right) and kind not in KEEPS_RIGHT:
            return Sides.of(left, self._right.alive(self._touched([left], [])[1]), self.way)
        if not len(left) and kind not in KEEPS_LEFT and self._stage.latest is None:
            return Sides.of(self._left.alive(self._touched([], [right])[0]), right, self.way)
        touched = self._touched([left], [right])
        return Sides.of(self._left.alive(touched[0]), self._right.alive(touched[1]), self.way)

    def _touched(self, left: Sequence[Lives], right: Sequence[Lives]) -> tuple[Touched, Touched]:
        """Rows of either side that equal these in the keys."""
        left_keys, right_keys = _keys_of(self._stage)
        pieces = [lives.relation.values_of(left_keys)[0] for lives in left]
        pieces += [lives.relation.values_of(right_keys)[0] for lives in right]
        n = sum(len(lives) for lives in (*left, *right))
        values = tuple(_joined(columns) for columns in zip(*pieces, strict=True))
        return Touched(left_keys, values, n), Touched(right_keys, values, n)

    def _pushed(self, touched: Touched) -> tuple[Touched | None, Touched | None]:
        """What a choice among the joined rows is for each side, as far as that can be told."""
        kind, width = self._stage.kind, len(self._left.changed().relation.columns)
        to_left = _chosen(touched, 0, width) if kind not in KEEPS_RIGHT else None
        to_right = _chosen(touched, width, None) if kind in ("inner", "right") else None
        return to_left, to_right

    # --- pairs --------------------------------------------------------------------------------------

    def _of(self, sides: Sides, *, whole: bool) -> Lives:
        """The joined rows that change, at least; whole: all."""
        if self._stage.latest is not None:
            return self._latest(sides, whole=whole)
        stage = self._stage
        left, right = np.arange(len(sides.left)), np.arange(len(sides.right))
        moving_left, moving_right = left[sides.left_moves], right[sides.right_moves]
        staying_left, staying_right = left[~sides.left_moves], right[~sides.right_moves]
        if whole:
            found = self._pairs(sides, left, right)
            return self._kept(sides, found, (left, found), (right, found))
        of_left, of_right = (
            self._pairs(sides, moving_left, right),
            self._pairs(sides, staying_left, moving_right),
        )
        found = both(of_left, of_right)
        lonely_left: tuple[Int64Array, Pairs] | None = None
        lonely_right: tuple[Int64Array, Pairs] | None = None
        if stage.kind in KEEPS_LEFT:
            again = np.unique(of_right.left)
            more = self._pairs(sides, again, staying_right)
            lonely_left = np.concatenate([moving_left, again]), both(found, more)
        if stage.kind in KEEPS_RIGHT:
            again = np.unique(of_left.right[~sides.right_moves[of_left.right]])
            more = self._pairs(sides, staying_left, again)
            lonely_right = np.concatenate([moving_right, again]), both(found, more)
        return self._kept(sides, found, lonely_left, lonely_right)

    def _pairs(self, sides: Sides, left: Int64Array, right: Int64Array) -> Pairs:
        """Of these rows the pairs that join while both are there."""
        if not len(left) or not len(right):
            return both()
        here, there = sides.left.take(left), sides.right.take(right)
        stage = replace(self._stage, latest=None)
        candidates, condition, _ = find_candidates(stage, here.relation, there.relation)
        _few(candidates.count(), self._limits)
        found, total = [], 0
        for rows, partners in candidates.pieces():
            pairs = while_both(here, there, rows, partners)
            pairs = pairs.where(pairs.begins < pairs.ends)
            if condition is not None:
                pairs = pairs.where(_satisfying(condition, here, there, pairs))
            total += len(pairs)
            _bounded(total, self._limits)
            found.append(Pairs(left[pairs.left], right[pairs.right], pairs.begins, pairs.ends))
        return both(*found)

    def _latest(self, sides: Sides, *, whole: bool) -> Lives:
        """Of all partners that are there the latest alone, if it satisfies the condition."""
        left, right = np.arange(len(sides.left)), np.arange(len(sides.right))
        if not whole:
            moving = right[sides.right_moves]
            staying = left[~sides.left_moves]
            again = self._ranges(sides.left.take(staying), sides.right.take(moving)).matched()
            left = np.concatenate([left[sides.left_moves], staying[again]])
        here = sides.left.take(left)
        partners = self._ranges(here, sides.right)
        lives = here.begins, here.ends, sides.right.begins, sides.right.ends
        found = Pairs(*kernels.last_there(partners.low, partners.high, partners.order, *lives))
        _bounded(len(found), self._limits)
        if self._stage.condition is not None:
            found = found.where(_satisfying(self._stage.condition, here, sides.right, found))
        found = replace(found, left=left[found.left])
        return self._kept(sides, found, (left, found), (right, found))

    def _ranges(self, left: Lives, right: Lives) -> Ranges:
        assert self._stage.latest is not None
        left_keys, right_keys = _keys_of(self._stage)
        here, _ = left.relation.values_of(left_keys)
        there, _ = right.relation.values_of(right_keys)
        codes = PartnerKeys(*pair_codes(here, there, len(left), len(right)))
        bounded, _ = not_after(self._stage.latest, left.relation, right.relation)
        return ranges(codes, bounded)

    # --- rows ---------------------------------------------------------------------------------------

    def _kept(
        self,
        sides: Sides,
        found: Pairs,
        lonely_left: tuple[Int64Array, Pairs] | None,
        lonely_right: tuple[Int64Array, Pairs] | None,
    ) -> Lives:
        """What the kind of the join keeps of pairs, and of rows of either side with all pairs they are in."""
        kind = self._stage.kind
        if kind in ("semi", "anti"):
            assert lonely_left is not None
            rows, pairs = lonely_left
            places, begins, ends = pieces(sides.left, rows, pairs.left, pairs, inside=kind == "semi")
            if self.ordered:
                order = np.lexsort((begins, places))
                places, begins, ends = places[order], begins[order], ends[order]
            return Lives(sides.left.relation.take(places), begins, ends)
        if kind in KEEPS_LEFT:
            assert lonely_left is not None
            rows, pairs = lonely_left
            places, begins, ends = pieces(sides.left, rows, pairs.left, pairs, inside=False)
            found = both(found, Pairs(places, np.full(len(places), -1), begins, ends))
        if kind in KEEPS_RIGHT:
            assert lonely_right is not None
            rows, pairs = lonely_right
            places, begins, ends = pieces(sides.right, rows, pairs.right, pairs, inside=False)
            found = both(found, Pairs(np.full(len(places), -1), places, begins, ends))
        if self.ordered:
            lonely_last = np.where(found.left < 0, len(sides.left), found.left)
            order = np.lexsort((found.right, lonely_last))
            found = Pairs(found.left[order], found.right[order], found.begins[order], found.ends[order])
        columns = pair_columns(
            sides.left.relation, sides.right.relation, lambda: (found.left, found.right), kind
        )
        return Lives(Relation(columns, len(found)), found.begins, found.ends)


# --- keys and conditions --------------------------------------------------------------------------


def _keys_of(stage: Join) -> tuple[tuple[Expression, ...], tuple[Expression, ...]]:
    return tuple(key for key, _ in stage.keys), tuple(key for _, key in stage.keys)


def _joined(columns: Sequence[Column]) -> Column:
    return columns[0] if len(columns) == 1 else concatenate_columns(columns[0].type, columns)


def _chosen(touched: Touched, low: int, high: int | None) -> Touched | None:
    """The choice by columns low <= place < high, as the first of which they are numbered there."""
    keys: list[Expression] = []
    values = []
    for key, column in zip(touched.keys, touched.values, strict=True):
        if isinstance(key, ColumnOf) and key.index >= low and (high is None or key.index < high):
            keys.append(replace(key, index=key.index - low))
            values.append(column)
    return Touched(tuple(keys), tuple(values), touched.n) if keys else None


def _satisfying(condition: Expression, left: Lives, right: Lives, pairs: Pairs) -> BoolArray:
    columns = pair_columns(left.relation, right.relation, lambda: (pairs.left, pairs.right), "inner")
    true, _ = truth(condition, columns, len(pairs))
    return true


def _few(candidates: int, limits: Limits) -> None:
    if candidates > limits.join_candidates_max:
        hint = "narrow the windows, or join by an equality or an inequality of one side with the other"
        raise LimitExceeded("join_candidates_max", limits.join_candidates_max, candidates, hint=hint)


def _bounded(rows: int, limits: Limits) -> None:
    if rows > limits.intermediate_rows_max:
        hint = "narrow the windows, or join by more columns columns"
        raise LimitExceeded("intermediate_rows_max", limits.intermediate_rows_max, rows, hint=hint)


# --- lives ----------------------------------------------------------------------------------------


def both(*pieces: Pairs) -> Pairs:
    """One after another."""
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        none = np.empty(0, np.int64)
        return Pairs(none, none, none, none)
    return Pairs(
        np.concatenate([piece.left for piece in pieces]),
        np.concatenate([piece.right for piece in pieces]),
        np.concatenate([piece.begins for piece in pieces]),
        np.concatenate([piece.ends for piece in pieces]),
    )


def _moves(lives: Lives, way: Way) -> BoolArray:
    return way.among(lives.begins) | way.among(lives.ends)


def while_both(left: Lives, right: Lives, rows: Int64Array, partners: Int64Array) -> Pairs:
    """Pairs, by place, with the time that both are there, which may be none."""
    begins = np.maximum(left.begins[rows], right.begins[partners])
    ends = np.minimum(left.ends[rows], right.ends[partners])
    return Pairs(rows, partners, begins, ends)


def pieces(
    lives: Lives, rows: Int64Array, of: Int64Array, covers: Pairs, *, inside: bool
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """(row, begin, end) of the pieces of the lives of rows that are covered (inside), or not.

    rows: places, each once. of: the row that each cover is of, within its life; those of other rows count
    for nothing.
    """
    n = len(rows)
    place_of = np.full(len(lives), -1)
    place_of[rows] = np.arange(n)
    places = place_of[of]
    order = np.lexsort((covers.begins, places))
    order = order[np.searchsorted(places[order], 0) :]
    starts = np.searchsorted(places[order], np.arange(n + 1))
    room = n + len(order)
    found, begins, ends = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    count = kernels.cut_out(
        lives.begins[rows],
        lives.ends[rows],
        starts,
        covers.begins[order],
        covers.ends[order],
        inside,
        found,
        begins,
        ends,
    )
    return rows[found[:count]], begins[:count], ends[:count]
