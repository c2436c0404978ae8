"""The job's command line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from spark_jobs.compact.settings import CompactSettings, duration_ms, size_bytes
from spark_jobs.running import CONTEXT, Given, Run, job_options, pairs, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.compact.job import CompactReport, Done
    from spark_jobs.running import Stop


@click.command(context_settings=CONTEXT)
@click.option("--archive", "root", required=True, metavar="URI", help="Root of the archive.")
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="Only this stream or table.")
@click.option("--results", multiple=True, metavar="TOPIC", help="Only this result topic.")
@click.option("--query", "queries", multiple=True, metavar="ID", help="Also its answer in typed columns.")
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="NAME=TYPE",
    callback=pairs,
    help="Type of a query's column: TIMESTAMP, DATE, DECIMAL(9, 2), which are text in JSON.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="TABLE=COLUMN,...",
    callback=pairs,
    help="Primary key of an archived table without one.",
)
@click.option("--retain", metavar="90d", help="Remove older rows.  [default: none]")
@click.option("--target-file-size", default="128m", show_default=True, help="Of merged files.")
@click.option(
    "--quiet", default="15m", show_default=True, help="Leave partitions alone that got a file so recently."
)
@click.option(
    "--keep-replaced",
    default="7d",
    show_default=True,
    help="How long replaced files are kept for their readers.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
@job_options()
def compact(
    root: str,
    keys: dict[str, str],
    retain: str | None,
    target_file_size: str,
    quiet: str,
    keep_replaced: str,
    given: Given,
    **others: Any,
) -> None:
    """Merge the archive's small files, fold results to current and history, apply retention."""

    def prepare() -> Run:
        from storage.archive.layout import whole_root

        settings = CompactSettings(
            archive=whole_root(root),
            keys={table: tuple(name.strip() for name in listed.split(",")) for table, listed in keys.items()},
            retain_ms=None if retain is None else duration_ms(retain),
            target_file_bytes=size_bytes(target_file_size),
            quiet_ms=duration_ms(quiet),
            keep_replaced_ms=duration_ms(keep_replaced),
            **others,
        )
        from spark_jobs.compact.job import run

        def work(session: SparkSession, stop: Stop) -> CompactReport:
            with _screen() as done:
                return run(session, settings, datetime.now(UTC), stop, done)

        return work

    # A signal lets the table that is worked on be done. Steps are told when they are done, which can be long.
    run_job("compact", given, prepare, streaming=True, tells=False)


@contextmanager
def _screen() -> Iterator[Done]:
    """What is being done on the terminal's last line, or a line each where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda table, what: click.echo(f"{table}: {what}", err=True)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with console.status("looking at the archive") as status:

        def done(table: str, what: str) -> None:
            if what == "done":
                console.print(f"{table} [green]done[/green]")
            status.update(f"{table}: {what}")

        yield done
