"""What is too old removed, and the files that no table needs any more.

Old is seen from a table's newest timestamp, or from the clock where that is less, so that an archive of last
year's rows keeps them and one row from the far future takes nothing away. Whole partitions go: of streams
hours, of result topics and histories days; the current table is never touched. Before the first row of a
stream goes, a commit says from when on the table is complete.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from spark_jobs.compact.delta import FoldedTable, Partition
from spark_jobs.compact.folding import Told
from spark_jobs.compact.merging import TRIES_MAX
from spark_jobs.compact.settings import DAY_MS, HOUR_MS
from spark_jobs.compact.versions import CLOSED
from spark_jobs.errors import CompactionFailed, TableBusy
from storage.archive.coverage import Coverage
from storage.archive.layout import DATE, HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RETENTION_APP = "tureen.retention"
_LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_RETENTION_CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


def old_before_ms(coverage: Coverage | None, now_ms: int, retain_ms: int, unit_ms: int) -> int | None:
    """Rows before this instant go; a multiple of the unit. None: the table does not say how far it is.

    >>> from storage.archive.coverage import Covered
    >>> old_before_ms(Coverage("t", {0: Covered(0, 9, 10_000)}), 99_000, 3_500, 1_000)
    6000
    """
    newest_ms = None if coverage is None else coverage.max_ms
    if newest_ms is None:
        return None
    cut = min(newest_ms, now_ms) - retain_ms
    return cut - cut % unit_ms


def unit_ms(table: FoldedTable) -> int:
    """What a partition of the table holds: an hour or a day."""
    return HOUR_MS if HOUR in table.partition_columns() else DAY_MS


def old(columns: tuple[str, ...], partitions: list[Partition], before_ms: int) -> list[Partition]:
    """The partitions whose rows, or ends of versions, all lie before an instant."""
    return [one for one in partitions if (begin := _begin_ms(columns, one)) is not None and begin < before_ms]


def remove_archived(table: FoldedTable, before_ms: int, told: Told) -> int:
    """Rows of a stream or a result topic before an instant go; how many partitions those were.

    The instant has to be a multiple of what a partition holds. Raises TableBusy, CompactionFailed.
    """
    gone = old(table.partition_columns(), table.partitions(), before_ms)
    coverage = table.coverage()
    if not gone or coverage is None:
        return 0
    if coverage.complete_from_ms < before_ms:
        raised = replace(coverage, complete_from_ms=before_ms)
        table.write(
            table.rows().where("false"), "append", raised.to_text(), fold=before_ms, app=RETENTION_APP
        )
        now = table.coverage()
        if now is None or now.complete_from_ms < before_ms:
            raise CompactionFailed(
                table.uri, "no commit states from when it would be complete, so nothing was removed"
            )
        told("raised from when on it is complete")
    _delete(table, _before(table.partition_columns(), before_ms))
    told(f"{len(gone):,} old partitions removed")
    return len(gone)


def trim_history(history: FoldedTable, before_ms: int, told: Told) -> int:
    """Versions that ended before the day of an instant go; how many partitions those were.

    Raises TableBusy, CompactionFailed.
    """
    gone = old(history.partition_columns(), history.partitions(), before_ms - before_ms % DAY_MS)
    if not gone:
        return 0
    _delete(history, f"{CLOSED} < DATE'{_at(before_ms):%Y-%m-%d}'")
    told(f"{len(gone):,} old days removed from the history")
    return len(gone)


def vacuum(table: FoldedTable, now_ms: int, keep_ms: int, told: Told) -> None:
    """Files that commits replaced so long ago are removed, and with them what killed runs left.

    Raises CompactionFailed.
    """
    if not table.replaced_before(now_ms - keep_ms):
        return
    session = table.session
    conf = {
        _RETENTION_CHECK: "false",  # which refuses less than a week, whatever readers need
        _LISTING: str(4 * session.sparkContext.defaultParallelism),  # else 10,000 tasks, a minute of them
    }
    before: dict[str, str | None] = {name: session.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        session.conf.set(name, value)
    try:
        with table.commit(told_by(table)):
            session.sql(f"VACUUM {table.sql_name} RETAIN {keep_ms / HOUR_MS:.6f} HOURS").collect()
    finally:
        for name, earlier in before.items():
            if earlier is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, earlier)
    told("replaced files removed")


def told_by(table: FoldedTable) -> str | None:
    """What a commit to this table has to repeat: coverage of archived ones, how far others are folded."""
    coverage = table.coverage()
    if coverage is not None:
        return coverage.to_text()
    folded = table.folded()
    return None if folded is None else folded.to_text()


def _delete(table: FoldedTable, where: str) -> None:
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            with table.commit(told_by(table)):
                table.session.sql(f"DELETE FROM {table.sql_name} WHERE {where}")
            return
        except TableBusy:
            if not tries_left:
                raise


def _begin_ms(columns: tuple[str, ...], partition: Partition) -> int | None:
    """The first instant of a partition; None of what has no day."""
    values = dict(zip(columns, partition.values, strict=True))
    day = values.get(DATE, values.get(CLOSED))
    if day is None:
        return None
    at = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return (at - _EPOCH) // timedelta(milliseconds=1) + int(values.get(HOUR) or 0) * HOUR_MS


def _before(columns: tuple[str, ...], before_ms: int) -> str:
    """A condition on partitions alone, so that no file is opened."""
    at = _at(before_ms)
    day = f"DATE'{at:%Y-%m-%d}'"
    earlier = f"{DATE} < {day}"
    return f"{earlier} OR ({DATE} = {day} AND {HOUR} < {at.hour})" if HOUR in columns else earlier


def _at(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)
