"""Shares for all entities that make the sum of losses small within the budgets (STREAM, section 5.3).

The paper solves one query. Many are solved so (derived here): equal plans are one group of variables, the
budget is split over the parts that no entity connects by marginal loss per unit of cost, each part is solved
with its share, and again, until the total moves by less than 0.1 % or after 10 rounds. Exact queries are
served first, in full. Where bounds cannot all be kept, those of the least weighty queries are given up.

With two budgets, cost is a weighted mean of both (surrogate constraint), the weight found by bisection.
Deterministic. Cost: O(queries) and, for each part that changed, some ten local solves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.overload.precision.grouping import Group, VariablePart, parts_of
from engine.overload.precision.loss import loss_of
from engine.overload.precision.part_functions import PartFunctions
from engine.overload.precision.part_solver import (
    BROKEN,
    POLISH,
    QUICK,
    ROUNDING,
    WHOLE,
    Effort,
    LinearLimit,
    Solution,
    best_of,
    cheapest,
    slope_at,
)
from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import (
    Allocation,
    Curve,
    EntityId,
    Outcome,
    Problem,
    QueryId,
    Solved,
)
from engine.overload.precision.shape import PrecisionFlow
from engine.overload.precision.split import between, hull_of, split

MEMORY_MAX = 12
"""So many solved points of a part are remembered."""

SEEDS = (0.5, 0.75, 0.25)
"""Shares of what lies between the least and the greatest cost of a part, at which it is solved first."""

NARROW = 0.6
"""On segments up to this share of a part's costs, what lies between two solved points needs no solving."""

BESIDE = 1e-3
"""A point that costs less than the share of a part by so much of its costs is taken for solved with it."""

WIDE = 0.05
"""A segment of this share of a part's costs is worth looking into."""


@dataclass(frozen=True, slots=True)
class SolverSettings:
    """rounds, settled: when the split is done: after so many, or when the total moves by less than this share
    of it. together_max: up to so many free variables are solved as one part. polished_max: up to so many are
    solved as one part from what the split gave, which divides no part well whose loss is concave. gain_min:
    by this share of the last loss a new allocation must be better, or the last stays (hysteresis).
    """

    rounds: int = 10
    settled: float = 1e-3
    together_max: int = 8
    polished_max: int = 24
    gain_min: float = 0.02
    effort: Effort = WHOLE
    effort_many: Effort = QUICK


DEFAULT = SolverSettings()


def solve(
    problem: Problem, previous: Allocation | None = None, settings: SolverSettings = DEFAULT
) -> Allocation:
    """The allocation. previous: of the last time, from which it starts, of whatever problem."""
    parts = parts_of(problem, settings.together_max)
    found = _Solver(problem, parts, previous, settings).allocation()
    free = sum(int(np.sum(part.high > part.low)) for part in parts)
    if found.rounds == 0 or found.kept or free > settings.polished_max:
        return found
    whole = replace(settings, together_max=free, gain_min=0.0, effort=POLISH)
    polished = _Solver(problem, parts_of(problem, free), found, whole).allocation()
    return replace(polished, rounds=found.rounds, memory=found.memory, kept=False)


@dataclass(slots=True)
class _State:
    """Holds what is known of one part while a problem is solved. begin: points at which its solves start.
    points: solved points. unit: what a byte and a ns cost in these. known: the points come from the last
    allocation and the part is unchanged, so that it need not be solved again.
    """

    functions: PartFunctions
    begin: tuple[FloatArray, ...]
    points: list[Solved] = field(default_factory=list)
    known: bool = False
    unit: tuple[float, float] | None = None


