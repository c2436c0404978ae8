"""The catalogue of aggregates: name, arity, types, what a call gives, and what it is computed from.

Everything that is known of an aggregate stands here, a row each; how it is computed, in
:mod:`engine.operators.aggregates`.

All but COUNT(*) and ARRAY_AGG pass over rows where the argument is NULL. Without such rows COUNT and
APPROX_COUNT_DISTINCT are 0 and all others NULL. An argument that is an error is passed over and counted.
Every aggregate takes FILTER (WHERE ...). Numbers are added exactly and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from engine.language.signatures import Signature, Types, Unfit, fits, number
from engine.model.expressions import Expression, Literal
from engine.model.types import (
    BIGINT,
    BOOLEAN,
    DECIMAL_DIGITS_MAX,
    DOUBLE,
    INTEGER,
    Kind,
    Type,
    array,
    decimal,
)

ARRAY_ELEMENTS_MAX = 100_000


class DistinctUse(Enum):
    """What DISTINCT before the argument does."""

    SERVED = "equal arguments count once"
    IDLE = "it changes nothing"
    REFUSED = "it is not supported"


class Statistic(Enum):
    """What a result is finished from, besides the number of values."""

    COUNT = "how many values there are"
    SUM = "their total, exact"
    SPREAD = "the exact sums of the values as doubles and of their squares"
    LEAST = "the least of them"
    GREATEST = "the greatest of them"
    FIRST = "the first of them, in the order of rows"
    LAST = "the last of them, in the order of rows"
    ALL = "all of them, in the order of rows"
    ERRORS = "how many rows an argument or a filter that is an error keeps out"

    __hash__ = object.__hash__


_INVERTIBLE = {Statistic.COUNT, Statistic.SUM, Statistic.SPREAD}
_IN_ORDER = {Statistic.FIRST, Statistic.LAST, Statistic.ALL}


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate."""

    name: str
    arity: int
    signature: Signature
    distinct: DistinctUse
    statistic: Statistic
    """What the function is computed from."""
    usage: str
    """A call, as a text shows it."""
    doc: str
    """What the function gives."""
    keeps_nulls: bool = False
    """Whether rows count where the argument is NULL."""
    takes_rows: bool = False
    """Whether it may be of rows, without an argument: COUNT(*)."""
    is_mean: bool = False
    """Whether the total is divided by the number of values."""
    of_sample: bool = False
    """Whether the spread is that of a sample, so that the divisor is one less than the number of values."""
    is_root: bool = False
    """Whether the square root of the spread is given."""

    @property
    def invertible(self) -> bool:
        """Whether a value that leaves can be taken out of the statistic again."""
        return self.statistic in _INVERTIBLE

    @property
    def order_dependent(self) -> bool:
        """Whether the result may depend on the order of rows."""
        return self.statistic in _IN_ORDER

    @property
    def mergeable(self) -> bool:
        """Whether the statistics of parts of the rows, in whatever order, make that of all of them."""
        return not self.order_dependent

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The types that the arguments become, and the result's. Raises Unfit."""
        return self.signature(arguments)


def _anything(arguments: Sequence[Expression]) -> Type:
    type_ = arguments[0].type
    return INTEGER if type_.kind is Kind.NULL else type_


def _counted(arguments: Sequence[Expression]) -> Types:
    return [_anything(arguments)] if arguments else [], BIGINT


def _same(arguments: Sequence[Expression]) -> Types:
    type_ = _anything(arguments)
    return [type_], type_


def _total(arguments: Sequence[Expression]) -> Types:
    type_ = number(arguments, 0)
    if type_.kind is Kind.DECIMAL:
        return [type_], decimal(DECIMAL_DIGITS_MAX, type_.scale)
    return [type_], DOUBLE if type_ == DOUBLE else BIGINT


def _mean(arguments: Sequence[Expression]) -> Types:
    return [number(arguments, 0)], DOUBLE


def _spread(arguments: Sequence[Expression]) -> Types:
    return [fits(arguments, 0, DOUBLE)], DOUBLE


def _quantile(arguments: Sequence[Expression]) -> Types:
    fraction = arguments[1]
    value = fraction.value if isinstance(fraction, Literal) else None
    if isinstance(value, bool | str) or value is None or not 0 <= value <= 1:
        raise Unfit(1, "needs a number literal from 0 to 1", "write APPROX_QUANTILE(x, 0.99)")
    return [fits(arguments, 0, DOUBLE), DOUBLE], DOUBLE


