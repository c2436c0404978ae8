"""What names mean in one place of a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from engine.language.aggregates import aggregate_named
from engine.language.bind.from_names import FIRST_UNNEST, FromNames
from engine.language.bind.text_binding import TextBinding
from engine.language.grammar.words import CLOCKS, COLUMNS_REFUSED, ROW_TIMES
from engine.language.places import Place, shown
from engine.language.rules.tree import transform
from engine.model.expressions import Column, Expression, columns_of
from tureen.errors import NotSupported, UnknownColumn

if TYPE_CHECKING:
    from engine.language.bind.grouping import Grouping
    from engine.language.bind.over import OverColumns
    from engine.language.bind.preferences import Estimates
    from engine.language.bind.subqueries.values import SubqueryValues

OUTER = -2_000_000
"""Columns around a subquery count down from here in its conditions."""
ESTIMATES = -1_000_000_000
"""Estimates in a priority count down from here while it is bound."""


@dataclass(frozen=True, slots=True)
class Around:
    """What is around a subquery; is_mixed: its columns may stand in it too, as those of OUTER. columns: of
    it, by their places, that are among the subquery's, as expressions over these.
    """

    scope: Scope
    is_mixed: bool = False
    columns: Mapping[int, Expression] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that expressions may name, and what else may stand there."""

    binding: TextBinding
    names: FromNames
    # Where this is, for refusals.
    clause: str = "this place"
    # Outputs by name, for where columns have no such name; and names that only come later.
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    selected: Collection[str] = ()
    # Set where aggregates may stand: columns are then those of its groups.
    grouping: Grouping | None = None
    # Set where functions over windows may stand.
    over: OverColumns | None = None
    # What is around a subquery.
    outer: Around | None = None
    # The window of GROUP BY, which TUMBLE_START(...) and the like are about.
    window: exp.Expr | None = None
    # What nodes were bound to; set where they are bound again.
    memo: dict[int, Expression] | None = None
    # Set where estimates of summaries may stand.
    estimates: Estimates | None = None
    # Set where a subquery may stand in the place of a value.
    values: SubqueryValues | None = None

    def at(self, clause: str) -> Scope:
        """This scope in another clause."""
        return replace(self, clause=clause)

    def place(self, node: exp.Expr) -> Place:
        """Where this is written."""
        return self.binding.place(node)

    def find(self, node: exp.Column) -> Expression | None:
        """What a column's name stands for here, None where there is no such column.

        Raises SyntaxRefused where several items of FROM have it.
        """
        found = self.names.find(node, self.binding)
        if found is None and self.outer is not None and self.outer.columns:
            around, columns = self.outer.scope.find(node), self.outer.columns
            if around is not None and all(each.index in columns for each in columns_of(around)):
                return transform(
                    around, lambda each: columns[each.index] if isinstance(each, Column) else each
                )
        return found

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column. Raises SyntaxRefused, UnknownColumn, NotSupported."""
        found = self.find(node)
        if found is not None:
            return found
        around = None if self.outer is None else self.outer.scope.find(node)
        if around is not None and self.outer is not None and self.outer.is_mixed:
            return transform(around, of_outer)
        if around is not None:
            raise self.place(node).refuse(
                NotSupported,
                f"{shown(str(node.this.this))!r} is a column of groups, or of versions of a table, around "
                "this query, which may be used only in an equality of its WHERE",
                hint="write (SELECT MAX(b.v) FROM s b WHERE b.key = a.key), or this query around "
                "(SELECT ... GROUP BY ...) a",
            )
        qualifier = node.args.get("table")
        if qualifier is not None:
            self.names.check_qualifier(qualifier, self.clause, self.binding)
        name = str(node.this.this)
        if qualifier is None and not node.this.args.get("quoted") and name.upper() in CLOCKS:
            raise self.place(node).refuse(
                NotSupported,
                f"{name.upper()} without brackets is allowed in windows",
                hint="write NOW(), compared with a time: WHERE at > NOW() - INTERVAL '10' MINUTE",
            )
        if qualifier is None and name in self.selected:
            place = self.place(node.this)
            hint = (
                f"SELECT computes it after {self.clause}: write its expression here, or select in a subquery"
            )
            raise UnknownColumn(shown(name), hint=hint, line=place.line, column=place.column)
        known = self.names.known(qualifier)
        perhaps_text = qualifier is None and self.clause not in ("GROUP BY", "ORDER BY")
        raise self.place(node.this).unknown_column(
            name, known, perhaps_text=perhaps_text, hint=self._instead(name, known, qualifier)
        )

    def _instead(self, name: str, known: Collection[str], qualifier: exp.Expr | None) -> str | None:
        """What to write for a name that is no column here and has a meaning in other systems, or may be meant
        as that of an element.
        """
        for part in self.names.parts:
            if part.unnamed and (qualifier is None or part.name == qualifier.this):
                columns = " and ".join(shown(column) for column in part.columns)
                are = "column of UNNEST is" if len(part.columns) == 1 else "columns of UNNEST are"
                return f"the {are} called {columns}: write UNNEST(...) AS t({shown(name)})"
        if self.names.are_none:
            if self.clause in ("GENERATE_SERIES", "RANGE"):
                return f"{self.clause} takes constants: join it by ON, or write FROM HOP(stream, slide, size)"
            if self.clause == "UNNEST":
                return FIRST_UNNEST
            if self.clause == "VALUES":
                return "VALUES takes constants: compute in SELECT"
            return "there is no FROM: write SELECT ... FROM the stream that has it"
        if name in ROW_TIMES:
            time = self.names.source.timestamp_column
            if time in known:
                return f"the time of a row is its column {shown(str(time))}"
            return "the time of a row is a column: declare a TIMESTAMP, and WITH (timestamp = 'column')"
        aggregate = aggregate_named(name.upper())
        if aggregate is not None and self.grouping is not None:
            return f"write the aggregate itself, as in {self.clause} {aggregate.usage.split(', ')[0]} > 5"
        return COLUMNS_REFUSED.get(name)


def of_outer(node: Expression) -> Expression:
    """A column around a subquery, as it stands in it; all else as it is."""
    return Column(OUTER - node.index, node.name, node.type) if isinstance(node, Column) else node


def column_at(name: str, node: exp.Expr) -> exp.Column:
    """A column of this name that stands where ``node`` does."""
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    for made in (column, column.this):
        made.meta.update(node.meta)
    return column
