"""``tureen pause`` and ``tureen resume``: a query that stands costs nothing for a while."""

from __future__ import annotations

import click

from tureen import console


@click.command()
@click.argument("handle", metavar="HANDLE|ID")
@console.broker_options
def pause(handle: str, url: str, token: str | None, as_json: bool) -> None:
    """Pause a query: it stays registered, costs nothing and has no answer."""
    _change(handle, True, url, token, as_json)


@click.command()
@click.argument("handle", required=False, metavar="[HANDLE|ID]")
@click.option("--held", is_flag=True, help="Instead of a query, resume the shards that are held.")
@console.broker_options
def resume(handle: str | None, held: bool, url: str, token: str | None, as_json: bool) -> None:
    """Resume a paused query, as if it had never been paused, or held shards.

    A shard is held where coming back ended the broker's worker again and again, or where memory is too short
    for it; `tureen status` says why, and what to remove or to change first.
    """
    if held == (handle is not None):
        raise click.UsageError("give the handle or the id of a query, or --held")
    if handle is not None:
        _change(handle, False, url, token, as_json)
        return
    with console.client(url, token) as client:
        shards = client.retry()
    if as_json:
        console.show_json({"shards": shards})
    else:
        told = f"trying again: shards {', '.join(map(str, shards))}; see `tureen status`"
        console.err().print(told if shards else "no shard is held")


def _change(handle: str, paused: bool, url: str, token: str | None, as_json: bool) -> None:
    with console.client(url, token) as client:
        status = client.change(handle, paused=paused)
    if as_json:
        console.show_json(dict(status.facts))
    else:
        console.err().print(f"query {status.query_id} is {status.state}", style="green")
