"""The kernels of selective predicates against dictionaries and loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import candidates
from engine.kernels.candidates import EMPTY, MORE

seeds = st.integers(0, 2**32 - 1)
keys_in = st.lists(st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1)), max_size=30)


@given(keys_in, keys_in)
@settings(max_examples=60)
def test_hashing_names_and_finds(named, asked):
    table_keys, table_runs = np.zeros(64, np.int64), np.full(64, EMPTY, np.int32)
    out = np.empty(len(named), np.int32)
    count = candidates.name_runs(np.array(named, np.int64), table_keys, table_runs, 0, out)
    known: dict[int, int] = {}
    for key in named:
        known.setdefault(key, len(known))
    assert count == len(known)
    assert out.tolist() == [known[key] for key in named]
    found = np.empty(len(asked), np.int32)
    candidates.find_runs(np.array(asked, np.int64), table_keys, table_runs, found)
    assert found.tolist() == [known.get(key, EMPTY) for key in asked]


class Pool:
    """Runs of entries that are numbered by their low bound."""

    def __init__(self, runs: int) -> None:
        self.start, self.count, self.room = (np.zeros(runs, np.int32) for _ in range(3))
        self.columns = self.make(0)
        self.used = 0

    @staticmethod
    def make(n: int) -> tuple[np.ndarray, ...]:
        return tuple(np.zeros(n, t) for t in (np.int32, np.int16, np.int64, np.int64, np.uint8))

    def add(self, runs: list[int], slots: list[int], numbers: list[int]) -> None:
        new = self.make(len(runs))
        new[0][:], new[2][:] = slots, numbers
        coming = np.zeros(len(self.start), np.int32)
        which = np.array(runs, np.int32)
        wanted = candidates.room_wanted(which, self.count, self.room, coming)
        wider = self.make(self.used + wanted)
        for old, wide in zip(self.columns, wider, strict=True):
            wide[: self.used] = old[: self.used]
        self.columns = wider
        self.used = candidates.add_entries(
            which, *new, coming, self.start, self.count, self.room, *self.columns, self.used
        )
        assert self.used <= len(self.columns[0])
        assert not coming.any()

    def held(self, run: int) -> list[tuple[int, int]]:
        places = range(self.start[run], self.start[run] + self.count[run])
        return sorted((int(self.columns[0][p]), int(self.columns[2][p])) for p in places)


@given(st.data())
@settings(max_examples=50)
def test_runs_hold_what_was_added_and_not_removed(data):
    pool, model = Pool(5), {run: [] for run in range(5)}
    for number in range(data.draw(st.integers(1, 8))):
        if data.draw(st.booleans()):
            runs = data.draw(st.lists(st.integers(0, 4), max_size=6))
            slots = [data.draw(st.integers(0, 3)) for _ in runs]
            pool.add(runs, slots, [number] * len(runs))
            for run, slot in zip(runs, slots, strict=True):
                model[run].append((slot, number))
        else:
            slot = data.draw(st.integers(0, 3))
            runs = sorted(data.draw(st.sets(st.integers(0, 4))))
            removed = candidates.remove_entries(
                np.array(runs, np.int32), slot, pool.start, pool.count, *pool.columns
            )
            assert removed == sum(s == slot for run in runs for s, _ in model[run])
            for run in runs:
                model[run] = [entry for entry in model[run] if entry[0] != slot]
        for run, entries in model.items():
            assert pool.held(run) == sorted(entries)


Term = dict[int, list[tuple[int, int]]]


@given(seeds)
@settings(max_examples=60)
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
    room = len(rows)
    first, last = np.empty(room, np.int64), np.empty(room, np.int64)
    entries = Pool.make(room)
    made = candidates.entries_of(np.array(slots), start, count, *store, 0, points, first, last, *entries)
    assert made == sum(len(term[0][1]) for terms in predicates for term in terms)
    assert set((entries[4][:made] & (MORE - 1)).tolist()) <= {0, 1}

    n = 40
    keys = rng.integers(0, 12, (3, n))
    null = rng.random((3, n)) < 0.2
    null[0] = False
    pool = Pool(12)
    by_key = [
        (key, i) for i in range(made) for key in range(int(first[i]), int(last[i]) + 1)
    ]  # a run for each key
    chosen = [i for _, i in by_key]
    coming = np.zeros(12, np.int32)
    which = np.array([key for key, _ in by_key], np.int32)
    wanted = candidates.room_wanted(which, pool.count, pool.room, coming)
    pool.columns = Pool.make(wanted)
    columns = tuple(column[chosen] for column in entries)
    candidates.add_entries(which, *columns, coming, pool.start, pool.count, pool.room, *pool.columns, 0)
    runs = keys[0].astype(np.int32)
    most = candidates.count_candidates(runs, pool.count)
    out_row, out_slot = np.empty(most, np.uint16), np.empty(most, np.int32)
    found = candidates.accepted(
        runs, pool.start, pool.count, *pool.columns, keys, null, null.any(axis=1), start, count, *store,
        out_row, out_slot,
    )  # fmt: skip
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
@settings(max_examples=30)
def test_an_entry_for_each_range(bounds):
    first = np.array([low for low, _ in bounds], np.int64)
    after = np.array([low + width for low, width in bounds], np.int64)
    expected = [(run, i) for i, (low, width) in enumerate(bounds) for run in range(low, low + width)]
    runs, entry = np.empty(len(expected), np.int32), np.empty(len(expected), np.int64)
    candidates.spread_over_ranges(first, after, runs, entry)
    assert list(zip(runs.tolist(), entry.tolist(), strict=True)) == expected


@given(st.lists(st.tuples(st.integers(0, 65_535), st.integers(0, 9)), max_size=40))
@settings(max_examples=50)
def test_lists_by_slot(pairs):
    rows = np.array([row for row, _ in pairs], np.uint16)
    slots = np.array([slot for _, slot in pairs], np.int32)
    starts, out = np.zeros(11, np.int64), np.empty(len(pairs), np.uint16)
    candidates.lists_by_slot(rows, slots, starts, out)
    for slot in range(10):
        assert out[starts[slot] : starts[slot + 1]].tolist() == [r for r, s in pairs if s == slot]
