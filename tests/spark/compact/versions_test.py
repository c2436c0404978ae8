"""Versions and their intervals, against records folded by hand: no files, only DataFrames."""

from __future__ import annotations

import itertools
import math
import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.compact import unfold
from spark_jobs.compact import versions as v
from storage.archive.layout import RESULT_SCHEMA
from tests.spark.compact import archives
from tureen.errors import SettingsError


def frame(spark: SparkSession, rows: list[dict[str, Any]], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def folded(
    state: pa.Table | None, records: DataFrame, shape: v.Shape, earliest_ms: int, spark: SparkSession
) -> pa.Table:
    """The history after one more fold, as a MERGE by record leaves it."""
    there = None if state is None else v.touched(spark.createDataFrame(state), records, shape, earliest_ms)
    changed = v.fold(there, records, shape).toArrow()
    if state is None:
        return changed
    places = {(row["_partition"], row["_offset"]) for row in changed.to_pylist()}
    kept = [row for row in state.to_pylist() if (row["_partition"], row["_offset"]) not in places]
    return pa.concat_tables([pa.Table.from_pylist(kept, changed.schema), changed])


def ordered(history: pa.Table) -> list[dict[str, Any]]:
    return history.sort_by([("_partition", "ascending"), ("_offset", "ascending")]).to_pylist()


def test_any_cuts_of_a_table_give_the_history_of_one_fold(spark: SparkSession) -> None:
    rows = archives.versions(1, 60)
    shape = v.table_shape(archives.TABLE_SCHEMA.names, ["id"])
    state = None
    cuts = [0, *sorted(random.Random(1).sample(range(1, 60), 2)), 60]
    for begin, end in itertools.pairwise(cuts):
        records = v.table_records(frame(spark, rows[begin:end], archives.TABLE_SCHEMA), shape)
        state = folded(state, records, shape, min(row["_timestamp"] for row in rows[begin:end]), spark)
    at_once = v.fold(None, v.table_records(frame(spark, rows, archives.TABLE_SCHEMA), shape), shape)
    assert ordered(state) == ordered(at_once.toArrow())


def test_a_table_is_as_of_every_instant_what_its_records_said(spark: SparkSession) -> None:
    rows = archives.versions(7, 60)
    shape = v.table_shape(archives.TABLE_SCHEMA.names, ["id"])
    history = v.fold(None, v.table_records(frame(spark, rows, archives.TABLE_SCHEMA), shape), shape)
    found = history.toArrow().to_pylist()

    assert len(found) == 60
    assert all(row["copies"] == (None if row["_deleted"] else archives.COPIES) for row in found)
    for instant in sorted({row["_timestamp"] + shift for row in rows for shift in (-1, 0)}):
        seen = sorted(
            (row["id"], row["city"])
            for row in found
            if row["valid_from_ms"] <= instant
            and (row["valid_to_ms"] is None or instant < row["valid_to_ms"])
        )
        assert seen == archives.relation(rows, instant)


def test_a_diff_that_began_before_its_archive_counts_below_zero(spark: SparkSession) -> None:
    def record(offset: int, weight: int) -> dict[str, Any]:
        return archives.placed(0, offset, 5 + offset) | {
            "query_id": "q", "format": "diff", "kind": "row", "key": '"hash"', "row": '{"n":1}',
            "weight": weight, "at_ms": 5 + offset,
        }  # fmt: skip

    rows = [record(0, -1), record(1, -1), record(2, 1), record(3, 1), record(4, 1)]
    records = v.result_records(frame(spark, rows, RESULT_SCHEMA))
    found = v.fold(None, records, v.RESULTS).orderBy("_offset").collect()

    assert [(row.copies, row.valid_from_ms, row.valid_to_ms) for row in found] == [
        (-1, 5, 6), (-2, 6, 7), (-1, 7, 8), (0, 8, 8), (1, 9, None),
    ]  # fmt: skip


def test_rows_of_json_unfold_to_typed_columns(spark: SparkSession) -> None:
    texts = [
        '{"v":1,"price":"1.50","at":"2024-01-02T03:04:05.678Z","x":1.0,"s":null,"a":[1,2]}',
        '{"v":1,"price":null,"at":null,"x":"NaN","s":"a","a":null}',
    ]
    rows = spark.createDataFrame(pa.table({"row": texts, "copies": [1, 1]}))
    given = {"price": "DECIMAL(9, 2)", "at": "TIMESTAMP", "x": "DOUBLE", "of_another_query": "DATE"}
    columns = unfold.columns_of(rows, given)

    assert [f"{field.name} {field.dataType.simpleString()}" for field in columns] == [
        "v bigint", "price decimal(9,2)", "at timestamp", "x double", "s string", "a array<bigint>",
    ]  # fmt: skip
    first, second = unfold.unfolded(rows, columns).toArrow().to_pylist()
    assert first == {
        "v": 1, "price": Decimal("1.50"), "at": datetime(2024, 1, 2, 3, 4, 5, 678_000, UTC), "x": 1.0,
        "s": None, "a": [1, 2], "copies": 1,
    }  # fmt: skip
    assert (second["price"], second["at"], second["s"]) == (None, None, "a")
    assert math.isnan(second["x"])
    for wrong in ({"y": "NUMBER"}, {"v": "NUMBER"}, {"v": "STRUCT<a INT>"}):
        with pytest.raises(SettingsError):
            unfold.columns_of(rows, wrong)
    with pytest.raises(SettingsError, match="copies"):
        unfold.columns_of(spark.createDataFrame(pa.table({"row": ['{"copies":1}']})), {})
