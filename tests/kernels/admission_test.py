"""The admission pass agrees with its rules told row by row over dictionaries; its merge with ``sorted``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.admission import (
    FOLLOWS,
    NEVER,
    NEW_PARTITION,
    OUT_OF_ORDER,
    Admission,
    Arrived,
    Partitions,
    Rules,
    admit,
    follow,
    in_order,
    order_of,
)
from tests.strategies import examples

PARTITIONS = 3
YEAR_MS = 365 * 86_400_000

numbers = st.integers(0, PARTITIONS - 1)
instants = st.one_of(st.integers(-5, 60), st.sampled_from([-YEAR_MS, YEAR_MS, 50 * YEAR_MS]))
keys = st.lists(st.tuples(st.integers(0, 4), numbers, st.integers(0, 3)), max_size=40)
rules = st.builds(
    Rules,
    *(st.booleans(), st.integers(1, 12), st.integers(0, 30), st.integers(1, 40), st.booleans()),
    by_offset=st.booleans(),
)


@dataclass
class Twin:
    """The rules, slowly."""

    rules: Rules
    clock: int = 0
    now: int | None = None
    next: dict[int, int] = field(default_factory=dict)
    latest: dict[int, int] = field(default_factory=dict)
    active: dict[int, int] = field(default_factory=dict)
    idle: set[int] = field(default_factory=set)

    def follows(self, rows: list[tuple[int, int, int]]) -> bool:
        after = dict(self.next)
        for partition, offset, _ in rows:
            if offset < after.get(partition, 0):
                return False
            after[partition] = offset + 1
        self.next = after
        return True

    def step(
        self, rows: list[tuple[int, int, int]], clock: int, lagging: set[int]
    ) -> tuple[list[int], list[int]]:
        """(fates, instants)"""
        self.clock = max(self.clock, clock)
        return self._event(rows, lagging) if self.rules.event_time else ([], self._arrival(rows, lagging))

    def _raise(self, now: int) -> None:
        self.now = now if self.now is None else max(self.now, now)

    def _holding(self, lagging: set[int]) -> set[int]:
        timeout = self.rules.idle_timeout_ms
        return {
            p for p in range(PARTITIONS) if p in self.active and self.clock - self.active[p] < timeout
        } | lagging

    def _event(self, rows: list[tuple[int, int, int]], lagging: set[int]) -> tuple[list[int], list[int]]:
        here = {p for p, _, _ in rows}
        holds = self._holding(lagging) | here

        def settle() -> None:
            if holds and holds <= self.latest.keys():
                self._raise(min(self.latest[p] for p in holds) - self.rules.margin_ms)

        settle()
        fates = []
        for p, _, stamp in rows:
            if stamp > self.clock + self.rules.future_max_ms:
                fates.append(2)
                continue
            fates.append(1 if self.now is not None and stamp <= self.now else 0)
            self.latest[p] = max(stamp, self.latest.get(p, stamp))
            settle()
        self.active |= dict.fromkeys(here, self.clock)
        holds = self._holding(lagging)
        self.idle = self.active.keys() - holds
        if not holds and self.latest:
            largest = max(self.latest.values())
            if self.rules.idle_advances:
                largest += max(0, self.clock - max(self.active.values()) - self.rules.idle_timeout_ms)
            self._raise(largest)
        return fates, [stamp for _, _, stamp in rows]

    def _arrival(self, rows: list[tuple[int, int, int]], lagging: set[int]) -> list[int]:
        def settle(behind: set[int]) -> None:
            if behind <= self.latest.keys():
                self._raise(min([self.clock, *(self.latest[p] for p in behind)]) - 1)

        settle(lagging | {p for p, _, _ in rows})
        told = []
        for place, (p, _, stamp) in enumerate(rows):
            if self.rules.by_offset:
                stamp = min(stamp, self.clock)
                stamp = max(stamp, self.latest.get(p, stamp))
            told.append(stamp if self.now is None else max(stamp, self.now + 1))
            self.latest[p] = max(told[-1], self.latest.get(p, told[-1]))
            settle(lagging | {later for later, _, _ in rows[place + 1 :]})
        self.active |= dict.fromkeys({p for p, _, _ in rows}, self.clock)
        return told


def fresh() -> Partitions:
    return Partitions(
        np.arange(PARTITIONS, dtype=np.int32),
        np.full(PARTITIONS, -1, np.int64),
        np.full(PARTITIONS, NEVER),
        np.full(PARTITIONS, NEVER),
        np.full(PARTITIONS, NEVER),
        np.zeros(PARTITIONS, np.bool_),
        np.zeros(PARTITIONS, np.bool_),
    )


def arrived(rows: list[tuple[int, int, int]]) -> Arrived:
    partition, offset, stamp = zip(*rows, strict=True) if rows else ((), (), ())
    return Arrived(np.array(partition, np.int32), np.array(offset, np.int64), np.array(stamp, np.int64))


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[tuple[int, int, int]], int, set[int]]]:
    """Steps: (rows, clock, partitions that lag); offsets mostly follow, some are skipped or come again."""
    ahead = dict.fromkeys(range(PARTITIONS), 0)
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        rows = []
        for partition, stamp in draw(st.lists(st.tuples(numbers, instants), max_size=12)):
            offset = ahead[partition] + draw(st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1, 7, -1]))
            ahead[partition] = offset + 1
            rows.append((partition, offset, stamp))
        if draw(st.booleans()):
            rows.sort(key=lambda row: row[0])
        steps.append((rows, draw(st.integers(0, 90)), draw(st.sets(numbers))))
    return steps


@given(rules, histories())
@settings(max_examples=examples(300))
def test_steps_pass_as_they_do_row_by_row(
    rule: Rules, steps: list[tuple[list[tuple[int, int, int]], int, set[int]]]
):
    twin, state = Twin(rule), fresh()
    for rows, clock, lagging in steps:
        batch = arrived(rows)
        now = NEVER if twin.now is None else twin.now
        follows = twin.follows(rows)
        before = [held.copy() for held in state]
        fate, instant = np.zeros(len(rows), np.uint8), np.full(len(rows), 9, np.int64)
        state.lagging[:] = [p in lagging for p in range(PARTITIONS)]
        said = admit(batch, state, rule, True, max(twin.clock, clock), now, fate, instant)
        state.lagging[:] = False
        if not follows:
            assert said.follows == OUT_OF_ORDER
            assert all((held == old).all() for held, old in zip(state, before, strict=True))
            continue
        fates, stamps = twin.step(rows, clock, lagging)
        taken = [i for i in range(len(rows)) if not rule.event_time or not fates[i]]
        order = [(stamps[i], rows[i][0], rows[i][1]) for i in taken]
        assert said == Admission(
            FOLLOWS,
            -1,
            NEVER if twin.now is None else twin.now,
            fates.count(1),
            fates.count(2),
            order == sorted(order),
        )
        if rule.event_time:
            assert fate.tolist() == fates
            assert {p for p in range(PARTITIONS) if state.idle[p]} == twin.idle
        else:
            assert instant.tolist() == stamps
        assert state.latest.tolist() == [twin.latest.get(p, NEVER) for p in range(PARTITIONS)]
        assert state.active.tolist() == [twin.active.get(p, NEVER) for p in range(PARTITIONS)]
        assert state.next_offset.tolist() == [twin.next.get(p, -1) for p in range(PARTITIONS)]


@given(histories())
@settings(max_examples=examples(60))
def test_following_alone_says_of_offsets_what_admission_does(
    steps: list[tuple[list[tuple[int, int, int]], int, set[int]]],
):
    twin, state = Twin(Rules(True, 1, 0, 1, False)), fresh()
    for rows, _, _ in steps:
        assert (follow(arrived(rows), state)[0] == FOLLOWS) == twin.follows(rows)
        assert state.next_offset.tolist() == [twin.next.get(p, -1) for p in range(PARTITIONS)]


def test_a_partition_that_was_never_seen_changes_nothing():
    state = fresh()
    said = admit(
        arrived([(0, 0, 5), (PARTITIONS, 0, 5)]),
        state,
        Rules(True, 1, 0, 1, False),
        True,
        9,
        NEVER,
        np.zeros(2, np.uint8),
        np.zeros(0, np.int64),
    )
    assert (said.follows, said.culprit) == (NEW_PARTITION, PARTITIONS)
    assert state.next_offset.tolist() == [-1] * PARTITIONS


@given(keys)
@settings(max_examples=examples(100))
def test_in_order(rows: list[tuple[int, int, int]]):
    stamps, partitions, offsets = (np.array([k[i] for k in rows], np.int64) for i in range(3))
    assert in_order(stamps, partitions.astype(np.int32), offsets) == (rows == sorted(rows))


@given(keys, st.integers(0, 4))
@settings(max_examples=examples(150))
def test_order_merges_runs_and_keeps_equal_rows_as_they_come(rows: list[tuple[int, int, int]], cut: int):
    rows = sorted(rows[:cut]) + sorted(rows[cut:]) if cut else rows
    stamps, partitions, offsets = (np.array([k[i] for k in rows], np.int64) for i in range(3))
    order = np.full(len(rows), -1, np.int64)
    order_of(stamps, partitions.astype(np.int32), offsets, order, np.empty(len(rows), np.int64))
    assert order.tolist() == sorted(range(len(rows)), key=rows.__getitem__)
