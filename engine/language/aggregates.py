"""The catalogue of aggregates: name, arity, types, what a call gives, and what it is computed from.

Everything that is known of an aggregate stands here, a row each; its types in
:mod:`engine.language.aggregate_signatures`, how it is computed in
:mod:`engine.operators.aggregates`.

All but COUNT(*) and ARRAY_AGG pass over rows where the argument is NULL. Without such rows COUNT and
APPROX_COUNT_DISTINCT are 0 and all others NULL. An argument that is an error is passed over and counted.
Every aggregate takes FILTER (WHERE ...). Numbers are added exactly and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from engine.language import aggregate_signatures as signatures
from engine.language.signatures import Signature, Types
from engine.model.expressions import Expression

ARRAY_ELEMENTS_MAX = 100_000
COLUMNS_MAX = 64
"""Arguments of COUNT."""
STRING_BYTES_MAX = 1 << 20
"""A string that STRING_AGG makes is no longer."""


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
    VALUES = "all of them, in whatever order"
    ERRORS = "how many rows an argument or a filter that is an error keeps out"

    __hash__ = object.__hash__


_INVERTIBLE = {Statistic.COUNT, Statistic.SUM, Statistic.SPREAD}
_IN_ORDER = {Statistic.FIRST, Statistic.LAST, Statistic.ALL}


@dataclass(frozen=True, slots=True)
class Arguments:
    """How many an aggregate has: from ``least`` to ``most``, of which ``of_rows`` are taken from each row and
    those behind them are literals.
    """

    least: int = 1
    most: int = 1
    of_rows: int = 1


ONE = Arguments()
WITH_LITERAL = Arguments(2, 2)
TWO = Arguments(2, 2, of_rows=2)


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One aggregate."""

    name: str
    arguments: Arguments
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
        return not self.order_dependent and self.statistic is not Statistic.VALUES

    def types(self, arguments: Sequence[Expression]) -> Types:
        """The types that the arguments become, and the result's. Raises Unfit."""
        return self.signature(arguments)


def _of_pairs(name: str, doc: str, signature: Signature = signatures.pairs) -> AggregateFunction:
    """A function of pairs of numbers: rows where one of them is NULL are passed over."""
    usage = f"{name}(y, x)"
    return AggregateFunction(name, TWO, signature, DistinctUse.REFUSED, Statistic.VALUES, usage, doc)


