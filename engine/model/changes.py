"""Changes of answers: the rows that came into them and left them, as a step caused it.

The answer of a query is a relation at every millisecond; its changes at an instant are the rows that were not
there a millisecond before and those that are there no more, as bags. Cutting the same input into other steps
changes none of them, only when they are seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from engine.model.approximation import Approximation
from engine.model.batch import Int32Array, Int64Array

if TYPE_CHECKING:
    from engine.model.step import Position

Operator = Literal["changes", "istream", "dstream", "rstream"]
"""What of the changes leaves: all, the rows that came, those that went, or the whole answer at each instant
at which a row came or went."""

Occasion = Literal["step", "snapshot", "end"]
"""Rows came and went; the whole answer as it stands, to begin with; the whole answer is taken back."""

Weights = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of one or more queries that give the same columns.

    query_ids: whose. starts: int64[queries + 1], rows starts[i] to starts[i + 1] are of query_ids[i], in the
    order of their instants, at one instant those that went before those that came.
    table: n rows, columns as selected. weights: int8[n], +1 came, -1 went.
    at_ms: int64[n], the instants of the changes. now_ms: int64[queries], NOW of each query after the step;
    NEVER (:mod:`engine.changes.transition`) before it has one.
    copies: int32[n], of rows that nothing but their values tells apart, which one of equal rows came or
    went, from 1; None where nobody asked or a key tells them apart.
    approximation: by query id what of its answer is not exact; exact ones are not in it. It may name queries
    that these changes are not of.
    position: of the step in which it changed, where a later one tells it (:class:`engine.model.step.Rejoin`);
    None: it is the step that tells it.
    """

    query_ids: tuple[str, ...]
    starts: Int64Array
    table: pa.Table
    weights: Weights
    at_ms: Int64Array
    now_ms: Int64Array
    occasion: Occasion = "step"
    copies: Int32Array | None = None
    approximation: Mapping[str, tuple[Approximation, ...]] = field(default_factory=dict)
    position: Position | None = None

    @classmethod
    def of_one(
        cls,
        query_id: str,
        table: pa.Table,
        weights: Weights,
        at_ms: Int64Array,
        now_ms: int,
        occasion: Occasion = "step",
        copies: Int32Array | None = None,
    ) -> Changes:
        """Changes of one query."""
        starts = np.array([0, len(weights)])
        return cls((query_id,), starts, table, weights, at_ms, np.array([now_ms]), occasion, copies)

    def of_query(self, place: int) -> Changes:
        """The changes of one of the queries, by its place in ``query_ids``. O(columns)."""
        return self._cut(place, int(self.starts[place]), int(self.starts[place + 1]))

    def piece(self, start: int, stop: int) -> Changes:
        """Some of the changes of the first query. O(columns)."""
        return self._cut(0, start, stop)

    def _cut(self, place: int, start: int, stop: int) -> Changes:
        return replace(
            self,
            query_ids=(self.query_ids[place],),
            starts=np.array([0, stop - start]),
            table=self.table.slice(start, stop - start),
            weights=self.weights[start:stop],
            at_ms=self.at_ms[start:stop],
            now_ms=self.now_ms[place : place + 1],
            copies=None if self.copies is None else self.copies[start:stop],
        )

    def __len__(self) -> int:
        return int(self.table.num_rows)
