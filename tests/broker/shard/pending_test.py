"""Output that waits: in the order of its steps, as far as it is written, until nothing of it is left."""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker.shard.pending import Pending, portions
from engine.model.changes import Changes, Occasion
from engine.model.step import OutputWritten, Position, StepResult
from tests.strategies import examples
from topics.destination import Destination

TO = Destination("t", False, True, "diff", "json", "istream")
NAMES = ("a", "b", "c", "d")


def told(counts: dict[str, int], sequence: int, rng: random.Random, occasion: Occasion = "step") -> Changes:
    """Rows (query, step, number), those of each query in any order."""
    rows = []
    for name, count in counts.items():
        mine = [(name, sequence, number) for number in range(count)]
        rng.shuffle(mine)
        rows += mine
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(KINDS)]
    starts = np.cumsum([0, *counts.values()])
    ones = np.ones(len(rows), np.int8)
    instants = np.full(len(rows), 5, np.int64)
    now_ms = np.full(len(counts), 5, np.int64)
    table = pa.table(columns, ["q", "s", "n"])
    return Changes(tuple(counts), starts, table, ones, instants, now_ms, occasion)


KINDS = (pa.string(), pa.int64(), pa.int64())


class Waiting(RuleBasedStateMachine):
    """Two of them: the second is told what the first has written, as a replay tells it, and has the same."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.replayed = Pending(), Pending()
        self.sequence = 0
        self.wanted: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self.written: dict[str, list[tuple[int, int]]] = defaultdict(list)

    @rule(
        counts=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), min_size=1),
        later=st.sets(st.sampled_from(NAMES)),
        twice=st.booleans(),
        occasion=st.sampled_from(("step", "snapshot", "end")),
        rng=st.randoms(use_true_random=False),
    )
    def step(
        self, counts: dict[str, int], later: set[str], twice: bool, occasion: Occasion, rng: random.Random
    ) -> None:
        self.sequence += 1
        position = Position(1, self.sequence)
        for pending in (self.one, self.replayed):
            numbers = [self.sequence + part * 1_000 for part in range(1 + twice)]
            parts = tuple(told(counts, number, rng, occasion) for number in numbers)
            result = StepResult(position, changes=parts)
            to = {name: TO for name in NAMES if name != "d"}.get
            pending.put(portions(result, to, later.__contains__))
        for name in sorted(later & counts.keys() - {"d"}):
            for part in range(1 + twice):
                self.wanted[name] += [(self.sequence + part * 1_000, n) for n in range(counts[name])]

    @rule(rows=st.integers(1, 5))
    def write(self, rows: int) -> None:
        done: list[OutputWritten] = []
        for portion in self.one.firsts():
            changes = portion.next(rows)
            assert 1 <= len(changes) <= rows
            steps, numbers = changes.table["s"].to_pylist(), changes.table["n"].to_pylist()
            self.written[portion.query_id] += zip(steps, numbers, strict=True)
            sequence = portion.position.sequence
            done.append(OutputWritten(sequence, portion.query_id, portion.written + len(changes)))
            assert self.one.wrote(done[-1])
        for progress in done:
            assert self.replayed.wrote(progress)
        if done and rows % 2:
            self.one = self.replayed  # this owner ends, and the next has what a replay gives
            self.replayed = copy.deepcopy(self.one)

    @rule(name=st.sampled_from(NAMES))
    def drop(self, name: str) -> None:
        self.one.drop([name, "nobody"])
        self.replayed.drop([name])
        self.wanted[name] = list(self.written[name])

    @invariant()
    def in_order(self) -> None:
        for name in NAMES:
            written, wanted = self.written[name], self.wanted[name]
            assert written == wanted[: len(written)]
            assert self.one.of(name) == self.replayed.of(name) == len(wanted) - len(written)
        assert bool(self.one) == bool(self.one.rows)
        self.one._check()
        self.replayed._check()


TestWaiting = Waiting.TestCase
TestWaiting.settings = settings(max_examples=examples(30), stateful_step_count=20, deadline=None)


def test_progress_of_what_does_not_wait_is_told_apart() -> None:
    pending = Pending()
    result = StepResult(Position(1, 1), changes=(told({"a": 3}, 1, random.Random(0)),))
    pending.put(portions(result, lambda _: TO, lambda _: True))
    assert not pending.wrote(OutputWritten(1, "b", 1))
    assert not pending.wrote(OutputWritten(2, "a", 1))
    assert not pending.wrote(OutputWritten(1, "a", 4))
    assert pending.wrote(OutputWritten(1, "a", 3))
    assert not pending


def test_what_a_query_that_rejoins_is_told_has_a_portion_for_each_step() -> None:
    pending, rng = Pending(), random.Random(0)
    parts = [(Position(1, 3), {"a": 3, "b": 1}), (Position(1, 4), {"a": 2}), (Position(2, 6), {"b": 1})]
    changes = tuple(replace(told(counts, 1, rng), position=at) for at, counts in parts)
    made = portions(StepResult(Position(2, 9), changes=changes), lambda _: TO, lambda _: True)
    assert [(str(one.position), one.query_id, one.rows) for one in made] == [
        ("1-3", "a", 3),
        ("1-3", "b", 1),
        ("1-4", "a", 2),
        ("2-6", "b", 1),
    ]
    pending.put(portions(StepResult(Position(2, 8), changes=(told({"c": 1}, 1, rng),)), lambda _: TO, bool))
    pending.put(made)
    pending._check()
    assert [one.position.sequence for one in pending.firsts()] == [8, 3, 3]
    assert pending.wrote(OutputWritten(3, "a", 3))
    assert pending.of("a") == 2


def test_changes_are_untold_until_their_transaction_is_committed() -> None:
    pending = Pending()
    result = StepResult(Position(1, 1), changes=(told({"a": 3, "b": 2}, 1, random.Random(0)),))
    pending.put(portions(result, lambda _: TO, lambda _: True))
    assert pending.wrote(OutputWritten(1, "a", 3))
    assert (pending.of("a"), pending.untold("a"), pending.untold("b"), pending.untold()) == (0, 3, 2, 5)
    pending.committed()
    assert (pending.untold("a"), pending.untold("b"), pending.untold()) == (0, 2, 2)


def test_what_rows_cause_is_told_from_whole_answers() -> None:
    pending = Pending()
    occasions: tuple[Occasion, ...] = ("step", "snapshot", "end")
    for sequence, occasion in enumerate(occasions, 1):
        changes = told({"a": 3, "b": 2}, sequence, random.Random(0), occasion)
        result = StepResult(Position(1, sequence), changes=(changes,))
        pending.put(portions(result, lambda _: TO, lambda _: True))
    assert (pending.rows, pending.step_rows) == (15, 5)
    assert pending.wrote(OutputWritten(1, "a", 1))
    assert pending.wrote(OutputWritten(2, "b", 2))
    assert (pending.rows, pending.step_rows) == (12, 4)
    pending.drop(["a"])
    assert (pending.rows, pending.step_rows) == (4, 2)
