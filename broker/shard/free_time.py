"""The time without other work between two transactions with records, and what of it their steps may have.

Pure: times are passed in, in nanoseconds. O(1) a call.
"""

from __future__ import annotations

RISE = 0.2
"""Share of a rise in the free time between transactions that is taken over at once; a fall is taken over
whole.
"""
RECORDS_PART = 0.5
"""Share of the free time that steps of records have; heartbeats have the rest, behind the rows' answers."""


class FreeTime:
    """What a shard had lately."""

    def __init__(self) -> None:
        self.turn_ns = 0.0
        """What steps of the transaction at hand may still take while no records wait."""
        self._between_ns = 0.0
        """From one transaction with records to the next, as of late."""
        self._since_ns = 0.0
        """Since the last transaction with records."""

    def passed(self, ns: float) -> None:
        """There was no other work for so long."""
        self._since_ns += ns

    def turn(self, ns_max: float) -> None:
        """A transaction with records begins. ns_max: what its steps may take at most, all together."""
        passed_ns, self._since_ns = self._since_ns, 0.0
        self._between_ns = min(passed_ns, self._between_ns + RISE * (passed_ns - self._between_ns))
        self.turn_ns = min(ns_max, RECORDS_PART * self._between_ns)

    def spent(self, ns: float) -> None:
        """A step of the transaction took so long of it."""
        self.turn_ns = max(0.0, self.turn_ns - ns)
