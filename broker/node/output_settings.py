"""What the broker's settings say of result topics and schemas."""

from __future__ import annotations

from broker.base.settings import Settings
from broker.runtime.topic_admin import policies
from topics.admin import letter_topics
from topics.outputs import OutputSettings
from topics.registry import RegistrySettings


def registry_settings(settings: Settings) -> RegistrySettings | None:
    """The schema registry, where one is named. Raises nothing: whoever asks it reads the options."""
    if not settings.schema_registry_url:
        return None
    user, authorities = settings.schema_registry_user, settings.schema_registry_ca
    options = settings.schema_registry_options
    return RegistrySettings(
        settings.schema_registry_url,
        user.get_secret_value() if user is not None else None,
        str(authorities) if authorities else None,
        options="{}" if options is None else options.get_secret_value(),
    )


def output_settings(settings: Settings) -> OutputSettings:
    """With the schema registry, where one is named."""
    registry = registry_settings(settings)
    return OutputSettings(
        settings.results_partitions,
        settings.results_retention_ms,
        settings.result_record_bytes_max,
        settings.into_topics_max,
        settings.retry_ms,
        registry,
        settings.record_bytes_max,
        tuple(letter_topics(settings.names, policies(settings))),
    )
