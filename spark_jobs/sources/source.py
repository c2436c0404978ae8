"""Where raw rows come from, whatever it is; what a raw row is says :mod:`spark_jobs.sources.reading`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from engine.model.source import Schema


class JobSource(Protocol):
    """An input of the job: all of it at once, or as a stream of units that rows are read from.

    A unit is what Spark's checkpoint counts: a file, a tick of a generator. All methods raise InputMissing,
    InputUnreadable, InputMismatch.
    """

    def rows(self, session: SparkSession, schema: Schema) -> DataFrame:
        """The raw rows that are there now."""
        ...

    def units(self, session: SparkSession) -> DataFrame:
        """A streaming DataFrame; each of its rows comes in one micro-batch."""
        ...

    def rows_of(self, units: DataFrame, schema: Schema) -> DataFrame:
        """The raw rows of one micro-batch's units."""
        ...

    def apart(self, units: DataFrame) -> Sequence[tuple[str, DataFrame]]:
        """The units one by one, named, so that one that can't be read is told from the others; or none."""
        ...