class _Solver:
    def __init__(
        self,
        problem: Problem,
        parts: Sequence[VariablePart],
        previous: Allocation | None,
        settings: SolverSettings,
    ) -> None:
        self._problem = problem
        self._parts = parts
        self._previous = previous
        self._settings = settings
        self._converged = True
        self._rounds = 0

    def allocation(self) -> Allocation:
        """As the settings ask."""
        states = self._states(frozenset())
        highest = [part.high for part in self._parts]
        if self._fits(states, highest) and self._is_lossless(states, highest):
            return self._result(states, highest, frozenset())
        given_up = self._unreachable(states)
        if given_up:
            states = self._states(given_up)
        found = self._balanced(states)
        if not self._converged and (last := self._last(states)) is not None and self._fits(states, last):
            found = min(found, last, key=lambda xs: self._loss(states, xs))
        return self._result(states, found, given_up)

    def _states(self, given_up: frozenset[QueryId]) -> list[_State]:
        last = None if self._previous is None else self._previous.x
        return [
            _State(PartFunctions(part, self._problem.fp_share, given_up), _begin(part, last))
            for part in self._parts
        ]

    # --- limits -----------------------------------------------------------------------------------

    def _limits(self) -> list[LinearLimit]:
        """Returns a limit for each budget that there is, in shares of the budget; a budget of 0 allows what
        costs nothing.
        """
        found = []
        if (budget := self._problem.budget_bytes) is not None:
            found.append(LinearLimit(1.0 / budget, 0.0, 1.0) if budget else LinearLimit(1.0, 0.0, 0.0))
        if (budget := self._problem.budget_cpu_ns) is not None:
            found.append(LinearLimit(0.0, 1.0 / budget, 1.0) if budget else LinearLimit(0.0, 1.0, 0.0))
        return found

    def _fits(self, states: Sequence[_State], xs: Sequence[FloatArray]) -> bool:
        return all(_total(states, xs, limit) <= limit.most * (1.0 + 1e-9) + 1e-12 for limit in self._limits())

    def _is_lossless(self, states: Sequence[_State], xs: Sequence[FloatArray]) -> bool:
        return all(
            state.functions.loss(x[:, None])[0] <= 1e-12 and state.functions.excess(x[:, None])[0] <= 0.0
            for state, x in zip(states, xs, strict=True)
        )

    def _loss(self, states: Sequence[_State], xs: Sequence[FloatArray]) -> float:
        return float(sum(state.functions.loss(x[:, None])[0] for state, x in zip(states, xs, strict=True)))

    # --- bounds that cannot be kept ---------------------------------------------------------------

    def _unreachable(self, states: Sequence[_State]) -> frozenset[QueryId]:
        """The queries whose bounds are given up, the least weighty ones."""
        bounded = [group for state in states for group in state.functions.bounded]
        bounded.sort(key=lambda group: group.heaviest)
        if not bounded or self._reachable(frozenset()):
            return frozenset()
        low, high = 1, len(bounded)
        while low < high:
            middle = (low + high) // 2
            if self._reachable(_queries(bounded[:middle])):
                high = middle
            else:
                low = middle + 1
        return _queries(bounded[:low])

    def _reachable(self, given_up: frozenset[QueryId]) -> bool:
        """Whether all other bounds can be kept together within the budgets."""
        states = self._states(given_up)
        limits = self._limits()
        weights = (0.5, 1.0, 0.0, 0.25, 0.75) if len(limits) == 2 else (1.0,)
        for weight in weights:
            limit = _mixed(limits, weight)
            xs = []
            for state in states:
                if not state.functions.bounded:
                    xs.append(state.functions.part.low)
                    continue
                found = cheapest(state.functions, limit, state.begin, self._settings.effort_many)
                if found.excess > BROKEN:
                    return False
                xs.append(found.x)
            if self._fits(states, xs):
                return True
        return False

    # --- the split --------------------------------------------------------------------------------

    def _balanced(self, states: list[_State]) -> list[FloatArray]:
        """The best shares, by part."""
        limits = self._limits()
        free = [place for place, part in enumerate(self._parts) if np.any(part.high > part.low)]
        found = [part.low for part in self._parts]
        if len(free) <= 1 or not limits:
            fixed = [_total(states, found, limit) for limit in limits]
            for place in free:
                state = states[place]
                own = [limit.cost(state.functions, found[place][:, None])[0] for limit in limits]
                room = [
                    replace(limit, most=max(limit.most - other + mine, 0.0))
                    for limit, other, mine in zip(limits, fixed, own, strict=True)
                ]
                result = self._best(state, room, state.begin, self._settings.effort)
                found[place] = result.x
            return found
        return self._weighted(states, limits)

    def _weighted(self, states: list[_State], limits: Sequence[LinearLimit]) -> list[FloatArray]:
        """With two budgets, the weight of the first in the cost, by bisection."""
        if len(limits) == 1:
            return self._split(states, limits[0])
        for weight, other in ((1.0, limits[1]), (0.0, limits[0])):
            found = self._split(states, _mixed(limits, weight))
            if _total(states, found, other) <= other.most * (1.0 + 1e-9):
                return found
        low, high = 0.0, 1.0
        best: tuple[float, list[FloatArray]] | None = None
        for _ in range(6):
            weight = (low + high) / 2.0
            found = self._split(states, _mixed(limits, weight))
            over = [_total(states, found, limit) / max(limit.most, 1e-300) for limit in limits]
            fitting = self._shrunk(states, found)
            loss = sum(state.functions.loss(x[:, None])[0] for state, x in zip(states, fitting, strict=True))
            if best is None or loss < best[0]:
                best = loss, fitting
            if max(over) <= 1.0 + 1e-6:
                break
            low, high = (weight, high) if over[0] > over[1] else (low, weight)
        assert best is not None
        return best[1]

    def _shrunk(self, states: Sequence[_State], xs: list[FloatArray]) -> list[FloatArray]:
        """Shares moved towards the least ones, all by as much, until they fit."""
        if self._fits(states, xs):
            return xs
        low, high = 0.0, 1.0
        lows = [part.low for part in self._parts]
        for _ in range(40):
            middle = (low + high) / 2.0
            moved = [one + middle * (x - one) for one, x in zip(lows, xs, strict=True)]
            low, high = (middle, high) if self._fits(states, moved) else (low, middle)
        return [one + low * (x - one) for one, x in zip(lows, xs, strict=True)]

    def _split(self, states: list[_State], limit: LinearLimit) -> list[FloatArray]:
        """The budget split over the parts, each solved with its share."""
        settings = self._settings
        for state in states:
            self._ends(state, limit)
            state.unit = limit.unit
        if (last := self._good_enough(states, limit)) is not None:
            return last
        total, best = np.inf, None
        for _ in range(settings.rounds):
            self._rounds += 1
            hulls = [hull_of(state.points) for state in states]
            shares = split(hulls, limit.most)
            found = []
            for state, hull, share in zip(states, hulls, shares, strict=True):
                found.append(self._at(state, hull, limit, float(share)))
            now = sum(one.loss for one in found)
            moved = abs(total - now)
            if best is None or now < total:
                best, total = found, now
            if moved <= settings.settled * max(total, 1e-12):
                break
        assert best is not None
        return [np.array(one.x) for one in best]

    def _good_enough(self, states: Sequence[_State], limit: LinearLimit) -> list[FloatArray] | None:
        """The last allocation, where what is known of the parts promises too little of another one."""
        last = None if self._previous is None else self._last(states)
        if last is None or not self._fits(states, last) or not self._keeps_bounds(states, last):
            return None
        hulls = [hull_of(state.points) for state in states]
        shares = split(hulls, limit.most)
        promised = sum(between(hull, float(share))[1] for hull, share in zip(hulls, shares, strict=True))
        before = self._loss(states, last)
        return last if before - promised <= self._settings.gain_min * before else None

    def _ends(self, state: _State, limit: LinearLimit) -> None:
        """The points to begin with: those of the last time; else the ends, which need no solving, and some
        between.
        """
        functions = state.functions
        part = functions.part
        memory: Mapping[Hashable, Curve] = {} if self._previous is None else self._previous.memory
        known = memory.get(part.key)
        if known is not None and known.unit == limit.unit and not functions.bounded and not state.points:
            state.points = list(known.points)
            state.known = True
            return
        near = known or memory.get(part.entities)
        least = part.low
        if functions.bounded and functions.excess(least[:, None])[0] > BROKEN:
            least = cheapest(functions, limit, state.begin, self._settings.effort_many).x
        points = [least, part.high] if np.any(part.high > least) else [least]
        slopes = [slope_at(functions, limit, one) for one in points]
        for solved in (*state.points, *(() if near is None else near.points)):
            if len(solved.x) == part.variables:
                points.append(np.clip(np.array(solved.x), least, part.high))
                slopes.append(slope_at(functions, limit, points[-1]))
        x = np.stack(points, axis=1)
        costs, losses = limit.cost(functions, x), functions.loss(x)
        kept = functions.excess(x) <= BROKEN
        kept[0] = True
        state.points = [
            Solved(float(cost), float(loss), slope, tuple(map(float, one)))
            for cost, loss, slope, one, keeps in zip(costs, losses, slopes, points, kept, strict=True)
            if keeps
        ]
        state.known = False
        if len(points) == 2 and len(state.points) == 2:
            self._begin_curve(state, limit)

    def _begin_curve(self, state: _State, limit: LinearLimit) -> None:
        """Some points between the ends, the others from the first: a chord hides what is convex below it."""
        least, most = state.points[0].cost, state.points[1].cost
        if most <= least:
            return
        middle = None
        for share in SEEDS:
            begin = state.begin if middle is None else (np.array(middle.x),)
            found = self._solve_at(state, limit, least + share * (most - least), begin, many=middle is None)
            middle = middle or found

    def _solve_at(
        self, state: _State, limit: LinearLimit, share: float, begin: Sequence[FloatArray], *, many: bool
    ) -> Solved:
        """A part solved with a share of the budget, which becomes one of its points."""
        effort = self._settings.effort_many
        result = self._best(
            state, [replace(limit, most=share)], begin, effort if many else replace(effort, starts=1)
        )
        cost = float(limit.cost(state.functions, result.x[:, None])[0])
        slope = slope_at(state.functions, limit, result.x)
        solved = Solved(cost, result.loss, slope, tuple(map(float, result.x)))
        if result.excess <= BROKEN:
            state.points.append(solved)
        return solved

    def _at(self, state: _State, hull: Sequence[Solved], limit: LinearLimit, share: float) -> Solved:
        """A part with its share: solved, or one of its points."""
        for place, vertex in enumerate(hull):
            if abs(vertex.cost - share) <= 1e-9 * max(1.0, share):
                self._look_beside(state, hull, limit, place)
                return vertex
        functions = state.functions
        x, chord, width = between(hull, share)
        if state.known and width <= NARROW * (hull[-1].cost - hull[0].cost):
            # The split divides at most one segment that is concave; there the part gets less than its share.
            begun = x[:, None]
            loss = float(functions.loss(begun)[0])
            fitting = limit.cost(functions, begun)[0] <= share * (1.0 + ROUNDING)
            if fitting and loss <= chord + 1e-9 + self._settings.gain_min * abs(chord):
                return Solved(share, loss, 0.0, tuple(map(float, x)))
        span = hull[-1].cost - hull[0].cost
        solved = [one for one in state.points if 0.0 <= share - one.cost <= BESIDE * span]
        if solved:
            return min(solved, key=lambda one: one.loss)
        return self._solve_at(state, limit, share, (x,), many=False)

    def _look_beside(self, state: _State, hull: Sequence[Solved], limit: LinearLimit, place: int) -> None:
        """Solve the middle of the wider segment at a vertex, where that is wide: the split may have come to
        this vertex only because nothing better is known.
        """
        if state.known:
            return
        whole = hull[-1].cost - hull[0].cost
        beside = [
            (other.cost - one.cost, one, other)
            for one, other in zip(hull[max(0, place - 1) :], hull[max(1, place) : place + 2], strict=False)
        ]
        width, one, other = max(beside, key=lambda each: each[0], default=(0.0, None, None))
        if one is not None and other is not None and width > WIDE * whole:
            x, _, _ = between((one, other), one.cost + width / 2.0)
            self._solve_at(state, limit, one.cost + width / 2.0, (x,), many=False)

    def _best(
        self, state: _State, limits: Sequence[LinearLimit], begin: Sequence[FloatArray], effort: Effort
    ) -> Solution:
        found = best_of(state.functions, limits, begin, effort)
        if not found.converged and effort.starts == 1:
            more = replace(effort, starts=self._settings.effort.starts)
            found = best_of(state.functions, limits, begin, more)
        self._converged &= found.converged
        return found

    # --- the result -------------------------------------------------------------------------------

    def _last(self, states: Sequence[_State]) -> list[FloatArray] | None:
        """The last allocation, where it fits; shares as the costs, where there is none."""
        last = [state.begin[0] if state.begin else None for state in states]
        if any(x is None for x in last):
            return None
        return self._shrunk(states, [x for x in last if x is not None])

    def _result(
        self, states: Sequence[_State], xs: list[FloatArray], given_up: frozenset[QueryId]
    ) -> Allocation:
        """With hysteresis against what stands."""
        last = None if self._previous is None else self._last(states)
        if last is not None and not (self._fits(states, last) and self._keeps_bounds(states, last)):
            last = None
        # One pass for both; of what was decided to stay the figures are known.
        stays = last is not None and all(map(np.array_equal, xs, last))
        both = None if stays else last
        points = [
            x[:, None] if both is None else np.stack([x, both[place]], axis=1) for place, x in enumerate(xs)
        ]
        flows = [state.functions.flows(x) for state, x in zip(states, points, strict=True)]
        losses = np.zeros(1 if both is None else 2)
        for state, inside in zip(states, flows, strict=True):
            for group, flow in zip(state.functions.part.groups, inside, strict=True):
                losses += group.weight * loss_of(flow, self._problem.fp_share)
        loss, before = float(losses[0]), float(losses[-1])
        kept = last is not None and before - loss <= self._settings.gain_min * before
        if kept:
            assert last is not None
            xs = last
        return Allocation(
            _by_entity(self._parts, xs),
            self._expected(states, flows, len(losses) - 1 if kept else 0),
            given_up,
            before if kept else loss,
            float(sum(state.functions.bytes(x[:, None])[0] for state, x in zip(states, xs, strict=True))),
            float(sum(state.functions.cpu_ns(x[:, None])[0] for state, x in zip(states, xs, strict=True))),
            self._fits(states, xs),
            self._converged,
            kept,
            self._rounds,
            self._memory(states, xs),
        )

    def _memory(self, states: Sequence[_State], xs: Sequence[FloatArray]) -> dict[Hashable, Curve]:
        """What the next time begins with: the ends of each curve, and what is next to the present point."""
        found: dict[Hashable, Curve] = {}
        for state, x in zip(states, xs, strict=True):
            if state.unit is None:
                continue
            hull = hull_of(state.points)
            if len(hull) > MEMORY_MAX:
                here = float(LinearLimit(*state.unit, 0.0).cost(state.functions, x[:, None])[0])
                inner = sorted(hull[1:-1], key=lambda one: abs(one.cost - here))[: MEMORY_MAX - 2]
                hull = [hull[0], *inner, hull[-1]]
            part = state.functions.part
            found[part.key] = found[part.entities] = Curve(state.unit, tuple(hull))
        return found

    def _keeps_bounds(self, states: Sequence[_State], xs: Sequence[FloatArray]) -> bool:
        return all(
            state.functions.excess(x[:, None])[0] <= BROKEN
            for state, x in zip(states, xs, strict=True)
            if state.functions.bounded
        )

    def _expected(
        self, states: Sequence[_State], flows: Sequence[Sequence[PrecisionFlow]], point: int
    ) -> dict[QueryId, Outcome]:
        found: dict[QueryId, Outcome] = {}
        for state, inside in zip(states, flows, strict=True):
            for group, flow in zip(state.functions.part.groups, inside, strict=True):
                found.update(dict.fromkeys(group.queries, Outcome.at(flow, point)))
        for query in self._problem.queries:
            if query.exact:
                found[query.id] = Outcome.at(query.shape.at(np.ones((query.shape.slots, 1))))
        return found


