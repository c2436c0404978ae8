"""Joins: rows of a relation with their partners of another.

Partners by keys and by inequalities are ranges of an arranged side (:mod:`engine.operators.partners`); what
is left of the condition is evaluated over pairs, so many at a time that memory stays bounded. Columns are
taken when they are read, so a join that is only counted spells out no pair.
Cost: O(rows of both) for keys, another O(rows log rows) for inequalities and ASOF, and O(pairs).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from engine.algebra.join.stage import Join, JoinKind, Latest
from engine.kernels import partners as kernels
from engine.language.evaluate import truth
from engine.model import expressions as ex
from engine.model.batch import BoolArray, Column
from engine.model.interruption import GrowingRoom, require_room
from engine.model.lazy_columns import LazyColumns
from engine.model.limits import Limits
from engine.operators.band import bounded_by
from engine.operators.keys import ordered, pair_codes
from engine.operators.partners import (
    Bound,
    BoundedValues,
    CandidatePairs,
    KnownPairs,
    Pairs,
    PartnerKeys,
    ranges,
)
from engine.operators.relation import Relation, count
from tureen.errors import LimitExceeded

CANDIDATES_MAX = Limits().join_candidates_max
KEY_BYTES = 64
"""About what the numbers of a row's key take, and the order by them."""
PAIR_BYTES = 32
"""About what a pair takes until its columns are made."""
FEW = 4
"""The most candidates a row that are looked at one by one; for more, inequalities are looked up."""


def join(
    stage: Join,
    left: Relation,
    right: Relation,
    rows_max: int,
    given: Pairs | None = None,
    candidates_max: int = CANDIDATES_MAX,
) -> tuple[Relation, int]:
    """The joined rows, and how many values of keys and conditions were errors.

    right: what ``stage.inner`` gives. given: the pairs that are equal in keys, by left row and then by right
    row, where they are known; keys are then not looked at.
    Raises LimitExceeded: more than ``rows_max`` rows, or more than ``candidates_max`` pairs to look at.
    """
    if given is not None:
        candidates: CandidatePairs = KnownPairs(*given, len(left))
        condition, errors = stage.condition, 0
    else:
        candidates, condition, errors = find_candidates(stage, left, right)
    if stage.kind in ("semi", "anti"):
        matched, wrong = _matched(condition, candidates, left, right, candidates_max)
        rows = np.flatnonzero(matched if stage.kind == "semi" else ~matched)
        return Relation(left.take(rows).columns, len(rows)), errors + wrong
    if condition is None:
        _bounded(candidates.count(), rows_max)
        require_room(PAIR_BYTES * candidates.count())
        if stage.kind == "inner":
            columns = pair_columns(left, right, cache(candidates.pairs), stage.kind)
            return Relation(columns, candidates.count()), errors
        pairs = candidates.pairs()
    else:
        pairs, wrong = _satisfying(condition, candidates, left, right, rows_max, candidates_max)
        errors += wrong
    pairs = _with_lonely(stage.kind, pairs, len(left), len(right))
    _bounded(len(pairs[0]), rows_max)
    return Relation(pair_columns(left, right, lambda: pairs, stage.kind), len(pairs[0])), errors


# --- candidates -----------------------------------------------------------------------------------


def find_candidates(
    stage: Join, left: Relation, right: Relation
) -> tuple[CandidatePairs, ex.Expression | None, int]:
    """Pairs equal in keys, or the latest of them; what they must satisfy; errors in keys."""
    left_keys, errors = left.values_of(key for key, _ in stage.keys)
    right_keys, wrong = right.values_of(key for _, key in stage.keys)
    errors += wrong
    require_room(KEY_BYTES * (len(left) + len(right)))
    codes = PartnerKeys(*pair_codes(left_keys, right_keys, len(left), len(right)))
    if stage.latest is not None:
        bounded, wrong = not_after(stage.latest, left, right)
        return ranges(codes, bounded).last(), stage.condition, errors + wrong
    candidates = ranges(codes)
    if stage.condition is not None and candidates.count() > FEW * (len(left) + len(right)):
        found = bounded_by(stage.condition, left, right)
        if found is not None:
            return ranges(codes, found[0]), found[1], errors
    return candidates, stage.condition, errors


