"""Queries grouped by shape: their text without constants, with counts and sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from broker.base.entries import QueryEntry
from broker.observe.query_list.columns import STATES, Columns
from broker.observe.query_list.figures import FIGURES, INTEGERS, Figures, FloatArray
from engine.model.batch import BoolArray, Int64Array

ShapeSort = Literal[
    "queries", "running", "sql", "rows_per_s", "matches", "memory_bytes", "cpu_share", "age_ms", "behind_ms"
]


@dataclass(frozen=True, slots=True)
class Shapes:
    """codes: int64[n], those of which there are queries. queries, running: how many. values: by figure, sums
    over its queries, of age_ms and behind_ms the greatest; NaN where that of none is known.
    """

    codes: Int64Array
    queries: Int64Array
    running: Int64Array
    values: Mapping[str, FloatArray]

    def page(
        self, columns: Columns, sort: ShapeSort, descending: bool, offset: int, limit: int
    ) -> list[dict[str, Any]]:
        """Some of them in order; what is not known comes last, equals by their texts."""
        texts = [columns.shapes.values[code] for code in self.codes.tolist()]
        by_text = np.array(
            sorted(range(len(texts)), key=texts.__getitem__, reverse=descending and sort == "sql")
        )
        order = by_text.astype(np.int64)
        if sort != "sql":
            counts = {"queries": self.queries, "running": self.running}
            keys = (counts[sort] if sort in counts else self.values[sort]).astype(np.float64)[order]
            order = order[np.argsort(-keys if descending else keys, kind="stable")]
        ids = columns.shape_ids()
        return [
            {
                "shape": ids[self.codes[place]],
                "sql": texts[place],
                "queries": int(self.queries[place]),
                "running": int(self.running[place]),
                **{name: _value(name, values[place]) for name, values in self.values.items()},
            }
            for place in order[offset : offset + limit].tolist()
        ]


def grouped(
    columns: Columns, figures: Figures, entries: Mapping[str, QueryEntry], selected: BoolArray
) -> Shapes:
    """The selected queries by shape. O(queries), and the length of texts that are new."""
    of = columns.shape_codes(entries)
    rows = np.flatnonzero(selected & (of >= 0))
    count = len(columns.shapes.values)
    queries = np.bincount(of[rows], minlength=count)
    running = np.bincount(of[rows[columns.state[rows] == STATES.index("RUNNING")]], minlength=count)
    codes = np.flatnonzero(queries)
    values: dict[str, FloatArray] = {}
    for name in FIGURES:
        known = rows[rows < len(figures.values[name])]
        each = figures.values[name][known]
        known, each = known[~np.isnan(each)], each[~np.isnan(each)]
        if name in ("age_ms", "behind_ms"):
            found = np.full(count, -np.inf)
            np.maximum.at(found, of[known], each)
            found[np.isinf(found)] = np.nan
        else:
            found = np.bincount(of[known], weights=each, minlength=count).astype(np.float64)
            found[np.bincount(of[known], minlength=count) == 0] = np.nan
        values[name] = found[codes]
    return Shapes(codes, queries[codes], running[codes], values)


def _value(name: str, value: float) -> float | int | None:
    if np.isnan(value):
        return None
    return round(value) if name in INTEGERS else float(value)
