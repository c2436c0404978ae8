"""Mixed populations of predicates come and go while rows do: every slot's matches are what its predicate
says, whichever cohort serves it, and old views keep telling what they told.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import engine.domains.domain
import engine.stems.dense_filters
import engine.stems.new_queries
import engine.stems.placement
import engine.stems.segment
from engine.language.evaluate import truth
from engine.model.batch import Batch, concatenate
from engine.model.expressions import Expression
from engine.operators.scan import ScanAt
from engine.stems.data_stem import DataStem
from engine.stems.factors import factors
from engine.stems.query_stem import Added, QueryStem
from engine.stems.rows import Rows
from engine.store.matches.chunks import ChunkPool
from engine.store.matches.cohorts import SELECTIVE
from tests.capacities import small_engine
from tests.engine.query_stem import CREATE, predicate, table
from tests.strategies import examples


class World:
    """A Data SteM and a Query SteM, and what they should hold."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        binder = small_engine()
        binder.create(CREATE)
        self.binder = binder
        self.schema = binder.catalogue["s"].schema
        self.stem = QueryStem(self.schema)
        self.data = DataStem(self.schema, self.stem, chunks=ChunkPool(rows=8))
        self.held: list[tuple[Expression, int]] = []
        self.errors: Counter[int] = Counter()
        self.offset = 0

    def bind(self, text: str) -> Expression:
        bound = self.binder.prepare(f"SELECT k FROM s WHERE {text}").scan.predicate
        assert bound is not None
        return bound

    def add(self, count: int) -> None:
        texts = [predicate(self.rng) for _ in range(count)]
        bound = [self.binder.prepare(f"SELECT k FROM s WHERE {text}").scan.predicate for text in texts]
        predicates = [each for each in bound if each is not None]
        if self.held and self.rng.random() < 0.5:
            predicates.append(self.rng.choice(self.held)[0])
        self.put(predicates)

    def put(self, predicates: list[Expression]) -> Added:
        """Queries with these predicates come."""
        added = self.stem.add(predicates)
        if added.fresh:
            self.data.owed.backfill(added.fresh)
        self.held.extend(zip(predicates, added.slots, strict=True))
        for slot in added.fresh:
            self.errors[slot] = 0
        batches = [batch for _, batch in self.data.rows().slices(self.data.base, self.data.end)]
        if batches and added.fresh:
            self.count(concatenate(self.schema, batches), set(added.fresh))
        return added

    def count(self, batch: Batch, slots: set[int]) -> None:
        for bound, slot in {slot: (bound, slot) for bound, slot in self.held if slot in slots}.values():
            _, error = truth(bound, batch.columns, len(batch))
            self.errors[slot] += 0 if error is None else int(error.sum())

    def remove(self, count: int) -> None:
        for _ in range(min(count, len(self.held))):
            _, slot = self.held.pop(self.rng.randrange(len(self.held)))
            self.stem.remove([slot])

    def append(self, n: int) -> None:
        stamps = np.arange(self.offset, self.offset + n)
        rows = Batch.from_arrow(self.schema, table(self.rng, n), np.zeros(n), stamps, stamps)
        self.offset += n
        self.data.append(rows)
        self.count(rows, {slot for _, slot in self.held})

    def drop(self, n: int) -> None:
        self.data.drop_below(min(self.data.end, self.data.base + n))

    def check(self) -> None:
        self.stem._check()
        self.data._check()
        matches(self.data.rows(), self.held)
        for _, slot in self.held:
            assert self.stem.slots.errors[slot] == self.errors[slot]


