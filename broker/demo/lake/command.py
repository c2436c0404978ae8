"""``tureen demo-spark``: what a pipeline around Spark looks like, each of its commands shown and really run.

Exit codes as everywhere, and 1 when an answer differs from the plain computation over the files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from broker.demo.command import interruptible
from broker.demo.lake import data
from broker.demo.services import Services, services
from spark_jobs.compact.plot import plot_history
from storage.archive.folded import read_folded
from storage.archive.layout import table_uri
from tureen.client import Client, Query, connect
from tureen.command_options import json_option
from tureen.console import instant_of_ms
from tureen.errors import TureenError
from tureen.snapshot import Snapshot

ARCHIVE = "archive"
PICTURE = Path("demo-spark.png")
TITLE = "mean delay of the departures of the last 24 hours, minutes, as answered hour by hour"
WAIT_S = 120.0
POLL_S = 0.1
JOB_S = 900.0
HEARD_LINES = 50
"""Most lines of a failed job's output that are shown."""
EARLIER_DAYS = 14


class JobFailed(TureenError):
    """A Spark job of the demo ended otherwise than well."""

    code = "demo_job_failed"


@click.command("demo-spark")
@click.option(
    "--days", type=click.IntRange(EARLIER_DAYS + 8, 365), default=30, show_default=True, help="Of flights."
)
@click.option(
    "--picture",
    type=click.Path(path_type=Path, dir_okay=False),
    default=PICTURE,
    show_default=True,
    help="Where the plot goes.",
)
@json_option
def demo_spark(days: int, picture: Path, as_json: bool) -> None:
    """Flights from CSV through Spark to a broker, its answers to an archive, and back.

    Starts a Kafka and a broker of its own, then runs Spark jobs one after the other, each a command that you
    could have typed. All is stopped and removed at the end, but for the picture.
    """
    if not os.access(picture.absolute().parent, os.W_OK):
        raise click.BadParameter(f"{picture} cannot be written.", param_hint="--picture")
    console = Console(stderr=True, highlight=False)
    with interruptible():
        sys.exit(0 if Story(console, days, picture, as_json).run() else 1)


