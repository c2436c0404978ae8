"""Tureen's column types as Spark's: the one place that knows both.

| Tureen        | Spark          | what Spark types a column of files may have to become it |
|---------------|----------------|-----------------------------------------------------------|
| BOOLEAN       | boolean        | boolean                                                   |
| INTEGER       | int            | any number without a fraction, in range                   |
| BIGINT        | bigint         | any number without a fraction, in range                   |
| DOUBLE        | double         | any number                                                |
| DECIMAL(p, s) | decimal(p, s)  | any number that it holds exactly                          |
| STRING        | string         | any but binary and nested ones                            |
| DATE          | date           | date                                                      |
| TIMESTAMP     | timestamp      | timestamp, timestamp_ntz (as UTC), date, bigint (ms)      |

Text may become any of them. Spark's timestamp is an instant with microseconds; Tureen's is ms since 1970.
"""

from __future__ import annotations

from pyspark.sql import types as spark

from engine.model.types import Kind, Type

_SPARK: dict[Kind, spark.DataType] = {
    Kind.BOOLEAN: spark.BooleanType(),
    Kind.INTEGER: spark.IntegerType(),
    Kind.BIGINT: spark.LongType(),
    Kind.DOUBLE: spark.DoubleType(),
    Kind.STRING: spark.StringType(),
    Kind.DATE: spark.DateType(),
    Kind.TIMESTAMP: spark.TimestampType(),
}

_NUMBERS = (spark.IntegralType, spark.FractionalType)
_SOURCES: dict[Kind, tuple[type[spark.DataType], ...]] = {
    Kind.BOOLEAN: (spark.BooleanType,),
    Kind.INTEGER: _NUMBERS,
    Kind.BIGINT: _NUMBERS,
    Kind.DOUBLE: _NUMBERS,
    Kind.DECIMAL: _NUMBERS,
    Kind.STRING: (spark.BooleanType, *_NUMBERS, spark.DateType, spark.TimestampType, spark.TimestampNTZType),
    Kind.DATE: (spark.DateType,),
    Kind.TIMESTAMP: (spark.TimestampType, spark.TimestampNTZType, spark.DateType, spark.LongType),
}


def spark_type(type_: Type) -> spark.DataType:
    """The Spark type that holds a column of this type."""
    if type_.kind is Kind.DECIMAL:
        return spark.DecimalType(type_.precision, type_.scale)
    return _SPARK[type_.kind]


def can_become(found: spark.DataType, declared: Type) -> bool:
    """Whether a column of this Spark type may hold values of the declared one; each is checked later. Nested
    values are not made of columns of files.
    """
    if declared.is_nested:
        return False
    return isinstance(found, (spark.StringType, spark.NullType, *_SOURCES[declared.kind]))
