"""Places of events to the records of Nexmark's three topics: pure, for a batch and for a micro-batch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import TimestampType

from engine.language.query import CreateStream
from spark_jobs.nexmark.events import numbered, rows
from spark_jobs.nexmark.settings import NexmarkSettings
from spark_jobs.nexmark.streams import KEYS

ORDER = "place"
"""The column by which records are sorted before they are written."""


def records(
    places: DataFrame, settings: NexmarkSettings, statements: Mapping[str, CreateStream]
) -> DataFrame:
    """``place``, ``at`` (ms), ``topic``, ``key``, ``value`` of the events at these places, in no order.

    A pass over the places for each kind: one expression that makes any event is slower, as Spark then works
    out for each event what kinds have in common, and the code is too long for Java to compile well.
    """
    numbers = numbered(places, settings)
    parts = []
    for kind, statement in statements.items():
        typed = rows(numbers, kind, settings)
        members = (_plain(typed, field.name).alias(field.name) for field in statement.stream.schema)
        parts.append(
            typed.select(
                ORDER,
                "at",
                F.lit(statement.stream.topic).alias("topic"),
                F.col(KEYS[kind]).cast("string").alias("key"),
                F.to_json(F.struct(*members)).alias("value"),
            )
        )
    return reduce(DataFrame.unionByName, parts)


def in_order(records: DataFrame) -> DataFrame:
    """The records in one partition, sorted by ORDER."""
    return records.repartition(1).sortWithinPartitions(ORDER)


def _plain(typed: DataFrame, name: str) -> Column:
    """The value as JSON has it."""
    timestamp = isinstance(typed.schema[name].dataType, TimestampType)
    return F.unix_millis(name) if timestamp else F.col(name)
