"""``tureen demo``: start all, register, replay, come back, check.

Exit codes as everywhere, and 1 when an answer differs from the plain computation over the files.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import click
from pydantic import ByteSize, TypeAdapter, ValidationError
from rich.console import Console
from rich.text import Text

from broker.demo import live, screen
from broker.demo.advice import invite, look_next
from broker.demo.audience import Audience, Progress, Verdict
from broker.demo.board import BOARD, CREATES
from broker.demo.bursts import Bursts
from broker.demo.dashboards import FOLLOWED, dashboards
from broker.demo.flights import Data, Replayed, load, planes
from broker.demo.promising import RARE, Promising
from broker.demo.queries import Standing, count_of_all, headlines, standing, watch_list
from broker.demo.replay import Replay
from broker.demo.scene import Scene
from broker.demo.services import Services, services
from tureen.answers import Matches
from tureen.client import Client, connect
from tureen.command_options import json_option
from tureen.protocol import Handle, new_handle, query_id

DAYS_PER_S = 6.0
LIVE_DAYS_PER_S = 0.05
"""With --keep, once the replay is over: some fifty flights a second."""
EARLY = 400
"""Queries that stand before the first flight; the others come while it runs."""
MATCHES_MAX = 100_000
CHECK_MAX_S = 60.0
"""Comparing all answers takes some ten seconds; a machine that needs much longer compares fewer."""
MEMORY_FACTS = ("used_bytes", "spilled_bytes", "spilled_resident_bytes", "disk_waits")
"""What is told of memory at the end."""
MB = 1e6
FOLLOWED_CHECKED = 200
"""Followed aggregates whose answers are compared too."""


class Speed(click.ParamType):
    """Days of event time a second, or ``max``."""

    name = "days/s"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if value == "max" or isinstance(value, float):
            return value
        try:
            speed = float(str(value))
        except ValueError:
            speed = 0.0
        if not 0.0 < speed < 1e6:
            self.fail(f"{value!r} is neither a number of days a second nor max", param, ctx)
        return speed


class Memory(click.ParamType):
    """So many bytes, as 600MB or 1GiB."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(TypeAdapter(ByteSize).validate_python(value))
        except ValidationError:
            self.fail(f"{value!r} is no size such as 600MB or 1GiB", param, ctx)


