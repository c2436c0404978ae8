"""Kafka settings as the connector takes them.

Tureen's settings are librdkafka's, everywhere; Spark's connector is Apache Kafka's Java client. Most names
are the same, those of authentication and certificates are not.
"""

from __future__ import annotations

from collections.abc import Mapping

from tureen.errors import SettingsError

_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "compression.codec": "compression.type",
    "queue.buffering.max.ms": "linger.ms",
    "message.max.bytes": "max.request.size",
}
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_TAKEN_APART = {
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "enable.ssl.certificate.verification",
}
_TIMEOUTS = {
    "kafka.request.timeout.ms": "10000",
    "kafka.default.api.timeout.ms": "15000",
    "kafkaConsumer.pollTimeoutMs": "30000",
}
"""Java's client would be silent for minutes about a Kafka that is away."""


def reading_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Options of ``read.format("kafka")`` and of ``readStream``: time-outs, unless the settings name them.

    Raises SettingsError.
    """
    return {**_TIMEOUTS, **connector_options(settings)}


def connector_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Options of ``write.format("kafka")`` for librdkafka settings. Raises SettingsError.

    >>> connector_options({"bootstrap.servers": "a:1", "sasl.mechanisms": "GSSAPI"})
    {'kafka.bootstrap.servers': 'a:1', 'kafka.sasl.mechanism': 'GSSAPI'}
    """
    java = {_RENAMED.get(name, name): value for name, value in settings.items() if name not in _TAKEN_APART}
    if "sasl.username" in settings:
        mechanism = java.get("sasl.mechanism", "PLAIN")
        module = _LOGIN_MODULES.get(mechanism)
        if module is None:
            raise SettingsError(
                f"a user name does not go with the SASL mechanism {mechanism}",
                hint=f"there are {', '.join(_LOGIN_MODULES)}; for others give sasl.jaas.config",
            )
        user, password = settings["sasl.username"], settings.get("sasl.password", "")
        java["sasl.jaas.config"] = f"{module} required username={_quoted(user)} password={_quoted(password)};"
    if "ssl.ca.location" in settings:
        java["ssl.truststore.type"] = "PEM"
        java["ssl.truststore.location"] = settings["ssl.ca.location"]
    if "ssl.certificate.location" in settings or "ssl.key.location" in settings:
        raise SettingsError(
            "the connector takes a client's certificate and key from one file",
            hint="put both into a PEM file, and give ssl.keystore.type=PEM and ssl.keystore.location=FILE",
        )
    if settings.get("enable.ssl.certificate.verification", "true") != "true":
        raise SettingsError("the connector always verifies certificates", hint="give ssl.ca.location")
    return {f"kafka.{name}": value for name, value in java.items()}


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
