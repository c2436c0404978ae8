"""The tables that a topic's records go to, what their commits say, and commits that say what they cover.

A commit is made whole or not at all, and carries the coverage it makes true, so what a table has and what it
says it has never differ. Its number for Delta (``txnAppId``, ``txnVersion``) is made of what was covered
before: of two commits that were prepared at the same state Delta makes one, so that rows are there once,
whoever writes them how often.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from engine.model.source import Stream
from spark_jobs.archive.rows import stream_rows, with_reasons
from spark_jobs.errors import PathNotWritable, TableBusy
from spark_jobs.failures import exception_classes, root_text
from storage.archive import layout
from storage.archive.coverage import COMMITS_LOOKED_AT, STEPS_BACK_MS, Coverage, disorder_ms, in_force
from storage.archive.errors import ArchiveMismatch, ColumnMismatch

APPLICATION = "tureen.archive"
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_CONFLICTS = "io.delta.exceptions."
_COMMIT_INFO = '{"commitInfo":'

Decode = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where the records of a topic go. name: of the stream, or of the topic of results.

    partition_by: of a table that is not there yet.
    decode: what executors make of records; None: results, which need their schemas first.
    disorder_ms: how much older than one before it a record that counts may be.
    future_max_ms: how far ahead of the clock; None: no matter how far.
    """

    name: str
    topic: str
    uri: str
    quarantine_uri: str
    schema: pa.Schema
    partition_by: tuple[str, ...]
    properties: Mapping[str, str] = field(default_factory=dict)
    decode: Decode | None = None
    disorder_ms: int = 0
    future_max_ms: int | None = None

    @property
    def rows_schema(self) -> StructType:
        """What decoding gives, as Spark has it."""
        return from_arrow_schema(with_reasons(self.schema))


def stream_target(root: str, stream: Stream, by: layout.PartitionBy = "hour") -> Target:
    """The target of a stream or table. by: what a partition of a new table holds. Raises ArchiveMismatch."""
    name = str(stream.name)
    return Target(
        name,
        stream.topic,
        layout.table_uri(root, "streams", name),
        layout.table_uri(root, "quarantine", name),
        layout.stream_schema(stream),
        layout.STREAM_PARTITIONS[by],
        {
            layout.KEY_PROPERTY: json.dumps([layout.column_name(column) for column in stream.key]),
            layout.TIME_PROPERTY: stream.timestamp_column or "",
        },
        partial(stream_rows, stream=stream),
        disorder_ms(stream),
        stream.future_max_ms if stream.event_time else None,
    )


def results_target(root: str, topic: str) -> Target:
    """The target of a topic of results."""
    return Target(
        topic,
        topic,
        layout.table_uri(root, "results", topic),
        layout.table_uri(root, "quarantine", topic),
        layout.RESULT_SCHEMA,
        layout.RESULT_PARTITIONS,
        disorder_ms=STEPS_BACK_MS,
    )


Commits = dict[str, dict[int, str | None]]
"""What the newest commits of tables say: table's id -> version -> userMetadata. Kept from batch to batch, so
that a commit is read once."""


