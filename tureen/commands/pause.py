"""``tureen pause`` and ``tureen resume``: a query that stands is not served for a while."""

from __future__ import annotations

import click

from tureen import command_options, console
from tureen.facts import QueryStatus


@click.command()
@click.argument("handle", metavar="HANDLE|ID|NAME")
@click.option(
    "--release", is_flag=True, help="Keep no rows for its windows: its answer may be incomplete afterwards."
)
@command_options.broker_options
def pause(handle: str, release: bool, broker: command_options.Broker) -> None:
    """Pause a query: it stays registered, costs next to nothing and has no answer; feeds of it are silent."""
    with broker.client() as client:
        _show(client.change(handle, paused=True, release=release), broker.as_json)


@click.command()
@click.argument("handle", required=False, metavar="[HANDLE|ID|NAME]")
@click.option("--held", is_flag=True, help="Instead of a query, resume the shards that are held.")
@command_options.broker_options
def resume(handle: str | None, held: bool, broker: command_options.Broker) -> None:
    """Resume a paused query, whose followers are told at once what changed meanwhile, or held shards.

    A shard is held where coming back ended the broker's worker again and again, or where memory is too short
    for it; `tureen status` says why, and what to remove or to change first.
    """
    if held == (handle is not None):
        raise click.UsageError("give the handle or the id of a query, or --held")
    if handle is not None:
        with broker.client() as client:
            _show(client.change(handle, paused=False), broker.as_json)
        return
    with broker.client() as client:
        shards = client.retry()
    if broker.as_json:
        console.show_json({"shards": shards})
    else:
        told = f"trying again: shards {', '.join(map(str, shards))}; see `tureen status`"
        console.err().print(told if shards else "no shard is held")


def _show(status: QueryStatus, as_json: bool) -> None:
    if as_json:
        console.show_json(dict(status.facts))
    else:
        console.err().print(f"query {status.query_id} is {status.state}", style="green")
