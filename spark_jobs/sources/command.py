"""The job's command line."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from spark_jobs.sources.settings import FORMATS, SourcesSettings
from topics.embedded import HOST, PORT_DEFAULT
from topics.settings import kafka_settings
from tureen.errors import KafkaUnavailable, TureenError

FAILED = 1
UNREACHABLE = 3


def _pairs(_: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{text!r} is not KEY=VALUE", param=parameter)
        pairs[key.strip()] = value.strip()
    return pairs


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--input", "inputs", multiple=True, required=True, metavar="PATH", help="File, directory or glob."
)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What the files are.")
@click.option("--sql", "text", metavar="CREATE STREAM ...", help="The stream: columns, topic, time.")
@click.option(
    "--sql-file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A file that holds it."
)
@click.option("--key", metavar="COLUMN", help="Column that becomes the records' key.")
@click.option(
    "--quarantine", metavar="DIRECTORY", help="Where rows that do not fit go; else they refuse the run."
)
@click.option("--delimiter", default=",", show_default=True, help="Between the cells of CSV.")
@click.option("--null-text", default="", metavar="TEXT", help="A cell of CSV that means NULL, such as NA.")
@click.option(
    "--split", is_flag=True, help="Read large CSV files in parallel; no cell may hold a line break."
)
@click.option(
    "--declare/--no-declare", default=True, help="Create the stream at the broker.  [default: declare]"
)
@click.option(
    "--service-id",
    envvar="TUREEN_SERVICE_ID",
    default="tureen",
    show_default=True,
    help="Prefix of the broker's topics.  [env: TUREEN_SERVICE_ID]",
)
@click.option(
    "--kafka",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_pairs,
    help=f"A Kafka setting.  [default: bootstrap.servers={HOST}:{PORT_DEFAULT}; env: TUREEN_KAFKA__...]",
)
@click.option("--master", default="local[*]", show_default=True, help="Spark's; spark-submit's own wins.")
@click.option("--memory", default="1g", show_default=True, help="Of the driver.")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", callback=_pairs, help="A Spark setting.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sources(
    inputs: tuple[str, ...],
    form: str,
    text: str | None,
    sql_file: Path | None,
    key: str | None,
    quarantine: str | None,
    delimiter: str,
    null_text: str,
    split: bool,
    declare: bool,
    service_id: str,
    kafka: dict[str, str],
    master: str,
    memory: str,
    conf: dict[str, str],
    as_json: bool,
) -> None:
    """Files of rows to the typed records of a stream's topic, and the stream to the broker."""
    if (text is None) == (sql_file is None):
        raise click.UsageError("Give the stream's CREATE STREAM as --sql or as --sql-file.")
    sql = text if text is not None else sql_file.read_text("utf-8") if sql_file is not None else ""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        # Spark is imported here, so that --help and a wrong option need none.
        from spark_jobs.session import SparkSettings, start
        from spark_jobs.sources.job import declared_stream, run

        declared_stream(sql)
        settings = SourcesSettings(
            sql=sql,
            inputs=inputs,
            format=form,  # type: ignore[arg-type]
            kafka={
                "bootstrap.servers": f"{HOST}:{PORT_DEFAULT}",
                **kafka_settings(kafka, environ=os.environ),
            },
            key=key,
            quarantine=quarantine,
            declare=declare,
            service_id=service_id,
            delimiter=delimiter,
            null_text=null_text,
            split=split,
        )
        session = start("tureen sources", SparkSettings(master, memory, conf))
        try:
            report = run(session, settings, datetime.now(UTC))
        finally:
            session.stop()
    except TureenError as error:
        if as_json:
            click.echo(json.dumps({"error": error.as_dict()}))
        else:
            console.print(Text.assemble(("error: ", "bold red"), str(error)))
        sys.exit(UNREACHABLE if isinstance(error, KafkaUnavailable) else FAILED)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in ("pyspark", "py4j"):
            raise
        console.print("error: PySpark is not installed\nhint: pip install '.[server,spark]'", markup=False)
        sys.exit(FAILED)
    if as_json:
        click.echo(json.dumps(report.as_dict()))
        return
    click.echo(f"{report.rows_written:,} of {report.rows_read:,} rows written to {report.topic}")
    if report.rows_quarantined:
        click.echo(f"{report.rows_quarantined:,} did not fit and went, with the reasons, to {quarantine}")
    if report.declared:
        click.echo(f"stream {report.stream} is declared")
