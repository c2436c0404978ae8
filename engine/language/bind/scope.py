"""What names mean in one place of a query."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from engine.language.expressions import Expression, children
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.grammar.words import CLOCKS
from engine.language.places import Place, Text, did_you_mean, shown
from engine.language.query import Output
from engine.limits import Limits
from engine.model.source import Stream
from tureen.errors import NotSupported, SyntaxRefused, UnknownColumn

if TYPE_CHECKING:
    from engine.language.bind.grouping import Grouping
    from engine.language.bind.numbering import Numbering

NODES_MAX = 50_000


@dataclass(slots=True)
class Sizes:
    """Nodes and heights of bound expressions, each computed once."""

    known: dict[int, tuple[Expression, int, int]] = field(default_factory=dict)

    def of(self, expression: Expression) -> tuple[int, int]:
        """(nodes, height). O(new nodes)."""
        found = self.known.get(id(expression))
        if found is not None:
            return found[1], found[2]
        nodes = height = 0
        for child in children(expression):
            more, high = self.of(child)
            nodes, height = nodes + more, max(height, high)
        self.known[id(expression)] = (expression, nodes + 1, height + 1)
        return nodes + 1, height + 1


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns that expressions may name, and what else may stand there.

    columns: what names stand for. name: what may stand before the dot; None: nothing. clause: where this is,
    for refusals. aliases: outputs by name, for where columns have no such name. selected: names that
    only come later. grouping: set where aggregates may stand: columns are then those of its groups.
    numbering: set where ROW_NUMBER() may stand. outer: around a subquery. window: of GROUP BY, which
    TUMBLE_START(...) and the like are about. memo: what nodes were bound to; set where they are bound again.
    """

    text: Text
    limits: Limits
    source: Stream
    columns: Mapping[str, Output]
    name: str | None
    clause: str = "this place"
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    selected: Collection[str] = ()
    grouping: Grouping | None = None
    numbering: Numbering | None = None
    outer: Scope | None = None
    window: exp.Expr | None = None
    memo: dict[int, Expression] | None = None
    functions: FunctionCatalogue = BUILT_IN
    sizes: Sizes = field(default_factory=Sizes)

    def at(self, clause: str) -> Scope:
        """The same in another clause."""
        return replace(self, clause=clause)

    def sized(self, expression: Expression, node: exp.Expr) -> Expression:
        """The expression, unless it is too large: BETWEEN, CASE x and the like repeat an operand, and nested
        they would double it at every level. Raises LimitExceeded. O(new nodes): sizes are kept.
        """
        if self.sizes.of(expression)[0] > NODES_MAX:
            raise self.place(node).exceeded(
                "expression_nodes_max", NODES_MAX, hint="nest BETWEEN, CASE and IS DISTINCT FROM less"
            )
        return expression

    def place(self, node: exp.Expr) -> Place:
        return self.text.of_node(node)

    def find(self, node: exp.Column) -> Expression | None:
        """What a column's name stands for here, None where there is no such column."""
        qualifier, name = node.args.get("table"), str(node.this.this)
        if qualifier is not None and str(qualifier.this) != self.name:
            if name not in ("start", "end"):
                return None
            name = f"{qualifier.this}_{name}"  # a field of a window
        found = self.columns.get(name)
        return None if found is None else found.expression

    def column(self, node: exp.Column) -> Expression:
        """Resolve a column. Raises SyntaxRefused, UnknownColumn, NotSupported."""
        found = self.find(node)
        if found is not None:
            return found
        if self.outer is not None and self.outer.find(node) is not None:
            raise self.place(node).refuse(
                NotSupported,
                f"{shown(str(node.this.this))!r} is a column of the query around this one, "
                "which may be used only as inner = outer in the WHERE of a subquery",
                hint="write EXISTS (SELECT * FROM s b WHERE b.key = a.key AND ...)",
            )
        qualifier = node.args.get("table")
        if qualifier is not None:
            self.check_qualifier(qualifier)
        name = str(node.this.this)
        if qualifier is None and not node.this.args.get("quoted") and name.upper() in CLOCKS:
            raise self.place(node).refuse(
                NotSupported,
                f"{name.upper()} cannot be part of an expression: it would change an answer without new rows",
                hint="use a window, such as FROM s [RANGE 10 MINUTES] or BEGIN NOW - 10 MINUTES END NOW",
            )
        if qualifier is None and name in self.selected:
            place = self.place(node.this)
            hint = (
                f"SELECT computes it after {self.clause}: write its expression here, or select in a subquery"
            )
            raise UnknownColumn(shown(name), hint=hint, line=place.line, column=place.column)
        raise self.place(node.this).unknown_column(name, self.columns, perhaps_text=qualifier is None)

    def check_qualifier(self, qualifier: exp.Expr) -> None:
        """Raise SyntaxRefused or NotSupported unless this names what FROM names."""
        name = str(qualifier.this)
        if name == self.name:
            return
        if name in self.columns:
            raise self.place(qualifier).refuse(
                NotSupported,
                f"the column {shown(name)!r} has no fields",
                hint="declare a column for each field you need",
            )
        if self.name is None:
            raise self.place(qualifier).refuse(
                SyntaxRefused,
                f"nothing is called {shown(name)!r} here: the subquery in FROM has no name",
                hint=f"leave it out, or name the subquery: FROM (SELECT ...) AS {shown(name)}",
            )
        # no UnknownSource: no stream that is yet to come could mend it
        raise self.place(qualifier).refuse(
            SyntaxRefused, f"nothing in FROM is called {shown(name)!r}", hint=did_you_mean(name, [self.name])
        )


def column_at(name: str, node: exp.Expr) -> exp.Column:
    """A column of this name that stands where ``node`` does."""
    column = exp.Column(this=exp.Identifier(this=name, quoted=True))
    for made in (column, column.this):
        made.meta.update(node.meta)
    return column
