"""Lineage of joins: only rows that a query wants are indexed and probe, only combinations that a query wants
as a whole are kept, and every reader's partners are those of nested loops all the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.joins.bounds import Reach
from engine.joins.group import JoinGroup
from engine.joins.key_index import KeyIndexes
from engine.joins.lineage import JoinLineage
from engine.joins.query_marks import BITS, QueryMarks, Wants
from engine.joins.shape import JoinEdge, Shape
from engine.model import expressions as ex
from engine.model.capacities import SMALLEST, USUAL, Capacities
from engine.model.source import SourceName
from engine.model.types import BIGINT, STRING
from engine.windows.clauses import UNBOUNDED, RowWindow, Window
from tests.joins.scripts import NAMES, all_ordinals, shapes, steps
from tests.joins.sources import KEYS, Row, Sources, nested_loops
from tests.strategies import examples
from tests.time_windows import range_window

K, S = (KEYS["k"],), (KEYS["s"],)
TWO = Shape((SourceName("a"), SourceName("b")), (JoinEdge(0, 1, K, K),))
PREDICATES: dict[tuple[str, int | str], ex.Expression] = {
    **{("k", k): ex.Compare("=", KEYS["k"], ex.Literal(k, BIGINT)) for k in range(4)},
    ("k<", 2): ex.Compare("<", KEYS["k"], ex.Literal(2, BIGINT)),
    ("k<", 3): ex.Compare("<", KEYS["k"], ex.Literal(3, BIGINT)),
    **{("s", s): ex.Compare("=", KEYS["s"], ex.Literal(s, STRING)) for s in ("", "x", "y")},
}
BETWEEN: dict[tuple[str, int | str], ex.Expression] = {
    ("v", low): ex.And(
        (
            ex.Compare(">=", KEYS["k"], ex.Literal(low, BIGINT)),
            ex.Compare("<", KEYS["k"], ex.Literal(low + 5, BIGINT)),
        )
    )
    for low in range(1_000)
}
windows = st.one_of(st.integers(0, 8).map(range_window), st.integers(1, 8).map(RowWindow), st.just(UNBOUNDED))


def accepts(asked: tuple[str, int | str] | None, row: Row) -> bool:
    if asked is None:
        return True
    if asked[0] == "k<":
        return row[1] is not None and row[1] < asked[1]
    return row[1 if asked[0] == "k" else 2] == asked[1]


@dataclass
class Query:
    """asked: of each input the predicate; None: all rows. slots: where their matches are."""

    windows: Sequence[Window]
    asked: tuple[tuple[str, int | str] | None, ...]
    slots: Wants


@dataclass
class Joined:
    """A group over sources, whose queries come with predicates of them."""

    shape: Shape
    indexes: KeyIndexes
    sources: Sources
    capacities: Capacities = USUAL
    group: JoinGroup = field(init=False)
    queries: list[Query] = field(default_factory=list)
    ever: list[Query] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = JoinGroup(self.shape, self.indexes, capacities=self.capacities)

    def come(self, windows: Sequence[Window], asked: Sequence[tuple[str, int | str] | None]) -> None:
        slots: list[int | None] = []
        for name, one in zip(self.shape.inputs, asked, strict=True):
            if one is None:
                slots.append(None)
                continue
            stem = self.sources.stems[name]
            added = stem._queries.add([(PREDICATES | BETWEEN)[one]])
            stem.owed.backfill(added.fresh)
            slots.append(added.slots[0])
        query = Query(windows, tuple(asked), tuple(slots))
        self.group.hold(windows, query.slots)
        self.queries.append(query)
        self.ever.append(query)

    def go(self, place: int) -> None:
        query = self.queries.pop(place)
        self.group.release(query.windows, query.slots)
        for name, slot in zip(self.shape.inputs, query.slots, strict=True):
            if slot is not None:
                self.sources.stems[name]._queries.remove([slot])

    def advance(self, now_ms: int) -> None:
        for source, slots in self.group.awaited():
            self.sources.stems[source].owed.catch_up(slots)
        self.group.advance(*self.sources.now(), now_ms)

    def wanted(self, place: int, ordinal: int, queries: Sequence[Query]) -> bool:
        row = self.sources.rows[self.shape.inputs[place]][ordinal]
        return any(accepts(query.asked[place], row) for query in queries)

    def composites(self) -> set[tuple[int, ...]]:
        """Those that are kept, of rows that are in reach."""
        view = self.group.view()
        assert view.kept is not None
        found = [
            tuple(line) for parts, n, origin in view.kept.composites for line in (parts[:n] + origin).tolist()
        ]
        assert len(found) == len(set(found))
        return {line for line in found if all(p >= f for p, f in zip(line, view.kept.floor, strict=True))}

    def check(self, now_ms: int) -> None:
        """Everything that readers may ask, and what is there besides."""
        self.group._check(self.sources.now()[0])
        view = self.group.view()
        for query in self.queries:
            ordinals = self.relation(query, now_ms)
            self.check_read(ordinals, query.windows)
            reaches = [Reach.of(window) for window in query.windows]
            if view.kept is not None and all(map(len, ordinals)):
                assert view.covers(ordinals, reaches), "what a query asks for is kept"
        everything = all_ordinals(self.sources, self.shape, [UNBOUNDED] * len(self.shape.inputs), now_ms)
        self.check_read(everything, [UNBOUNDED] * len(everything))
        if view.kept is not None:
            self.check_kept(everything)

    def relation(self, query: Query, now_ms: int) -> list[np.ndarray]:
        found = all_ordinals(self.sources, self.shape, query.windows, now_ms)
        rows = [self.sources.rows[name] for name in self.shape.inputs]
        return [
            np.array([o for o in each.tolist() if accepts(asked, mine[o])], np.int64)
            for each, asked, mine in zip(found, query.asked, rows, strict=True)
        ]

    def check_read(self, ordinals: Sequence[np.ndarray], windows_: Sequence[Window]) -> None:
        """Partners are those of nested loops, or are not known."""
        view, expected = (
            self.group.view(),
            nested_loops(self.sources, self.shape, [o.tolist() for o in ordinals]),
        )
        reaches = [Reach.of(window) for window in windows_]
        ways = [view.tuples(ordinals, reaches)]
        if all(map(len, ordinals)):
            if view._indexed(ordinals):
                ways.append(view.probed(ordinals))
            if view.covers(ordinals, reaches):
                ways.append(view.picked(ordinals))
        for way in ways:
            if way is not None:
                assert list(zip(*[places.tolist() for places in way], strict=True)) == expected

    def check_kept(self, everything: Sequence[np.ndarray]) -> None:
        """Combinations that a query wants, and none that nobody ever wanted."""
        view = self.group.view()
        floor = view.kept.floor
        inside = [each[each >= first] for each, first in zip(everything, floor, strict=True)]
        all_of_them = {
            tuple(int(each[place]) for each, place in zip(inside, line, strict=True))
            for line in nested_loops(self.sources, self.shape, [each.tolist() for each in inside])
        }
        kept = self.composites()
        rows = [self.sources.rows[name] for name in self.shape.inputs]

        def wanted_by(queries: Sequence[Query], line: tuple[int, ...]) -> bool:
            return any(
                all(accepts(a, mine[o]) for a, mine, o in zip(q.asked, rows, line, strict=True))
                for q in queries
            )

        assert kept <= all_of_them
        assert all(wanted_by(self.ever, line) for line in kept)


shape_of_two_or_three = shapes(inputs_max=3)


@given(st.data(), shape_of_two_or_three, steps(), st.sampled_from([USUAL, SMALLEST]))
@settings(max_examples=examples(50))
def test_queries_come_and_go(data, shape, script, capacities):
    sources, indexes = Sources(NAMES), KeyIndexes(capacities)
    asked = st.tuples(*[st.sampled_from([None, *PREDICATES])] * len(shape.inputs))
    joined = [Joined(shape, indexes, sources, capacities) for _ in range(2)]  # two sets share the indexes

    usual = [data.draw(windows) for _ in shape.inputs]  # a wider one has all found anew

    def come(one: Joined) -> None:
        held = data.draw(st.sampled_from([usual, usual, usual, None]))
        one.come(held or [data.draw(windows) for _ in shape.inputs], data.draw(asked))

    for one in joined:
        come(one)
    now_ms = 0
    for step in script:
        for name, rows in step.items():
            sources.append(name, rows)
            now_ms = max([now_ms, *(row[0] for row in rows)])
        for one in joined:
            action = data.draw(st.sampled_from(["none", "come", "come", "come", "go", "off", "on", "forget"]))
            if action == "come":
                come(one)
            elif action == "go" and len(one.queries) > 1:
                one.go(data.draw(st.integers(0, len(one.queries) - 1)))
            elif action in ("off", "on"):
                one.group.keeps = action == "on"
            elif action == "forget":
                one.group.forget()
            one.advance(now_ms)
        for one in joined:
            one.check(now_ms)
        for name in NAMES:
            stem = sources.stems[name]
            if data.draw(st.booleans()):
                stem.drop_below(data.draw(st.integers(stem.base, stem.end)))
                for one in joined:
                    one.group.drop_below(SourceName(name), stem.base)


def rows_of(numbers: Sequence[int], first_ms: int = 0) -> list[Row]:
    return [(first_ms + place, k, None, None) for place, k in enumerate(numbers)]


def told(group: JoinGroup) -> dict[str, object]:
    return {attribute.name: attribute.value for attribute in group.attributes()}


def test_rows_that_nobody_wants_are_in_no_index_and_do_not_probe():
    joined = Joined(TWO, KeyIndexes(), Sources(NAMES))
    joined.come([UNBOUNDED, UNBOUNDED], [("k", 1), ("k", 1)])
    for first in range(0, 400, 40):
        for name in NAMES[:2]:
            joined.sources.append(name, rows_of([n % 20 for n in range(first, first + 40)], first))
        joined.advance(first + 39)
    facts = told(joined.group)
    assert facts["rows_seen"] == 800
    assert facts["rows_wanted"] == 40
    assert facts["probes"] == 38  # the two rows of one input alone when combinations are found at first
    assert facts["composites_kept"] == 20 * 20
    assert {index.indexed for index in joined.group.indexes()} == {20}
    joined.come([UNBOUNDED, UNBOUNDED], [("k", 2), ("k", 3)])  # nothing meets: keys differ
    joined.advance(399)
    assert {index.indexed for index in joined.group.indexes()} == {40}
    assert told(joined.group)["composites_kept"] == 400
    joined.come([UNBOUNDED, UNBOUNDED], [("k", 2), None])
    joined.advance(399)
    assert [index.indexed for index in joined.group.indexes()] == [40, 400]
    assert told(joined.group)["composites_kept"] == 800
    joined.check(399)


def test_what_only_a_query_that_went_wanted_is_not_looked_for_any_more():
    joined = Joined(TWO, KeyIndexes(), Sources(NAMES))
    joined.come([UNBOUNDED, UNBOUNDED], [None, None])
    joined.come([UNBOUNDED, UNBOUNDED], [("k", 1), ("k", 1)])
    for name in NAMES[:2]:
        joined.sources.append(name, rows_of(range(4)))
    joined.advance(3)
    assert told(joined.group)["composites_kept"] == 4
    joined.go(0)
    for name in NAMES[:2]:
        joined.sources.append(name, rows_of(range(4), 4))
    joined.advance(7)
    # The new row with 1 meets both rows of its key, and the old ones meet it.
    assert told(joined.group)["composites_kept"] == 4 + 3
    assert [index.indexed for index in joined.group.indexes()] == [5, 5]
    joined.check(7)


def test_a_row_that_very_many_want_is_wanted_by_all():
    group = JoinLineage(1)
    sources = Sources(["a"])
    stem = sources.stems["a"]
    less = [ex.Compare("<", KEYS["k"], ex.Literal(k, BIGINT)) for k in range(1, 21)]
    slots = stem._queries.add(less).slots
    for slot in slots:
        group.hold((slot,))
    sources.append("a", rows_of([0, 10, 19, 20, 15]))
    group.advance([stem.rows()], np.array([5]))
    (marks,) = group.view()
    bits = [int(mark).bit_count() for mark in marks.of(0, 5)]
    assert bits == [64, 64, 1, 0, 5]
    assert group.is_narrow(np.array([0]))
    assert not group.is_narrow(np.array([5]))
    assert group.wanted == 4
    group._check([stem.rows()])


def test_more_queries_than_bits_share_them():
    marks = QueryMarks(2)
    for slot in range(3 * BITS):
        assert marks.hold((slot, None))
        assert not marks.hold((slot, None))
    assert {int(mark).bit_count() for mark in marks.inputs[0].by_slot[: 3 * BITS]} == {1}
    assert marks.inputs[1].of_all_rows == 2**BITS - 1
    assert not marks.everything
    marks.hold((None, None))
    assert marks.everything
    assert marks.release((None, None))
    for slot in range(3 * BITS):
        assert not marks.release((slot, None))
        assert marks.release((slot, None))
    assert not marks.inputs[0].by_slot.any()
    assert not marks.inputs[1].of_all_rows


@pytest.mark.parametrize("seed", [1, 2])
def test_many_queries_over_many_rows(seed):
    """Thousands of rows whose keys are ever new strings, hundreds of queries, two groups with one index."""
    rng = np.random.default_rng(seed)
    shape = Shape((SourceName("a"), SourceName("b")), (JoinEdge(0, 1, S, S),))
    sources, indexes = Sources(NAMES), KeyIndexes()
    few, many = Joined(shape, indexes, sources), Joined(shape, indexes, sources)
    now_ms = 0
    for step in range(12):
        for name in NAMES[:2]:
            n = int(rng.choice([10, 700, 3_000]))
            keys = rng.integers(40 * step, 40 * step + 300, n)
            values = rng.integers(0, 1_000, n)
            sources.append(
                name,
                [
                    (now_ms + 1 + i // 4, int(v), f"key {k}", None)
                    for i, (k, v) in enumerate(zip(keys, values, strict=True))
                ],
            )
        now_ms = max(rows[-1][0] for rows in sources.rows.values() if rows)
        for one, wanted in ((few, 2), (many, 40)):
            for _ in range(wanted):
                low, high = rng.integers(0, 1_000, 2).tolist()
                asked = [("v", low), ("v", high)] if rng.random() < 0.9 else [("v", low), None]
                one.come([range_window(800), RowWindow(4_000)], asked)
            for _ in range(wanted // 3):
                one.go(int(rng.integers(len(one.queries))))
            one.advance(now_ms)
        if step % 4 == 3:
            check_large(few, now_ms)
            check_large(many, now_ms)
        for name in NAMES[:2]:
            stem = sources.stems[name]
            stem.drop_below(max(stem.base, stem.end - 5_000))
            for one in (few, many):
                one.group.drop_below(SourceName(name), stem.base)
    total = len(indexes._indexes[SourceName("a"), S])
    assert 0 < next(iter(few.group.indexes())).indexed < total


def check_large(joined: Joined, now_ms: int) -> None:
    joined.group._check(joined.sources.now()[0])
    view = joined.group.view()
    for query in joined.queries[:: max(1, len(joined.queries) // 12)]:
        ordinals = []
        for name, asked, window in zip(joined.shape.inputs, query.asked, query.windows, strict=True):
            stem, rows = joined.sources.stems[name], joined.sources.rows[name]
            low = stem.end - 4_000 if isinstance(window, RowWindow) else 0
            ordinals.append(
                np.array(
                    [
                        o
                        for o in range(max(stem.base, low), stem.end)
                        if (isinstance(window, RowWindow) or rows[o][0] >= now_ms - 800)
                        and (asked is None or asked[1] <= rows[o][1] < asked[1] + 5)
                    ],
                    np.int64,
                )
            )
        keys = [
            np.array([joined.sources.rows[name][o][2] for o in each.tolist()], object)
            for name, each in zip(joined.shape.inputs, ordinals, strict=True)
        ]
        expected = [(i, j) for i, one in enumerate(keys[0]) for j in np.flatnonzero(keys[1] == one).tolist()]
        if not all(map(len, ordinals)):
            continue
        assert view.covers(ordinals, [Reach.of(window) for window in query.windows])
        for way in (view.picked(ordinals), view.probed(ordinals)):
            assert list(zip(*[places.tolist() for places in way], strict=True)) == expected


def test_where_most_is_wanted_rows_are_not_looked_at():
    """Marks of large batches are made again as soon as they pay, and after a change of queries."""
    lineage, sources = JoinLineage(1), Sources(["a"])
    stem = sources.stems["a"]
    few, most = (ex.Compare("<", KEYS["k"], ex.Literal(k, BIGINT)) for k in (10, 95))
    slots = stem._queries.add([few, most]).slots

    def step(first: int) -> tuple[int, bool]:
        sources.append("a", rows_of([n * 37 % 100 for n in range(2_000)], first))
        before = lineage.wanted
        lineage.advance([stem.rows()], np.array([stem.end]))
        return lineage.wanted - before, lineage.is_narrow(np.array([stem.end - 2_000]))

    lineage.hold((slots[1],))
    assert [step(first) for first in range(0, 8_000, 2_000)] == [(2_000, False)] * 4
    lineage.hold((slots[0],))
    lineage.release((slots[1],))
    assert step(8_000) == (200, True)
    assert step(10_000) == (200, True)
    lineage.hold((slots[1],))
    assert step(12_000) == (2_000, False)
    lineage._check([stem.rows()])
