"""Data and helpers that ``stateful_test.py`` shares with other tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.model.source import Derived, SourceName, Stream
from engine.model.step import (
    Body,
    CreateDerived,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, assert_same_answers, told
from tests.memory_state import MemoryState
from tests.sql_selects import Selects
from tests.sql_strategies import statement as selection
from tests.strategies import (
    CLOCK_START,
    OPTIONS,
    PARTITIONS,
    PAUSED,
    batch_of,
    create_text,
    nullable,
    streams,
)


class EngineMachine(RuleBasedStateMachine):
    """One stream, views over it, queries with options that change; saves and restarts at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.store = MemoryState()
        self.engine = EngineSubject()
        self.reference = Reference()
        self.clock = CLOCK_START
        self.sequence = 0
        self.born = 0
        self.offsets = dict.fromkeys(PARTITIONS, 0)
        self.stream: Stream

    def apply(self, body: Body) -> None:
        self.sequence += 1
        step = Step(Position(1, self.sequence), self.clock, body)
        assert told(self.engine.apply(step)) == told(self.reference.apply(step))

    @initialize(stream=streams())
    def create(self, stream: Stream) -> None:
        self.stream = stream
        self.apply(CreateSource(stream, create_text(stream)))

    @rule(data=st.data(), count=st.integers(1, 8))
    def bring_records(self, data: st.DataObject, count: int) -> None:
        own = [f for f in self.stream.schema if f.name != "ts"]
        rows: list[Any] = []
        for _ in range(count):
            partition = data.draw(st.sampled_from(PARTITIONS))
            timestamp = self.clock + data.draw(st.integers(-60, 30))
            values = data.draw(st.tuples(*(nullable(f.type) for f in own)))
            rows.append((partition, self.offsets[partition], timestamp, values))
            self.offsets[partition] += 1
        lagging = data.draw(st.sampled_from([frozenset(), frozenset({0}), frozenset({1, 2})]))
        batch = batch_of(self.stream.schema, rows)
        self.apply(Records(self.stream.name, batch, dict(self.offsets), lagging))

    @rule(ms=st.sampled_from([1, 5, 50, 500]), lagging=st.sampled_from([frozenset(), frozenset({2})]))
    def let_time_pass(self, ms: int, lagging: frozenset[int]) -> None:
        self.clock += ms
        self.apply(Heartbeat(self.stream.name, lagging))

    @rule(ms=st.integers(-60, 30), promised=st.sets(st.sampled_from(PARTITIONS), min_size=1))
    def hear_that_nothing_below_follows(self, ms: int, promised: set[int]) -> None:
        self.apply(Heartbeat(self.stream.name, below=dict.fromkeys(promised, self.clock + ms)))

    @rule(data=st.data(), options=st.sampled_from(OPTIONS))
    def register_a_selection(self, data: st.DataObject, options: dict[str, str]) -> None:
        self.register(selection(data.draw, self.stream, self.clock), options)

    @rule(data=st.data(), options=st.sampled_from(OPTIONS))
    def register_any_select(self, data: st.DataObject, options: dict[str, str]) -> None:
        self.register(self.selects(data).statement(), options)

    def selects(self, data: st.DataObject) -> Selects:
        return Selects(data.draw, self.stream, self.clock, tuple(self.reference.derived.values()))

    def register(self, sql: str, options: dict[str, str]) -> None:
        self.born += 1
        self.apply(Register((Registration(f"q{self.born}", sql, options=options),)))

    @precondition(lambda self: self.reference.queries)
    @rule(data=st.data(), options=st.sampled_from(OPTIONS), pause=st.booleans())
    def change_options(self, data: st.DataObject, options: dict[str, str], pause: bool) -> None:
        """Another maintenance; the query is paused, or goes on."""
        known = self.reference.queries[data.draw(st.sampled_from(sorted(self.reference.queries)))]
        options = options | PAUSED if pause else options
        self.apply(Register((replace(known.registration, options=options),)))

    @rule(data=st.data(), name=st.sampled_from(["v", "w"]))
    def create_or_replace_a_view(self, data: st.DataObject, name: str) -> None:
        """Refused while something reads the one that is there."""
        sql = self.selects(data).select(1)
        self.apply(CreateDerived(Derived(SourceName(name), sql)))

    @rule(data=st.data(), name=st.sampled_from(["d", "v"]))
    def derive_a_stream(self, data: st.DataObject, name: str) -> None:
        """Derive a stream of the rows that a predicate keeps: windows may be put over it."""
        where = self.selects(data).writer().predicate(1)
        sql = f'SELECT * FROM "{self.stream.name}" WHERE {where}'
        self.apply(CreateDerived(Derived(SourceName(name), sql, is_stream=True)))

    @precondition(lambda self: self.reference.derived)
    @rule(data=st.data())
    def drop_a_view(self, data: st.DataObject) -> None:
        self.apply(DropSource(data.draw(st.sampled_from(sorted(self.reference.derived)))))

    @precondition(lambda self: self.reference.queries)
    @rule(data=st.data())
    def unregister(self, data: st.DataObject) -> None:
        self.apply(Unregister((data.draw(st.sampled_from(sorted(self.reference.queries))),)))

    @precondition(lambda self: not self.reference.queries and not self.reference.derived)
    @rule(stream=streams())
    def replace_the_stream(self, stream: Stream) -> None:
        self.apply(DropSource(self.stream.name))
        self.create(stream)

    @rule()
    def save(self) -> None:
        self.engine.engine.save(self.store)

    @rule()
    def restart(self) -> None:
        self.engine = self.engine.restarted(self.store)

    @invariant()
    def holds_together(self) -> None:
        self.engine.engine._check()

    @invariant()
    def answers_agree(self) -> None:
        assert_same_answers(self.engine, self.reference, [0, 20])
