"""SELECT: columns computed row by row."""

from __future__ import annotations

from dataclasses import dataclass

from engine.algebra.operator import Operator
from engine.model.expressions import Expression
from engine.model.types import Type


@dataclass(frozen=True, slots=True)
class Output:
    """One column that a stage gives."""

    name: str
    expression: Expression

    @property
    def type(self) -> Type:
        return self.expression.type


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """Columns computed row by row; an expression that is an error gives NULL and is counted."""

    outputs: tuple[Output, ...]

    @property
    def outputs_of_rows(self) -> tuple[Output, ...]:
        return self.outputs

    @property
    def computed(self) -> tuple[tuple[str, Type], ...]:
        return tuple((output.name, output.type) for output in self.outputs)

    def expressions(self) -> tuple[Expression, ...]:
        return tuple(output.expression for output in self.outputs)
