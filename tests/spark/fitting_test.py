"""What a declared type takes from text and from Parquet's types, and why it refuses."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from engine.model.source import Stream
from engine.model.types import Kind
from spark_jobs.errors import InputMismatch
from spark_jobs.sources.declaring import declared_stream
from spark_jobs.sources.fitting import check
from spark_jobs.sources.reading import raw_of
from spark_jobs.types import spark_type


def stream(sql: str) -> Stream:
    return declared_stream(sql).stream


def taken(spark: SparkSession, declared: str, found: DataType, values: list[Any]) -> list[Any]:
    """What each value becomes as a column of the declared type, or ``Refused`` with the reason."""
    one = stream(f"CREATE STREAM s (v {declared})")
    table = spark.createDataFrame(
        [(place, value) for place, value in enumerate(values)],
        StructType([StructField("place", IntegerType()), StructField("v", found)]),
    )
    raw = raw_of(table, one.schema)
    checked = check(raw, one)
    value = F.col("row.v")
    if one.schema.fields[0].type.kind is Kind.TIMESTAMP:
        value = F.unix_millis(value)
    rows = checked.select(F.get_json_object("record", "$.place").cast("int").alias("place"), value, "reason")
    found_rows = sorted(rows.collect(), key=lambda row: row[0])
    assert [row[0] for row in found_rows] == list(range(len(values)))
    return [Refused(row[2]) if row[2] is not None else row[1] for row in found_rows]


class Refused:
    """A refusal with its reason; equal to ``REFUSED``."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"Refused({self.reason!r})"


NO = Refused()
NOON_MS = 1_717_236_000_000  # 2024-06-01 10:00:00 UTC

TEXTS: dict[str, list[tuple[str | None, Any]]] = {
    "BOOLEAN": [
        ("true", True),
        ("F", False),
        (" yes ", True),
        ("0", False),
        (None, None),
        ("maybe", NO),
        ("", NO),
    ],
    "INTEGER": [
        ("7", 7),
        (" -007 ", -7),
        ("2147483647", 2**31 - 1),
        ("2147483648", NO),
        ("1.0", NO),
        ("1e3", NO),
        ("0x10", NO),
        ("", NO),
        ("٣", NO),
    ],
    "BIGINT": [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", NO),
    ],
    "DOUBLE": [
        ("1.5", 1.5),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("0.1", 0.1),
        ("NaN", NO),
        ("Infinity", NO),
        ("1e999", NO),
        ("1d", NO),
        ("1,5", NO),
    ],
    "DECIMAL(9, 2)": [
        ("12.30", Decimal("12.30")),
        ("-0.01", Decimal("-0.01")),
        (".5", Decimal("0.50")),
        ("1.2300", Decimal("1.23")),
        ("9999999.99", Decimal("9999999.99")),
        ("10000000", NO),
        ("1.005", NO),
        ("1e2", NO),
        (".", NO),
    ],
    "DECIMAL(18, 0)": [
        ("999999999999999999", Decimal(10**18 - 1)),
        ("1.", Decimal(1)),
        ("1.5", NO),
        (".0", NO),
    ],
    "STRING": [("", ""), (" a ", " a "), ("Zürich 🚀 \u0000", "Zürich 🚀 \u0000"), (None, None)],
    "DATE": [
        ("2024-02-29", date(2024, 2, 29)),
        ("0001-01-01", date(1, 1, 1)),
        ("2023-02-29", NO),
        ("0000-01-01", NO),
        ("2024", NO),
        ("2024-02-29 10:00", NO),
    ],
    "TIMESTAMP": [
        ("2024-06-01 10:00:00", NOON_MS),
        ("2024-06-01T12:00:00.123+02:00", NOON_MS + 123),
        ("2024-06-01T10:00:00.123999Z", NOON_MS + 123),
        ("2024-06-01 10:00", NOON_MS),
        ("1969-12-31 23:59:59.9995", -1),
        ("2024-06-01", NOON_MS - 36_000_000),
        (str(NOON_MS), NOON_MS),
        ("-1", -1),
        ("0001-01-01 00:00:00", -62_135_596_800_000),
        ("9999-12-31 23:59:59.999", 253_402_300_799_999),
        ("999999999999999", NO),
        ("10:00", NO),
        ("2024-06-01 25:00:00", NO),
        ("2024-06-01 10:00:00 Europe/Berlin", NO),
        ("yesterday", NO),
    ],
}