def matches(rows: Rows, held: list[tuple[Expression, int]]) -> None:
    """Every slot against the evaluation of its predicate, and what a scan makes of what is kept and owed."""
    scan = ScanAt.now(rows, 0, None)
    owed = {slot for part in rows.parts for slot in part.matches.owed}
    for bound, slot in [one for one in held if one[1] in owed]:
        at = scan.with_slots({bound: slot}.get)
        found = [(part.first + where).tolist() for part, where in at.matching(bound, rows.base, rows.end)]
        expected = [
            (first + np.flatnonzero(truth(bound, batch.columns, len(batch))[0])).tolist()
            for first, batch in rows.slices(rows.base, rows.end)
        ]
        assert found == [one for one in expected if one]
        assert at.count(bound, rows.base, rows.end) == sum(map(len, expected))
    for part, first, last in rows.ranges(rows.base, rows.end):
        batch = part.batch(rows.schema)
        held_now = [(bound, slot) for bound, slot in held if slot not in part.matches.owed]
        for bound, slot in held_now:
            true, _ = truth(bound, batch.columns, part.n)
            wanted = [row for row in np.flatnonzero(true).tolist() if first <= row < last]
            found = part.rows_of(slot, first, last)
            assert found.tolist() == wanted, (bound, slot, part.matches.cohorts.of(slot))
            assert part.count_of(slot, first, last) == len(wanted)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments, blocks and samples of a few, so that all of them fill; a coarse idea of what is selective."""
    monkeypatch.setattr(engine.stems.segment, "SEGMENT_ROWS", 24)
    monkeypatch.setattr(engine.stems.placement, "SHARE_MAX", 0.15)
    monkeypatch.setattr(engine.stems.placement, "REVISION_GAIN", 1.2)
    monkeypatch.setattr(engine.stems.placement, "PATH_MIN", 2)
    monkeypatch.setattr(engine.stems.placement, "SAMPLE_MIN", 10)
    monkeypatch.setattr(engine.stems.placement, "REVISED_EVERY", 1)
    monkeypatch.setattr(engine.stems.placement, "REVISED_SLOTS", 7)
    monkeypatch.setattr(engine.stems.new_queries, "SCANNED_MAX", 3)
    monkeypatch.setattr(engine.stems.dense_filters, "BLOCK_INTERVALS_MAX", 60)
    monkeypatch.setattr(engine.domains.domain, "STEP", 64)
    monkeypatch.setattr(engine.domains.domain, "NEAR", 4)


@given(
    st.integers(0, 2**32),
    st.lists(st.tuples(st.sampled_from("aaarppppdoo"), st.integers(1, 12)), max_size=14),
)
@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_population(seed, steps):
    world = World(seed)
    for step, count in steps:
        match step:
            case "a":
                world.add(count)
            case "r":
                world.remove(count)
            case "p":
                world.append(2 * count)
            case "d":
                world.drop(count)
            case "o":
                for _ in range(count):
                    world.data.owed.catch_up_some()
        world.check()
    if steps and steps[0][1] % 2:
        world.data.owed.catch_up_all()
        assert not any(part.matches.owed for part in world.data.rows().parts)
        world.check()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_many_in_both_cohorts_and_old_views(seed):
    world = World(seed)
    views: list[tuple[Rows, list[tuple[Expression, int, int]]]] = []
    for _ in range(12):
        world.add(40)
        world.append(30)
        world.remove(25)
        world.drop(10)
        generations = world.stem.slots.generations
        views.append(
            (world.data.rows(), [(bound, slot, int(generations[slot])) for bound, slot in world.held])
        )
        for rows, held in views[-4:]:
            same = [(bound, slot) for bound, slot, born in held if world.stem.slots.generations[slot] == born]
            matches(rows, same)
    world.check()
    world.data.owed.catch_up_all()
    world.check()
    places = [world.stem.cohorts.of(slot) for _, slot in world.held]
    assert any(place == SELECTIVE for place in places)
    assert any(place != SELECTIVE for place in places)
    assert any(factors(bound).residuals for bound, _ in world.held)
    assert any(len(factors(bound).terms) > 1 for bound, _ in world.held)
    facts = [world.stem.explain(slot) for _, slot in world.held]
    assert {fact["cohort"] for fact in facts} == {"dense", "selective"}
    assert all(fact["regions"] or fact["terms"] == 0 or fact["residual_modules"] for fact in facts)


def test_a_population_that_goes_leaves_nothing():
    world = World(5)
    world.append(60)
    sizes = []
    for _ in range(6):
        world.add(60)
        world.append(30)
        world.remove(1_000)
        world.drop(30)
        sizes.append(world.stem.nbytes())
    assert sizes[-1] <= 2 * sizes[1]
    world.append(60)
    assert world.stem.words == 0
    assert not world.stem.residuals
    assert not world.stem.placement.selective.paths
    world.check()


def test_errors_are_counted_alike_in_both_cohorts():
    world = World(9)
    world.append(50)
    dense, selective = (world.bind(f"{text} AND 10 / (k % 3) > 2") for text in ("b IS NULL", "v = 7"))
    for number in range(3):  # so that there is a path
        world.stem.add([world.bind(f"v = {number} AND k > 1")])
    added = world.put([dense, selective])
    assert [world.stem.explain(slot)["cohort"] for slot in added.slots] == ["dense", "selective"]
    for _ in range(8):
        world.append(100)
    errors = [0, 0]
    for part in world.data.rows().parts:
        batch = part.batch(world.schema)
        for i, (bound, _) in enumerate(world.held):
            _, error = truth(bound, batch.columns, part.n)
            errors[i] += 0 if error is None else int(error.sum())
    assert [int(world.stem.slots.errors[slot]) for slot in added.slots] == errors
    assert all(errors)
    world.check()


def test_always_and_never_come_together():
    world = World(6)
    world.append(30)
    predicates = [world.bind(text) for text in ("k = k OR TRUE", "v = 1 AND v = 2", "TRUE", "FALSE", "NULL")]
    world.put(predicates)
    world.append(30)
    world.check()


def test_a_path_is_made_when_enough_predicates_wait_for_it():
    world = World(4)
    for key in range(3):
        world.put([world.bind(f"k = {key} AND v > 3")])
        world.append(100)
        world.check()
        cohorts = [world.stem.explain(slot)["cohort"] for _, slot in world.held]
        assert cohorts == (["dense"] if not key else ["selective"] * (key + 1))
    assert world.stem.words == 1  # rows from before the move still have its bit
    world.drop(300)
    world.append(60)
    assert world.stem.words == 0
    world.check()


def test_strings_in_any_order_keep_their_labels_apart():
    """Constants that come ascending, descending and between make labels be dealt anew; nothing is lost."""
    world = World(3)
    world.append(40)
    orders = [range(120), reversed(range(120)), range(60, 180)]
    for number, order in enumerate(orders):
        texts = [f"t > 'a{number}{i:04}' AND t <= 'b'" for i in order]
        for one in [world.bind(text) for text in texts]:
            world.put([one])
        world.append(20)
        world.check()
        world.remove(100)
    world.remove(10_000)
    world.add(5)
    world.check()