def equal(problem: Problem) -> Allocation:
    """Every entity gets as many bytes (and as much CPU time) as every other, up to what it can use."""
    return _plainly(problem, _filled_evenly)


def proportional(problem: Problem) -> Allocation:
    """Every entity gets the same share of what lies between its least and greatest."""
    return _plainly(problem, lambda part, level: part.low + level * (part.high - part.low))


def _filled_evenly(part: VariablePart, level: float) -> FloatArray:
    """Gives all entities of a part as much, float64[variables]. level: as a share, in (0, 1], of the most
    that one entity can use.
    """
    costs = np.maximum(part.bytes + part.cpu_ns, 1e-300)
    copies = np.array([len(names) for names in part.entities], np.float64)
    return np.clip(level * copies / costs, part.low, part.high)


def _plainly(problem: Problem, at: Callable[[VariablePart, float], FloatArray]) -> Allocation:
    """The highest level at which all parts fit."""
    parts = parts_of(problem, 0)
    solver = _Solver(problem, parts, None, DEFAULT)
    states = solver._states(frozenset())
    low, high = 0.0, 1.0
    if at is _filled_evenly:
        high = max((float(np.max(part.bytes + part.cpu_ns, initial=0.0)) for part in parts), default=0.0)
    if solver._fits(states, [at(part, high) for part in parts]):
        low = high
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if solver._fits(states, [at(part, middle) for part in parts]) else (low, middle)
        )
    return solver._result(states, [at(part, low) for part in parts], frozenset())


