"""The records of a micro-batch to the archive's tables, each exactly once.

For every topic, in this order: what its table covers is read; records below that are dropped; the rest is
decoded; what does not decode goes to the quarantine; the rows are committed to the table together with the
new coverage. So a batch that is cut off anywhere is done again without a row lost or doubled, and so are the
same records in other batches, under another checkpoint or none. Records that are gone between what a table
covers and what the batch has are an error, or, where a gap is accepted, raise ``complete_from_ms``.

Cost: two or three Spark jobs a topic that has new records, and none for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from spark_jobs.archive.results import PREFIX_BYTES, result_rows
from spark_jobs.archive.rows import RAW_KEY, RAW_VALUE, REASON, RECORD_COLUMNS
from spark_jobs.archive.tables import ArchiveTable, Commits, Decode, Target
from spark_jobs.errors import RecordsLost, TopicReplaced
from storage.archive.coverage import AFTER_A_GAP, COMPLETE, Coverage, Covered
from storage.archive.errors import ArchiveUnreadable
from storage.archive.layout import OFFSET, PARTITION, QUARANTINE_SCHEMA, TIMESTAMP
from topics.registry_client import Registry
from tureen.errors import SettingsError

SCHEMAS_MAX = 10_000
"""Most different schemas in the records of a topic and micro-batch."""


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of a partition that a micro-batch has: from the first up to, without, the next."""

    first_offset: int
    next_offset: int


Ranges = Mapping[str, Mapping[int, OffsetRange]]
"""topic -> partition -> range."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a batch has to know besides its records.

    topic_ids: of the topics' present lives. now_ms: the clock's. registry: where schemas of results in Avro
    are, None: nowhere. accept_gap: as the stream's setting; then Spark passes over what is gone without a
    word, and begin tells where a topic's partitions begin, asked after the records were read.
    commits: the same from batch to batch.
    """

    topic_ids: Mapping[str, str]
    now_ms: int
    registry: Registry | None = None
    accept_gap: bool = False
    begin: Callable[[str], Mapping[int, int]] | None = None
    commits: Commits = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Written:
    """One commit: to which of a target's tables, how many rows."""

    table: Literal["rows", "quarantine"]
    rows: int


def archive_batch(
    batch: DataFrame, ranges: Ranges, targets: Sequence[Target], given: Circumstances
) -> Iterator[Written]:
    """Write the records; gives each commit when it is made, and does the next when it is asked to go on.

    batch: the Kafka source's columns with headers, of these ranges and no others; read several times, so it
    is best cached. Raises RecordsLost, TopicReplaced, TableBusy, PathNotWritable, ArchiveMismatch,
    ArchiveUnreadable, ArchiveVersionUnknown, SettingsError (Avro without a registry), RegistryUnavailable.
    """
    for target in targets:
        if ranges.get(target.topic):
            yield from _archive(batch, ranges[target.topic], target, given)


def _archive(
    batch: DataFrame, ranges: Mapping[int, OffsetRange], target: Target, given: Circumstances
) -> Iterator[Written]:
    session = batch.sparkSession
    table = ArchiveTable(session, target.uri, given.commits)
    quarantine = ArchiveTable(session, target.quarantine_uri, given.commits)
    topic_id = given.topic_ids.get(target.topic, "")
    before = table.coverage()
    if before is None:
        nothing = Coverage(target.topic, {}, COMPLETE, topic_id)
        table.create(target.schema, target.partition_by, target.properties, nothing)
        before = table.coverage()
    if before is None:  # it was there
        raise ArchiveUnreadable(
            target.uri,
            "none of its newest commits states which records of the topic it has",
            hint="another program created it or wrote to it: move it, or archive into another directory",
        )
    table.check(target.schema, target.properties)
    _check_topic(target, before, topic_id)
    new = _beyond(before, ranges)
    if not new:
        return
    lost = _lost(target, before, new)
    if lost and not given.accept_gap:
        raise RecordsLost(
            lost,
            hint="continue without them with --accept-gap: the archive states from when it is complete",
        )
    records = _records(batch, target.topic, new)
    decoded = records.mapInArrow(_decode(records, target, given), target.rows_schema)
    decoded = decoded.persist()
    try:
        found = _found(decoded, new, target, given.now_ms)
        bad = sum(one.bad for one in found.values())
        if bad:
            kept = quarantine.coverage()
            if kept is None or (kept.topic, kept.topic_id) != (target.topic, topic_id):
                kept = Coverage(target.topic, {}, COMPLETE, topic_id)
            after = _extended(kept, new, {})
            if after.reached > kept.reached:
                quarantine.append(_quarantined(decoded, kept), (), kept, after)
            yield Written("quarantine", bad)
        if given.begin is not None:
            new = _still_there(new, given.begin(target.topic))
        after = _extended(before, new, found)
        since = _complete_from(before, new, found, target.disorder_ms, given.now_ms)
        after = replace(after, complete_from_ms=max(after.complete_from_ms, since))
        placing = table.partitioned_by()
        table.append(_placed(decoded, target, placing), placing, before, after)
        yield Written("rows", sum(one.good for one in found.values()))
    finally:
        decoded.unpersist()


