"""Records written to topics at a steady rate by a process of its own, as they would come from elsewhere.

A record says when it was made in its column ``ts``. What is made depends on the seed alone, but for ``ts``.
"""

import multiprocessing
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
import numpy.typing as npt

from topics.producer import BatchProducer

SLICE_S = 0.005

Lines = Callable[[int, int, int], list[bytes]]
"""(first, count, now_ms) -> the records from number first on; importable, for it goes to another process."""


@dataclass(frozen=True, slots=True)
class Fed:
    """What was written. made_ms: int64[records], ``ts`` of each record. late_s: the longest that a slice of
    records was behind its time.
    """

    made_ms: npt.NDArray[np.int64]
    late_s: float


class Feeder:
    """Writes from the call of :meth:`start` until :meth:`stop`."""

    def __init__(self, kafka: str, topics: Sequence[str], lines: Lines, per_s: int) -> None:
        """topics: one record after another goes to the next of them. per_s: of all together."""
        context = multiprocessing.get_context("spawn")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_feed, args=(there, kafka, topics, lines, per_s), daemon=True)
        self._process.start()
        self._here.recv()

    def start(self) -> None:
        """Go."""
        self._here.send("go")

    def stop(self) -> Fed:
        """Write no more; all that was written is in the topic."""
        self._here.send("stop")
        fed = self._here.recv()
        self._process.join()
        assert isinstance(fed, Fed)
        return fed


def _feed(pipe: Connection, kafka: str, topics: Sequence[str], lines: Lines, per_s: int) -> None:
    producer = BatchProducer({"bootstrap.servers": kafka, "linger.ms": 1})
    pipe.send("ready")
    pipe.recv()
    began_s = time.monotonic()
    made: list[npt.NDArray[np.int64]] = []
    written, late_s = 0, 0.0
    while not pipe.poll():
        due = int((time.monotonic() - began_s) * per_s)
        count = due - written
        if count:
            now_ms = time.time_ns() // 1_000_000
            records = lines(written, count, now_ms)
            for place in range(min(count, len(topics))):
                topic = topics[(written + place) % len(topics)]
                producer.send_many(topic, records[place :: len(topics)])
            made.append(np.full(count, now_ms))
            written = due
            late_s = max(late_s, count / per_s - SLICE_S)
        time.sleep(max(0.0, began_s + written / per_s + SLICE_S - time.monotonic()))
    producer.close()
    pipe.send(Fed(np.concatenate([*made, np.zeros(0, np.int64)]), late_s))
