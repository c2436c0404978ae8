"""The job's command line."""

from __future__ import annotations

from typing import Any

import click

from spark_jobs.running import CONTEXT, Given, Run, job_options, run_job
from topics.registry import RegistrySettings


@click.command(context_settings=CONTEXT)
@click.option(
    "--archive", "root", required=True, metavar="URI", help="The archive: a directory of any file system."
)
@click.option("--stream", "streams", multiple=True, metavar="NAME", help="A stream or table to archive.")
@click.option("--all-streams", is_flag=True, help="All that are declared at the start of the run.")
@click.option("--results", multiple=True, metavar="TOPIC", help="A topic of results to archive.")
@click.option("--all-results", is_flag=True, help="All result topics at the start of the run.")
@click.option(
    "--records-at-once",
    type=int,
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="A micro-batch has no more of them.",
)
@click.option(
    "--partition-by",
    type=click.Choice(["hour", "day"]),
    default="hour",
    show_default=True,
    help="Of tables that are new: an hour's rows in a directory, or, of thin streams, a day's.",
)
@click.option("--schema-registry", metavar="URL", help="Where the schemas of results in Avro are.")
@click.option(
    "--schema-registry-user",
    envvar="TUREEN_SCHEMA_REGISTRY_USER",
    metavar="NAME:PASSWORD",
    help="If it requires one.  [env: TUREEN_SCHEMA_REGISTRY_USER]",
)
@click.option("--schema-registry-ca", metavar="FILE", help="PEM file of authorities for its https.")
@job_options(streaming=True, reads_kafka=True)
def archive(
    root: str,
    schema_registry: str | None,
    schema_registry_user: str | None,
    schema_registry_ca: str | None,
    given: Given,
    **others: Any,
) -> None:
    """Streams and result topics to Delta tables, exactly once."""
    if given.stream is None:
        raise click.UsageError("Give --checkpoint DIRECTORY.")
    stream = given.stream

    def prepare() -> Run:
        from spark_jobs.archive.job import run
        from spark_jobs.archive.settings import ArchiveSettings
        from storage.archive.layout import whole_root

        registry = None
        if schema_registry is not None:
            registry = RegistrySettings(schema_registry, schema_registry_user, schema_registry_ca)
        settings = ArchiveSettings(
            root=whole_root(root),
            kafka=given.kafka,
            stream=stream,
            service_id=given.service_id,
            registry=registry,
            **others,
        )
        return lambda session, stop: run(session, settings, stop)

    run_job("archive", given, prepare, streaming=True)
