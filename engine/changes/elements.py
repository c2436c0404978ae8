"""The elements of a stream that a subquery makes: its rows in the order of time, each with its instant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.changes.temporal_relation import always, one_after_another
from engine.model.batch import Column, Int64Array
from engine.operators.relation import Moments, Relation


@dataclass(frozen=True, slots=True)
class Elements:
    """Rows of a stream in order, with their instants in ms, int64[n] ascending."""

    relation: Relation
    timestamps: Int64Array

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.timestamps.nbytes) + sum(int(each.values.nbytes) for each in self.relation.columns)

    def slice(self, start: int, stop: int) -> Elements:
        """Those from a place to another."""
        return Elements(self.relation.slice(start, stop), self.timestamps[start:stop])

    def take(self, places: Int64Array) -> Elements:
        """Those at these places, ascending."""
        return Elements(self.relation.take(places), self.timestamps[places])

    def copied(self) -> Elements:
        """Copies them into arrays of their own, so that those that they were sliced from can be freed."""
        columns = []
        for column in self.relation.columns:
            values, dictionary = column.values.copy(), column.dictionary
            if dictionary is not None and len(dictionary):
                used, places = np.unique(values, return_inverse=True)
                values, dictionary = places.astype(values.dtype), dictionary.take(used)
            valid = None if column.valid is None else column.valid.copy()
            columns.append(Column(column.type, values, valid, dictionary))
        return Elements(Relation(columns, len(self.relation)), self.timestamps.copy())


def joined(pieces: Sequence[Elements]) -> Elements:
    """The elements of several, one behind the other. At least one."""
    relation = one_after_another([always(each.relation) for each in pieces]).relation
    return Elements(relation, np.concatenate([each.timestamps for each in pieces]))


def placed(elements: Elements) -> Relation:
    """Elements as rows in the order of time: those of one instant are numbered from 0."""
    relation, timestamps = elements.relation, elements.timestamps

    def moments() -> Moments:
        first = np.searchsorted(timestamps, timestamps)
        zeros = np.zeros(len(timestamps), np.int64)
        return Moments(timestamps, zeros, np.arange(len(timestamps)) - first)

    return Relation(relation.columns, len(relation), moments=moments)
