"""Allocations against a search of a grid, against plain ones, and at their limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.overload.precision.aggregated import Aggregated
from engine.overload.precision.allocation import solve
from engine.overload.precision.baselines import equal, proportional
from engine.overload.precision.loss import loss_of
from engine.overload.precision.part_solver import Effort
from engine.overload.precision.precision import Precision
from engine.overload.precision.problem import Entity, EntityId, PlannedQuery, Problem
from engine.overload.precision.resources import MeasuredCurve
from engine.overload.precision.shape import (
    BaseInput,
    BloomDistinct,
    Deduplicated,
    Excepted,
    JoinLoss,
    LossNode,
    PlanShape,
    Remembered,
    Sampled,
    Selected,
    United,
    WindowCut,
)
from engine.overload.precision.solver_settings import DEFAULT
from tureen.errors import TureenError

WINDOWS = PlanShape(
    JoinLoss(
        BaseInput(), BaseInput(), WindowCut(MeasuredCurve.linear(60.0), 0, MeasuredCurve.linear(40.0), 1)
    ),
    2,
)
SAMPLE = PlanShape(Sampled(BaseInput(), 0), 1)
COUNT = PlanShape(Aggregated(Sampled(BaseInput(), 0), 1 / 400), 1)


def entity(name: str, bytes_: float, low: float = 0.0, **facts: object) -> Entity:
    return Entity(EntityId(name), "synopsis", low, bytes=bytes_, **facts)  # type: ignore[arg-type]


def query(name: str, shape: PlanShape, *entities: str, **facts: object) -> PlannedQuery:
    return PlannedQuery(name, shape, tuple(map(EntityId, entities)), **facts)  # type: ignore[arg-type]


def loss_at(problem: Problem, x: dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]) -> np.ndarray:
    """By definition, at many points."""
    total = np.zeros(1)
    for one in problem.queries:
        shares = np.stack([x[name] for name in one.entities])
        total = total + one.weight * loss_of(one.shape.at(shares), problem.fp_share)
    return total


def costs_at(problem: Problem, x: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    bytes_, cpu_ns = np.zeros(1), np.zeros(1)
    for one in problem.entities:
        scale = np.prod([x[name] for name in one.scaled_by], axis=0) if one.scaled_by else 1.0
        bytes_ = bytes_ + one.bytes * np.maximum(x[one.id] - one.held, 0.0) * scale
        cpu_ns = cpu_ns + one.cpu_ns * x[one.id] * scale
    return bytes_, cpu_ns


def best_of_grid(problem: Problem, points: int) -> float:
    axes = [np.linspace(one.low, one.high, points) for one in problem.entities]
    grid = np.array(list(product(*axes))).T
    x = {one.id: grid[place] for place, one in enumerate(problem.entities)}
    bytes_, cpu_ns = costs_at(problem, x)
    fits = np.ones(grid.shape[1], bool)
    if problem.budget_bytes is not None:
        fits &= bytes_ <= problem.budget_bytes
    if problem.budget_cpu_ns is not None:
        fits &= cpu_ns <= problem.budget_cpu_ns
    return float(np.min(np.where(fits, loss_at(problem, x), np.inf)))


def checked(problem: Problem, **facts: object) -> object:
    """Solve, and see that what is said of the allocation is so."""
    found = solve(problem, **facts)  # type: ignore[arg-type]
    x = {name: np.array([share]) for name, share in found.x.items()}
    for one in problem.entities:
        assert one.low - 1e-9 <= found.x[one.id] <= one.high + 1e-9
    bytes_, cpu_ns = costs_at(problem, x)
    assert found.bytes == pytest.approx(float(bytes_[0]), rel=1e-6, abs=1e-6)
    assert found.cpu_ns == pytest.approx(float(cpu_ns[0]), rel=1e-6, abs=1e-6)
    if found.fits and problem.budget_bytes is not None:
        assert bytes_[0] <= problem.budget_bytes * (1 + 1e-6) + 1e-6
    if found.fits and problem.budget_cpu_ns is not None:
        assert cpu_ns[0] <= problem.budget_cpu_ns * (1 + 1e-6) + 1e-6
    tolerant = replace(problem, queries=[one for one in problem.queries if not one.exact])
    assert found.loss == pytest.approx(float(loss_at(tolerant, x)[0]), rel=1e-6, abs=1e-9)
    return found


@dataclass(frozen=True, slots=True)
class Tabulated:
    """Its loss is a table, which need not fall."""

    slot: int
    fp: MeasuredCurve
    fn: MeasuredCurve

    def at(self, x: np.ndarray) -> Precision:
        return Precision(self.fp.at(x[self.slot]), self.fn.at(x[self.slot]))


ROOTS: list[tuple[LossNode, int]] = [
    (WINDOWS.root, 2),
    (JoinLoss(Sampled(BaseInput(), 0), Sampled(BaseInput(), 1)), 2),
    (
        JoinLoss(
            BaseInput(),
            BaseInput(),
            WindowCut(MeasuredCurve((0, 0.2, 1), (0, 70, 80)), 0, MeasuredCurve.linear(40), 1),
        ),
        2,
    ),
    (United((Sampled(BaseInput(), 0), Sampled(Selected(BaseInput()), 1)), (3.0, 1.0)), 2),
    (
        Excepted(
            Sampled(BaseInput(), 0),
            JoinLoss(BaseInput(), BaseInput(), WindowCut(MeasuredCurve.linear(1.0), 1)),
            0.4,
        ),
        2,
    ),
    (
        Deduplicated(
            Sampled(BaseInput(), 0), ((1, 0.5), (4, 0.5)), own=Remembered(1, MeasuredCurve((0, 1), (9, 0)), 5)
        ),
        2,
    ),
    (Deduplicated(Sampled(BaseInput(), 1), own=BloomDistinct(0, 8_000, 3, 900)), 2),
    (Aggregated(Sampled(Sampled(BaseInput(), 0), 1), 1 / 50), 2),
    # More is not always better.
    (
        Selected(
            JoinLoss(
                BaseInput(),
                Sampled(BaseInput(), 1),
                Tabulated(0, MeasuredCurve((0, 1), (0, 0.3)), MeasuredCurve((0, 0.5, 1), (1, 0.2, 0.3))),
            )
        ),
        2,
    ),
]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    count = draw(st.integers(1, 4))
    entities = [
        entity(
            f"e{place}",
            draw(st.floats(1.0, 100.0)),
            draw(st.sampled_from([0.0, 0.1, 0.3])),
            cpu_ns=draw(st.floats(1.0, 100.0)),
        )
        for place in range(count)
    ]
    queries = []
    for number in range(draw(st.integers(1, 4))):
        root, slots = draw(st.sampled_from(ROOTS))
        names = [f"e{draw(st.integers(0, count - 1))}" for _ in range(slots)]
        weight = draw(st.floats(0.1, 10.0))
        queries.append(query(f"q{number}", PlanShape(root, slots), *names, weight=weight))
    share = draw(st.floats(0.2, 0.95))
    least, most = ({one.id: np.array([end]) for one in entities} for end in (0.3, 1.0))
    probe = Problem(entities, queries)
    bytes_ = costs_at(probe, least)[0] * (1 - share) + costs_at(probe, most)[0] * share
    cpu_ns = costs_at(probe, least)[1] * (1 - share) + costs_at(probe, most)[1] * share
    both = draw(st.booleans())
    return replace(probe, budget_bytes=float(bytes_[0]), budget_cpu_ns=float(cpu_ns[0]) if both else None)


@given(problems())
def test_loss_is_within_a_hundredth_of_the_best_of_a_grid(problem: Problem) -> None:
    found = checked(problem)
    best = best_of_grid(problem, 13)
    assert found.loss <= best * 1.01 + 1e-6  # type: ignore[attr-defined]


@given(problems())
def test_loss_is_never_above_that_of_plain_allocations(problem: Problem) -> None:
    found = solve(problem)
    assert found.loss <= equal(problem).loss * 1.01 + 1e-6
    assert found.loss <= proportional(problem).loss * 1.01 + 1e-6


@given(problems(), st.data())
def test_bounds_are_kept_or_told_to_be_out_of_reach(problem: Problem, data: st.DataObject) -> None:
    shares = st.none() | st.sampled_from([0.0, 0.1, 0.3, 0.6])
    queries = [
        replace(
            one,
            max_fp=data.draw(shares),
            max_fn=data.draw(shares),
            max_error=data.draw(st.none() | st.sampled_from([0.05, 0.5])),
            exact=data.draw(st.booleans()) and data.draw(st.booleans()),
        )
        for one in problem.queries
    ]
    found = checked(replace(problem, queries=queries))
    for one in queries:
        if one.exact:
            assert all(found.x[name] == 1.0 for name in one.entities)  # type: ignore[attr-defined]
            continue
        outcome = found.expected[one.id]  # type: ignore[attr-defined]
        if one.id not in found.unreachable:  # type: ignore[attr-defined]
            assert one.max_fp is None or outcome.fp <= one.max_fp + 1e-4
            assert one.max_fn is None or outcome.fn <= one.max_fn + 1e-4
            assert one.max_error is None or outcome.error is None or outcome.error <= one.max_error + 1e-4


def test_all_get_everything_where_it_fits() -> None:
    problem = Problem([entity("a", 10.0), entity("b", 20.0)], [query("q", WINDOWS, "a", "b")], 30.0)
    found = solve(problem)
    assert dict(found.x) == {"a": 1.0, "b": 1.0}
    assert found.loss == 0.0
    assert found.rounds == 0


def test_linear_loss_fills_the_entity_that_saves_most_for_a_byte() -> None:
    # A byte of a saves 0.6 / 30 of the rows, one of b 0.4 / 10.
    problem = Problem([entity("a", 30.0), entity("b", 10.0)], [query("q", WINDOWS, "a", "b")], 25.0)
    found = solve(problem)
    assert found.x["b"] == pytest.approx(1.0, abs=1e-6)
    assert found.x["a"] == pytest.approx(0.5, abs=1e-6)
    assert found.expected["q"].fn == pytest.approx(0.3, abs=1e-6)
    assert found.expected["q"].fp == 0.0


def test_exact_query_is_served_in_full_before_others() -> None:
    problem = Problem(
        [entity("a", 10.0), entity("b", 10.0)],
        [
            query("exact", SAMPLE, "a", exact=True),
            query("beside", SAMPLE, "a"),
            query("heavy", SAMPLE, "b", weight=1e6),
        ],
        12.0,
    )
    found = solve(problem)
    assert found.x["a"] == 1.0
    assert found.x["b"] == pytest.approx(0.2)
    assert found.expected["exact"].fn == found.expected["beside"].fn == 0.0
    assert found.expected["heavy"].fn == pytest.approx(0.8)


def test_weightier_query_gets_more() -> None:
    entities = [entity("a", 10.0), entity("b", 10.0)]
    light, heavy = query("light", COUNT, "a"), query("heavy", COUNT, "b", weight=9.0)
    found = solve(Problem(entities, [light, heavy], 4.0))
    assert found.x["b"] > 2 * found.x["a"] > 0.0


def test_bounds_are_kept_before_losses_are_made_small() -> None:
    entities = [entity("a", 10.0), entity("b", 10.0)]
    queries = [query("light", SAMPLE, "a", weight=0.1, max_fn=0.4), query("heavy", SAMPLE, "b", weight=9.0)]
    found = solve(Problem(entities, queries, 10.0))
    assert found.unreachable == frozenset()
    assert found.expected["light"].fn <= 0.4 + 1e-5
    assert found.x["b"] == pytest.approx(0.4, abs=1e-4)


def test_least_weighty_bounds_are_given_up_where_not_all_can_be_kept() -> None:
    entities = [entity(name, 10.0) for name in "abc"]
    queries = [
        query("one", SAMPLE, "a", weight=1.0, max_fn=0.2),
        query("two", SAMPLE, "b", weight=2.0, max_fn=0.2),
        query("three", SAMPLE, "c", weight=3.0, max_fn=0.2),
    ]
    found = solve(Problem(entities, queries, 18.0))
    assert found.unreachable == {"one"}
    assert found.expected["two"].fn <= 0.2 + 1e-5
    assert found.expected["three"].fn <= 0.2 + 1e-5
    (refusal,) = found.refusals().values()
    assert refusal.code == "precision_unreachable"
    assert refusal.fn == found.expected["one"].fn
    assert "missing rows 100 %" in refusal.message
    worse = solve(Problem(entities, queries, 9.0))
    assert worse.unreachable == {"one", "two"}
    assert worse.expected["three"].fn <= 0.2 + 1e-5
    none = solve(Problem(entities, queries, 1.0))
    assert none.unreachable == {"one", "two", "three"}
    assert none.fits


def test_error_of_an_aggregate_is_bounded() -> None:
    entities = [entity("a", 10.0), entity("b", 10.0)]
    queries = [query("count", COUNT, "a", max_error=0.1), query("rows", SAMPLE, "b", weight=50.0)]
    found = solve(Problem(entities, queries, 12.0))
    assert found.expected["count"].error is not None
    assert found.expected["count"].error <= 0.1 + 1e-5
    # 1.96 sqrt((1 - q) / (400 q)) = 0.1
    assert found.x["a"] == pytest.approx(1 / (1 + 400 * (0.1 / 1.959964) ** 2), rel=1e-3)


def test_least_shares_are_given_where_nothing_fits() -> None:
    problem = Problem([entity("a", 10.0, 0.5)], [query("q", SAMPLE, "a")], 1.0)
    found = solve(problem)
    assert not found.fits
    assert found.x["a"] == 0.5


@pytest.mark.parametrize("budget", [0.0, 5.0])
def test_entity_that_an_exact_reader_holds_costs_no_bytes_below_that(budget: float) -> None:
    problem = Problem([entity("a", 10.0, held=0.5)], [query("q", SAMPLE, "a")], budget)
    assert solve(problem).x["a"] == pytest.approx(0.5 + budget / 10.0, abs=1e-6)


def test_costs_that_two_entities_decide_multiply() -> None:
    names = EntityId("rate"), EntityId("window")
    rate = Entity(names[0], "sampler", 0.1)
    window = Entity(names[1], "synopsis", 0.1, bytes=100.0, scaled_by=(names[0],))
    shape = PlanShape(Sampled(BaseInput(own=WindowCut(MeasuredCurve.linear(1.0), 1)), 0), 2)
    found = solve(Problem([rate, window], [query("q", shape, *names)], 25.0))
    assert found.x[names[0]] * found.x[names[1]] == pytest.approx(0.25, rel=1e-5)
    assert found.bytes == pytest.approx(25.0, rel=1e-5)


def test_equal_plans_over_their_own_entities_get_equal_shares() -> None:
    entities = [entity(f"e{place}", 10.0) for place in range(50)]
    queries = [query(f"q{place}", COUNT, f"e{place}") for place in range(50)]
    found = solve(Problem(entities, queries, 200.0))
    assert list(found.x.values()) == pytest.approx([0.4] * 50, abs=1e-6)
    assert found.bytes == pytest.approx(200.0)


def test_shared_entity_counts_once_with_the_losses_of_all_readers() -> None:
    entities = [entity("shared", 10.0), entity("own", 10.0)]
    queries = [query(f"q{place}", COUNT, "shared") for place in range(20)]
    found = solve(Problem(entities, [*queries, query("alone", COUNT, "own", weight=3.0)], 6.0))
    assert found.x["shared"] > found.x["own"]
    assert found.bytes == pytest.approx(6.0, rel=1e-6)


def many(parts: int) -> Problem:
    rng = np.random.default_rng(3)
    entities, queries = [], []
    for number in range(parts):
        root, slots = ROOTS[number % len(ROOTS)]
        names = [f"e{number}.{slot}" for slot in range(slots)]
        entities += [entity(name, float(rng.uniform(1, 100)), 0.05) for name in names]
        shape = PlanShape(root, slots)
        for place in range(5):
            weight = float(rng.uniform(0.1, 5))
            queries.append(query(f"q{number}.{place}", shape, *names, weight=weight))
    return Problem(entities, queries, 0.4 * sum(one.bytes for one in entities))


def test_parts_that_nothing_connects_are_as_good_as_solved_together() -> None:
    problem = many(6)
    apart = solve(problem, settings=replace(DEFAULT, together_max=0))
    together = solve(problem, settings=replace(DEFAULT, together_max=99, effort=Effort(starts=8)))
    assert apart.loss <= together.loss * 1.02
    assert apart.rounds <= 10


def test_problem_solved_again_from_its_solution_stays() -> None:
    problem = many(20)
    first = solve(problem)
    again = solve(problem, first)
    assert again.kept
    assert again.x == first.x
    assert again.expected == first.expected


def test_problem_changed_a_little_is_solved_from_the_last_solution() -> None:
    problem = many(20)
    first = solve(problem)
    queries = [replace(problem.queries[5], weight=500.0), *problem.queries[:5], *problem.queries[6:]]
    changed = replace(problem, queries=queries)
    again, anew = solve(changed, first), solve(changed)
    assert not again.kept
    assert again.loss <= anew.loss * 1.02


def test_gain_too_small_leaves_the_last_allocation() -> None:
    problem = many(20)
    first = solve(problem)
    queries = [replace(problem.queries[0], weight=problem.queries[0].weight * 1.001), *problem.queries[1:]]
    assert solve(replace(problem, queries=queries), first).kept


def test_smaller_budget_ends_the_last_allocation() -> None:
    problem = many(20)
    first = solve(problem)
    assert problem.budget_bytes is not None
    smaller = solve(replace(problem, budget_bytes=problem.budget_bytes * 0.9), first)
    assert not smaller.kept
    assert smaller.bytes <= problem.budget_bytes * 0.9 * (1 + 1e-6)


def test_solver_that_does_not_converge_leaves_the_last_allocation() -> None:
    problem = Problem(
        [entity("a", 10.0), entity("b", 7.0)],
        [query("one", COUNT, "a"), query("two", COUNT, "b", weight=3.0)],
        6.0,
    )
    first = solve(problem)
    assert first.converged
    stopped = replace(DEFAULT, effort=Effort(starts=1, iterations=1))
    second = solve(
        replace(problem, queries=[query("one", COUNT, "a", weight=1.1), problem.queries[1]]), first, stopped
    )
    assert not second.converged
    assert second.x == pytest.approx(first.x, abs=1e-6)
    assert second.fits


def test_query_of_no_entity_is_told_its_precision() -> None:
    found = solve(Problem([], [query("q", PlanShape(Sampled(BaseInput(), None, 0.25), 0))], 10.0))
    assert found.expected["q"].fn == 0.75
    assert found.x == {}


def test_nothing_to_allocate() -> None:
    assert solve(Problem([], [], 10.0)).loss == 0.0


@pytest.mark.parametrize(
    "facts",
    [{"low": -0.1}, {"low": 0.9, "high": 0.5}, {"bytes": float("nan")}, {"bytes": -1.0}, {"held": 2.0}],
)
def test_entity_out_of_range_is_refused(facts: dict[str, float]) -> None:
    with pytest.raises(TureenError):
        Entity(EntityId("e"), "queue", **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "facts",
    [
        {"weight": 0.0},
        {"weight": float("nan")},
        {"weight": float("inf")},
        {"max_fp": 1.5},
        {"max_fn": float("nan")},
        {"max_error": 0.0},
    ],
)
def test_query_out_of_range_is_refused(facts: dict[str, float]) -> None:
    with pytest.raises(TureenError):
        query("q", SAMPLE, "a", **facts)


def test_budget_out_of_range_and_names_that_are_not_there_are_refused() -> None:
    with pytest.raises(TureenError):
        Problem([], [], float("nan"))
    with pytest.raises(TureenError):
        Problem([], [], None, -1.0)
    with pytest.raises(ValueError, match="not there"):
        Problem([], [query("q", SAMPLE, "a")])
    with pytest.raises(ValueError, match="scaled by itself"):
        Problem([entity("a", 1.0, scaled_by=(EntityId("a"),))], [])
    with pytest.raises(ValueError, match="one id"):
        Problem([entity("a", 1.0), entity("a", 2.0)], [])
    with pytest.raises(ValueError, match="slots"):
        PlanShape(Sampled(BaseInput(), 1), 1)