@click.command()
@click.option("--headless", is_flag=True, help="No live view, only a summary at the end, for CI.")
@click.option(
    "--speed", type=Speed(), help=f"Days a second, or max.  [default: {DAYS_PER_S:g}; with --headless: max]"
)
@click.option(
    "--queries",
    "wanted",
    type=click.IntRange(7),
    help="Number of queries.  [default: one for each aircraft, and more]",
)
@click.option(
    "--rows", "rows_wanted", type=click.IntRange(1_000), help="Number of flights.  [default: the year]"
)
@click.option(
    "--followed",
    type=click.IntRange(0),
    default=FOLLOWED,
    show_default=True,
    help="Number of aggregates whose changes are written to result topics.",
)
@click.option(
    "--memory",
    "memory_bytes",
    type=Memory(),
    default=0,
    help="The broker's memory, as 600MB; rows beyond it are on disk.  [default: the machine's]",
)
@click.option("--burst", is_flag=True, help="Bursts come by themselves; else the key b switches one on.")
@click.option("--keep", is_flag=True, help="Keep running after the replay, until Ctrl-C.")
@json_option
def demo(
    headless: bool,
    speed: float | str | None,
    wanted: int | None,
    rows_wanted: int | None,
    followed: int,
    memory_bytes: int,
    burst: bool,
    keep: bool,
    as_json: bool,
) -> None:
    """Run a demonstration: a Kafka, a broker, the flights of a year, thousands of queries.

    Replays the 336,776 flights that left New York's airports in 2013, and the weather, through a Kafka and a
    broker of its own. It stops both at the end or on Ctrl-C; your own Kafka and broker are not touched.
    """
    console = Console(stderr=True, highlight=False)
    headless = headless or as_json or not console.is_terminal
    speed = speed or ("max" if headless and not burst else DAYS_PER_S)
    if burst and speed == "max":
        raise click.UsageError("--burst needs a speed that can be exceeded: give --speed a number")
    with interruptible():
        show = Show(console, headless, as_json, None if speed == "max" else float(speed), memory_bytes)
        sys.exit(0 if show.run(wanted, rows_wanted, followed, burst, keep) else 1)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """SIGTERM ends the demo as Ctrl-C does: in order."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    finally:
        signal.signal(signal.SIGTERM, before)


class Show:
    """One run. ``seconds`` notes how long each part took."""

    def __init__(
        self,
        console: Console,
        headless: bool,
        as_json: bool,
        days_per_s: float | None,
        memory_bytes: int = 0,
    ) -> None:
        self.console = console
        self.headless = headless
        self.as_json = as_json
        self.days_per_s = days_per_s
        self.memory_bytes = memory_bytes
        self.seconds: dict[str, float] = {}

    def run(
        self, wanted: int | None, rows_wanted: int | None, followed: int, burst: bool, keep: bool
    ) -> bool:
        """True when every checked answer was right."""
        with contextlib.ExitStack() as stack:
            aside = stack.enter_context(ThreadPoolExecutor(2))
            scene = self._set(stack, aside.submit(load, rows_wanted), wanted, followed, burst)
            progress = self._play(scene, aside)
            more = {**self._come_back(scene), **self._lift(scene.promising), **self._newcomer(scene.client)}
            with self._part("comparing every answer with the files", "check"):
                verdict = self._verdict(scene)
                matched = self._match(scene, verdict)
            good = not verdict.wrong and not progress.late and not progress.refused
            counted = (scene.board, scene.audience, scene.boards, scene.promising.audience)
            registered = sum(len(one.standing) for one in counted)
            facts = {"queries": registered, "followed": followed, "matched": matched.total}
            if scene.bursts.count:
                facts |= scene.bursts.facts()
            facts |= self._memory(scene)
            self._conclude(scene.replay, progress, verdict, {**facts, **more}, good)
            if not self.as_json:
                look_next(self.console, scene, matched, keep)
            if keep:
                scene.replay.go_on(LIVE_DAYS_PER_S)
                self._stay(scene)
            with self._part("stopping", "stop"):
                stack.close()
        return good

    # --- parts ------------------------------------------------------------------------------------

    def _set(
        self,
        stack: contextlib.ExitStack,
        loading: Future[tuple[Replayed, Replayed]],
        wanted: int | None,
        followed: int,
        burst: bool,
    ) -> Scene:
        """Start everything, and register and send what is there before the replay."""
        with self._part("starting Kafka and the broker", "start", spinning=False):
            running = stack.enter_context(services(self.console, memory_bytes=self.memory_bytes))
        self._page(running)
        with self._part("reading the flights of 2013", "load"):
            flights, weather = loading.result()
            aircraft = planes()
            queries = standing(flights, wanted or count_of_all(flights))
        client = stack.enter_context(connect(running.url))
        audience, board = Audience(client, queries), Audience(client, BOARD)
        boards = Audience(client, dashboards(flights, followed))
        promising = Promising(client)
        with self._part("creating streams, a table, a view and the first queries", "register"):
            for sql in (flights.sql, weather.sql, aircraft.sql, *CREATES):
                client.create(sql)
            promising.begin()
            board.register(len(BOARD))
            audience.register(EARLY)
            boards.register(followed)
            absent, handle = self._traveller(running, flights)
        replay = Replay([flights, weather], running.bootstrap, self.days_per_s)
        stack.callback(replay.stop)
        with self._part("sending the aircraft and the first records", "prime"):
            replay.keep(aircraft, lambda rows: audience.progress().tables >= rows)
            replay.prime(
                lambda rows: all(audience.progress().by_stream.get(n, 0) >= k for n, k in rows.items())
            )
        data: Data = {one.name: one for one in (flights, weather, aircraft)}
        bursts = Bursts(client, replay, by_itself=burst)
        return Scene(
            running, client, flights, data, audience, board, boards, promising, replay, bursts, absent, handle
        )

    def _play(self, scene: Scene, aside: ThreadPoolExecutor) -> Progress:
        """Replay the year, until its last records have entered."""
        replay, queries = scene.replay, scene.audience.standing
        if not self.headless:
            scene.promising.start()
        began = time.monotonic()
        replay.start()
        scene.bursts.begin()
        # Most queries come while data flows: they see what was before as well as what comes after.
        registering = aside.submit(scene.audience.register, len(queries))
        if self.headless:
            live.wait(scene, self.console, self.as_json)
        else:
            live.show(scene, self.console)
        scene.bursts.end()
        scene.promising.hold()
        if replay.error is not None:
            raise replay.error
        self.seconds["replay"] = time.monotonic() - began
        with self._part(f"registering the rest of {len(queries):,} queries", "register_rest"):
            registering.result()
        with self._part("waiting until the last records have entered", "settle"):
            return scene.audience.settle(replay.total, replay.last_ms)

    def _verdict(self, scene: Scene) -> Verdict:
        """Compare answers with the files, as many as the time allows."""
        verdict = scene.board.check(scene.data, CHECK_MAX_S)
        verdict += scene.audience.check(scene.data, CHECK_MAX_S)
        verdict += scene.boards.check(scene.data, CHECK_MAX_S, FOLLOWED_CHECKED)
        verdict += scene.promising.audience.check(scene.data, CHECK_MAX_S)
        return verdict

    @contextlib.contextmanager
    def _part(self, text: str, name: str, spinning: bool = True) -> Iterator[None]:
        """Tell what is done, and how long it took, if it took any time.

        Without ``spinning`` others may draw meanwhile.
        """
        began = time.monotonic()
        if self.console.is_terminal and not self.as_json:
            if spinning:
                with self.console.status(text):
                    yield
            else:
                self.console.print(Text(f"{text} ...", style="dim"))
                yield
        else:
            yield
        self.seconds[name] = time.monotonic() - began
        if not self.as_json and self.seconds[name] >= 0.05:
            self.console.print(Text(f"{text} — {self.seconds[name]:.1f} s", style="dim"))

    def _traveller(self, running: Services, flights: Replayed) -> tuple[Standing, Handle]:
        """A client that registers a watch-list and goes away with nothing but a handle."""
        most = standing(flights, 10_000)
        tail = next(str(q.conditions[0][2]) for q in most if q.kind == "aircraft")
        query, handle = watch_list(tail), new_handle()
        with connect(running.url) as client:
            client.register(query.sql, handle)
        return query, handle

    def _come_back(self, scene: Scene) -> dict[str, Any]:
        """The client that was away fetches its answer by handle, over a connection of its own."""
        with connect(scene.running.url) as client:
            client.queries()  # a connection stands, so that only the answer is timed
            began = time.perf_counter()
            snapshot = client.snapshot(scene.handle)
            elapsed_ms = (time.perf_counter() - began) * 1_000
        if not self.headless:
            self.console.print()
            self.console.print(
                Text.assemble(
                    "The client that was away comes back with its handle: ",
                    (f"{len(snapshot):,} flights", "bold"),
                    f" of {scene.absent.title} in {elapsed_ms:.1f} ms, true at position {snapshot.position}.",
                )
            )
            self.console.print(screen.rows(snapshot, 6))
        return {"away_rows": len(snapshot), "away_ms": round(elapsed_ms, 2)}

    def _lift(self, promising: Promising) -> dict[str, Any]:
        """The work of the query with a preference is limited no more: its answer becomes exact."""
        is_whole = promising.lift()
        found = promising.found
        if not self.headless:
            self.console.print(
                Text.assemble(
                    f"While its work was limited, the answer of {RARE.title}, had ",
                    (f"{found.rows:,}", "bold"),
                    f" flights; without its limit it has {found.whole_rows:,}, "
                    f"{'all of them: it is exact' if is_whole else 'still not all'}.",
                )
            )
        return {
            "promising_rows": found.rows,
            "promising_whole_rows": found.whole_rows,
            "promising_approximate": found.approximate,
            "promising_seen": found.seen,
        }

    def _newcomer(self, client: Client) -> dict[str, Any]:
        """A query that comes after all the data."""
        sql = "SELECT COUNT(*) AS flights FROM flights WHERE origin = 'LGA' AND dep_delay > 240"
        began = time.perf_counter()
        query = client.register(sql)
        count = int(query.snapshot().table["flights"][0].as_py())
        elapsed_ms = (time.perf_counter() - began) * 1_000
        query.unregister()
        if not self.headless:
            self.console.print(
                Text.assemble(
                    "A query registered now has all earlier rows: ",
                    (f"{count:,} flights", "bold"),
                    f" left LaGuardia over four hours late; registered and answered in {elapsed_ms:.0f} ms.",
                )
            )
        return {"new_query_ms": round(elapsed_ms, 2)}

    def _memory(self, scene: Scene) -> dict[str, Any]:
        """What the broker holds, and what of it is on disk."""
        memory = scene.running.memory()
        found = {name: memory[name] for name in MEMORY_FACTS}
        if self.memory_bytes and not self.as_json:
            used, spilled, resident = (found[name] / MB for name in MEMORY_FACTS[:3])
            click.echo(
                f"{used:,.0f} MB of memory in use; {spilled:,.0f} MB of rows on disk; the system has "
                f"{resident:,.0f} MB of them in memory; threads waited for {found['disk_waits']:,} pages"
            )
        return found

    def _match(self, scene: Scene, verdict: Verdict) -> Matches:
        """Ask which queries want the last flight, and check that they are those that it satisfies."""
        flights, audience = scene.flights, scene.audience
        last = len(flights.ts_ms) - 1
        (found,) = scene.client.match("flights", flights.records(last, last + 1), limit=MATCHES_MAX)
        (row,) = flights.table.slice(last).to_pylist()
        pairs = zip(audience.standing, audience.handles, strict=True)
        ids = {query_id(handle): one for one, handle in pairs if isinstance(one, Standing)}
        wanted = {key for key, one in ids.items() if one.stream == "flights" and one.holds(row)}
        told = ids.keys() & set(found.query_ids)
        verdict.wrong += [
            f"{ids[key].sql}: matches the last flight, match misses it" for key in wanted - told
        ]
        verdict.wrong += [f"{ids[key].sql}: does not match the last flight" for key in told - wanted]
        return found

    def _conclude(
        self,
        replay: Replay,
        progress: Progress,
        verdict: Verdict,
        more: dict[str, Any],
        good: bool,
    ) -> None:
        facts = {
            "ok": good,
            "flights": replay.sent["flights"],
            "weather": replay.sent["weather"],
            "deltas": progress.deltas,
            "deltas_per_s": round(progress.deltas / (self.seconds["replay"] + self.seconds["settle"])),
            "records_per_s": round(replay.total / max(self.seconds["replay"], 1e-9)),
            "late": progress.late,
            "refused": progress.refused,
            "checked": verdict.checked,
            "checked_rows": verdict.rows,
            "wrong": len(verdict.wrong),
            **more,
            "seconds": {name: round(value, 2) for name, value in self.seconds.items()},
        }
        if self.as_json:
            click.echo(json.dumps(facts))
        else:
            click.echo(
                f"{facts['flights']:,} flights and {facts['weather']:,} hours of weather in "
                f"{self.seconds['replay']:.1f} s, {facts['queries']:,} registered queries\n"
                f"{facts['deltas']:,} changes of {facts['followed']:,} followed aggregates, "
                f"{facts['deltas_per_s']:,} a second\n"
                + (
                    f"all {verdict.of:,} answers"
                    if verdict.checked == verdict.of
                    else f"{verdict.checked:,} of {verdict.of:,} answers, all that {CHECK_MAX_S:.0f} s allow,"
                )
                + f" ({verdict.rows:,} rows) compared with the files: "
                + ("all equal" if not verdict.wrong else f"{len(verdict.wrong):,} WRONG")
                + (f"; {progress.late:,} rows late, {progress.refused:,} refused" if not good else "")
            )
        if more.get("burst_paid") and not self.as_json:
            click.echo(
                f"{more['bursts']} bursts: {more['burst_cores']:.0%} of a core in the last one, "
                f"{more['calm_cores'] or 0:.0%} before; most was paid by"
            )
            for one in more["burst_paid"]:
                click.echo(f"  {one['cpu_share']:6.2%}  {one['query'][:100]}")
        for line in verdict.wrong[:5]:
            click.echo(f"  wrong: {line}", err=True)
        if progress.late:
            click.echo(
                "  Late rows are in no answer: this machine was so busy that a partition had no record for\n"
                "  its idle_timeout while others went on. They are in the topic of late records. Try again\n"
                "  when it has less to do.",
                err=True,
            )

    def _page(self, running: Services, *handles: Handle) -> None:
        """Where to look at it. handles: of queries that the page opens at once; what follows # is sent to
        nobody.
        """
        if not self.as_json:
            opened = f"#/queries?handles={','.join(handles)}" if handles else ""
            address = f"{running.url}/{opened}"
            self.console.print(Text.assemble("The page: ", (address, "bold cyan")), soft_wrap=True)

    def _stay(self, scene: Scene) -> None:
        self.console.print(
            "\nKafka and the broker keep running until Ctrl-C; the flights begin again, as the next year's, "
            f"{LIVE_DAYS_PER_S * 24:g} hours a second.",
            style="bold",
        )
        counted = scene.audience.handles[: len(headlines())]
        preferring = scene.promising.audience.handles
        self._page(scene.running, scene.handle, *scene.board.handles, *counted, *preferring)
        self.console.print("From another terminal:", style="bold")
        invite(self.console, scene)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                scene.running.check()
                if scene.replay.error is not None:
                    raise scene.replay.error
                time.sleep(0.2)