# --- what is new, and what is gone ------------------------------------------------------------------


def _check_topic(target: Target, before: Coverage, topic_id: str) -> None:
    if (before.topic, before.topic_id) != (target.topic, topic_id):
        raise TopicReplaced(
            target.topic,
            target.uri,
            before.topic,
            hint="its offsets count from 0 again and mean other records: move the table away, or archive "
            "into another directory",
        )


def _beyond(before: Coverage, ranges: Mapping[int, OffsetRange]) -> dict[int, OffsetRange]:
    """What of the ranges the table does not have yet."""
    new = {}
    for number, one in ranges.items():
        covered = before.partitions.get(number)
        first = one.first_offset if covered is None else max(one.first_offset, covered.next_offset)
        # A partition without any record is covered, too, when it is first met.
        if one.next_offset > first or covered is None:
            new[number] = OffsetRange(first, one.next_offset)
    return new


def _lost(target: Target, before: Coverage, new: Mapping[int, OffsetRange]) -> list[str]:
    lost = []
    for number, one in sorted(new.items()):
        covered = before.partitions.get(number)
        if covered is not None and one.first_offset > covered.next_offset:
            lost.append(
                f"{target.topic} partition {number}, offsets {covered.next_offset} to {one.first_offset - 1}"
            )
    return lost


def _still_there(new: Mapping[int, OffsetRange], begin: Mapping[int, int]) -> dict[int, OffsetRange]:
    """What of the ranges can be said to have been read: what was there still afterwards."""
    return {
        number: replace(one, first_offset=min(max(one.first_offset, begin.get(number, 0)), one.next_offset))
        for number, one in new.items()
    }


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found of a partition. good, bad: records that decode, and that do not. began_ms, max_ms: the
    largest timestamps of its first offsets and of all, None where there are none; what the broker refuses as
    too far in the future does not count in these.
    """

    good: int
    bad: int
    began_ms: int | None
    max_ms: int | None


def _found(
    decoded: DataFrame, new: Mapping[int, OffsetRange], target: Target, now_ms: int
) -> dict[int, _Found]:
    good = F.col(_quoted(REASON)).isNull()
    counts = good
    if target.future_max_ms is not None:
        counts = good & (F.col(TIMESTAMP) <= now_ms + target.future_max_ms)
    begins: Column = F.lit(False)
    for number, one in new.items():
        begins = begins | ((F.col(PARTITION) == number) & (F.col(OFFSET) < one.first_offset + AFTER_A_GAP))
    counted = decoded.groupBy(PARTITION).agg(
        F.count_if(good).alias("good"),
        F.count_if(~good).alias("bad"),
        F.max(F.when(counts & begins, F.col(TIMESTAMP))).alias("began_ms"),
        F.max(F.when(counts, F.col(TIMESTAMP))).alias("max_ms"),
    )
    return {
        row[PARTITION]: _Found(
            row.good, row.bad, row.max_ms if row.began_ms is None else row.began_ms, row.max_ms
        )
        for row in counted.collect()
    }


def _extended(before: Coverage, new: Mapping[int, OffsetRange], found: Mapping[int, _Found]) -> Coverage:
    partitions = dict(before.partitions)
    for number, one in new.items():
        max_ms = found[number].max_ms if number in found else None
        added = Covered(one.first_offset, one.next_offset, max_ms)
        partitions[number] = added.union(partitions[number]) if number in partitions else added
    return replace(before, partitions=partitions)


def _complete_from(
    before: Coverage,
    new: Mapping[int, OffsetRange],
    found: Mapping[int, _Found],
    disorder_ms: int,
    now_ms: int,
) -> int:
    """From when on nothing is missing, as far as the new records tell.

    A record that is gone was at most ``disorder_ms`` ahead of every one after it that is not late. Of the
    first ones after it the largest timestamp is taken, since any of them may be late. Where there is none,
    all that is known is that it has been.
    """
    since = COMPLETE
    for number, one in new.items():
        covered = before.partitions.get(number)
        expected = 0 if covered is None else covered.next_offset
        if one.first_offset > expected:
            first = found[number].began_ms if number in found else None
            since = max(since, now_ms if first is None else first + disorder_ms + 1)
    return since


# --- rows -------------------------------------------------------------------------------------------


def _records(batch: DataFrame, topic: str, new: Mapping[int, OffsetRange]) -> DataFrame:
    """The topic's records that the table does not have, as decoders take them."""
    wanted: Column = F.lit(False)
    for number, one in new.items():
        wanted = wanted | ((F.col("partition") == number) & (F.col("offset") >= one.first_offset))
    records = batch.where((F.col("topic") == topic) & wanted)
    return records.withColumn("at_ms", F.unix_millis("timestamp")).select(*RECORD_COLUMNS)


