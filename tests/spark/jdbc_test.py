"""Tables of a real database, the Derby that comes with Spark: at once, and by an increasing column."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from spark_jobs.errors import CheckpointMismatch, InputMismatch, InputUnreadable, RowsRefused
from spark_jobs.running import Stop
from spark_jobs.settings import StreamSettings
from spark_jobs.sources.jdbc import beyond, largest
from spark_jobs.sources.jdbc_settings import JdbcSettings
from spark_jobs.sources.job import SourcesReport, run
from spark_jobs.sources.remembered import Remembered
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.sources.stream import run_streaming
from spark_jobs.streaming import StreamReport
from tests.spark.job import messages_of, orders, rows_of
from tureen.errors import SettingsError

STARTED = datetime(2025, 1, 1, tzinfo=UTC)


class Database:
    """A database in the memory of Spark's driver, with a table of orders."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.jvm: Any = spark._jvm
        self.url = f"jdbc:derby:memory:{name}"
        self._connection = self.jvm.java.sql.DriverManager.getConnection(f"{self.url};create=true")
        self.do(
            'CREATE TABLE orders (id BIGINT PRIMARY KEY, "City" VARCHAR(40), price DECIMAL(12, 3), '
            'paid BOOLEAN, "day" DATE, "at" TIMESTAMP, weight DOUBLE, comment CLOB)'
        )

    def do(self, sql: str) -> None:
        self._connection.createStatement().execute(sql)

    def put(self, number: int, price: str = "1.5", at: str = "2024-06-01 10:00:00") -> None:
        """An order."""
        self.do(
            f"INSERT INTO orders VALUES ({number}, 'Zürich ''old''', {price}, {number % 2 == 0}, "
            f"DATE('2024-02-29'), TIMESTAMP('{at}'), 0.1, 'x')"
        )

    def drop(self) -> None:
        self._connection.close()
        with pytest.raises(Py4JJavaError):  # Derby says so when it has dropped it
            self.jvm.java.sql.DriverManager.getConnection(f"{self.url};drop=true")


@pytest.fixture
def database(spark: SparkSession, service_id: str, tmp_path: Path) -> Iterator[Database]:
    jvm: Any = spark._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    one = Database(spark, service_id)
    yield one
    one.drop()


def settings_of(kafka: str, service_id: str, jdbc: JdbcSettings, **others: Any) -> SourcesSettings:
    given: dict[str, Any] = {
        "sql": orders(service_id),
        "inputs": (),
        "format": "jdbc",
        "kafka": {"bootstrap.servers": kafka},
        "service_id": service_id,
        "key": "id",
        "jdbc": jdbc,
    }
    return SourcesSettings(**given | others)


def test_a_table_to_a_topic(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path, database: Database
) -> None:
    database.put(2, at="2024-06-01 10:00:02.123456")
    database.put(1, price="-9999999.99", at="1969-12-31 23:59:59.999")
    database.put(7, price="1.005")  # of three places: does not fit
    database.do("INSERT INTO orders (id, \"at\") VALUES (3, TIMESTAMP('2024-03-31 02:30:00'))")
    aside = tmp_path / "aside"
    cut = JdbcSettings(database.url, "ORDERS", partition_column="ID", lower="0", upper="10", partitions=3)
    settings = settings_of(kafka, service_id, cut, quarantine=str(aside))
    report = run(spark, settings, STARTED)
    topic = f"{service_id}-orders"
    assert report == SourcesReport("orders", topic, 1, True, 4, 3, 1, str(aside), -1, 1717236002123)
    full = {"city": "Zürich 'old'", "day": date(2024, 2, 29)}
    empty = dict.fromkeys(("city", "price", "paid", "day"))
    assert rows_of(kafka, settings.sql) == [
        {"id": 1, **full, "price": Decimal("-9999999.99"), "paid": False,
         "at": datetime(1969, 12, 31, 23, 59, 59, 999_000)},
        {"id": 3, **empty, "at": datetime(2024, 3, 31, 2, 30)},  # as it stands, whatever Java's zone
        {"id": 2, **full, "price": Decimal("1.50"), "paid": True,
         "at": datetime(2024, 6, 1, 10, 0, 2, 123_000)},
    ]  # fmt: skip
    [bad] = spark.read.parquet(str(aside)).collect()
    assert (bad.file, bad.reason) == ("ORDERS", "price: '1.005' is not a value of DECIMAL(9, 2)")
    assert json.loads(bad.record)["COMMENT"] == "x"

    query = 'SELECT id, "City", price / 1 AS price, paid, "day", "at" FROM orders WHERE id IN (1, 2)'
    asked = settings_of(
        kafka,
        service_id,
        JdbcSettings(database.url, query=query),
        declare=False,
        sql=orders(service_id, topic=f"{service_id}-query"),
    )
    assert run(spark, asked, STARTED).rows_written == 2