def _begin(part: VariablePart, last: Mapping[EntityId, float] | None) -> tuple[FloatArray, ...]:
    """What stood last, where all of it did."""
    if last is None or not all(names[0] in last for names in part.entities):
        return ()
    x = np.array([last[names[0]] for names in part.entities])
    return (np.clip(x, part.low, part.high),)


def _by_entity(parts: Sequence[VariablePart], xs: Sequence[FloatArray]) -> dict[EntityId, float]:
    return {
        name: float(share)
        for part, x in zip(parts, xs, strict=True)
        for names, share in zip(part.entities, x, strict=True)
        for name in names
    }


def _total(states: Sequence[_State], xs: Sequence[FloatArray], limit: LinearLimit) -> float:
    return float(sum(limit.cost(state.functions, x[:, None])[0] for state, x in zip(states, xs, strict=True)))


def _mixed(limits: Sequence[LinearLimit], weight: float) -> LinearLimit:
    """One limit for both; weight: of the first."""
    if len(limits) == 1:
        return limits[0]
    if not limits:
        return LinearLimit(0.0, 0.0, 0.0)
    one, other = limits
    return LinearLimit(
        weight * one.per_byte,
        (1.0 - weight) * other.per_cpu_ns,
        weight * one.most + (1.0 - weight) * other.most,
    )


def _queries(groups: Sequence[Group]) -> frozenset[QueryId]:
    return frozenset(name for group in groups for name in group.queries)
