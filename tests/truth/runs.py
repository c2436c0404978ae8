"""Queries are given less, along each path there is, and what their tags say is compared with what is so."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa

from engine.model.allotment import Allotment, ScanAllotment
from engine.model.approximation import Expected
from engine.overload.precision.aggregated import INTERVAL
from engine.overload.precision.allocation import solve
from engine.overload.reduced_query import window_asked_ms
from tests.truth.cases import CASES, Case
from tests.truth.world import INSTANTS, MANY_INSTANTS, WINDOW_MS, World, deviations, misses
from tureen.errors import AllotmentRefused

SEEDS = 30
"""Samples that a rate is tried on."""


@dataclass(frozen=True)
class Found:
    """What was told and what is true of one allocation. told, true: fn where the answer has rows, error where
    it has aggregates. fp: wrong rows, as a share of those given. given: the allocation in words.
    """

    case: str
    told: float
    true: float
    given: str
    fp: float = 0.0
    bound: float | None = None
    unreachable: bool = False

    @property
    def apart(self) -> float:
        return self.told - self.true

    @property
    def breaks(self) -> bool:
        """Whether a bound is broken, by more than the figures are exact to, and nobody is told."""
        return self.bound is not None and self.true > self.bound + NEAR and not self.unreachable


NEAR = 0.02
"""Tag and truth are at most so far apart in the mean."""


class Pair:
    """A case as an exact query, and as one that tolerates everything but for ``bound``."""

    def __init__(self, world: World, case: Case, bound: float = 1.0, seeds: int = 0) -> None:
        self.world, self.case, self.bound = world, case, bound
        options = {case.bound: str(bound)}
        world.register("exact", case.sql.format(""))
        self.ids = [f"given{seed}" for seed in range(seeds)] or ["given"]
        for seed, query_id in enumerate(self.ids):
            sample = f" SAMPLE(100 DOWN TO 1, {seed})" if seeds else ""
            world.register(query_id, case.sql.format(sample), **options)

    def end(self) -> None:
        self.world.unregister("exact", *self.ids)

    def allotment(self, rng: np.random.Generator, *, rates: bool) -> Allotment:
        """What is given, at random."""
        scans = []
        asked = self.world.engine.view().standing[self.ids[0]].asked
        for scan, may in zip(asked.scans(), self.case.cut, strict=True):
            window_ms = percent = None
            if "w" in may and (not rates or rng.random() < 0.5):
                whole_ms = window_asked_ms(scan) or 1
                end_ms = -scan.window.end.ms  # type: ignore[union-attr]
                window_ms = end_ms + int(rng.uniform(0.05, 0.99) * (whole_ms - end_ms))
            if rates and "r" in may:
                percent = Decimal(str(round(rng.uniform(10, 95), 1)))
            scans.append(ScanAllotment(window_ms, percent))
        return Allotment(tuple(scans))

    def give(self, allotment: Allotment) -> Expected:
        """Raises AllotmentRefused."""
        given = {one: self.world.engine.expecting(one, allotment) for one in self.ids}
        self.world.give(given)
        return given[self.ids[0]].expected

    def true(self) -> tuple[float, float]:
        """(share of rows missing, or error; share of rows wrong) of the answer, over instants."""
        instants = INSTANTS
        if self.case.keys is not None:  # what scatters needs more of them, or more samples
            instants = INSTANTS[::2] if len(self.ids) > 1 else MANY_INSTANTS
        answers = [
            (due, self.world.answer(one, at_ms).table)
            for at_ms in instants
            for due in [self.world.answer("exact", at_ms).table]
            for one in self.ids
        ]
        return rows_apart(answers) if self.case.keys is None else (error_of(self.case, answers), 0.0)


Answers = Sequence[tuple[pa.Table, pa.Table]]
"""Exact ones, each with that which was given."""


def rows_apart(answers: Answers) -> tuple[float, float]:
    """(share of the rows due that are missing, share of the rows given that are wrong)."""
    sums = np.sum([misses(due, given) for due, given in answers], axis=0)
    return float(sums[2] / max(1, sums[3])), float(sums[0] / max(1, sums[1]))


def error_of(case: Case, answers: Answers) -> float:
    """Half an interval that holds 95 of 100 deviations: by how much they are off in the mean, and by how much
    they scatter about that; of the column where it is widest.
    """
    assert case.keys is not None
    found: dict[str, list[float]] = {name: [] for name in case.told}
    for due, given in answers:
        for name, values in deviations(due, given, case.keys, case.told).items():
            found[name] += values
    return max(abs(float(np.mean(one))) + INTERVAL * float(np.std(one)) for one in found.values())


def told_of(case: Case, expected: Expected) -> float:
    told = expected.fn if case.keys is None else expected.error
    return math.nan if told is None else told


def allotments(world: World, case: Case, rng: np.random.Generator, count: int) -> Iterator[Found]:
    """Windows shortened and, where they may be, rates lowered, at random."""
    for rates in {"r" in "".join(case.cut), False}:
        sampled = rates and case.keys is not None
        pair = Pair(world, case, seeds=SEEDS if sampled else 0)
        for _ in range(max(1, count // 8) if sampled else count):
            allotment = pair.allotment(rng, rates=rates)
            expected = pair.give(allotment)
            tags = world.answer(pair.ids[0]).approximation
            assert all(tag.expected == expected or sampled for tag in tags), tags
            true, fp = pair.true()
            yield Found(case.name, told_of(case, expected), true, shown(allotment), fp)
        pair.end()


def hand_edits(world: World, case: Case, rng: np.random.Generator, count: int) -> Iterator[Found]:
    """Set by hand under a bound: what is taken keeps it, and what is refused would not."""
    for _ in range(count):
        bound = round(float(rng.uniform(0.1, 0.9)), 2)
        pair = Pair(world, case, bound)
        allotment = pair.allotment(rng, rates=False)
        try:
            told = told_of(case, pair.give(allotment))
            true, fp = pair.true()
            yield Found(case.name, told, true, shown(allotment), fp, bound)
        except AllotmentRefused:
            pair.end()
            pair = Pair(world, case, 1.0)
            told = told_of(case, pair.give(allotment))
            assert told > bound
        pair.end()


def budgets(seed: int, case: Case, rng: np.random.Generator, count: int) -> Iterator[Found]:
    """The budget loop: memory is short, and what is left is divided. Rows that no window holds are gone, so
    that the exact answer is that of another engine.
    """
    for _ in range(count):
        bound = round(float(rng.uniform(0.1, 0.9)), 2)
        short, whole = World(seed, "1 MILLISECOND"), World(seed)
        short.register("given", case.sql.format(""), **{case.bound: str(bound)})
        whole.register("exact", case.sql.format(""))
        for world in (short, whole):
            world.feed(2 * WINDOW_MS)
        problem = short.engine.allocation_problem()
        assert problem is not None
        share = float(rng.uniform(0.0, 1.1))
        bytes_ = share * sum(entity.bytes for entity in problem.found.problem.entities)
        allocation = solve(replace(problem.found.problem, budget_bytes=bytes_))
        given = problem.allotments(allocation)
        short.give(given)
        told = told_of(case, given["given"].expected)
        unreachable = "given" in allocation.unreachable
        answers = []
        for _ in range(6):
            for world in (short, whole):
                world.feed(WINDOW_MS // 2 + 200)
            answers.append((whole.answer("exact").table, short.answer("given").table))
        true, fp = rows_apart(answers) if case.keys is None else (error_of(case, answers), 0.0)
        yield Found(case.name, told, true, f"{share:.2f} of the bytes", fp, bound, unreachable)


def sheds(seed: int, count: int) -> Iterator[Found]:
    """Runs of rows are shed at random: what the tag counts is what is missing."""
    rng, world = np.random.default_rng(seed), World(seed)
    sql = f"SELECT id FROM s [RANGE {WINDOW_MS} MILLISECONDS]"
    world.register("exact", sql)
    world.register("given", sql, max_fn="1")
    world.feed(2 * WINDOW_MS)
    for _ in range(count):
        # Whole seconds, after each of which it is looked what is missing.
        span_ms = 1_000 * int(rng.integers(1, 3))
        shed = rng.random() < 0.4
        world.feed(span_ms, {"s": 1_000_000} if shed else None)
        answer = world.answer("given")
        tag = next(iter(answer.approximation), None)
        told = 0.0 if tag is None else tag.amount / 100
        true, fp = rows_apart([(world.answer("exact").table, answer.table)])
        yield Found("selection", told, true, f"{span_ms} ms {'shed' if shed else 'read'}", fp)


PATHS = ("allotments", "hand edits", "budgets", "sheds")


def runs(path: str, name: str, count: int, seed: int) -> Iterator[Found]:
    """So many allocations of a case."""
    if path == "sheds":
        yield from sheds(seed, count) if name == "selection" else ()
        return
    case, rng = CASES[name], np.random.default_rng(seed)
    if path == "budgets":
        yield from budgets(seed, case, rng, count)
        return
    world = World(seed)
    world.feed()
    yield from (allotments if path == "allotments" else hand_edits)(world, case, rng, count)


def shown(allotment: Allotment) -> str:
    return " ".join(
        f"{one.window_ms or '-'}" + ("" if one.percent is None else f"@{one.percent}%")
        for one in allotment.scans
    )
