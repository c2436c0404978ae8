"""``tureen register``: a query comes to stand."""

from __future__ import annotations

from pathlib import Path

import click

from tureen import command_options, console
from tureen.errors import KafkaUnavailable, TureenError
from tureen.statements import EXECUTED, keyword, placed


@click.command()
@click.argument("text", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Read the statement from a file.",
)
@click.option("--name", help="What the query is called: the operator may give it in the place of its id.")
@click.option("--handle", help="A secret of your own, at least 22 characters.  [default: a new one]")
@click.option(
    "--option",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of the query, such as strategy=upa or maintenance=lazy.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait until it is running.",
)
@command_options.kafka_options
@command_options.broker_options
def register(
    text: str | None,
    file: Path | None,
    name: str | None,
    handle: str | None,
    options: tuple[str, ...],
    wait: float,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """Register a query and print its handle.

    TEXT is one SELECT; `-` or nothing reads stdin, which may have several, divided by semicolons. The handle
    goes to stdout, so that HANDLE=$(tureen register "SELECT ...") keeps it.

    With --by-topic the query is published to a topic, for a broker or a scale-out; for a scale-out the text
    needs EMIT CHANGES, and `tureen watch --by-topic` follows its result topic.
    """
    chosen = command_options.pairs_of(options, "--option") or None
    given = console.statement_text(text, file)
    if given is None:
        given = console.stdin_text()
    texts = placed(given)
    statements = [one.sql for one in texts]
    if not statements:
        raise click.UsageError("there is no statement to register")
    for statement in statements:
        if (verb := keyword(statement)) in EXECUTED:
            raise click.UsageError(f"{verb} is for `tureen sql`; only a SELECT is registered")
    if handle is not None and len(statements) > 1:
        raise click.UsageError(f"one handle cannot be used for {len(statements)} statements")
    if name is not None and len(statements) > 1:
        raise click.UsageError(f"one name cannot be used for {len(statements)} statements")
    with broker.client(topics) as client:
        for place, statement in enumerate(statements, 1):
            try:
                if topics is not None and wait > 0 and not broker.as_json:
                    console.err().print(
                        f"waiting up to {wait:g} s for its record on {topics.status}",
                        style="dim",
                        markup=False,
                    )
                query = client.register(
                    console.about(statement), handle, wait=wait, options=chosen, name=name
                )
            except TureenError as error:
                if isinstance(error, KafkaUnavailable) and error.handle is not None:
                    error.hint = f"with --handle {error.handle} the same query is not registered twice"
                if len(statements) > 1:
                    texts[place - 1].place(error)
                    console.about(given)
                    error.message = f"statement {place} of {len(statements)}: {error.message}"
                raise
            if broker.as_json:
                console.show_json(console.registered(query))
            else:
                console.show_handle(query, on_stdout=True, topics=topics)
                console.show_warnings(query.facts.get("warnings") or ())
