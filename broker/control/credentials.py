"""Kafka's own settings, as Faust wants them.

The data plane passes librdkafka's settings through untouched. Faust speaks aiokafka, so security settings are
translated; what cannot be is refused, so that the two planes never connect differently.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

import faust
from faust.types.auth import CredentialsT

from tureen.errors import SettingsError


def broker_urls(kafka: Mapping[str, str]) -> list[str]:
    """``bootstrap.servers`` as Faust's URLs."""
    return [f"kafka://{server.strip()}" for server in kafka["bootstrap.servers"].split(",") if server.strip()]


def credentials(kafka: Mapping[str, str]) -> CredentialsT | None:
    """Faust's credentials; None for PLAINTEXT. Raises SettingsError."""
    protocol = kafka.get("security.protocol", "PLAINTEXT").upper()
    if protocol == "PLAINTEXT":
        return None
    if protocol == "SSL":
        return faust.SSLCredentials(_context(kafka))
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        mechanism = kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms", "PLAIN")).upper()
        if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            raise SettingsError(
                f"sasl.mechanism={mechanism} is not supported",
                hint="use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
            )
        return faust.SASLCredentials(
            mechanism=mechanism,
            username=kafka.get("sasl.username"),
            password=kafka.get("sasl.password"),
            ssl_context=_context(kafka) if protocol == "SASL_SSL" else None,
        )
    raise SettingsError(
        f"security.protocol={protocol} is not one of Kafka's",
        hint="use PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
    )


def _context(kafka: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=kafka.get("ssl.ca.location"), cadata=kafka.get("ssl.ca.pem"))
    if kafka.get("ssl.endpoint.identification.algorithm", "https").lower() == "none":
        context.check_hostname = False
    if kafka.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl.certificate.location" in kafka:
        context.load_cert_chain(
            kafka["ssl.certificate.location"], kafka.get("ssl.key.location"), kafka.get("ssl.key.password")
        )
    return context
