"""Data and helpers that ``aggregate_test.py`` shares with other tests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from engine.algebra.aggregate.stage import AggregateCall
from engine.model import expressions as ex
from engine.model.types import BIGINT, DOUBLE, Kind, Type, array, decimal

SPREADS = ("VAR_SAMP", "VAR_POP", "STDDEV_SAMP", "STDDEV_POP")


def result_type(function: str, argument: Type) -> Type:
    match function:
        case "COUNT" | "APPROX_COUNT_DISTINCT":
            return BIGINT
        case "SUM" if argument.is_integer:
            return BIGINT
        case "SUM" if argument.kind is Kind.DECIMAL:
            return decimal(18, argument.scale)
        case "AVG" | "MEDIAN" | "PERCENTILE_CONT":
            return DOUBLE
        case "ARRAY_AGG":
            return array(argument)
    return DOUBLE if function in SPREADS else argument


def column(place: int, type_: Type) -> ex.Column:
    return ex.Column(place, f"c{place}", type_)


def call_of(function: str, argument: Type, place: int = 0, **options: Any) -> AggregateCall:
    name = f"{function}_{place}"
    share = (ex.Literal(Decimal("0.3"), decimal(2, 1)),) if function.startswith("PERCENTILE") else ()
    arguments = (column(place, argument), *share)
    return AggregateCall(name, function, arguments, result_type(function, argument), **options)
