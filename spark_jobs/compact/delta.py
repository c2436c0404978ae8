"""One Delta table as compaction sees it: its files, what its commits say, and commits that repeat it.

Reads Delta's log through the session's JVM, so the packages that the session loads are all it takes. Every
commit made here carries a ``userMetadata`` text; of two writers that are in each other's way one is told so
(:class:`~spark_jobs.errors.TableBusy`), the other has committed whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_jobs.errors import CompactionFailed, TableBusy
from spark_jobs.failures import exception_classes, root_text
from storage.archive.coverage import COMMITS_LOOKED_AT, Coverage, in_force

_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_CONFLICTS = "io.delta.exceptions."
_TXN_APP = "spark.databricks.delta.write.txnAppId"
_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
FOLD_APP = "tureen.fold"
"""Delta's transaction id of folds: its version is the number of the fold a table has."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Files of one partition. values: of the partition columns, None for NULL; newest_ms: of the last."""

    values: tuple[str | None, ...]
    files: int
    bytes: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class Folded:
    """How far a history has come. number: of the fold; position: partition -> next offset of the topic, whose
    life ``topic_id`` tells; empty where nobody said.
    """

    number: int
    position: Mapping[int, int]
    source: str = ""
    topic_id: str = ""

    def to_text(self) -> str:
        """As the commits of history and current table carry it."""
        position = {str(partition): offset for partition, offset in sorted(self.position.items())}
        told = {"version": 1, "source": self.source, "fold": self.number, "folded": position}
        if self.topic_id:
            told["topic_id"] = self.topic_id
        return json.dumps({"tureen_fold": told}, separators=(",", ":"))


def folded_of(text: str | None) -> Folded | None:
    """What a commit's userMetadata says of a fold; None where it says nothing."""
    try:
        told = json.loads(text or "")["tureen_fold"]
        position = {int(partition): int(offset) for partition, offset in told["folded"].items()}
        return Folded(int(told["fold"]), position, str(told["source"]), str(told.get("topic_id", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class FoldedTable:
    """A Delta table at a URI, which may not be there yet."""

    def __init__(self, session: SparkSession, uri: str) -> None:
        self.session = session
        self.uri = uri
        self._jvm: Any = session._jvm
        self._jsession: Any = session._jsparkSession

    @property
    def sql_name(self) -> str:
        return "delta.`" + self.uri.replace("`", "``") + "`"

    def _snapshot(self) -> Any:
        none = self._jvm.scala.Option.empty()
        return self._log().update(False, none, none)

    def _log(self) -> Any:
        return self._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(self._jsession, self.uri)

    # --- reading ----------------------------------------------------------------------------------

    def exists(self) -> bool:
        return bool(self._snapshot().version() >= 0)

    def version(self) -> int:
        return int(self._snapshot().version())

    def rows(self, version: int | None = None) -> DataFrame:
        reader = self.session.read.format("delta")
        if version is not None:
            reader = reader.option("versionAsOf", version)
        return reader.load(self.uri)

    def property(self, name: str) -> str | None:
        found = self._snapshot().metadata().configuration().get(name)
        return str(found.get()) if found.isDefined() else None

    def partition_columns(self) -> tuple[str, ...]:
        columns = self._snapshot().metadata().partitionColumns()
        return tuple(str(columns.apply(place)) for place in range(columns.size()))

    def partitions(self) -> list[Partition]:
        """All that hold files, ordered by value."""
        columns = self.partition_columns()
        files = DataFrame(self._snapshot().allFiles().toDF(), self.session)
        found: dict[tuple[str | None, ...], Partition] = {}
        for values, size, came_ms in files.select("partitionValues", "size", "modificationTime").collect():
            place = tuple(values.get(name) for name in columns)
            one = found.get(place, Partition(place, 0, 0, 0))
            found[place] = Partition(place, one.files + 1, one.bytes + size, max(one.newest_ms, came_ms))
        return sorted(
            found.values(), key=lambda one: tuple((value is not None, value or "") for value in one.values)
        )

    def replaced_before(self, ms: int) -> bool:
        """Whether files stand there that commits before an instant have replaced."""
        gone = DataFrame(self._snapshot().tombstones().toDF(), self.session)
        return not gone.where(F.col("deletionTimestamp") < ms).isEmpty()

    def folds(self) -> int:
        """The number of the last fold that this table has, 0 for none."""
        found = self._snapshot().transactions().get(FOLD_APP)
        return int(found.get()) if found.isDefined() else 0

    def _texts(self) -> list[str | None]:
        told = self.session.sql(f"DESCRIBE HISTORY {self.sql_name} LIMIT {COMMITS_LOOKED_AT}")
        return [row.userMetadata for row in told.select("userMetadata").collect()]

    def coverage(self) -> Coverage | None:
        """What of its topic an archived table has. Raises ArchiveVersionUnknown."""
        return in_force(self._texts())

    def folded(self) -> Folded | None:
        """How far a history or current table is folded; None where its newest commits do not say."""
        return next((told for told in map(folded_of, self._texts()) if told is not None), None)

    # --- commits ----------------------------------------------------------------------------------

    @contextmanager
    def commit(self, text: str | None, fold: int | None = None) -> Iterator[None]:
        """Around SQL that commits once; such a text goes with it.

        fold: the commit is this fold's, and does nothing where the table has that fold already.
        Raises TableBusy, CompactionFailed.
        """
        conf = {} if text is None else {_USER_METADATA: text}
        if fold is not None:
            conf |= {_TXN_APP: FOLD_APP, _TXN_VERSION: str(fold)}
        for name, value in conf.items():
            self.session.conf.set(name, value)
        try:
            with self.changing():
                yield
        finally:
            for name in conf:
                self.session.conf.unset(name)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Around a commit to this table. Raises TableBusy, CompactionFailed."""
        try:
            yield
        except (PySparkException, Py4JJavaError) as error:
            if any(name.startswith(_CONFLICTS) for name in exception_classes(error)):
                raise TableBusy(self.uri) from error
            raise CompactionFailed(
                self.uri, root_text(error), hint="nothing was changed by this step; run it again"
            ) from error

    def write(
        self,
        rows: DataFrame,
        mode: str,
        text: str | None,
        *,
        fold: int | None = None,
        app: str = FOLD_APP,
        partition_by: tuple[str, ...] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        """One commit of rows; of none only where it has a number.

        fold: the number; the commit does nothing where the table has this one, or a later one, of ``app``.
        Raises TableBusy, CompactionFailed.
        """
        writer = rows.write.format("delta").mode(mode).options(**(options or {}))
        if text is not None:
            writer = writer.option("userMetadata", text)
        if fold is not None:
            writer = writer.option("txnAppId", app).option("txnVersion", fold)
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        with self.changing():
            writer.save(self.uri)


def directories(session: SparkSession, uri: str) -> list[str]:
    """Names of the directories at a URI, ordered; none where there is nothing."""
    jvm: Any = session._jvm
    jsession: Any = session._jsparkSession
    path = jvm.org.apache.hadoop.fs.Path(uri)
    files = path.getFileSystem(jsession.sessionState().newHadoopConf())
    if not files.exists(path):
        return []
    return sorted(status.getPath().getName() for status in files.listStatus(path) if status.isDirectory())
