"""What joins hold of a stream, as stored.

    | length, 4 | JSON | needed int64 | ordinals int64 | let_go int64 | rows (:mod:`storage.row_codec`) |

The JSON says over which streams and of which one, ``first``, ``needed_below`` and how many numbers each array
has. Cost: O(rows).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import numpy as np

from engine.model.persistence import HeldState
from engine.model.source import Schema, SourceName
from storage import row_codec
from storage.frames import corrupt, unwrap, wrap

VERSION = 1

_LENGTH = struct.Struct(">I")


def encode_held(state: HeldState) -> bytes:
    """As a stored value."""
    facts = {
        "over": list(state.over),
        "source": state.source,
        "first": state.first,
        "needed_below": state.needed_below,
        "needed": len(state.needed),
        "rows": len(state.ordinals),
    }
    head = json.dumps(facts).encode("ascii")
    arrays = [each.astype("<i8").tobytes() for each in (state.needed, state.ordinals, state.let_go)]
    return wrap(VERSION, b"".join((_LENGTH.pack(len(head)), head, *arrays, row_codec.encode(state.rows))))


def decode_held(value: bytes, schemas: Mapping[SourceName, Schema], key: str) -> HeldState | None:
    """The inverse of ``encode_held``; None where the stream is none of these. schemas: of what each stores.

    Raises StoreVersionUnknown, StoreCorrupt.
    """
    payload = unwrap(value, VERSION, key)
    try:
        (length,) = _LENGTH.unpack_from(payload)
        end = _LENGTH.size + length
        facts = json.loads(bytes(payload[_LENGTH.size : end]))
        schema = schemas.get(facts["source"])
        if schema is None:
            return None
        counts = facts["needed"], facts["rows"], facts["rows"]
        numbers = np.frombuffer(payload, "u1", offset=end)[: 8 * sum(counts)].view("<i8").astype(np.int64)
        needed, ordinals, let_go = np.split(numbers, np.cumsum(counts)[:-1])
        rows = row_codec.decode(bytes(payload[end + 8 * sum(counts) :]), schema, key)
        if len(rows) != len(ordinals):
            raise corrupt(key, f"it has {len(rows)} rows of {len(ordinals)}")
        over = tuple(SourceName(name) for name in facts["over"])
        first, below = facts["first"], facts["needed_below"]
        return HeldState(over, facts["source"], first, needed, below, ordinals, let_go, rows)
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise corrupt(key, repr(error)) from error
