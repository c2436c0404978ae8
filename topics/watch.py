"""Notices topics that were deleted, or deleted and created again, while they are read.

The consumer's own library falls silent about such a topic. So its id is asked for now and then, without
waiting for the answer; a topic counts as gone when two answers in a row say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from topics.failures import MISSING_TOPIC, cause_of
from topics.settings import KafkaSettings
from tureen.errors import TopicMissing

INTERVAL_S = 2.0
HURRY_INTERVAL_S = 0.2
ANSWERS_TO_BE_SURE = 2


class TopicWatch:
    """Asks after the ids of topics. ``hurry``: something is wrong with one of them, look at once."""

    def __init__(self, settings: KafkaSettings, client: Callable[[], AdminClient] | None = None) -> None:
        """client: gives the one to ask with, where many watch; without it, one of its own is made."""
        self._settings = settings
        self._client = client
        self._due = time.monotonic() + INTERVAL_S
        self._asked_at = 0.0
        self._pending: dict[str, Future[Any]] = {}
        self._ids: dict[str, str] = {}
        self._misses: dict[str, int] = {}
        self.hurry = False

    def gone(self, topics: Iterable[str]) -> list[TopicMissing]:
        """Find those of the topics that are not there any more; never blocks."""
        now = time.monotonic()
        gone: list[TopicMissing] = []
        if self._pending:
            if all(future.done() for future in self._pending.values()):
                gone = [missing for name in self._pending if (missing := self._missing(name)) is not None]
                self._pending = {}
        elif now >= self._due or ((self.hurry or self._misses) and now >= self._asked_at + HURRY_INTERVAL_S):
            self._due, self._asked_at, self.hurry = now + INTERVAL_S, now, False
            if names := sorted(topics):
                if self._client is None:
                    own = AdminClient({"log_level": 0, **self._settings})
                    self._client = lambda: own
                self._pending = self._client().describe_topics(TopicCollection(names), request_timeout=5)
        return gone

    def forget(self, topic: str) -> None:
        """A topic is read no more; when it is read again, it may be another one."""
        self._pending.pop(topic, None)
        self._ids.pop(topic, None)
        self._misses.pop(topic, None)

    def _missing(self, topic: str) -> TopicMissing | None:
        try:
            found = str(self._pending[topic].result().topic_id)
        except KafkaException as error:
            if cause_of(error).code() not in MISSING_TOPIC:
                return None
            self._misses[topic] = self._misses.get(topic, 0) + 1
            if self._misses[topic] < ANSWERS_TO_BE_SURE:
                return None
            self._misses.pop(topic, None)
            return TopicMissing(topic, hint="drop the stream, or create the topic again")
        self._misses.pop(topic, None)
        if self._ids.setdefault(topic, found) == found:
            return None
        self._ids[topic] = found
        return TopicMissing(
            topic,
            hint="it was deleted and created again: drop the stream and create it again to read the new one",
        )
