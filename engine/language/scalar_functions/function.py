"""A row of the table of scalar functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engine.language.evaluation.vector import Vector
from engine.language.signatures import Signature, Types
from engine.model.expressions import Expression, Function
from engine.model.types import Type

Kernel = Callable[[Sequence[Vector], Type, int], Vector]
Build = Callable[[tuple[Expression, ...], Type], Expression]
ARGUMENTS_MAX = 64


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """One function. ``usage`` shows a call, ``doc`` says what it gives.

    made: what a call is bound to, where that is no call of the function itself.
    """

    name: str
    arity_min: int
    arity_max: int
    signature: Signature
    kernel: Kernel
    usage: str
    doc: str
    made: Build | None = None

    @property
    def is_operator(self) -> bool:
        """Whether it is written between or before its arguments, and has no name to call it by."""
        return not self.name[0].isalpha()

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The types that the arguments become, and the result's. Raises Unfit."""
        return self.signature(arguments)

    def build(self, arguments: tuple[Expression, ...], type_: Type) -> Expression:
        """The bound call."""
        if self.made is not None:
            return self.made(arguments, type_)
        return Function(self.name, arguments, type_)


def unreachable(arguments: Sequence[Vector], type_: Type, n: int) -> Vector:
    """The kernel of a function whose calls are bound to something else."""
    raise AssertionError("bound as something else")
