"""The inputs of the job by format, as :class:`~spark_jobs.sources.source.JobSource`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from engine.model.source import Schema
from spark_jobs.errors import InputMismatch
from spark_jobs.failures import reading
from spark_jobs.sources.jdbc import Jdbc
from spark_jobs.sources.reading import raw_of, read, read_files
from spark_jobs.sources.settings import SourcesSettings
from spark_jobs.sources.source import JobSource

_FILE = "path string, modificationTime timestamp, length long, content binary"
"""A row of Spark's format ``binaryFile``."""
_GLOB = re.compile(r"([{}\[\]*?\\])")


def source_of(settings: SourcesSettings) -> JobSource:
    """The input that the settings name."""
    if settings.jdbc is not None:
        return Jdbc(settings.jdbc, None if settings.stream is None else settings.stream.checkpoint)
    return Rate(settings) if settings.format == "rate" else FileSource(settings)


class FileSource(JobSource):
    """Files of rows. As a stream a unit is one file, taken when its name appears in a directory."""

    def __init__(self, settings: SourcesSettings) -> None:
        self._settings = settings

    def rows(self, session: SparkSession, schema: Schema) -> DataFrame:
        return read(session, self._settings, schema)

    def units(self, session: SparkSession) -> DataFrame:
        # The files' names alone: their contents are not opened where that column is not asked for. Then each
        # micro-batch reads its files as a batch run does, with their own headers and types.
        with reading(self._settings.inputs):
            streams = [
                session.readStream.format("binaryFile")
                .schema(_FILE)
                .option("maxFilesPerTrigger", str(self._settings.files_max))
                .load(path)
                .select("path")
                for path in self._settings.inputs
            ]
        return reduce(DataFrame.union, streams)

    def rows_of(self, units: DataFrame, schema: Schema) -> DataFrame:
        paths = [_GLOB.sub(r"\\\1", path) for path in _paths(units)]
        return read_files(units.sparkSession, self._settings, schema, paths)

    def apart(self, units: DataFrame) -> Sequence[tuple[str, DataFrame]]:
        session = units.sparkSession
        return [(path, session.createDataFrame([(path,)], "path string")) for path in _paths(units)]


def _paths(units: DataFrame) -> list[str]:
    """Each file once: Spark may list one twice in a batch, as where another's name looks like a glob."""
    return sorted({row.path for row in units.collect()})


class Rate(JobSource):
    """Spark's rate source: columns ``timestamp`` and ``value``, so many rows a second, for ever."""

    def __init__(self, settings: SourcesSettings) -> None:
        self._settings = settings

    def rows(self, session: SparkSession, schema: Schema) -> DataFrame:
        raise InputMismatch("the rate source has no end", hint="run it with --stream")

    def units(self, session: SparkSession) -> DataFrame:
        return (
            session.readStream.format("rate").option("rowsPerSecond", str(self._settings.rows_per_s)).load()
        )

    def rows_of(self, units: DataFrame, schema: Schema) -> DataFrame:
        with reading(("--select",)):
            table = units.selectExpr(f"struct({self._settings.select}) AS row").select("row.*")
        return raw_of(table, schema)

    def apart(self, units: DataFrame) -> Sequence[tuple[str, DataFrame]]:
        return []
