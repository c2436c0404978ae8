"""Bound expressions over one row: what :mod:`engine.model.expressions` promises, in plain Python.

Values are as :mod:`engine.model.types` says, NULL is None, an error is :data:`ERROR`. No operator or function
shares code with the vectorised evaluator; the functions of the catalogue are in
:mod:`engine.reference.functions`. What is not known here raises NotImplementedError, never guesses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import pyarrow as pa

from engine.model.expressions import (
    And,
    Arithmetic,
    Case,
    Cast,
    Column,
    Compare,
    Expression,
    Function,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    UserFunction,
    Value,
)
from engine.model.types import Kind, Type
from engine.reference.functions import call
from engine.reference.nested import cast_value as cast
from engine.reference.values import ERROR, Outcome, fit, order

_COMPARED: dict[str, Callable[[int], bool]] = {
    "=": lambda placed: placed == 0,
    "<>": lambda placed: placed != 0,
    "<": lambda placed: placed < 0,
    "<=": lambda placed: placed <= 0,
    ">": lambda placed: placed > 0,
    ">=": lambda placed: placed >= 0,
}
"""Comparisons, by how the left value is ordered to the right one: below 0, 0, above."""


def evaluate(expression: Expression, row: tuple[Value, ...]) -> Outcome:
    """The value of an expression over a row."""
    match expression:
        case Column(index):
            return row[index]
        case Literal(held):
            return held
        case Compare(op, left, right):
            a, b = evaluate(left, row), evaluate(right, row)
            if a is None or b is None:
                return None
            if a is ERROR or b is ERROR:
                return ERROR
            return _COMPARED[op](order(a, left.type, b, right.type))
        case And(operands):
            return _first_of([evaluate(o, row) for o in operands], (False, None, ERROR), True)
        case Or(operands):
            return _first_of([evaluate(o, row) for o in operands], (True, None, ERROR), False)
        case Not(operand):
            value = evaluate(operand, row)
            return value if value is None or value is ERROR else not value
        case IsNull(operand):
            value = evaluate(operand, row)
            return ERROR if value is ERROR else value is None
        case In(operand, choices):
            return _in(evaluate(operand, row), operand.type, choices)
        case Like(operand, pattern, escape, ignore_case):
            value = evaluate(operand, row)
            if value is None or value is ERROR:
                return value
            assert isinstance(value, str)
            return like(value, pattern, escape, ignore_case)
        case Arithmetic(op, left, right, type_):
            a, b = evaluate(left, row), evaluate(right, row)
            if a is None or b is None:
                return None
            if a is ERROR or b is ERROR:
                return ERROR
            return arithmetic(op, a, left.type, b, right.type, type_)
        case Negate(operand, type_):
            value = evaluate(operand, row)
            if value is None or value is ERROR:
                return value
            assert isinstance(value, int | float | Decimal)
            return fit(-Fraction(value) if isinstance(value, Decimal) else -value, type_)
        case Case():
            return _case(expression, row)
        case Cast(operand, type_, lenient):
            value = evaluate(operand, row)
            if value is None or value is ERROR:
                return value
            outcome = cast(value, operand.type, type_)
            return None if outcome is ERROR and lenient else outcome
        case Function(name, arguments, type_, implementation):
            values = [evaluate(a, row) for a in arguments]
            if implementation is not None:
                return call_user(implementation, values)
            return call(name, values, [a.type for a in arguments], type_)
        case _:
            assert_never(expression)


def _case(case: Case, row: tuple[Value, ...]) -> Outcome:
    """The result of the first branch that holds; an error in a condition before it is the value."""
    for condition, result in case.branches:
        holds = evaluate(condition, row)
        if holds is ERROR:
            return ERROR
        if holds is True:
            return evaluate(result, row)
    return evaluate(case.otherwise, row)


def _first_of(values: list[Outcome], strongest_first: tuple[Outcome, ...], otherwise: bool) -> Outcome:
    """The strongest outcome among the operands of AND or OR."""
    for outcome in strongest_first:
        if any(value is outcome for value in values):
            return outcome
    return otherwise


def _in(value: Outcome, type_: Type, choices: tuple[Literal, ...]) -> Outcome:
    if value is None or value is ERROR:
        return value
    for choice in choices:
        if choice.value is not None and order(value, type_, choice.value, choice.type) == 0:
            return True
    return None if any(choice.value is None for choice in choices) else False


def call_user(function: UserFunction, values: list[Outcome]) -> Outcome:
    """A user's function over one row: an error where it raises, or gives what is not of its type."""
    if any(value is None for value in values):
        return None
    if any(value is ERROR for value in values):
        return ERROR
    try:
        if function.arrow:
            result: Any = function.call(*(pa.array([value]) for value in values))[0].as_py()
        elif function.vectorised:
            result = function.call(*(np.array([value]) for value in values))[0].item()
        else:
            result = function.call(*values)
    except Exception:  # noqa: BLE001  whatever a user's code raises
        return ERROR
    if result is None:
        return None
    kinds: dict[Kind, Any] = {Kind.BOOLEAN: bool, Kind.STRING: str}
    if function.result.kind in kinds or isinstance(result, bool | str):
        return result if type(result) is kinds.get(function.result.kind) else ERROR
    return fit(result, function.result)


