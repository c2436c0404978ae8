"""``tureen watch``: an answer and its changes, as they come."""

from __future__ import annotations

import contextlib

import click

from tureen import console
from tureen.errors import TureenError, UnknownQuery
from tureen.statements import is_query, split


@click.command()
@click.argument("query", metavar="HANDLE|SELECT")
@click.option("--since", help="Only what changed behind this position, which a watch or a snapshot told.")
@click.option("--once", is_flag=True, help="Show what there is, and do not wait for more.")
@click.option("--poll", is_flag=True, help="Ask again and again: for proxies that keep no answer open.")
@click.option(
    "--rows", type=click.IntRange(1), default=20, show_default=True, help="Rows of a table, at most."
)
@console.broker_options
def watch(
    query: str,
    since: str | None,
    once: bool,
    poll: bool,
    rows: int,
    url: str,
    token: str | None,
    as_json: bool,
) -> None:
    """Follow the changes of a query until Ctrl-C.

    Of a handle, or of a SELECT that stands for as long as it is watched. On a terminal the answer is a table
    that changes: rows that came are marked with +, rows that went with -. Elsewhere each change is a line,
    with --json each event an object. It goes on when the broker restarts.

    \b
    tureen watch $HANDLE
    tureen watch "SELECT * FROM trades [RANGE 1 MINUTE] WHERE price > 100"
    tureen watch $HANDLE --json --once --since POSITION
    """
    from tureen.watching import show

    sql = query if len(query.split()) > 1 else None
    if sql is not None and not (len(split(sql)) == 1 and is_query(sql)):
        raise click.UsageError("what is watched is a handle or one SELECT")
    if sql is not None and since is not None:
        raise click.UsageError("--since is for a handle: a SELECT that is new has no earlier changes")
    with console.client(url, token) as client, contextlib.ExitStack() as behind:
        if sql is None:
            watched = client.query(query)
        else:
            watched = client.register(console.about(sql))
            behind.enter_context(contextlib.suppress(UnknownQuery))
            behind.callback(watched.unregister)
            if watched.state == "PENDING":
                raise watched.error or TureenError("the stream of this query does not exist")
        with watched.changes(since, live=not once, poll=poll) as events:
            show(events, rows=rows, as_json=as_json, folded=since is None, stands=sql is None)
