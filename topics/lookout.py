"""Looks after the topics of all streams of a process, by one request for all of them.

The consumer's library falls silent about a topic that is deleted, and about one that was created again under
the same name; and partitions that are added are told by nobody. So all topics are described every few
seconds, at once when something seems wrong, and more often while Kafka is away. A topic counts as gone when
two answers in a row say so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from topics.admin import Admin, TopicFacts
from tureen.errors import KafkaUnavailable

HURRY_S = 0.2
ANSWERS_TO_BE_SURE = 2


@dataclass(slots=True)
class _Watched:
    """A topic that is looked after."""

    users: int = 0
    misses: int = 0
    """Answers in a row that it was not in."""


class Lookout(threading.Thread):
    """Used from any thread.

    looks: how many were begun. answers: how many were had. found: by topic the number of the look that told
    it last and what it told, None where the topic is gone. A topic of which nothing was heard yet is missing.
    """

    def __init__(
        self,
        admin: Admin,
        *,
        period_s: float,
        retry_s: float,
        answered: Callable[[bool], None],
        changed: Callable[[], None],
    ) -> None:
        """period_s: between two looks; retry_s: while Kafka is away. answered: told of each look whether
        Kafka answered. changed: called when ``found`` is another.
        """
        super().__init__(name="lookout", daemon=True)
        self.looks = 0
        self.answers = 0
        self.found: dict[str, tuple[int, TopicFacts | None]] = {}
        self._admin = admin
        self._period_s = period_s
        self._retry_s = retry_s
        self._answered = answered
        self._changed = changed
        self._lock = threading.Lock()
        self._topics: dict[str, _Watched] = {}
        self._hurry = threading.Event()
        self._stops = False

    def add(self, topic: str) -> None:
        """Look after a topic, until :meth:`remove` was called as often."""
        with self._lock:
            self._topics.setdefault(topic, _Watched()).users += 1
            if not self.ident and not self._stops:
                self.start()

    def remove(self, topic: str) -> None:
        """Somebody needs a topic no more."""
        with self._lock:
            watched = self._topics[topic]
            watched.users -= 1
            if not watched.users:
                del self._topics[topic]
                self.found.pop(topic, None)

    def hurry(self) -> None:
        """Something seems wrong: look at once."""
        self._hurry.set()

    def stop(self) -> None:
        """Look no more."""
        self._stops = True
        self._hurry.set()

    def run(self) -> None:
        wait_s = self._period_s
        while True:
            in_a_hurry = self._hurry.wait(wait_s)
            if self._stops:
                return
            self._hurry.clear()
            wait_s = self._period_s
            try:
                if self._look() or in_a_hurry:
                    wait_s = min(HURRY_S, wait_s)
            except KafkaUnavailable:
                wait_s = self._retry_s
                self._answered(False)
            else:
                self._answered(True)

    def _look(self) -> bool:
        """One look; whether a topic was missing for the first time. Raises KafkaUnavailable."""
        with self._lock:
            names = list(self._topics)
            self.looks += 1
            before = {name: told for name, (_, told) in self.found.items()}
        told = self._admin.describe(names)
        with self._lock:
            for name, facts in told.items():
                watched = self._topics.get(name)
                if watched is None:
                    continue
                watched.misses = 0 if facts is not None else watched.misses + 1
                if facts is not None or watched.misses >= ANSWERS_TO_BE_SURE:
                    self.found[name] = self.looks, facts
            self.answers += 1
            after = {name: told for name, (_, told) in self.found.items()}
            again = any(0 < one.misses < ANSWERS_TO_BE_SURE for one in self._topics.values())
        if before != after:
            self._changed()
        return again
