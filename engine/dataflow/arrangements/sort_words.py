"""Rows of whole numbers that order, compared word by word, as ORDER BY orders the rows they are made of.

A word a key, or two: where NULLs go, then the value, turned where the key descends. What words mean stays as
it is while rows come and go, but for strings (:mod:`engine.dataflow.arrangements.string_labels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.algebra.sort.stage import SortKey
from engine.dataflow.arrangements.string_labels import StringLabels
from engine.model.batch import Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.types import Kind
from engine.operators.keys import order_keys
from engine.operators.relation import Relation

INT64 = np.iinfo(np.int64)
LABELS_MIN = 1_024
"""So many strings that no row has are kept in any case."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A key. place: of its value's word. flagged: whether the word before says where NULLs go; if not, no
    value is as small or large as what stands for them.
    """

    key: SortKey
    place: int
    flagged: bool
    labels: StringLabels | None


class SortWords:
    """Makes the words of rows that some keys order. One writer."""

    def __init__(self, keys: Sequence[SortKey], capacities: Capacities = USUAL) -> None:
        self._labels_min = capacities.first(LABELS_MIN)
        self._parts: list[_Part] = []
        self.width = 0
        for key in keys:
            kind = key.expression.type.kind
            flagged = kind in (Kind.BIGINT, Kind.TIMESTAMP, Kind.INTERVAL, Kind.TIME)
            labels = StringLabels(capacities) if kind is Kind.STRING else None
            self.width += 1 + flagged
            self._parts.append(_Part(key, self.width - 1, flagged, labels))

    def of(self, relation: Relation, kept: Int64Array) -> Int64Array:
        """int64[n, width]. kept: words of before, int64[m, width or more], those of strings become what they
        would be now.
        """
        words = np.empty((len(relation), self.width), np.int64)
        columns, _ = relation.values_of(part.key.expression for part in self._parts)
        for part, column in zip(self._parts, columns, strict=True):
            if part.labels is None:
                values = order_keys(column)
            else:
                values, moved = part.labels.of(column)
                if moved is not None:
                    old = kept[:, part.place]
                    null = (old == INT64.min) | (old == INT64.max)
                    kept[:, part.place] = np.where(null, old, _turned(moved.of(_turned(old, part)), part))
            self._put(part, column, _turned(values, part), words)
        return words

    def _put(self, part: _Part, column: Column, values: Int64Array, words: Int64Array) -> None:
        valid, first = column.valid, part.key.nulls_first
        words[:, part.place] = values
        if part.flagged:
            words[:, part.place - 1] = first
        if valid is None:
            return
        if part.flagged:
            words[:, part.place - 1] = valid if first else ~valid
            words[~valid, part.place] = 0
        else:
            words[~valid, part.place] = INT64.min if first else INT64.max

    def is_wasteful(self, rows: int) -> bool:
        """Whether there are so many strings that most are of none of so many rows."""
        return any(
            part.labels is not None and len(part.labels) > self._labels_min + 2 * rows for part in self._parts
        )

    def only(self, words: Int64Array) -> None:
        """Let go of strings that no row of these words has."""
        for part in self._parts:
            if part.labels is not None:
                part.labels.only(_turned(words[:, part.place], part))


def _turned(values: Int64Array, part: _Part) -> Int64Array:
    return ~values if part.key.descending else values
