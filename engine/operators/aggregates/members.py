"""What an aggregate is over: the values that count, by group."""

from __future__ import annotations

import numpy as np

from engine.kernels import grouping
from engine.language.evaluate import truth
from engine.model.batch import Column, Int64Array
from engine.model.expressions import Expression
from engine.model.types import BIGINT
from engine.operators.keys import encode
from engine.operators.relation import Relation, count


class Members:
    """Values of m rows, in the order of the relation, and the group that each is in.

    column: the argument, without the rows that are passed over; None for COUNT(*). codes: int64[m] below
    ``groups``; None where there is one group.
    """

    __slots__ = ("_arranged", "codes", "column", "groups", "m")

    def __init__(
        self,
        column: Column | None,
        m: int,
        codes: Int64Array | None,
        groups: int,
    ) -> None:
        self.column = column
        self.m = m
        self.codes = codes
        self.groups = groups
        self._arranged: tuple[Int64Array | None, Int64Array] | None = None

    @property
    def values(self) -> Column:
        assert self.column is not None
        return self.column

    def counts(self) -> Int64Array:
        """int64[groups]: how many rows each group has."""
        if self.codes is None:
            return np.array([self.m], np.int64)
        return np.bincount(self.codes, minlength=self.groups).astype(np.int64, copy=False)

    def arranged(self) -> tuple[Int64Array | None, Int64Array]:
        """(rows group by group, each group's in their order, None: as they are; where each group begins).

        int64[m], int64[groups + 1].
        """
        if self._arranged is None:
            if self.codes is None:
                self._arranged = None, np.array([0, self.m], np.int64)
            else:
                starts, order = np.empty(self.groups + 1, np.int64), np.empty(self.m, np.int64)
                grouping.bring_together(self.codes, starts, order)
                self._arranged = order, starts
        return self._arranged

    def distinct(self) -> Members:
        """Equal values of a group once, the first of them."""
        columns = [self.values]
        if self.codes is not None:
            columns.append(Column(BIGINT, self.codes))
        _, firsts = encode(columns, self.m)
        codes = None if self.codes is None else self.codes[firsts]
        return Members(self.values.take(firsts), len(firsts), codes, self.groups)


def select(
    relation: Relation,
    argument: Expression | None,
    condition: Expression | None,
    nulls: bool = False,
    codes: Int64Array | None = None,
    groups: int = 1,
) -> tuple[Members, int]:
    """The rows that count for an aggregate, and how many rows an error keeps out.

    codes: the group of each row, below ``groups``; None: one group. nulls: rows without a value count too.
    """
    errors = 0
    if condition is not None:
        true, error = truth(condition, relation.columns, len(relation))
        errors = count(error)
        passed = np.flatnonzero(true)
        relation = relation.take(passed)
        codes = None if codes is None else codes[passed]
    if argument is None:
        return Members(None, len(relation), codes, groups), errors
    result = relation.evaluate(argument)
    errors += count(result.error)
    column = result.column
    out = result.error if nulls else None if column.valid is None else ~column.valid
    if out is None or not out.any():
        return Members(column, len(relation), codes, groups), errors
    kept = np.flatnonzero(~out)
    column = column.take(kept)
    if not nulls:
        column = Column(column.type, column.values, None, column.strings)
    codes = None if codes is None else codes[kept]
    return Members(column, len(kept), codes, groups), errors
