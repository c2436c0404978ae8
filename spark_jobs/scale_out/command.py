"""The job's command line."""

from __future__ import annotations

import click

from spark_jobs.running import CONTEXT, Given, Run, job_options, run_job
from tureen.errors import SettingsError


@click.command("scale-out", context_settings=CONTEXT)
@click.option("--name", required=True, help="Of the run, among those of the service.")
@click.option("--shards", type=int, default=1, show_default=True, help="Parts of the keys, each an engine.")
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="STREAM=COLUMN",
    help="Cut a stream or a table by this column.  [default: all its rows go to one shard more]",
)
@click.option(
    "--whole",
    multiple=True,
    metavar="STREAM",
    help="Also keep all rows of a partitioned stream in one place.",
)
@click.option("--rows-max", type=int, default=500_000, show_default=True, help="Records of one micro-batch.")
@click.option("--schema-registry", metavar="URL", help="For results in avro and json_schema.")
@job_options(streaming=True, reads_kafka=True)
def scale_out(
    name: str,
    shards: int,
    keys: tuple[str, ...],
    whole: tuple[str, ...],
    rows_max: int,
    schema_registry: str | None,
    given: Given,
) -> None:
    """The queries of a service on executors, instead of a broker."""

    def prepare() -> Run:
        from spark_jobs.scale_out.job import run
        from spark_jobs.scale_out.settings import ScaleOutSettings
        from spark_jobs.scale_out.shards.layout import Layout
        from topics.outputs import OutputSettings
        from topics.registry import RegistrySettings

        if given.stream is None:
            raise SettingsError("no checkpoint directory is named", hint="give --checkpoint DIRECTORY")
        registry = None if schema_registry is None else RegistrySettings(schema_registry)
        settings = ScaleOutSettings(
            given.kafka,
            given.service_id,
            name,
            given.stream,
            Layout(shards, _columns(keys), frozenset(whole)),
            rows_max,
            outputs=OutputSettings(registry=registry),
        )
        return lambda session, stop: run(session, settings, stop)

    run_job("scale-out", given, prepare, streaming=True)


def _columns(keys: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in keys:
        stream, equals, column = one.partition("=")
        if not equals or not stream.strip() or not column.strip():
            raise SettingsError(f"{one!r} is not STREAM=COLUMN")
        found[stream.strip()] = column.strip()
    return found
