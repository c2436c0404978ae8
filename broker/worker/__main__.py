"""``python -m broker.worker``: shards, the public API and the internal one, until a signal says stop.

One event loop for both servers; each shard has its thread. Stops on SIGTERM or SIGINT, or when the supervisor
is gone: requests in flight are answered, steps at hand journalled, stores saved.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import faulthandler
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn
import uvloop
from starlette.types import ASGIApp

from broker.allotment.relief import Relief
from broker.base import logs, settings
from broker.base.settings import Settings
from broker.feeds.follows import Follows
from broker.feeds.hub import Hub
from broker.http.answers import AtOnce, ShortWay, Snapshots
from broker.http.callers import Callers
from broker.http.carried import Carried
from broker.http.connection import Called, Connection, CutOff
from broker.http.feeds import Feeds
from broker.http.guard import Guard
from broker.http.handle_header import HandleHeader
from broker.http.options import CHANGEABLE
from broker.http.pages import HEADERS
from broker.http.private import private_api, private_socket
from broker.http.public import public_api
from broker.http.rights import Tokens
from broker.memory.budget import budget
from broker.memory.held import HeldMemory
from broker.memory.levels import Memory
from broker.memory.spill import Spill
from broker.node.node import Node
from broker.node.plan_mirror import PlanMirror
from broker.node.shard_setup import shard_setup
from broker.observe.entities import Entities
from broker.observe.metrics import Metrics
from broker.observe.observer import Observer
from broker.runtime import calibration, open_files, orphan
from broker.runtime.compiling import compile_once
from broker.runtime.engines import Engines, limits, state_settings
from broker.runtime.in_flight import InFlight, Patience
from broker.runtime.isolated_functions import functions_of
from broker.runtime.known_costs import known_or_measured
from broker.runtime.liveness import Liveness
from broker.runtime.publisher import Publisher
from broker.runtime.reader_compilation import ReaderCompilation
from broker.supervisor import FATAL
from storage.spill_files import SpillFiles
from tureen.errors import KafkaUnavailable, TureenError

if TYPE_CHECKING:
    from broker.flight.server import FlightServer
    from broker.postgres.server import PostgresServer

BEATS = 8
"""Signs of life of the event loop in the time that they may be missing; once a second at least."""
SWITCH_S = 0.0005
"""A thread lends the interpreter for so long at most. Python's own 5 ms, waited for at every call that lets
it go, would add up to most of the time of an answer while a shard makes its steps.
"""

log = logs.get()


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Worker:
    """Everything of the worker process."""

    def __init__(self, loaded: Settings, engines: Engines, memory: Memory) -> None:
        self.settings = loaded
        kafka = loaded.kafka()
        self.stop = asyncio.Event()
        self.code = 0
        self.in_flight = InFlight(
            Patience(
                connections=open_files.allow(loaded.http_connections_max),
                bytes=loaded.requests_bytes_max,
                head_s=loaded.request_head_timeout_ms / 1_000,
                wait_s=loaded.request_body_timeout_ms / 1_000,
                rate=loaded.request_rate_bytes_min,
            )
        )
        self.metrics = Metrics(self.in_flight)
        self._loop = asyncio.get_running_loop()
        self.hub = Hub(
            loaded.feeds_memory_bytes,
            loaded.feeds_memory_ms / 1_000,
            self._wake_feeds,
        )
        self.liveness = memory.liveness
        memory.accounts.others = lambda: self.hub.size + self.in_flight.bytes
        setup = shard_setup(loaded, kafka, engines, memory, self.hub, self._fenced)
        self.node = Node(setup, self.liveness)
        self.follows = Follows(self.node, self.hub, loaded.feeds_linger_ms / 1_000)
        self.metrics.feeds.followed = lambda: self.hub.followed
        self.metrics.feeds.size = lambda: self.hub.size

    def _wake_feeds(self) -> None:
        self._loop.call_soon_threadsafe(self.follows.wake)

    def _fenced(self, shard: int) -> None:
        log.error(
            "node_fenced",
            shard=shard,
            hint="another broker with this service id has taken over; give one of the two another id",
        )
        self.code = FATAL
        self._loop.call_soon_threadsafe(self.stop.set)

    async def run(self) -> int:
        """Serve until told to stop; returns the exit code."""
        loop = self._loop
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop.set)
        if self.settings.supervisor_fd is not None:
            orphan.watch(self.settings.supervisor_fd, lambda: self._loop.call_soon_threadsafe(self._orphaned))
        publisher = Publisher(
            self.node.setup.kafka, self.settings.record_bytes_max, self.settings.publish_timeout_ms
        )
        snapshots = Snapshots(self.settings, self.node, self.metrics)
        observer = Observer(self.node, self.metrics, Entities(self.node, CHANGEABLE))
        readers = ReaderCompilation()
        carried = Carried.made(self.settings, self.node, publisher, readers)
        api = public_api(self.settings, self.node, carried, snapshots, self.metrics, observer)
        feeds = Feeds(api, self.settings, self.node, self.hub, self.follows, snapshots, self.metrics.feeds)
        doors = self._other_doors(carried, feeds)
        self.metrics.doors = partial(self._doors, doors)
        id_of = self.node.directory.queries.names.id_of
        servers = [
            self._public_server(Called(HandleHeader(ShortWay(feeds, snapshots), id_of)), snapshots),
            self._private_server(snapshots),
        ]
        tasks = [
            asyncio.ensure_future(servers[0].serve()),
            asyncio.ensure_future(servers[1].serve([private_socket(self.settings.socket_path)])),
        ]
        relief = Relief(self.settings, self.node, self.node.setup.memory, publisher)
        mirror = PlanMirror(self.settings, self.node, publisher)
        self.metrics.pauses = lambda: relief.pauses
        works = (
            *(door.serve() for door in doors),
            relief.run(),
            mirror.run(),
            self._start(),
            self._sample(),
            observer.run(),
            self._beat(),
            self.node.kafka_watch.run(),
            feeds.tick(),
            readers.run(),
            self.in_flight.tick(),
        )
        tasks += [asyncio.ensure_future(work) for work in works]
        stopping = asyncio.ensure_future(self.stop.wait())
        await asyncio.wait({stopping, *tasks[:2]}, return_when=asyncio.FIRST_COMPLETED)
        if not self.stop.is_set():
            log.error("server_ended", hint="is the port in use?")
            self.code = FATAL
        log.info("worker_stops")
        self.node.life.stopping.set()
        feeds.stop()
        for door in doors:
            await door.stop()
        await self._stop(servers, tasks)
        snapshots.close()
        publisher.close()
        self.liveness.note_memory(0, 0)
        log.info("worker_stopped")
        return self.code

    async def _stop(self, servers: list[Server], tasks: Sequence[asyncio.Future[None]]) -> None:
        """Stop the servers, whose tasks are the first, and all other work, within the time set."""
        for server in servers:
            server.should_exit = True
        for task in tasks[2:]:
            task.cancel()
        if not await self.node.life.stop(self.settings.stop_timeout_ms / 1_000 - 3.0):
            log.warning(
                "stopped_while_waiting", hint="everything in the journal is safe; the rest is read again"
            )
        for server in servers:
            server.force_exit = True
        await asyncio.wait(tasks, timeout=1.0)

    def _orphaned(self) -> None:
        log.warning("supervisor_gone")
        self.stop.set()

    async def _start(self) -> None:
        while True:
            try:
                numbers = await asyncio.to_thread(self._known_shards)
                break
            except KafkaUnavailable as away:
                log.warning("kafka_awaited", reason=away.message)
                await asyncio.sleep(self.settings.retry_ms / 1_000)
        gc.disable()  # what comes back stays: there are no cycles to look for among it
        try:
            await self.node.life.start(numbers)
            gc.collect()
            gc.freeze()
        finally:
            gc.enable()
        log.info(
            "worker_started",
            shards=sorted(shard.number for shard in self.node.shards),
            queries=len(self.node.directory.queries),
            streams=len(self.node.directory.sources),
        )

    def _known_shards(self) -> set[int]:
        """The shards that have a store here or a journal in Kafka."""
        directory = self.settings.data_dir / "shards"
        stored = {int(path.name) for path in directory.glob("*") if path.name.isdigit()}
        steps = self.settings.names.steps
        begin, end = self.node.admin.begin_offsets(steps), self.node.admin.end_offsets(steps)
        return stored | {number for number in end if end[number] > begin[number]}

    async def _sample(self) -> None:
        while True:
            self.metrics.sample(self.node)
            await asyncio.sleep(1.0)

    async def _beat(self) -> None:
        """The event loop's sign of life."""
        period_s = min(1.0, self.settings.liveness_timeout_ms / 1_000 / BEATS)
        while True:
            self.liveness.beat()
            await asyncio.sleep(period_s)

    def _public_server(self, app: ASGIApp, snapshots: Snapshots) -> Server:
        given = self.settings
        callers = Callers(given.http_host, given.host_names)
        guarded = Guard(app, callers, Tokens(given), given.request_bytes_max, given.request_bulk_bytes_max)
        connection = partial(Connection, in_flight=self.in_flight, at_once=AtOnce(guarded, snapshots))
        return Server(
            uvicorn.Config(
                CutOff(guarded),
                host=given.http_host,
                port=given.http_port,
                ssl_certfile=given.http_tls_certificate,
                ssl_keyfile=given.http_tls_key,
                http=cast("type[asyncio.Protocol]", connection),  # it is only called
                headers=HEADERS,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                ws="none",
                proxy_headers=False,
                timeout_graceful_shutdown=2,
                backlog=512,
            )
        )

    def _other_doors(self, carried: Carried, feeds: Feeds) -> list[PostgresServer | FlightServer]:
        """What serves clients of other protocols, where a port is set."""
        doors: list[PostgresServer | FlightServer] = []
        given = self.settings
        if given.postgres_port is None and given.flight_port is None:
            return doors
        from broker.postgres.answering import Services

        services = Services.made(given, carried, feeds)
        if given.postgres_port is not None:
            from broker.postgres.server import PostgresServer

            doors.append(PostgresServer(given, services, self.in_flight))
        if given.flight_port is not None:
            from broker.flight.server import FlightServer

            doors.append(FlightServer(given, services, self.in_flight))
        return doors

    def _doors(self, others: Sequence[PostgresServer | FlightServer]) -> list[dict[str, Any]]:
        """Where clients connect, and how many have."""
        given, told = self.settings, [door.facts() for door in others]
        http = {
            "protocol": "http",
            "host": given.http_host,
            "port": given.http_port,
            "tls": given.http_tls_certificate is not None,
            "token": given.http_token is not None,
            "connections": self.in_flight.connections
            - sum(door.connections for door in others if door.is_counted),
        }
        return [http, *told]

    def _private_server(self, snapshots: Snapshots) -> Server:
        return Server(
            uvicorn.Config(
                CutOff(private_api(self.settings, self.node, snapshots, self.node.admin)),
                log_config=None,
                access_log=False,
                lifespan="off",
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )


def engines_for(loaded: Settings, spill: Spill) -> Engines:
    """What the worker's engines are made with; measures this machine if need be. Raises SettingsError."""
    functions = functions_of(loaded)
    costs = known_or_measured(loaded.costs_path, calibration.measure)
    measured = dataclasses.asdict(dataclasses.replace(costs, units=None))
    if costs.units is not None:
        measured |= {f"graph_{name}": ns for name, ns in dataclasses.asdict(costs.units).items()}
    log.info("costs_measured", **{name: round(ns, 3) for name, ns in measured.items() if ns is not None})
    state = state_settings(loaded, spill.capacities)
    return Engines(limits(loaded), functions, costs, loaded.scheduler, state=state)


async def serve(loaded: Settings, engines: Engines, memory: Memory) -> int:
    """A worker from start to stop."""
    return await Worker(loaded, engines, memory).run()


def main() -> int:
    """Read the settings, run, and say by the exit code whether to start again."""
    compile_once()
    try:
        loaded = settings.load()
        logs.configure("worker", loaded.log_level, loaded.log_format)
        faulthandler.register(signal.SIGUSR2)  # the supervisor's question to one that hangs
        _ = loaded.secret  # without it there is nobody to serve
        allowed = budget(loaded.memory_budget_bytes, embedded_kafka=loaded.embedded_kafka)
        files, held = SpillFiles(loaded.data_dir / "spill"), HeldMemory()
        spill = Spill(files, allowed.budget_bytes, loaded.spill_bytes_max, held)
        engines = engines_for(loaded, spill)
        memory = Memory(allowed, Liveness(loaded.liveness_file), held, spill)
        memory.require_useful()
    except TureenError as refused:
        print(refused, file=sys.stderr)
        return FATAL
    sys.setswitchinterval(SWITCH_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        code = runner.run(serve(loaded, engines, memory))
    # Threads of Kafka clients may wait for a node that is away; everything of ours is written.
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
