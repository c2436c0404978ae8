"""Whatever the route, the answers are the same: every order of modules, every policy, fused and split."""

from __future__ import annotations

import random
from itertools import permutations

import numpy as np
import pytest

from engine.eddy.choices import POLICIES
from engine.eddy.fusing import FUSING
from engine.eddy.policies import FixedOrder
from engine.language.functions import FunctionCatalogue
from engine.language.user_functions import user_function
from engine.model.user_calls import FunctionMeter
from tests.eddy.matched import Matched, rows
from tests.engine.query_stem import CREATE, predicate, table

PLAN = [
    "a > 3",
    "a > 7 AND b < 5",
    "a > 2 AND c < 8.5 AND 10 / b > 2",
    "b < 2 OR c > 10 AND a < 3",
    "(a = 5 OR t = 'ab' OR a > 8) AND 10 / b > 2",
    "t LIKE 'a%' AND a + b > 11",
    "a IS NULL OR b = 7",
    "a > 5 AND a < 3",
]


def test_every_order_on_a_small_plan():
    """Four filters and two residuals, one of which divides by zero: all 720 orders."""
    matched = Matched(PLAN)
    batch = matched.batch(rows(3, 64, 12))
    wanted, errors = matched.match(batch)
    assert wanted == matched.expected(batch)
    assert sum(errors) > 0
    assert sum(each.errors for each in matched.stem.eddy.statistics()) > 0
    kept = matched.kept(batch)
    eddy = matched.stem.eddy
    eddy.set_attribute("grouped_filters", "split")
    assert matched.match(batch) == (wanted, errors)
    names = [each.name for each in eddy.statistics()]
    assert len(names) == 6
    for order in permutations(names):
        eddy.policy = FixedOrder(order)
        assert matched.kept(batch) == kept, order


