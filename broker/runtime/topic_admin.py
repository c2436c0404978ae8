"""Topics besides those of :mod:`topics.admin`: replies, and the registry's changelogs."""

from __future__ import annotations

from broker.base.settings import Settings
from topics.admin import DAY_MS, Admin, Policies, TopicPolicy
from topics.control_records import entry_bytes_max
from topics.sizes import RECORD_OVERHEAD_BYTES

REPLIES_RETENTION_MS = DAY_MS


def ensure_topics(admin: Admin, settings: Settings) -> None:
    """Everything that must exist before the processes start.

    Raises TopicPolicyMismatch, KafkaUnavailable.
    """
    admin.ensure_service_topics(settings.names, policies(settings))
    compacted = {"cleanup.policy": "compact", "max.message.bytes": str(settings.record_bytes_max)}
    least = {"max.message.bytes": entry_bytes_max(settings.sql_bytes_max) + RECORD_OVERHEAD_BYTES}
    admin.ensure(
        [
            TopicPolicy(name, partitions, compacted, fixed_partitions=True, least=least)
            for name, partitions in changelogs(settings).items()
        ]
    )


def shards(admin: Admin, settings: Settings) -> int:
    """How many the service has: as set, or what its topics have, or as many as a new one gets.

    Raises KafkaUnavailable.
    """
    if "shards" in settings.model_fields_set:
        return settings.shards
    return admin.topics().get(settings.names.steps, settings.shards)


def policies(settings: Settings) -> Policies:
    """How the service's topics are made."""
    return Policies(shards=settings.shards, record_bytes_max=settings.record_bytes_max)


def changelogs(settings: Settings) -> dict[str, int]:
    """The topics behind the tables of the control process, as Faust names them, and their partitions."""
    tables = {"registry": settings.shards, "streams": 1}
    return {f"{settings.service_id}-control-{name}-changelog": count for name, count in tables.items()}


def ensure_reply_topic(admin: Admin, settings: Settings, name: str) -> None:
    """A topic for replies, made when missing. The caller has checked its prefix.

    Raises TopicPolicyMismatch: it is there, and does not take a chunk of a reply. KafkaUnavailable.
    """
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(REPLIES_RETENTION_MS),
        "max.message.bytes": str(settings.record_bytes_max),
    }
    least = {"max.message.bytes": settings.reply_chunk_bytes + 2 * RECORD_OVERHEAD_BYTES}
    admin.ensure([TopicPolicy(name, 1, config, verified=(), least=least)])
