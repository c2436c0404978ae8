"""``tureen watch``: an answer and its changes, as they come."""

from __future__ import annotations

import contextlib
from itertools import chain
from typing import TYPE_CHECKING

import click

from tureen import command_options, console
from tureen.changes import SnapshotEvent
from tureen.errors import TureenError, UnknownQuery
from tureen.statements import is_query, split

if TYPE_CHECKING:
    from tureen.client import Query


@click.command()
@click.argument("query", metavar="HANDLE|SELECT")
@click.option("--since", help="Only changes after this position, which a watch or a snapshot has shown.")
@click.option(
    "--once",
    is_flag=True,
    help="Show the answer, or the changes since a position, and end; its sources are waited for.",
)
@click.option("--no-wait", is_flag=True, help="With --once: show what there is, however far sources are.")
@click.option("--poll", is_flag=True, help="Poll: for proxies that do not keep a response open.")
@click.option(
    "--rows", type=click.IntRange(1), default=20, show_default=True, help="Show at most so many rows."
)
@command_options.kafka_options
@command_options.broker_options
def watch(
    query: str,
    since: str | None,
    once: bool,
    no_wait: bool,
    poll: bool,
    rows: int,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """Follow the changes of a query until Ctrl-C.

    Give a handle, or a SELECT, which is registered for as long as it is watched. On a terminal the
    answer is a table that changes: added rows are marked with +, removed ones with -. Elsewhere each change
    is a line, with --json each event is an object. It continues when the broker restarts.

    With --by-topic it reads the result topic of a query with EMIT CHANGES, whether a broker or a
    scale-out writes it.

    \b
    tureen watch $HANDLE
    tureen watch "SELECT * FROM trades [RANGE 1 MINUTE] WHERE price > 100"
    tureen watch $HANDLE --json --once --since POSITION
    tureen watch --by-topic $HANDLE
    """
    from tureen.commands import under_way
    from tureen.watching import show

    sql = _select(query, since)
    if topics is not None:
        if sql is not None:
            raise click.UsageError("with --by-topic give a HANDLE, as `tureen register --by-topic` prints it")
        if since is not None or poll:
            raise click.UsageError("--since and --poll need HTTP; a result topic is read from its beginning")
        _by_topic(query, topics, once, rows, broker.as_json)
        return
    with broker.client() as client, contextlib.ExitStack() as behind:
        if sql is None:
            watched = client.query(query)
        else:
            watched = client.register(console.about(sql), wait=under_way.LINE_S)
            behind.enter_context(contextlib.suppress(UnknownQuery))
            behind.callback(watched.unregister)
            under_way.wait(watched)
        before = _lost(watched)
        if not broker.as_json:
            console.show_lost(*before)
        if once and since is None and not no_wait:
            from tureen.commands import catching_up

            catching_up.wait(watched)
        with watched.changes(since, live=not once, poll=poll) as events:
            show(events, rows=rows, as_json=broker.as_json, folded=since is None, stands=sql is None)
        if not broker.as_json:
            with contextlib.suppress(TureenError):  # the broker may be gone, or the query
                after = _lost(watched)
                if after != before:
                    console.show_lost(*after)


def _select(query: str, since: str | None) -> str | None:
    """The SELECT that is to be watched; None where a handle is given."""
    sql = query if len(query.split()) > 1 else None
    if sql is not None and not (len(split(sql)) == 1 and is_query(sql)):
        raise click.UsageError("give one handle or one SELECT to watch")
    if sql is not None and since is not None:
        raise click.UsageError("--since needs a handle: a new SELECT has no earlier changes")
    return sql


def _lost(watched: Query) -> tuple[int, int, int | None]:
    """Records of its sources that are in no answer: late ones, dead letters, and since when they count."""
    facts = watched.status().facts
    return facts.get("late") or 0, facts.get("dead_letters") or 0, facts.get("counted_from_ms")


def _by_topic(handle: str, topics: command_options.ByTopic, once: bool, rows: int, as_json: bool) -> None:
    """What its result topic holds, and what comes on it."""
    from tureen.topic_feed import topic_events
    from tureen.watching import show

    with contextlib.closing(
        topic_events(topics.settings, topics.service_id, handle, live=not once)
    ) as events:
        first = next(events)
        folded = isinstance(first, SnapshotEvent) and first.operator not in ("dstream", "rstream")
        show(chain([first], events), rows=rows, as_json=as_json, folded=folded, stands=False)
