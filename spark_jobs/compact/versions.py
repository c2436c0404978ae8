"""Records folded to versions with intervals of validity: pure functions DataFrame -> DataFrame.

Every record that is folded becomes one row of the history, its **version**, valid for
[valid_from_ms, valid_to_ms); valid_to_ms NULL: still. A record that takes its row away has an empty interval
[t, t): no instant sees it, yet nothing that was said is forgotten. So has a version that another one of the
same instant replaced. The current table is the versions that are still valid.

| of                            | versions of one row share     | they follow each other by         |
|-------------------------------|-------------------------------|-----------------------------------|
| results: upsert, debezium     | query_id, key                 | partition, offset                 |
| results: diff                 | query_id, key, row            | partition, offset                 |
| tables (compacted topics)     | the primary key               | timestamp, partition, offset      |

The instant of a result's record is ``at_ms``, the query's time (the log's where a record has none), and no
earlier than that of the version before it; that of a table's record is its ``_timestamp``, so a late one
takes its place among those that are there. ``copies``: how often the row is in the answer; 0: the record took
it away; of diff the sum of the weights so far, below zero where the archive began after the row came.

Folding is incremental: given the versions that new records may touch (:func:`touched`), :func:`fold` returns
the versions that are new or end otherwise than they did. Folded in any number of runs, cut anywhere, the
history is the same as folded at once. A version is known by its record: partition and offset.

Cost: O(new records + versions still valid, and those that ended since the earliest new one's instant).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from storage.archive.layout import DATE, DELETED, HOUR, OFFSET, PARTITION, TIMESTAMP

VALID_FROM = "valid_from_ms"
VALID_TO = "valid_to_ms"
CLOSED = "_closed"
"""The day, by ``_timestamp``, of the record that ended a version: what the history is partitioned by."""
COPIES = "copies"
RECORD = (PARTITION, OFFSET)

_TIME, _SAID, _WEIGHT, _NEW, _ENDED, _COPIES = "~time", "~said", "~weight", "~new", "~ended", "~copies"


@dataclass(frozen=True, slots=True)
class Shape:
    """How records of one kind are folded.

    identity: expressions that versions of one row share. order: columns by which they follow each other.
    columns: of the records that the versions keep, in order. shown: the same of the current table.
    counted: versions say how often the row is in the answer (``copies``); else whether it was deleted.
    """

    identity: tuple[str, ...]
    order: tuple[str, ...]
    columns: tuple[str, ...]
    shown: tuple[str, ...]
    counted: bool


RESULTS = Shape(
    ("query_id", "key", "IF(format = 'diff', row, NULL)"),
    (PARTITION, OFFSET),
    ("query_id", "format", "key", "row", "position", *RECORD, TIMESTAMP),
    ("query_id", "format", "key", "row", COPIES, "position", *RECORD, TIMESTAMP),
    True,
)


RESULT_FOLDS = ("kind = 'row'", f"COALESCE(at_ms, {TIMESTAMP})")
TABLE_FOLDS = ("TRUE", TIMESTAMP)
"""Two expressions over archived rows: which are records that fold, and the instant of each."""


def table_shape(columns: Iterable[str], key: Sequence[str]) -> Shape:
    """The shape of a table of these columns in the archive, with this primary key."""
    own = (*RECORD, TIMESTAMP)
    declared = tuple(name for name in columns if name not in (*own, DATE, HOUR, DELETED))
    return Shape(
        tuple(_quoted(name) for name in key),
        (TIMESTAMP, *RECORD),
        (*own, DELETED, *declared),
        (*own, *declared),
        False,
    )


def reserved() -> frozenset[str]:
    """Names that a table's columns may not have, in small letters."""
    return frozenset({VALID_FROM, VALID_TO, CLOSED})


# --- records --------------------------------------------------------------------------------------


def result_records(rows: DataFrame) -> DataFrame:
    """The archived result records that fold to an answer, ready for :func:`fold`."""
    weight = F.when(F.col("format") == "diff", F.col("weight"))
    return (
        rows.where(RESULT_FOLDS[0])
        .withColumn(_TIME, F.expr(RESULT_FOLDS[1]))
        .withColumn(_WEIGHT, weight)
        .withColumn(_SAID, F.when(weight.isNull(), F.col("row").isNotNull().cast("bigint")))
        .select(*RESULTS.columns, _TIME, _WEIGHT, _SAID)
    )


def table_records(rows: DataFrame, shape: Shape) -> DataFrame:
    """All archived versions of a table, ready for :func:`fold`."""
    return rows.select(
        *(_column(name) for name in shape.columns),
        F.col(TIMESTAMP).alias(_TIME),
        F.lit(None).cast("int").alias(_WEIGHT),
        F.when(F.coalesce(DELETED, F.lit(False)), 0).otherwise(1).cast("bigint").alias(_SAID),
    )