def _decode(records: DataFrame, target: Target, given: Circumstances) -> Decode:
    if target.decode is not None:
        return target.decode
    return partial(result_rows, schemas=_schemas(records, target, given.registry))


def _schemas(records: DataFrame, target: Target, registry: Registry | None) -> dict[int, str]:
    """The Avro schemas of records, by their ids; those that the registry does not know are not there."""
    each = F.explode(F.array("key", "value")).alias("data")
    data = records.select(each).where(F.col("data").isNotNull())
    ids = (
        data.where(F.hex(F.substring("data", 1, 1)) == "00")
        .where(F.octet_length("data") > PREFIX_BYTES)
        .where(F.hex(F.substring("data", PREFIX_BYTES + 1, 1)) != "7B")
        .select(F.hex(F.substring("data", 2, 4)).alias("id"))
        .distinct()
        .limit(SCHEMAS_MAX)
    )
    found = {}
    for row in ids.collect():
        if registry is None:
            raise SettingsError(
                f"records of {target.topic} are in Avro, and no schema registry is named",
                hint="give --schema-registry URL",
            )
        number = int(row.id, 16)
        schema = registry.schema_of(number)
        if schema is not None:
            found[number] = schema
    return found


def _quarantined(decoded: DataFrame, kept: Coverage) -> DataFrame:
    """The records that do not decode and that the quarantine does not have."""
    there: Column = F.lit(False)
    for number, one in kept.partitions.items():
        there = there | ((F.col(PARTITION) == number) & (F.col(OFFSET) < one.next_offset))
    bad = decoded.where(F.col(_quoted(REASON)).isNotNull() & ~there)
    columns = {"key": RAW_KEY, "value": RAW_VALUE, "reason": REASON}
    return bad.select(
        *(F.col(_quoted(columns.get(one.name, one.name))).alias(one.name) for one in QUARANTINE_SCHEMA)
    )


def _placed(decoded: DataFrame, target: Target, placing: tuple[str, ...]) -> DataFrame:
    """The rows that decode, those of a directory together and in order: one file for each."""
    good = decoded.where(F.col(_quoted(REASON)).isNull())
    rows = good.select(*(F.col(_quoted(name)) for name in target.schema.names))
    together = rows.repartition(_tasks(rows.sparkSession), *placing)
    return together.sortWithinPartitions(*placing, TIMESTAMP, PARTITION, OFFSET)


def _tasks(session: SparkSession) -> int:
    context: Any = session.sparkContext
    return int(context.defaultParallelism)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
