"""``tureen queries``: what stands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tureen import console
from tureen.facts import QueryStatus

ROWS_DEFAULT = 50


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=ROWS_DEFAULT,
    show_default=True,
    help="Rows of the table, at most.",
)
@click.option("--state", type=click.Choice(["RUNNING", "PAUSED", "PENDING", "ERROR"]), help="Only those.")
@click.option("--extended", is_flag=True, help="Tell maintenance and weight too.")
@console.broker_options
def queries(
    limit: int, state: str | None, extended: bool, url: str, token: str | None, as_json: bool
) -> None:
    """List the standing queries by their public ids.

    Handles are never listed: who registered a query has its handle. --json lists all of them.
    """
    with console.client(url, token) as client:
        found = [one for one in client.queries() if state is None or one.state == state]
    if as_json:
        console.show_json([dict(one.facts) for one in found])
        return
    show(found, limit, extended)


def show(found: Sequence[QueryStatus], limit: int = ROWS_DEFAULT, extended: bool = False) -> None:
    """The table of the first ``limit`` queries."""
    more = {"mode": "maintenance", "weight": "weight"} if extended else {}
    names = ["query", "state", "sources", *more, "statement"]
    console.show_table(
        names,
        [
            (
                one.query_id,
                one.state,
                ", ".join(one.sources) or "-",
                *(one.facts.get(fact) for fact in more.values()),
                " ".join((one.sql or "").split()),
            )
            for one in found[:limit]
        ],
        [name == "weight" for name in names],
        [name == "statement" for name in names],
    )
    rest = f", {limit:,} shown (--limit)" if len(found) > limit else ""
    console.err().print(f"{len(found):,} quer{'y' if len(found) == 1 else 'ies'}{rest}", style="dim")
