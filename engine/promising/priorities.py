"""How promising values are in cells: the p of a preference, evaluated over the estimates of a summary.

The expression is over the value, the estimate of its rows in the cell, and that estimate divided by the rows
of the zone. For ``asc`` it is summed over the cells of the window: by single zones a frequent value looks
rare. Fading is applied later, as granularities change (:func:`engine.promising.picking.faded`).

Source: Ali, Aref, ElTabakh, *Scalability via Summaries*, section 4.1.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.language.evaluate import evaluate
from engine.language.preference import COUNT, PreferenceOrder, Priority, PriorityForm
from engine.model.batch import BoolArray, Column, Int32Array, Int64Array
from engine.model.expressions import Column as ColumnOf
from engine.model.types import BIGINT, DOUBLE, Kind
from engine.promising.picking import EMPTY, PROMISING, PRUNED, UNRANKED

Int8Array = npt.NDArray[np.int8]
Float64Array = npt.NDArray[np.float64]


class CellEstimates(NamedTuple):
    """What a summary says of n (value, cell) pairs. key: int32, the place of the value. estimate: int32, rows
    of the value in the cell; cell_rows: int32, all rows of the cell, positive. zone_rows: those of its zone,
    of a part of a cell as many times less. pruned: bool, whether the pyramid ruled the cell out.
    """

    key: Int32Array
    estimate: Int32Array
    cell_rows: Int32Array
    zone_rows: Int64Array | Float64Array
    pruned: BoolArray


class RankedCells(NamedTuple):
    """rank: int8[n], as :mod:`engine.promising.picking` has them. priority: float64[n], before fading; of
    ``weighted`` how much of an estimated row's share of time a row of the cell gets, positive where the rank
    is PROMISING.
    """

    rank: Int8Array
    priority: Float64Array


def rank_cells(
    priority: Priority, order: PreferenceOrder, form: PriorityForm, values: Column, cells: CellEstimates
) -> RankedCells:
    """Rank and priority of each pair. values: of the summarised attribute, one a key. O(n)."""
    result, unranked = _evaluated(priority, values, cells)
    rank = np.full(len(result), PROMISING, np.int8)
    if order == "asc":
        summed = ~(unranked | cells.pruned)
        keys = cells.key[summed]
        total = np.bincount(keys, result[summed], len(values)).astype(np.float64)
        if form == "density":
            with np.errstate(divide="ignore", invalid="ignore"):
                total = total / np.bincount(keys, cells.cell_rows[summed], len(values))
        result = np.where(unranked | cells.pruned, 0.0, total[cells.key])
        unranked |= np.isnan(result)
    else:
        if form == "density":
            result = result / cells.cell_rows
        if order == "weighted":
            result = result / np.maximum(cells.estimate, 1)
            unranked |= ~np.isfinite(result)
            rank[result <= 0.0] = EMPTY
    rank[cells.estimate == 0] = EMPTY
    rank[unranked] = UNRANKED
    rank[cells.pruned] = PRUNED
    return RankedCells(rank, np.where(rank >= UNRANKED, 0.0, result))


def _evaluated(priority: Priority, values: Column, cells: CellEstimates) -> tuple[Float64Array, BoolArray]:
    """float64[n], the expression, and bool[n], where it is NULL, NaN or an error."""
    expression, n = priority.expression, len(cells.key)
    if isinstance(expression, ColumnOf) and expression.index == COUNT:
        return cells.estimate.astype(np.float64), np.zeros(n, np.bool_)
    counts = Column(BIGINT, cells.estimate.astype(np.int64))
    shares = Column(DOUBLE, cells.estimate / np.where(cells.zone_rows > 0, cells.zone_rows, 1))
    column = evaluate(expression, [values.take(cells.key), counts, shares], n).column
    result = column.values.astype(np.float64)
    if column.type.kind is Kind.DECIMAL:
        result = result / 10.0**column.type.scale
    missing = np.isnan(result) if column.valid is None else ~column.valid | np.isnan(result)
    return np.where(missing, 0.0, result), missing
