"""Whole runs: files to a real Kafka, and what the broker's decoder reads there."""

from __future__ import annotations

import gzip
import json
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import InputMismatch, InputMissing, InputUnreadable, PathNotWritable, RowsRefused
from spark_jobs.sources.job import SourcesReport, run
from spark_jobs.sources.settings import SourcesSettings
from tests.kafka import free_ports
from tests.spark.job import STARTED, messages_of, orders, rows_of
from topics.admin import Admin
from tureen.errors import KafkaUnavailable, SyntaxRefused
from tureen.protocol import TopicNames


def settings_of(kafka: str, service_id: str, inputs: Path | str, **others: Any) -> SourcesSettings:
    given: dict[str, Any] = {
        "sql": orders(service_id),
        "inputs": (str(inputs),),
        "format": "csv",
        "kafka": {"bootstrap.servers": kafka},
        "service_id": service_id,
    }
    return SourcesSettings(**given | others)


def test_csv_to_a_topic_and_back(spark: SparkSession, kafka: str, service_id: str, tmp_path: Path) -> None:
    inputs = tmp_path / "orders"
    inputs.mkdir()
    (inputs / "1.csv").write_text(
        "at,ID,city,price,paid,day,comment\n"
        "2024-06-01 10:00:03,3,Zürich 🚀,0.10,true,2024-02-29,\n"
        '2024-06-01 10:00:01.250,1,"Bern, ""old""\ntown",9999999.99,f,1969-12-31,x\n'
        "2024-06-01 10:00:09,9,Basel,1.005,true,2024-01-01,rounded\n"
        "2024-06-01 10:00:08,8,Basel\n",
        encoding="utf-8",
    )
    with gzip.open(inputs / "2.csv.gz", "wt", encoding="utf-8") as second:
        second.write(
            "at,ID,city,price,paid,day,comment\n"
            '2024-06-01T12:00:02+02:00,2,NA,,,NA,\n2024-06-01 10:00:00,0,"",-1,0,0001-01-01,\n,4,,,,,\n'
        )
    quarantine = tmp_path / "aside"
    settings = settings_of(kafka, service_id, inputs, key="id", quarantine=str(quarantine), null_text="NA")

    report = run(spark, settings, STARTED)

    topic = f"{service_id}-orders"
    noon = datetime(2024, 6, 1, 10)
    assert report == SourcesReport(
        "orders", topic, 1, True, 7, 4, 3, str(quarantine), 1717236000000, 1717236003000
    )
    assert rows_of(kafka, settings.sql) == [
        {"id": 0, "city": "", "price": Decimal("-1.00"), "paid": False, "day": date(1, 1, 1), "at": noon},
        {
            "id": 1, "city": 'Bern, "old"\ntown', "price": Decimal("9999999.99"), "paid": False,
            "day": date(1969, 12, 31), "at": noon.replace(second=1, microsecond=250_000),
        },
        {"id": 2, "city": None, "price": None, "paid": None, "day": None, "at": noon.replace(second=2)},
        {
            "id": 3, "city": "Zürich 🚀", "price": Decimal("0.10"), "paid": True, "day": date(2024, 2, 29),
            "at": noon.replace(second=3),
        },
    ]  # fmt: skip
    assert [message.key() for message in messages_of(kafka, topic)] == [b"0", b"1", b"2", b"3"]

    [declared] = messages_of(kafka, TopicNames(service_id).sources)
    assert (declared.key(), json.loads(declared.value() or b"")) == (b"orders", {"sql": settings.sql})

    aside = {row.reason: row for row in spark.read.parquet(str(quarantine)).collect()}
    assert sorted(aside) == [
        "at: NULL, but a value is required",
        "price: '1.005' is not a value of DECIMAL(9, 2)",
        "the line does not have 7 columns as the header has",
    ]
    price = aside["price: '1.005' is not a value of DECIMAL(9, 2)"]
    assert price.file.endswith("/orders/1.csv")
    assert json.loads(price.record)["comment"] == "rounded"
    assert aside["the line does not have 7 columns as the header has"].record == "2024-06-01 10:00:08,8,Basel"


