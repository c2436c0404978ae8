"""``tureen sql``: statements, one after another, or a small prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tureen import console
from tureen.answers import Listing
from tureen.client import Client, Query
from tureen.errors import BrokerUnavailable, TureenError
from tureen.statements import is_followed, is_query, split

HELP = """\
Statements end with ; and may take several lines. A SELECT stays registered; its handle is shown once.
With EMIT CHANGES its changes are shown until Ctrl-C.
Without ; on a line of their own: sources, queries, help, exit."""
PROMPT = "tureen> "
CONTINUED = "   ...> "


@click.command(no_args_is_help=False)
@click.argument("text", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Read the statement from a file.",
)
@click.option("--once", is_flag=True, help="Print a SELECT's answer and unregister it.")
@click.option(
    "--archive/--no-archive",
    default=None,
    help="With --once: complete the answer from the archive, or never.  [default: never]",
)
@click.option(
    "--rows", type=click.IntRange(1), default=20, show_default=True, help="Show at most so many rows."
)
@console.broker_options
def sql(
    text: str | None,
    file: Path | None,
    once: bool,
    archive: bool | None,
    rows: int,
    url: str,
    token: str | None,
    as_json: bool,
) -> None:
    """Run statements: create streams, tables and views, register queries and show answers, SHOW QUERIES.

    Also DROP, SHOW STREAMS, DESCRIBE name, EXPLAIN [ANALYZE], PAUSE, RESUME and TERMINATE 'handle'.

    TEXT is one or more statements, divided by semicolons; `-` or nothing reads stdin, and a terminal gets a
    prompt. The first that is refused ends the run. A SELECT stays registered, its handle is printed once;
    --once registers, prints and unregisters. With EMIT CHANGES a terminal shows its changes until Ctrl-C.

    \b
    tureen sql "CREATE STREAM trades (symbol STRING, price DOUBLE)"
    tureen sql "SELECT * FROM trades [RANGE 1 HOUR] WHERE price > 100"
    tureen sql --once "SELECT COUNT(*) FROM trades" --json
    tureen sql --once --archive "SELECT COUNT(*) FROM trades"
    """
    if archive is not None and not once:
        raise click.UsageError("--archive needs --once; a registered query gets its history without it")
    given = console.statement_text(text, file)
    with console.client(url, token) as client:
        if given is None and sys.stdin.isatty():
            _converse(client, rows)
            return
        if given is None:
            given = console.stdin_text()
        statements = split(given)
        if not statements:
            raise click.UsageError("there is no statement to run")
        for place, statement in enumerate(statements, 1):
            try:
                run(client, console.about(statement), once, rows, as_json, archive)
            except TureenError as error:
                if rest := len(statements) - place:
                    left = f"the {rest:,} after it {'was' if rest == 1 else 'were'} not run"
                    error.message = f"statement {place:,} of {len(statements):,}, {left}: {error.message}"
                raise


def run(
    client: Client, statement: str, once: bool, rows: int, as_json: bool, archive: bool | None = None
) -> None:
    """One statement. archive: as of a snapshot. Raises TureenError."""
    if not is_query(statement):
        _show_listing(client.execute(statement), rows, as_json)
        return
    query = client.register(statement)
    if query.state == "PENDING":
        if once:
            query.unregister()
            raise query.error or TureenError("the stream of this query does not exist")
        if as_json:
            console.show_json(console.registered(query))
        else:
            console.show_handle(query, on_stdout=False)
        return
    if is_followed(statement) and archive is None and not as_json and sys.stdout.isatty():
        _follow(query, once, rows)
        return
    try:
        if as_json:
            answer = json.loads(client.fetch(query.handle, "json", archive=archive).content)
            console.show_json(answer if once else {"handle": query.handle, "state": query.state, **answer})
        else:
            console.show_snapshot(query.snapshot(archive=archive), rows, stands=not once)
    finally:
        if once:
            query.unregister()
    if not as_json and not once:
        console.show_handle(query, on_stdout=False)


def _follow(query: Query, once: bool, rows: int) -> None:
    """Its changes, until Ctrl-C."""
    from tureen import watching

    if not once:
        console.show_handle(query, on_stdout=False)
    try:
        with query.changes() as events:
            watching.show(events, rows=rows, as_json=False, stands=not once)
    finally:
        if once:
            query.unregister()


def _show_listing(listing: Listing, rows: int, as_json: bool) -> None:
    """A table, a plan, or a line on what became of what was made, changed or dropped."""
    from tureen.commands import explain

    facts = listing.facts
    if as_json:
        console.show_json(dict(facts))
    elif "plan" in facts:
        explain.show(facts["plan"])
    elif listing.columns:
        _show_rows(listing, rows)
    else:
        what = facts.get("kind", "stream") if "name" in facts else "query"
        told = f"{what} {facts.get('name') or facts.get('query_id')}"
        running = "is ready" if "name" in facts else "is running"
        became = {"RUNNING": running, "GONE": "is gone", "PAUSED": "is paused", "PENDING": "is pending"}
        state = str(facts.get("state"))
        topic = f", read from topic {facts['topic']}" if facts.get("topic") and state == "RUNNING" else ""
        console.err().print(f"{told} {became.get(state, state)}{topic}{_of_topic(facts)}", style="green")
        console.show_warnings(facts.get("warnings") or ())


def _of_topic(facts: Mapping[str, Any]) -> str:
    """What CREATE found of the topic."""
    if "topic_existed" not in facts:
        return ""
    partitions = facts["partitions"]
    held = f"{partitions:,} partition{'' if partitions == 1 else 's'}"
    if not facts["topic_existed"]:
        return f", which did not exist and was created with {held}"
    records = facts["topic_records"]
    return f", which has {held} and {records:,} record{'' if records == 1 else 's'}"


def _show_rows(listing: Listing, rows: int) -> None:
    shown = listing.rows[:rows]
    numeric = [all(isinstance(row[at], int | float) for row in shown) for at in range(len(listing.columns))]
    cut = [name == "statement" for name in listing.columns]
    console.show_table(listing.columns, shown, numeric, cut if any(cut) else None)
    noun = "row" if len(listing) == 1 else "rows"
    rest = f", the first {rows:,} shown (--rows)" if len(shown) < len(listing) else ""
    console.err().print(f"{len(listing):,} {noun}{rest}", style="dim")


def _converse(client: Client, rows: int) -> None:
    """Read, run, print. A refusal does not end it; an end of input does."""
    import contextlib

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  (gives the prompt a history)
    console.err().print(HELP, style="dim")
    pending = ""
    while True:
        try:
            line = input(CONTINUED if pending else PROMPT)
        except EOFError:
            click.echo()
            return
        except KeyboardInterrupt:
            click.echo()
            pending = ""
            continue
        word = line.strip().rstrip("; ").lower()
        if word in ("exit", "quit"):
            return
        if not pending and word in ("help", "sources", "queries"):
            _tell(client, word)
            continue
        pending += line + "\n"
        if not pending.rstrip().endswith(";"):
            pending = pending if pending.strip() else ""
            continue
        statements, pending = split(pending), ""
        for statement in statements:
            try:
                run(client, statement, once=False, rows=rows, as_json=False)
            except BrokerUnavailable:
                raise
            except TureenError as error:
                console.show_error(error, statement)


def _tell(client: Client, word: str) -> None:
    """What one of the words of the prompt asks for."""
    from tureen.commands import queries, sources

    if word == "sources":
        sources.show(client.sources())
    elif word == "queries":
        queries.show(client.queries())
    else:
        console.err().print(HELP, style="dim")
