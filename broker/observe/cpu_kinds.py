"""What each kind of entity takes of a core, from one reading of the engines to the next."""

from __future__ import annotations

from collections import defaultdict

from broker.observe.entity_reading import EntityReading, part_id

ANSWERS = "answers"
"""What queries are asked for, besides the engines' own work."""
SHORTEST_S = 0.2
"""Readings that are closer together are not compared."""


class CpuKinds:
    """Looks at readings as they come. Used by one thread at a time."""

    def __init__(self) -> None:
        self.shares: dict[str, float] | None = None
        """By kind: the share of one core; None before the second reading."""
        self.at_s = 0.0
        """When the latest reading was made, on the monotonic clock."""
        self._spent_ns: dict[str, float] = {}
        self._answers_ns = 0.0

    def look(self, reading: EntityReading) -> None:
        """Take a reading in, if it is another one. O(entities but queries).

        What an entity used is counted from the reading before; of one that was not there, all. So that of
        those that went meanwhile is missing, but never is less than nothing told.
        """
        if reading.at_s - self.at_s < SHORTEST_S:
            return
        spent = {
            part_id(number, part.id): (part.kind, part.usage.cpu_ns)
            for number, report in reading.reports.items()
            for part in report.parts
        }
        answers_ns = sum(reading.spent_ns.values())
        if self.at_s:
            grown: defaultdict[str, float] = defaultdict(float)
            for id_, (kind, cpu_ns) in spent.items():
                grown[kind] += max(0.0, cpu_ns - self._spent_ns.get(id_, 0.0))
            grown[ANSWERS] += max(0.0, answers_ns - self._answers_ns)
            elapsed_ns = 1e9 * (reading.at_s - self.at_s)
            self.shares = {kind: cpu_ns / elapsed_ns for kind, cpu_ns in grown.items()}
        self._spent_ns = {id_: cpu_ns for id_, (_, cpu_ns) in spent.items()}
        self._answers_ns = answers_ns
        self.at_s = reading.at_s

    def of_process(self, share: float | None, now_s: float, stale_s: float) -> dict[str, float] | None:
        """The shares, with ``other``: what the process takes beyond them. None where the latest reading is
        older than ``stale_s``: engines are asked and do not answer.
        """
        if self.shares is None or share is None or now_s - self.at_s > stale_s:
            return None
        return self.shares | {"other": max(0.0, share - sum(self.shares.values()))}
