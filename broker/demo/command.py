"""``tureen demo``: start all, register, replay, come back, check.

Exit codes as everywhere, and 1 when an answer differs from the plain computation over the files.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.live import Live
from rich.text import Text

from broker.demo import screen
from broker.demo.audience import Audience, Progress, Verdict
from broker.demo.board import BOARD, CREATES
from broker.demo.bursts import KEY, Bursts, keys
from broker.demo.dashboards import FOLLOWED, dashboards
from broker.demo.flights import Data, Replayed, load, planes
from broker.demo.promising import RARE, UNITS_PER_S, Promising
from broker.demo.queries import Standing, count_of_all, headlines, standing, watch_list
from broker.demo.replay import Replay
from broker.demo.services import Services, services
from tureen.answers import Matches
from tureen.client import Client, connect
from tureen.command_options import KAFKA_BOOTSTRAP_DEFAULT, json_option
from tureen.commands import explain
from tureen.protocol import Handle, new_handle, query_id

DAYS_PER_S = 6.0
FRAME_S = 0.25
GLANCE_S = 0.08
LIVE_DAYS_PER_S = 0.05
"""With --keep, once the replay is over: some fifty flights a second."""
EARLY = 400
"""Queries that stand before the first flight; the others come while it runs."""
TILES_A_FRAME = 2
MATCHES_MAX = 100_000
CHECK_MAX_S = 60.0
FOLLOWED_CHECKED = 200
"""Followed aggregates whose answers are compared too."""
"""Comparing all answers takes some ten seconds; a machine that needs much longer compares fewer."""
URL_DEFAULT = "http://127.0.0.1:8080"


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
@click.option("--burst", is_flag=True, help="Bursts come by themselves; else the key b switches one on.")
@click.option("--keep", is_flag=True, help="Keep running after the replay, until Ctrl-C.")
@json_option
def demo(
    headless: bool,
    speed: float | str | None,
    wanted: int | None,
    rows_wanted: int | None,
    followed: int,
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
        show = Show(console, headless, as_json, None if speed == "max" else float(speed))
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

    def __init__(self, console: Console, headless: bool, as_json: bool, days_per_s: float | None) -> None:
        self.console = console
        self.headless = headless
        self.as_json = as_json
        self.days_per_s = days_per_s
        self.seconds: dict[str, float] = {}

    def run(
        self, wanted: int | None, rows_wanted: int | None, followed: int, burst: bool, keep: bool
    ) -> bool:
        """True when every checked answer was right."""
        with contextlib.ExitStack() as stack:
            aside = stack.enter_context(ThreadPoolExecutor(2))
            loading = aside.submit(load, rows_wanted)
            with self._part("starting Kafka and the broker", "start", spinning=False):
                running = stack.enter_context(services(self.console))
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
            if not self.headless:
                promising.start()
            began = time.monotonic()
            replay.start()
            bursts = Bursts(client, replay, by_itself=burst)
            bursts.begin()
            # Most queries come while data flows: they see what was before as well as what comes after.
            registering = aside.submit(audience.register, len(queries))
            self._follow(running, replay, audience, board, promising, handle, absent, bursts)
            bursts.end()
            promising.hold()
            if replay.error is not None:
                raise replay.error
            self.seconds["replay"] = time.monotonic() - began
            with self._part(f"registering the rest of {len(queries):,} queries", "register_rest"):
                registering.result()
            with self._part("waiting until the last records have entered", "settle"):
                progress = audience.settle(replay.total, replay.last_ms)
            returned = self._come_back(running, handle, absent)
            limited = self._lift(promising)
            late = self._newcomer(client)
            with self._part("comparing every answer with the files", "check"):
                data: Data = {one.name: one for one in (flights, weather, aircraft)}
                verdict = board.check(data, CHECK_MAX_S)
                verdict += audience.check(data, CHECK_MAX_S)
                verdict += boards.check(data, CHECK_MAX_S, FOLLOWED_CHECKED)
                verdict += promising.audience.check(data, CHECK_MAX_S)
                matched = self._match(client, audience, flights, verdict)
            good = not verdict.wrong and not progress.late and not progress.refused
            registered = len(queries) + len(BOARD) + followed + len(promising.audience.standing)
            more = {"queries": registered, "followed": followed, "matched": matched.total}
            if bursts.count:
                more |= bursts.facts()
            self._conclude(replay, progress, verdict, {**more, **returned, **limited, **late}, good)
            if not self.as_json:
                self._look_next(client, board, flights, matched, keep)
            if keep:
                shown = [*board.handles, *audience.handles[: len(headlines())], *promising.audience.handles]
                replay.go_on(LIVE_DAYS_PER_S)
                self._stay(running, replay, handle, promising, *shown)
            with self._part("stopping", "stop"):
                stack.close()
        return good

    # --- parts ------------------------------------------------------------------------------------

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

    def _follow(
        self,
        running: Services,
        replay: Replay,
        audience: Audience,
        board: Audience,
        promising: Promising,
        handle: Handle,
        absent: Standing,
        bursts: Bursts,
    ) -> None:
        """Until the replay is over."""
        if self.headless:
            told = 0.0
            while not replay.done:
                running.check()
                bursts.tick()
                promising.look()
                if not self.as_json and replay.seconds - told >= 10.0:
                    told = replay.seconds
                    now = audience.progress()
                    self.console.print(
                        Text(f"  {told:3.0f} s  {now.records:,} records, {now.entered:,} rows entered", "dim")
                    )
                time.sleep(0.1)
            return
        titles = [one.title for one in headlines()]
        found = before = [0] * len(titles)
        drawn = [place for place, one in enumerate(BOARD) if one.drawn]
        tiles = {place: screen.tile(BOARD[place], board.look(place)) for place in drawn}
        turn = cycle(drawn)
        self.console.print(
            f"\nThe key {KEY} switches a burst on and off, and so does the page:", style="bold"
        )
        self._say(f"{running.url}/#/changes")
        self.console.print("Try it from another terminal while this runs:", style="bold")
        self._invite(running, handle, promising)
        with (
            keys() as pressed,
            Live(console=self.console, auto_refresh=False, transient=True) as view,
        ):
            while not (over := replay.done) or not promising.ends():
                frame = time.monotonic()
                running.check()
                if pressed.pressed(KEY):
                    bursts.switch()
                bursts.tick()
                progress = audience.progress()
                found = [int(audience.look(i).table["flights"][0].as_py()) for i in range(len(titles))]
                for place in islice(turn, TILES_A_FRAME):
                    tiles[place] = screen.tile(BOARD[place], board.look(place))
                preferred = screen.promising(RARE.title, promising.look())
                panels = [
                    screen.counts(titles, found, before),
                    screen.watched(f"a watch-list: {absent.title}", audience.client.snapshot(handle)),
                    preferred,
                    *tiles.values(),
                ]
                if over:
                    panels = [preferred]
                if bursts.count:
                    panels.insert(0, screen.burst(bursts))
                audience.glance(GLANCE_S)
                view.update(
                    screen.live(
                        self.console,
                        replay,
                        progress,
                        audience.matches,
                        panels,
                        replay.seconds,
                        f"{running.url}/",
                    ),
                    refresh=True,
                )
                before = found
                time.sleep(max(0.0, FRAME_S - (time.monotonic() - frame)))

    def _come_back(self, running: Services, handle: Handle, absent: Standing) -> dict[str, Any]:
        """The client that was away fetches its answer by handle, over a connection of its own."""
        with connect(running.url) as client:
            client.queries()  # a connection stands, so that only the answer is timed
            began = time.perf_counter()
            snapshot = client.snapshot(handle)
            elapsed_ms = (time.perf_counter() - began) * 1_000
        if not self.headless:
            self.console.print()
            self.console.print(
                Text.assemble(
                    "The client that was away comes back with its handle: ",
                    (f"{len(snapshot):,} flights", "bold"),
                    f" of {absent.title} in {elapsed_ms:.1f} ms, true at position {snapshot.position}.",
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

    def _match(self, client: Client, audience: Audience, flights: Replayed, verdict: Verdict) -> Matches:
        """Ask which queries want the last flight, and check that they are those that it satisfies."""
        last = len(flights.ts_ms) - 1
        (found,) = client.match("flights", flights.records(last, last + 1), limit=MATCHES_MAX)
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

    def _look_next(
        self, client: Client, board: Audience, flights: Replayed, matched: Matches, keep: bool
    ) -> None:
        """What to try: a plan, and which queries a record satisfies; here as they are answered now."""
        command = _command()
        place = next(at for at, one in enumerate(BOARD) if " FROM late " in one.sql)
        last = len(flights.ts_ms) - 1
        self.console.print("\nThe plan of an answer:", style="bold")
        if keep:  # else nobody answers it any more
            self._say(f'{command} explain "{BOARD[place].sql}"')
        explain.show(client.plan(board.handles[place]))
        self.console.print("\nThe queries that a record satisfies, here the last flight:", style="bold")
        record = flights.records(last, last + 1)[0].decode()
        self._say(f"{command} match flights '{record}'" if keep else record)
        self.console.print(Text(f"  {matched.total:,} queries, {', '.join(matched.query_ids[:2])}, ..."))
        if not keep:
            self.console.print(
                f"\n`{command} demo --keep` leaves all of it running, to ask it yourself.", style="dim"
            )

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

    def _stay(
        self, running: Services, replay: Replay, handle: Handle, promising: Promising, *others: Handle
    ) -> None:
        self.console.print(
            "\nKafka and the broker keep running until Ctrl-C; the flights begin again, as the next year's, "
            f"{LIVE_DAYS_PER_S * 24:g} hours a second.",
            style="bold",
        )
        self._page(running, handle, *others)
        self.console.print("From another terminal:", style="bold")
        self._invite(running, handle, promising)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                running.check()
                if replay.error is not None:
                    raise replay.error
                time.sleep(0.2)

    def _invite(self, running: Services, handle: Handle, promising: Promising) -> None:
        command = _command()
        lines = [] if running.url == URL_DEFAULT else [f"export TUREEN_URL={running.url}"]
        if running.bootstrap != KAFKA_BOOTSTRAP_DEFAULT:
            lines.append(f"export TUREEN_KAFKA__BOOTSTRAP_SERVERS={running.bootstrap}")
        late = (
            "SELECT dest, COUNT(*) AS flights FROM flights [RANGE 1 DAY] WHERE dep_delay > 60"
            " GROUP BY dest ORDER BY flights DESC LIMIT 5"
        )
        lines += [
            f"{command} top",
            f"{command} queries",
            f"{command} snapshot {handle}",
            f'{command} sql "{late}"',
        ]
        for line in lines:
            self._say(line)
        self.console.print(
            f"The answer of flights to rare destinations is approximate, with {UNITS_PER_S} units of work a "
            "second; when the replay is over this limit goes, and it is exact. By hand:"
        )
        for line in promising.commands(command):
            self._say(line)
        self.console.print()

    def _say(self, command: str) -> None:
        self.console.print(Text(f"  {command}", style="cyan"), soft_wrap=True)


def _command() -> str:
    """How `tureen` is called from where this was: by its name where the path finds it."""
    here = Path(sys.executable).parent / "tureen"
    found = shutil.which("tureen")
    if found is not None and Path(found).resolve() == here.resolve():
        return "tureen"
    with contextlib.suppress(ValueError):
        return str(here.relative_to(Path.cwd()))
    return str(here)
