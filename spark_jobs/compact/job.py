"""The job's edge: which tables there are, and what is done to each in which order.

Of a table in turn: its new records are folded (a result topic, or a declared table), its current table is
written, asked-for queries are unfolded; small files are merged; what is older than told is removed, and files
that nothing needs any more. Each step is one commit or more, whole each: a run that ends anywhere leaves
every table readable and right, and the next run does what is left. A table that can't be worked on is left as
it stands; the others are done.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime

from pyspark.sql import SparkSession

from spark_jobs.compact import folding, merging, retention, unfold, versions
from spark_jobs.compact.delta import Folded, FoldedTable, directories
from spark_jobs.compact.folding import FoldedInput
from spark_jobs.compact.merging import Merge
from spark_jobs.compact.settings import CompactSettings
from spark_jobs.errors import CompactionRefused, TablesLeft
from spark_jobs.running import Stop
from storage.archive.errors import ArchiveMissing
from storage.archive.layout import (
    DELETED,
    KEY_PROPERTY,
    OFFSET,
    PARTITION,
    TIMESTAMP,
    area_uri,
    column_name,
    table_name,
    table_uri,
)
from tureen.errors import SettingsError, TureenError

ARCHIVED_ORDER = (TIMESTAMP, PARTITION, OFFSET)
HISTORY_ORDER = (versions.VALID_FROM, PARTITION, OFFSET)

Done = Callable[[str, str], None]
"""Called with a table's name and what was just done to it."""


@dataclass(slots=True)
class TableReport:
    """What was done to one archived table, or, of a dry run, what there is to do."""

    table: str
    records_folded: int = 0
    fold: int | None = None
    folded_to: dict[int, int] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)
    files_before: int = 0
    files_after: int = 0
    partitions_merged: int = 0
    partitions_removed: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class CompactReport:
    """What a run did. stopped: it was asked to end, and left the tables that are not told."""

    tables: tuple[TableReport, ...]
    dry_run: bool = False
    stopped: bool = False

    def as_dict(self) -> dict[str, object]:
        return asdict(self)

    def lines(self) -> Iterable[str]:
        if not self.tables:
            yield "nothing is archived there" if not self.stopped else "stopped before the first table"
            return
        rows = [("table", "records folded", "files", "partitions merged", "removed", "")]
        for one in self.tables:
            files = f"{one.files_before:,} -> {one.files_after:,}"
            counts = (
                f"{one.records_folded:,}",
                files,
                f"{one.partitions_merged:,}",
                f"{one.partitions_removed:,}",
            )
            rows.append((one.table, *counts, "unchanged" if one.error else ""))
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(row[n].rjust(widths[n]) for n in range(1, 5)), row[5]]
            yield "  ".join(cells).rstrip()
        if self.dry_run:
            yield "nothing was changed: this is what would be done"
        if self.stopped:
            yield "stopped on request; the next run does the rest"


def run(
    session: SparkSession,
    settings: CompactSettings,
    started: datetime,
    stop: Stop | None = None,
    done: Done = lambda table, what: None,
) -> CompactReport:
    """One run. started: the clock, by which partitions are quiet and nothing is too new.

    Raises ArchiveMissing, SettingsError, TablesLeft.
    """
    found = _tables(session, settings)
    reports: list[TableReport] = []
    failures: dict[str, TureenError] = {}
    unfolded: set[str] = set()
    columns: set[str] = set()
    for area, name in found:
        if stop is not None and stop.asked:
            return CompactReport(tuple(reports), settings.dry_run, stopped=True)
        one = _Run(session, settings, started, area, name, done)
        reports.append(one.report)
        try:
            one.work()
        except TureenError as error:
            one.report.error = str(error)
            failures[f"{area}/{name}"] = error
        unfolded.update(one.report.queries)
        columns |= one.unfolded_columns
    if failures:
        raise TablesLeft(failures)
    if missing := set(settings.queries) - unfolded:
        raise CompactionRefused(
            area_uri(settings.archive, "history"),
            f"no history has rows of {', '.join(sorted(missing))}",
            hint="--query takes the public ids of queries with EMIT CHANGES whose result topic is archived",
        )
    if not settings.dry_run and (lacking := set(settings.columns) - columns):
        raise SettingsError(
            f"none of the queries has a column {', '.join(sorted(lacking))}; they are written without it",
            hint=f"they have {', '.join(sorted(columns))}",
        )
    return CompactReport(tuple(reports), settings.dry_run)


def _tables(session: SparkSession, settings: CompactSettings) -> list[tuple[str, str]]:
    """Areas and names of the archived tables to work on. Raises ArchiveMissing."""
    everything = not settings.streams and not settings.results
    found: list[tuple[str, str]] = []
    for area, names in (("streams", settings.streams), ("results", settings.results)):
        there = [table_name(one) for one in directories(session, area_uri(settings.archive, area))]  # type: ignore[arg-type]
        for name in names:
            if name not in there:
                listed = f"there are {', '.join(there)}" if there else "there are none"
                raise ArchiveMissing(table_uri(settings.archive, area, name), hint=listed)  # type: ignore[arg-type]
        found += [(area, name) for name in there if everything or name in names]
    if everything and not found:
        raise ArchiveMissing(settings.archive, hint="`tureen spark run archive` writes one")
    return found


