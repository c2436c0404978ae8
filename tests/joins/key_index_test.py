"""Key indexes: equal keys get equal numbers, in every index of a kind, for as long as rows have them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.joins import key_index
from engine.joins.key_index import KeyIndexes
from engine.model.capacities import SMALLEST, USUAL
from engine.model.source import SourceName
from tests.joins.sources import KEYS, Sources, equal, value
from tests.strategies import examples

values = st.tuples(
    st.one_of(st.none(), st.integers(-2, 2), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.text("ab", max_size=3)),
    st.one_of(st.none(), st.floats()),
)
columns = st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True)


@given(st.data(), columns)
@settings(max_examples=examples(40))
def test_numbers_equal_where_keys_do(data, names):
    sources, indexes = Sources(["a", "b"]), KeyIndexes(data.draw(st.sampled_from([USUAL, SMALLEST])))
    expressions = tuple(KEYS[name] for name in names)
    pair = [indexes.take(SourceName(name), expressions) for name in ("a", "b")]
    limit, rows_max = key_index.CODES_MIN, key_index.ROWS_MAX
    key_index.CODES_MIN = data.draw(st.sampled_from([0, limit]))  # as good as after very many keys
    key_index.ROWS_MAX = data.draw(st.sampled_from([0, rows_max]))  # and after very many rows
    try:
        for step in range(data.draw(st.integers(1, 4))):
            for index in pair:
                sources.append(
                    index.source, [(step, *row) for row in data.draw(st.lists(values, max_size=6))]
                )
                stem = sources.stems[index.source]
                index.take_in(stem.rows(), 0, None, stem.end)
                if data.draw(st.booleans()):
                    stem.drop_below(data.draw(st.integers(stem.base, stem.end)))
                    indexes.drop_below(index.source, stem.base)
                index._check()
    finally:
        key_index.CODES_MIN, key_index.ROWS_MAX = limit, rows_max
    found = []
    for index in pair:
        ordinals = np.arange(index.base, index.end)
        keys, null = index.view().of(ordinals)
        for ordinal, key, is_null in zip(ordinals.tolist(), keys.tolist(), null.tolist(), strict=True):
            row = sources.rows[index.source][ordinal]
            assert is_null == any(value(row, column) is None for column in expressions)
            if not is_null:
                found.append((key, row))
    for one, first in found:
        for other, second in found:
            same = all(equal(value(first, column), value(second, column)) for column in expressions)
            assert (one == other) == same


def test_rows_of_ever_new_keys_take_so_much_and_no_more():
    rng, sources, indexes = np.random.default_rng(1), Sources(["a"]), KeyIndexes(SMALLEST)
    index = indexes.take(SourceName("a"), (KEYS["k"],))
    for step in range(20):
        keys = (3_000 * step + rng.integers(0, 9_000, 3_000)).tolist()
        sources.append("a", [(step, key, None, None) for key in keys])
        stem = sources.stems["a"]
        index.take_in(stem.rows(), 0, None, stem.end)
        index._check()
        stem.drop_below(max(0, stem.end - 5_000))
        indexes.drop_below(index.source, stem.base)
        index._check()
    assert len(index) == 5_000
    assert index.nbytes < 12 * 4 / 3 * 8_001 + 4 * 32_768


def test_an_index_is_made_once_and_goes_with_its_last_user():
    indexes = KeyIndexes()
    one, other = (indexes.take(SourceName("a"), (KEYS["s"],)) for _ in range(2))
    third = indexes.take(SourceName("b"), (KEYS["s"],))
    assert one is other
    assert third.codes is one.codes
    for index in (one, third, other):
        assert index in list(indexes)
        indexes.give_back(index)
    assert not len(indexes)
    assert indexes.nbytes == 0


def test_strings_that_no_row_has_any_more_are_forgotten():
    sources, indexes = Sources(["a"]), KeyIndexes()
    index = indexes.take(SourceName("a"), (KEYS["s"], KEYS["k"]))
    view = None
    for step in range(12):
        sources.append("a", [(step, place, f"{step}/{place}", None) for place in range(8_192)])
        stem = sources.stems["a"]
        index.take_in(stem.rows(), 0, None, stem.end)
        stem.drop_below(stem.end - 1_000)
        before, view = view, index.view()
        indexes.drop_below(index.source, stem.base)
        if before is not None:
            assert len(np.unique(before.of(np.arange(before.end - 1_000, before.end))[0])) == 1_000
    assert index.codes.given < 2 * key_index.CODES_MIN
    index._check()
    assert len(np.unique(index.view().of(np.arange(index.base, index.end))[0])) == 1_000
