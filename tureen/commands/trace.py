"""``tureen trace``: the way of one record, from its offset to the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tureen import command_options, console


@click.command()
@click.argument("source")
@click.argument("partition", type=click.IntRange(0))
@click.argument("offset", type=click.IntRange(0))
@click.option(
    "--limit", type=click.IntRange(0, 1_000), default=20, show_default=True, help="Ids of queries shown."
)
@command_options.broker_options
def trace(source: str, partition: int, offset: int, limit: int, broker: command_options.Broker) -> None:
    """Follow one record of a stream or a table: read, decoded, entered, matched, joined.

    What the broker cannot know is said with the reason. Takes the operator's token, or a call from the
    broker's own machine.

    \b
    tureen trace trades 0 4711
    """
    with broker.client() as client:
        found = client.trace(source, partition, offset, limit=limit)
    if broker.as_json:
        console.show_json(found)
        return
    click.echo(f"{found['topic']}/{partition}/{offset}: {found['outcome'].replace('_', ' ')}")
    for stage in found["stages"]:
        _show(stage)


def _show(stage: Mapping[str, Any]) -> None:
    known = stage["text"] if stage["known"] else f"not known: {stage['why']}"
    click.echo(f"{stage['stage']:<9} {known}")
    for cell in stage.get("row", ()):
        click.echo(f"{'':<9}   {cell['column']} = {cell['text']}")
    for query_id in (*stage.get("queries", ()), *stage.get("joined_queries", ())):
        click.echo(f"{'':<9}   {query_id}")
    for join in stage.get("joins", ()):
        count = "partners are not known" if join["partners"] is None else f"{join['partners']:,} partners"
        click.echo(f"{'':<9}   {join['with']}: {count} ({join['keys']})")
