"""What a client needs from its way to the broker: by HTTP, or by topics alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from tureen.facts import QueryStatus
from tureen.protocol import Handle, SnapshotFormat
from tureen.snapshot import Reply

WAIT_DEFAULT_S = 30.0


@dataclass(frozen=True, slots=True)
class Publication:
    """A query on its way to the broker, under a handle that the client has made."""

    handle: Handle
    sql: str
    options: Mapping[str, Any] = field(default_factory=dict)


class Transport(Protocol):
    """Calls raise the TureenError that the broker answered with, or BrokerUnavailable, KafkaUnavailable."""

    def create(self, sql: str, wait_s: float) -> Mapping[str, Any]:
        """Create a stream."""

    def drop(self, name: str, wait_s: float) -> None:
        """Drop a stream."""

    def register(self, publications: Sequence[Publication], wait_s: float) -> list[QueryStatus]:
        """Register queries; one status each, in the same order, refusals as state ERROR."""

    def status(self, handle: str) -> QueryStatus:
        """Raises UnknownQuery."""

    def unregister(self, handle: str) -> None:
        """Raises UnknownQuery where the way there can tell."""

    def snapshot(self, handle: str, form: SnapshotFormat, at_ms: int | None) -> Reply:
        """Raises UnknownQuery, InstantOutOfRange, LimitExceeded."""

    def close(self) -> None:
        """Give sockets and topics back. Calls after this fail."""