def _condition(arguments: Sequence[Expression]) -> Types:
    return [fits(arguments, 0, BOOLEAN)], BOOLEAN


def _listed(arguments: Sequence[Expression]) -> Types:
    type_ = _anything(arguments)
    return [type_], array(type_)


_ALL = (
    AggregateFunction(
        "COUNT",
        1,
        _counted,
        DistinctUse.SERVED,
        Statistic.COUNT,
        "COUNT(*), COUNT([DISTINCT] x)",
        "the number of rows, or of rows where x is not NULL, as BIGINT",
        takes_rows=True,
    ),
    AggregateFunction(
        "SUM",
        1,
        _total,
        DistinctUse.SERVED,
        Statistic.SUM,
        "SUM([DISTINCT] x)",
        "the sum: BIGINT for whole numbers, DECIMAL(18, places) for DECIMAL, else DOUBLE; "
        "all are added exactly; a total of whole numbers or decimals that does not fit is an error",
    ),
    AggregateFunction(
        "AVG",
        1,
        _mean,
        DistinctUse.SERVED,
        Statistic.SUM,
        "AVG([DISTINCT] x)",
        "the mean as DOUBLE: the exact sum, divided and rounded once",
        is_mean=True,
    ),
    AggregateFunction(
        "MIN",
        1,
        _same,
        DistinctUse.IDLE,
        Statistic.LEAST,
        "MIN(x)",
        "the least value; NaN is above all numbers",
    ),
    AggregateFunction("MAX", 1, _same, DistinctUse.IDLE, Statistic.GREATEST, "MAX(x)", "the greatest value"),
    AggregateFunction(
        "STDDEV_SAMP",
        1,
        _spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "STDDEV_SAMP(x)",
        "the standard deviation of a sample: the square root of its variance; NULL for fewer than two values",
        of_sample=True,
        is_root=True,
    ),
    AggregateFunction(
        "STDDEV_POP",
        1,
        _spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "STDDEV_POP(x)",
        "the standard deviation of a whole population",
        is_root=True,
    ),
    AggregateFunction(
        "VAR_SAMP",
        1,
        _spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "VAR_SAMP(x)",
        "the variance of a sample, computed exactly and rounded once; NULL for fewer than two values",
        of_sample=True,
    ),
    AggregateFunction(
        "VAR_POP",
        1,
        _spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "VAR_POP(x)",
        "the variance of a whole population",
    ),
    AggregateFunction(
        "APPROX_COUNT_DISTINCT",
        1,
        _counted,
        DistinctUse.IDLE,
        Statistic.ALL,
        "APPROX_COUNT_DISTINCT(x)",
        "about how many different values there are, by a sketch",
    ),
    AggregateFunction(
        "APPROX_QUANTILE",
        2,
        _quantile,
        DistinctUse.REFUSED,
        Statistic.ALL,
        "APPROX_QUANTILE(x, fraction)",
        "about the value that this fraction of the values do not exceed, as DOUBLE, by a sketch; "
        "0.5 is the median",
    ),
    AggregateFunction(
        "FIRST",
        1,
        _same,
        DistinctUse.IDLE,
        Statistic.FIRST,
        "FIRST(x)",
        "the value of the first row, in the order of rows",
    ),
    AggregateFunction(
        "LAST",
        1,
        _same,
        DistinctUse.REFUSED,
        Statistic.LAST,
        "LAST(x)",
        "the value of the last row, in the order of rows",
    ),
    AggregateFunction(
        "ARRAY_AGG",
        1,
        _listed,
        DistinctUse.REFUSED,
        Statistic.ALL,
        "ARRAY_AGG(x)",
        "all values in the order of rows, NULLs too, as an ARRAY, which can only be selected; "
        f"more than {ARRAY_ELEMENTS_MAX:,} are an error",
        keeps_nulls=True,
    ),
    AggregateFunction(
        "BOOL_AND",
        1,
        _condition,
        DistinctUse.IDLE,
        Statistic.LEAST,
        "BOOL_AND(x)",
        "whether x is TRUE wherever it is not NULL",
    ),
    AggregateFunction(
        "BOOL_OR",
        1,
        _condition,
        DistinctUse.IDLE,
        Statistic.GREATEST,
        "BOOL_OR(x)",
        "whether x is TRUE anywhere",
    ),
)

