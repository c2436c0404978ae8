"""Small files merged: which partitions pay, and a partition rewritten in order.

A rewrite is one commit that takes away exactly the files it has read and says that no data changed: records
that are appended meanwhile stay in their own files, readers of the table see the same rows before and after,
and streams that follow it see nothing new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from spark_jobs.compact.delta import FoldedTable, Partition
from spark_jobs.errors import TableBusy

TRIES_MAX = 3
TOGETHER_MAX = 48
"""Partitions rewritten by one commit: two days of hours."""
TOGETHER_BYTES_MAX = 1 << 30


@dataclass(frozen=True, slots=True)
class Merge:
    """Partitions of a table that one commit rewrites, each to so many files."""

    partitions: tuple[Partition, ...]
    files_each: int

    @property
    def files_before(self) -> int:
        return sum(one.files for one in self.partitions)

    @property
    def files_after(self) -> int:
        return self.files_each * len(self.partitions)


def planned(partitions: Iterable[Partition], target_bytes: int, quiet_before_ms: int | None) -> list[Merge]:
    """What pays: partitions that come to have at most half as many files.

    quiet_before_ms: those that got a file since are still being written; None: none is.

    >>> hour = Partition(("2024-01-01", "7"), 5, 5_000, 0)
    >>> [(merge.files_before, merge.files_after) for merge in planned([hour], 1 << 20, None)]
    [(5, 1)]
    >>> planned([hour], 1 << 20, quiet_before_ms=0)
    []
    """
    small: list[Partition] = []
    found: list[Merge] = []
    for one in partitions:
        wanted = max(1, -(-one.bytes // target_bytes))
        if one.files < 2 * wanted or (quiet_before_ms is not None and one.newest_ms >= quiet_before_ms):
            continue
        if wanted > 1:
            found.append(Merge((one,), wanted))
        else:
            small.append(one)
    return [Merge(tuple(group), 1) for group in _grouped(small)] + found


def _grouped(partitions: Sequence[Partition]) -> Iterator[list[Partition]]:
    group: list[Partition] = []
    for one in partitions:
        if group and (
            len(group) == TOGETHER_MAX or sum(p.bytes for p in group) + one.bytes > TOGETHER_BYTES_MAX
        ):
            yield group
            group = []
        group.append(one)
    if group:
        yield group


def rewrite(table: FoldedTable, merge: Merge, order: Sequence[str], text: Callable[[], str | None]) -> None:
    """One commit. order: of the rows in each partition; text: what it carries, asked for right before.

    Raises TableBusy, CompactionFailed.
    """
    columns = table.partition_columns()
    where = predicate(columns, merge.partitions)
    rows = table.rows().where(where) if where else table.rows()
    options = {"dataChange": "false"} | ({"replaceWhere": where} if where else {})
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            ordered = in_order(rows, columns, order, merge)
            table.write(ordered, "overwrite", text(), options=options)
            return
        except TableBusy:
            if not tries_left:
                raise


def in_order(rows: DataFrame, partitioning: Sequence[str], order: Sequence[str], merge: Merge) -> DataFrame:
    """The rows cut into the merge's files, each in order."""
    sort = [*partitioning, *order]
    if merge.files_each == 1:
        cut = rows.repartition(len(merge.partitions), *partitioning) if partitioning else rows.coalesce(1)
    else:
        cut = rows.repartitionByRange(merge.files_each, *order)
    return cut.sortWithinPartitions(*sort)


def predicate(columns: Sequence[str], partitions: Iterable[Partition]) -> str:
    """A condition that these partitions meet and no other; empty where the table has none."""
    if not columns:
        return ""
    return " OR ".join(
        "("
        + " AND ".join(
            f"`{name}` IS NULL" if value is None else f"`{name}` = '{value}'"
            for name, value in zip(columns, one.values, strict=True)
        )
        + ")"
        for one in partitions
    )
