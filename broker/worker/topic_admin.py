"""Topics besides those of :mod:`topics.admin`: replies, and the registry's changelogs."""

from __future__ import annotations

from broker.settings import Settings
from topics.admin import DAY_MS, Admin, Policies, TopicPolicy

REPLIES_RETENTION_MS = DAY_MS


def ensure_topics(admin: Admin, settings: Settings) -> None:
    """Everything that must exist before the processes start.

    Raises TopicPolicyMismatch, KafkaUnavailable.
    """
    admin.ensure_service_topics(settings.names, Policies(shards=settings.shards))
    compacted = {"cleanup.policy": "compact"}
    admin.ensure(
        [
            TopicPolicy(changelog(settings, table), partitions, compacted, fixed_partitions=True)
            for table, partitions in (("registry", settings.shards), ("streams", 1))
        ]
    )


def changelog(settings: Settings, table: str) -> str:
    """The topic behind a table of the control process, as Faust names it."""
    return f"{settings.service_id}-control-{table}-changelog"


def ensure_reply_topic(admin: Admin, name: str) -> None:
    """A topic for replies, made when missing. The caller has checked its prefix."""
    admin.ensure(
        [
            TopicPolicy(
                name, 1, {"cleanup.policy": "delete", "retention.ms": str(REPLIES_RETENTION_MS)}, verified=()
            )
        ]
    )
