"""Typed rows to the messages of a topic, as the broker's decoder reads them.

A message is one JSON object with every declared column: TIMESTAMP as ms since 1970, DATE as ``YYYY-MM-DD``,
DECIMAL as a text of all its digits (readers that take numbers for floats would lose some), NULL as null.

The messages of a stream in event time are in the order of their timestamps, and one task writes them: a row
that comes after one of a later time would be late, however short the time between the two writes was.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.model.source import Schema, Stream
from engine.model.types import Kind, Type
from spark_jobs.errors import InputMismatch

MESSAGE_BYTES_MAX = 1024 * 1024
"""A longer record is a dead letter to the broker."""


def with_messages(checked: DataFrame, stream: Stream, key: str | None) -> DataFrame:
    """Checked rows with their ``key`` and ``message``; one that is too long gets a reason.

    Raises InputMismatch: the key is no column of the stream.
    """
    if key is not None and stream.schema.index(key) is None:
        names = ", ".join(f.name for f in stream.schema)
        raise InputMismatch(f"the key {key!r} is no column of {stream.name}", hint=f"there are {names}")
    written = checked.select(
        "*",
        F.when(F.col("reason").isNull(), _message(stream.schema)).alias("message"),
        (F.lit(None).cast("string") if key is None else _key(stream.schema, key)).alias("key"),
    )
    length = F.octet_length("message")
    too_long = F.when(
        length > MESSAGE_BYTES_MAX,
        F.concat(length.cast("string"), F.lit(f" bytes are more than the {MESSAGE_BYTES_MAX} allowed")),
    )
    return written.withColumn("reason", F.coalesce("reason", too_long))


def messages(written: DataFrame, stream: Stream) -> DataFrame:
    """The rows that fit, as texts ``key`` and ``value``, in one partition, in the order to write them."""
    good = written.where(F.col("reason").isNull())
    outputs = (F.col("key"), F.col("message").alias("value"))
    if stream.timestamp_column is None:
        return good.select(*outputs).coalesce(1)
    at = F.unix_millis(_value(stream.timestamp_column)).alias("at")
    ordered = good.select(at, *outputs).repartition(1).sortWithinPartitions("at", "value")
    return ordered.select("key", "value")


def quarantined(written: DataFrame, stream: Stream) -> DataFrame:
    """The rows that do not fit: ``stream``, ``file``, ``reason``, ``record``."""
    bad = written.where(F.col("reason").isNotNull())
    return bad.select(F.lit(str(stream.name)).alias("stream"), "file", "reason", "record")


def _message(schema: Schema) -> Column:
    members = (_plain(_value(f.name), f.type).alias(f.name) for f in schema)
    return F.to_json(F.struct(*members), {"ignoreNullFields": "false"})


def _key(schema: Schema, name: str) -> Column:
    place = schema.index(name)
    assert place is not None
    return _plain(_value(name), schema.fields[place].type).cast("string")


def _plain(value: Column, type_: Type) -> Column:
    """The value as JSON has it."""
    if type_.kind is Kind.TIMESTAMP:
        return F.unix_millis(value)
    if type_.kind in (Kind.DECIMAL, Kind.DATE):
        return value.cast("string")
    return value


def _value(name: str) -> Column:
    return F.col("row").getField(name)
