"""Precision predicted and found, and what an optimal division of memory saves against plain ones.

10,000 queries of 100 shapes: joins of two streams whose windows and samples may be given less, below
selections, DISTINCT, EXCEPT and aggregates, with weights of 1 to 4; the budget is 40 % of what exactness
takes. `optimal` is what STREAM's allocation gives (engine.overload.precision), `equal` gives every entity as
many bytes, `proportional` every entity the same share. Losses are sums over queries of weight * (FP + FN) /
2, or weight * error of aggregates, and given by weight here. Then random problems of up to four entities are
compared with a search of a grid.

Solving again, after one query changed its weight, one left and a rate rose by a tenth, starts from the last
solution.

Precision as found: each case of benchmarks/precision_runs.py in an engine.

Figures: `loss.optimal`, `loss.equal`, `loss.proportional`, `loss_ratio_to_grid` (largest), `solve_ms`,
`resolve_ms` (median), `resolve_ms.max`, `error_fp.max`, `error_fn.max`, and `error_fp.<case>`,
`error_fn.<case>`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from itertools import product

import numpy as np

from benchmarks.precision_runs import CASES, run_case
from benchmarks.report import Figure, Report
from engine.overload.precision.aggregated import Aggregated
from engine.overload.precision.allocation import solve
from engine.overload.precision.baselines import equal, proportional
from engine.overload.precision.loss import loss_of
from engine.overload.precision.problem import Allocation, Entity, EntityId, PlannedQuery, Problem
from engine.overload.precision.resources import MeasuredCurve
from engine.overload.precision.shape import (
    BaseInput,
    Deduplicated,
    Excepted,
    JoinLoss,
    LossNode,
    PlanShape,
    Sampled,
    Selected,
    WindowCut,
)

BUDGET = 0.4
GRID = 13
RESOLVED = 12


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--queries", type=int, default=10_000, help="all (default: %(default)s)")
    parser.add_argument("--shapes", type=int, default=100, help="among so many (default: %(default)s)")
    parser.add_argument("--problems", type=int, default=60, help="beside a grid (default: %(default)s)")
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES], help="all by default")


def run(options: argparse.Namespace) -> Report:
    """Losses and times, the grid, then runs of the engine."""
    rng = np.random.default_rng(options.seed)
    problem = make_problem(rng, options.queries, options.shapes)
    solve(make_problem(rng, 8, 4))  # what is loaded at its first use is no part of a solution
    began = time.perf_counter()
    best = solve(problem)
    figures: dict[str, Figure] = {"solve_ms": (time.perf_counter() - began) * 1e3}
    weight = sum(query.weight for query in problem.queries)
    for name, found in (
        ("optimal", best),
        ("equal", equal(problem)),
        ("proportional", proportional(problem)),
    ):
        check(problem, found)
        figures[f"loss.{name}"] = found.loss / weight
    print(f"{figures}")
    times = [resolved(problem, best, change) for change in range(RESOLVED)]
    figures["resolve_ms"] = float(np.median(times))
    figures["resolve_ms.max"] = max(times)
    figures["loss_ratio_to_grid"] = max(ratio_to_grid(rng) for _ in range(options.problems))
    errors = []
    for case in CASES:
        if options.cases is None or case.name in options.cases:
            found_case = run_case(case, options.seed)
            errors.append(found_case.errors)
            name = case.name.lower().replace(", ", "_").replace(" ", "_")
            figures[f"error_fp.{name}"], figures[f"error_fn.{name}"] = found_case.errors
            print(f"{case.name}: predicted {found_case.predicted}, found {found_case.found}")
    figures["error_fp.max"] = max(fp for fp, _ in errors)
    figures["error_fn.max"] = max(fn for _, fn in errors)
    return Report(figures)


def make_problem(rng: np.random.Generator, queries: int, shapes: int) -> Problem:
    """Each shape has a sampler and a synopsis for either stream, which its queries share."""
    entities: list[Entity] = []
    plans = []
    for number in range(shapes):
        names = tuple(EntityId(f"{number}.{part}") for part in range(4))
        for place, name in enumerate(names):
            synopsis = place >= 2
            entities.append(
                Entity(
                    name,
                    "synopsis" if synopsis else "sampler",
                    0.05,
                    bytes=float(rng.uniform(1e5, 1e7)) if synopsis else 0.0,
                    cpu_ns=float(rng.uniform(1e5, 1e7)),
                    scaled_by=(names[place - 2],) if synopsis else (),
                )
            )
        plans.append((PlanShape(_root(rng, number), 4), names))
    asked = [
        PlannedQuery(f"q{place}", *plans[place % shapes], weight=float(rng.integers(1, 5)))
        for place in range(queries)
    ]
    return Problem(entities, asked, BUDGET * sum(entity.bytes for entity in entities))


def _root(rng: np.random.Generator, number: int) -> LossNode:
    left, right = rng.uniform(50, 500, 2)
    ages = MeasuredCurve((0.0, 0.3, 1.0), (0.0, left * rng.uniform(0.3, 0.8), left))
    cut = WindowCut(ages, 2, MeasuredCurve.linear(right), 3)
    joined = JoinLoss(Sampled(BaseInput(), 0), Sampled(BaseInput(), 1), cut)
    match number % 4:
        case 0:
            return Selected(joined)
        case 1:
            return Deduplicated(joined, ((1, 0.5), (3, 0.5)))
        case 2:
            return Excepted(
                joined, JoinLoss(BaseInput(), BaseInput(), WindowCut(MeasuredCurve.linear(1.0), 3)), 0.3
            )
        case _:
            return Aggregated(joined, 1 / rng.uniform(100, 10_000))


def check(problem: Problem, found: Allocation) -> None:
    """Whether an allocation fits, and its loss is what it says. Raises RuntimeError."""
    loss = 0.0
    by_plan: dict[tuple[PlanShape, tuple[EntityId, ...]], float] = {}
    for query in problem.queries:
        key = query.shape, query.entities
        by_plan[key] = by_plan.get(key, 0.0) + query.weight
    for (shape, names), weight in by_plan.items():
        x = np.array([[found.x[name]] for name in names])
        loss += weight * float(loss_of(shape.at(x), problem.fp_share)[0])
    taken = sum(
        entity.bytes * found.x[entity.id] * np.prod([found.x[name] for name in entity.scaled_by])
        for entity in problem.entities
    )
    if abs(loss - found.loss) > 1e-6 * max(1.0, loss):
        raise RuntimeError(f"a loss of {found.loss} is {loss}")
    if problem.budget_bytes is not None and taken > problem.budget_bytes * (1 + 1e-6):
        raise RuntimeError(f"{taken} bytes are more than {problem.budget_bytes}")


def resolved(problem: Problem, last: Allocation, change: int) -> float:
    """ms that it takes to solve again."""
    queries, entities = list(problem.queries), list(problem.entities)
    place = change * 83 % len(queries)
    match change % 3:
        case 0:
            queries[place] = replace(queries[place], weight=50.0)
        case 1:
            del queries[place]
        case _:
            entity = entities[change * 7 % len(entities)]
            entities[change * 7 % len(entities)] = replace(entity, bytes=entity.bytes * 1.1)
    began = time.perf_counter()
    changed = replace(problem, queries=queries, entities=entities)
    found = solve(changed, last)
    ms = (time.perf_counter() - began) * 1e3
    check(changed, found)
    return ms


def ratio_to_grid(rng: np.random.Generator) -> float:
    """Loss found for a random problem of one shape, relative to the least loss where all of a grid's values
    of its four shares are tried.
    """
    problem = make_problem(rng, int(rng.integers(1, 6)), 1)
    whole = sum(entity.bytes for entity in problem.entities)
    budget = float(rng.uniform(0.2, 0.9)) * whole
    found = solve(replace(problem, budget_bytes=budget))
    shares = np.array(list(product(np.linspace(0.05, 1.0, GRID), repeat=4))).T
    first, second = (entity.bytes for entity in problem.entities[2:])
    fits = first * shares[2] * shares[0] + second * shares[3] * shares[1] <= budget
    weight = sum(query.weight for query in problem.queries)
    losses = weight * loss_of(problem.queries[0].shape.at(shares), problem.fp_share)
    return found.loss / float(np.min(losses[fits]))
