"""Each structure against a dictionary of exits by place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from engine.changes.transition import FOREVER
from engine.dataflow.buffers.buffer import Buffer, EntryNotFound
from engine.dataflow.buffers.calendar import Calendar
from engine.dataflow.buffers.fifo import FifoBuffer
from engine.dataflow.buffers.indexed import Indexed
from engine.dataflow.buffers.scanned import ScannedBuffer
from engine.dataflow.buffers.settings import StateSettings
from engine.kernels.blocks import SIZE
from engine.model.batch import Int32Array, Int64Array
from tests.capacities import small
from tests.strategies import examples
from tureen.errors import SettingsError

seeds = st.integers(0, 2**32 - 1)


def of(places: list[int]) -> Int32Array:
    return np.array(places, np.int32)


def at(exits: list[int]) -> Int64Array:
    return np.array(exits, np.int64)


class Machine(RuleBasedStateMachine):
    """Entries come, leave, and leave before their time; places are used again, the last one first."""

    make: Callable[[np.random.Generator], Buffer]
    in_order = False
    """Entries leave in the order of their exits."""
    ascending = False
    """They come in that order."""

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.buffer = type(self).make(self.rng)
        self.exits: dict[int, int] = {}
        """By place."""
        self.late: dict[int, int] = {}
        """Those that were past their exit when dropped, and may be there."""
        self.past: set[int] = set()
        """Those that were past their exit when they came."""
        self.now = int(self.rng.integers(-50, 200))
        self.last = self.now
        self.free = list(range(4_000))[::-1]
        self.dropped: set[int] = set()
        self.told = bool(self.rng.random() < 0.7)
        """The clock is, before anything else."""
        if self.told:
            self.buffer.expire(self.now)

    def reach(self) -> int:
        return self.buffer.span if isinstance(self.buffer, Calendar) else 100

    @rule(n=st.sampled_from((0, 1, 2, 30, SIZE, 400)), kind=st.sampled_from(("span", "near", "tie", "far")))
    def insert(self, n: int, kind: str) -> None:
        n = min(n, len(self.free))
        ahead = {"span": self.reach(), "near": 4, "tie": 1, "far": 5 * self.reach()}[kind]
        exits = self.now + self.rng.integers(-2 if kind == "near" else 0, ahead + 1, n)
        exits[self.rng.random(n) < 0.02] = FOREVER
        if self.ascending:
            exits = np.sort(np.where(exits == FOREVER, self.last, np.maximum(exits, self.last)))
            self.last = int(exits[-1]) if n else self.last
        places = [self.free.pop() for _ in range(n)]
        self.past -= set(places)
        self.past |= {place for place, exit_at in zip(places, exits, strict=True) if exit_at <= self.now}
        self.buffer.insert(of(places), exits.astype(np.int64))
        self.exits |= dict(zip(places, exits.tolist(), strict=True))

    @rule(step=st.sampled_from((0, 1, 1, 3, 25, 90, 400, 5_000)))
    def expire(self, step: int) -> None:
        self.now += step
        leaving = self.buffer.take(self.now)
        due = self.gone()
        assert dict(zip(leaving.places.tolist(), leaving.exits.tolist(), strict=True)) == due
        assert len(leaving.places) == len(due)
        if self.in_order:
            assert leaving.exits.tolist() == sorted(leaving.exits.tolist())
        self.free += leaving.places.tolist()

    def gone(self) -> dict[int, int]:
        due = {place: exit_at for place, exit_at in self.exits.items() if exit_at <= self.now}
        for place in due:
            del self.exits[place]
        due |= self.late
        self.late = {}
        return due

    @rule(step=st.sampled_from((0, 1, 25, 120, 400, 5_000)))
    def drop(self, step: int) -> None:
        self.now += step
        due = self.gone()
        width = self.buffer.width if isinstance(self.buffer, Calendar) else None
        count = self.buffer.drop(self.now)
        places = self.buffer.reclaim(self.buffer.waiting).tolist()
        self.buffer._check()
        left = set(places) - self.dropped
        assert left <= set(due)
        assert len(left) == count
        self.late = {place: exit_at for place, exit_at in due.items() if place not in left}
        if isinstance(self.buffer, Calendar) and self.told:
            if self.buffer.width != width:
                self.past |= set(self.late)
            border = self.now // self.buffer.width * self.buffer.width
            assert all(exit_at > border for place, exit_at in self.late.items() if place not in self.past)
        elif not isinstance(self.buffer, Calendar):
            assert not self.late
        self.free += places
        self.dropped = set()

    @rule(step=st.sampled_from((25, 120, 5_000)), wanted=st.integers(0, 90))
    def drop_and_reclaim_some(self, step: int, wanted: int) -> None:
        self.now += step
        before, there = self.buffer.waiting, set(self.exits) | set(self.late)
        due = self.gone()
        count = self.buffer.drop(self.now)
        assert self.buffer.waiting == before + count
        places = self.buffer.reclaim(wanted).tolist()
        assert len(places) >= min(wanted, before + count)
        assert self.buffer.waiting == before + count - len(places)
        assert set(places) <= self.dropped | set(due)
        still = set(self.buffer.live(-(1 << 62)).tolist())
        self.late = {place: exit_at for place, exit_at in due.items() if place in still}
        self.past |= set(self.late)
        self.dropped = (self.dropped | (there - set(self.exits) - still)) - set(places)
        self.free += places

    @precondition(lambda self: self.exits)
    @rule(share=st.sampled_from((0.01, 0.2, 0.9)))
    def remove(self, share: float) -> None:
        ahead = {place: exit_at for place, exit_at in self.exits.items() if exit_at > self.now}
        gone = [place for place in ahead if self.rng.random() < share]
        self.rng.shuffle(gone)
        before = self.buffer.work.negative
        self.buffer.remove(of(gone), at([ahead[place] for place in gone]))
        assert self.buffer.work.negative == before + len(gone)
        for place in gone:
            del self.exits[place]
        self.free += gone

    @rule()
    def remove_who_is_not_there(self) -> None:
        if self.free:
            with pytest.raises(EntryNotFound):
                self.buffer.remove(of([self.free[-1]]), at([self.now + 3]))

    @precondition(lambda self: isinstance(self.buffer, Calendar))
    @rule(span=st.integers(1, 300), partitions=st.sampled_from((None, 1, 7, 40)))
    def resize(self, span: int, partitions: int | None) -> None:
        assert isinstance(self.buffer, Calendar)
        partitions = None if partitions is None else min(partitions, span)
        self.buffer.resize(span, partitions)
        self.past |= set(self.late)

    @invariant()
    def who_is_there_is_known(self) -> None:
        if not hasattr(self, "buffer"):
            return
        self.buffer._check()
        assert len(self.buffer) == len(self.exits) + len(self.late)
        live = {place for place, exit_at in self.exits.items() if exit_at > self.now}
        assert sorted(self.buffer.live(self.now).tolist()) == sorted(live)
        work = self.buffer.work
        assert work.inserted - work.deleted == len(self.buffer)
        assert self.buffer.nbytes >= 12 * len(self.buffer)


def state_of(rng: np.random.Generator) -> StateSettings:
    """With room for one entry, or as it is usual."""
    return small() if rng.integers(2) else StateSettings()


class FifoMachine(Machine):
    make = staticmethod(lambda rng: FifoBuffer(state_of(rng).capacities))
    in_order = ascending = True


class ScannedMachine(Machine):
    make = staticmethod(lambda rng: ScannedBuffer(state_of(rng).capacities))


def calendar_of(rng: np.random.Generator, kind: type[Calendar], *, ordered: bool) -> Calendar:
    span = int(rng.integers(1, 200))
    partitions = [None, 1, 2, 10, span][int(rng.integers(5))]
    return kind(span, None if partitions is None else min(partitions, span), state_of(rng), ordered=ordered)


class OrderedMachine(Machine):
    make = staticmethod(lambda rng: calendar_of(rng, Calendar, ordered=True))
    in_order = True


class UnorderedMachine(Machine):
    make = staticmethod(lambda rng: calendar_of(rng, Calendar, ordered=False))


class OrderedIndexedMachine(Machine):
    make = staticmethod(lambda rng: calendar_of(rng, Indexed, ordered=True))
    in_order = True


class UnorderedIndexedMachine(Machine):
    make = staticmethod(lambda rng: calendar_of(rng, Indexed, ordered=False))


RUNS = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestFifo = FifoMachine.TestCase
TestScanned = ScannedMachine.TestCase
TestOrdered = OrderedMachine.TestCase
TestUnordered = UnorderedMachine.TestCase
TestOrderedIndexed = OrderedIndexedMachine.TestCase
TestUnorderedIndexed = UnorderedIndexedMachine.TestCase
for case in (TestFifo, TestScanned, TestOrdered, TestUnordered, TestOrderedIndexed, TestUnorderedIndexed):
    case.settings = RUNS


@pytest.mark.parametrize(
    "machine",
    [
        FifoMachine,
        ScannedMachine,
        OrderedMachine,
        UnorderedMachine,
        OrderedIndexedMachine,
        UnorderedIndexedMachine,
    ],
)
@settings(max_examples=examples(40), deadline=None)
@given(seed=seeds)
def test_long_runs_of_many_entries(machine: type[Machine], seed: int) -> None:
    run = machine()
    run.begin(seed)
    rng = np.random.default_rng(seed)

    def one_of(*values: object) -> object:
        return values[int(rng.integers(len(values)))]

    for _ in range(80):
        chosen = rng.random()
        if chosen < 0.45:
            run.insert(n=one_of(1, 3, 40, 400), kind=one_of("span", "span", "near", "tie", "far"))
        elif chosen < 0.7:
            run.expire(step=one_of(0, 1, 2, 9, 60, 300))
        elif chosen < 0.78:
            run.drop(step=one_of(0, 3, 40, 300))
        elif chosen < 0.86:
            run.drop_and_reclaim_some(step=one_of(0, 3, 40), wanted=int(rng.integers(0, 300)))
        elif chosen < 0.97:
            if run.exits:
                run.remove(share=one_of(0.01, 0.1, 0.9))
        elif isinstance(run.buffer, Calendar):
            run.resize(span=int(rng.integers(1, 300)), partitions=one_of(None, 1, 7, 40))
        run.who_is_there_is_known()


def test_fifo_refuses_an_entry_that_leaves_before_an_earlier_one() -> None:
    buffer = FifoBuffer()
    buffer.insert(of([1, 2]), at([5, 5]))
    with pytest.raises(ValueError, match="leaves before"):
        buffer.insert(of([3]), at([4]))
    with pytest.raises(ValueError, match="leaves before"):
        buffer.insert(of([3, 4]), at([7, 6]))
    assert buffer.expire(5).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [Calendar, Indexed])
@pytest.mark.parametrize("ordered", [True, False])
def test_an_exit_on_a_border_leaves_on_it_and_not_half_a_ms_before(
    kind: type[Calendar], ordered: bool
) -> None:
    """Partitions of 10 halves; 20 is the last instant of the second."""
    buffer = kind(100, 10, ordered=ordered)
    assert buffer.width == 10
    buffer.expire(0)
    buffer.insert(of([1, 2, 3]), at([19, 20, 21]))
    assert buffer.expire(18).tolist() == []
    assert buffer.expire(19).tolist() == [1]
    assert buffer.expire(20).tolist() == [2]
    buffer._check()
    assert buffer.expire(21).tolist() == [3]


@pytest.mark.parametrize("kind", [Calendar, Indexed])
def test_a_dropped_partition_is_not_read(kind: type[Calendar]) -> None:
    buffer = kind(100, 10, ordered=False)
    buffer.expire(0)
    buffer.insert(np.arange(5_000, dtype=np.int32), np.arange(5_000, dtype=np.int64) % 100 + 1)
    assert buffer.drop(55) == buffer.waiting == 2_500
    assert buffer.work.visited == 0
    assert buffer.work.dropped == 2_500
    assert len(buffer.live(55)) == 2_250
    with pytest.raises(EntryNotFound):
        buffer.remove(of([0]), at([1]))
    assert sorted(buffer.reclaim(2_500).tolist()) == [n for n in range(5_000) if n % 100 < 50]
    buffer._check()


def test_a_negative_tuple_reads_its_partition_or_its_position() -> None:
    places, exits = np.arange(5_000, dtype=np.int32), np.arange(5_000, dtype=np.int64) % 100 + 1
    searched, known = Calendar(100, 10, ordered=False), Indexed(100, 10, ordered=False)
    for buffer in (searched, known):
        buffer.expire(0)
        buffer.insert(places, exits)
        buffer.remove(places[4_999:], exits[4_999:])
    assert searched.work.visited == 500
    assert known.work.visited == 1


def test_exits_far_ahead_come_near_and_widen_the_span() -> None:
    buffer = Calendar(10, 5)
    buffer.insert(of([0]), at([10]))
    buffer.insert(np.arange(1, 1_001, dtype=np.int32), np.arange(1_011, 2_011, dtype=np.int64))
    buffer._check()
    assert buffer.expire(1_500).tolist() == list(range(491))
    assert buffer.span > 10
    buffer._check()
    assert buffer.expire(FOREVER - 1).tolist() == list(range(491, 1_001))


def test_room_is_given_back() -> None:
    for buffer in (
        FifoBuffer(),
        ScannedBuffer(),
        Calendar(1_000),
        Calendar(1_000, ordered=False),
        Indexed(1_000),
    ):
        buffer.insert(np.arange(200_000, dtype=np.int32), np.arange(200_000, dtype=np.int64) // 200)
        full = buffer.nbytes
        assert full > 12 * 200_000
        buffer.expire(998)
        assert len(buffer) == 200
        assert buffer.nbytes < full / 2


def test_settings_say_how_many_partitions() -> None:
    defaults = StateSettings()
    assert Calendar(1_000).partitions == defaults.state_partitions == 10
    assert Calendar(3).partitions == 3
    assert Calendar(1_000).width == 100
    assert Calendar(1_001).width == 101
    for partitions in (0, 65_537, 1_001):
        with pytest.raises(ValueError, match="partitions"):
            Calendar(1_000, partitions)
    assert defaults.lazy_interval(1_000) == 50
    assert defaults.lazy_interval(3) == 1


def test_settings_can_be_set() -> None:
    state, others = StateSettings(), StateSettings()
    state.change("state_partitions", 50)
    state.change("expiry_lazy_fraction", 0.5)
    assert Calendar(1_000, settings=state).partitions == 50
    assert state.lazy_interval(1_000) == 500
    assert Calendar(1_000, settings=others).partitions == 10
    with pytest.raises(SettingsError, match="expiry_lazy_fraction"):
        state.change("expiry_lazy_fraction", 0)
