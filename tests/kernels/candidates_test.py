"""The kernels of selective predicates against dictionaries and loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import candidates
from engine.kernels.candidates import EMPTY, ENTRY, MORE, NAMED, NO_TEST, RUN, Regions, RowKeys
from tests.strategies import examples

seeds = st.integers(0, 2**32 - 1)
keys_in = st.lists(st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)), max_size=30)


@given(keys_in, keys_in)
@settings(max_examples=examples(60))
def test_hashing_names_and_finds(named, asked):
    table = np.zeros(64, NAMED)
    table["run"] = EMPTY
    out = np.empty(len(named), np.int32)
    count = candidates.name_runs(np.array(named, np.int64), table, 0, out)
    known: dict[int, int] = {}
    for key in named:
        known.setdefault(key, len(known))
    assert count == len(known)
    assert out.tolist() == [known[key] for key in named]
    found = np.empty(len(asked), np.int32)
    candidates.find_runs(np.array(asked, np.int64), table, found)
    assert found.tolist() == [known.get(key, EMPTY) for key in asked]


@pytest.mark.parametrize("step", [1, 8, 1_000, 1 << 20, 1 << 32, 1 << 40, 3 << 40])
def test_keys_at_even_distances_lie_apart(step):
    """As numbers in a row do, multiples of a price, labels of strings."""
    n = 4_000
    table = np.zeros(1 << 13, NAMED)
    table["run"] = EMPTY
    candidates.name_runs(np.arange(-n // 2, n // 2) * step, table, 0, np.empty(n, np.int32))
    assert np.diff(np.flatnonzero(table["run"] == EMPTY)).max() < 10


class Pool:
    """Runs of entries, as their owner keeps them."""

    def __init__(self, runs: int) -> None:
        self.runs = np.zeros(runs, RUN)
        self.entries = np.zeros(0, ENTRY)
        self.used = 0

    def add(self, which: np.ndarray, new: np.ndarray) -> None:
        order = np.lexsort((new["low"], which))
        which, new = which[order], new[order]
        wider = np.zeros(self.used + candidates.room_wanted(which, self.runs), ENTRY)
        wider[: self.used] = self.entries[: self.used]
        self.entries = wider
        self.used = candidates.add_entries(which, new, self.runs, self.entries, self.used)
        assert self.used <= len(self.entries)

    def held(self, run: int) -> list[tuple[int, ...]]:
        start, count = self.runs[run]["start"], self.runs[run]["count"]
        return [tuple(entry.tolist()) for entry in self.entries[start : start + count]]

    def check(self, run: int) -> None:
        held = self.held(run)
        assert held == sorted(held, key=lambda entry: entry[0])
        attributes = {entry[3] for entry in held}
        if len(attributes) == 1 and (bounded := attributes.pop()) >= 0:
            bound = self.runs[run]
            assert bound["attribute"] in (bounded, NO_TEST)
            if bound["attribute"] >= 0:
                assert bound["low"] == held[0][0]
                assert bound["last"] == max(entry[1] for entry in held)
        elif held:
            assert self.runs[run]["attribute"] == NO_TEST


new_entries = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(-1, 1), st.integers(0, 9), st.integers(0, 9)),
    max_size=8,
)


@given(st.data())
@settings(max_examples=examples(100))
def test_runs_hold_in_order_what_was_added_and_not_removed(data):
    pool: Pool = Pool(5)
    model: dict[int, list[tuple[int, ...]]] = {run: [] for run in range(5)}
    for _ in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            drawn = data.draw(new_entries)
            new = np.zeros(len(drawn), ENTRY)
            for place, (run, slot, attribute, low, last) in enumerate(drawn):
                new[place] = (low, last, slot, attribute, 0)
                model[run].append((low, last, slot, attribute, 0))
            pool.add(np.array([each[0] for each in drawn], np.int32), new)
        else:
            slot = data.draw(st.integers(0, 3))
            runs = sorted(data.draw(st.sets(st.integers(0, 4))))
            removed = candidates.remove_entries(np.array(runs, np.int32), slot, pool.runs, pool.entries)
            assert removed == sum(entry[2] == slot for run in runs for entry in model[run])
            for run in runs:
                model[run] = [entry for entry in model[run] if entry[2] != slot]
        for run, entries in model.items():
            assert sorted(pool.held(run)) == sorted(entries)
            pool.check(run)


Term = dict[int, list[tuple[int, int]]]


@given(seeds)
@settings(max_examples=examples(60))
def test_entries_lead_to_the_rows_whose_terms_hold(seed):
    """A store of a few slots, each with terms over three attributes, reached through attribute 0."""
    rng = np.random.default_rng(seed)
    slots = list(range(int(rng.integers(1, 5))))
    rows: list[tuple[int, int, int, int, int]] = []
    start, count = np.zeros(len(slots), np.int32), np.zeros(len(slots), np.int32)
    predicates: list[list[tuple[dict[int, tuple[bool, list[tuple[int, int]]]]]]] = []
    points = bool(rng.integers(2))
    for slot in slots:
        start[slot] = len(rows)
        terms = []
        for number in range(int(rng.integers(1, 3))):
            term = {}
            for attribute in sorted({0, *rng.integers(0, 3, 2).tolist()}):
                ends = np.sort(rng.choice(12, 4, replace=False)).tolist()
                if attribute == 0 and points:
                    pieces = [(ends[0], ends[0]), (ends[2], ends[2])][: int(rng.integers(1, 3))]
                else:
                    pieces = [(ends[0], ends[1]), (ends[2], ends[3])][: int(rng.integers(1, 3))]
                null = bool(attribute) and bool(rng.integers(2))
                term[attribute] = (null, pieces)
                for i, (low, last) in enumerate(pieces):
                    flags = (1 if null and i == 0 else 0) | (2 if attribute == 0 else 0)
                    rows.append((attribute, number, flags, low, last))
            terms.append(term)
        predicates.append(terms)
        count[slot] = len(rows) - start[slot]
    dtypes = (np.int16, np.uint8, np.uint8, np.int64, np.int64)
    store = tuple(np.array(column, t) for column, t in zip(zip(*rows, strict=True), dtypes, strict=True))
    regions = Regions(start, count, *store)
    room = len(rows)
    first, last, entries = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, ENTRY)
    made = candidates.entries_of(np.array(slots), regions, 0, points, first, last, entries)
    assert made == sum(len(term[0][1]) for terms in predicates for term in terms)
    assert set((entries["flags"][:made] & (MORE - 1)).tolist()) <= {0, 1}

    n = 40
    keys = rng.integers(0, 12, (3, n))
    null = rng.random((3, n)) < 0.2
    null[0] = False
    pool = Pool(12)
    by_key = [
        (key, i) for i in range(made) for key in range(int(first[i]), int(last[i]) + 1)
    ]  # a run for each key
    pool.add(np.array([key for key, _ in by_key], np.int32), entries[[i for _, i in by_key]])
    runs = keys[0].astype(np.int32)
    tested = RowKeys(keys, null, null.any(axis=1))
    most = candidates.within_bounds(runs, pool.runs, pool.entries, tested)
    out_row, out_slot = np.empty(most, np.uint16), np.empty(most, np.int32)
    found = candidates.accepted(runs, pool.runs, pool.entries, tested, regions, out_row, out_slot)
    got = set(zip(out_row[:found].tolist(), out_slot[:found].tolist(), strict=True))
    assert out_row[:found].tolist() == sorted(out_row[:found].tolist())

    def holds(term, row):
        return all(
            null_too if null[a, row] else any(low <= keys[a, row] <= high for low, high in pieces)
            for a, (null_too, pieces) in term.items()
        )

    expected = {
        (row, slot) for row in range(n) for slot in slots if any(holds(t, row) for t in predicates[slot])
    }
    assert got == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=6))
@settings(max_examples=examples(30))
def test_an_entry_for_each_range(bounds):
    first = np.array([low for low, _ in bounds], np.int64)
    after = np.array([low + width for low, width in bounds], np.int64)
    expected = [(run, i) for i, (low, width) in enumerate(bounds) for run in range(low, low + width)]
    runs, entry = np.empty(len(expected), np.int32), np.empty(len(expected), np.int64)
    candidates.spread_over_ranges(first, after, runs, entry)
    assert list(zip(runs.tolist(), entry.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 65_535), st.integers(0, 9)), max_size=40))
@settings(max_examples=examples(50))
def test_lists_by_slot(pairs):
    rows = np.array([row for row, _ in pairs], np.uint16)
    slots = np.array([slot for _, slot in pairs], np.int32)
    starts, out = np.zeros(11, np.int64), np.empty(len(pairs), np.uint16)
    candidates.lists_by_slot(rows, slots, starts, out)
    for slot in range(10):
        assert out[starts[slot] : starts[slot + 1]].tolist() == [r for r, s in pairs if s == slot]
