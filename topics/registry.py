"""A Schema Registry: schemas get ids, and records begin with the id of theirs.

A record in the registry's wire format is a zero byte, the schema's id as four bytes, then the data. The
keys of a topic belong to the subject ``<topic>-key``, its values to ``<topic>-value``; whether a schema
may follow those that stand there is the registry's to say. Giving a schema that stands already gives its
id again.

``mock://`` is a registry in memory, one for each :class:`~topics.registry_client.Registry`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Literal

TIMEOUT_S = 2.0
HEAD_BYTES = 5
"""What a record in the wire format begins with."""
SchemaKind = Literal["AVRO", "JSON", "PROTOBUF"]


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """Where a registry is, and who asks it.

    url: an address, or several divided by commas. user: ``name:password``. ca: a PEM file. options: a JSON
    object of other settings of the client library, as ``{"bearer.auth.token": "..."}``.
    """

    url: str
    user: str | None = None
    ca: str | None = None
    timeout_s: float = TIMEOUT_S
    options: str = field(default="{}", repr=False)


@dataclass(frozen=True, slots=True)
class Registered:
    """A schema as it stands in a registry. references: (name, text) of the schemas that it names types of,
    those that these name first.
    """

    kind: SchemaKind
    text: str
    references: tuple[tuple[str, str], ...] = ()


def wire_prefix(schema_id: int) -> bytes:
    """What a record with a schema of this id begins with.

    >>> wire_prefix(7).hex()
    '0000000007'
    """
    return struct.pack(">bI", 0, schema_id)
