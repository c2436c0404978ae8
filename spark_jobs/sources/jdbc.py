"""Tables of a database as an input: all of one at once, or what comes, by a column that increases.

Types are those that Spark gives a column, and become the declared ones as Parquet's do; a timestamp without a
zone is UTC. Spark closes each connection after its read, in which it asks for the columns it needs alone.

As a stream, each tick reads the rows whose value in the increasing column is beyond the largest one of the
tick before, up to the largest one there is. Both ends are in the checkpoint before a row is read, so that a
tick that is taken up again after a crash reads the same rows. A row is read once, if every row that comes has
a larger value than all that were there: rows that come with a smaller or an equal one are never read, nor are
those with NULL. So the column has to be unique and assigned in the order in which rows are committed.
Ranges follow each other without gap or overlap in the database's own order; a value that Spark holds less
exactly, such as a timestamp's nanoseconds, may be read a tick later, and still once.

Cost of a tick: one query for the largest value beyond the last one, one for the rows; with an index on the
column both look at new rows only.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from engine.model.source import Schema
from spark_jobs.errors import InputMismatch
from spark_jobs.failures import reading_table
from spark_jobs.sources.jdbc_settings import JdbcSettings
from spark_jobs.sources.reading import column, raw_of
from spark_jobs.sources.remembered import Remembered
from spark_jobs.sources.source import JobSource

DIRECTORY = "increasing"
"""In the checkpoint."""


class Jdbc(JobSource):
    """checkpoint: the stream's; None for a batch."""

    def __init__(self, settings: JdbcSettings, checkpoint: str | None) -> None:
        self._settings = settings
        self._checkpoint = checkpoint

    def rows(self, session: SparkSession, schema: Schema) -> DataFrame:
        with reading_table(self._settings.name):
            return self._raw(self._table(session), schema)

    def units(self, session: SparkSession) -> DataFrame:
        return session.readStream.format("rate-micro-batch").option("rowsPerBatch", "1").load()

    def rows_of(self, units: DataFrame, schema: Schema) -> DataFrame:
        assert self._checkpoint is not None
        [tick] = [row.value for row in units.select("value").collect()]
        with reading_table(self._settings.name):
            table = self._table(units.sparkSession)
            name = self._increasing(table)
            remembered = Remembered(units.sparkSession, f"{self._checkpoint}/{DIRECTORY}")
            ends = remembered.of(tick)
            if ends is None:
                before = remembered.before(tick)
                after = None if before is None else before["upto"]
                upto = largest(table, name, after)
                ends = {"after": after, "upto": after if upto is None else upto}
                remembered.note(tick, ends)
            if ends["upto"] is None:
                return self._raw(table.where(F.lit(False)), schema)
            new = beyond(table, name, ends["after"]) & ~beyond(table, name, ends["upto"])
            return self._raw(table.where(new), schema)

    def apart(self, units: DataFrame) -> Sequence[tuple[str, DataFrame]]:
        return []

    def _table(self, session: SparkSession) -> DataFrame:
        given = self._settings
        options = {
            "url": given.url,
            "dbtable": given.table if given.table is not None else f"({given.query}) tureen_rows",
            "driver": given.driver,
            "user": given.user,
            "password": given.password,
            "partitionColumn": given.partition_column,
            "lowerBound": given.lower,
            "upperBound": given.upper,
            "numPartitions": str(given.partitions),
            "preferTimestampNTZ": "true",
        }
        present = {name: value for name, value in options.items() if value is not None}
        return session.read.format("jdbc").options(**present).load()

    def _raw(self, table: DataFrame, schema: Schema) -> DataFrame:
        return raw_of(table, schema, file=F.lit(self._settings.name))

    def _increasing(self, table: DataFrame) -> str:
        wanted = self._settings.increasing
        assert wanted is not None
        close = [name for name in table.columns if name.casefold() == wanted.casefold()]
        if wanted in close:
            return wanted
        if len(close) != 1:
            raise InputMismatch(
                f"the input has no column {wanted} that increases", hint=f"it has {', '.join(table.columns)}"
            )
        return close[0]


def largest(table: DataFrame, name: str, after: str | None) -> str | None:
    """The largest value beyond ``after``, as text; None where there is none."""
    found = table.where(beyond(table, name, after)).agg(F.max(column(name)).cast("string")).first()
    assert found is not None
    value: str | None = found[0]
    return value


def beyond(table: DataFrame, name: str, after: str | None) -> Column:
    """Whether the column's value is larger; ``after``: text of its type, None: any value is."""
    value = column(name)
    return value.isNotNull() if after is None else value > F.lit(after).cast(table.schema[name].dataType)
