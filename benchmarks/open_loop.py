"""Requests at times that are fixed beforehand, whatever the server does: an open loop.

Users do not wait for each other. A request is due at its own time; it goes out on an idle connection, or
waits for one, and its delay is counted from when it was due to when its whole answer has come. So a server
that stands still for a while delays all that were due meanwhile, and each of them counts (a closed loop would
ask less often then, and see one slow answer).

HTTP/1.1 over connections that are kept, as little of it as is needed: the answers that are measured have a
Content-Length. A server may close an idle connection just as a request goes out on it; as other clients do,
the request is then made again on another, and its delay counted from its own time all the same.
"""

import asyncio
import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FLAT_OUT_S = 20.0
"""How long answers are waited for after the last request was due."""


@dataclass(frozen=True, slots=True)
class Load:
    """Requests as bytes, and when each is due in seconds from the beginning, ascending."""

    requests: Sequence[bytes]
    due_s: npt.NDArray[np.float64]

    @staticmethod
    def steady(requests: Sequence[bytes], per_s: float, rng: np.random.Generator) -> "Load":
        """Poisson arrivals: many independent users."""
        return Load(requests, np.cumsum(rng.exponential(1 / per_s, len(requests))))


@dataclass(slots=True)
class Answered:
    """What came of it.

    delay_s: float[n], from due to whole answer, of the requests that were answered. seconds: from the first
    request's time to the last answer. unanswered: in time. refused: answers with a status but 200.
    sizes: bytes of the bodies. late_s: the longest that the generator itself was behind.
    """

    delay_s: npt.NDArray[np.float64]
    seconds: float
    unanswered: int
    refused: int
    sizes: npt.NDArray[np.int64]
    late_s: float

    @property
    def per_s(self) -> float:
        """Answers a second."""
        return len(self.delay_s) / self.seconds

    def ms(self, percent: float) -> float:
        """A percentile of the delay in ms; those that never came took for ever, or as long as was waited."""
        waited = np.full(self.unanswered, self.seconds)
        return float(np.percentile(np.concatenate([self.delay_s, waited]), percent)) * 1e3


def ask(port: int, load: Load, connections: int) -> Answered:
    """Run a load against a server of this machine."""
    return asyncio.run(_ask(port, load, connections))


async def _ask(port: int, load: Load, connections: int) -> Answered:
    loop = asyncio.get_running_loop()
    run = _Run(load)

    async def connect() -> None:
        await loop.create_connection(lambda: _Connection(run), "127.0.0.1", port)

    run.connect = lambda: run.connecting.add(loop.create_task(connect()))
    for _ in range(connections):
        await connect()
    gc.collect()
    gc.disable()
    try:
        await run.drive()
    finally:
        gc.enable()
    run.connect = lambda: None
    for connection in list(run.connections):
        connection.transport.abort()
    answered = run.ended_s > 0
    delay_s = (run.ended_s - run.began_s - load.due_s)[answered]
    end_s = float(run.ended_s.max()) - run.began_s if answered.any() else time.perf_counter() - run.began_s
    return Answered(
        delay_s,
        end_s,
        int((~answered).sum()),
        run.refused,
        run.sizes[answered],
        run.late_s,
    )


@dataclass(slots=True)
class _Run:
    load: Load
    connect: Callable[[], None] = lambda: None
    connecting: set[asyncio.Task[None]] = field(default_factory=set)
    connections: list["_Connection"] = field(default_factory=list)
    idle: list["_Connection"] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    ended_s: npt.NDArray[np.float64] = field(init=False)
    sizes: npt.NDArray[np.int64] = field(init=False)
    began_s: float = 0.0
    late_s: float = 0.0
    left: int = 0
    refused: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        count = self.left = len(self.load.requests)
        self.ended_s = np.zeros(count)
        self.sizes = np.zeros(count, np.int64)

    async def drive(self) -> None:
        """Send each when it is due."""
        due = self.load.due_s.tolist()
        self.began_s = time.perf_counter()
        place = 0
        while place < len(due):
            now_s = time.perf_counter() - self.began_s
            self.late_s = max(self.late_s, now_s - due[place])
            while place < len(due) and due[place] <= now_s:
                self.send(place)
                place += 1
            if place < len(due):
                await asyncio.sleep(max(0.0, due[place] - (time.perf_counter() - self.began_s)))
        try:
            await asyncio.wait_for(self.done.wait(), FLAT_OUT_S)
        except TimeoutError:
            return

    def send(self, place: int) -> None:
        """On an idle connection, or on the first that is."""
        if self.idle:
            self.idle.pop().send(place)
        else:
            self.waiting.append(place)

    def lost(self, place: int) -> None:
        """A connection went with a request on it that nothing was answered to."""
        self.waiting.appendleft(place)
        self.connect()

    def ready(self, connection: "_Connection") -> None:
        """It may have a request."""
        if self.waiting:
            connection.send(self.waiting.popleft())
        else:
            self.idle.append(connection)

    def ended(self, connection: "_Connection", place: int, status: bytes, size: int) -> None:
        """A whole answer has come."""
        self.ended_s[place] = time.perf_counter()
        self.sizes[place] = size
        self.refused += status != b"200"
        self.left -= 1
        self.ready(connection)
        if not self.left:
            self.done.set()


class _Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._place = -1
        self._parts: list[bytes] = []
        self._missing = -1
        self._size = 0
        self._status = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._run.connections.append(self)
        self._run.ready(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._run.connections.remove(self)
        if self in self._run.idle:
            self._run.idle.remove(self)
        elif self._missing < 0 and not self._parts:
            self._run.lost(self._place)

    def send(self, place: int) -> None:
        self._place = place
        self.transport.write(self._run.load.requests[place])

    def data_received(self, data: bytes) -> None:
        if self._missing < 0:
            self._parts.append(data)
            data = b"".join(self._parts)
            end = data.find(b"\r\n\r\n")
            if end < 0:
                return
            self._parts = []
            head = data[:end].lower()
            self._status = head[9:12]
            begin = head.index(b"content-length:") + 15
            self._size = int(head[begin:].partition(b"\r\n")[0])
            self._missing = self._size - (len(data) - end - 4)
        else:
            self._missing -= len(data)
        if not self._missing:
            self._missing = -1
            self._run.ended(self, self._place, self._status, self._size)
