"""``tureen infer``: the statement that a topic asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tureen import command_options, console


@click.command()
@click.argument("topic")
@click.option("--name", help="Of the stream or table; without it, made from the topic's.")
@command_options.broker_options
def infer(topic: str, name: str | None, broker: command_options.Broker) -> None:
    """Propose CREATE STREAM or CREATE TABLE for a topic, from its newest records.

    Nothing is created: read the statement, correct it, and run it. What was guessed is told below it.

    \b
    tureen infer trades
    tureen infer trades > trades.sql
    """
    with broker.client() as client:
        found = client.infer(topic, name)
    if broker.as_json:
        console.show_json(found)
        return
    show(found)


def show(found: Mapping[str, Any]) -> None:
    """The statement as output, what is to be known of it beside."""
    if found["sql"] is not None:
        click.echo(f"{found['sql']};")
    sample = found["sample"]
    read, late = f"{sample['read']:,} of {sample['records']:,}", f"{sample['late']:,}"
    told = console.err()
    told.print(f"it reads {read} sampled records, {late} of them late", style="dim", markup=False)
    for one in sample["unreadable"]:
        told.print(f"no row from {one['records']:,}: {one['reason']}", style="yellow", markup=False)
    for one in found["warnings"]:
        told.print(f"{one['message']} ({one['hint']})", style="yellow", markup=False)
    if found["read_by"]:
        told.print(f"read already by {', '.join(found['read_by'])}", style="yellow", markup=False)
    if found["sql"] is None:
        raise click.exceptions.Exit(1)
