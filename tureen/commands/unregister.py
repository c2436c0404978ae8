"""``tureen unregister``: queries end."""

from __future__ import annotations

import click

from tureen import command_options, console
from tureen.answers import EndedQueries
from tureen.errors import TureenError

LISTED_MAX = 20
"""Queries named one by one; of more the number is printed."""


@click.command()
@click.argument("queries", metavar="[HANDLE|ID|NAME]...", nargs=-1)
@click.option("--all-of", "source", metavar="SOURCE", help="End all queries that read this.")
@command_options.kafka_options
@command_options.broker_options
def unregister(
    queries: tuple[str, ...],
    source: str | None,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """End queries, by handles, public ids or names, or all that read a stream, a table or a view.

    An id or a name is enough for the operator: whoever has the broker's token, or without one works on its
    machine. By topic, whoever may write the topic of queries.

    \b
    tureen unregister $HANDLE
    tureen unregister wbpy4mk74giav5jp6e2f7uuvyk q5b6mimdkfm5rwfwk2vfxieevb
    tureen unregister --all-of trades
    """
    if (source is None) == (not queries):
        raise click.UsageError("give handles, ids or names of queries, or --all-of SOURCE")
    if topics and source is not None:
        raise click.UsageError("--all-of goes by HTTP: topics do not say what queries read")
    with broker.client(topics) as client:
        if topics:
            for one in queries:
                client.unregister(one)
            console.err().print(f"{len(queries):,} removals are published", style="green")
            return
        ended = client.unregister_many(queries) if source is None else client.unregister_all_of(source)
    _show(ended, broker.as_json)


def _show(ended: EndedQueries, as_json: bool) -> None:
    """What became of them. Raises the first error."""
    refused: TureenError | None = ended.unknown[0][1] if ended.unknown else None
    if refused is not None and len(ended.unknown) + len(ended.query_ids) + len(ended.pending) > 1:
        places = ", ".join(str(place + 1) for place, _ in ended.unknown)
        refused.message = f"number {places} of those given: {refused.message}"
    if as_json:
        if refused is not None and not ended.query_ids and not ended.pending:
            raise refused
        unknown = [{"place": place, "error": error.as_dict()} for place, error in ended.unknown]
        console.show_json(
            {"ended": list(ended.query_ids), "pending": list(ended.pending), "unknown": unknown}
        )
        if refused is not None:
            raise SystemExit(1)
        return
    for query_id in ended.query_ids[:LISTED_MAX]:
        console.err().print(f"query {query_id} is gone", style="green")
    if len(ended.query_ids) > LISTED_MAX:
        more = len(ended.query_ids) - LISTED_MAX
        console.err().print(f"and {more:,} others; {len(ended.query_ids):,} queries are gone", style="green")
    for query_id in ended.pending:
        console.err().print(f"query {query_id} is about to end: its removal is written", style="yellow")
    if not (ended.query_ids or ended.pending or refused):
        console.err().print("no query reads it", style="green")
    if refused is not None:
        raise refused
