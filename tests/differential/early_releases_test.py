"""Joins with windows that let go of rows by constraints tell what the reference tells, which knows of none,
whatever the cuts, through restarts and with state made anew; and they keep fewer rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dataflow.node import Node
from engine.dataflow.operators.early_joins import EarlyInnerJoinNode, EarlyMatchNode, EarlyWindowJoinNode
from engine.engine import Engine
from engine.model.batch import versions
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, Records, Register, Registration
from engine.reference import Reference
from tests.capacities import small_engine
from tests.differential.agreement import EngineSubject
from tests.differential.promised_streams import Row, World, batch, dense_world
from tests.differential.telling import Followers, Line, assert_same_telling, follow_all, of_reference
from tests.memory_state import MemoryState
from tests.strategies import batch_of

SOME = settings(max_examples=max(15, settings.default.max_examples // 5), deadline=None)
END_MS = 10**6
EARLY = (EarlyInnerJoinNode, EarlyMatchNode, EarlyWindowJoinNode)

WIDE, NARROW = "[RANGE 30 MILLISECONDS]", "[RANGE 12 MILLISECONDS]"
PAIRS = "SELECT o.id AS a, f.id AS b, o.v AS c FROM"
QUERIES = {
    "windows": f"{PAIRS} o {WIDE} JOIN f {WIDE} ON f.k = o.id",
    "two sizes": f"{PAIRS} o {WIDE} JOIN f {NARROW} ON f.k = o.id WHERE o.v > 0 AND f.v < 2",
    "rows that come": f"ISTREAM({PAIRS} o {NARROW} JOIN f {WIDE} ON f.k = o.id WHERE o.v > 0 AND f.v < 2)",
    "rows that come, of all": f"ISTREAM({PAIRS} o {WIDE} JOIN f {WIDE} ON f.k = o.id)",
    "rows that come, told by one": f"ISTREAM(SELECT f.id AS b FROM f {WIDE} JOIN o {WIDE} ON f.k = o.id)",
    "rows that come, not told apart": (
        f"ISTREAM(SELECT o.id AS a FROM f {NARROW} JOIN o {WIDE} ON f.k = o.id)"
    ),
    "rows that go": f"DSTREAM({PAIRS} o {WIDE} JOIN f {NARROW} ON f.k = o.id WHERE f.v < 1)",
    "whole answers": f"RSTREAM({PAIRS} o {WIDE} JOIN f {NARROW} ON f.k = o.id WHERE f.v < 1)",
    "band": f"{PAIRS} o {WIDE} JOIN f {WIDE} ON f.k = o.id AND f.v BETWEEN o.v AND o.v + 1",
    "in steps": f"{PAIRS} o [RANGE 16 MILLISECONDS SLIDE 8 MILLISECONDS] JOIN f {WIDE} ON f.k = o.id",
    "lagging": (
        f"{PAIRS} o {WIDE} JOIN (SELECT * FROM f BEGIN NOW - 20 MILLISECONDS END NOW - 5 MILLISECONDS) AS f "
        "ON f.k = o.id"
    ),
    "last rows": f"{PAIRS} o [ROWS 5] JOIN f [ROWS 4] ON f.k = o.id WHERE f.v < 2",
    "left": f"{PAIRS} o {WIDE} LEFT JOIN f {WIDE} ON f.k = o.id AND f.v < 2",
    "left of fulfilments": f"{PAIRS} f {WIDE} LEFT JOIN o {NARROW} ON f.k = o.id AND o.v > 0",
    "right": f"{PAIRS} f {WIDE} RIGHT JOIN o {WIDE} ON f.k = o.id AND f.v < 1",
    "full": f"{PAIRS} o {WIDE} FULL JOIN f {NARROW} ON f.k = o.id",
    "in": f"SELECT id FROM o {WIDE} WHERE id IN (SELECT k FROM f {NARROW} WHERE v < 2)",
    "not in": (
        f"SELECT id FROM o {WIDE} WHERE id NOT IN (SELECT k FROM f {NARROW} WHERE v < 2 AND k IS NOT NULL)"
    ),
    "three": (
        f"SELECT o.id AS a, f.id AS b, p.id AS c FROM p {WIDE} JOIN f {WIDE} ON p.k = f.id "
        f"JOIN o {NARROW} ON f.k = o.id WHERE o.v > 0"
    ),
    "three from the root": (
        f"SELECT o.id AS a, f.id AS b, p.id AS c FROM o {WIDE} JOIN f {NARROW} ON f.k = o.id "
        f"JOIN p {WIDE} ON p.k = f.id WHERE f.v < 2"
    ),
    "groups": (
        f"SELECT o.v AS v, COUNT(*) AS n FROM o {WIDE} JOIN f {WIDE} ON f.k = o.id WHERE f.v < 2 GROUP BY o.v"
    ),
    "table": f"SELECT f.id AS a, t.w AS w FROM f {WIDE} JOIN t ON f.k = t.k WHERE f.v < 2",
    "table, left": f"SELECT f.id AS a, t.w AS w FROM f {NARROW} LEFT JOIN t ON f.k = t.k",
    "ordered": f"SELECT l.id AS a, m.id AS b FROM l {WIDE} JOIN m {NARROW} ON l.k = m.k WHERE m.v < 2",
    "ordered, all rows": "SELECT l.id AS a, m.id AS b FROM l JOIN m [NOW] ON l.k = m.k",
}
STAY = {"full", "not in"}
"""Whose rows all stay: each is given without a partner."""


class Both:
    """An engine over streams with constraints, and the reference."""

    def __init__(self, world: World, queries: Sequence[str]) -> None:
        self.engine = Followers(EngineSubject(small_engine()))
        self.reference = Reference()
        self.told: dict[str, list[Line]] = {}
        self._offsets = dict.fromkeys(world.rows, 0)
        known = world.engine()
        known.create("CREATE TABLE t (k BIGINT PRIMARY KEY, w BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')")
        for name in ("o", "f", "p", "l", "m", "t"):
            stream = known.catalogue[SourceName(name)]
            assert isinstance(stream, Stream)
            self._apply(CreateSource(stream, ""))
        for query in queries:
            self._apply(Register((Registration(query, QUERIES[query] + " EMIT CHANGES"),)))

    def _apply(self, body: CreateSource | Register | Records) -> None:
        step = self.engine.subject.next_step(END_MS, body)
        result, mine = self.engine.apply(step)
        assert not result.failed
        assert not result.violations
        for query_id, parts in mine.items():
            self.told.setdefault(query_id, []).extend(line for part in parts for line in part.lines)
        self.reference.apply(step)
        theirs = of_reference(self.reference)
        follow_all(self.reference)
        assert_same_telling(mine, theirs)
        self.engine.subject.engine._check()

    def bring(self, name: str, rows: Sequence[Row]) -> None:
        if rows:
            first = self._offsets[name]
            self._offsets[name] += len(rows)
            brought = batch(self.engine.subject.engine, name, rows, first)
            self._apply(Records(SourceName(name), brought, {0: first + len(rows)}))

    def change(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """Rows of the table. rows: k, w, ts."""
        stream = self.engine.subject.engine.catalogue[SourceName("t")]
        assert isinstance(stream, Stream)
        first = self._offsets.setdefault("t", 0)
        numbered = [(0, first + place, row[2], row) for place, row in enumerate(rows)]
        self._offsets["t"] += len(rows)
        brought = versions(stream, batch_of(stream.schema, numbered), np.zeros(len(rows), np.bool_))
        self._apply(Records(SourceName("t"), brought, {0: self._offsets["t"]}))

    def anew(self, how: str) -> None:
        if how == "restart":
            self.engine = self.engine.restarted(MemoryState())
        elif how == "forget":
            self.engine.subject.engine._following.graphs.forget()


def exact(*values: int) -> tuple[tuple[str, int], ...]:
    """A row, as lines have it."""
    return tuple(("int", value) for value in values)


def engine_rows(both: Both) -> int:
    """Rows that joins let go of."""
    nodes = nodes_of(both.engine.subject.engine)
    return sum(node._leave.released for node in nodes if isinstance(node, EARLY))


def nodes_of(engine: Engine) -> list[Node]:
    return [
        node for graph in engine._following.graphs.by_set.values() for node in graph.nodes.by_key.values()
    ]


@SOME
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=4, unique=True),
    st.lists(st.tuples(st.sampled_from("oofflmpp"), st.integers(1, 6)), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from(["restart", "forget", "nothing"]),
)
def test_changes_are_those_of_the_reference(
    seed: int, queries: list[str], cuts: list[tuple[str, int]], when: int, what: str
) -> None:
    world = dense_world(seed, 120)
    both, done = Both(world, queries), dict.fromkeys(world.rows, 0)

    def bring(name: str, count: int) -> None:
        both.bring(name, world.rows[name][done[name] : done[name] + count])
        done[name] = min(done[name] + count, len(world.rows[name]))

    for step in range(2 * len(cuts)):
        bring(*cuts[step % len(cuts)])
        if step % 3 == 0:
            last_ms = max((row[3] for name in "of" for row in world.rows[name][: done[name]]), default=0)
            both.change([(key % 11, step, last_ms) for key in range(step, step + 4)])
        if step == when % len(cuts):
            both.anew(what)
    for name in world.rows:
        bring(name, len(world.rows[name]))
    for name in world.rows:
        both.bring(name, [(-1, END_MS, 0, END_MS)])
    both.change([(0, 0, END_MS)])


def test_rows_that_wait_in_a_join_below_may_still_come() -> None:
    both = Both(World({name: [] for name in "ofplm"}, 0, 0), ["three"])
    both.bring("o", [*((one, 0, 1, 0) for one in range(9)), (9, 0, 1, 6)])
    both.bring("f", [(0, 0, 0, 1), (1, 1, 0, 1), (2, 2, 0, 2), (3, 3, 0, 6)])  # 0 and 1 are over
    both.bring("p", [(0, 3, 0, 6)])
    both.bring("o", [(10, 0, 1, 9)])
    both.bring("f", [(4, 5, 0, 9)])
    both.bring("p", [(1, 0, 0, 7), (2, 1, 0, 9)])
    assert [line.row for line in both.told["three"]] == [exact(3, 3, 0), exact(0, 0, 1)]


def test_rows_of_a_window_that_lags_come_later_than_the_stream_has_them() -> None:
    both = Both(World({name: [] for name in "ofplm"}, 0, 0), ["lagging"])
    both.bring("o", [*((one, 0, 1, 0) for one in range(6)), (6, 0, 1, 4)])
    both.bring("f", [(0, 0, 0, 1), (1, 1, 0, 1), (2, 2, 0, 2), (3, 3, 0, 4)])  # 0 and 1 are over
    both.bring("o", [(7, 0, 1, 12)])
    both.bring("f", [(4, 6, 0, 12)])
    assert [line.row for line in both.told["lagging"]] == [
        exact(0, 0, 1),
        exact(1, 1, 1),
        exact(2, 2, 1),
        exact(3, 3, 1),
    ]


def test_a_pair_that_ends_where_an_equal_one_begins_is_no_news() -> None:
    query = "rows that come, not told apart"
    both = Both(World({name: [] for name in "ofplm"}, 0, 3), [query])
    both.bring("o", [*((one, 0, 1, 0) for one in range(6)), (6, 0, 1, 20)])
    both.bring("f", [(0, 0, 0, 1), (1, 5, 0, 10)])
    both.bring("f", [(2, 0, 0, 14), (3, 0, 0, 15), (4, 0, 0, 16)])  # the first leaves at 14
    told = [(line.at_ms, line.row) for line in both.told[query]]
    assert told == [(1, exact(0)), (10, exact(5)), (15, exact(0))]


@pytest.mark.parametrize("query", sorted(QUERIES))
def test_which_joins_let_go_of_rows(query: str) -> None:
    engine = World({}, 0, 0).engine()
    engine.create("CREATE TABLE t (k BIGINT PRIMARY KEY, w BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts')")
    engine.register("q", QUERIES[query] + " EMIT CHANGES")
    early = [node for node in nodes_of(engine) if isinstance(node, EARLY)]
    assert bool(early) == (query not in STAY), [type(node).__name__ for node in nodes_of(engine)]
