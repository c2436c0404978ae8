"""Clients take what they asked for, or are cut off: a call that is not read holds a thread and an answer.

A batch is to be taken within what :class:`broker.runtime.in_flight.Patience` gives for its bytes, which is
how long clients of HTTP and PostgreSQL are waited for. Whoever takes longer loses its connection, and with it
what else it asks there. Time in which no batch is ready, as of changes that have not come, is not counted.

Cost: nothing for a call whose batch is taken at once but two entries; others are looked at twice a second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable

import pyarrow as pa

from broker.flight.peers import Address, address_of, close
from broker.runtime.in_flight import InFlight


class Readers:
    """Shared by all calls. Streams are read by threads of gRPC's, the rest is the event loop's."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._port = 0
        self._due_s: dict[object, tuple[float, Address]] = {}
        """Batches on their way, by their calls: until when each is to be taken, and by whom."""

    def start(self, port: int) -> None:
        """Watch clients that are connected to a port from now on."""
        self._port = port
        self._in_flight.waiting.add(self)

    def stop(self) -> None:
        """Watch no more."""
        self._in_flight.waiting.discard(self)

    def watched(self, peer: str, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        """Batches that a client is to take in time. peer: as gRPC names it."""
        return self._watched(address_of(peer), batches)

    def _watched(self, address: Address, batches: Iterable[pa.RecordBatch]) -> Generator[pa.RecordBatch]:
        call = object()
        try:
            for batch in batches:
                until_s = self._in_flight.patience.until(time.monotonic(), batch.nbytes)
                self._due_s[call] = until_s, address
                yield batch
                self._due_s.pop(call, None)
        finally:
            self._due_s.pop(call, None)

    def sweep(self, now_s: float, passed_s: float) -> None:
        """As :class:`broker.runtime.in_flight.Waiting` has it."""
        now_s = time.monotonic()
        late = {call: address for call, (due_s, address) in list(self._due_s.items()) if due_s < now_s}
        if not late:
            return
        for call in late:
            self._due_s.pop(call, None)
        self._in_flight.refused["answer"] += len(late)
        # Looking for the connections takes a while where thousands are open.
        threading.Thread(target=close, args=(set(late.values()), self._port), daemon=True).start()
