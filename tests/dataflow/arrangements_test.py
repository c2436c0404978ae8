"""State of operators: ids of tuples, numbers of keys, cells, counts of equal rows."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from engine.dataflow.arrangements import pair_table, string_labels
from engine.dataflow.arrangements import words as words_module
from engine.dataflow.arrangements.copy_counts import CopyCounts
from engine.dataflow.arrangements.id_slots import IdSlots
from engine.dataflow.arrangements.keys import Keys
from engine.dataflow.arrangements.pair_table import PairTable
from engine.dataflow.arrangements.string_labels import StringLabels
from engine.dataflow.arrangements.word_table import WordTable
from engine.model.batch import Column
from engine.model.capacities import SMALLEST
from engine.model.string_table import StringTable
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, STRING
from tests.operators.relations import PRICE, exactly, relation, rows_of, tables

seeds = st.integers(0, 2**32 - 1)
KINDS = (BIGINT, STRING, BOOLEAN, DOUBLE, PRICE, DATE)


@given(seeds, st.integers(1, 3))
def test_ids_of_tuples_that_come_and_go(seed: int, width: int) -> None:
    rng = random.Random(seed)
    table, known = WordTable(width, SMALLEST), dict[tuple[int, ...], int]()
    for _ in range(rng.randint(1, 6)):
        n = rng.choice((0, 3, 700))
        tuples = [tuple(rng.randint(-3, 400) for _ in range(width)) for _ in range(n)]
        ids = table.number(np.array(tuples, np.int64).reshape(n, width)).tolist()
        for one, given_id in zip(tuples, ids, strict=True):
            assert known.setdefault(one, given_id) == given_id
        assert len(set(known.values())) == len(known) == len(table)
        gone = [one for one in known if rng.random() < 0.5]
        table.release(np.array([known.pop(one) for one in gone], np.int32))
        assert set(table.find(np.array(gone, np.int64).reshape(-1, width)).tolist()) <= {-1}
        table._check()


@given(seeds, st.integers(1, 2), st.sampled_from((3, 1_000_000)))
def test_slots_of_ids_that_come_and_go(seed: int, width: int, apart: int) -> None:
    """However far apart ids are."""
    rng = random.Random(seed)
    table, known, free = IdSlots(width, SMALLEST), dict[tuple[int, ...], int](), list(range(4_000))
    first = 0
    for _ in range(rng.randint(1, 6)):
        first += rng.randint(0, 2_000) * apart
        ids = list({tuple(first + rng.randint(-9, 400) * apart for _ in range(width)) for _ in range(300)})
        found = table.find(np.array(ids, np.int64))
        assert found.tolist() == [known.get(one, -1) for one in ids]
        coming = [one for one in ids if rng.random() < 0.7]
        slots = [free.pop() for _ in coming]
        table.put(np.array(coming, np.int64).reshape(-1, width), np.array(slots, np.int32))
        known |= dict(zip(coming, slots, strict=True))
        gone = [one for one in known if rng.random() < 0.5]
        other = [one for one in gone if rng.random() < 0.2]
        slots = [known[one] + (one in other) for one in gone]
        table.remove(np.array(gone, np.int64).reshape(-1, width), np.array(slots, np.int32))
        known = {one: slot for one, slot in known.items() if one not in gone or one in other}
        assert len(table) == len(known)
        table._check()


@given(seeds)
def test_ids_of_pairs_that_come_and_go(seed: int) -> None:
    """Also while the table becomes dense and is hashed again."""
    rng = random.Random(seed)
    table, known = PairTable(SMALLEST), dict[tuple[int, int], int]()
    pair_table.DENSE_MIN, before = 16, pair_table.DENSE_MIN
    try:
        for _ in range(rng.randint(1, 8)):
            n, keys, places = rng.choice((0, 3, 700)), rng.choice((1, 9, 900)), rng.choice((1, 40, 300))
            pairs = [(rng.randrange(keys), rng.randrange(places)) for _ in range(n)]
            columns = np.array(pairs, np.int32).reshape(n, 2)
            ids = table.number(columns[:, 0].copy(), columns[:, 1].copy())
            for one, given_id in zip(pairs, ids.tolist(), strict=True):
                assert known.setdefault(one, given_id) == given_id
            assert len(set(known.values())) == len(known) == len(table)
            assert list(zip(table.keys_of(ids).tolist(), table.places_of(ids).tolist(), strict=True)) == pairs
            gone = [one for one in known if rng.random() < 0.5]
            table.release(np.array([known.pop(one) for one in gone], np.int32))
            assert table.used().tolist() == sorted(known.values())
            table._check()
    finally:
        pair_table.DENSE_MIN = before


@given(st.data())
def test_numbers_of_keys_tell_rows_apart(data: Any) -> None:
    """As long as somebody has a key its number stays, whatever strings are let go of."""
    keys, held, taken = Keys(KINDS, SMALLEST), dict[str, int](), list[tuple[Any, list[str]]]()
    words_module.VALUES_MIN, before = 4, words_module.VALUES_MIN
    try:
        for _ in range(data.draw(st.integers(1, 5))):
            rows = relation(KINDS, data.draw(tables(KINDS, 30)))
            texts = list(map(repr, exactly(rows_of(rows))))
            ids = keys.number(rows.columns, len(rows))
            keys.take(ids)
            taken.append((ids, texts))
            for text, number in zip(texts, ids.tolist(), strict=True):
                assert held.setdefault(text, number) == number
            assert len(set(held.values())) == len(held) == len(keys)
            assert list(map(repr, exactly(rows_of(rows.with_columns(keys.columns(ids)))))) == texts
            if data.draw(st.booleans()):
                gone, _ = taken.pop(data.draw(st.integers(0, len(taken) - 1)))
                keys.give_back(gone)
                left = {text for _, texts in taken for text in texts}
                held = {text: number for text, number in held.items() if text in left}
                assert len(keys) == len(held)
            keys._check()
    finally:
        words_module.VALUES_MIN = before


@given(st.data(), st.sampled_from((1 << 6, 1 << 10, 1 << 60)))
def test_labels_order_as_strings_do(data: Any, spread: int) -> None:
    """However many come between two, or behind the last; nobody else's changes without being said."""
    texts = st.lists(st.text("ab\ud7ff\uffff\U00010000", max_size=4) | st.text(max_size=3), max_size=12)
    before = string_labels.SPREAD, string_labels.MOST
    string_labels.SPREAD, string_labels.MOST = spread, 2 * spread
    try:
        labels, held = StringLabels(SMALLEST), dict[str, int]()
        for batch in data.draw(st.lists(texts, max_size=6)):
            found, moved = labels.of(relation((STRING,), [(text,) for text in batch]).columns[0])
            if moved is not None:
                became = moved.of(np.array(list(held.values()), np.int64)).tolist()
                held = dict(zip(held, became, strict=True))
            told = dict(zip(batch, found.tolist(), strict=True))
            assert all(told.get(text, label) == label for text, label in held.items())
            held |= told
            assert sorted(held, key=held.__getitem__) == sorted(held)
            assert set(held) <= set(labels._placed)
            labels._check()
            if data.draw(st.booleans()):
                held = {text: label for text, label in held.items() if data.draw(st.booleans())}
                labels.only(np.array(list(held.values()), np.int64))
                assert len(labels) == len(held)
                labels._check()
    finally:
        string_labels.SPREAD, string_labels.MOST = before


