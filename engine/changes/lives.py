"""Temporal relations: rows with the instants at which each of them is there.

The *life* of a row is [begin, end): the row is in the relation at instants begin <= t < end. What a source,
or any stage over it, does between two instants is a relation with such lives, so the changes of thousands of
instants are computed in one pass over columns:

    row        begin  end            at 10     at 11     at 12
    (a, 1)     NEVER  11             (a, 1)
    (b, 5)     11     FOREVER                  (b, 5)    (b, 5)
    (a, 2)     12     FOREVER                            (a, 2)

An operator maps lives to lives so that at every instant what it gives is the operator over what it got
(*snapshot reducibility*). What is said of a row outside the way means nothing beyond that: a begin at or
before its beginning says that the row was there, an end after its end that it still is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.changes.course import FOREVER, NEVER
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class Way:
    """Changes are those of the instants since < t <= until, in halves (:mod:`engine.changes.stretch`); NEVER:
    nothing was there before.
    """

    since: int
    until: int

    def among(self, instants: Int64Array) -> BoolArray:
        """bool[n]: which of these are instants of the way."""
        return (instants > self.since) & (instants <= self.until)


@dataclass(frozen=True, slots=True)
class Lives:
    """n rows, each with one life; a bag that has a row twice has it twice here, each with its own life.

    begins, ends: int64[n], instants in halves, begin < end.
    """

    relation: Relation
    begins: Int64Array
    ends: Int64Array

    def __len__(self) -> int:
        return self.relation.n

    def at(self, instant: int) -> Int64Array:
        """The places of the rows that are there at an instant, ascending. O(n)."""
        return np.flatnonzero((self.begins <= instant) & (self.ends > instant))

    def take(self, rows: Int64Array) -> Lives:
        """The rows at these places, in that order."""
        return Lives(self.relation.take(rows), self.begins[rows], self.ends[rows])

    def where(self, mask: BoolArray) -> Lives:
        """The rows of a mask, bool[n]."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_columns(self, columns: Sequence[Column]) -> Lives:
        """The same rows and lives with other columns."""
        return Lives(self.relation.with_columns(columns), self.begins, self.ends)

    def there(self, way: Way) -> Lives:
        """The rows that are there at an instant from since to until."""
        mask = self.begins <= way.until
        if way.since != NEVER:
            mask &= self.ends > way.since
        return self.where(mask)

    def changing(self, way: Way) -> Lives:
        """The rows that come or go on the way."""
        return self.where(way.among(self.begins) | way.among(self.ends))

    def instants(self, way: Way) -> Int64Array:
        """int64, ascending, each once: when on the way rows come or go."""
        both = np.concatenate([self.begins, self.ends])
        return np.unique(both[way.among(both)])

    def _check(self) -> None:
        n = self.relation.n
        assert self.begins.dtype == self.ends.dtype == np.int64
        assert len(self.begins) == len(self.ends) == n
        assert bool((self.begins < self.ends).all())
        assert all(len(column) == n for column in self.relation.columns)


class Input(Protocol):
    """A temporal relation over a transition. Rows are the same objects however often they are asked for: an
    implementation keeps what it has computed.
    """

    def changed(self) -> Lives:
        """Rows that come or go on the way, and no others. Equal rows that come and go at one instant may or
        may not be among them.
        """
        ...

    def alive(self) -> Lives:
        """All rows that are there at an instant of [since, until], those of ``changed`` included."""
        ...


def one_after_another(pieces: Sequence[Lives]) -> Lives:
    """The rows of several, of the same columns. At least one."""
    if len(pieces) == 1:
        return pieces[0]
    relations = [piece.relation for piece in pieces]
    n = sum(map(len, relations))

    def make(place: int) -> Column:
        columns = [relation.columns[place] for relation in relations]
        return concatenate_columns(columns[0].type, columns)

    def stored() -> Int64Array:
        return np.concatenate([relation.stored_ordinals() for relation in relations])

    are_stored = all(relation.is_stored for relation in relations)
    return Lives(
        Relation(LazyColumns(len(relations[0].columns), make), n, stored if are_stored else None),
        np.concatenate([piece.begins for piece in pieces]),
        np.concatenate([piece.ends for piece in pieces]),
    )


def always(relation: Relation) -> Lives:
    """Rows that are there all the time."""
    return Lives(relation, np.full(len(relation), NEVER), np.full(len(relation), FOREVER))
