"""The client of a Schema Registry: asks for the ids of schemas, and for the schemas of ids.

Apart from its settings (:mod:`topics.registry`), since its libraries take a quarter of a second to load and
most brokers have no registry.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast, get_args

import httpx2
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from topics.json_object import json_object
from topics.registry import Registered, RegistrySettings, SchemaKind
from tureen.errors import RegistryUnavailable, SchemaRefused, SettingsError

ID_MAX = 2**31 - 1

REFERENCES_DEEP, REFERENCES_MAX = 16, 200
"""What a schema may refer to: levels, and schemas."""

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
        options = json_object(settings.options.encode(), "schema_registry_options", SettingsError)
        if "bearer.auth.token" in options:
            given |= {"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.logical.cluster": ""}
        given |= options
        try:
            self._client = SchemaRegistryClient.new_client(given)
        except (ValueError, TypeError, OSError) as refused:
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

    @staticmethod
    @lru_cache(maxsize=8)
    def of(settings: RegistrySettings) -> Registry:
        """The one of this process. Raises SettingsError."""
        return Registry(settings)

    def schema_of(self, schema_id: int) -> str | None:
        """The text of :meth:`registered`."""
        found = self.registered(schema_id)
        return None if found is None else found.text

    def registered(self, schema_id: int) -> Registered | None:
        """The schema that stands under an id; None where there is none. The client keeps what it was told.

        Raises RegistryUnavailable.
        """
        try:
            found = self._client.get_schema(schema_id)
            references: dict[str, str] = {}
            self._follow(found, references, 0)
            kind, text = found.schema_type or "AVRO", found.schema_str
            if kind not in get_args(SchemaKind) or not isinstance(text, str):
                raise ValueError(f"a schema of kind {kind}")
            return Registered(cast("SchemaKind", kind), text, tuple(references.items()))
        except httpx2.HTTPError as away:
            raise _unavailable(repr(away)) from away
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            raise _unavailable(str(error)) from error
        except (ValueError, TypeError, KeyError, AttributeError) as strange:
            raise _unavailable(f"its answer has no schema ({strange!r})") from strange

    def _follow(self, schema: Schema, found: dict[str, str], depth: int) -> None:
        """Add what a schema refers to, by name, the innermost first."""
        for one in schema.references or ():
            name, subject, version = one.name, one.subject, one.version
            if name is None or subject is None or version is None:
                raise ValueError("a reference without name, subject or version")
            if name in found:
                continue
            if depth >= REFERENCES_DEEP or len(found) >= REFERENCES_MAX:
                raise ValueError("a schema with very many references")
            inner = self._client.get_version(subject, version).schema
            self._follow(inner, found, depth + 1)
            found[name] = str(inner.schema_str)


def _unavailable(reason: str) -> RegistryUnavailable:
    return RegistryUnavailable(
        f"the schema registry does not answer: {reason}", hint="is schema_registry_url the right address?"
    )