class _Run:
    """The work on one table."""

    def __init__(
        self,
        session: SparkSession,
        settings: CompactSettings,
        started: datetime,
        area: str,
        name: str,
        done: Done,
    ) -> None:
        self.report = TableReport(f"{area}/{name}")
        self.unfolded_columns: set[str] = set()
        self._session = session
        self._settings = settings
        self._now_ms = int(started.timestamp() * 1_000)
        self._area, self._name = area, name
        root = settings.archive
        self._table = FoldedTable(session, table_uri(root, area, name))  # type: ignore[arg-type]
        self._history = FoldedTable(session, table_uri(root, "history", name))
        self._current = FoldedTable(session, table_uri(root, "current", name))
        self._done = done

    def _told(self, what: str) -> None:
        self._done(self.report.table, what)

    def work(self) -> None:
        if not self._table.exists():  # a directory whose first commit is still to come
            return
        self._told("begun")
        source = self._source()
        if source is not None:
            self._fold(source)
        self._merge(self._table, ARCHIVED_ORDER, self._settings.quiet_ms)
        if source is not None and self._history.exists():
            self._merge(self._history, HISTORY_ORDER, 0)
        if self._settings.retain_ms is not None:
            self._remove(self._settings.retain_ms, folded=source is not None)
        if not self._settings.dry_run:
            for table in (self._table, self._history, self._current):
                if table.exists():
                    retention.vacuum(table, self._now_ms, self._settings.keep_replaced_ms, self._told)
        self._told("done")

    # --- folding ----------------------------------------------------------------------------------

    def _source(self) -> FoldedInput | None:
        """How this table is folded; None of a stream, whose rows stand for themselves."""
        if self._area == "results":
            return FoldedInput(
                self.report.table,
                self._table,
                versions.result_records,
                versions.RESULTS,
                *versions.RESULT_FOLDS,
            )
        columns = self._table.rows().columns
        if DELETED not in columns:
            return None
        self._check_columns(columns)
        shape = versions.table_shape(columns, self._key(columns))
        return FoldedInput(
            self.report.table,
            self._table,
            lambda rows: versions.table_records(rows, shape),
            shape,
            *versions.TABLE_FOLDS,
        )

    def _key(self, columns: list[str]) -> list[str]:
        told = self._table.property(KEY_PROPERTY)
        key = json.loads(told) if told else [column_name(n) for n in self._settings.keys.get(self._name, ())]
        if not key:
            raise CompactionRefused(
                self._table.uri, "its primary key is unknown", hint=f"give --key {self._name}=COLUMN,..."
            )
        if lacking := [name for name in key if name not in columns]:
            raise CompactionRefused(self._table.uri, f"it has no column {lacking[0]}, which is to be its key")
        return list(key)

    def _check_columns(self, columns: list[str]) -> None:
        for name in columns:
            if name.lower() in versions.reserved():
                raise CompactionRefused(
                    self._table.uri,
                    f"its column {name} is named like one of the history's",
                    hint="declare the table with another name for it",
                )

    def _fold(self, source: FoldedInput) -> None:
        report = self.report
        if self._settings.dry_run:
            report.records_folded = folding.waiting(source, self._history)
            return
        after, report.records_folded = folding.fold(source, self._history, self._told)
        report.fold, report.folded_to = after.number, dict(after.position)
        if not self._history.exists():
            return
        target = self._settings.target_file_bytes
        folding.write_current(source, self._history, self._current, after, target, self._told)
        if self._area == "results":
            for query_id in self._settings.queries:
                self._unfold(query_id, after)

    def _unfold(self, query_id: str, after: Folded) -> None:
        everything = unfold.of_query(self._history.rows(), query_id)
        if everything.isEmpty():
            return
        columns = unfold.columns_of(everything, self._settings.columns)
        self.unfolded_columns.update(columns.names)
        for area, rows in (("history", everything), ("current", self._current.rows())):
            table = FoldedTable(
                self._session, f"{table_uri(self._settings.archive, 'queries', query_id)}/{area}"
            )
            typed = unfold.unfolded(unfold.of_query(rows, query_id), columns)
            ordered = typed.repartition(1).sortWithinPartitions(*HISTORY_ORDER)
            table.write(ordered, "overwrite", after.to_text(), options={"overwriteSchema": "true"})
            self._told(f"{area} of {query_id} written")
            retention.vacuum(table, self._now_ms, self._settings.keep_replaced_ms, self._told)
        self.report.queries.append(query_id)

    # --- files ------------------------------------------------------------------------------------

    def _merge(self, table: FoldedTable, order: tuple[str, ...], quiet_ms: int) -> None:
        partitions = table.partitions()
        quiet_before_ms = self._now_ms - quiet_ms if quiet_ms else None
        plan = merging.planned(partitions, self._settings.target_file_bytes, quiet_before_ms)
        files = sum(one.files for one in partitions)
        self.report.files_before += files
        self.report.files_after += files
        for merge in plan:
            if not self._settings.dry_run:
                merging.rewrite(table, merge, order, lambda: retention.told_by(table))
            self._count(merge)

    def _count(self, merge: Merge) -> None:
        self.report.partitions_merged += len(merge.partitions)
        self.report.files_after += merge.files_after - merge.files_before
        self._told(f"{merge.files_before:,} files merged to {merge.files_after:,}")

    def _remove(self, retain_ms: int, *, folded: bool) -> None:
        table, report = self._table, self.report
        unit_ms = retention.unit_ms(table)
        before_ms = retention.old_before_ms(table.coverage(), self._now_ms, retain_ms, unit_ms)
        if before_ms is None:
            self._told("nothing removed: its commits do not state how far it is")
            return
        if self._settings.dry_run:
            for one in (table, self._history):
                if one is table or (folded and one.exists()):
                    gone = retention.old(one.partition_columns(), one.partitions(), before_ms)
                    report.partitions_removed += len(gone)
            return
        report.partitions_removed += retention.remove_archived(table, before_ms, self._told)
        if folded and self._history.exists():
            report.partitions_removed += retention.trim_history(self._history, before_ms, self._told)
