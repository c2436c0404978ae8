"""Conditions with users' functions that rows meet once they have partners: which calls are made, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.engine import Engine
from engine.joins.met_rows import MetRows
from engine.joins.placing import JoiningCost
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.batch import Batch
from engine.model.user_calls import FunctionMeter
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.row_lists import lists_of_bits
from engine.store.matches.segment_bits import ListBlock, SegmentBits
from tests.differential.agreement import plain_rows

JOINED = "SELECT s.v, a.v AS w FROM s [RANGE 1 HOUR] s JOIN a [RANGE 1 HOUR] a ON s.k = a.k WHERE f(s.v)"


class Clock:
    """Each look at it takes a time."""

    def __init__(self, step_ns: int) -> None:
        self.now, self.step_ns = 0, step_ns

    def __call__(self) -> int:
        self.now += self.step_ns
        return self.now


class World:
    """Two streams, and what a function was called with. raises: the value that it raises for."""

    def __init__(self, raises: int | None = None, call_ns: int = 1_000_000) -> None:
        self.called: list[int] = []

        def even(v: int) -> bool:
            self.called.append(v)
            if v == raises:
                raise ValueError("not this one")
            return v % 2 == 0

        function = user_function(
            "f", ["INTEGER"], "BOOLEAN", even, deterministic=True, meter=FunctionMeter(Clock(call_ns))
        )
        self.engine = Engine(functions=FunctionCatalogue([function]))
        for name in "sa":
            self.engine.create(
                f"CREATE STREAM {name} (k INTEGER, v INTEGER, ts TIMESTAMP NOT NULL)"
                f" WITH (topic = '{name}', timestamp = 'ts') RETAIN 1 DAY"
            )
        self.offsets = dict.fromkeys("sa", 0)
        self.clock = 0

    def publish(self, name: str, rows: Sequence[tuple[int, int]]) -> None:
        """(key, value) of rows of one instant, which is NOW of both streams afterwards."""
        self.clock += 1
        self._ingest(name, rows)
        self.clock += 1
        for each in "sa":  # rows without partners and values, for which no function is called
            self._ingest(each, [(-ord(each), None)])

    def _ingest(self, name: str, rows: Sequence[tuple[int, int | None]]) -> None:
        stamps = [self.clock] * len(rows)
        keys, values = zip(*rows, strict=True)
        table = pa.table(
            {
                "k": pa.array(keys, pa.int32()),
                "v": pa.array(values, pa.int32()),
                "ts": pa.array(stamps, pa.timestamp("ms")),
            }
        )
        offsets = np.arange(self.offsets[name], self.offsets[name] + len(rows))
        self.offsets[name] += len(rows)
        schema = self.engine.catalogue[name].schema
        batch = Batch.from_arrow(schema, table, np.zeros(len(rows)), offsets, stamps)
        self.engine.ingest(name, batch, self.clock)
        self.engine._check()

    def answer(self, query_id: str = "q") -> list[tuple[int, ...]]:
        return sorted(plain_rows(self.engine.view().snapshot(query_id).table))

    def place(self, placement: str) -> None:
        for module in self.engine.modules():
            if module.startswith("join/"):
                self.engine.set_attribute(module, "placement", placement)


def world(*queries: str, placement: str = "pull-up", **others: int) -> World:
    """Queries q, q1, ... over articles of keys 0 .. 9, ten of key 9."""
    made = World(**others)
    for number, sql in enumerate(queries or (JOINED,)):
        made.engine.register(f"q{number or ''}", sql)
    made.place(placement)
    made.publish("a", [(key, 100 + key) for key in range(10)] + [(9, 200 + n) for n in range(9)])
    made.called.clear()
    return made


def quotes(first: int, count: int) -> list[tuple[int, int]]:
    """Keys and values that ascend."""
    return [(n, n) for n in range(first, first + count)]


def test_a_function_is_called_for_rows_with_a_partner_once_each() -> None:
    made = world()
    made.publish("s", quotes(5, 40))
    assert sorted(made.called) == [5, 6, 7, 8, 9]
    assert made.answer() == [(6, 106), (8, 108)]
    made.publish("a", [(40, 140), (40, 141), (41, 142), (6, 143)])
    assert sorted(made.called) == [5, 6, 7, 8, 9, 40, 41]
    assert made.answer() == [(6, 106), (6, 143), (8, 108), (40, 140), (40, 141)]


def test_before_the_join_it_is_called_for_all() -> None:
    made = world(placement="push-down")
    made.publish("s", quotes(5, 40))
    assert sorted(made.called) == list(range(5, 45))


def test_costs_decide() -> None:
    """A dear function is tried after the join; there it stays where few have partners, and nowhere else."""
    few, all_ = world(placement="eddy"), world(placement="eddy")
    cheap = world(placement="eddy", call_ns=10)
    for batch in range(8):
        few.publish("s", quotes(8 + 100 * batch, 20))
        all_.publish("s", [(n % 10, n) for n in range(20)])
        cheap.publish("s", quotes(8, 20))
    assert len(few.called) == 20
    assert len(all_.called) == len(cheap.called) == 160
    (told,) = few.engine._parts.sources["s"].queries.postponing.facts(0).values()
    assert told["placement"] == "after the join"
    assert told["partner_share"] < 0.1


@pytest.mark.parametrize(
    "other",
    [
        "SELECT v FROM s WHERE f(s.v)",
        JOINED.replace("JOIN", "LEFT JOIN"),
        f"{JOINED} EMIT CHANGES",
    ],
)
def test_who_needs_all_matches_has_them(other: str) -> None:
    made = world(JOINED, other)
    made.publish("s", quotes(5, 40))
    assert len(made.called) == 40


def test_who_comes_has_the_matches_of_rows_that_wait() -> None:
    made = world()
    made.publish("s", quotes(5, 40))
    made.engine.register("more", "SELECT v FROM s [RANGE 1 HOUR] WHERE f(s.v)")
    assert sorted(made.called) == list(range(5, 45))
    assert [v for (v,) in made.answer("more")] == list(range(6, 45, 2))


def test_a_follower_is_told_of_rows_that_waited() -> None:
    made = world()
    made.publish("s", quotes(5, 40))
    made.engine.follow("q")
    assert sorted(made.called) == list(range(5, 45))
    made.publish("s", quotes(60, 10))
    assert len(made.called) == 50
    assert made.answer() == [(6, 106), (8, 108)]


def test_rows_wait_no_more_where_combinations_are_not_found() -> None:
    made = world()
    made.publish("s", quotes(5, 40))
    (module,) = [one for one in made.engine.modules() if one.startswith("join/")]
    made.engine.set_attribute(module, "composites", "off")
    made.publish("s", quotes(60, 10))
    assert len(made.called) == 50
    assert made.answer() == [(6, 106), (8, 108)]
    made.engine.set_attribute(module, "composites", "on")
    made.publish("s", [*quotes(70, 10), (9, 80)])
    assert made.called[50:] == [80]
    assert made.answer()[2:] == [(80, 109), *((80, 200 + n) for n in range(9))]


def test_after_an_error_it_is_called_for_all() -> None:
    made = world(raises=8)
    made.publish("s", quotes(5, 2))
    assert made.engine.view().query("q").predicate_errors == 0
    made.publish("s", quotes(7, 40))
    assert set(made.called) == set(range(5, 47))
    assert made.engine.view().query("q").predicate_errors == 1
    made.publish("s", [(8, 8), (90, 8)])
    assert made.engine.view().query("q").predicate_errors == 3
    assert made.answer() == [(6, 106)]


def test_history_that_comes_back_and_rows_that_go() -> None:
    made = world("SELECT s.v, a.v AS w FROM s [ROWS 4] s JOIN a [ROWS 60] a ON s.k = a.k WHERE f(s.v)")
    for batch in range(4):
        made.publish("s", quotes(4 + batch, 3))
    assert set(made.called) <= set(range(4, 10))
    assert made.answer() == [(8, 108)]


# --- what it is made of -------------------------------------------------------------------------------


def test_the_cost_of_a_row_is_told_apart_from_that_of_a_step() -> None:
    cost = JoiningCost()
    assert cost.row_ns is None
    for rows in (10, 2_000, 700, 30):
        cost.add(50_000 + 40 * rows, rows)
    assert cost.row_ns == pytest.approx(40)
    alike = JoiningCost()
    for _ in range(5):
        alike.add(1_000, 10)
    assert alike.row_ns == pytest.approx(100)


def test_rows_that_are_met() -> None:
    met = MetRows([1])
    parts = np.array([[0, 7], [1, 7], [2, 3]], np.int32)
    met.note(parts, np.array([100, 50], np.int64))
    met.note(parts[:0], np.array([0, 0], np.int64))
    met.note(np.array([[0, 10**9], [0, 3]], np.int32), np.array([0, 50], np.int64))
    ((place, ordinals),) = met.rows()
    assert (place, ordinals.tolist()) == (1, [53, 57, 10**9 + 50])


@given(st.data(), st.booleans())
def test_bits_of_some_rows_end(data: st.DataObject, listed: bool) -> None:
    n = 40
    words = np.array(data.draw(st.lists(st.integers(0, 7), min_size=n, max_size=n)), np.uint64)
    words <<= np.uint64(61)
    kept = SegmentBits(ChunkPool(16), n)
    kept.put_words(np.array([3]), 0, np.array([words]))
    if listed:
        lists = lists_of_bits(words, 2**64 - 1, n)
        if lists is None:
            return
        kept.blocks[0] = ListBlock([lists_of_bits(np.zeros(n, np.uint64), 0, n) or lists] * 3 + [lists])
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, n - 1)))), np.int64)
    ended = np.array([data.draw(st.integers(0, 7)) for _ in rows], np.uint64) << np.uint64(61)
    kept.end(3, rows, ended)
    kept.end(11, rows, ended)
    expected = words.copy()
    expected[rows] &= ~ended
    assert kept.word(3, 0, n).tolist() == expected.tolist()
    kept._check(n)