def test_rows_that_come_are_read_once(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path, database: Database
) -> None:
    jdbc = JdbcSettings(database.url, "ORDERS", increasing="id")

    def go(**others: Any) -> StreamReport:
        once = StreamSettings(str(tmp_path / "checkpoint"), once=True)
        settings = settings_of(kafka, service_id, others.pop("jdbc", jdbc), stream=once, **others)
        return run_streaming(spark, settings, Stop(), STARTED)

    def ids() -> list[bytes | None]:
        return [message.key() for message in messages_of(kafka, f"{service_id}-orders")]

    assert go().rows == 0
    database.put(1)
    database.put(2)
    assert go().rows == 2

    # A crash between the records and Spark's note of them; the next run does the same batch again.
    for file in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        file.unlink()
    database.put(3)
    assert go().rows == 3
    assert ids() == [b"1", b"2", b"3"]

    # A run dies on a row that does not fit; more rows come before the next one, which reads the same first.
    database.put(10, price="1.005")
    with pytest.raises(RowsRefused, match="ORDERS: price"):
        go()
    database.do("UPDATE orders SET price = 1 WHERE id = 10")
    database.put(11)
    assert go().rows == 2
    assert ids() == [b"1", b"2", b"3", b"10", b"11"]

    with pytest.raises(CheckpointMismatch, match="increasing was 'id' and is 'at'"):
        go(jdbc=JdbcSettings(database.url, "ORDERS", increasing="at"))


def test_any_type_with_an_order_increases(spark: SparkSession) -> None:
    one = {
        "whole": "9007199254740993L", "exact": "12345678901234.0001BD", "ratio": "0.1D",
        "day": "DATE'2024-02-28'", "text": "'a''b'", "at": "TIMESTAMP_NTZ'2024-06-01 10:00:00.000001'",
        "zoned": "TIMESTAMP'2024-06-01 10:00'",
    }  # fmt: skip
    two = {
        "whole": "9007199254740994L", "exact": "12345678901234.0002BD", "ratio": "0.10000000000000002D",
        "day": "DATE'2024-02-29'", "text": "'b'", "at": "TIMESTAMP_NTZ'2024-06-01 10:00:00.000002'",
        "zoned": "TIMESTAMP'2024-06-01 10:00:00.000001'",
    }  # fmt: skip
    shape = ", ".join(f"{{}} AS {name}" for name in one)
    first, both = (
        spark.sql(" UNION ALL ".join(f"SELECT {shape.format(*row.values())}" for row in rows))
        for rows in ([one], [one, two])
    )
    ends = first.select([F.max(name).cast("string").alias(name) for name in one]).collect()[0].asDict()
    beyond_one = both.select([F.count_if(beyond(both, name, ends[name])).alias(name) for name in one])
    beyond_none = both.select([F.count_if(beyond(both, name, None)).alias(name) for name in one])
    assert beyond_one.collect()[0].asDict() == dict.fromkeys(one, 1)
    assert beyond_none.collect()[0].asDict() == dict.fromkeys(one, 2)
    assert largest(both, "at", ends["at"]) == "2024-06-01 10:00:00.000002"
    assert largest(first, "at", ends["at"]) is None


def test_what_is_noted_of_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "notes")
    notes = Remembered(spark, path, kept=3)
    assert notes.of(0) is None
    assert notes.before(5) is None
    for number in (1, 2, 4, 9, 10):
        notes.note(number, {"n": number})
    again = Remembered(spark, path, kept=3)
    assert again.of(9) == {"n": 9}
    assert again.before(9) == {"n": 4}
    assert again.before(99) == {"n": 10}
    assert again.of(1) is None  # of no use any more
    names = sorted(file.name for file in (tmp_path / "notes").iterdir() if not file.name.startswith("."))
    assert names == [f"{number:012}" for number in (2, 4, 9, 10)]


def test_databases_that_cannot_be_read(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path, database: Database
) -> None:
    def go(**others: Any) -> None:
        run(spark, settings_of(kafka, service_id, JdbcSettings(**{"url": database.url} | others)), STARTED)

    with pytest.raises(InputUnreadable, match=r"NOTHING cannot be read: .*NOTHING"):
        go(table="NOTHING")
    with pytest.raises(InputUnreadable, match="ClassNotFoundException") as missing:
        go(table="ORDERS", driver="org.example.Driver")
    assert "--package" in str(missing.value.hint)
    with pytest.raises(InputUnreadable, match="No suitable driver"):
        go(url="jdbc:nobody:x", table="ORDERS")
    with pytest.raises(InputUnreadable, match="not found"):
        go(url="jdbc:derby:memory:absent", table="ORDERS")
    with pytest.raises(InputMismatch, match="no column city"):
        go(query="SELECT id FROM orders")


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"url": "postgresql://h/d"}, "does not begin with jdbc:"),
        ({"url": "jdbc:x://h/d?user=a&Password=b"}, "contains a password"),
        ({"table": None}, "either"),
        ({"query": "SELECT 1"}, "either"),
        ({"lower": "1"}, "go together"),
        ({"partitions": 2}, "go together"),
        ({"partitions": 0}, "not within 1"),
    ],
)
def test_settings_of_a_database(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        JdbcSettings(**{"url": "jdbc:x://h/d", "table": "t"} | wrong)


def test_settings_that_need_each_other() -> None:
    jdbc = JdbcSettings("jdbc:x:y", "t", password="secret")
    assert "secret" not in repr(settings_of("a:1", "s", jdbc))
    with pytest.raises(SettingsError, match="no database"):
        settings_of("a:1", "s", None)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="no --input"):
        settings_of("a:1", "s", jdbc, inputs=("x",))
    with pytest.raises(SettingsError, match="--increasing COLUMN go together"):
        settings_of("a:1", "s", jdbc, stream=StreamSettings("c"))
    with pytest.raises(SettingsError, match="of the format jdbc"):
        settings_of("a:1", "s", jdbc, format="csv", inputs=("x",))
