"""A Schema Registry: schemas get ids, and records begin with the id of theirs.

A record in the registry's wire format is a zero byte, the schema's id as four bytes, then the data. The
keys of a topic belong to the subject ``<topic>-key``, its values to ``<topic>-value``; whether a schema
may follow those that stand there is the registry's to say. Giving a schema that stands already gives its
id again.

``mock://`` is a registry in memory, one for each :class:`~topics.registry_client.Registry`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

TIMEOUT_S = 2.0
SchemaKind = Literal["AVRO", "JSON"]


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """url: an address, or several divided by commas. user: ``name:password``. ca: a PEM file."""

    url: str
    user: str | None = None
    ca: str | None = None
    timeout_s: float = TIMEOUT_S


def wire_prefix(schema_id: int) -> bytes:
    """What a record with a schema of this id begins with.

    >>> wire_prefix(7).hex()
    '0000000007'
    """
    return struct.pack(">bI", 0, schema_id)
