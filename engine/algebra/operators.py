"""The operators: one line each, and a folder of the same name beside this file."""

from __future__ import annotations

from typing import get_args

from engine.algebra.aggregate.stage import Aggregate
from engine.algebra.constant_rows.stage import ConstantRows
from engine.algebra.distinct.stage import Distinct
from engine.algebra.filter.stage import Filter
from engine.algebra.join.stage import Join
from engine.algebra.limit.stage import Limit
from engine.algebra.operator import Operator
from engine.algebra.project.stage import Project
from engine.algebra.row_number.stage import RowNumber
from engine.algebra.semi_join.stage import SemiJoin
from engine.algebra.set_operation.stage import SetOperation
from engine.algebra.sort.stage import Sort
from engine.algebra.streamed.stage import Streamed
from engine.algebra.unnest.stage import Unnest
from engine.algebra.window_functions.stage import WindowFunctions
from engine.algebra.with_ties.stage import WithTies

Stage = (
    Project
    | Aggregate
    | Filter
    | Distinct
    | Sort
    | Limit
    | WithTies
    | RowNumber
    | WindowFunctions
    | SemiJoin
    | Join
    | SetOperation
    | Streamed
    | ConstantRows
    | Unnest
)

OPERATORS: tuple[type[Operator], ...] = get_args(Stage)
