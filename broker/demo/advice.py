"""What the demo says to try: commands for another terminal, a plan, what a record satisfies."""

from __future__ import annotations

import contextlib
import shutil
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from broker.demo.board import BOARD
from broker.demo.promising import UNITS_PER_S
from broker.demo.scene import Scene
from tureen.answers import Matches
from tureen.command_options import KAFKA_BOOTSTRAP_DEFAULT
from tureen.commands import explain

URL_DEFAULT = "http://127.0.0.1:8080"


def invite(console: Console, scene: Scene) -> None:
    """Commands to try from another terminal while it runs."""
    name, running = command(), scene.running
    lines = [] if running.url == URL_DEFAULT else [f"export TUREEN_URL={running.url}"]
    if running.bootstrap != KAFKA_BOOTSTRAP_DEFAULT:
        lines.append(f"export TUREEN_KAFKA__BOOTSTRAP_SERVERS={running.bootstrap}")
    late = (
        "SELECT dest, COUNT(*) AS flights FROM flights [RANGE 1 DAY] WHERE dep_delay > 60"
        " GROUP BY dest ORDER BY flights DESC LIMIT 5"
    )
    lines += [
        f"{name} top",
        f"{name} queries",
        f"{name} snapshot {scene.handle}",
        f'{name} sql "{late}"',
    ]
    for line in lines:
        say(console, line)
    console.print(
        f"The answer of flights to rare destinations is approximate, with {UNITS_PER_S} units of work a "
        "second; when the replay is over this limit goes, and it is exact. By hand:"
    )
    for line in scene.promising.commands(name):
        say(console, line)
    console.print()


def look_next(console: Console, scene: Scene, matched: Matches, keep: bool) -> None:
    """What to try: a plan, and which queries a record satisfies; here as they are answered now."""
    name = command()
    place = next(at for at, one in enumerate(BOARD) if " FROM late " in one.sql)
    last = len(scene.flights.ts_ms) - 1
    console.print("\nThe plan of an answer:", style="bold")
    if keep:  # else nobody answers it any more
        say(console, f'{name} explain "{BOARD[place].sql}"')
    explain.show(scene.client.plan(scene.board.handles[place]))
    console.print("\nThe queries that a record satisfies, here the last flight:", style="bold")
    record = scene.flights.records(last, last + 1)[0].decode()
    say(console, f"{name} match flights '{record}'" if keep else record)
    console.print(Text(f"  {matched.total:,} queries, {', '.join(matched.query_ids[:2])}, ..."))
    if not keep:
        console.print(f"\n`{name} demo --keep` leaves all of it running, to ask it yourself.", style="dim")


def say(console: Console, command: str) -> None:
    """A command or an address, to be copied."""
    console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


def command() -> str:
    """How `tureen` is called from where this was: by its name where the path finds it."""
    here = Path(sys.executable).parent / "tureen"
    found = shutil.which("tureen")
    if found is not None and Path(found).resolve() == here.resolve():
        return "tureen"
    with contextlib.suppress(ValueError):
        return str(here.relative_to(Path.cwd()))
    return str(here)
