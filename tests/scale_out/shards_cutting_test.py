"""Rows go to the shard of their key, whatever they are read with; and each shard to a task of its own."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.batch import Batch
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.types import BIGINT, DOUBLE, INTEGER, STRING, Type, decimal
from spark_jobs.scale_out.shards.cutting import cut, hashes_of, place_values, put_together, shards_of
from spark_jobs.scale_out.shards.layout import Layout
from tests.strategies import TYPES, batch_of, column_of, nullable

SCHEMA = Schema((Field("k", STRING), Field("v", INTEGER)))
STREAM = Stream(SourceName("s"), SCHEMA, "s")
TABLE = Stream(SourceName("names"), SCHEMA, "n", key=("k",))


@given(data=st.data(), type_=st.sampled_from(TYPES), shards=st.integers(1, 9))
def test_a_value_has_one_shard_whatever_is_beside_it(data: st.DataObject, type_: Type, shards: int) -> None:
    values = data.draw(st.lists(nullable(type_), min_size=1, max_size=12))
    together = shards_of(column_of(type_, values), shards)
    assert ((together >= 0) & (together < shards)).all()
    for place, value in enumerate(values):
        assert shards_of(column_of(type_, [value]), shards)[0] == together[place]


def test_equal_keys_of_two_kinds_have_one_hash() -> None:
    assert hashes_of(column_of(DOUBLE, [0.0]))[0] == hashes_of(column_of(DOUBLE, [-0.0]))[0]
    signalling = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    assert len(set(hashes_of(column_of(DOUBLE, [float("nan"), *signalling])).tolist())) == 1
    numbers = [0, 1, -1, 2**31 - 1, -(2**31), None]
    assert (hashes_of(column_of(INTEGER, numbers)) == hashes_of(column_of(BIGINT, numbers))).all()


@pytest.mark.parametrize(
    ("type_", "values", "shards"),
    [
        (INTEGER, [0, 1, 2, 3, 4, 5, None], [0, 0, 0, 3, 3, 3, 0]),
        (STRING, ["", "a", "LAX", "日本", None], [0, 4, 1, 1, 0]),
        (DOUBLE, [0.0, 1.5, float("nan"), None], [0, 0, 3, 0]),
        (decimal(5, 2), [Decimal("1.00"), Decimal("-2.25"), None], [4, 1, 0]),
    ],
)
def test_shards_are_the_same_in_every_version(type_: Type, values: list[object], shards: list[int]) -> None:
    assert shards_of(column_of(type_, values), 5).tolist() == shards


def rows(count: int) -> Batch:
    return batch_of(
        SCHEMA, [(n % 3, n // 3, 1_000 - n, ("abcdefg"[n % 7] if n % 5 else None, n)) for n in range(count)]
    )


def test_every_row_is_cut_to_one_part_and_to_the_whole_shard_where_it_has_it() -> None:
    batch = rows(40)
    found = dict(cut(STREAM, batch, Layout(3, {"s": "k"})))
    assert 3 not in found
    assert sum(map(len, found.values())) == 40
    values = [set(one.columns[0].to_arrow().to_pylist()) for one in found.values()]
    assert not any(one & other for n, one in enumerate(values) for other in values[:n])
    found = dict(cut(STREAM, batch, Layout(3, {"s": "k"}, frozenset({"s"}))))
    assert len(found[3]) == 40
    assert dict(cut(STREAM, batch, Layout(3))).keys() == {3}
    assert cut(STREAM, batch.slice(0, 0), Layout(3)) == []


def test_a_table_without_a_key_is_everywhere() -> None:
    batch = batch_of(SCHEMA, [(0, 0, 5, ("a", 1))])
    assert [(shard, len(one)) for shard, one in cut(TABLE, batch, Layout(2))] == [(0, 1), (1, 1), (2, 1)]
    keyed = cut(TABLE, batch, Layout(2, {"names": "k"}))
    assert len(keyed) == 1


@given(order=st.permutations(range(12)), cuts=st.lists(st.integers(0, 12), max_size=3))
def test_pieces_come_together_in_the_order_of_reading(order: list[int], cuts: list[int]) -> None:
    batch = rows(12)
    bounds = sorted({0, 12, *cuts})
    shuffled = batch.take(np.array(order))
    pieces = [shuffled.slice(start, stop) for start, stop in pairwise(bounds)]
    found = put_together(STREAM, pieces)
    assert [*zip(found.partition.tolist(), found.offset.tolist(), strict=True)] == sorted(
        zip(batch.partition.tolist(), batch.offset.tolist(), strict=True)
    )
    assert sorted(found.columns[1].values.tolist()) == [*range(12)]
    assert len(put_together(STREAM, [])) == 0


def test_each_shard_has_a_number_of_its_own() -> None:
    for shards in (1, 2, 7, 64):
        assert len(set(place_values(shards))) == shards