@given(st.data(), st.sampled_from((62, 63, 64, 130)))
def test_rows_of_many_columns_and_back(data: Any, width: int) -> None:
    kinds = [data.draw(st.sampled_from(KINDS)) for _ in range(width)]
    rows = relation(kinds, data.draw(tables(kinds, 3)))
    words = words_module.Words(kinds, SMALLEST)
    tuples = words.encode(rows.columns, len(rows))
    assert tuples.shape == (len(rows), words.width)
    found = [words.column(place, tuples) for place in range(width)]
    assert exactly(rows_of(rows.with_columns(found))) == exactly(rows_of(rows))


@given(seeds, st.sampled_from((3, 400, 1_000_000)), st.booleans())
def test_copies_of_many_rows_that_come_and_go(seed: int, apart: int, coded: bool) -> None:
    """Also of ever new strings, coded: by the codes of a table."""
    rng = np.random.default_rng(seed)
    counts, known, table = CopyCounts(SMALLEST), dict[tuple[int, int, str], int](), StringTable(SMALLEST)
    for _ in range(rng.integers(1, 6)):
        n = int(rng.choice((0, 3, 100, 1_500)))
        values, owners = rng.integers(-apart, apart, n), rng.integers(0, 3, n).astype(np.int32)
        texts = [f"{value} as a string that is longer than a word" for value in values.tolist()]
        weights = np.where(rng.random(n) < 0.6, 1, -1).astype(np.int8)
        expected = []
        for one, weight in zip(
            zip(owners.tolist(), values.tolist(), texts, strict=True), weights.tolist(), strict=True
        ):
            copies = known.pop(one, 0)
            expected.append(max(copies, copies + weight))
            if copies + weight > 0:
                known[one] = copies + weight
        string = Column.decoded(STRING, pa.array(texts, pa.string()))
        columns = [Column(BIGINT, values), string.coded(table) if coded else string]
        assert counts.number(columns, ("a", "b", "c"), owners, weights).tolist() == expected
        counts._check()
        assert int(counts._used[0]) == len(known)
        if rng.random() < 0.3:
            counts.leave("b")
            known = {one: copies for one, copies in known.items() if one[0] != 1}
            counts._check()
            assert int(counts._used[0]) == len(known)


@given(seeds, st.sampled_from((0, 30, 31, 60, 61, 62)))
def test_copies_of_a_row_are_always_1_to_how_many_there_are(seed: int, more: int) -> None:
    """Also of rows of many columns. more: columns, the last mostly NULL."""
    rng = random.Random(seed)
    types = (DOUBLE, STRING) + (BIGINT,) * more
    counts, held = CopyCounts(SMALLEST), dict[tuple[int, str], int]()
    pools = (
        (0.0, -0.0, float("nan"), None),
        ("a", "b", None),
        *[(7,)] * (more - 1),
        *[(None, None, 7)] * (more > 0),
    )
    for _ in range(4):
        told: list[tuple[int, tuple[Any, ...], int, int]] = []
        for _ in range(rng.randint(0, 12)):
            owner, row = rng.randint(0, 2), tuple(rng.choice(pool) for pool in pools)
            copies = held.get((owner, repr(row)), 0)
            if copies and rng.random() < 0.5:
                told.append((owner, row, -1, copies))
                held[owner, repr(row)] = copies - 1
            else:
                told.append((owner, row, 1, copies + 1))
                held[owner, repr(row)] = copies + 1
        rows = relation(types, [row for _, row, _, _ in told])
        owners = np.array([owner for owner, _, _, _ in told], np.int32)
        weights = np.array([weight for _, _, weight, _ in told], np.int8)
        found = counts.number(rows.columns, ("a", "b", "c"), owners, weights)
        assert found.tolist() == [copy for _, _, _, copy in told]
        counts._check()
    counts.leave("b")
    counts.leave("never")
    counts._check()