_ALL = (
    AggregateFunction(
        "COUNT",
        Arguments(1, COLUMNS_MAX, of_rows=COLUMNS_MAX),
        signatures.counted,
        DistinctUse.SERVED,
        Statistic.COUNT,
        "COUNT(*), COUNT([DISTINCT] x, ...)",
        "the number of rows, or of rows where no x is NULL, as BIGINT",
        takes_rows=True,
    ),
    AggregateFunction(
        "SUM",
        ONE,
        signatures.total,
        DistinctUse.SERVED,
        Statistic.SUM,
        "SUM([DISTINCT] x)",
        "the sum: BIGINT for whole numbers, DECIMAL(18, places) for DECIMAL, else DOUBLE; "
        "all are added exactly; a total of whole numbers or decimals that does not fit is an error",
    ),
    AggregateFunction(
        "AVG",
        ONE,
        signatures.mean,
        DistinctUse.SERVED,
        Statistic.SUM,
        "AVG([DISTINCT] x)",
        "the mean as DOUBLE: the exact sum, divided and rounded once",
        is_mean=True,
    ),
    AggregateFunction(
        "MIN",
        ONE,
        signatures.ordered,
        DistinctUse.IDLE,
        Statistic.LEAST,
        "MIN(x)",
        "the least value; NaN is above all numbers",
    ),
    AggregateFunction(
        "MAX", ONE, signatures.ordered, DistinctUse.IDLE, Statistic.GREATEST, "MAX(x)", "the greatest value"
    ),
    AggregateFunction(
        "STDDEV_SAMP",
        ONE,
        signatures.spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "STDDEV_SAMP(x)",
        "the standard deviation of a sample: the square root of its variance; NULL for fewer than two values",
        of_sample=True,
        is_root=True,
    ),
    AggregateFunction(
        "STDDEV_POP",
        ONE,
        signatures.spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "STDDEV_POP(x)",
        "the standard deviation of a whole population",
        is_root=True,
    ),
    AggregateFunction(
        "VAR_SAMP",
        ONE,
        signatures.spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "VAR_SAMP(x)",
        "the variance of a sample, computed exactly and rounded once; NULL for fewer than two values",
        of_sample=True,
    ),
    AggregateFunction(
        "VAR_POP",
        ONE,
        signatures.spread,
        DistinctUse.REFUSED,
        Statistic.SPREAD,
        "VAR_POP(x)",
        "the variance of a whole population",
    ),
    AggregateFunction(
        "APPROX_COUNT_DISTINCT",
        ONE,
        signatures.counted,
        DistinctUse.IDLE,
        Statistic.ALL,
        "APPROX_COUNT_DISTINCT(x)",
        "about how many different values there are, by a sketch",
    ),
    AggregateFunction(
        "APPROX_QUANTILE",
        WITH_LITERAL,
        signatures.quantile,
        DistinctUse.REFUSED,
        Statistic.ALL,
        "APPROX_QUANTILE(x, fraction)",
        "about the value that this fraction of the values do not exceed, as DOUBLE, by a sketch; "
        "0.5 is the median",
    ),
    AggregateFunction(
        "FIRST",
        ONE,
        signatures.same,
        DistinctUse.IDLE,
        Statistic.FIRST,
        "FIRST(x)",
        "the value of the first row, in the order of rows",
    ),
    AggregateFunction(
        "LAST",
        ONE,
        signatures.same,
        DistinctUse.REFUSED,
        Statistic.LAST,
        "LAST(x)",
        "the value of the last row, in the order of rows",
    ),
    AggregateFunction(
        "ARRAY_AGG",
        ONE,
        signatures.listed,
        DistinctUse.REFUSED,
        Statistic.ALL,
        "ARRAY_AGG(x [ORDER BY y])",
        "all values in the order of rows, NULLs too, as an ARRAY; "
        f"more than {ARRAY_ELEMENTS_MAX:,} are an error",
        keeps_nulls=True,
    ),
    AggregateFunction(
        "BOOL_AND",
        ONE,
        signatures.condition,
        DistinctUse.IDLE,
        Statistic.LEAST,
        "BOOL_AND(x)",
        "whether x is TRUE wherever it is not NULL",
    ),
    AggregateFunction(
        "BOOL_OR",
        ONE,
        signatures.condition,
        DistinctUse.IDLE,
        Statistic.GREATEST,
        "BOOL_OR(x)",
        "whether x is TRUE anywhere",
    ),
    AggregateFunction(
        "MEDIAN",
        ONE,
        signatures.interpolated,
        DistinctUse.SERVED,
        Statistic.VALUES,
        "MEDIAN([DISTINCT] x)",
        "the value in the middle, or the mean of the two there, as DOUBLE: PERCENTILE_CONT(x, 0.5)",
    ),
    AggregateFunction(
        "PERCENTILE_CONT",
        Arguments(2, 3),
        signatures.interpolated,
        DistinctUse.SERVED,
        Statistic.VALUES,
        "PERCENTILE_CONT(x, fraction), PERCENTILE_CONT(fraction) WITHIN GROUP (ORDER BY x)",
        "the value at this fraction of the way from the least to the greatest, between two values on a line "
        "from one to the other, as DOUBLE; NaN is above all numbers",
    ),
    AggregateFunction(
        "PERCENTILE_DISC",
        Arguments(2, 3),
        signatures.chosen,
        DistinctUse.SERVED,
        Statistic.VALUES,
        "PERCENTILE_DISC(x, fraction), PERCENTILE_DISC(fraction) WITHIN GROUP (ORDER BY x)",
        "the first value, in order, up to which there is at least this fraction of them",
    ),
    AggregateFunction(
        "MODE",
        ONE,
        signatures.same,
        DistinctUse.REFUSED,
        Statistic.VALUES,
        "MODE(x), MODE() WITHIN GROUP (ORDER BY x)",
        "the most frequent value, the least of several",
    ),
    AggregateFunction(
        "STRING_AGG",
        Arguments(1, 2),
        signatures.joined,
        DistinctUse.SERVED,
        Statistic.ALL,
        "STRING_AGG([DISTINCT] x, separator [ORDER BY y])",
        "all values as one string with the separator (a comma without one) between them, "
        "in the order of rows or by ORDER BY; an error where it is longer than 1 MiB",
    ),
    AggregateFunction(
        "BIT_AND",
        ONE,
        signatures.bits,
        DistinctUse.IDLE,
        Statistic.VALUES,
        "BIT_AND(x)",
        "the bits that all values have",
    ),
    AggregateFunction(
        "BIT_OR",
        ONE,
        signatures.bits,
        DistinctUse.IDLE,
        Statistic.VALUES,
        "BIT_OR(x)",
        "the bits that any value has",
    ),
    AggregateFunction(
        "BIT_XOR",
        ONE,
        signatures.bits,
        DistinctUse.SERVED,
        Statistic.VALUES,
        "BIT_XOR([DISTINCT] x)",
        "the bits that an odd number of values have",
    ),
    AggregateFunction(
        "ARG_MIN",
        TWO,
        signatures.at_extreme,
        DistinctUse.IDLE,
        Statistic.ALL,
        "ARG_MIN(x, y)",
        "x of the row where y is least, the first of several; rows where x or y is NULL are passed over",
    ),
    AggregateFunction(
        "ARG_MAX",
        TWO,
        signatures.at_extreme,
        DistinctUse.IDLE,
        Statistic.ALL,
        "ARG_MAX(x, y)",
        "x of the row where y is greatest, the first of several",
    ),
    _of_pairs("COVAR_POP", "the covariance of a whole population"),
    _of_pairs("COVAR_SAMP", "the covariance of a sample; NULL for fewer than two pairs"),
    _of_pairs("CORR", "the coefficient of correlation; NULL where y or x is the same everywhere"),
    _of_pairs("REGR_COUNT", "the number of pairs, as BIGINT", signatures.counted_pairs),
    _of_pairs("REGR_AVGX", "the mean of x"),
    _of_pairs("REGR_AVGY", "the mean of y"),
    _of_pairs("REGR_SXX", "the sum of the squares of x less its mean"),
    _of_pairs("REGR_SYY", "the sum of the squares of y less its mean"),
    _of_pairs("REGR_SXY", "the sum of the products of y and x less their means"),
    _of_pairs(
        "REGR_SLOPE",
        "the slope of the line of least squares; NULL where x is the same everywhere",
    ),
    _of_pairs("REGR_INTERCEPT", "where that line meets the axis of y"),
    _of_pairs("REGR_R2", "the square of CORR(y, x); 1 where only y is the same everywhere"),
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
    "LOGICAL_AND": "BOOL_AND",
    "LOGICAL_OR": "BOOL_OR",
    "QUANTILE_CONT": "PERCENTILE_CONT",
    "QUANTILE_DISC": "PERCENTILE_DISC",
    "LISTAGG": "STRING_AGG",
    "GROUP_CONCAT": "STRING_AGG",
    "MAX_BY": "ARG_MAX",
    "MIN_BY": "ARG_MIN",
    "COLLECT_LIST": "ARRAY_AGG",
    "LIST": "ARRAY_AGG",
}

