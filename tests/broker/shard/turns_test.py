"""Which stream's batch is the next, and that it changes no answer: all policies, streams joined and alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.shard.turns import Turns, module_of
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.maintenance import QueryOptions
from engine.model.step import Position, Register, Registration, Step, StepResult
from engine.overload.policies.choices import SCHEDULING_POLICIES
from tests.memory_state import MemoryState
from tureen.errors import OptionRefused, SettingsError

STREAM = "CREATE STREAM {} (k BIGINT, v BIGINT, ts TIMESTAMP) WITH (timestamp = 'ts') RETAIN 1 DAYS"
QUERIES = {
    "rows": "SELECT k, v FROM a [RANGE 5 MILLISECONDS] WHERE v > 3 EMIT CHANGES",
    "sums": "SELECT k, SUM(v) AS s FROM b [RANGE 5 MILLISECONDS] GROUP BY k EMIT CHANGES",
    "pairs": "SELECT x.k, x.v, y.v AS w FROM a [RANGE 5 MILLISECONDS] AS x "
    "JOIN b [RANGE 5 MILLISECONDS] AS y ON x.k = y.k EMIT CHANGES",
}


def test_fifo_goes_by_the_order_in_which_streams_had_something() -> None:
    engine, turns = Engine(), Turns()
    turns.begin(engine, ["b", "a"])
    turns.offer(engine, "b", 1, 8, 0)
    turns.offer(engine, "a", 1, 8, 0)
    assert turns.next(engine.scheduler, 0) == "b"
    turns.ran(engine.scheduler, "b", 8, 10)
    turns.offer(engine, "b", 1, 8, 1)
    assert turns.next(engine.scheduler, 1) == "a"


def test_what_was_not_taken_keeps_its_place_in_the_next_transaction() -> None:
    engine, turns = Engine(), Turns()
    turns.begin(engine, ["a"])
    turns.offer(engine, "a", 1, 8, 5)
    turns.begin(engine, ["a", "b"])
    turns.offer(engine, "b", 1, 8, 9)
    turns.offer(engine, "a", 2, 16, 9)
    module = engine.scheduler[module_of("a")]
    assert (module.rows, module.size, module.queue[0].since) == (2, 16, 5)
    assert turns.next(engine.scheduler, 9) == "a"
    ((_, queue), _) = turns.queues(engine.scheduler)
    assert queue.rows == 0


def test_chain_takes_the_stream_that_gives_most_memory_back_in_a_time() -> None:
    engine, turns = Engine(), Turns()
    engine.set_attribute("scheduler", "policy", "chain")
    for _ in range(32):
        for name, spent_ns in (("slow", 1_000), ("quick", 10)):
            turns.begin(engine, [name])
            turns.offer(engine, name, 1, 100, 0)
            assert turns.next(engine.scheduler, 0) == name
            turns.ran(engine.scheduler, name, 100, spent_ns)
    turns.begin(engine, ["slow", "quick"])
    turns.offer(engine, "slow", 1, 100, 0)
    turns.offer(engine, "quick", 1, 100, 0)
    assert turns.next(engine.scheduler, 0) == "quick"


def test_the_policy_is_an_attribute_and_another_is_refused() -> None:
    engine = Engine()
    assert engine.stats()["scheduler"]["policy"] == "fifo"
    for policy in SCHEDULING_POLICIES:
        engine.set_attribute("scheduler", "policy", policy)
        assert engine.stats()["scheduler"]["policy"] == policy
    with pytest.raises(SettingsError):
        engine.set_attribute("scheduler", "policy", "lottery")


def _engine(policy: str) -> Engine:
    engine = Engine()
    engine.set_attribute("scheduler", "policy", policy)
    for name in "ab":
        engine.create(STREAM.format(name))
    registrations = [
        Registration(
            query_id,
            sql,
            2.0 if query_id == "rows" else 1.0,
            {"latency_ms_max": "3"} if query_id == "sums" else {},
        )
        for query_id, sql in QUERIES.items()
    ]
    last = engine.position
    engine.enqueue(Step(Position(last.epoch, last.sequence + 1), 0, Register(tuple(registrations))))
    (result,) = engine.run()
    assert not result.failed
    return engine


def test_demand_is_the_sum_of_weights_and_the_least_latency() -> None:
    engine = _engine("fifo")
    assert engine.needs.demand("a").weight == 3
    assert engine.needs.demand("a").latency_ms_max is None
    assert engine.needs.demand("b").weight == 2
    assert engine.needs.demand("b").latency_ms_max == 3
    engine.unregister("sums")
    assert engine.needs.demand("b").latency_ms_max is None


Waiting = dict[str, list[list[tuple[int, int, int]]]]
"""By stream, batches of (k, v, ts)."""


def _run(
    policy: str, waiting: Waiting, spent_ns: list[int], restarts: Collection[int] = ()
) -> tuple[list[Any], Counter[Any], list[str]]:
    """(answers, changes by query, instant and row, the order of the streams). restarts: after so many steps
    the engine is another one, made from what was saved.
    """
    engine, turns = _engine(policy), Turns()
    left = {name: list(batches) for name, batches in waiting.items()}
    offsets: Counter[str] = Counter()
    told: Counter[Any] = Counter()
    order: list[str] = []
    now_ns = 0
    while any(left.values()):
        turns.begin(engine, [name for name, batches in left.items() if batches])
        for name, batches in left.items():
            if batches:
                turns.offer(engine, name, len(batches[0]), 24 * len(batches[0]), now_ns)
        name = turns.next(engine.scheduler, now_ns)
        assert name is not None
        order.append(name)
        rows = left[name].pop(0)
        result = engine.ingest(name, _batch(engine, name, offsets[name], rows), 10_000)
        offsets[name] += len(rows)
        spent = spent_ns[len(order) % len(spent_ns)]
        turns.ran(engine.scheduler, name, 24 * len(rows), spent)
        now_ns += spent
        _tell(told, result)
        if len(order) in restarts:
            store = MemoryState()
            engine.save(store)
            engine, turns = Engine.restore(store), Turns()
            engine.set_attribute("scheduler", "policy", policy)
    view = engine.view()
    answers = [sorted(map(str, view.snapshot(query_id).table.to_pylist())) for query_id in QUERIES]
    engine._check()
    return answers, Counter({key: weight for key, weight in told.items() if weight}), order


def _batch(engine: Engine, name: str, offset: int, rows: list[tuple[int, int, int]]) -> Batch:
    stamps = [ts for _, _, ts in rows]
    columns = {"k": [k for k, _, _ in rows], "v": [v for _, v, _ in rows]}
    table = pa.table({**columns, "ts": pa.array(stamps, pa.timestamp("ms"))})
    offsets = np.arange(offset, offset + len(rows))
    return Batch.from_arrow(engine.catalogue[name].schema, table, np.zeros(len(rows)), offsets, stamps)


def _tell(told: Counter[Any], result: StepResult) -> None:
    for changes in result.changes:
        for place, query_id in enumerate(changes.query_ids):
            for at in range(changes.starts[place], changes.starts[place + 1]):
                row = str(changes.table.slice(at, 1).to_pylist())
                told[query_id, int(changes.at_ms[at]), row] += int(changes.weights[at])


@st.composite
def histories(draw: st.DrawFn) -> Waiting:
    waiting: Waiting = {}
    for name in "ab":
        stamps = sorted(draw(st.lists(st.integers(1, 40), min_size=1, max_size=20)))
        rows = [(draw(st.integers(0, 2)), draw(st.integers(0, 6)), ts) for ts in stamps]
        waiting[name] = [rows, [(9, 9, 100)]]
    return waiting


def _cut(rng: random.Random, waiting: Waiting) -> Waiting:
    """Cut the rows that wait into other batches."""
    found: Waiting = {}
    for name, batches in waiting.items():
        rows = [row for batch in batches for row in batch]
        ends = sorted({*rng.sample(range(1, len(rows)), rng.randint(0, len(rows) - 1)), len(rows)})
        found[name] = [rows[first:end] for first, end in pairwise([0, *ends])]
    return found


@given(histories(), st.lists(st.integers(0, 5_000_000), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_answers_and_changes_are_the_same_with_every_policy_cut_and_restart(
    waiting: Waiting, spent_ns: list[int], seed: int
) -> None:
    rng = random.Random(seed)
    answers, told, _ = _run("fifo", waiting, spent_ns)
    for policy in SCHEDULING_POLICIES:
        cut = _cut(rng, waiting)
        steps = sum(map(len, cut.values()))
        other_answers, other_told, order = _run(policy, cut, spent_ns, rng.sample(range(1, steps + 1), 1))
        assert other_answers == answers
        assert other_told == told
        assert Counter(order) == Counter({name: len(batches) for name, batches in cut.items()})


def test_policies_take_streams_in_different_orders() -> None:
    batches = [[(1, number, number + 1)] * (1 + number % 3) for number in range(40)]
    orders = {
        policy: tuple(_run(policy, {"a": batches, "b": batches}, [10, 400])[2])
        for policy in SCHEDULING_POLICIES
    }
    assert len(set(orders.values())) > 1
    assert orders["weighted-fair"].count("a") == 40


@pytest.mark.parametrize("latency", ["0", "-1", "nan", "1.5", "", "3600001"])
def test_latencies_that_cannot_be_are_refused(latency: str) -> None:
    with pytest.raises(OptionRefused):
        QueryOptions.of({"latency_ms_max": latency})
