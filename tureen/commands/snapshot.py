"""``tureen snapshot``: an answer, by its handle."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from tureen import command_options, console
from tureen.protocol import SnapshotFormat


class Instant(click.ParamType):
    """Milliseconds since 1970, or ISO 8601; UTC where it names no zone."""

    name = "instant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        from tureen.errors import InstantRefused
        from tureen.snapshot import instant_ms

        try:
            return value if isinstance(value, int) else instant_ms(str(value))
        except InstantRefused as refused:
            self.fail(f"{refused.message}: {refused.hint}", param, ctx)


@click.command()
@click.argument("handle")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "ndjson", "csv", "arrow"]),
    help=console.FORMAT_HELP,
)
@click.option("--at", type=Instant(), help="The answer of an earlier instant: ms since 1970, or ISO 8601.")
@click.option(
    "--archive/--no-archive",
    default=None,
    help="Complete the answer from the archive, or never; by default only --at reads it, where needed.",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write to a file.")
@click.option(
    "--rows", type=click.IntRange(1), default=20, show_default=True, help="Show at most so many rows."
)
@command_options.kafka_options
@command_options.broker_options
def snapshot(
    handle: str,
    form: str | None,
    at: int | None,
    archive: bool | None,
    output: Path | None,
    rows: int,
    topics: command_options.ByTopic | None,
    broker: command_options.Broker,
) -> None:
    """Fetch the answer of a query by its handle.

    The answer is exact for the prefix of the data that its position names. Without --format it is a table
    on a terminal, CSV in a pipe or a file (or what the file's name says). --json is --format json.
    """
    import sys

    if form is None:
        form = "json" if broker.as_json else _by_name(output) or console.default_form()
    if form == "table" and output is not None:
        raise click.UsageError("--output cannot be a table; choose json, ndjson, csv or arrow")
    if form == "arrow" and output is None and sys.stdout.isatty():
        raise click.UsageError("arrow is binary; write it to a file with --output")
    with broker.client(topics) as client:
        if form == "table":
            console.show_snapshot(client.snapshot(handle, at, archive=archive), rows)
            return
        reply = client.fetch(handle, cast("SnapshotFormat", form), at, archive=archive)
    if output is None:
        console.show_reply(reply, form)
        return
    content = reply.content
    try:
        output.write_bytes(content)
    except OSError as error:
        raise click.FileError(str(output), error.strerror or str(error)) from None
    console.err().print(f"wrote {len(content):,} bytes of {form} to {output}", style="dim")


def _by_name(output: Path | None) -> str | None:
    """The format that a file's name asks for."""
    if output is None:
        return None
    return {".json": "json", ".ndjson": "ndjson", ".jsonl": "ndjson", ".arrow": "arrow"}.get(
        output.suffix.lower(), "csv"
    )
