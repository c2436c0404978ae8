"""Faust's monitor without what it counts for every record: nobody reads that, and it is a third of a record's
cost.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

from faust.sensors.monitor import Monitor


class Uncounted(Monitor):
    """Keeps when a partition had its last record, which Faust's own watch over stuck streams reads."""

    def on_message_in(self, *given: Any) -> None:
        """A record was fetched."""

    def on_stream_event_in(self, tp: Any, *given: Any) -> None:
        """A record reached its agent."""
        self.stream_inbound_time[tp] = monotonic()

    def on_stream_event_out(self, *given: Any) -> None:
        """An agent is done with a record."""

    def on_table_get(self, *given: Any) -> None:
        """An entry was read."""

    def on_table_set(self, *given: Any) -> None:
        """An entry was written."""

    def on_table_del(self, *given: Any) -> None:
        """An entry was removed."""
