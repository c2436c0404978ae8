"""What the worker knows of each query and each stream, standing or not.

Written by the event loop alone, from outcomes; readers on the loop need no lock. The rows, NOW and answers
of what stands are in the shards' views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.internal import Outcome, State
from engine.model.source import Stream


@dataclass(slots=True)
class QueryEntry:
    """A registration and what became of it. ``shard``: where it stands, None while it does not."""

    sql: str | None
    state: State
    error: dict[str, Any] | None = None
    shard: int | None = None
    source: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def outcome(self, position: str | None = None) -> Outcome:
        return {"state": self.state, "error": self.error, "position": position}


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A stream that stands."""

    stream: Stream
    sql: str
    shard: int
