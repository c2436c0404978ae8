"""GROUP BY: groups, and aggregates of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from engine.algebra.operator import Operator
from engine.algebra.project.stage import Output
from engine.algebra.sort.stage import SortKey
from engine.language.aggregates import AGGREGATES, AggregateFunction
from engine.model.expressions import Expression
from engine.model.types import Type


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate of a group.

    function: an upper-case name of :mod:`engine.language.aggregates`. arguments: none for COUNT(*);
    constants follow those of rows. distinct: equal arguments count once. filter: only rows where it is TRUE
    count. order: in which order the rows of a group come, those that are equal in that of the relation. A row
    of which an argument, the filter or a key of the order is an error is passed over and counted.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...]
    type: Type
    distinct: bool = False
    filter: Expression | None = None
    order: tuple[SortKey, ...] = ()

    @property
    def aggregate(self) -> AggregateFunction:
        """Its row of the catalogue."""
        return AGGREGATES[self.function]

    @property
    def of_rows(self) -> tuple[Expression, ...]:
        """The arguments that are taken from each row."""
        return self.arguments[: self.aggregate.arguments.of_rows]

    def expressions(self) -> tuple[Expression, ...]:
        """Its arguments, its filter, and the keys of its order."""
        keys = tuple(key.expression for key in self.order)
        return (*self.arguments, *(() if self.filter is None else (self.filter,)), *keys)

    def with_expressions(self, change: Callable[[Expression], Expression]) -> AggregateCall:
        """With others in the place of what it evaluates."""
        return replace(
            self,
            arguments=tuple(map(change, self.arguments)),
            filter=None if self.filter is None else change(self.filter),
            order=tuple(key.with_expression(change) for key in self.order),
        )


@dataclass(frozen=True, slots=True)
class Aggregate(Operator):
    """GROUP BY: columns are the keys, then the calls. Without keys there is one group, even of no rows.

    NULLs of a key are one group, NaNs too; a key that is an error counts as NULL, and is counted.
    """

    groups: ClassVar[bool] = True

    keys: tuple[Output, ...]
    calls: tuple[AggregateCall, ...]

    @property
    def aggregate(self) -> Aggregate:
        return self

    @property
    def computed(self) -> tuple[tuple[str, Type], ...]:
        keys = tuple((key.name, key.type) for key in self.keys)
        return keys + tuple((call.name, call.type) for call in self.calls)

    @property
    def goes_by_order(self) -> bool:
        return any(call.aggregate.order_dependent for call in self.calls)

    @property
    def one_zero(self) -> bool:
        return not self.calls

    def expressions(self) -> tuple[Expression, ...]:
        keys = tuple(key.expression for key in self.keys)
        return keys + tuple(one for call in self.calls for one in call.expressions())
