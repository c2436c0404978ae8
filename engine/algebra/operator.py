"""What is true of a stage, whichever operator it is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self

from engine.model.expressions import columns_of

if TYPE_CHECKING:
    from engine.algebra.aggregate.stage import Aggregate
    from engine.algebra.join.stage import Join
    from engine.algebra.project.stage import Output
    from engine.algebra.row_number.stage import RowNumber
    from engine.algebra.streamed.stage import Streamed
    from engine.language.query import Query
    from engine.model.expressions import Expression
    from engine.model.types import Type


class Operator:
    """A stage of a bound query: a function of a relation, and of what a second input gives, where it has
    one.
    """

    __slots__ = ()

    seeks_partners: ClassVar[bool] = False
    """Whether it looks for partners of its rows in a second input."""

    groups: ClassVar[bool] = False
    """Whether it makes one row of all that are equal in some columns."""

    replaces_missing: ClassVar[bool] = False
    """Whether it may give other rows in the place of those that are missing below."""

    widens: ClassVar[bool] = False
    """Whether it may have columns behind those of the relation."""

    unordered: ClassVar[tuple[str, ...]] = ()
    """Names of its fields, tuples, whose order means nothing."""

    sorts: ClassVar[bool] = False
    """Whether it gives rows in an order of its own."""

    reads_nothing: ClassVar[bool] = False
    """Whether what it gives depends on nothing below it."""

    takes_order: ClassVar[bool] = False
    """Whether it is one operator of a graph with an ORDER BY right below it."""

    @property
    def right_input(self) -> Query | None:
        """The query whose rows meet those of the relation; None: it has one input."""
        return None

    def with_right_input(self, query: Query) -> Self:
        """The stage with another query in the place of its second input."""
        raise AssertionError("a stage of one input")

    @property
    def united(self) -> Query | None:
        """The query whose rows it gives as they are, behind those of the relation; None: it does not."""
        return None

    @property
    def join(self) -> Join | None:
        """The stage, where it puts rows of two inputs side by side; None: it does not."""
        return None

    @property
    def stream(self) -> Streamed | None:
        """The stage, where it makes a stream of what is below it; None: it does not."""
        return None

    @property
    def aggregate(self) -> Aggregate | None:
        """The stage, where it makes groups; None: it does not."""
        return None

    @property
    def pairs(self) -> Join | None:
        """The stage, where its rows are pairs of all rows that are partners; None: it gives others."""
        return None

    @property
    def goes_by_order(self) -> bool:
        """Whether what it gives depends on the order of what it reads."""
        return False

    @property
    def outputs_of_rows(self) -> tuple[Output, ...] | None:
        """Its columns, where it does nothing but compute columns of each row; None: it does more."""
        return None

    @property
    def condition_of_rows(self) -> Expression | None:
        """What rows must satisfy, where it does nothing but keep those that do; None: it does more."""
        return None

    @property
    def is_row_by_row(self) -> bool:
        """Whether what it makes of a row depends on that row alone."""
        return self.outputs_of_rows is not None or self.condition_of_rows is not None

    @property
    def computed(self) -> tuple[tuple[str, Type], ...] | None:
        """Names and types of its columns, where it computes them; None: it has those of the relation, and at
        times others behind them.
        """
        return None

    def columns_above(self, below: Sequence[tuple[str, Type]]) -> Sequence[tuple[str, Type]]:
        """Names and types of its columns. below: those of the relation."""
        return below if self.computed is None else self.computed

    def up_to_number(self, count: int) -> RowNumber | None:
        """The stage that gives only those of its rows whose number is not above ``count``; None: it does not
        number rows, or gives some only.
        """
        return None

    @property
    def compared(self) -> tuple[tuple[Expression, Expression], ...]:
        """What partners are equal in, where it has two inputs: expressions over the columns of the relation,
        each with one over those of the second input.
        """
        return ()

    @property
    def negates(self) -> bool:
        """Whether rows of the second input take rows of the relation from what it gives."""
        return False

    @property
    def places_read(self) -> frozenset[int] | None:
        """The places of the columns of the relation that it looks at; None: all of them."""
        return frozenset(column.index for each in self.expressions() for column in columns_of(each))

    @property
    def one_zero(self) -> bool:
        """Whether it gives 0.0 for -0.0 in all columns, as it is compared."""
        return False

    @property
    def rows_read(self) -> int | None:
        """How many rows of the relation it looks at, the first; None: at all."""
        return None

    def expressions(self) -> tuple[Expression, ...]:
        """What it evaluates over the columns of the relation."""
        return ()