def test_parquet_and_json_give_the_same_rows(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    table = spark.sql(
        "SELECT 7L AS id, 'Bern' AS city, 1.50BD AS price, true AS paid, DATE'2024-01-01' AS day, "
        "TIMESTAMP'2024-06-01 10:00:00.123456' AS at"
    )
    table.write.parquet(str(tmp_path / "parquet"))
    (tmp_path / "rows.jsonl").write_text(
        '{"id": 7, "city": "Bern", "price": 1.50, "paid": true, "day": "2024-01-01", "at": 1717236000123}\n'
    )
    found = []
    for form, path in (("parquet", tmp_path / "parquet"), ("json", tmp_path / "rows.jsonl")):
        sql = orders(service_id, topic=f"{service_id}-{form}")
        run(spark, settings_of(kafka, service_id, path, format=form, sql=sql, declare=False), STARTED)
        found.append(rows_of(kafka, sql))
    assert found[0] == found[1]
    assert found[0][0]["at"] == datetime(2024, 6, 1, 10, 0, 0, 123_000)
    assert TopicNames(service_id).sources not in Admin({"bootstrap.servers": kafka}).topics()


def test_without_a_quarantine_a_bad_row_refuses_the_run(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,city,price,paid,day,at\n1,a,,,,2024-06-01\n2,b,lots,,,2024-06-01\n")
    with pytest.raises(RowsRefused) as caught:
        run(spark, settings_of(kafka, service_id, tmp_path / "a.csv"), STARTED)
    assert caught.value.rows == 1
    assert "a.csv: price: 'lots' is not a value of DECIMAL(9, 2)" in caught.value.message
    assert messages_of(kafka, f"{service_id}-orders") == []
    assert messages_of(kafka, TopicNames(service_id).sources) == []


def test_inputs_that_cannot_be_used(spark: SparkSession, kafka: str, service_id: str, tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"no file at .*nothing\.csv"):
        run(spark, settings_of(kafka, service_id, tmp_path / "nothing.csv"), STARTED)
    (tmp_path / "a.csv").write_text("id,town\n1,a\n")
    with pytest.raises(InputMismatch, match="no column city, price, paid, day, at"):
        run(spark, settings_of(kafka, service_id, tmp_path / "a.csv"), STARTED)
    with pytest.raises(InputUnreadable, match=r"a\.csv cannot be read"):
        run(spark, settings_of(kafka, service_id, tmp_path / "a.csv", format="parquet"), STARTED)
    (tmp_path / "headers").mkdir()
    header = "id,city,price,paid,day,at"
    (tmp_path / "headers" / "1.csv").write_text(f"{header}\n1,a,,,,2024-06-01\n")
    (tmp_path / "headers" / "2.csv").write_text("city,id,price,paid,day,at\na,1,,,,2024-06-01\n")
    with pytest.raises(InputUnreadable, match=r"headers cannot be read: .*header"):
        run(spark, settings_of(kafka, service_id, tmp_path / "headers"), STARTED)
    with pytest.raises(SyntaxRefused):
        run(spark, settings_of(kafka, service_id, tmp_path / "headers", sql="CREATE STREAM"), STARTED)


def test_a_quarantine_that_cannot_be_written(
    spark: SparkSession, kafka: str, service_id: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,city,price,paid,day,at\nx,a,,,,2024-06-01\n")
    (tmp_path / "file").write_text("")
    settings = settings_of(kafka, service_id, tmp_path / "a.csv", quarantine=str(tmp_path / "file" / "aside"))
    with pytest.raises(PathNotWritable) as caught:
        run(spark, settings, STARTED)
    assert caught.value.path == settings.quarantine
    assert messages_of(kafka, f"{service_id}-orders") == []


def test_no_kafka(
    spark: SparkSession, service_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id,city,price,paid,day,at\n1,a,,,,2024-06-01\n")
    monkeypatch.setattr("spark_jobs.sources.declaring.ADMIN_TIMEOUT_S", 1.0)
    [port] = free_ports(1)
    with pytest.raises(KafkaUnavailable):
        run(spark, settings_of(f"127.0.0.1:{port}", service_id, tmp_path / "a.csv"), STARTED)