#: Aggregates of other systems: what to write instead.
AGGREGATES_REFUSED = {
    "APPROX_MEDIAN": "write APPROX_QUANTILE(x, 0.5)",
    "QUANTILE": "write PERCENTILE_DISC(x, 0.99) or PERCENTILE_CONT(x, 0.99)",
    "APPROX_PERCENTILE_CONT": "write APPROX_QUANTILE(x, 0.99)",
    "COLLECT": "write ARRAY_AGG(x)",
    "COLLECT_SET": "write ARRAY_AGG(DISTINCT x)",
    "LATEST_BY_OFFSET": "write LAST(x)",
    "EARLIEST_BY_OFFSET": "write FIRST(x)",
    "COUNT_DISTINCT": "write COUNT(DISTINCT x)",
    "TOPK": "write ORDER BY x DESC LIMIT 3",
    "COUNT_IF": "write COUNT(*) FILTER (WHERE condition)",
    "COUNTIF": "write COUNT(*) FILTER (WHERE condition)",
    "ROW_NUMBER": "write ROW_NUMBER() OVER (PARTITION BY x ORDER BY y)",
}

JOINED_AGGREGATE = "FROM s a CROSS JOIN (SELECT AVG(v) AS m FROM s) b"
"""An aggregate beside each row: what to write in the place of a subquery as a value."""


def aggregate_named(name: str) -> AggregateFunction | None:
    """The aggregate of an upper-case name or alias, None if there is none."""
    return AGGREGATES.get(AGGREGATE_ALIASES.get(name, name))
