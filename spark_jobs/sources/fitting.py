"""Raw rows to typed rows, each with the reason why it is not one where it is not.

A value is taken if the declared type holds it exactly, else the row is refused: nothing is rounded, cut or
wrapped around, but for two things that a type says itself: DOUBLE is approximate, TIMESTAMP drops what is
finer than a millisecond. What text stands for which value is what the broker's own decoder takes, and besides

- blanks around a value count only in a STRING,
- BOOLEAN: also t, f, yes, no, y, n, 1, 0, in any case,
- TIMESTAMP: also a date alone (its midnight), and a whole number as ms since 1970.

NaN and infinities are refused: JSON has none. A checked row has the columns ``row`` (struct of the declared
types), ``record``, ``file``, and ``reason``, NULL where the row fits.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    FractionalType,
    LongType,
    NullType,
    StringType,
    StructType,
)

from engine.model.source import Stream
from engine.model.types import Kind, Type
from spark_jobs.types import spark_type

SHOWN_CHARACTERS = 40
TIMESTAMP_MS_MIN = -62_135_596_800_000
TIMESTAMP_MS_MAX = 253_402_300_799_999
"""The years 1 to 9999."""

_INTEGER = r"^[+-]?[0-9]+\z"
_DOUBLE = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\z"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}\z"
_INSTANT = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?\z"
)
_MILLISECONDS = r"^[+-]?[0-9]{1,15}\z"


def check(raw: DataFrame, stream: Stream) -> DataFrame:
    """Checked rows of raw ones. Every row of ``raw`` is in the result once."""
    found = raw.schema["value"].dataType
    assert isinstance(found, StructType)
    fits = {f.name: fit(_of("value", f.name), found[f.name].dataType, f.type) for f in stream.schema}
    typed = raw.select("*", F.struct(*(column.alias(name) for name, column in fits.items())).alias("row"))
    reasons = []
    for field in stream.schema:
        given, value = _of("value", field.name), _of("row", field.name)
        shown = F.substring(given.cast("string"), 1, SHOWN_CHARACTERS)
        needed = not field.nullable or field.name == stream.timestamp_column
        reasons.append(
            F.when(
                given.isNotNull() & value.isNull(),
                F.concat(F.lit(f"{field.name}: '"), shown, F.lit(f"' is not a value of {field.type}")),
            ).when(F.lit(needed) & given.isNull(), F.lit(f"{field.name}: NULL, but a value is required"))
        )
    reason = F.coalesce(F.col("broken"), F.nullif(F.concat_ws("; ", *reasons), F.lit("")))
    return typed.select("row", "record", "file", reason.alias("reason"))


def fit(given: Column, found: DataType, declared: Type) -> Column:
    """The value as the declared type; NULL where it is not one. Needs a session in UTC."""
    wanted = spark_type(declared)
    if isinstance(found, NullType):
        return F.lit(None).cast(wanted)
    if isinstance(found, StringType):
        return _text(given, declared)
    kind = declared.kind
    if kind is Kind.STRING:
        return given.cast("string")
    if kind is Kind.TIMESTAMP:
        if isinstance(found, LongType):
            return _instant(given)
        return _within(given.cast("timestamp"))
    if isinstance(found, (BooleanType, DateType)):
        return given
    if kind is Kind.DOUBLE:
        return _finite(given.cast("double"))
    value = given.try_cast(wanted)
    if isinstance(found, FractionalType):
        # A double of 2^63 becomes the largest BIGINT, which as a double is 2^63.
        in_range = given < F.lit(2.0**63) if kind is Kind.BIGINT else F.lit(True)
        return F.when((value.cast(found) == given) & in_range, value)
    return value


def _text(given: Column, declared: Type) -> Column:
    wanted = spark_type(declared)
    text = F.trim(given)
    match declared.kind:
        case Kind.STRING:
            return given
        case Kind.BOOLEAN:
            return text.try_cast(wanted)
        case Kind.INTEGER | Kind.BIGINT:
            return F.when(text.rlike(_INTEGER), text.try_cast(wanted))
        case Kind.DOUBLE:
            return F.when(text.rlike(_DOUBLE), _finite(text.try_cast(wanted)))
        case Kind.DECIMAL:
            return F.when(text.rlike(_exact_decimal(declared.scale)), text.try_cast(wanted))
        case Kind.DATE:
            day = text.try_cast(wanted)
            return F.when(text.rlike(_DATE) & (F.year(day) >= 1), day)
        case _:
            ms = F.when(text.rlike(_MILLISECONDS), text.try_cast("bigint"))
            instant = F.when(text.rlike(_INSTANT), text.try_cast(wanted))
            return F.coalesce(_instant(ms), _within(instant))


def _exact_decimal(scale: int) -> str:
    """Digits with at most ``scale`` places, zeros after them aside; no exponent."""
    places = rf"[0-9]{{0,{scale}}}0*"
    return rf"^[+-]?([0-9]+(\.{places})?" + (rf"|\.[0-9]{{1,{scale}}}0*)\z" if scale else r")\z")


def _finite(value: Column) -> Column:
    return F.when(~F.isnan(value) & (F.abs(value) != F.lit(float("inf"))), value)


def _instant(ms: Column) -> Column:
    """A timestamp from ms since 1970, within the years 1 to 9999; Spark's own overflows far beyond."""
    return F.when(ms.between(TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX), F.timestamp_millis(ms))


def _within(instant: Column) -> Column:
    return F.when(F.unix_millis(instant).between(TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX), instant)


def _of(struct: str, name: str) -> Column:
    return F.col(struct).getField(name)