def after(rows: DataFrame, position: dict[int, int]) -> DataFrame:
    """Rows whose offsets a position (partition -> next offset) has not reached."""
    if not position:
        return rows
    behind = F.lit(False)
    for partition, offset in sorted(position.items()):
        behind |= (F.col(PARTITION) == partition) & (F.col(OFFSET) >= offset)
    return rows.where(behind | ~F.col(PARTITION).isin(sorted(position)))


# --- folding --------------------------------------------------------------------------------------


def touched(history: DataFrame, records: DataFrame, shape: Shape, earliest_ms: int) -> DataFrame:
    """The versions in a history that records from this instant on may end, move or follow."""
    names = [f"~id{number}" for number in range(len(shape.identity))]
    ids = records.select(*(F.expr(e).alias(n) for e, n in zip(shape.identity, names, strict=True)))
    same = F.lit(True)
    for expression, name in zip(shape.identity, names, strict=True):
        same &= F.expr(expression).eqNullSafe(F.col(name))
    return history.where(still_touchable(earliest_ms)).join(ids.distinct(), same, "left_semi")


def still_touchable(earliest_ms: int) -> str:
    """A condition on the history: versions that records from this instant on may touch."""
    return f"({VALID_TO} IS NULL OR {VALID_TO} >= {earliest_ms})"


def fold(state: DataFrame | None, records: DataFrame, shape: Shape) -> DataFrame:
    """The versions that are new, or end otherwise than they do in ``state``.

    state: as :func:`touched` finds it; None: there is no history. records: none of state's.
    Returns rows as the history has them.
    """
    everything = records.withColumn(_NEW, F.lit(True)).withColumn(_COPIES, F.lit(None).cast("bigint"))
    everything = everything.withColumn(_ENDED, F.lit(None).cast("bigint"))
    if state is not None:
        everything = everything.unionByName(_as_records(state, shape), allowMissingColumns=True)

    row = Window.partitionBy(*(F.expr(text) for text in shape.identity)).orderBy(*shape.order)
    so_far = row.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # What a diff's records add up to begins at the last version before them, whose copies are a sum already.
    summed = F.coalesce(F.last(_COPIES, ignorenulls=True).over(so_far), F.lit(0)) + F.coalesce(
        F.sum(_WEIGHT).over(so_far), F.lit(0)
    )
    copies = F.coalesce(_COPIES, _SAID, summed)
    gone = F.col(_COPIES) == 0
    following = everything.withColumn(VALID_FROM, F.max(_TIME).over(so_far)).withColumn(_COPIES, copies)
    ends = F.when(gone, F.col(VALID_FROM)).otherwise(F.lead(VALID_FROM).over(row))
    ended_by = F.when(gone, F.col(TIMESTAMP)).otherwise(F.lead(TIMESTAMP).over(row))
    closed = F.to_date(F.timestamp_millis(ended_by))
    told = following.withColumn(VALID_TO, ends).withColumn(CLOSED, closed)
    changed = told.where(F.col(_NEW) | ~F.col(VALID_TO).eqNullSafe(F.col(_ENDED)))
    return changed.select(*history_columns(changed, shape))


def _as_records(state: DataFrame, shape: Shape) -> DataFrame:
    copies = F.col(COPIES) if shape.counted else (~F.col(DELETED)).cast("bigint")
    return state.select(
        *(_column(name) for name in shape.columns if name in state.columns),
        F.col(VALID_FROM).alias(_TIME),
        copies.alias(_COPIES),
        F.lit(False).alias(_NEW),
        F.col(VALID_TO).alias(_ENDED),
    )


def history_columns(versions: DataFrame, shape: Shape) -> list[Column]:
    """The history's columns, ours before a table's own, since Delta keeps statistics of the first alone."""
    found = [_column(name) for name in shape.columns]
    place = len(found) if shape.counted else len(RECORD) + 2
    if DELETED in shape.columns:
        found[len(RECORD) + 1] = F.coalesce(DELETED, F.lit(False)).alias(DELETED)
    own = [F.col(_COPIES).alias(COPIES)] if shape.counted else []
    return [*found[:place], *own, F.col(VALID_FROM), F.col(VALID_TO), F.col(CLOSED), *found[place:]]


def current(history: DataFrame, shape: Shape) -> DataFrame:
    """What is still valid: one row for each key, or, of diff, for each different row."""
    there = history.where(F.col(CLOSED).isNull())
    if shape.counted:
        there = there.where(F.col(COPIES) > 0)
    names = [name for name in shape.shown if name in history.columns]
    return there.select(*(_column(name) for name in names), F.col(VALID_FROM))


def _column(name: str) -> Column:
    return F.col(_quoted(name))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