AGGREGATES: dict[str, AggregateFunction] = {function.name: function for function in _ALL}
AGGREGATE_ALIASES = {
    "STDDEV": "STDDEV_SAMP",
    "VARIANCE": "VAR_SAMP",
    "VAR": "VAR_SAMP",
    "MEAN": "AVG",
    "APPROX_DISTINCT": "APPROX_COUNT_DISTINCT",
    "APPROX_PERCENTILE": "APPROX_QUANTILE",
    "FIRST_VALUE": "FIRST",
    "ANY_VALUE": "FIRST",
    "LAST_VALUE": "LAST",
    "EVERY": "BOOL_AND",
}

#: Aggregates of other systems: what to write instead.
AGGREGATES_REFUSED = {
    "MEDIAN": "write APPROX_QUANTILE(x, 0.5)",
    "APPROX_MEDIAN": "write APPROX_QUANTILE(x, 0.5)",
    "QUANTILE": "write APPROX_QUANTILE(x, 0.99)",
    "PERCENTILE_CONT": "write APPROX_QUANTILE(x, 0.99)",
    "PERCENTILE_DISC": "write APPROX_QUANTILE(x, 0.99)",
    "APPROX_PERCENTILE_CONT": "write APPROX_QUANTILE(x, 0.99)",
    "STRING_AGG": "write ARRAY_AGG(x) and join the values where you fetch them",
    "GROUP_CONCAT": "write ARRAY_AGG(x) and join the values where you fetch them",
    "LISTAGG": "write ARRAY_AGG(x) and join the values where you fetch them",
    "COLLECT": "write ARRAY_AGG(x)",
    "COLLECT_LIST": "write ARRAY_AGG(x)",
    "COLLECT_SET": "write ARRAY_AGG(x) FROM (SELECT DISTINCT x FROM ...)",
    "LATEST_BY_OFFSET": "write LAST(x)",
    "EARLIEST_BY_OFFSET": "write FIRST(x)",
    "COUNT_DISTINCT": "write COUNT(DISTINCT x)",
    "TOPK": "write ORDER BY x DESC LIMIT 3",
    "LIST": "write ARRAY_AGG(x)",
    "COUNT_IF": "write COUNT(*) FILTER (WHERE condition)",
    "COUNTIF": "write COUNT(*) FILTER (WHERE condition)",
    "MAX_BY": "select the row in a subquery by ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS n",
    "MIN_BY": "select the row in a subquery by ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS n",
    "ARG_MAX": "select the row in a subquery by ROW_NUMBER() OVER (PARTITION BY k ORDER BY x DESC) AS n",
    "ARG_MIN": "select the row in a subquery by ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS n",
    "MODE": "count the values with GROUP BY, then ORDER BY the count and LIMIT 1",
    "CORR": "compute it from AVG(x), AVG(y), AVG(x * y), STDDEV_POP(x) and STDDEV_POP(y)",
    "COVAR_POP": "compute it as AVG(x * y) - AVG(x) * AVG(y)",
    "COVAR_SAMP": "compute it from AVG(x * y), AVG(x), AVG(y) and COUNT(*)",
    **dict.fromkeys(
        (
            "REGR_SLOPE",
            "REGR_INTERCEPT",
            "REGR_COUNT",
            "REGR_R2",
            "REGR_AVGX",
            "REGR_AVGY",
            "REGR_SXX",
            "REGR_SYY",
            "REGR_SXY",
        ),
        "compute it from SUM, AVG and COUNT of x, y, x * x and x * y",
    ),
    "BIT_AND": "there are no bit operators",
    "BIT_OR": "there are no bit operators",
    "BIT_XOR": "there are no bit operators",
    "ROW_NUMBER": "write ROW_NUMBER() OVER (PARTITION BY x ORDER BY y)",
}

JOINED_AGGREGATE = "FROM s a CROSS JOIN (SELECT AVG(v) AS m FROM s) b"
"""An aggregate beside each row: what to write in the place of a subquery as a value."""


def aggregate_named(name: str) -> AggregateFunction | None:
    """The aggregate of an upper-case name or alias, None if there is none."""
    return AGGREGATES.get(AGGREGATE_ALIASES.get(name, name))
