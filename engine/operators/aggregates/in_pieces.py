"""COUNT, MIN and MAX of strings that stand in pieces, each by the codes of a table of its own.

Of each piece the least and the greatest of each group are found by the ranks of the piece's own strings, and
then those of the pieces' results: no string is copied but for a result of a piece, and COUNT looks at none.
O(rows + pieces * groups), and O(distinct log distinct) to order strings.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.algebra.aggregate.stage import AggregateCall
from engine.language.evaluate import truth
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.operators.aggregates import picks
from engine.operators.aggregates.members import Members
from engine.operators.relation import Relation, count

GROUP_ROWS_MIN = 8
"""With fewer rows a group, results of pieces would be about as many as the values."""

EXTREMES = {"MIN": picks.least, "MAX": picks.greatest}


def result_in_pieces(
    call: AggregateCall, relation: Relation, codes: Int64Array | None, groups: int
) -> tuple[Column, int] | None:
    """The value of a call for each group, and how many rows an error of its filter keeps out; None: it is no
    such call, or its values stand in one piece.

    codes: int64[rows], the group of each row; None: there is one.
    """
    if call.function not in ("COUNT", *EXTREMES) or call.distinct or call.order or len(call.of_rows) != 1:
        return None
    if groups > max(1, len(relation) // GROUP_ROWS_MIN):
        return None
    pieces = relation.pieces(call.of_rows[0])
    if pieces is None:
        return None
    passed, errors = None, 0
    if call.filter is not None:
        passed, error = truth(call.filter, relation.columns, len(relation))
        errors = count(error)
    each = _members_of(pieces, passed, codes, groups)
    if call.function == "COUNT":
        counts = sum((members.counts() for members in each), np.zeros(groups, np.int64))
        return Column(call.type, counts), errors
    return _extreme(call, each, groups), errors


def _members_of(
    pieces: Sequence[Column], passed: BoolArray | None, codes: Int64Array | None, groups: int
) -> list[Members]:
    """The values of each piece that count. passed: bool[rows], those that do; None: all."""
    found, start = [], 0
    for piece in pieces:
        stop = start + len(piece)
        taken, there = piece, piece.valid
        if passed is not None:
            there = passed[start:stop] if there is None else there & passed[start:stop]
        own = None if codes is None else codes[start:stop]
        if there is not None:
            rows = np.flatnonzero(there)
            taken, own = piece.take(rows), None if own is None else own[rows]
        values = Column(taken.type, taken.values, None, taken.strings)
        found.append(Members(values, len(values), own, groups))
        start = stop
    return found


def _extreme(call: AggregateCall, pieces: Sequence[Members], groups: int) -> Column:
    """The least or the greatest of the pieces' own, by group; NULL where a group has no value."""
    extreme = EXTREMES[call.function]
    columns, codes = [], []
    for members in pieces:
        column, _ = extreme(members, call)
        there = np.flatnonzero(column.there())
        if len(there):
            columns.append(column.take(there).with_used())
            codes.append(there)
    if not columns:
        return Column.no_rows(call.type).take_or_null(np.full(groups, -1))
    best = concatenate_columns(
        call.type, [Column(one.type, one.values, None, one.strings) for one in columns]
    )
    return extreme(Members(best, len(best), np.concatenate(codes), groups), call)[0]
