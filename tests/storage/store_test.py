"""The store by its interface: what was put, committed, replaced, dropped and read back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.persistence import HeldState
from engine.model.source import SourceName
from engine.model.step import Position
from storage.store import Store
from tests.storage.cases import batches as batches_of
from tests.storage.cases import (
    numbered,
    ordinals,
    plain,
    query_state,
    schemas,
    source_state,
    stored,
)
from tests.strategies import examples
from tureen.errors import StoreInUse

S = SourceName("s")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "shard") as opened:
        yield opened


def test_an_empty_store_has_no_position(store: Store) -> None:
    assert store.position() is None
    assert list(store.sources()) == []
    assert list(store.queries()) == []
    assert list(store.rows(S)) == []
    assert list(store.pending(S)) == []


def test_nothing_counts_before_the_commit_and_everything_after(store: Store, tmp_path: Path) -> None:
    store.put_source(source_state())
    store.append_rows(S, 0, numbered(0, 3))
    store.put_query(query_state("q"))
    assert (store.position(), list(store.sources()), stored(store), list(store.queries())) == (
        None,
        [],
        [],
        [],
    )
    store.commit(Position(1, 5))
    for _ in "now", "after opening again":
        assert store.position() == Position(1, 5)
        assert list(store.sources()) == [source_state()]
        assert list(store.queries()) == [query_state("q")]
        assert stored(store) == [(0, plain(numbered(0, 3)))]
        store.close()
        store = Store(tmp_path / "shard")
    store.close()


def test_what_was_put_and_not_committed_is_gone_after_opening_again(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        store.put_query(query_state("q"))
    with Store(tmp_path) as store:
        assert list(store.queries()) == []


def test_rows_come_in_the_order_of_ordinals_negative_ones_first(store: Store) -> None:
    store.put_source(source_state())
    for first in (3, -6, 0, -3):
        store.append_rows(S, first, numbered(first, first + 3))
    store.commit(Position(1, 1))
    assert ordinals(store) == [(-6, -3), (-3, 0), (0, 3), (3, 6)]


def test_a_segment_takes_the_place_of_its_pieces(store: Store) -> None:
    store.put_source(source_state())
    for first in range(0, 8, 2):
        store.append_rows(S, first, numbered(first, first + 2))
    store.commit(Position(1, 1))
    store.append_rows(S, 8, numbered(8, 10))
    store.seal(S, 2, numbered(2, 10))
    store.append_rows(S, 10, numbered(10, 11))
    store.commit(Position(1, 2))
    assert stored(store) == [
        (0, plain(numbered(0, 2))),
        (2, plain(numbered(2, 10))),
        (10, plain(numbered(10, 11))),
    ]


@pytest.mark.parametrize(
    ("below", "left"),
    [(-9, 0), (-4, 0), (-3, 1), (-2, 1), (0, 2), (2, 2), (3, 3), (9, 3)],
)
def test_whole_pieces_below_an_ordinal_go(store: Store, below: int, left: int) -> None:
    pieces = [(-5, -3), (-3, 0), (0, 3)]
    store.put_source(source_state())
    for first, end in pieces:
        store.append_rows(S, first, numbered(first, end))
    store.commit(Position(1, 1))
    store.drop_rows(S, below)
    store.commit(Position(1, 2))
    assert ordinals(store) == pieces[left:]


def test_rows_that_come_and_go_in_one_save(store: Store) -> None:
    store.put_source(source_state())
    store.append_rows(S, 0, numbered(0, 4))
    store.append_rows(S, 4, numbered(4, 6))
    store.commit(Position(1, 1))
    store.append_rows(S, 6, numbered(6, 8))
    store.seal(S, 4, numbered(4, 8))
    store.append_rows(S, 8, numbered(8, 9))
    store.drop_rows(S, 7)
    store.commit(Position(1, 2))
    assert ordinals(store) == [(4, 8), (8, 9)]
    store.drop_rows(S, 8)
    store.drop_rows(S, 9)
    store.append_rows(S, 9, numbered(9, 10))
    store.commit(Position(1, 3))
    assert ordinals(store) == [(9, 10)]


def test_history_before_dropped_rows_can_come_and_go_again(store: Store) -> None:
    store.put_source(source_state())
    store.append_rows(S, 0, numbered(0, 4))
    store.drop_rows(S, 4)
    store.commit(Position(1, 1))
    store.append_rows(S, -2, numbered(-2, 4))
    store.commit(Position(1, 2))
    assert ordinals(store) == [(-2, 4)]
    store.drop_rows(S, 4)
    store.commit(Position(1, 3))
    assert ordinals(store) == []


def test_pending_pieces_are_apart_from_rows(store: Store) -> None:
    store.put_source(source_state())
    store.put_pending(S, 1, numbered(50, 52))
    store.put_pending(S, 2, numbered(40, 41))
    store.append_rows(S, 0, numbered(0, 1))
    store.commit(Position(1, 1))
    store.drop_pending(S, 1)
    store.drop_rows(S, 1)
    store.commit(Position(1, 2))
    assert [(piece, plain(rows)) for piece, rows in store.pending(S)] == [(2, plain(numbered(40, 41)))]
    assert stored(store) == []


def test_a_source_goes_with_its_rows_and_its_name_can_come_back(store: Store) -> None:
    for name in ("s", "s\x00", "t"):
        store.put_source(source_state(name))
        store.append_rows(SourceName(name), 0, numbered(0, 5))
        store.put_pending(SourceName(name), 1, numbered(7, 9))
    store.commit(Position(1, 1))
    store.drop_source(S)
    store.put_source(source_state(end=9))
    store.append_rows(S, 5, numbered(5, 9))
    store.drop_rows(S, 6)
    store.commit(Position(1, 2))
    assert ordinals(store) == [(5, 9)]
    assert list(store.pending(S)) == []
    store.drop_source(S)
    store.commit(Position(1, 3))
    assert [state.stream.name for state in store.sources()] == ["s\x00", "t"]
    assert list(store.rows(S)) == []
    assert ordinals(store, "s\x00") == ordinals(store, "t") == [(0, 5)]


def test_queries_are_replaced_and_removed(store: Store) -> None:
    for query_id in ("a", "b", "c"):
        store.put_query(query_state(query_id))
    store.commit(Position(1, 1))
    store.put_query(query_state("b", errors=(4,)))
    store.drop_query("c")
    store.drop_query("never there")
    store.commit(Position(1, 2))
    assert list(store.queries()) == [query_state("a"), query_state("b", errors=(4,))]


@settings(max_examples=examples(15))
@given(data=st.data(), schema=schemas())
def test_any_rows_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, schema: Any
) -> None:
    pieces = data.draw(st.lists(batches_of(schema), max_size=3))
    with Store(tmp_path_factory.mktemp("store")) as store:
        store.put_source(source_state(schema=schema))
        first, expected = -7, []
        for rows in pieces:
            store.append_rows(S, first, rows)
            expected.append((first, plain(rows)))
            first += len(rows)
        store.commit(Position(1, 1))
        assert stored(store) == expected


def test_a_second_owner_is_told_who_the_first_is(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreInUse, match="this process already") as refused:
        Store(tmp_path / "shard")
    assert refused.value.hint
    store.commit(Position(1, 1))  # the first is unharmed
    store.close()
    Store(tmp_path / "shard").close()


def test_rows_that_begin_below_an_ordinal_are_cut_whatever_they_reach(store: Store) -> None:
    store.put_source(source_state())
    for first in range(100, 112, 4):
        store.append_rows(S, first, numbered(first, first + 4))
    store.commit(Position(1, 1))
    store.drop_rows(S, 105)
    store.commit(Position(1, 2))
    assert ordinals(store) == [(104, 108), (108, 112)]
    store.cut_rows(S, 108)
    store.seal(S, 95, numbered(95, 106))
    store.seal(S, 106, numbered(106, 108))
    store.drop_rows(S, 97)
    store.commit(Position(1, 3))
    assert ordinals(store) == [(95, 106), (106, 108), (108, 112)]
    store.drop_rows(S, 107)
    store.commit(Position(1, 4))
    assert ordinals(store) == [(106, 108), (108, 112)]


def test_a_source_remembers_where_its_rows_began(store: Store) -> None:
    state = source_state(base=7, end=9, origin=6, complete_from_ms=-5)
    store.put_source(state)
    store.commit(Position(1, 1))
    assert list(store.sources()) == [state]


def test_what_joins_hold_is_replaced_dropped_and_read_back(store: Store, tmp_path: Path) -> None:
    def held(needed: list[int], first: int, end: int) -> HeldState:
        numbers = np.arange(first, end)
        rows = numbered(first, end)
        return HeldState((S, SourceName("t")), S, end, np.array(needed), end + 9, numbers, numbers + 1, rows)

    store.put_source(source_state())
    store.put_held(held([1], 0, 2))
    store.put_held(replace(held([1], 0, 2), source=SourceName("of no stream")))
    store.commit(Position(1, 1))
    store.put_held(held([3, 5], 0, 4))
    store.commit(Position(1, 2))
    store.close()
    with Store(tmp_path / "shard") as again:
        (found,) = again.held()
        expected = held([3, 5], 0, 4)
        assert plain(found.rows) == plain(expected.rows)
        for name in ("over", "source", "first", "needed_below"):
            assert getattr(found, name) == getattr(expected, name)
        for name in ("needed", "ordinals", "let_go"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
        again.drop_held(expected.over, S)
        again.commit(Position(1, 3))
        assert list(again.held()) == []
