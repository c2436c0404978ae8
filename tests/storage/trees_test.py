"""State of parts as trees: dataclasses come back as they were, through the codec and through a store."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from engine.model.batch import Int64Array
from engine.model.state_tree import as_tree, of_tree
from engine.model.step import Position
from storage.store import Store
from storage.tree_codec import decode_tree, encode_tree
from tests.memory_state import MemoryState
from tureen.errors import StoreCorrupt, StoreVersionUnknown


class Zone(NamedTuple):
    begin_ms: int
    rows: Int64Array


@dataclass(frozen=True)
class Inner:
    cursor: int
    share: float
    name: str | None


@dataclass(frozen=True)
class State:
    numbers: Int64Array
    words: np.ndarray[Any, np.dtype[np.uint64]]
    masks: np.ndarray[Any, np.dtype[np.bool_]] | None
    inner: tuple[Inner, ...]
    by_name: Mapping[str, Inner]
    by_number: Mapping[int, float]
    zones: list[Zone]
    limits: tuple[int, float]
    least: float
    flag: bool


STATE = State(
    np.arange(-3, 4),
    np.array([[0, 2**64 - 1]], np.uint64),
    None,
    (Inner(1, 0.1, "é$array"), Inner(-(2**63), math.inf, None)),
    {"$array": Inner(0, 2.0, ""), "$dict": Inner(2**62, -0.0, "b")},
    {7: 0.5, -1: 1.0},
    [Zone(5, np.empty(0, np.int64)), Zone(6, np.arange(2))],
    (2**53 + 1, 3.0),
    -math.inf,
    True,
)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool((one == other).all())
    if type(one) is not type(other):
        return False
    if hasattr(one, "__dataclass_fields__"):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return repr(one) == repr(other)


def test_state_comes_back_as_it_was() -> None:
    again = of_tree(State, decode_tree(encode_tree(as_tree(STATE)), "k"))
    assert _same(STATE, again)
    assert again.numbers.flags.writeable
    assert not _same(STATE, of_tree(State, as_tree(STATE) | {"least": 0.0}))


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(TypeError, match="object is no state"):
        as_tree(object())
    with pytest.raises(TypeError, match="array of objects"):
        encode_tree([np.array([None])])


def test_a_changed_tree_is_noticed() -> None:
    value = encode_tree({"a": np.arange(3)})
    with pytest.raises(StoreCorrupt):
        decode_tree(value[:-1] + b"\x07", "k")
    with pytest.raises(StoreVersionUnknown):
        decode_tree(b"\x63" + value[1:], "k")


def test_a_store_keeps_parts_by_name(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store:
        memory = MemoryState()
        for sink in (store, memory):
            sink.put_part("promising/1", {"n": np.arange(2)})
            sink.put_part("promising/2", [1])
            sink.put_part("summary/é", "x")
            sink.commit(Position(1, 1))
            sink.put_part("promising/1", 3)
            sink.drop_part("promising/2")
            sink.drop_part("promising/3")
            sink.commit(Position(1, 2))
        found = list(store.state_parts("promising/"))
        assert found == list(memory.state_parts("promising/")) == [("promising/1", 3)]
        assert list(store.state_parts("summary/")) == [("summary/é", "x")]
    with Store(tmp_path / "store") as store:
        assert list(store.state_parts("")) == [("promising/1", 3), ("summary/é", "x")]