class Story:
    """One run. ``seconds`` notes how long each part took, ``facts`` what came of it."""

    def __init__(self, console: Console, days: int, picture: Path, as_json: bool) -> None:
        self.console = console
        self.days = days
        self.picture = picture
        self.as_json = as_json
        self.seconds: dict[str, float] = {}
        self.facts: dict[str, Any] = {}
        self.wrong: list[str] = []

    def run(self) -> bool:
        """True when every answer was right."""
        with contextlib.ExitStack() as stack:
            with self._part("Kafka and a broker start", "start"):
                running = stack.enter_context(services(self.console, archive=ARCHIVE))
            work, archive = running.root / "lake", running.root / ARCHIVE
            work.mkdir()
            self._say(f"they, and all files, are in {running.root} until the end")
            self._say(f"the commands are run there, with --kafka bootstrap.servers={running.bootstrap}")
            client = stack.enter_context(connect(running.url))
            with self._part("the flights of 2013 become a CSV file", "files"):
                flights = data.written(work, self.days)
            self._say(
                f"{flights.path.name}: {flights.rows:,} flights, and {len(data.BROKEN)} rows that are none"
            )

            self._head("CSV to a stream's topic")
            # What a query wants before its stream is there waits; so nothing of the stream escapes it.
            daily = client.register(data.DAY_SQL)
            self._job(
                running, "sources", "--format", "csv", "--input", str(flights.path), "--null-text", "NA",
                "--quarantine", str(work / "aside"), "--key", "origin", "--sql-file", str(flights.statement),
            )  # fmt: skip
            with self._part("the broker takes them in", "ingest"):
                self._until(lambda: client.snapshot(daily.handle).now_ms == flights.end_ms)
            self._check_day(client.snapshot(daily.handle), flights)

            self._head("Stream and answers to the archive")
            self._job(
                running, "archive", "--archive", str(archive), "--all-streams", "--all-results",
                "--checkpoint", str(work / "checkpoint"), "--once",
            )  # fmt: skip
            self._job(
                running, "compact", "--archive", str(archive), "--quiet", "0s", "--query", str(daily.query_id)
            )  # fmt: skip

            self._head("A query that reaches a week back, where the broker keeps a day")
            self._weeks(client, flights)

            self._head("A picture of the compacted history")
            table = f"{table_uri(str(archive), 'queries', daily.query_id)}/history"
            with self._part("drawing", "plot"):
                plot_history(table, "delay", by="origin", to=self.picture, title=TITLE)
            versions = read_folded(table).to_pylist()
            self.facts["history_rows"] = len(versions)
            self._check_history(versions, flights)
            source = table.removeprefix(f"{running.root}/")
            self._say(f"{self.picture}: drawn from {len(versions):,} rows of {source}")
            with self._part("stopping", "stop"):
                stack.close()
        self._conclude(flights)
        return not self.wrong

    # --- answers ----------------------------------------------------------------------------------

    def _weeks(self, client: Client, flights: data.Flights) -> None:
        query = client.register(data.WEEK_SQL)
        first = query.snapshot()
        if not first.complete and first.complete_from_ms is not None:
            self._say(f"at first complete from {instant_of_ms(first.complete_from_ms)} on")
        with self._part("the broker reads what is older from the archive", "backfill"):
            self._until(lambda: query.snapshot().complete_from_ms is None)
        now = query.snapshot()
        self._show(now)
        self._compare("a week", now, data.of_a_week(flights.stream, flights.end_ms))
        at_ms = flights.end_ms - EARLIER_DAYS * data.DAY_MS
        earlier = self._earlier(query, at_ms)
        self._compare("an earlier week", earlier, data.of_a_week(flights.stream, at_ms))
        self._say(
            f"the same as of {instant_of_ms(at_ms)}: {len(earlier):,} rows, made with "
            f"{earlier.archive_rows or 0:,} rows of the archive"
        )

    def _earlier(self, query: Query, at_ms: int) -> Snapshot:
        with self._part(f"the answer of {EARLIER_DAYS} days ago", "at"):
            return query.snapshot(at=at_ms)

    def _compare(self, name: str, snapshot: Snapshot, wanted: Mapping[str, tuple[Any, ...]]) -> None:
        found = {carrier: rest for carrier, *rest in _rows(snapshot)}
        self.facts[name.replace(" ", "_")] = len(found)
        if {carrier: tuple(rest) for carrier, rest in found.items()} != wanted:
            self.wrong.append(f"{name}: {found} is not {wanted}")

    def _check_day(self, snapshot: Snapshot, flights: data.Flights) -> None:
        wanted = data.of_a_day(flights.stream, flights.end_ms)
        found = {origin: (count, delay) for origin, count, delay in _rows(snapshot)}
        if not _equal(found, wanted):
            self.wrong.append(f"a day: {found} is not {wanted}")

    def _check_history(self, versions: Sequence[Mapping[str, Any]], flights: data.Flights) -> None:
        """At a few instants what the history says is what the files say."""
        first_ms = int(flights.stream.ts_ms[0])
        for part in (0.1, 0.35, 0.6, 0.85, 1.0):
            at_ms = first_ms + int((flights.end_ms - first_ms) * part)
            found = {
                one["origin"]: (one["flights"], one["delay"])
                for one in versions
                if one["valid_from_ms"] <= at_ms
                and (one["valid_to_ms"] is None or at_ms < one["valid_to_ms"])
            }
            wanted = data.of_a_day(flights.stream, at_ms)
            if not _equal(found, wanted):
                self.wrong.append(f"the history at {instant_of_ms(at_ms)}: {found} is not {wanted}")

    # --- doing ------------------------------------------------------------------------------------

    def _job(self, running: Services, name: str, *options: str) -> None:
        """Run a job as its command; what it says is shown, and it must end well."""
        running.check()
        line = shlex.join(["tureen", "spark", "run", name, *options])
        self._say(f"$ {self._short(running, line)}", style="cyan")
        settings = ["--kafka", f"bootstrap.servers={running.bootstrap}", "--master", "local[2]"]
        environment = {name: text for name, text in os.environ.items() if not name.startswith("TUREEN_KAFKA")}
        began = time.monotonic()
        try:
            with self._heard(running) as (errors, heard):
                done = subprocess.run(
                    [sys.executable, "-P", "-m", "tureen", "spark", "run", name, *options, *settings],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    timeout=JOB_S,
                    env=environment | {"TUREEN_SERVICE_ID": "tureen"},
                    check=False,
                    start_new_session=True,  # Ctrl-C reaches the demo alone, which ends the job
                )
        except subprocess.TimeoutExpired as late:
            raise JobFailed(
                f"{name} did not end within {JOB_S:.0f} s", hint="is the machine very busy? try fewer --days"
            ) from late
        self.seconds[name] = time.monotonic() - began
        if done.returncode:
            said = ("".join(heard) or done.stdout or "").strip()
            raise JobFailed(f"{name} ended with code {done.returncode}: {said[-2_000:]}")
        for told in done.stdout.splitlines():
            self._say(self._short(running, told))
        self._took("that job", name)

    @contextlib.contextmanager
    def _heard(self, running: Services) -> Iterator[tuple[int | None, deque[str]]]:
        """Where a job writes its progress, and its last lines: the terminal itself, elsewhere a pipe whose
        lines are shown as they come.
        """
        heard: deque[str] = deque(maxlen=HEARD_LINES)
        if self.console.is_terminal and not self.as_json:
            yield None, heard
            return
        read, write = os.pipe()

        def listen() -> None:
            with os.fdopen(read, errors="replace") as lines:
                for line in lines:
                    heard.append(line)
                    self._say(self._short(running, line.rstrip()))

        listener = threading.Thread(target=listen, name="progress", daemon=True)
        listener.start()
        try:
            yield write, heard
        finally:
            os.close(write)
            listener.join(POLL_S + 5)

    def _short(self, running: Services, text: str) -> str:
        """Paths as seen from the demo's directory, which is told at the start."""
        return text.replace(f"{running.root}/", "")

    def _until(self, reached: Callable[[], object]) -> None:
        deadline = time.monotonic() + WAIT_S
        while not reached():
            if time.monotonic() > deadline:
                raise JobFailed(f"not reached within {WAIT_S:.0f} s", hint="is the machine very busy?")
            time.sleep(POLL_S)

    @contextlib.contextmanager
    def _part(self, text: str, name: str) -> Iterator[None]:
        if not self.console.is_terminal:
            self._say(f"{text} ...", style="dim")
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began
        self._took(text, name)

    def _took(self, text: str, name: str) -> None:
        self._say(f"{text} — {self.seconds[name]:.1f} s", style="dim")

    # --- telling ----------------------------------------------------------------------------------

    def _head(self, text: str) -> None:
        if not self.as_json:
            self.console.print(Text(f"\n{text}", style="bold"))

    def _say(self, text: str, style: str = "") -> None:
        if not self.as_json:
            self.console.print(Text(f"  {text}", style=style), soft_wrap=True)

    def _show(self, snapshot: Snapshot) -> None:
        if self.as_json:
            return
        table = Table(box=None, padding=(0, 2, 0, 2))
        for name in snapshot.table.column_names:
            table.add_column(name, justify="left" if name == "carrier" else "right")
        for row in sorted(_rows(snapshot), key=lambda row: -row[1])[:5]:
            table.add_row(*(str(value) for value in row))
        self.console.print(table)

    def _conclude(self, flights: data.Flights) -> None:
        self.facts |= {
            "ok": not self.wrong,
            "flights": flights.rows,
            "picture": str(self.picture),
            "wrong": len(self.wrong),
            "seconds": {name: round(value, 1) for name, value in self.seconds.items()},
        }
        if self.as_json:
            click.echo(json.dumps(self.facts))
        else:
            verdict = "all equal" if not self.wrong else f"{len(self.wrong)} WRONG"
            click.echo(f"\n{flights.rows:,} flights; answers compared with the files: {verdict}")
        for line in self.wrong[:5]:
            click.echo(f"  wrong: {line}", err=True)


def _rows(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in snapshot.table.to_pylist()]


def _equal(found: Mapping[str, tuple[int, Any]], wanted: Mapping[str, tuple[int, Any]]) -> bool:
    """Counts equal, means but for the order of their sum."""
    return found.keys() == wanted.keys() and all(
        count == wanted[name][0]
        and (mean == wanted[name][1] or (mean is not None and abs(mean - wanted[name][1]) < 1e-9))
        for name, (count, mean) in found.items()
    )
