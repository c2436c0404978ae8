"""The client of a Schema Registry: asks for the ids of schemas, and for the schemas of ids.

Apart from its settings (:mod:`topics.registry`), since its libraries take a quarter of a second to load and
most brokers have no registry.
"""

from __future__ import annotations

from typing import Any

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from topics.registry import RegistrySettings, SchemaKind
from tureen.errors import RegistryUnavailable, SchemaRefused, SettingsError

ID_MAX = 2**31 - 1

_NOT_FOUND = 404
_TOO_MANY = 429
_SERVER_FAILED = 500
_NOT_ALLOWED = (401, 403)


class Registry:
    """Calls block; safe to use from several threads."""

    def __init__(self, settings: RegistrySettings) -> None:
        """Asks nobody yet. Raises SettingsError."""
        given: dict[str, Any] = {"url": settings.url, "timeout": settings.timeout_s, "max.retries": 0}
        if settings.user is not None:
            given["basic.auth.user.info"] = settings.user
        if settings.ca is not None:
            given["ssl.ca.location"] = settings.ca
        try:
            self._client = SchemaRegistryClient.new_client(given)
        except (ValueError, OSError) as refused:
            raise SettingsError(f"schema_registry_url: {refused}") from refused
        self._given = given
        self._ids: dict[tuple[str, str], int] = {}

    def id_of(self, subject: str, schema: str, kind: SchemaKind) -> int:
        """The id under which a schema stands, put there if it does not. O(1) when it was asked for before.

        Raises RegistryUnavailable; SchemaRefused where it may not follow those of the subject.
        """
        known = self._ids.get((subject, schema))
        if known is not None:
            return known
        try:
            found = self._client.register_schema(subject, Schema(schema, kind))
        except httpx2.HTTPError as away:
            raise _unavailable(repr(away)) from away
        except SchemaRegistryError as error:
            status = error.http_status_code
            if status == _TOO_MANY or status >= _SERVER_FAILED:
                raise _unavailable(str(error)) from error
            hint = (
                "schema_registry_user must be its name:password"
                if status in _NOT_ALLOWED
                else "write EMIT CHANGES INTO another_name, or change the subject's compatibility"
            )
            raise SchemaRefused(subject, error.error_message, hint=hint) from error
        except (ValueError, TypeError, KeyError, AttributeError) as strange:
            raise _unavailable(f"its answer has no schema id ({strange!r})") from strange
        if type(found) is not int or not 0 <= found <= ID_MAX:
            self._client = SchemaRegistryClient.new_client(self._given)  # this one keeps what it was told
            raise _unavailable(f"its answer has no schema id ({found!r})")
        self._ids[subject, schema] = found
        return found

    def schema_of(self, schema_id: int) -> str | None:
        """The schema that stands under an id; None where there is none. The client keeps what it was told.

        Raises RegistryUnavailable.
        """
        try:
            return str(self._client.get_schema(schema_id).schema_str)
        except httpx2.HTTPError as away:
            raise _unavailable(repr(away)) from away
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            raise _unavailable(str(error)) from error
        except (ValueError, TypeError, KeyError, AttributeError) as strange:
            raise _unavailable(f"its answer has no schema ({strange!r})") from strange


def _unavailable(reason: str) -> RegistryUnavailable:
    return RegistryUnavailable(
        f"the schema registry does not answer: {reason}", hint="is schema_registry_url the right address?"
    )
