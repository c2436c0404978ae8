"""Matches for a job of one's own: which records are matched."""

from __future__ import annotations

from pyspark.sql import SparkSession

from engine.model.step import Registration
from spark_jobs.scale_out.matching import matched
from spark_jobs.scale_out.micro_batch import Plan
from tests.spark.archive.cases import ORDERS, frame, order
from tureen.protocol import HEADER_HEARTBEAT

SQL = (
    "CREATE STREAM orders (id BIGINT NOT NULL, city STRING, at TIMESTAMP) "
    "WITH (topic = 'topic-orders', timestamp = 'at', lateness = '1 second')"
)


def test_heartbeats_match_no_query(spark: SparkSession) -> None:
    """Whatever their values are; other headers make no difference."""
    wanted = [order(0, 0, 5), order(0, 1, 6, "zug")]
    plain = frame(spark, wanted, headers=[("trace", b"x")])
    beats = frame(spark, [order(0, 2, 7), (0, 3, None, None)], headers=[(HEADER_HEARTBEAT, b"7")])
    registration = Registration("q", "SELECT id FROM orders WHERE city = 'bern' EMIT CHANGES")
    plan = Plan(1, ((ORDERS, SQL),), (), ((registration, "rows"),))
    found = matched(plain.unionByName(beats), "orders", lambda: plan).collect()
    assert sorted((row.offset, row.queries) for row in found) == [(0, [0]), (1, [])]
