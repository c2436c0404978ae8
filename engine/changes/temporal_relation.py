"""Temporal relations: rows with the instants at which each of them is there.

The *life* of a row is [begin, end): the row is in the relation at instants begin <= t < end. What a source,
or any stage over it, does between two instants is a relation with such lives, so the changes of thousands of
instants are computed in one pass over columns:

    row        begin  end            at 10     at 11     at 12
    (a, 1)     NEVER  11             (a, 1)
    (b, 5)     11     FOREVER                  (b, 5)    (b, 5)
    (a, 2)     12     FOREVER                            (a, 2)

An operator maps lives to lives so that at every instant what it gives is the operator over what it got
(*snapshot reducibility*). What is said of a row outside the interval means nothing beyond that: a begin at or
before its beginning says that the row was there, an end after its end that it still is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engine.changes.transition import FOREVER, NEVER
from engine.model.batch import BoolArray, Column, Int64Array, concatenate_columns
from engine.model.lazy_columns import LazyColumns
from engine.operators.relation import Relation


@dataclass(frozen=True, slots=True)
class Interval:
    """Changes are those of the instants since < t <= until, in halves
    (:mod:`engine.changes.source_interval`); NEVER: nothing was there before.
    """

    since: int
    until: int

    def among(self, instants: Int64Array) -> BoolArray:
        """bool[n]: which of these are instants of the interval."""
        return (instants > self.since) & (instants <= self.until)


@dataclass(frozen=True, slots=True)
class TemporalRelation:
    """n rows, each with one life; a bag that has a row twice has it twice here, each with its own life.

    valid_from, valid_to: int64[n], instants in halves, valid_from < valid_to.
    """

    relation: Relation
    valid_from: Int64Array
    valid_to: Int64Array

    def __len__(self) -> int:
        return self.relation.n

    def at(self, instant: int) -> Int64Array:
        """The places of the rows that are there at an instant, ascending. O(n)."""
        return np.flatnonzero((self.valid_from <= instant) & (self.valid_to > instant))

    def take(self, rows: Int64Array) -> TemporalRelation:
        """The rows at these places, in that order."""
        return TemporalRelation(self.relation.take(rows), self.valid_from[rows], self.valid_to[rows])

    def where(self, mask: BoolArray) -> TemporalRelation:
        """The rows of a mask, bool[n]."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> TemporalRelation:
        """Rows start to stop, without a copy."""
        relation = self.relation.slice(start, stop)
        return TemporalRelation(relation, self.valid_from[start:stop], self.valid_to[start:stop])

    def with_columns(self, columns: Sequence[Column]) -> TemporalRelation:
        """Returns these rows, valid as long as before, with other columns."""
        return TemporalRelation(self.relation.with_columns(columns), self.valid_from, self.valid_to)

    def there(self, interval: Interval) -> TemporalRelation:
        """The rows that are there at an instant from since to until."""
        mask = self.valid_from <= interval.until
        if interval.since != NEVER:
            mask &= self.valid_to > interval.since
        return self.where(mask)

    def changing(self, interval: Interval) -> TemporalRelation:
        """The rows that come or go in the interval."""
        return self.where(interval.among(self.valid_from) | interval.among(self.valid_to))

    def instants(self, interval: Interval) -> Int64Array:
        """int64, ascending, each once: when in the interval rows come or go."""
        both = np.concatenate([self.valid_from, self.valid_to])
        return np.unique(both[interval.among(both)])

    def _check(self) -> None:
        n = self.relation.n
        assert self.valid_from.dtype == self.valid_to.dtype == np.int64
        assert len(self.valid_from) == len(self.valid_to) == n
        assert bool((self.valid_from < self.valid_to).all())
        assert all(len(column) == n for column in self.relation.columns)


class Input(Protocol):
    """A temporal relation over a transition. Rows are the same objects however often they are asked for: an
    implementation keeps what it has computed.
    """

    def changed(self) -> TemporalRelation:
        """Rows that come or go in the interval, and no others. Equal rows that come and go at one instant may
        or may not be among them.
        """
        ...

    def alive(self) -> TemporalRelation:
        """All rows that are there at an instant of [since, until], those of ``changed`` included."""
        ...


def one_after_another(pieces: Sequence[TemporalRelation]) -> TemporalRelation:
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
    return TemporalRelation(
        Relation(LazyColumns(len(relations[0].columns), make), n, stored if are_stored else None),
        np.concatenate([piece.valid_from for piece in pieces]),
        np.concatenate([piece.valid_to for piece in pieces]),
    )


def always(relation: Relation) -> TemporalRelation:
    """Rows that are there all the time."""
    return TemporalRelation(relation, np.full(len(relation), NEVER), np.full(len(relation), FOREVER))
