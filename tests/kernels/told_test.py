"""What is told of rows that enter and leave agrees with plain loops."""

import itertools
import random

import numpy as np

from engine.changes.source_interval import halved
from engine.kernels import told
from engine.kernels.told import Events, ItemLists


def lists_of(lists: list[list[int]]) -> ItemLists:
    starts = np.cumsum([0, *map(len, lists)])
    return ItemLists(starts, np.array([item for each in lists for item in each], np.int32))


def nothing(n: int) -> Events:
    return Events(np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int8))


def test_events_are_those_on_the_way_the_leaving_first() -> None:
    rng = np.random.default_rng(1)
    for n in (0, 1, 50):
        begins, ends = rng.integers(-10, 10, n), rng.integers(-10, 10, n)
        out = nothing(2 * n)
        count = told.events(begins, ends, -3, 4, out)
        wanted = [(at, row, -1) for row, at in enumerate(ends.tolist()) if -3 < at <= 4]
        wanted += [(at, row, 1) for row, at in enumerate(begins.tolist()) if -3 < at <= 4]
        assert list(zip(*(each[:count].tolist() for each in out), strict=True)) == wanted


def test_pairs_of_columns_that_are_wanted() -> None:
    rng = random.Random(3)
    for _ in range(50):
        wanted = [rng.choice([0, 0, 1, 3]) for _ in range(rng.randint(0, 5))]
        owners = [rng.sample(range(7), rng.randint(0, 7)) for _ in range(rng.randint(0, 9))]
        of_rows = lists_of(owners)
        kept = ItemLists(np.empty_like(of_rows.starts), np.empty_like(of_rows.items))
        count = told.of_columns(of_rows, np.array(wanted, np.int32), kept)
        expected = lists_of([[each for each in row if each < len(wanted) and wanted[each]] for row in owners])
        assert kept.starts.tolist() == expected.starts.tolist()
        assert kept.items[:count].tolist() == expected.items.tolist()


def test_changes_are_told_to_those_who_read_them() -> None:
    rng = random.Random(2)
    for _ in range(50):
        rows, columns, queries = rng.randint(0, 20), rng.randint(1, 6), rng.randint(1, 8)
        owners = [rng.sample(range(columns + 2), rng.randint(0, columns)) for _ in range(rows)]
        readers = [sorted(rng.sample(range(queries), rng.randint(0, queries))) for _ in range(columns)]
        n = rng.randint(0, 30) if rows else 0
        events = [
            (rng.choice([2**62, -(2**63), rng.randint(-9, 9)]), rng.randrange(rows), rng.choice([-1, 1]))
            for _ in range(n)
        ]
        at, of, weights = (np.array([each[place] for each in events], np.int64) for place in range(3))
        happened = Events(at, of, weights.astype(np.int8))
        expected: list[list[tuple[int, int, int]]] = [[] for _ in range(queries)]
        for instant, (_, row, weight) in zip(halved(at).tolist(), events, strict=True):
            for column in owners[row]:
                for query in readers[column] if column < columns else ():
                    expected[query].append((instant, 7 + row, weight))
        counts = np.zeros(queries, np.int64)
        told.count(of, lists_of(owners), lists_of(readers), counts)
        assert counts.tolist() == list(map(len, expected))
        silent = rng.randrange(queries)
        counts[silent], expected[silent] = 0, []
        out = nothing(int(counts.sum()))
        cursors = np.where(counts > 0, np.cumsum(counts) - counts, -1)
        told.hand_out(happened, 7, lists_of(owners), lists_of(readers), cursors, out)
        found = list(zip(*(each.tolist() for each in out), strict=True))
        assert found == [change for each in expected for change in each]


def test_instants_at_which_rows_enter_and_leave() -> None:
    rng = random.Random(4)
    for _ in range(100):
        changes = sorted((rng.randrange(3), rng.randrange(4)) for _ in range(rng.randint(0, 25)))
        readers, at = (np.array([each[place] for each in changes], np.int64) for place in range(2))
        weights = np.array([rng.choice([-1, 1]) for _ in changes], np.int8)
        signs: dict[tuple[int, int], set[int]] = {}
        for change, weight in zip(changes, weights.tolist(), strict=True):
            signs.setdefault(change, set()).add(weight)
        expected = [place for place, change in enumerate(changes) if len(signs[change]) == 2]
        places, groups = np.empty(len(changes), np.int64), np.empty(len(changes), np.int64)
        count, widest = told.mixed(readers.astype(np.int32), at, weights, places, groups)
        assert places[:count].tolist() == expected
        found = [changes[place] for place in expected]
        assert widest == max(map(found.count, found), default=0)
        for one, other in itertools.product(range(count), repeat=2):
            assert (groups[one] == groups[other]) == (found[one] == found[other])
