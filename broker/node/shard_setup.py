"""What shards are made with, from a node's settings."""

from __future__ import annotations

from collections.abc import Callable

from broker.archive.catalogue import ArchiveCatalogue
from broker.base.settings import Settings
from broker.memory.levels import Memory
from broker.node.output_settings import output_settings, registry_settings
from broker.runtime.engines import Engines
from broker.shard.listener import Listener
from broker.shard.setup import ShardSetup
from broker.shard.shared_reading import SharedReading
from broker.shard.small_turns import SmallTurns
from topics.admin import Admin
from topics.formats.schemas import use_registry
from topics.outputs import Outputs

PROBE_TIMEOUT_S = 2.0
"""Shards look after their topics so long at most: a thread that stops should not wait for Kafka."""


def shard_setup(
    settings: Settings,
    kafka: dict[str, str],
    engines: Engines,
    memory: Memory,
    listener: Listener,
    on_fenced: Callable[[int], None],
) -> ShardSetup:
    """With the node's own archive, topics of results, and reading of streams."""
    use_registry(registry_settings(settings))
    prober = Admin(kafka, timeout_s=PROBE_TIMEOUT_S)
    return ShardSetup(
        settings,
        kafka,
        engines,
        prober,
        SharedReading(settings, kafka, prober, memory.fetched_kbytes),
        Outputs(output_settings(settings), prober),
        listener,
        on_fenced,
        ArchiveCatalogue(settings) if settings.archive else None,
        memory,
        SmallTurns(),
    )
