"""State of a part as a tree (:mod:`engine.model.state_tree`), as stored.

    | length, 4 | JSON | arrays, one after another, each from a multiple of 8 bytes of the arrays on |

In the JSON an array is ``{"$array": [type, shape, first byte]}``, a float that JSON has no number for
``{"$float": text}``, and a dict ``{"$dict": ...}``, so that no key is taken for one of these. Cost: O(bytes).
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from engine.model.state_tree import Tree
from storage.frames import corrupt, unwrap, wrap

VERSION = 1
ALIGNMENT = 8

_LENGTH = struct.Struct(">I")


def encode_tree(tree: Tree) -> bytes:
    """As a stored value. Raises TypeError: something in it is no tree."""
    pieces: list[bytes] = []
    head = json.dumps(_plain(tree, pieces, [0]), allow_nan=False).encode("ascii")
    return wrap(VERSION, b"".join((_LENGTH.pack(len(head)), head, *pieces)))


def decode_tree(value: bytes, key: str) -> Tree:
    """The inverse of ``encode_tree``; arrays are copies that may be written.

    Raises StoreVersionUnknown, StoreCorrupt.
    """
    payload = unwrap(value, VERSION, key)
    try:
        (length,) = _LENGTH.unpack_from(payload)
        end = _LENGTH.size + length
        return _tree(json.loads(bytes(payload[_LENGTH.size : end])), payload[end:])
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise corrupt(key, repr(error)) from error


def _plain(tree: Tree, pieces: list[bytes], at: list[int]) -> Any:
    if isinstance(tree, np.ndarray):
        little = np.ascontiguousarray(tree).astype(tree.dtype.newbyteorder("<"), copy=False)
        if little.dtype.hasobject:
            raise TypeError("an array of objects is no state")
        place, data = at[0], little.tobytes()
        padding = -len(data) % ALIGNMENT
        pieces.append(data + bytes(padding))
        at[0] += len(data) + padding
        return {"$array": [little.dtype.str, list(tree.shape), place]}
    if isinstance(tree, dict):
        return {"$dict": {key: _plain(each, pieces, at) for key, each in tree.items()}}
    if isinstance(tree, list):
        return [_plain(each, pieces, at) for each in tree]
    if isinstance(tree, float) and not math.isfinite(tree):
        return {"$float": repr(tree)}
    return tree


def _tree(plain: Any, arrays: memoryview) -> Tree:
    if isinstance(plain, list):
        return [_tree(each, arrays) for each in plain]
    if not isinstance(plain, dict):
        return plain
    if "$array" in plain:
        dtype, shape, place = plain["$array"]
        kind = np.dtype(dtype)
        count = math.prod(shape)
        read = np.frombuffer(arrays, kind, count, place)
        return read.reshape(shape).astype(kind.newbyteorder("="), copy=True)
    if "$float" in plain:
        return float(plain["$float"])
    return {key: _tree(each, arrays) for key, each in plain["$dict"].items()}
