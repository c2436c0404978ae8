"""``tureen unregister``: a query ends."""

from __future__ import annotations

import click

from tureen import console
from tureen.protocol import query_id


@click.command()
@click.argument("handle")
@console.kafka_options
@console.broker_options
def unregister(
    handle: str,
    by_topic: bool,
    kafka: tuple[str, ...],
    service_id: str,
    url: str,
    token: str | None,
    as_json: bool,
) -> None:
    """End the query of a handle."""
    with console.client(url, token, by_topic, kafka, service_id) as client:
        client.unregister(handle)
    if as_json:
        console.show_json({"query_id": query_id(handle), "state": "GONE"})
    else:
        console.err().print(f"query {query_id(handle)} is gone", style="green")
