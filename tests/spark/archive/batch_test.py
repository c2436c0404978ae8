"""Micro-batches to Delta tables: what is written, once however they are cut off, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from engine.model.batch import Batch
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import DOUBLE, STRING, TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN, decimal
from spark_jobs.archive.batch import archive_batch
from spark_jobs.archive.tables import results_target, stream_target
from spark_jobs.errors import PathNotWritable, RecordsLost, TableBusy, TopicReplaced
from storage.archive.coverage import AFTER_A_GAP, COMPLETE, Covered
from storage.archive.errors import ArchiveMismatch, ArchiveUnreadable, ColumnMismatch
from storage.archive.rows import to_table
from tests.registry import TestRegistry
from tests.spark.archive.cases import (
    NOW_MS,
    ORDERS,
    Record,
    archive,
    archived,
    frame,
    given,
    order,
    places,
    quarantined,
    ranges,
    read,
)
from tests.strategies import examples
from tests.topics.codec import TYPES
from tests.topics.codec import _records as values
from tests.topics.results import COLUMNS, KEYED, changes, pairs, to, written
from topics.codec import decode
from topics.keyed import decode_keyed
from topics.registry import RegistrySettings
from topics.registry_client import Registry
from topics.results_codec import AvroCodec
from topics.results_schema import ResultSchemas
from tureen.errors import SettingsError

H = 3_600_000
BAD: Record = (0, 2, b"k", b"{")


def test_rows_reasons_and_what_is_covered(spark: SparkSession, tmp_path: Path) -> None:
    records = [order(0, 0, 5), order(0, 1, 2 * H, None), BAD, order(1, 7, H, "zug")]
    written = archive(tmp_path, frame(spark, records), ranges((0, 0, 5), (1, 7, 8), (2, 0, 0)))
    assert [(one.table, one.rows) for one in written] == [("quarantine", 1), ("rows", 3)]
    rows = read(tmp_path)
    assert rows.to_arrow().select(["id", "city"]).to_pylist() == [
        {"id": 0, "city": "bern"},
        {"id": 1_007, "city": "zug"},
        {"id": 1, "city": None},
    ]
    assert (rows.partition.tolist(), rows.offset.tolist()) == ([0, 1, 0], [0, 7, 1])
    (bad,) = quarantined(tmp_path)
    assert (bad["_offset"], bad["key"], bad["value"], bad["_timestamp"]) == (2, b"k", b"{", NOW_MS + 2)
    assert "does not end" in bad["reason"]
    coverage = archived(tmp_path).coverage
    assert coverage.partitions == {0: Covered(0, 5, 2 * H), 1: Covered(7, 8, H), 2: Covered(0, 0)}
    assert (coverage.topic, coverage.topic_id) == (ORDERS.topic, "life")
    # Records of partition 1 went before the archive came: one of them may have been as late as allowed.
    assert coverage.complete_from_ms == H + 1_000 + 1


def test_a_table_is_partitioned_as_it_was_made(spark: SparkSession, tmp_path: Path) -> None:
    for number, by in enumerate(("day", "hour")):
        records = [order(0, 2 * number + n, 5 + n * H) for n in range(2)]
        told = ranges((0, 2 * number, 2 * number + 2))
        archive(tmp_path, frame(spark, records), told, targets=[stream_target(str(tmp_path), ORDERS, by)])
    table = DeltaTable(stream_target(str(tmp_path), ORDERS).uri)
    assert table.metadata().partition_columns == ["_date"]
    assert len(table.file_uris()) == 2  # a commit each, of two hours
    assert read(tmp_path).offset.tolist() == [0, 2, 1, 3]


def test_batches_that_are_cut_off_anywhere(spark: SparkSession, tmp_path: Path) -> None:
    """Each is begun, left after so many commits, and done again: as after a kill."""
    results = results_target(str(tmp_path), "results")
    targets = [stream_target(str(tmp_path), ORDERS), results]
    for cut in range(3):
        first = 4 * cut
        records = [order(0, first + n, n * H) for n in range(3)] + [(0, first + 3, None, b"bad")]
        rows, of = frame(spark, records), ranges((0, first, first + 4))
        if cut == 2:
            told = frame(spark, [(0, 0, b'{"query":"q","key":{}}', b'{"n":1}')], "results")
            rows, of = rows.unionByName(told), of | ranges((0, 0, 1), topic="results")
        killed = archive_batch(rows, of, targets, given())
        for _ in range(cut + 1):
            next(killed)
        killed.close()
        archive(tmp_path, rows, of, targets=targets)
    assert places(tmp_path) == [(0, n) for n in range(12) if n % 4 != 3]
    assert [row["_offset"] for row in quarantined(tmp_path)] == [3, 7, 11]
    assert [row._offset for row in spark.read.format("delta").load(results.uri).collect()] == [0]
    assert archived(tmp_path).coverage.partitions[0] == Covered(0, 12, 2 * H)


def test_two_at_the_same_time(spark: SparkSession, tmp_path: Path) -> None:
    """One has chosen its rows before the other commits some of them: its commit is not made."""
    records = [order(0, 0, 0), order(0, 1, 1), BAD, order(0, 3, 3)]
    slow = archive_batch(
        frame(spark, records), ranges((0, 0, 4)), [stream_target(str(tmp_path), ORDERS)], given()
    )
    next(slow)  # the quarantine is written
    archive(tmp_path, frame(spark, records[:2]), ranges((0, 0, 2)))
    with pytest.raises(TableBusy):
        next(slow)
    assert places(tmp_path) == [(0, 0), (0, 1)]
    archive(tmp_path, frame(spark, records), ranges((0, 0, 4)))
    assert places(tmp_path) == [(0, 0), (0, 1), (0, 3)]
    assert len(quarantined(tmp_path)) == 1


def test_records_that_gave_no_row_are_covered_too(spark: SparkSession, tmp_path: Path) -> None:
    archive(tmp_path, frame(spark, [order(0, 0, 5)]), ranges((0, 0, 1)))
    archive(tmp_path, frame(spark, [(0, 1, None, b"[]")]), ranges((0, 1, 3)))
    assert archived(tmp_path).coverage.partitions == {0: Covered(0, 3, 5)}
    archive(tmp_path, frame(spark, []), ranges((0, 3, 9)))  # markers of transactions alone
    found = archived(tmp_path)
    assert (found.coverage.partitions, found.count(0, NOW_MS)) == ({0: Covered(0, 9, 5)}, 1)


def test_records_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    archive(tmp_path, frame(spark, [order(0, 0, 5)]), ranges((0, 0, 1)))
    assert archived(tmp_path).coverage.complete_from_ms == COMPLETE
    later = frame(spark, [order(0, 7, 9_000), order(0, 6, 9_500)])
    with pytest.raises(RecordsLost, match="offsets 1 to 5") as lost:
        archive(tmp_path, later, ranges((0, 6, 8)))
    assert "--accept-gap" in str(lost.value.hint)
    assert places(tmp_path) == [(0, 0)]
    archive(tmp_path, later, ranges((0, 6, 8)), given(accept_gap=True))
    coverage = archived(tmp_path).coverage
    assert (coverage.partitions, coverage.complete_from_ms) == ({0: Covered(6, 8, 9_500)}, 10_501)
    # What Spark passed over without a word, because it went while it was being read.
    gone = given(accept_gap=True, begin=lambda _: {0: 11})
    archive(tmp_path, frame(spark, [order(0, 12, 20_000)]), ranges((0, 8, 13)), gone)
    coverage = archived(tmp_path).coverage
    assert (coverage.partitions, coverage.complete_from_ms) == ({0: Covered(11, 13, 20_000)}, 21_001)


def test_records_of_odd_times_behind_a_gap(spark: SparkSession, tmp_path: Path) -> None:
    """One that is late itself says nothing of those before it, nor does one that the broker refuses."""
    future = NOW_MS + ORDERS.future_max_ms + 1
    times = [-H, 5 * H, TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX, future, *(5 * H + n for n in range(AFTER_A_GAP))]
    records = [order(0, 4 + place, at_ms) for place, at_ms in enumerate(times)]
    archive(tmp_path, frame(spark, records), ranges((0, 4, 4 + len(records))))
    coverage = archived(tmp_path).coverage
    assert coverage.complete_from_ms == max(times[5:AFTER_A_GAP]) + ORDERS.lateness_ms + 1
    assert coverage.max_ms == max(times[5:])
    assert len(places(tmp_path)) == len(records)


def test_a_topic_that_was_made_again(spark: SparkSession, tmp_path: Path) -> None:
    rows = frame(spark, [order(0, 0, 5)])
    archive(tmp_path, rows, ranges((0, 0, 1)))
    with pytest.raises(TopicReplaced) as refused:
        archive(tmp_path, rows, ranges((0, 0, 1)), given("another life"))
    assert "deleted and created again" in str(refused.value)
    other = replace(ORDERS, topic="other")
    with pytest.raises(TopicReplaced):
        archive(tmp_path, frame(spark, [], "other"), ranges((0, 0, 1), topic="other"), stream=other)
    assert places(tmp_path) == [(0, 0)]


def test_columns_may_be_added_and_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    archive(tmp_path, frame(spark, [order(0, 0, 5)]), ranges((0, 0, 1)))
    price = Field("price", decimal(5, 2))
    wider = replace(ORDERS, schema=Schema((price, *ORDERS.schema.fields)))
    rows = frame(spark, [order(0, 1, 6, price="1.50")])
    archive(tmp_path, rows, ranges((0, 1, 2)), stream=wider)
    assert [str(row["price"]) for row in read(tmp_path, wider).to_arrow().to_pylist()] == ["None", "1.50"]
    archive(tmp_path, frame(spark, [order(0, 2, 7)]), ranges((0, 2, 3)))  # and one that was declared no more
    assert len(read(tmp_path)) == 3
    more = frame(spark, [order(0, 3, 8)])
    changed = replace(ORDERS, schema=Schema((Field("price", DOUBLE), *ORDERS.schema.fields)))
    with pytest.raises(ColumnMismatch) as refused:
        archive(tmp_path, more, ranges((0, 3, 4)), stream=changed)
    told = refused.value
    assert (told.name, told.archived, told.declared) == ("price", "decimal(5,2)", "double")
    capital = replace(ORDERS, schema=Schema((Field("City", STRING), *ORDERS.schema.fields[2:])))
    with pytest.raises(ArchiveMismatch, match="a column city, and the stream one City"):
        archive(tmp_path, more, ranges((0, 3, 4)), stream=capital)
    with pytest.raises(ArchiveMismatch, match=r"timestamp column of .* was at and is none now"):
        archive(tmp_path, more, ranges((0, 3, 4)), stream=replace(ORDERS, timestamp_column=None))
    with pytest.raises(ArchiveMismatch, match="PRIMARY KEY"):
        archive(tmp_path, more, ranges((0, 3, 4)), stream=replace(ORDERS, key=("id",)))
    assert len(places(tmp_path)) == 3


def test_what_stands_in_the_way(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "streams").write_text("a file")
    with pytest.raises(PathNotWritable):
        archive(tmp_path, frame(spark, [order(0, 0, 5)]), ranges((0, 0, 1)))
    foreign = tmp_path / "foreign"
    write_deltalake(stream_target(str(foreign), ORDERS).uri, to_table(ORDERS, Batch.empty(ORDERS.schema)))
    with pytest.raises(ArchiveUnreadable, match="none of its newest commits"):
        archive(foreign, frame(spark, [order(0, 0, 5)]), ranges((0, 0, 1)))
    results = results_target(str(tmp_path / "other"), "results")
    key = b"\0\0\0\0\x07" + b"\x02q"
    with pytest.raises(SettingsError, match="are in Avro, and no schema registry is named"):
        archive(
            tmp_path, frame(spark, [(0, 0, key, None)], "results"), ranges((0, 0, 1), topic="results"),
            targets=[results],
        )  # fmt: skip


ALL_TYPES = Stream(
    SourceName("all types"), Schema(tuple(Field(n, t) for n, t in TYPES.items())), ORDERS.topic
)
KEYS = st.sampled_from([None, b"", b"7", b'"x"', b'["a"]', b'{"s": "b"}', b"null", b"text", b"\xff"])


@drawn(st.lists(st.tuples(KEYS, values), min_size=30, max_size=200), st.booleans())
@settings(max_examples=examples(2))
def test_records_mean_what_they_mean_to_the_broker(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, records: list[Any], keyed: bool
) -> None:
    root = tmp_path_factory.mktemp("archive")
    stream = replace(ALL_TYPES, key=("s",) if keyed else ())
    n = len(records)
    told = [(0, place, key, value) for place, (key, value) in enumerate(records)]
    archive(root, frame(spark, told), ranges((0, 0, n)), stream=stream)
    keys, data = zip(*records, strict=True)
    where = (np.zeros(n, np.int32), np.arange(n), NOW_MS + np.arange(n))
    if keyed:
        expected = decode_keyed(stream, keys, data, *where)
    else:
        expected = decode(stream, data, *where)
    found = read(root, stream)
    assert str(found.to_arrow().to_pylist()) == str(expected.batch.to_arrow().to_pylist())
    assert found.timestamp.tolist() == expected.batch.timestamp.tolist()
    assert found.offset.tolist() == expected.batch.offset.tolist()
    bad = quarantined(root, "all~20types") if expected.bad else []
    assert [(row["_offset"], row["reason"]) for row in bad] == [
        (one.place, one.reason) for one in expected.bad
    ]


def test_results_in_avro(spark: SparkSession, tmp_path: Path) -> None:
    """By the schemas that a registry has; one that it does not know is a reason."""
    schemas = ResultSchemas("results", COLUMNS, (0,), "upsert")
    served = TestRegistry()
    served.start()
    try:
        registry = Registry(RegistrySettings(served.url))
        ids = [
            registry.id_of(f"results-{what}", text, "AVRO")
            for what, text in zip(("key", "value"), schemas.texts("avro"), strict=True)
        ]
        records = written(changes(KEYED[:1]), to("upsert", key=(0,)), AvroCodec(schemas, *ids))
        ((key, value),) = pairs(records)
        told = [(0, 0, key, value), (0, 1, b"\0\0\0\x03\xe7" + key[5:], None)]
        target = results_target(str(tmp_path), "results")
        circumstances = replace(given(), topic_ids={"results": "life"}, registry=registry)
        rows = frame(spark, told, "results")
        archive(tmp_path, rows, ranges((0, 0, 2), topic="results"), circumstances, [target])
    finally:
        served.stop()
    (row,) = DeltaTable(target.uri).to_pyarrow_table().to_pylist()
    assert (row["query_id"], row["key"], row["row"]) == ("a", '{"k":1}', '{"k":1,"v":"x"}')
    (bad,) = quarantined(tmp_path, "results")
    assert "schema 999, which the registry does not know" in bad["reason"]


def test_a_table_says_what_its_key_is(spark: SparkSession, tmp_path: Path) -> None:
    table = replace(ALL_TYPES, key=("s", "i"))
    archive(tmp_path, frame(spark, [(0, 0, b'["x", 1]', None)]), ranges((0, 0, 1)), stream=table)
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{stream_target(str(tmp_path), table).uri}`").first()
    assert detail is not None
    assert json.loads(detail.properties["tureen.key"]) == ["s", "i"]
    assert read(tmp_path, table).to_arrow().column("deleted").to_pylist() == [True]
