"""Window functions: f(...) OVER (PARTITION BY ... ORDER BY ... frame)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import ClassVar, Literal

from engine.algebra.aggregate.stage import AggregateCall
from engine.algebra.operator import Operator
from engine.algebra.sort.stage import SortKey
from engine.language.aggregates import AGGREGATES
from engine.language.window_functions import WINDOW_FUNCTIONS
from engine.model.expressions import Expression
from engine.model.types import Type

FrameUnit = Literal["rows", "range", "groups"]
Exclusion = Literal["no others", "current row", "group", "ties"]
Distance = int | float | Decimal


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of its partition that a row's value is over.

    start, end: how far from the row the first and the last of them are, below 0 before it; None: the first
    and the last row of the partition. They count rows, groups of rows that are equal in ORDER BY (*peers*),
    or, of RANGE, say by how much the key of ORDER BY differs, in its unit (days of a DATE, milliseconds of a
    TIMESTAMP), above 0 in the direction of the order; of RANGE 0 means the first and the last peer.
    exclude: which rows around the row itself are left out: it alone, its peers and it, its peers alone.
    """

    unit: FrameUnit = "range"
    start: Distance | None = None
    end: Distance | None = 0
    exclude: Exclusion = "no others"

    @property
    def is_whole(self) -> bool:
        """Whether it is all rows of the partition, but for those that are left out."""
        return self.start is None and self.end is None


DEFAULT_FRAME = Frame()


@dataclass(frozen=True, slots=True)
class WindowFunctionCall:
    """One function of a window.

    function: a name of :mod:`engine.language.window_functions` or of :mod:`engine.language.aggregates`.
    arguments: none for COUNT(*) and ranks; a number of rows is a literal. An argument that is an error counts
    as NULL, of an aggregate its row is passed over, as it is where the filter is one; each is counted once.
    ignore_nulls: rows whose first argument is NULL do not count.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...]
    type: Type
    frame: Frame = DEFAULT_FRAME
    ignore_nulls: bool = False
    distinct: bool = False
    filter: Expression | None = None

    @property
    def aggregate(self) -> AggregateCall | None:
        """The aggregate of a frame's rows that it is; None: another function."""
        if self.function not in AGGREGATES:
            return None
        return AggregateCall(self.name, self.function, self.arguments, self.type, self.distinct, self.filter)

    @property
    def goes_by_order(self) -> bool:
        """Whether what it gives depends on the order of rows that are equal in ORDER BY."""
        aggregate = self.aggregate
        if aggregate is None:
            return not WINDOW_FUNCTIONS[self.function].peers_alike
        by_rows = self.frame.unit == "rows" and not self.frame.is_whole
        return by_rows or aggregate.aggregate.order_dependent

    def expressions(self) -> tuple[Expression, ...]:
        """Its arguments, and its filter."""
        return self.arguments if self.filter is None else (*self.arguments, self.filter)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> WindowFunctionCall:
        """With others in the place of what it evaluates."""
        condition = None if self.filter is None else change(self.filter)
        return replace(self, arguments=tuple(map(change, self.arguments)), filter=condition)


@dataclass(frozen=True, slots=True)
class WindowFunctions(Operator):
    """Calls over one window, PARTITION BY keys ORDER BY order: each is one more column at the end.

    The rows of each value of the keys (NULL is a value, NaN too; a key that is an error counts as NULL, and
    is counted) are a partition, in the order that ``order`` gives, stably; rows keep their places.
    """

    replaces_missing: ClassVar[bool] = True
    widens: ClassVar[bool] = True

    keys: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowFunctionCall, ...]

    @property
    def goes_by_order(self) -> bool:
        return any(call.goes_by_order for call in self.calls)

    def columns_above(self, below: Sequence[tuple[str, Type]]) -> Sequence[tuple[str, Type]]:
        return *below, *((call.name, call.type) for call in self.calls)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> WindowFunctions:
        """With others in the place of what it evaluates."""
        order = tuple(key.with_expression(change) for key in self.order)
        calls = tuple(call.with_expressions(change) for call in self.calls)
        return WindowFunctions(tuple(map(change, self.keys)), order, calls)

    def expressions(self) -> tuple[Expression, ...]:
        computed = (each for call in self.calls for each in call.expressions())
        return (*self.keys, *(key.expression for key in self.order), *computed)
