"""Ordered changes are the same whatever order they were told in, and no record is cut apart."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.changes import Changes
from engine.model.step import Position
from topics.destination import Destination
from topics.produce_loop import rows_of
from topics.results import encode
from topics.results_codec import JsonCodec
from topics.results_order import border, in_order

SCHEMA = pa.schema(
    [
        ("k", pa.int64()),
        ("f", pa.float64()),
        ("s", pa.string()),
        ("l", pa.list_(pa.int64())),
        ("b", pa.bool_()),
    ]
)
ROWS = st.tuples(
    st.integers(0, 3),
    st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("-inf")]),
    st.sampled_from([None, "", "a", 'b"']),
    st.sampled_from([None, (), (1,), (1, None)]),
    st.sampled_from([None, True, False]),
)
TOLD = st.lists(st.tuples(st.integers(5, 8), st.sampled_from([-1, 1]), ROWS), max_size=40)


def changes(told: list[tuple[int, int, Any]]) -> Changes:
    columns = [[row[place] for _, _, row in told] for place in range(len(SCHEMA))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return Changes.of_one(
        "q",
        pa.Table.from_arrays(arrays, schema=SCHEMA),
        np.array([weight for _, weight, _ in told], np.int8),
        np.array([at_ms for at_ms, _, _ in told], np.int64),
        9,
    )


def to(key: tuple[int, ...] | None) -> Destination:
    operator = "istream" if key is None else "changes"
    return Destination("t", False, True, "debezium" if key else "diff", "json", operator, key)


def written(parts: list[Changes], where: Destination) -> list[Any]:
    """Records of changes that are encoded one after another."""
    found: list[Any] = []
    numbered: dict[str, int] = {}
    for one in parts:
        made = encode(
            one, where, Position(1, 1), JsonCodec(), numbered=numbered, partitions=1, bytes_max=1 << 20
        )
        anywhere = np.zeros(len(made), np.int32)
        every = rows_of(made.values, made.keys, anywhere, made.headers, 0, len(made))
        found += [(key, value, tuple(own)) for value, key, _, own in every]
    return found


def pieces(one: Changes, where: Destination, wanted: int) -> list[Changes]:
    ordered = in_order(one, where)
    found, start = [], 0
    while start < len(ordered):
        stop = border(ordered, where, start, wanted)
        assert stop > start
        found.append(ordered.piece(start, stop))
        start = stop
    return found


@given(TOLD, st.integers(1, 9), st.randoms(use_true_random=False))
def test_changes_without_a_key_are_ordered_by_all_they_are(
    told: list[tuple[int, int, Any]], wanted: int, rng: random.Random
) -> None:
    other = list(told)
    rng.shuffle(other)
    one, again = pieces(changes(told), to(None), wanted), pieces(changes(other), to(None), wanted)
    assert written(one, to(None)) == written(again, to(None))
    assert [len(each) for each in one] == [len(each) for each in again]
    assert written(one, to(None)) == written([in_order(changes(told), to(None))], to(None))
    instants = [int(at_ms) for each in one for at_ms in each.at_ms]
    assert instants == sorted(at_ms for at_ms, _, _ in told)


@given(TOLD, st.integers(1, 9), st.randoms(use_true_random=False))
def test_what_is_one_record_by_key_stays_together(
    told: list[tuple[int, int, Any]], wanted: int, rng: random.Random
) -> None:
    groups: dict[tuple[int, int], list[tuple[int, int, Any]]] = {}
    for each in sorted(told, key=lambda one: one[0]):
        groups.setdefault((each[0], each[2][0]), []).append(each)
    other = list(groups.values())
    rng.shuffle(other)
    where = to((0,))
    one = pieces(changes(told), where, wanted)
    again = pieces(changes([each for group in other for each in group]), where, wanted)
    assert written(one, where) == written(again, where)
    assert written(one, where) == written([in_order(changes(told), where)], where)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_changes_of_one_of_several(place: int) -> None:
    all_of = changes([(at_ms, 1, (at_ms, None, None, None, None)) for at_ms in range(6)])
    several = Changes(
        ("a", "b", "c"),
        np.array([0, 2, 2, 6]),
        all_of.table,
        all_of.weights,
        all_of.at_ms,
        np.array([7, 8, 9]),
    )
    one = several.of_query(place)
    assert (one.query_ids, one.now_ms.tolist()) == (("abc"[place],), [7 + place])
    assert one.at_ms.tolist() == [[0, 1], [], [2, 3, 4, 5]][place]
    assert one.starts.tolist() == [0, len(one)]
