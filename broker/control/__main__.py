"""``python -m broker.control``: runs the Faust application until a signal, or the supervisor, says stop."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys

import faust

from broker.base import logs, settings
from broker.control.app import Control
from broker.runtime import orphan
from broker.runtime.liveness import Liveness
from broker.supervisor import FATAL
from tureen.errors import TureenError

WATCH_S = 0.5
STOP_S = 3.0
"""Stopping takes a fraction of it, unless Kafka is away: what was not acknowledged then comes again."""


def crash_reason(app: faust.App) -> BaseException | None:
    """Why a part of the application gave up, whichever it was; Faust itself would stay up without it."""
    for part in (app, app._fetcher, app.consumer, app.producer, app.tables, app.agents, *app.agents.values()):
        if part.crashed:
            return part.crash_reason or RuntimeError(f"{part.label} crashed")
    return None


async def serve(control: Control, supervisor_fd: int | None, liveness: Liveness) -> int:
    """Run until SIGTERM, SIGINT, the end of the supervisor, or a crash; returns the exit code.

    Leaves whatever does not end in time: parts of the application may wait for a Kafka that is away.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if supervisor_fd is not None:
        orphan.watch(supervisor_fd, lambda: loop.call_soon_threadsafe(stop.set))
    app = control.app
    starting = asyncio.ensure_future(app.start())
    while not stop.is_set():
        liveness.beat()
        reason = crash_reason(app) if starting.done() else None
        if starting.done() and starting.exception() is not None:
            reason = starting.exception()
        if reason is not None:
            logs.get().error("control_crashed", reason=repr(reason))
            return 1
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), WATCH_S)
    if starting.done():
        _, waiting = await asyncio.wait({asyncio.ensure_future(app.stop())}, timeout=STOP_S)
        if waiting:
            logs.get().warning("stopped_while_waiting")
    return 0


def main() -> int:
    """Read the settings, run, and say by the exit code whether to start again."""
    try:
        loaded = settings.load()
        logs.configure("control", loaded.log_level, loaded.log_format)
        faulthandler.register(signal.SIGUSR2)  # the supervisor's question to one that hangs
        liveness = Liveness(loaded.liveness_file)
        control = Control(loaded, loaded.kafka())
    except TureenError as refused:
        print(refused, file=sys.stderr)
        return FATAL
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(serve(control, loaded.supervisor_fd, liveness))
    # No tidying up: tasks and threads may wait for a Kafka that is away, and what matters is written.
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
