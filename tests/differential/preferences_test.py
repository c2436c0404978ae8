"""Queries with a preference: with unlimited grants exact, with others their rows are part of that."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.model.state_tree import as_tree
from engine.model.step import Position
from storage.tree_codec import encode_tree
from tests.capacities import small_restored
from tests.differential.agreement import cut, exact_rows, plain_rows
from tests.differential.preferred import (
    KEYS,
    SPAN_MS,
    UNLIMITED,
    Case,
    Streams,
    Told,
    joins,
    rows_of,
    selections,
    settings_of_summaries,
)
from tests.memory_state import MemoryState

SEEDS = st.integers(0, 2**32 - 1)


@given(seed=SEEDS)
def test_answers_are_part_of_the_exact_ones_and_become_them(seed: int) -> None:
    rng = Random(seed)
    kind = rng.choice(list(KEYS))
    streams = Streams(kind, settings_of_summaries(rng), rng.choice((0, 100)))
    store, told, saved_at, at_ms = MemoryState(), dict[str, Told](), None, 1_000
    grants = rng.choice(((0, 0, 1, 5, 30, UNLIMITED), (UNLIMITED,)))
    for turn in range(rng.randint(4, 11)):
        if turn < 3 or rng.random() < 0.2:
            name = f"q{turn}"
            streams.register(name, rng.choice((joins, selections))(rng, kind))
            if rng.random() < 0.5:
                streams.engine.follow(name)
                told[name] = Told(streams.rows(name))
        elif rng.random() < 0.3:
            name = rng.choice(list(streams.cases))
            options = rng.choice(({"fade": "0.3"}, {"priority": "density"}, {"maintenance": "none"}, {}))
            if not streams.cases[name].window_ms:  # it tells what comes alone, and may begin anew
                told.pop(name, None)
            result = streams.change(name, options)
            for query_id, one in told.items():
                one.take(result.changes, query_id)
        grant = rng.choice(grants)
        if rng.random() < 0.8:
            result = streams.put(rng.choice("ab"), rows_of(rng, kind, at_ms), grant)
            at_ms += rng.choice((0, 50, 400))
            assert at_ms < SPAN_MS + 1_000
        else:
            result = streams.beat(rng.choice("ab"), rng.choice((0, 300, 1_200)), grant)
        assert result.spent <= grant
        assert result.spent == grant or not streams.engine.needs.preference_work()
        for name in streams.cases:
            mine, due = streams.rows(name), streams.due(name)
            assert mine <= due or streams.cases[name].estimates, name
            is_approximate = streams.engine.view().snapshot(name).approximate
            assert is_approximate or mine == due, name
            assert not is_approximate or len(grants) > 1 or not streams.cases[name].window_ms, name
            if name in told:
                told[name].take(result.changes, name)
                assert told[name].rows == mine, name
        if rng.random() < 0.2:
            streams.engine.save(store)
            saved_at = len(streams.steps)
    streams.engine._check()
    if saved_at is not None:
        _same_after_replay(streams, store, saved_at)
    streams.beat("a", 0, UNLIMITED)
    assert not streams.engine.needs.preference_work()
    for name in streams.cases:
        is_approximate = streams.engine.view().snapshot(name).approximate
        assert is_approximate or streams.rows(name) == streams.due(name), streams.cases[name]
        assert not is_approximate or not streams.cases[name].window_ms, streams.cases[name]


def _same_after_replay(streams: Streams, store: MemoryState, saved_at: int) -> None:
    """An engine that was restored, and told the steps that followed, is the same."""
    again = small_restored(store)
    for step in streams.steps[saved_at:]:
        again.enqueue(step)
        again.run()
    again._check()
    assert again.needs.preference_work() == streams.engine.needs.preference_work()
    for name in streams.cases:
        mine, theirs = streams.engine.view().snapshot(name), again.view().snapshot(name)
        assert exact_rows(plain_rows(mine.table)) == exact_rows(plain_rows(theirs.table)), name
        assert mine.approximation == theirs.approximation, name


@given(seed=SEEDS)
def test_summaries_are_the_same_however_input_is_cut(seed: int) -> None:
    rng = Random(seed)
    kind = rng.choice(list(KEYS))
    streams = Streams(kind, settings_of_summaries(rng), rng.choice((0, 100)))
    again = Streams(kind, streams.settings, streams.lateness_ms).engine
    at_ms = 1_000
    for _ in range(rng.randint(2, 12)):
        streams.put(rng.choice("ab"), rows_of(rng, kind, at_ms), 0)
        at_ms += rng.choice((0, 50, 400))
        streams.beat(rng.choice("ab"), rng.choice((0, 300, 1_200)), 0)
    for step in streams.steps:
        for part in cut(step, [rng.randint(0, 7) for _ in range(rng.randint(0, 3))]):
            last = again.position
            again.enqueue(replace(part, position=Position(last.epoch, last.sequence + 1)))
            again.run()
    for name in "ab":
        mine, theirs = (
            engine._parts.source(name).summarised.at_work[f"of_{name}"].state()
            for engine in (streams.engine, again)
        )
        assert encode_tree(as_tree(mine)) == encode_tree(as_tree(theirs))


def test_the_tests_have_teeth() -> None:
    """Rows do join, are left over, and are found."""
    streams = Streams("BIGINT", "WITH GRANULARITY 10 SECONDS AND COLLAPSE (2, 2)")
    plain = "SELECT a.k, b.v FROM a, b WHERE a.k = b.k"
    priorities = "SUMMARY.Estimate.Count(a.k), SUMMARY.Estimate.Count(b.k)"
    streams.register("q", Case(f"{plain} WITH PREFERENCE {priorities}", plain))
    streams.put("a", [(0, 1_000 + n, (n % 3, 1.0)) for n in range(12)], 0)
    streams.put("b", [(0, 1_000 + n, (n % 2, 2.0)) for n in range(12)], 5)
    found, due = streams.rows("q"), streams.due("q")
    assert 0 < found.total() < due.total()
    assert due.total() > 40
    (tag,) = streams.engine.view().snapshot("q").approximation
    assert (tag.kind, tag.origin, tag.unit) == ("preference", "declared", "percent")
    assert tag.unfinished is not None
    assert tag.unfinished.units_short == streams.engine.needs.preference_work() > 0
    paid = streams.beat("a", 0, UNLIMITED).spent - tag.unfinished.units_short
    assert paid in (0, 1)  # of the last visit, that the first grant did not pay whole
    assert streams.rows("q") == streams.due("q") == due
