"""``tureen pause`` and ``tureen resume``: a query that stands costs nothing for a while."""

from __future__ import annotations

import click

from tureen import console


@click.command()
@click.argument("handle")
@console.broker_options
def pause(handle: str, url: str, token: str | None, as_json: bool) -> None:
    """Pause the query of a handle: it stays registered, costs nothing and has no answer."""
    _change(handle, True, url, token, as_json)


@click.command()
@click.argument("handle")
@console.broker_options
def resume(handle: str, url: str, token: str | None, as_json: bool) -> None:
    """Resume a paused query, as if it had never been paused."""
    _change(handle, False, url, token, as_json)


def _change(handle: str, paused: bool, url: str, token: str | None, as_json: bool) -> None:
    with console.client(url, token) as client:
        status = client.change(handle, paused=paused)
    if as_json:
        console.show_json(dict(status.facts))
    else:
        console.err().print(f"query {status.query_id} is {status.state}", style="green")
