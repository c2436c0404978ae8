"""The job: micro-batches on the beat of a stream of Spark's, until it is told to stop."""

from __future__ import annotations

from collections import Counter

import click
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.checkpoint import Checkpoint, Identity
from spark_jobs.running import Stop
from spark_jobs.scale_out.driver import Driver
from spark_jobs.scale_out.settings import ScaleOutSettings
from spark_jobs.streaming import BatchCounts, StreamReport, run_stream

JOB = "scale-out"


def run(session: SparkSession, settings: ScaleOutSettings, stop: Stop) -> StreamReport:
    """Run until it is told to stop, or with ``once`` until all that is there is done.

    Raises as :func:`spark_jobs.streaming.run_stream` and :class:`spark_jobs.scale_out.driver.Driver` do.
    """
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "8192")
    drivers: list[Driver] = []

    def frame() -> DataFrame:
        """A row for each beat: the driver finds records and queries, so that streams may come and go."""
        while drivers:
            drivers.pop().close()
        return session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()

    def batch(rows: DataFrame, number: int, checkpoint: Checkpoint) -> BatchCounts:
        if not drivers:
            drivers.append(
                Driver(session, settings, checkpoint.id, say=lambda line: click.echo(line, err=True))
            )
        return _beat(drivers[0], settings, stop)

    identity = Identity(
        JOB, {"service_id": settings.service_id, "name": settings.name, **settings.layout.as_dict()}
    )
    try:
        return run_stream(session, frame, batch, settings.stream, identity, stop, kafka=settings.kafka)
    finally:
        for driver in drivers:
            driver.close()


def _beat(driver: Driver, settings: ScaleOutSettings, stop: Stop) -> BatchCounts:
    """What is due at a beat: one micro-batch, or those of all there is."""
    rows = 0
    counts: Counter[str] = Counter()
    while True:
        report = driver.next()
        if report is not None:
            rows += report.rows
            counts.update(records=report.records, late=report.late, dead_letters=report.dead)
        if report is None or not report.rows or not settings.stream.once or stop.asked:
            return BatchCounts(rows, counts)
