"""The job's command line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from spark_jobs.running import CONTEXT, Given, Run, job_options, run_job
from spark_jobs.sources.jdbc_settings import jdbc_options
from spark_jobs.sources.settings import FORMATS, SourcesSettings
from spark_jobs.sources.warp_options import warp_options


@click.command(context_settings=CONTEXT)
@click.option("--input", "inputs", multiple=True, metavar="PATH", help="File, directory or glob.")
@click.option("--format", type=click.Choice(FORMATS), required=True, help="What the input is.")
@click.option("--sql", "text", metavar="CREATE STREAM ...", help="The stream: columns, topic, time.")
@click.option(
    "--sql-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A file that holds it."
)
@click.option("--key", metavar="COLUMN", help="Column that becomes the records' key.")
@click.option(
    "--quarantine",
    metavar="DIRECTORY",
    help="Directory for rows that do not fit; without it they end the run.",
)
@click.option("--delimiter", default=",", show_default=True, help="Between the cells of CSV.")
@click.option("--null-text", default="", metavar="TEXT", help="A cell of CSV that means NULL, such as NA.")
@click.option(
    "--split", is_flag=True, help="Read large CSV files in parallel; no cell may contain a line break."
)
@click.option(
    "--declare/--no-declare", default=True, help="Create the stream at the broker.  [default: declare]"
)
@click.option("--stream", is_flag=True, help="Continue with new files, each once; with --checkpoint.")
@click.option(
    "--files-max", default=100, show_default=True, metavar="N", help="New files that a micro-batch takes."
)
@click.option("--select", metavar="SQL", help="Columns made of the rate source's timestamp and value.")
@click.option(
    "--rows-per-second", "rows_per_s", default=10, show_default=True, metavar="N", help="Of the rate source."
)
@jdbc_options
@warp_options
@job_options(streaming=True)
def sources(
    text: str | None,
    sql_file: Path | None,
    stream: bool,
    given: Given,
    **others: Any,
) -> None:
    """Rows of files or a database to a stream's topic, typed, and the stream to the broker."""
    if (text is None) == (sql_file is None):
        raise click.UsageError("Give the stream's CREATE STREAM as --sql or as --sql-file.")
    if stream != (given.stream is not None):
        raise click.UsageError("--stream and --checkpoint DIRECTORY go together.")
    sql = text if text is not None else sql_file.read_text("utf-8") if sql_file is not None else ""

    def prepare() -> Run:
        from spark_jobs.sources.declaring import declared_stream
        from spark_jobs.sources.job import run
        from spark_jobs.sources.stream import run_streaming

        declared_stream(sql)
        settings = SourcesSettings(
            sql=sql,
            kafka=given.kafka,
            service_id=given.service_id,
            stream=given.stream,
            **others,
        )
        if stream:
            return lambda session, stop: run_streaming(session, settings, stop, datetime.now(UTC))
        return lambda session, stop: run(session, settings, datetime.now(UTC), stop)

    run_job("sources", given, prepare, streaming=stream or others["warp"].speed is not None)
