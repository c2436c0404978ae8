"""Whole numbers that order as strings do, by code point: the labels of those that came.

A string keeps its label while others come between its neighbours, until a gap is used up: then all get new
ones, in the same order. Cost: O(log n) a new string, and O(n log n) where labels are given anew, which is
after a share of n new ones, or after some 60 - log n that come one right behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc
from sortedcontainers import SortedDict

from engine.dataflow.arrangements.row_store import grown
from engine.model.batch import Column, Int64Array
from engine.model.capacities import USUAL, Capacities
from engine.model.string_table import StringTable

SPREAD = 1 << 60
"""Labels that are given anew lie between -SPREAD and SPREAD."""
MOST = 1 << 62
"""No label is larger."""
SHARE = 4
"""More new strings than a fourth of the others are put in order with them at once."""


@dataclass(frozen=True, slots=True)
class Relabelled:
    """before, after: int64[n], ascending: the labels that strings had, and those that they have."""

    before: Int64Array
    after: Int64Array

    def of(self, labels: Int64Array) -> Int64Array:
        """What labels have become."""
        return self.after[np.minimum(self.before.searchsorted(labels), len(self.before) - 1)]


class StringLabels:
    """One writer."""

    def __init__(self, capacities: Capacities = USUAL) -> None:
        self._table = StringTable(capacities)
        self._labels: Int64Array = np.zeros(1, np.int64)
        self._placed: SortedDict[str, int] = SortedDict()
        self._step = SPREAD

    def __len__(self) -> int:
        """How many strings there are."""
        return len(self._table)

    def of(self, column: Column) -> tuple[Int64Array, Relabelled | None]:
        """(int64[n], the labels of a column, any where NULL; what has become of those of before, where they
        are others now).
        """
        known = len(self._table)
        codes = column.codes_in(self._table)
        moved = self._place(known) if len(self._table) > known else None
        return self._labels[codes], moved

    def only(self, labels: Int64Array) -> None:
        """Let go of strings that have none of these labels."""
        codes = np.flatnonzero(np.isin(self._labels[: len(self._table)], labels))
        self._table, self._labels = self._table.only(codes), grown(self._labels[codes], 1)
        self._put_in_order(np.argsort(self._labels[: len(codes)]))

    def _place(self, known: int) -> Relabelled | None:
        """Give labels to new strings, from this code on."""
        self._labels = grown(self._labels, 2 * len(self._table))
        texts = self._table.array().slice(known).to_pylist()
        if SHARE * len(texts) > known:
            return self._spread(known)
        for code, text in enumerate(texts, known):
            label = self._between(text)
            if label is None:
                return self._spread(known)
            self._placed[text] = self._labels[code] = label
        return None

    def _between(self, text: str) -> int | None:
        """A label between those of the neighbours; None: there is none."""
        place, labels = self._placed.bisect_left(text), self._placed.values()
        if place == 0:
            label = labels[0] - self._step
        elif place == len(labels):
            label = labels[-1] + self._step
        else:
            low, high = labels[place - 1], labels[place]
            return None if high - low < 2 else (low + high) // 2
        return label if abs(label) <= MOST else None

    def _spread(self, known: int) -> Relabelled | None:
        """Give all strings labels, as far apart as they can be. known: so many had some."""
        before = np.sort(self._labels[:known])
        texts = self._table.array()
        order = pc.sort_indices(texts).to_numpy()
        self._step = 2 * SPREAD // (len(texts) + 1)
        labels = (np.arange(len(texts)) - len(texts) // 2) * self._step
        self._labels[order] = labels
        self._put_in_order(order)
        return Relabelled(before, np.sort(self._labels[:known])) if known else None

    def _put_in_order(self, order: Int64Array) -> None:
        """All strings, whose codes these are in their order: to sort them would hold the interpreter."""
        texts = self._table.array().take(order).to_pylist()
        self._placed = SortedDict(zip(texts, self._labels[order].tolist(), strict=True))

    @property
    def nbytes(self) -> int:
        """But for the strings as Python objects."""
        return self._table.nbytes + self._labels.nbytes

    def _check(self) -> None:
        texts = self._table.array().to_pylist()
        labels = self._labels[: len(texts)].tolist()
        assert dict(zip(texts, labels, strict=True)) == dict(self._placed)
        assert [text for _, text in sorted(zip(labels, texts, strict=True))] == sorted(texts)
        assert len(set(labels)) == len(texts)