def like(text: str, pattern: str, escape: str | None, ignore_case: bool) -> bool:
    """SQL LIKE by plain backtracking over (token, is it special) pairs."""
    if ignore_case:
        text, pattern = text.lower(), pattern.lower()
        escape = None if escape is None else escape.lower()
    tokens: list[tuple[str, bool]] = []
    place = 0
    while place < len(pattern):
        character = pattern[place]
        if character == escape and place + 1 < len(pattern):
            place += 1
            tokens.append((pattern[place], False))
        else:
            tokens.append((character, character in "%_"))
        place += 1
    reachable = {0}  # how many characters of the text the tokens so far can have eaten
    for token, special in tokens:
        if special and token == "%":
            reachable = set(range(min(reachable), len(text) + 1)) if reachable else set()
        else:
            reachable = {n + 1 for n in reachable if n < len(text) and (special or text[n] == token)}
    return len(text) in reachable


def arithmetic(op: str, a: Outcome, a_type: Type, b: Outcome, b_type: Type, type_: Type) -> Outcome:
    """``a op b`` as a value of ``type_``, an error where it does not fit or has none."""
    assert isinstance(a, int | float | Decimal)
    assert isinstance(b, int | float | Decimal)
    if not (a_type.is_numeric and b_type.is_numeric):
        raise NotImplementedError(f"{a_type} {op} {b_type}")
    if type_.kind is Kind.DOUBLE:
        return _double_arithmetic(op, float(a), float(b))
    if type_.is_integer:
        assert isinstance(a, int)
        assert isinstance(b, int)
        return _integer_arithmetic(op, a, b, type_)
    if type_.kind is Kind.DECIMAL:
        return _decimal_arithmetic(op, Fraction(a), Fraction(b), type_)
    raise NotImplementedError(f"{a_type} {op} {b_type} -> {type_}")


def _decimal_arithmetic(op: str, a: Fraction, b: Fraction, type_: Type) -> Outcome:
    if op == "+":
        return fit(a + b, type_)
    if op == "-":
        return fit(a - b, type_)
    if op == "*":
        return fit(a * b, type_)
    if op == "%":
        if b == 0:
            return ERROR
        remainder = abs(a) % abs(b)
        return fit(remainder if a >= 0 else -remainder, type_)
    raise NotImplementedError(op)


def _integer_arithmetic(op: str, a: int, b: int, type_: Type) -> Outcome:
    if op == "+":
        return fit(a + b, type_)
    if op == "-":
        return fit(a - b, type_)
    if op == "*":
        return fit(a * b, type_)
    if b == 0:
        return ERROR
    quotient = abs(a) // abs(b)
    if (a < 0) != (b < 0):
        quotient = -quotient
    if op == "/":
        return fit(quotient, type_)
    if op == "%":
        return fit(a - quotient * b, type_)
    raise NotImplementedError(op)


def _double_arithmetic(op: str, a: float, b: float) -> Outcome:
    if op == "+":
        return a + b
    if op == "-":
        return a - b
    if op == "*":
        return a * b
    if b == 0:
        return ERROR
    if op == "/":
        return a / b
    if op == "%":
        return math.nan if math.isnan(a) or math.isnan(b) or math.isinf(a) else math.fmod(a, b)
    raise NotImplementedError(op)
