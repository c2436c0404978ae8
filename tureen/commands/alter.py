"""``tureen alter``: another text for a query that runs."""

from __future__ import annotations

from pathlib import Path

import click

from tureen import command_options, console
from tureen.statements import is_query, split


@click.command()
@click.argument("handle")
@click.argument("text", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read the text from it.",
)
@command_options.kafka_options
@command_options.broker_options
def alter(
    handle: str,
    text: str | None,
    file: Path | None,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """Give the query of a handle another text while it runs.

    TEXT is one SELECT; `-` or nothing reads stdin. Where it gives the same columns, change feeds and result
    topics go on with the difference of both answers; else feeds end with must_refetch. A refused text leaves
    the query as it was.

    \b
    tureen alter $HANDLE "SELECT * FROM trades [RANGE 1 HOUR] WHERE price > 200"
    """
    given = console.statement_text(text, file)
    statements = split(console.stdin_text() if given is None else given)
    if len(statements) != 1 or not is_query(statements[0]):
        raise click.UsageError("the new text of a query is one SELECT")
    with broker.client(topics) as client:
        status = client.alter(handle, console.about(statements[0]))
    if broker.as_json:
        console.show_json({"query_id": status.query_id, "state": status.state, **status.facts})
        return
    console.err().print(f"query {status.query_id} has the new text: {status.state}", style="green")
    console.show_altered(status.facts)
