"""``tureen up`` and ``tureen down``: the embedded Kafka from the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from topics import embedded
from tureen.errors import TureenError

_data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where topics are stored; default: TUREEN_DATA_DIR, else the user's data directory.",
)
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.command()
@_data_dir
@click.option("--port", type=int, default=None, help=f"Port of the clients [{embedded.PORT_DEFAULT}].")
@click.option("--controller-port", type=int, default=None, help="Port of the controller [the next one].")
@_json
def up(data_dir: Path | None, port: int | None, controller_port: int | None, as_json: bool) -> None:
    """Start a Kafka on this machine, or find it running."""
    console = Console(stderr=True)
    running = _told(as_json, lambda: embedded.up(data_dir, port, controller_port, console=console))
    if as_json:
        click.echo(json.dumps(running.as_dict()))
    else:
        verb = "is running already" if running.found else "is up"
        click.echo(f"Kafka {running.version} {verb} at {running.bootstrap}, data in {running.data_dir}")


@click.command()
@_data_dir
@_json
def down(data_dir: Path | None, as_json: bool) -> None:
    """Stop the Kafka that `tureen up` started; what it stored stays."""
    stopped = _told(as_json, lambda: embedded.down(data_dir))
    if as_json:
        click.echo(json.dumps({"stopped": stopped}))
    else:
        click.echo("Kafka is stopped" if stopped else "no Kafka was running")


def status_of_kafka(data_dir: Path | None = None) -> dict[str, object]:
    """The embedded Kafka's part of ``tureen status``: ``running`` and, if so, where."""
    running = embedded.status(data_dir)
    return {"running": False} if running is None else {"running": True, **running.as_dict()}


def _told(as_json: bool, action: Callable[[], Any]) -> Any:
    """What the action returns; its error as one line (or one JSON object) and exit code 1."""
    try:
        return action()
    except TureenError as error:
        if as_json:
            click.echo(json.dumps(error.as_dict()))
        else:
            Console(stderr=True, soft_wrap=True, highlight=False).print(f"error: {error}", markup=False)
        sys.exit(1)