def not_after(latest: Latest, left: Relation, right: Relation) -> tuple[BoundedValues, int]:
    """Right rows by their instant, which is not after that of left ones; how many instants are errors."""
    (outer,), errors = left.values_of([latest.outer])
    (inner,), wrong = right.values_of([latest.inner])
    values = ordered([outer, inner])
    if values is None:  # of no type that has an order, such as NULL
        values = [np.zeros(len(column), np.int64) for column in (outer, inner)]
        nowhere = np.zeros(len(left), np.bool_)
        bound = Bound(values[0], nowhere, lower=False, strict=latest.strict)
    else:
        bound = Bound(values[0], _usable(outer), lower=False, strict=latest.strict)
    return BoundedValues(True, values[1], _usable(inner), (bound,)), errors + wrong


def _usable(column: Column) -> BoolArray:
    return np.ones(len(column), np.bool_) if column.valid is None else column.valid


# --- conditions -----------------------------------------------------------------------------------


def _satisfying(
    condition: ex.Expression,
    candidates: CandidatePairs,
    left: Relation,
    right: Relation,
    rows_max: int,
    candidates_max: int,
) -> tuple[Pairs, int]:
    _few(candidates.count(), candidates_max)
    found, total, errors, room = [], 0, 0, GrowingRoom()
    for pairs in candidates.pieces():
        true, error = truth(condition, _of_pairs(left, right, pairs), len(pairs[0]))
        errors += count(error)
        passed = np.flatnonzero(true)
        if len(passed):
            total += len(passed)
            _bounded(total, rows_max)
            room.grow(PAIR_BYTES * total)
            found.append((pairs[0][passed], pairs[1][passed]))
    return candidates.arranged(found), errors


def _matched(
    condition: ex.Expression | None,
    candidates: CandidatePairs,
    left: Relation,
    right: Relation,
    candidates_max: int,
) -> tuple[BoolArray, int]:
    """bool[n]: which left rows have a partner; and for how many pairs the condition is an error."""
    if condition is None:
        return candidates.matched(), 0
    _few(candidates.count(), candidates_max)
    matched, errors = np.zeros(len(left), np.bool_), 0
    for pairs in candidates.pieces():
        true, error = truth(condition, _of_pairs(left, right, pairs), len(pairs[0]))
        errors += count(error)
        matched[pairs[0][true]] = True
    return matched, errors


def _bounded(rows: int, rows_max: int) -> None:
    if rows > rows_max:
        hint = "narrow the windows, or join by more columns"
        raise LimitExceeded("intermediate_rows_max", rows_max, rows, hint=hint)


def _few(candidates: int, candidates_max: int) -> None:
    if candidates > candidates_max:
        hint = "narrow the windows, or join by an equality or an inequality of one side with the other"
        raise LimitExceeded("join_candidates_max", candidates_max, candidates, hint=hint)


# --- rows -----------------------------------------------------------------------------------------


def _with_lonely(kind: JoinKind, pairs: Pairs, n: int, m: int) -> Pairs:
    """The pairs, and the rows without a partner that an outer join keeps: -1 stands for what they lack."""
    left, right = pairs
    if kind in ("left", "full"):
        rows, partners = np.empty(len(left) + n, np.int64), np.empty(len(left) + n, np.int64)
        total = kernels.with_lonely(left, right, n, rows, partners)
        left, right = rows[:total], partners[:total]
    if kind in ("right", "full"):
        lonely = np.ones(m, np.bool_)
        lonely[pairs[1]] = False
        behind = np.flatnonzero(lonely)
        left = np.concatenate([left, np.full(len(behind), -1, np.int64)])
        right = np.concatenate([right, behind])
    return left, right


def _of_pairs(left: Relation, right: Relation, pairs: Pairs) -> LazyColumns:
    return pair_columns(left, right, lambda: pairs, "inner")


def pair_columns(left: Relation, right: Relation, pairs: Callable[[], Pairs], kind: JoinKind) -> LazyColumns:
    """Columns of pairs of rows, by place, made when they are read; -1: of no row, NULL."""
    width = len(left.columns)

    def make(place: int) -> Column:
        if place < width:
            column, rows, whole = left.columns[place], pairs()[0], kind in ("inner", "left")
        else:
            column, rows, whole = right.columns[place - width], pairs()[1], kind in ("inner", "right")
        return column.take(rows) if whole else column.take_or_null(rows)

    return LazyColumns(width + len(right.columns), make)
