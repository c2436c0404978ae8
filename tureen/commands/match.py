"""``tureen match``: which standing queries does a record satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import click

from tureen import command_options, console

if TYPE_CHECKING:
    from tureen.answers import Matches

RECORDS_AT_ONCE = 1_000


@click.command()
@click.argument("stream")
@click.argument("record", required=False)
@click.option(
    "--limit", type=click.IntRange(0, 100_000), default=100, show_default=True, help="Ids shown for a record."
)
@command_options.broker_options
def match(stream: str, record: str | None, limit: int, broker: command_options.Broker) -> None:
    """Show which registered queries a record satisfies, as if it arrived on the stream now.

    RECORD is one JSON object; `-` or nothing reads NDJSON from stdin, one record a line. Only predicates
    count, not windows. Queries over several sources, such as joins, are left out. --json prints one object a
    record. Exit code 1 when a record is not valid.

    \b
    tureen match trades '{"symbol": "ACME", "price": 9.5, "at": 1700000000000}'
    """
    refused = False
    with broker.client() as client:
        place = 0
        for part in _parts(record):
            for one in client.match(stream, part, limit=limit):
                place += 1
                refused = refused or one.error is not None
                _show(one, place, broker.as_json)
    if refused:
        raise SystemExit(1)


def _parts(record: str | None) -> Iterator[Sequence[bytes]]:
    """Records, some at a time."""
    if record is not None and record != "-":
        yield [record.encode()]
        return
    lines = (line for line in click.get_binary_stream("stdin") if line.strip())
    while part := list(islice(lines, RECORDS_AT_ONCE)):
        yield part


def _show(found: Matches, place: int, as_json: bool) -> None:
    if as_json:
        error = None if found.error is None else found.error.as_dict()
        console.show_json({"queries": list(found.query_ids), "total": found.total, "error": error})
    elif found.error is not None:
        console.err().print(f"record {place}: {found.error.message}", style="red", markup=False)
    else:
        for query_id in found.query_ids:
            click.echo(query_id)
        told = len(found.query_ids)
        rest = f", {told:,} shown (--limit)" if told < found.total else ""
        noun = "query" if found.total == 1 else "queries"
        console.err().print(f"record {place}: {found.total:,} {noun}{rest}", style="dim")
