"""What an aggregate is over: the values that count, by group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.kernels import grouping
from engine.language.evaluate import truth
from engine.model.batch import BoolArray, Column, Int64Array
from engine.model.expressions import Expression
from engine.model.types import BIGINT
from engine.operators.keys import encode
from engine.operators.relation import Relation, count
from engine.operators.sort import key_arrays


class Members:
    """Values of m rows, in the order of the relation, and the group that each is in.

    column: the argument, without the rows that are passed over; None for COUNT(*). codes: int64[m] below
    ``groups``; None where there is one group. more: the other arguments that are taken from rows.
    """

    __slots__ = ("_arranged", "codes", "column", "groups", "m", "more")

    def __init__(
        self,
        column: Column | None,
        m: int,
        codes: Int64Array | None,
        groups: int,
        more: Sequence[Column] = (),
    ) -> None:
        self.column = column
        self.more = tuple(more)
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
        columns = [self.values, *self.more]
        if self.codes is not None:
            columns.append(Column(BIGINT, self.codes))
        _, firsts = encode(columns, self.m)
        codes = None if self.codes is None else self.codes[firsts]
        more = [column.take(firsts) for column in self.more]
        return Members(self.values.take(firsts), len(firsts), codes, self.groups, more)


def select(
    relation: Relation,
    arguments: Sequence[Expression],
    condition: Expression | None,
    nulls: bool = False,
    codes: Int64Array | None = None,
    groups: int = 1,
    *,
    order: Sequence[SortKey] = (),
) -> tuple[Members, int]:
    """The rows that count for an aggregate, and how many rows an error keeps out.

    arguments: those that are taken from rows, none of COUNT(*). codes: the group of each row, below
    ``groups``; None: one group. nulls: rows without a value count too. order: by what rows are sorted.
    """
    errors = 0
    if condition is not None:
        true, error = truth(condition, relation.columns, len(relation))
        errors = count(error)
        passed = np.flatnonzero(true)
        relation = relation.take(passed)
        codes = None if codes is None else codes[passed]
    if not arguments:
        return Members(None, len(relation), codes, groups), errors
    results = [relation.evaluate(one) for one in arguments]
    columns = [result.column for result in results]
    keys, wrong = _order_of(order, relation)
    wrong = [result.error for result in results] + wrong
    errors += count(_any_of(wrong))
    out = _any_of(wrong if nulls else [*wrong, *(_missing(column) for column in columns)])
    if order or (out is not None and out.any()):
        kept = np.arange(len(relation)) if out is None else np.flatnonzero(~out)
        if order:
            kept = kept[np.lexsort([key[kept] for key in reversed(keys)])]
        columns = [column.take(kept) for column in columns]
        codes = None if codes is None else codes[kept]
    if not nulls:
        columns = [Column(column.type, column.values, None, column.strings) for column in columns]
    return Members(columns[0], len(columns[0].values), codes, groups, columns[1:]), errors


def _order_of(
    order: Sequence[SortKey], relation: Relation
) -> tuple[list[Int64Array], list[BoolArray | None]]:
    """int64[n] each, by which rows are sorted, the first weighs most; and where a key is an error."""
    results = [relation.evaluate(key.expression) for key in order]
    keys = [array for key, one in zip(order, results, strict=True) for array in key_arrays(key, one.column)]
    return keys, [result.error for result in results]


def _missing(column: Column) -> BoolArray | None:
    return None if column.valid is None else ~column.valid


def _any_of(masks: Sequence[BoolArray | None]) -> BoolArray | None:
    """Where one of them is true; None for nowhere."""
    there = [mask for mask in masks if mask is not None]
    return np.logical_or.reduce(there) if there else None
