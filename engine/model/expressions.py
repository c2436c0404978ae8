"""Bound expressions: typed, resolved, without names.

The tree that the binder makes of a text and that the evaluator, the grouped filters and the reference
read. Values of literals are held as :mod:`engine.model.types` says.

Three-valued logic, and errors as values. NULL wins over an error: a scalar with a NULL operand is NULL even
if
another operand is an error. AND: FALSE if any operand is FALSE, else NULL if any is NULL, else an error if
any is one, else TRUE. OR is its mirror (TRUE, NULL, error, FALSE); NOT keeps NULL and errors. So whatever is
evaluated first, the outcome is the same, and De Morgan's laws hold.

Comparison: numbers of different types compare exactly, unless one of them is DOUBLE: then as doubles. NaN
equals
NaN and is above every other number. Strings compare by code point, FALSE < TRUE. A DATE compared with a
TIMESTAMP is its midnight.

Arithmetic: integers keep the wider operand type, overflow is an error; ``/`` of integers truncates towards
zero;
division or modulo by zero is an error, for DOUBLE too; otherwise DOUBLE follows IEEE 754. DECIMAL: +, -
and % keep the larger scale, * adds the scales, / gives DOUBLE; what does not fit 18 digits is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from engine.model.types import BOOLEAN, Type
from engine.model.user_calls import CallOutcome, FunctionMeter

if TYPE_CHECKING:
    from engine.model import batch

Value = bool | int | float | Decimal | str | None
CompareOp = OneOf["=", "<>", "<", "<=", ">", ">="]
ArithmeticOp = OneOf["+", "-", "*", "/", "%"]

NEGATED: Mapping[CompareOp, CompareOp] = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""What holds where a comparison does not."""
TURNED: Mapping[CompareOp, CompareOp] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The comparison of the right side with the left."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the source: its place in the schema."""

    index: int
    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Value
    type: Type

    @property
    def is_null(self) -> bool:
        """Whether it is NULL."""
        return self.value is None

    def through(self, convert: Callable[..., Literal], *facts: Any) -> Literal:
        """``convert(self, *facts)``: another literal that depends on this one and on nothing else.

        Conversions of literals go by here, so that they can be noted: :mod:`engine.language.tracing`.
        """
        return convert(self, *facts)


@dataclass(frozen=True, slots=True)
class Compare:
    """``left op right``; both numeric, or both of one kind, or DATE with TIMESTAMP."""

    op: CompareOp
    left: Expression
    right: Expression

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class And:
    """All operands, at least two."""

    operands: tuple[Expression, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Or:
    """Any operand, of at least two."""

    operands: tuple[Expression, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Not:
    """Keeps NULL and errors."""

    operand: Expression

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class IsNull:
    """TRUE where the operand is NULL, else FALSE; an error stays an error. IS NOT NULL is Not(IsNull)."""

    operand: Expression

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class In:
    """``operand IN (literals)``; NULL where nothing matches and the list holds a NULL."""

    operand: Expression
    choices: tuple[Literal, ...]

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Like:
    """SQL LIKE over a whole string: ``%`` any run, ``_`` one character; ``escape`` makes the next plain."""

    operand: Expression
    pattern: str
    escape: str | None = None
    ignore_case: bool = False

    @property
    def type(self) -> Type:
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left op right`` of numbers, in ``type``."""

    op: ArithmeticOp
    left: Expression
    right: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Negate:
    """``-operand``."""

    operand: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is TRUE, else ``otherwise``.

    A branch that is not taken cannot err; a condition that is an error makes the row an error unless an
    earlier branch was taken.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """CAST; what does not convert is an error, or NULL where ``lenient`` (TRY_CAST)."""

    operand: Expression
    type: Type
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function that a user wrote in Python: strict, with these types, called with rows that have values.

    name: upper-case. vectorised: whether ``call`` takes arrays of rows or the values of one; arrow: whether
    these are Arrow's, not numpy's (:mod:`engine.language.evaluation.user_calls`). deterministic: whether it
    was declared to depend on its arguments alone. run: calls it for columns of rows elsewhere, as in a
    process of its own; None: it is called here. meter: what is counted of it.
    """

    name: str
    arguments: tuple[Type, ...]
    result: Type
    call: Callable[..., Any]
    vectorised: bool = False
    deterministic: bool = False
    arrow: bool = False
    run: Callable[[Sequence[batch.Column]], CallOutcome] | None = field(
        default=None, compare=False, repr=False
    )
    meter: FunctionMeter = field(default_factory=FunctionMeter, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function; ``name`` is upper-case. implementation: a user's; None: of
    :mod:`engine.language.functions`.
    """

    name: str
    arguments: tuple[Expression, ...]
    type: Type
    implementation: UserFunction | None = None


Expression = (
    Column
    | Literal
    | Compare
    | And
    | Or
    | Not
    | IsNull
    | In
    | Like
    | Arithmetic
    | Negate
    | Case
    | Cast
    | Function
)


def children(expression: Expression) -> tuple[Expression, ...]:
    """The parts directly below; the literals of IN are no parts."""
    match expression:
        case Compare(left=left, right=right) | Arithmetic(left=left, right=right):
            return (left, right)
        case And(operands) | Or(operands):
            return operands
        case (
            Not(operand=operand)
            | IsNull(operand=operand)
            | In(operand=operand)
            | Like(operand=operand)
            | Negate(operand=operand)
            | Cast(operand=operand)
        ):
            return (operand,)
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Function(arguments=arguments):
            return arguments
        case _:
            return ()


def columns_of(expression: Expression) -> Iterator[Column]:
    """The columns in an expression, each as often as it stands there."""
    pending = [expression]
    while pending:
        part = pending.pop()
        if isinstance(part, Column):
            yield part
        else:
            pending.extend(reversed(children(part)))


def reads_place(expression: Expression, place: int) -> bool:
    """Whether an expression names the column at a place. O(nodes)."""
    return any(column.index == place for column in columns_of(expression))


def reads_made(expression: Expression, stored: int) -> bool:
    """Whether an expression over rows of a source names one of the columns that are made, which stand behind
    the stored ones. O(nodes).
    """
    return any(column.index >= stored for column in columns_of(expression))


def conjunction(conditions: Iterable[Expression]) -> Expression:
    """All conditions, of which there is one at least."""
    operands = tuple(conditions)
    return operands[0] if len(operands) == 1 else And(operands)


def calls_user(expression: Expression) -> bool:
    """Whether a user's function stands anywhere in it. O(nodes)."""
    return next(user_functions(expression), None) is not None


def user_functions(expression: Expression) -> Iterator[UserFunction]:
    """The users' functions that it calls, each as often as it does. O(nodes)."""
    if isinstance(expression, Function) and expression.implementation is not None:
        yield expression.implementation
    for child in children(expression):
        yield from user_functions(child)
