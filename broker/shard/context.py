"""What all parts of a shard are made with."""

from __future__ import annotations

from dataclasses import dataclass

from broker.base.counts import Counts
from broker.base.settings import Settings
from broker.memory.levels import Memory
from broker.runtime.liveness import Pulse
from broker.shard.stalls import Stalls


@dataclass(frozen=True, slots=True)
class ShardContext:
    """A shard's number and settings, and where its parts say how it fares."""

    number: int
    settings: Settings
    stalls: Stalls
    """Told what the shard waits for."""
    counts: Counts
    """Told what was done."""
    pulse: Pulse
    """The signs of life of the shard's thread."""
    memory: Memory
    """The worker's, which is told what the shard's state takes."""
