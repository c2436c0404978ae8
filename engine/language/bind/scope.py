"""What names mean inside one query."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from engine.language.expressions import Column, Expression
from engine.language.grammar.words import CLOCKS
from engine.language.places import Place, Text
from engine.language.rules.tree import children
from engine.limits import Limits
from engine.model.source import Stream
from tureen.errors import NotSupported

NODES_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Scope:
    """One stream, under its own name or its alias (which hides the name)."""

    text: Text
    limits: Limits
    stream: Stream
    alias: str | None
    sizes: dict[int, tuple[Expression, int]] = field(default_factory=dict)

    @property
    def visible_name(self) -> str:
        return self.alias or self.stream.name

    def sized(self, expression: Expression, node: exp.Expr) -> Expression:
        """The expression, unless it is too large: BETWEEN, CASE x and the like repeat an operand, and
        nested they
        would double it at every level. Raises LimitExceeded. O(new nodes): sizes are kept.
        """
        if self._size(expression) > NODES_MAX:
            raise self.place(node).exceeded(
                "expression_nodes_max", NODES_MAX, hint="nest BETWEEN, CASE and IS DISTINCT FROM less"
            )
        return expression

    def _size(self, expression: Expression) -> int:
        known = self.sizes.get(id(expression))
        if known is not None:
            return known[1]
        size = 1 + sum(self._size(child) for child in children(expression))
        self.sizes[id(expression)] = (expression, size)
        return size

    def total(self, expressions: list[Expression]) -> int:
        """The nodes of all of them."""
        return sum(self._size(expression) for expression in expressions)

    def place(self, node: exp.Expr) -> Place:
        return self.text.of_node(node)

    def column(self, node: exp.Column) -> Column:
        """Resolve a column. Raises UnknownSource, UnknownColumn, NotSupported."""
        qualifier = node.args.get("table")
        if qualifier is not None:
            self.check_qualifier(qualifier)
        name = str(node.this.this)
        found = self.stream.schema.index(name)
        if found is None:
            if qualifier is None and not node.this.args.get("quoted") and name.upper() in CLOCKS:
                raise self.place(node).refuse(
                    NotSupported,
                    f"{name.upper()} cannot be part of an expression: "
                    "it would change an answer without new rows",
                    hint="use a window, such as FROM s [RANGE 10 MINUTES] or BEGIN NOW - 10 MINUTES END NOW",
                )
            raise self.place(node.this).unknown_column(
                name, (f.name for f in self.stream.schema), perhaps_text=qualifier is None
            )
        return Column(found, name, self.stream.schema.fields[found].type)

    def check_qualifier(self, qualifier: exp.Expr) -> None:
        """Raise UnknownSource unless this names the query's stream."""
        name = str(qualifier.this)
        if name != self.visible_name:
            raise self.place(qualifier).unknown_source(name, [self.visible_name])
