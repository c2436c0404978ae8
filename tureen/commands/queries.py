"""``tureen queries``: what stands."""

from __future__ import annotations

from collections.abc import Sequence

import click

from tureen import cells, command_options, console
from tureen.facts import QueryStatus
from tureen.protocol import query_id

ROWS_DEFAULT = 50


@click.command()
@click.argument("handles", metavar="[HANDLE|ID|NAME]...", nargs=-1)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=ROWS_DEFAULT,
    show_default=True,
    help="Show at most so many rows.",
)
@click.option(
    "--state",
    type=click.Choice(["RUNNING", "PAUSED", "PENDING", "ERROR", "PUBLISHED"]),
    help="Only queries in this state.  PUBLISHED: with --by-topic, those without a status record yet.",
)
@click.option(
    "--extended",
    is_flag=True,
    help="Show maintenance, strategy, weight and what is not exact too; needs HTTP.",
)
@command_options.kafka_options
@command_options.broker_options
def queries(
    handles: tuple[str, ...],
    limit: int,
    state: str | None,
    extended: bool,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """List the registered queries by their public ids and names.

    Handles are never listed: whoever registered a query has its handle, and can give it here to see only that
    query. --json lists all of them. With --by-topic the list is read from .queries and .status, whether a
    broker or a scale-out runs them: the lane of a scale-out (rows: where the rows are; parts: in every shard;
    lane: in one), where changes go, and why a query is refused or waits.
    """
    if topics and extended:
        raise click.UsageError("--extended needs HTTP: topics do not hold maintenance, strategy and weight")
    wanted = {*handles, *map(query_id, handles)}
    with broker.client(topics) as client:
        found = [
            one
            for one in client.queries()
            if (state is None or one.state == state)
            and (not wanted or one.query_id in wanted or one.name in wanted)
        ]
    if broker.as_json:
        console.show_json([dict(one.facts) for one in found])
    elif topics:
        show_told(found, limit)
    else:
        show(found, limit, extended)


def show(found: Sequence[QueryStatus], limit: int = ROWS_DEFAULT, extended: bool = False) -> None:
    """The table of the first ``limit`` queries."""
    more = ["mode", "weight", "approximate"] if extended else []
    named = ["name"] if any(one.name is not None for one in found[:limit]) else []
    names = ["query", *named, "state", "sources", *more, "statement"]
    console.show_table(
        names,
        [
            (
                one.query_id,
                *([one.name] if named else []),
                one.state,
                ", ".join(one.sources) or "-",
                *([_mode(one), one.facts.get("weight"), _approximate(one)] if extended else []),
                _statement(one),
            )
            for one in found[:limit]
        ],
        [name == "weight" for name in names],
        [name == "statement" for name in names],
    )
    _count(found, limit)


def _mode(status: QueryStatus) -> str:
    """How the answer is maintained, and the strategy of changes; narrow, as a terminal is."""
    known = (status.facts.get("maintenance"), status.facts.get("strategy"))
    return ", ".join(each for each in known if each is not None)


def _approximate(status: QueryStatus) -> str:
    """What was done to its answer and how much of it, each in a few words."""
    tags = status.approximation
    return ", ".join(f"{tag.kind} of {tag.where}: {tag.amount:,.6g} {tag.unit}" for tag in tags) or "-"


def show_told(found: Sequence[QueryStatus], limit: int) -> None:
    """The table of what topics tell of the first ``limit`` queries, and what is wrong with any of those."""
    names = ["query", "state", "lane", "changes go to", "statement"]
    shown = found[:limit]
    console.show_table(
        names,
        [
            (
                one.query_id,
                one.state,
                one.facts.get("lane") or "-",
                (one.facts.get("output") or {}).get("topic", "-"),
                _statement(one),
            )
            for one in shown
        ],
        [False] * len(names),
        [name == "statement" for name in names],
    )
    for one in shown:
        if one.error is not None:
            click.echo(f"{one.query_id} {one.state}: {cells.cell(one.error.message)}")
            if one.error.hint:
                click.echo(f"  hint: {cells.cell(one.error.hint)}")
        for trouble in one.facts.get("degraded") or ():
            click.echo(f"{one.query_id} degraded: stream {trouble.get('stream')}: {trouble.get('message')}")
    if any(one.state == "PENDING" for one in shown):
        console.err().print(f"what is PENDING: {console.LOOKED_AT_AGAIN}", style="dim")
    _count(found, limit)


def _statement(one: QueryStatus) -> str:
    return " ".join((one.sql or "").split())


def _count(found: Sequence[QueryStatus], limit: int) -> None:
    rest = f", {limit:,} shown (--limit)" if len(found) > limit else ""
    console.err().print(f"{len(found):,} quer{'y' if len(found) == 1 else 'ies'}{rest}", style="dim")
