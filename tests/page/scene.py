"""The demo's data and queries on a broker, moving: what the tour and the screenshots look at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from broker.demo.audience import Audience
from broker.demo.board import BOARD, CREATES
from broker.demo.bursts import Bursts
from broker.demo.dashboards import dashboards
from broker.demo.flights import load, planes
from broker.demo.promising import UNITS_PER_S, Promising
from broker.demo.queries import standing
from broker.demo.replay import Replay
from tests.broker.running import Broker
from tests.kafka import wait_until
from tureen.client import connect

PAST_DAYS_PER_S = 10.0
"""How fast flights come that are to be there already."""


@dataclass
class Scene:
    """replay: sends flights. board: the queries about all flights, in the order of ``BOARD``. bursts: obeys
    the switch as often as ``tick`` is called."""

    replay: Replay
    board: Audience
    bursts: Bursts

    def handle(self, title: str) -> str:
        """The handle of the board's query with this title."""
        return self.board.handles[next(at for at, one in enumerate(BOARD) if one.title == title)]


@contextlib.contextmanager
def scene(
    broker: Broker, *, rows: int, queries: int, followed: int, past: int, days_per_s: float
) -> Iterator[Scene]:
    """Flights begin to come, and come until the end.

    rows: flights, at most. queries, followed: of the demo's. past: so many flights are there before any is
    looked at. days_per_s: how fast the others come.
    """
    flights, weather = load(rows)
    aircraft = planes()
    with connect(broker.url) as client, contextlib.ExitStack() as stack:
        for sql in (flights.sql, weather.sql, aircraft.sql, *CREATES):
            client.create(sql)
        promising = Promising(client)
        promising.begin()
        board = Audience(client, BOARD)
        others = Audience(client, standing(flights, queries))
        boards = Audience(client, dashboards(flights, followed))
        board.register(len(BOARD))
        others.register(queries)
        boards.register(followed)
        replay = Replay([flights, weather], broker.bootstrap, days_per_s)
        stack.callback(replay.stop)
        replay.keep(aircraft, lambda rows: board.progress().tables >= rows)
        replay.prime(lambda rows: all(board.progress().by_stream.get(n, 0) >= k for n, k in rows.items()))
        bursts = Bursts(client, replay, by_itself=False)
        bursts.begin()
        promising.limit(UNITS_PER_S)
        replay.factor = PAST_DAYS_PER_S / days_per_s
        replay.start()
        wait_until(lambda: replay.sent["flights"] >= past, 120, f"{past} flights are sent")
        replay.factor = 1.0
        wait_until(lambda: board.progress().records >= past, 120, f"{past} flights are read")
        yield Scene(replay, board, bursts)
