"""What every shard of a node is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from broker.archive.catalogue import ArchiveCatalogue
from broker.base.settings import Settings
from broker.memory.levels import Memory
from broker.runtime.engines import Engines
from broker.shard.listener import Listener
from broker.shard.shared_reading import SharedReading
from broker.shard.small_turns import SmallTurns
from topics.admin import Admin
from topics.outputs import Outputs


@dataclass(frozen=True, slots=True)
class ShardSetup:
    """The node's parts that its shards share, and how the node is set."""

    settings: Settings
    kafka: dict[str, str]
    """Kafka's own settings."""
    engines: Engines
    admin: Admin
    """Asks Kafka and gives up soon."""
    reading: SharedReading
    """What streams are read by."""
    outputs: Outputs
    """Topics of results."""
    listener: Listener
    """Told what shards commit, and how they end."""
    on_fenced: Callable[[int], None]
    """Told the number of a shard that another owner has taken over; any thread."""
    archive: ArchiveCatalogue | None
    """The archive, where there is one."""
    memory: Memory
    small_turns: SmallTurns
    """Who of them makes the steps of few records."""
