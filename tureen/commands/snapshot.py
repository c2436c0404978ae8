"""``tureen snapshot``: an answer, by its handle."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tureen import command_options, console
from tureen.protocol import SnapshotFormat

if TYPE_CHECKING:
    from tureen.period import Period


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


def instants(command: Callable[..., None]) -> Callable[..., None]:
    """``--at``, or ``--from`` and ``--to``, handed on as ``at``: an instant, a period, or None."""

    @wraps(command)
    def called(*args: Any, at: int | None, since: int | None, until: int | None, **others: Any) -> None:
        from tureen.errors import ValueRefused
        from tureen.period import Period

        if since is None and until is not None:
            raise click.UsageError("--to goes with --from")
        if since is not None and at is not None:
            raise click.UsageError("--at is one instant, --from begins a period; choose one")
        try:
            asked = at if since is None else Period(since, until)
        except ValueRefused as refused:
            raise click.UsageError(refused.message) from None
        command(*args, at=asked, **others)

    for option in (
        click.option("--to", "until", type=Instant(), help="The instant behind the period; NOW if left out."),
        click.option(
            "--from", "since", type=Instant(), help="Its rows over a period, with when they are there."
        ),
        click.option(
            "--at", type=Instant(), help="The answer of an earlier instant: ms since 1970, or ISO 8601."
        ),
    ):
        called = option(called)
    return called


@click.command()
@click.argument("handle")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "ndjson", "csv", "arrow"]),
    help=console.FORMAT_HELP,
)
@instants
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
    at: int | Period | None,
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

    from tureen.snapshot import Snapshot

    if form is None:
        form = "json" if broker.as_json else _by_name(output) or console.default_form()
    if form == "table" and output is not None:
        raise click.UsageError("--output cannot be a table; choose json, ndjson, csv or arrow")
    if form == "arrow" and output is None and sys.stdout.isatty():
        raise click.UsageError("arrow is binary; write it to a file with --output")
    with broker.client(topics) as client:
        kind: SnapshotFormat = "arrow" if form == "table" else cast("SnapshotFormat", form)
        reply = client.fetch(handle, kind, at, archive=archive)
    if form == "table":
        console.show_snapshot(Snapshot.of(reply), rows)
        return
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
