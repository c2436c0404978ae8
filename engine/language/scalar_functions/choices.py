"""Functions that choose one of their arguments."""

from __future__ import annotations

from engine.language import signatures
from engine.language.evaluation import choices
from engine.language.scalar_functions.function import ARGUMENTS_MAX, ScalarFunction, unreachable
from engine.model.expressions import Case, Expression, IsNull, Not
from engine.model.types import Type


def _if(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    condition, value, otherwise = arguments
    return Case(((condition, value),), otherwise, type_)


def _if_there(arguments: tuple[Expression, ...], type_: Type) -> Expression:
    tested, value, otherwise = arguments
    return Case(((Not(IsNull(tested)), value),), otherwise, type_)


CHOICES = (
    ScalarFunction(
        "GREATEST",
        1,
        ARGUMENTS_MAX,
        signatures.ordered_type,
        choices.greatest,
        "GREATEST(x, ...)",
        "the greatest argument; NULLs are passed over",
    ),
    ScalarFunction(
        "LEAST",
        1,
        ARGUMENTS_MAX,
        signatures.ordered_type,
        choices.least,
        "LEAST(x, ...)",
        "the least argument; NULLs are passed over",
    ),
    ScalarFunction(
        "COALESCE",
        1,
        ARGUMENTS_MAX,
        signatures.common_type,
        choices.coalesce,
        "COALESCE(x, ...)",
        "the first argument that is not NULL; errors in arguments after it do not count",
    ),
    ScalarFunction(
        "SINGLE",
        2,
        2,
        signatures.counted_value,
        choices.single,
        "SINGLE(x, n)",
        "x; an error where n is above 1: what a subquery in the place of a value gives of n rows",
    ),
    ScalarFunction(
        "NULLIF", 2, 2, signatures.nullif, choices.nullif, "NULLIF(x, y)", "NULL where x = y, else x"
    ),
    ScalarFunction(
        "IF",
        3,
        3,
        signatures.chosen,
        unreachable,
        "IF(condition, x, y)",
        "x where the condition is true, else y",
        _if,
    ),
    ScalarFunction(
        "NVL2",
        3,
        3,
        signatures.chosen_where_there,
        unreachable,
        "NVL2(t, x, y)",
        "x where t is not NULL, else y",
        _if_there,
    ),
)