class ArchiveTable:
    """A Delta table at a URI, which may not be there yet. commits: what is known of them, kept up to date."""

    def __init__(self, session: SparkSession, uri: str, commits: Commits) -> None:
        self._session = session
        self._java = _java_classes(session._jvm)
        self.uri = uri
        self._name = "delta.`" + uri.replace("`", "``") + "`"
        self._commits = commits

    def coverage(self) -> Coverage | None:
        """What it has; None where it is not there, or no commit says so. Raises ArchiveVersionUnknown."""
        with _reaching(self.uri):
            snapshot = self._snapshot()
            newest = int(snapshot.version())
            if newest < 0:
                return None
            before = self._commits.get(str(snapshot.metadata().id()), {})
            found: dict[int, str | None] = {}
            for version in range(newest, max(newest - COMMITS_LOOKED_AT, -1), -1):
                try:
                    found[version] = before[version] if version in before else self._said(version)
                except FileNotFoundError:
                    break  # Delta has tidied its log up, and what is older does not count
            self._commits[str(snapshot.metadata().id())] = found
        return in_force(found.values())

    def partitioned_by(self) -> tuple[str, ...]:
        """The columns whose values are its directories: as it was made."""
        with _reaching(self.uri):
            columns = self._snapshot().metadata().partitionColumns()
            return tuple(str(columns.apply(number)) for number in range(columns.size()))

    def _said(self, version: int) -> str | None:
        """The userMetadata of a commit. Raises FileNotFoundError."""
        path = self._java.path(f"{self.uri}/_delta_log/{version:020}.json")
        jsc: Any = self._session._jsc
        files = path.getFileSystem(jsc.hadoopConfiguration())
        if not files.exists(path):
            raise FileNotFoundError(str(path))
        stream = files.open(path)
        try:
            lines = self._java.buffered(self._java.characters(stream, "UTF-8"))
            while (line := lines.readLine()) is not None:  # Delta writes it first
                if line.startswith(_COMMIT_INFO):
                    text: str | None = json.loads(line)["commitInfo"].get("userMetadata")
                    return text
        finally:
            stream.close()
        return None

    def create(
        self,
        schema: pa.Schema,
        partition_by: tuple[str, ...],
        properties: Mapping[str, str],
        coverage: Coverage,
    ) -> None:
        """Make it, empty, with a coverage that says so; nothing happens where it is there."""
        columns = ", ".join(
            f"{_quoted(one.name)} {one.dataType.simpleString()}" for one in from_arrow_schema(schema)
        )
        told = ", ".join(f"{_text(name)} = {_text(value)}" for name, value in properties.items())
        statement = (
            f"CREATE TABLE IF NOT EXISTS {self._name} ({columns}) USING delta"
            + (f" PARTITIONED BY ({', '.join(map(_quoted, partition_by))})" if partition_by else "")
            + (f" TBLPROPERTIES ({told})" if told else "")
        )
        with _reaching(self.uri):
            self._session.conf.set(_USER_METADATA, coverage.to_text())
            try:
                self._session.sql(statement)
            finally:
                self._session.conf.unset(_USER_METADATA)

    def check(self, schema: pa.Schema, properties: Mapping[str, str]) -> None:
        """Raises ArchiveMismatch: rows of this schema cannot join those that are there."""
        with _reaching(self.uri):
            metadata = self._snapshot().metadata()
            found = StructType.fromJson(json.loads(metadata.schemaString()))
            held = {name: metadata.configuration().get(name) for name in properties}
        types = {one.name: one.dataType for one in found}
        folded = {name.casefold(): name for name in types}
        for wanted in from_arrow_schema(schema):
            if wanted.name in types:
                if types[wanted.name] != wanted.dataType:
                    raise ColumnMismatch(
                        self.uri,
                        wanted.name,
                        types[wanted.name].simpleString(),
                        wanted.dataType.simpleString(),
                        hint="columns may be added, not changed: declare the column as it was, or another "
                        "column, or archive into another directory",
                    )
            elif wanted.name.casefold() in folded:
                other = folded[wanted.name.casefold()]
                raise ArchiveMismatch(
                    f"{self.uri} has a column {other}, and the stream one {wanted.name}",
                    hint="Delta tables ignore case in names: name the column as before",
                )
        for name, option in held.items():
            before = str(option.get()) if option.isDefined() else None
            if before is not None and before != properties[name]:
                what = "PRIMARY KEY" if name == layout.KEY_PROPERTY else "timestamp column"
                now = properties[name]
                raise ArchiveMismatch(
                    f"the {what} of {self.uri} was {before or 'none'} and is {now or 'none'} now",
                    hint="rows of both cannot be in one table: archive into another directory",
                )

    def append(
        self, rows: DataFrame, partition_by: tuple[str, ...], before: Coverage, after: Coverage
    ) -> None:
        """Commit rows, with what the table covers then.

        before: what it covered when the rows were chosen; ``after`` covers more. Raises TableBusy (another
        run has committed since; these rows were not), PathNotWritable.
        """
        writer = rows.write.format("delta").mode("append").partitionBy(*partition_by)
        options = {
            "txnAppId": f"{APPLICATION}.{after.topic_id}",
            "txnVersion": str(before.reached + 1),
            "userMetadata": after.to_text(),
            "mergeSchema": "true",
        }
        with _reaching(self.uri):
            writer.options(**options).save(self.uri)
        found = self.coverage()
        if found is None or any(
            number not in found.partitions or found.partitions[number].next_offset < one.next_offset
            for number, one in after.partitions.items()
        ):
            raise _busy(self.uri)

    def _snapshot(self) -> Any:
        log = self._java.delta_log.forTable(self._session._jsparkSession, self.uri)
        none = self._java.option.empty()
        return log.update(False, none, none)


@dataclass(frozen=True, slots=True)
class _JavaClasses:
    """Java's classes that are used here; finding one by its name takes a look into every jar for each dot."""

    path: Any
    buffered: Any
    characters: Any
    delta_log: Any
    option: Any


@lru_cache(maxsize=1)
def _java_classes(jvm: Any) -> _JavaClasses:
    return _JavaClasses(
        jvm.org.apache.hadoop.fs.Path,
        jvm.java.io.BufferedReader,
        jvm.java.io.InputStreamReader,
        jvm.org.apache.spark.sql.delta.DeltaLog,
        jvm.scala.Option,
    )


@contextmanager
def _reaching(uri: str) -> Iterator[None]:
    """Around what reads or writes a table. Raises TableBusy, PathNotWritable."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        classes = exception_classes(error)
        if any("kafka" in name for name in classes):
            raise  # the rows could not be read, which is told by whoever reads them
        if any(name.startswith(_CONFLICTS) for name in classes):
            raise _busy(uri) from error
        raise PathNotWritable(
            uri, root_text(error), hint="is there space, and the right to read and write?"
        ) from error


def _busy(uri: str) -> TableBusy:
    return TableBusy(
        uri, hint="is another archive job at work on it? one is enough; nothing was written twice"
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
