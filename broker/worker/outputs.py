"""Where the queries of a worker write, as their trees say, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping

from broker.settings import Settings
from engine.changes.operator import operator_over
from engine.changes.result_key import result_key
from engine.language.query import Query
from engine.model.source import Stream
from topics.outputs import OutputSettings, destination
from topics.registry import RegistrySettings
from topics.results import Destination
from tureen.protocol import TopicNames


def output_settings(settings: Settings) -> OutputSettings:
    """What the broker's settings say of result topics and schemas."""
    user, authorities = settings.schema_registry_user, settings.schema_registry_ca
    registry = None
    if settings.schema_registry_url:
        registry = RegistrySettings(
            settings.schema_registry_url,
            user.get_secret_value() if user is not None else None,
            str(authorities) if authorities else None,
        )
    return OutputSettings(
        settings.results_partitions,
        settings.results_retention_ms,
        settings.result_record_bytes_max,
        settings.into_topics_max,
        settings.retry_ms,
        registry,
    )


def destination_of(names: TopicNames, query: Query, streams: Mapping[str, Stream]) -> Destination | None:
    """That of a query that does not stand yet; None where it emits nothing."""
    if query.emit is None:
        return None
    read = {name: streams[name] for name in query.sources}
    return destination(names, query.emit, operator_over(query, read), result_key(query, read))
