"""Rows until their exit against a plain list, whatever they stand in."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given

from engine.changes.transition import FOREVER
from engine.dataflow.arrangements.early_rows import EarlyRows
from engine.dataflow.arrangements.exit_rows import ExitRows, RowBlock
from engine.dataflow.arrangements.partitioned_rows import PartitionedRows
from engine.dataflow.arrangements.scanned_rows import ScannedRows
from engine.dataflow.policy import KeptEdge, Policy
from engine.model.batch import Int32Array
from tests.capacities import small
from tests.changes.ways import seeds

SPAN = 24
WORDS = 2
MAKERS = {
    "a partition": lambda: PartitionedRows(WORDS, SPAN, 1, small()),
    "partitions": lambda: PartitionedRows(WORDS, SPAN, 5, small()),
    "partitions of an instant": lambda: PartitionedRows(WORDS, SPAN, SPAN, small()),
    "scanned": lambda: ScannedRows(WORDS),
    "early": lambda: EarlyRows(WORDS, KeptEdge(Policy("upa"), SPAN, in_order=False, is_early=True), small()),
    "early, indexed": lambda: EarlyRows(
        WORDS, KeptEdge(Policy("upa", "indexed", 3), SPAN, in_order=False, is_early=True), small()
    ),
    "early, scanned": lambda: EarlyRows(
        WORDS, KeptEdge(Policy("direct"), SPAN, in_order=False, is_early=True), small()
    ),
}


@dataclass
class Plain:
    """A row. owners: the columns that it is of."""

    id: tuple[int, int]
    valid_from: int
    valid_to: int
    owners: tuple[int, ...]

    def without(self, columns: set[int]) -> Plain:
        owners = tuple(each for each in self.owners if each not in columns)
        return Plain(self.id, self.valid_from, self.valid_to, owners)


def block_of(rows: list[Plain]) -> RowBlock:
    counts = [len(row.owners) for row in rows]
    one_each = all(count == 1 for count in counts)
    return RowBlock(
        np.array([row.id for row in rows], np.int64).reshape(len(rows), WORDS),
        np.array([row.valid_from for row in rows], np.int64),
        np.array([row.valid_to for row in rows], np.int64),
        None if one_each else np.cumsum([0, *counts]).astype(np.int64),
        np.array([owner for row in rows for owner in row.owners], np.int32),
    )


def rows_of(*blocks: RowBlock) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    for block in blocks:
        starts, owners = block.spread()
        for row in range(block.n):
            of = tuple(sorted(owners[starts[row] : starts[row + 1]].tolist()))
            life = int(block.valid_from[row]), int(block.valid_to[row])
            found.append((tuple(block.ids[row].tolist()), *life, of))
    return sorted(found, key=repr)


def _columns(columns: set[int]) -> Int32Array:
    return np.array(sorted(columns), np.int32)


class Course:
    """Steps of a clock, with rows that come late, for ever, and leave together."""

    def __init__(self, made: ExitRows, rng: random.Random) -> None:
        self.made, self.rng, self.now, self.next = made, rng, 100, 0
        self.rows: list[Plain] = []
        self.seen: list[tuple[list[RowBlock], list[tuple[object, ...]]]] = []

    def insert(self) -> None:
        rng, rows = self.rng, list[Plain]()
        for _ in range(rng.choice((0, 1, 2, 40))):
            valid_to = FOREVER if rng.random() < 0.05 else self.now + rng.randint(1, SPAN)
            owners = tuple(sorted(rng.sample(range(70), rng.choice((1, 1, 3)))))
            rows.append(Plain((self.next, -self.next), self.now, valid_to, owners))
            self.next += 1
        self.made.insert(block_of(rows))
        self.rows += rows

    def expire(self) -> None:
        self.now += self.rng.choice((0, 1, 2, 3, 7, SPAN, 5 * SPAN))
        left = self.made.expire(self.now)
        assert rows_of(left) == rows_of(block_of([row for row in self.rows if row.valid_to <= self.now]))
        self.rows = [row for row in self.rows if row.valid_to > self.now]

    def drop_columns(self) -> None:
        columns = set(self.rng.sample(range(70), self.rng.choice((1, 30))))
        self.made.drop_columns(_columns(columns))
        self.rows = [row for row in (row.without(columns) for row in self.rows) if row.owners]

    def leave_early(self) -> None:
        if isinstance(self.made, EarlyRows) and self.rows:
            gone = self.rng.sample(self.rows, self.rng.randint(1, min(3, len(self.rows))))
            self.made.leave_early(np.array([row.id for row in gone], np.int64))
            self.rows = [row for row in self.rows if row not in gone]

    def hold(self) -> None:
        blocks = self.made.blocks()
        self.seen.append((blocks, rows_of(*blocks)))

    def check(self) -> None:
        self.made._check()
        assert len(self.made) == len(self.rows)
        assert rows_of(*self.made.blocks()) == rows_of(block_of(self.rows))
        for blocks, rows in self.seen:
            assert rows_of(*blocks) == rows


@pytest.mark.parametrize("kind", MAKERS)
@given(seeds)
def test_rows_leave_at_their_exit_and_readers_keep_what_they_saw(kind: str, seed: int) -> None:
    rng = random.Random(seed)
    course = Course(MAKERS[kind](), rng)
    steps = [course.insert, course.insert, course.expire, course.expire]
    steps += [course.drop_columns, course.leave_early, course.hold]
    for _ in range(25):
        rng.choice(steps)()
        course.check()


def test_a_partition_of_many_blocks_is_made_one_and_late_rows_are_put_in_order() -> None:
    rows = PartitionedRows(WORDS, SPAN, 1, small())
    course = Course(rows, random.Random(1))
    for _ in range(150):
        course.insert()
        course.check()
    course.now += 2
    for _ in range(60):
        course.expire()
        course.insert()
        course.check()
