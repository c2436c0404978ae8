"""A table's new records folded into its history, and its current table after it.

Order of a fold: the source is looked at (a version of it), records beyond the history's position are folded
into the history by one commit, which carries the new position; then the current table is written anew from
the history by one commit, which carries the same. A run that ends between the two leaves a current table that
is one fold behind, and says so; the next run writes it before it is done.

Folds are numbered, and a table takes each number once: of two runs that fold at the same time one is told so,
and has changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_jobs.compact import versions
from spark_jobs.compact.delta import Folded, FoldedTable
from spark_jobs.compact.versions import CLOSED, RECORD, VALID_TO, Shape
from spark_jobs.errors import CompactionRefused, TableBusy
from storage.archive.layout import OFFSET, PARTITION

Told = Callable[[str], None]
"""Called with what was just done, in words; what it raises ends the run there."""


@dataclass(frozen=True, slots=True)
class FoldedInput:
    """What is folded.

    name: as ``results/orders``. records: what makes records of its archived rows. shape: theirs.
    folds, time: of archived rows, which of them fold, and the instant of each.
    """

    name: str
    table: FoldedTable
    records: Callable[[DataFrame], DataFrame]
    shape: Shape
    folds: str
    time: str


@dataclass(frozen=True, slots=True)
class _Came:
    """What came since a position. records: that fold; earliest_ms: of them."""

    position: Mapping[int, int]
    records: int
    earliest_ms: int | None


def position_of(history: FoldedTable) -> Folded:
    """How far it is folded: as its commits say, or, where they were cleaned away, as its rows show."""
    if not history.exists():
        return Folded(0, {})
    number = history.folds()
    told = history.folded()
    if told is not None and told.number == number:
        return told
    reached = history.rows().groupBy(PARTITION).agg((F.max(OFFSET) + 1).alias("next"))
    return Folded(number, {row[0]: row.next for row in reached.collect()})


def waiting(source: FoldedInput, history: FoldedTable) -> int:
    """How many records a fold would take in. Raises CompactionRefused."""
    before = position_of(history)
    _topic_id(source, history, before)
    return _came(source, _new_rows(source, before, source.table.version()), {}).records


def _topic_id(source: FoldedInput, history: FoldedTable, before: Folded) -> str:
    """The id of the topic whose records are to be folded. Raises CompactionRefused: it is another topic than
    before, so that positions mean other records.
    """
    coverage = source.table.coverage()
    if coverage is None:
        return before.topic_id
    other = before.topic_id and coverage.topic_id and before.topic_id != coverage.topic_id
    behind = any(
        covered.next_offset < before.position.get(number, 0)
        for number, covered in coverage.partitions.items()
    )
    if other or behind:
        raise CompactionRefused(
            source.table.uri,
            f"{history.uri} is folded from an earlier topic {coverage.topic}, deleted and created again",
            hint="move that history, and the current table beside it, to where the earlier archive went; the "
            "next run begins new ones",
        )
    return coverage.topic_id or before.topic_id


def _new_rows(source: FoldedInput, before: Folded, version: int) -> DataFrame:
    """Rows of a version of the source that no fold has taken in."""
    return versions.after(source.table.rows(version), dict(before.position))


def _came(source: FoldedInput, rows: DataFrame, before: Mapping[int, int]) -> _Came:
    folds = F.expr(source.folds)
    found = (
        rows.groupBy(PARTITION)
        .agg(
            (F.max(OFFSET) + 1).alias("next"),
            F.count_if(folds).alias("records"),
            F.min(F.when(folds, F.expr(source.time))).alias("earliest_ms"),
        )
        .collect()
    )
    return _Came(
        dict(before) | {row[0]: row.next for row in found},
        sum(row.records for row in found),
        min((row.earliest_ms for row in found if row.earliest_ms is not None), default=None),
    )


def fold(source: FoldedInput, history: FoldedTable, told: Told) -> tuple[Folded, int]:
    """Fold what came since. How far the history then is, and how many records that were.

    Raises TableBusy, CompactionFailed, CompactionRefused.
    """
    before = position_of(history)
    if before.source not in ("", source.name):
        raise CompactionRefused(
            source.table.uri,
            f"{history.uri} is the history of {before.source}",
            hint="a table and a result topic of one name can't share an archive",
        )
    topic_id = _topic_id(source, history, before)
    rows = _new_rows(source, before, source.table.version())
    came = _came(source, rows, before.position)
    if came.position == dict(before.position):
        return before, 0
    after = Folded(before.number + 1, came.position, source.name, topic_id)
    told(f"{came.records:,} records to fold")
    records = source.records(rows)
    if history.exists():
        _merge(source, history, records, after, came.earliest_ms)
    else:
        first = versions.fold(None, records, source.shape)
        history.write(first, "append", after.to_text(), fold=after.number, partition_by=(CLOSED,))
    if history.folded() != after:  # another run had the number first, so that nothing was written
        raise TableBusy(history.uri)
    told("folded")
    return after, came.records


def _merge(
    source: FoldedInput, history: FoldedTable, records: DataFrame, after: Folded, earliest_ms: int | None
) -> None:
    if earliest_ms is None:  # records came that fold to nothing: the position alone moves
        history.write(history.rows().where("false"), "append", after.to_text(), fold=after.number)
        return
    there = history.rows(history.version())
    state = versions.touched(there, records, source.shape, earliest_ms)
    changed = versions.fold(state, records, source.shape)
    session = history.session
    changed.createOrReplaceTempView("compact_changed")
    same = " AND ".join(f"h.`{name}` = c.`{name}`" for name in RECORD)
    pruned = versions.still_touchable(earliest_ms).replace(VALID_TO, f"h.{VALID_TO}")
    try:
        with history.commit(after.to_text(), fold=after.number):
            session.sql(
                f"MERGE WITH SCHEMA EVOLUTION INTO {history.sql_name} h USING compact_changed c "
                f"ON {same} AND {pruned} "
                f"WHEN MATCHED THEN UPDATE SET h.{VALID_TO} = c.{VALID_TO}, h.{CLOSED} = c.{CLOSED} "
                "WHEN NOT MATCHED THEN INSERT *"
            )
    finally:
        session.catalog.dropTempView("compact_changed")


def write_current(
    source: FoldedInput,
    history: FoldedTable,
    current: FoldedTable,
    after: Folded,
    target_bytes: int,
    told: Told,
) -> bool:
    """Write the current table anew where it is behind its history; whether it was.

    Raises TableBusy, CompactionFailed.
    """
    if current.exists() and current.folds() >= after.number:
        return False
    valid = sum(one.bytes for one in history.partitions() if one.values == (None,))
    files = max(1, -(-valid // target_bytes))
    rows = versions.current(history.rows(), source.shape)
    order = [F.expr(text) for text in (*source.shape.identity, *RECORD)]
    cut = rows.repartition(1) if files == 1 else rows.repartitionByRange(files, *order)
    rows = cut.sortWithinPartitions(*order)
    current.write(rows, "overwrite", after.to_text(), fold=after.number, options={"overwriteSchema": "true"})
    told("current table written")
    return True
