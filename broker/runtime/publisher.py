"""Writes to the control topics for HTTP, and says where each record landed.

One idempotent producer with a thread that serves its callbacks; the callers are coroutines.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from functools import partial

from confluent_kafka import KafkaError, KafkaException, Message

from broker.runtime.producing import producer
from topics.failures import cause_of
from tureen.errors import UNCONFIRMED, KafkaUnavailable


class Publisher:
    """``publish`` from the event loop, ``close`` at the end."""

    def __init__(self, kafka: dict[str, str], record_bytes_max: int, timeout_ms: int) -> None:
        own = {"linger.ms": "1", "message.timeout.ms": str(timeout_ms)}
        self._producer = producer(kafka, record_bytes_max, own)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="publisher", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._closing.is_set():
            self._producer.poll(0.2)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()
        self._producer.flush(1.0)

    def publish(self, topic: str, key: str, value: bytes | None) -> asyncio.Future[tuple[str, int, int]]:
        """Write one record; the future has (topic, partition, offset), or raises KafkaUnavailable."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[str, int, int]] = loop.create_future()

        def settle(error: KafkaError | None, message: Message) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(_place(message))
            else:
                future.set_exception(_unconfirmed(error))

        def delivered(error: KafkaError | None, message: Message) -> None:
            loop.call_soon_threadsafe(settle, error, message)

        try:
            self._producer.produce(topic, value, key.encode(), on_delivery=delivered)
        except (BufferError, KafkaException) as failed:
            future.set_exception(_unsent(failed))
        return future

    async def publish_many(
        self, topic: str, records: Sequence[tuple[str | None, bytes | None]]
    ) -> list[tuple[str, int, int] | KafkaUnavailable]:
        """Write many records, without a key where it is None; where each landed, or why it is not known to be
        written.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        places: list[tuple[str, int, int] | KafkaUnavailable] = [_NOT_YET] * len(records)
        left = [len(records)]
        counting = threading.Lock()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def settle(place: int, found: tuple[str, int, int] | KafkaUnavailable) -> None:
            places[place] = found
            with counting:
                left[0] -= 1
            if not left[0]:
                loop.call_soon_threadsafe(finish)

        def delivered(place: int, error: KafkaError | None, message: Message) -> None:
            settle(place, _unconfirmed(error) if error else _place(message))

        def produce() -> None:
            for place, (key, value) in enumerate(records):
                told = partial(delivered, place)
                while True:
                    try:
                        named = None if key is None else key.encode()
                        self._producer.produce(topic, value, named, on_delivery=told)
                    except BufferError:
                        time.sleep(0.01)  # another thread serves the callbacks
                        continue
                    except KafkaException as failed:
                        settle(place, _unsent(failed))
                    break

        if records:
            await asyncio.to_thread(produce)
            await done
        return places


def _place(message: Message) -> tuple[str, int, int]:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return topic, partition, offset


def _unconfirmed(error: KafkaError) -> KafkaUnavailable:
    """The error for a record that was handed to the client library, but not confirmed."""
    return KafkaUnavailable(UNCONFIRMED, hint=f"repeat it when /readycheck answers 200 again; {error.str()}")


def _unsent(error: Exception) -> KafkaUnavailable:
    """The error for a record that the client library did not take."""
    reason = cause_of(error).str() if isinstance(error, KafkaException) else str(error)
    return KafkaUnavailable(
        "the record was not sent to Kafka, so nothing has changed; repeating is safe",
        hint=f"repeat it when /readycheck answers 200 again; {reason}",
    )


_NOT_YET = KafkaUnavailable("the record is being written")
