"""The past once more, faster: streams go to Kafka in event-time order at a chosen speed-up.

A thread of its own sends whatever falls due, every 20 ms; rows of one instant are always sent together. With
no speed given it sends as fast as Kafka takes them. Streams keep the pace of one clock of event time, which
begins with the earliest row of all. What was sent can go on: the same rows again, so much later that time
goes on too, so that queries which stand have something to tell.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence

import numpy as np
from confluent_kafka import KafkaError, Message, Producer

from broker.demo.flights import Kept, Replayed
from topics.producer import ANY_PARTITION
from tureen.errors import KafkaUnavailable

DAY_MS = 86_400_000
TICK_S = 0.02
FIRST_TIMEOUT_S = 30.0
SLICE_ROWS = 4_096
"""At full speed a round ends after about so many rows."""


class _Writer:
    """Writes the records of a replay to Kafka, as fast as it takes them."""

    def __init__(self, bootstrap: str) -> None:
        self._failed: KafkaError | None = None
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 5,
                "compression.type": "lz4",
                "enable.idempotence": True,
                "queue.buffering.max.messages": 100_000,
                "error_cb": lambda _: None,
                "log_level": 0,
            }
        )

    def write(
        self, topic: str, value: bytes, key: bytes | None = None, partition: int = ANY_PARTITION
    ) -> None:
        """Write a record; waits while too many are on their way."""
        while True:
            try:
                return self._producer.produce(topic, value, key, partition, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.05)

    def poll(self) -> None:
        """Hear what became of records, without waiting."""
        self._producer.poll(0)

    def check(self) -> None:
        """Hear what became of records. Raises KafkaUnavailable: one could not be written."""
        self.poll()
        if self._failed is not None:
            raise KafkaUnavailable(f"records could not be written: {self._failed.str()}")

    def flush(self) -> None:
        """Wait until all are written. Raises KafkaUnavailable."""
        if self._producer.flush(30.0) or self._failed is not None:
            raise KafkaUnavailable("records could not be written in time")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failed = error


class Replay:
    """Sends ``streams``; ``days_per_s`` of event time each second, None: as fast as possible.

    ``factor`` may be set while it runs: so many times as fast from now on.
    Attributes to read while it runs: ``sent`` rows by stream, ``event_ms`` reached, ``seconds`` since the
    start, ``done``; ``error`` when it ended by one.
    """

    def __init__(self, streams: Sequence[Replayed], bootstrap: str, days_per_s: float | None) -> None:
        self._streams = streams
        self.days_per_s = days_per_s
        self.factor = 1.0
        self._writer = _Writer(bootstrap)
        self.event_ms = self.begin_ms
        self.sent = {stream.name: 0 for stream in streams}
        self.seconds = 0.0
        self.done = False
        self.error: Exception | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)
        self._primed: dict[str, set[int]] = {}

    @property
    def begin_ms(self) -> int:
        """The time of the earliest row of all streams. O(streams)."""
        return min(int(stream.ts_ms[0]) for stream in self._streams)

    @property
    def end_ms(self) -> int:
        """The time of the last row of all streams. O(streams)."""
        return max(int(stream.ts_ms[-1]) for stream in self._streams)

    @property
    def total(self) -> int:
        """Rows of all streams."""
        return sum(len(stream.ts_ms) for stream in self._streams)

    @property
    def last_ms(self) -> dict[str, int]:
        """The time of the last row of each stream."""
        return {stream.name: int(stream.ts_ms[-1]) for stream in self._streams}

    def keep(self, table: Kept, arrived: Callable[[int], bool]) -> None:
        """Send all of a table and wait until its rows have ``arrived``. Raises KafkaUnavailable."""
        for key, value in zip(*table.records(), strict=True):
            self._writer.write(table.name, value, key=key)
        self._writer.flush()
        _await(lambda: arrived(table.table.num_rows))

    def prime(self, arrived: Callable[[dict[str, int]], bool]) -> None:
        """Send the first row of each partition and wait until it ``arrived`` (rows by stream).

        So every partition is known to hold rows before the pace begins, and none is taken for an idle one
        that NOW need not wait for. Raises KafkaUnavailable.
        """
        for stream in self._streams:
            first = {int(p): int(np.argmax(stream.partition == p)) for p in np.unique(stream.partition)}
            for row in sorted(first.values()):
                self._send(stream, row, row + 1)
            self._primed[stream.name] = set(first.values())
        self._writer.flush()
        wanted = {name: len(rows) for name, rows in self._primed.items()}
        _await(lambda: arrived(wanted))

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def go_on(self, days_per_s: float) -> None:
        """It is over, and begins again at this pace, as if the next days followed, round after round until it
        is stopped or has come to the present; returns at once.
        """
        self.days_per_s, self.factor = days_per_s, 1.0
        self._thread = threading.Thread(target=self._again, name="replay", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End early; returns when the thread has."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)

    def _run(self) -> None:
        try:
            self._paced()
            self._writer.flush()
        except Exception as error:  # noqa: BLE001 - the screen's thread raises it
            self.error = error
        finally:
            self.done = True

    def _again(self) -> None:
        span_ms = ((self.end_ms - self.begin_ms) // DAY_MS + 1) * DAY_MS
        later_ms = span_ms
        try:
            while not self._stop.is_set() and self.end_ms + later_ms < time.time() * 1_000:
                self._primed.clear()
                self.seconds = 0.0
                self._paced(later_ms)
                later_ms += span_ms
            self._writer.flush()
        except Exception as error:  # noqa: BLE001 - the screen's thread raises it
            self.error = error

    def _paced(self, later_ms: int = 0) -> None:
        """Send everything at the pace. later_ms: how much later than in the files rows are sent."""
        places = [0] * len(self._streams)
        began = time.monotonic()
        paced_s = 0.0
        while not self._stop.is_set():
            passed_s = time.monotonic() - began
            paced_s += (passed_s - self.seconds) * self.factor
            self.seconds = passed_s
            until = self._due(places, paced_s)
            for which, stream in enumerate(self._streams):
                begin, end = places[which], int(np.searchsorted(stream.ts_ms, until, side="right"))
                without = self._primed.get(stream.name, set())
                self._send(stream, begin, end, without, later_ms)
                places[which] = end
            self.event_ms = min(until, self.end_ms)
            if until >= self.end_ms:
                return
            if self.days_per_s is not None:
                self._writer.poll()
                time.sleep(TICK_S)

    def _due(self, places: Sequence[int], paced_s: float) -> int:
        """The instant up to which rows are sent in this round. paced_s: seconds at the plain speed."""
        if self.days_per_s is not None:
            return self.begin_ms + int(paced_s * self.days_per_s * DAY_MS)
        ahead = [
            int(stream.ts_ms[min(place + SLICE_ROWS, len(stream.ts_ms) - 1)])
            for stream, place in zip(self._streams, places, strict=True)
            if place < len(stream.ts_ms)
        ]
        return min(ahead, default=self.end_ms)

    def _send(
        self,
        stream: Replayed,
        begin: int,
        end: int,
        without: Collection[int] = (),
        later_ms: int = 0,
    ) -> None:
        partitions = stream.partition[begin:end].tolist()
        for place, value in enumerate(stream.records(begin, end, later_ms)):
            if begin + place in without:
                continue
            self._writer.write(stream.name, value, partition=partitions[place])
            self.sent[stream.name] += 1
        self._writer.check()


def _await(arrived: Callable[[], bool]) -> None:
    deadline = time.monotonic() + FIRST_TIMEOUT_S
    while not arrived():
        if time.monotonic() > deadline:
            raise KafkaUnavailable("the first records did not reach the broker")
        time.sleep(TICK_S)