@pytest.mark.parametrize("declared", TEXTS)
def test_text(spark: SparkSession, declared: str) -> None:
    given, expected = zip(*TEXTS[declared], strict=True)
    assert taken(spark, declared, StringType(), list(given)) == list(expected)


TYPED: list[tuple[str, DataType, list[tuple[Any, Any]]]] = [
    ("BOOLEAN", BooleanType(), [(True, True), (None, None)]),
    ("INTEGER", LongType(), [(5, 5), (2**31, NO)]),
    ("INTEGER", DoubleType(), [(5.0, 5), (5.5, NO), (float("nan"), NO), (1e300, NO)]),
    ("BIGINT", DoubleType(), [(2.0**53, 2**53), (2.0**63, NO), (-(2.0**63), -(2**63))]),
    (
        "BIGINT",
        DecimalType(20, 1),
        [(Decimal("7.0"), 7), (Decimal("7.5"), NO), (Decimal(10**18 * 10 - 1), NO)],
    ),
    ("DOUBLE", FloatType(), [(0.5, 0.5), (float("inf"), NO)]),
    ("DECIMAL(9, 2)", DecimalType(12, 4), [(Decimal("1.2300"), Decimal("1.23")), (Decimal("1.2345"), NO)]),
    ("DECIMAL(9, 2)", DoubleType(), [(0.1, Decimal("0.10")), (0.125, NO), (1e12, NO)]),
    ("STRING", LongType(), [(5, "5"), (None, None)]),
    ("DATE", DateType(), [(date(2024, 1, 2), date(2024, 1, 2))]),
    ("TIMESTAMP", LongType(), [(NOON_MS, NOON_MS), (2**62, NO)]),
    ("TIMESTAMP", TimestampType(), [(datetime(2024, 6, 1, 10, 0, 0, 123_999, UTC), NOON_MS + 123)]),
    ("TIMESTAMP", TimestampNTZType(), [(datetime(2024, 6, 1, 10), NOON_MS)]),
    ("TIMESTAMP", DateType(), [(date(1970, 1, 2), 86_400_000)]),
]


@pytest.mark.parametrize(
    ("declared", "found", "values"), TYPED, ids=[f"{d} of {f.simpleString()}" for d, f, _ in TYPED]
)
def test_types_of_files(spark: SparkSession, declared: str, found: DataType, values: list[Any]) -> None:
    given, expected = zip(*values, strict=True)
    assert taken(spark, declared, found, list(given)) == list(expected)


def test_a_column_of_a_wrong_type_is_refused_before_any_row(spark: SparkSession) -> None:
    table = spark.createDataFrame([(True, b"x")], "a boolean, b binary")
    with pytest.raises(InputMismatch) as caught:
        raw_of(table, stream("CREATE STREAM s (a DOUBLE, b STRING)").schema)
    assert "a is boolean and can't become DOUBLE" in caught.value.message
    assert "b is binary and can't become STRING" in caught.value.message


def test_columns_are_found_by_name_then_regardless_of_case(spark: SparkSession) -> None:
    one = stream('CREATE STREAM s ("City" STRING, id BIGINT, "a.b`c" STRING)')
    table = spark.createDataFrame([("1", "x", "Bern", "y")], ["ID", "city", "City", "a.b`c"])
    [row] = check(raw_of(table, one.schema), one).collect()
    assert row.row.asDict() == {"City": "Bern", "id": 1, "a.b`c": "y"}
    with pytest.raises(InputMismatch, match="no column idd") as caught:
        raw_of(table, stream("CREATE STREAM s (id BIGINT, idd BIGINT)").schema)
    assert "it has ID, city" in str(caught.value)


def test_reasons_name_every_column_and_nulls_where_values_must_be(spark: SparkSession) -> None:
    one = stream(
        "CREATE STREAM s (id BIGINT NOT NULL, price DECIMAL(9, 2), at TIMESTAMP) WITH (timestamp = 'at')"
    )
    table = spark.createDataFrame(
        [("1", "x" * 100, "now"), (None, "1", None), ("3", None, "2024-06-01")],
        "id string, price string, at string",
    )
    checked = check(raw_of(table, one.schema), one)
    reasons = [row.reason for row in checked.collect()]
    assert reasons == [
        f"price: '{'x' * 40}' is not a value of DECIMAL(9, 2); at: 'now' is not a value of TIMESTAMP",
        "id: NULL, but a value is required; at: NULL, but a value is required",
        None,
    ]
    assert [f.dataType for f in checked.schema["row"].dataType] == [spark_type(f.type) for f in one.schema]
