"""What holds for all that is bound of one text: its places, limits, functions, the sizes of expressions."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.language.places import Place, Text
from engine.model.expressions import Expression, children
from engine.model.limits import Limits

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
class TextBinding:
    """One text of a statement: its own, or that of a view."""

    text: Text
    limits: Limits
    functions: FunctionCatalogue = BUILT_IN
    # Of expressions of the whole statement.
    sizes: Sizes = field(default_factory=Sizes)

    def place(self, node: exp.Expr) -> Place:
        """Where this is written."""
        return self.text.of_node(node)

    def sized(self, expression: Expression, node: exp.Expr) -> Expression:
        """The expression, unless it is too large: BETWEEN, CASE x and the like repeat an operand, and nested
        they would double it at every level. Raises LimitExceeded. O(new nodes): sizes are kept.
        """
        if self.sizes.of(expression)[0] > NODES_MAX:
            raise self.place(node).exceeded(
                "expression_nodes_max", NODES_MAX, hint="nest BETWEEN, CASE and IS DISTINCT FROM less"
            )
        return expression