@pytest.mark.parametrize("seed", range(3))
def test_routes_agree_on_populations(seed):
    """Predicates of all sorts, more than a block of them; routes change from batch to batch."""
    rng = random.Random(seed)
    texts = [predicate(rng) for _ in range(40 if seed else 520)]
    fixed, changing = Matched(texts, CREATE), Matched(texts, CREATE)
    fixed.stem.eddy.set_attribute("grouped_filters", "fused")
    for n in (1, 700, 64):
        batch = fixed.batch(table(rng, n))
        expected = fixed.kept(batch)
        for policy in POLICIES:
            for mode in FUSING:
                changing.stem.eddy.set_attribute("policy", policy)
                changing.stem.eddy.set_attribute("grouped_filters", mode)
                assert changing.kept(batch) == expected
    gone = rng.sample(range(len(texts)), len(texts) // 2)
    for stem in (fixed.stem, changing.stem):
        stem.remove([fixed.slots[i] for i in gone])
        stem._check()
    standing = [i for i in range(len(texts)) if fixed.stem.slots.holders[fixed.slots[i]]]
    batch = fixed.batch(table(rng, 300))
    changing.stem.eddy.set_attribute("grouped_filters", "split")
    (before, _), (after, _) = fixed.match(batch), changing.match(batch)
    assert all(before[fixed.slots[i]] == after[fixed.slots[i]] for i in standing)


def test_rows_that_nobody_wants_are_spared_the_rest():
    matched = Matched(["a < 10 AND b < 50 AND c < 50.0", "a < 10 AND b < 20"])
    eddy = matched.stem.eddy
    eddy.set_attribute("grouped_filters", "split")
    eddy.policy = FixedOrder(["filter on a", "filter on b", "filter on c"])
    batch = matched.batch(rows(1, 4_000))
    matched.match(batch)
    a, b = (batch.columns[place] for place in (0, 1))
    by_a = (a.values < 10) & a.valid
    by_b = by_a & (b.values < 50) & b.valid
    found = {each.name: each for each in eddy.statistics()}
    assert found["filter on a"].given == 4_000
    assert found["filter on a"].killed == 4_000 - by_a.sum()
    assert found["filter on b"].given == by_a.sum()
    assert found["filter on c"].given == by_b.sum()
    assert [found[name].queries for name in ("filter on a", "filter on b", "filter on c")] == [2, 2, 1]
    assert eddy.visits == 3


def test_a_row_with_its_answer_leaves():
    """What passes a alone is done for the first query; c is only for those that b let pass."""
    matched = Matched(["a < 50", "a < 50 AND b < 30 AND c < 50.0"])
    eddy = matched.stem.eddy
    eddy.set_attribute("grouped_filters", "split")
    eddy.policy = FixedOrder(["filter on b", "filter on a", "filter on c"])
    batch = matched.batch(rows(2, 3_000))
    found, _ = matched.match(batch)
    assert found == matched.expected(batch)
    given = {each.name: each.given for each in eddy.statistics()}
    a, b = (batch.columns[place] for place in (0, 1))
    both = (a.values < 50) & a.valid & (b.values < 30) & b.valid
    assert given == {"filter on b": 3_000, "filter on a": 3_000, "filter on c": int(both.sum())}


def test_an_expensive_function_waits_for_the_cheap():
    """Work alone tells, without a timer: a residual that ends as much as a filter comes after it."""
    matched = Matched(["a < 10", "a * a + b * b < 100 AND a < 10"])
    eddy = matched.stem.eddy
    eddy.set_attribute("grouped_filters", "split")
    for seed in range(30):
        matched.match(matched.batch(rows(seed, 1_000)))
    filter_on_a, residual = eddy.statistics()
    assert (filter_on_a.name, residual.name) == ("filter on a", "residual-1")
    assert filter_on_a.given == 30_000
    assert residual.given < 6_000


def test_a_function_that_takes_long_comes_late():
    """The time of a visit is measured where there is a timer; here functions themselves move the clock on."""
    clock = [0]

    def slow(a: int) -> bool:
        clock[0] += 50_000
        return a < 50

    def quick(b: int) -> bool:
        clock[0] += 1_000
        return b < 50

    functions = FunctionCatalogue(
        user_function(call.__name__, ["INTEGER"], "BOOLEAN", call, deterministic=True)
        for call in (slow, quick)
    )
    matched = Matched(["slow(a) AND quick(b)"], functions=functions)
    eddy = matched.stem.eddy
    eddy.timer = lambda: clock[0]
    for seed in range(30):
        matched.match(matched.batch(rows(seed, 200)))
    first, second = eddy.statistics()
    assert first.given > 1.5 * second.given
    assert first.cost / first.given < second.cost / second.given / 10
    before = second.given
    batch = matched.batch(rows(99, 200))
    found, _ = matched.match(batch)
    assert found == matched.expected(batch)
    assert eddy.statistics()[1].given - before < 150


@pytest.mark.parametrize("policy", ["tickets", "optimal", "a-greedy"])
@pytest.mark.parametrize("mode", FUSING)
def test_a_function_of_a_millisecond_sees_what_the_cheap_leaves_from_its_first_batch(policy, mode):
    """Nothing is known of it before, and a batch of all rows would take four seconds."""
    clock = [0]

    def slow(a: int) -> bool:
        clock[0] += 1_000_000
        return a < 3

    functions = FunctionCatalogue(
        [
            user_function(
                "slow",
                ["INTEGER"],
                "BOOLEAN",
                slow,
                deterministic=True,
                meter=FunctionMeter(lambda: clock[0]),
            )
        ]
    )
    texts = ["slow(a) AND b < 2", "slow(a) AND b < 2 AND a + c > 20 AND c + b > 3", "a < 5 AND c < 9.5"]
    matched = Matched(texts, functions=functions)
    eddy = matched.stem.eddy
    eddy.timer = lambda: clock[0]
    eddy.set_attribute("policy", policy)
    eddy.set_attribute("grouped_filters", mode)
    called = 0
    for seed in range(4):
        batch = matched.batch(rows(seed, 4_000))
        found, _ = matched.match(batch)
        called += int(((batch.columns[1].values < 2) & batch.columns[1].valid).sum())
        calls_ns, clock[0] = clock[0], 0
        assert found == matched.expected(batch)
        assert calls_ns <= 1_000_000 * called
        clock[0] = 0
    given = {each.name: each.given for each in eddy.statistics()}
    assert 0 < given["residual-1 SLOW"] <= called < 600
    (module,) = (each for each in eddy.statistics() if each.name == "residual-1 SLOW")
    assert module.cost / module.given > 900_000


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_for_which_a_function_raises_are_told_of_its_module(policy):
    def strict(a: int) -> bool:
        if a % 7 == 0:
            raise ValueError
        return a > 20

    functions = FunctionCatalogue([user_function("strict", ["INTEGER"], "BOOLEAN", strict)])
    matched = Matched(["strict(a)", "strict(a) AND a * 2 > b"], functions=functions)
    eddy = matched.stem.eddy
    eddy.set_attribute("policy", policy)
    erring = 0
    for seed in range(5):
        batch = matched.batch(rows(seed, 500))
        matched.match(batch)
        a = batch.columns[0]
        erring += int(((a.values % 7 == 0) & a.valid).sum())
    (module,) = (each for each in eddy.statistics() if each.name.endswith(" STRICT"))
    assert module.errors == erring


def test_what_is_known_of_a_function_holds_for_a_new_query_that_calls_it():
    clock = [0]

    def slow(a: int) -> int:
        clock[0] += 1_000_000
        return a

    meter = FunctionMeter(lambda: clock[0])
    functions = FunctionCatalogue([user_function("slow", ["INTEGER"], "INTEGER", slow, meter=meter)])
    matched = Matched(["slow(a) > 3 AND b < 2"], functions=functions)
    matched.match(matched.batch(rows(1, 400)))
    assert meter.cost_ns == 1_000_000
    other = Matched(["slow(a) < 3 AND b * b < 4"], functions=functions)
    other.stem.eddy.timer = lambda: clock[0]
    batch = other.batch(rows(2, 4_000))
    other.match(batch)
    (first, second) = other.stem.eddy.statistics()
    assert first.given == 4_000
    assert second.name.endswith(" SLOW")
    assert second.given < 400
    assert second.cost >= 900_000 * second.given


def test_a_module_that_goes_is_forgotten():
    matched = Matched(["a < 50 AND a + b > 3", "b < 5"])
    eddy = matched.stem.eddy
    eddy.set_attribute("grouped_filters", "split")
    matched.match(matched.batch(rows(1, 100)))
    assert {each.name for each in eddy.statistics()} == {"filter on a", "filter on b", "residual-1"}
    matched.stem.remove([matched.slots[0]])
    matched.stem.add([matched.predicates[1]])
    matched.match(matched.batch(rows(2, 100)))
    matched.stem.remove([matched.slots[1]])
    assert {each.name for each in eddy.statistics()} <= {"filter on a", "filter on b"}


def test_without_rows_or_queries():
    empty = Matched([])
    empty.stem.eddy.set_attribute("grouped_filters", "split")
    assert empty.match(empty.batch(rows(1, 10))) == ({}, [0] * 64)
    some = Matched(["a < 5"])
    some.stem.eddy.set_attribute("grouped_filters", "split")
    found, _ = some.match(some.batch(rows(1, 0)))
    assert found == {some.slots[0]: []}


def test_attributes_are_refused_by_name():
    eddy = Matched([]).stem.eddy
    for name, value in [("policy", "clairvoyant"), ("grouped_filters", "half"), ("visits", "3")]:
        with pytest.raises(KeyError):
            eddy.set_attribute(name, value)
    assert np.isfinite(eddy.visits)
