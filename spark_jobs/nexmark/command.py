"""The job's command line."""

from __future__ import annotations

from typing import Any

import click

from spark_jobs.nexmark.settings import BASE_MS_DEFAULT, NexmarkSettings
from spark_jobs.running import CONTEXT, Given, Run, job_options, run_job
from spark_jobs.sources.pacing import Warp
from spark_jobs.sources.warp_options import Instant, warp_options


@click.command(context_settings=CONTEXT)
@click.option("--events", type=int, metavar="N", help="Number of events; a stream may be endless.")
@click.option("--seed", default=0, show_default=True, metavar="N", help="Other seeds give other events.")
@click.option("--first", default=0, show_default=True, metavar="N", help="Number of the first event.")
@click.option("--rate", default=10_000, show_default=True, metavar="N", help="Events a second of event time.")
@click.option(
    "--base",
    "base_ms",
    type=Instant(),
    default=BASE_MS_DEFAULT,
    metavar="TIMESTAMP",
    help="Of event 0.  [default: 2015-07-15]",
)
@click.option(
    "--disorder",
    default=1,
    show_default=True,
    metavar="N",
    help="Shuffle events in groups of so many; the streams' lateness allows it.",
)
@click.option("--prefix", default="", metavar="TEXT", help="Before the names of streams and topics.")
@click.option("--partitions", default=1, show_default=True, metavar="N", help="Of topics that are created.")
@click.option("--retain", metavar="TIME", help="How long the broker keeps rows, such as '2 HOURS'.")
@click.option(
    "--declare/--no-declare", default=True, help="Create the streams at the broker.  [default: declare]"
)
@click.option(
    "--stream", is_flag=True, help="Continue with the next events, at their pace; with --checkpoint."
)
@warp_options
@job_options(streaming=True)
def nexmark(
    prefix: str,
    partitions: int,
    retain: str | None,
    declare: bool,
    stream: bool,
    warp: Warp,
    given: Given,
    **events: Any,
) -> None:
    """Nexmark's people, auctions and bids to three topics, and their streams to the broker."""
    if stream != (given.stream is not None):
        raise click.UsageError("--stream and --checkpoint DIRECTORY go together.")

    def prepare() -> Run:
        from spark_jobs.nexmark.job import NexmarkJobSettings, run, run_streaming
        from spark_jobs.nexmark.streams import statements

        settings = NexmarkJobSettings(
            NexmarkSettings(**events),
            given.kafka,
            given.service_id,
            prefix,
            partitions,
            retain,
            declare,
            warp,
            given.stream,
        )
        statements(settings.events, prefix=prefix, partitions=partitions, retain=retain)
        job = run_streaming if stream else run
        return lambda session, stop: job(session, settings, stop)

    run_job("nexmark", given, prepare, streaming=stream or warp.speed is not None)
