"""The best shares of one part within limits, by a packaged solver from several starts.

SLSQP (Kraft, 1988; scipy.optimize) finds a local optimum from each start. Losses may be neither convex nor
monotone, so the starts are: what stood last, equal shares, the entities filled up one after another by loss
saved per unit of cost, and the best of a fixed set of evenly spread points. A start itself is a candidate, so
that a result is never worse than any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import numpy.typing as npt

from engine.overload.precision.part_functions import PartFunctions
from engine.overload.precision.precision import FloatArray

POINTS = 64
"""So many evenly spread points are looked at for a start."""

BROKEN = 1e-6
"""A bound counts as kept up to this."""

ROUNDING = 1e-9
"""A limit counts as kept up to this share of it."""

CORNERED_MAX = 6
"""Most free variables whose corners are all looked at."""


@dataclass(frozen=True, slots=True)
class LinearLimit:
    """per_byte * bytes + per_cpu_ns * cpu_ns <= most."""

    per_byte: float
    per_cpu_ns: float
    most: float

    @property
    def unit(self) -> tuple[float, float]:
        """What a byte and a ns cost."""
        return self.per_byte, self.per_cpu_ns

    def cost(self, functions: PartFunctions, x: FloatArray) -> FloatArray:
        """float64[points]."""
        found = np.zeros(x.shape[1])
        if self.per_byte:
            found += self.per_byte * functions.bytes(x)
        if self.per_cpu_ns:
            found += self.per_cpu_ns * functions.cpu_ns(x)
        return found


@dataclass(frozen=True, slots=True)
class Effort:
    """starts: local solves of a part; with one, from what is given alone. iterations: of each at most."""

    starts: int = 6
    iterations: int = 100


@dataclass(frozen=True, slots=True)
class Solution:
    """x: float64[variables]. converged: whether the solver did so from one start at least."""

    x: FloatArray
    loss: float
    excess: float
    converged: bool


WHOLE, QUICK, POLISH = Effort(), Effort(starts=2), Effort(starts=3)


def best_of(
    functions: PartFunctions, limits: Sequence[LinearLimit], begin: Sequence[FloatArray], effort: Effort
) -> Solution:
    """The least loss within limits with all bounds kept. begin: where to start besides.

    The least shares are given where nothing else fits. Where no point keeps the bounds, that which is the
    closest to keeping them.
    """
    part = functions.part
    free = np.flatnonzero(part.high > part.low)
    if not len(free):
        return _found(functions, part.low, converged=True)
    if effort.starts == 1 and begin:
        given = np.stack([np.clip(one, part.low, part.high) for one in begin], axis=1)
        starts = _fitted(functions, limits, given)
    else:
        starts = _starts(functions, limits, begin)
    scores = _scores(functions, starts)
    order = np.argsort(scores, kind="stable")
    best = starts[:, order[0]]
    best_score, converged = scores[order[0]], False
    for place in _apart(starts, order, effort.starts):
        x, one_converged = _descended(functions, limits, starts[:, place], free, effort.iterations)
        converged |= one_converged
        if x is None:
            continue
        x = _fitted(functions, limits, x[:, None])[:, 0]
        score = _scores(functions, x[:, None])[0]
        if score < best_score:
            best, best_score = x, score
    return _found(functions, best, converged=converged)


def cheapest(
    functions: PartFunctions, limit: LinearLimit, begin: Sequence[FloatArray], effort: Effort
) -> Solution:
    """The least cost at which all bounds are kept; excess above 0 where none was found."""
    part = functions.part
    free = np.flatnonzero(part.high > part.low)
    lowest = functions.excess(part.low[:, None])[0]
    if not len(free) or lowest <= 0.0:
        return _found(functions, part.low, converged=True)
    starts = np.stack([part.high, *begin, (part.low + part.high) / 2.0], axis=1)
    best: FloatArray = part.high
    best_cost = limit.cost(functions, best[:, None])[0] if _keeps(functions, best) else np.inf
    converged = False
    for place in range(min(starts.shape[1], max(1, effort.starts))):
        x, one_converged = _cheapened(functions, limit, starts[:, place], free, effort.iterations)
        converged |= one_converged
        if x is None or not _keeps(functions, x):
            continue
        cost = limit.cost(functions, x[:, None])[0]
        if cost < best_cost:
            best, best_cost = x, cost
    return _found(functions, best, converged=converged)


def slope_at(functions: PartFunctions, limit: LinearLimit, x: FloatArray) -> float:
    """What one more unit of the limit would save: its multiplier at a solution x."""
    part = functions.part
    slopes = functions.slopes(x)
    cost = functions.cost_gradient(limit.per_byte, limit.per_cpu_ns, x)
    inside = (x > part.low + 1e-6) & (x < part.high - 1e-6) & (cost > 0.0)
    if inside.any():
        active = slopes.excess_gradient[slopes.excess > -BROKEN]
        columns = np.vstack([cost[None, inside], active[:, inside]]).T
        found = np.linalg.lstsq(columns, -slopes.gradient[inside], rcond=None)[0]
        return max(0.0, float(found[0]))
    below = (x < part.high - 1e-6) & (cost > 0.0)
    if not below.any():
        return 0.0
    return max(0.0, float(np.max(-slopes.gradient[below] / cost[below])))


def _found(functions: PartFunctions, x: FloatArray, *, converged: bool) -> Solution:
    point = x[:, None]
    return Solution(x, float(functions.loss(point)[0]), float(functions.excess(point)[0]), converged)


def _keeps(functions: PartFunctions, x: FloatArray) -> bool:
    return bool(functions.excess(x[:, None])[0] <= BROKEN)


def _scores(functions: PartFunctions, x: FloatArray) -> FloatArray:
    """Losses, and far above all losses where a bound is broken, the more the further; NaN is the worst."""
    losses = functions.loss(x)
    if functions.bounded:
        excess = functions.excess(x)
        weight = sum(group.weight for group in functions.part.groups)
        losses = losses + np.where(excess > BROKEN, 2.0 * weight * (1.0 + excess), 0.0)
    return np.where(np.isnan(losses), np.inf, losses)


def _starts(
    functions: PartFunctions, limits: Sequence[LinearLimit], begin: Sequence[FloatArray]
) -> FloatArray:
    """float64[variables, starts], all of which fit."""
    part = functions.part
    span = part.high - part.low
    spread = part.low[:, None] + span[:, None] * _even(part.variables, POINTS)
    given = [np.clip(one, part.low, part.high)[:, None] for one in begin]
    points = np.concatenate([*given, part.high[:, None], _filled(functions, limits), spread], axis=1)
    return np.concatenate([_fitted(functions, limits, points), _corners(functions, limits)], axis=1)


def _corners(functions: PartFunctions, limits: Sequence[LinearLimit]) -> FloatArray:
    """Returns the corners of a part of few variables, float64[variables, corners]: all combinations of least
    and greatest shares that fit, and those with one share in between that fills a limit. These are the optima
    of linear losses; a loss may jump at the least share, since what gives no row at all gives no wrong one.
    """
    part = functions.part
    free = np.flatnonzero(part.high > part.low)
    if len(free) > CORNERED_MAX:
        return np.zeros((part.variables, 0))
    full = np.array(list(product((False, True), repeat=len(free)))).T
    corners = np.repeat(part.low[:, None], full.shape[1], axis=1)
    corners[free] = np.where(full, part.high[free, None], part.low[free, None])
    corners = corners[:, _fits(functions, limits, corners)]
    found = [corners]
    for variable in free:
        edges = corners.copy()
        edges[variable] = part.high[variable]
        found.append(_fitted(functions, limits, edges, corners))
    return np.concatenate(found, axis=1)


def _filled(functions: PartFunctions, limits: Sequence[LinearLimit]) -> FloatArray:
    """Entities filled up one after another, by what they save at the least and at the greatest shares."""
    part = functions.part
    found = []
    for x in (part.low, (part.low + part.high) / 2.0, part.high):
        gradient = functions.slopes(x).gradient
        for limit in limits:
            cost = np.maximum(functions.cost_gradient(limit.per_byte, limit.per_cpu_ns, x), 1e-300)
            order = np.argsort(gradient / cost, kind="stable")
            present = part.low.copy()
            for variable in order:
                fuller = present.copy()
                fuller[variable] = part.high[variable]
                fuller = _fitted(functions, limits, fuller[:, None], present[:, None])[:, 0]
                full = fuller[variable] >= part.high[variable] - 1e-12
                present = fuller
                found.append(present)
                if not full:
                    break
    return np.stack(found, axis=1) if found else part.high[:, None]


def _fits(functions: PartFunctions, limits: Sequence[LinearLimit], x: FloatArray) -> npt.NDArray[np.bool_]:
    """Which points do, bool[points]."""
    found = np.ones(x.shape[1], bool)
    for limit in limits:
        found &= limit.cost(functions, x) <= limit.most * (1.0 + ROUNDING) + 1e-300
    return found


def _fitted(
    functions: PartFunctions, limits: Sequence[LinearLimit], x: FloatArray, base: FloatArray | None = None
) -> FloatArray:
    """Each point, moved as far as the limits ask towards its base, else the least shares. Shapes as x."""
    part = functions.part
    x = np.clip(x, part.low[:, None], part.high[:, None])
    from_ = part.low[:, None] if base is None else base

    inside = _fits(functions, limits, x)
    if inside.all():
        return x
    low, high = np.zeros(x.shape[1]), np.ones(x.shape[1])
    for _ in range(40):
        middle = (low + high) / 2.0
        fitting = _fits(functions, limits, from_ + middle * (x - from_))
        low, high = np.where(fitting, middle, low), np.where(fitting, high, middle)
    return np.where(inside, x, from_ + low * (x - from_))


def _apart(starts: FloatArray, order: npt.NDArray[np.intp], count: int) -> list[int]:
    """The places of the best starts that are not beside each other."""
    taken: list[int] = []
    for place in order:
        if all(np.max(np.abs(starts[:, place] - starts[:, other])) > 0.05 for other in taken):
            taken.append(int(place))
            if len(taken) >= count:
                break
    return taken


def _descended(
    functions: PartFunctions,
    limits: Sequence[LinearLimit],
    start: FloatArray,
    free: npt.NDArray[np.intp],
    iterations: int,
) -> tuple[FloatArray | None, bool]:
    scale = 1.0 / max(1e-300, sum(group.weight for group in functions.part.groups))
    constraints = [_within(functions, limit, start, free) for limit in limits]
    return _solved(
        functions,
        start,
        free,
        iterations,
        lambda x: scale * functions.slopes(x).loss,
        lambda x: scale * functions.slopes(x).gradient,
        constraints,
    )


def _cheapened(
    functions: PartFunctions,
    limit: LinearLimit,
    start: FloatArray,
    free: npt.NDArray[np.intp],
    iterations: int,
) -> tuple[FloatArray | None, bool]:
    whole = limit.cost(functions, functions.part.high[:, None])[0]
    scale = 1.0 / whole if whole > 0.0 else 1.0
    return _solved(
        functions,
        start,
        free,
        iterations,
        lambda x: scale * float(limit.cost(functions, x[:, None])[0]),
        lambda x: scale * functions.cost_gradient(limit.per_byte, limit.per_cpu_ns, x),
        [],
    )


def _within(
    functions: PartFunctions, limit: LinearLimit, start: FloatArray, free: npt.NDArray[np.intp]
) -> dict[str, object]:
    whole = limit.cost(functions, functions.part.high[:, None])[0]
    scale = 1.0 / whole if whole > 0.0 else 1.0

    def full(x: FloatArray) -> FloatArray:
        found = start.copy()
        found[free] = x
        return found

    return {
        "type": "ineq",
        "fun": lambda x: scale * (limit.most - float(limit.cost(functions, full(x)[:, None])[0])),
        "jac": lambda x: -scale * functions.cost_gradient(limit.per_byte, limit.per_cpu_ns, full(x))[free],
    }


def _solved(
    functions: PartFunctions,
    start: FloatArray,
    free: npt.NDArray[np.intp],
    iterations: int,
    value: Callable[[FloatArray], float],
    gradient: Callable[[FloatArray], FloatArray],
    constraints: list[dict[str, object]],
) -> tuple[FloatArray | None, bool]:
    """Where SLSQP ends from a start, with the bounds of the part's queries besides; whether it converged."""
    from scipy.optimize import minimize  # 20 MB that only those need who allocate

    part = functions.part

    def full(x: FloatArray) -> FloatArray:
        found = start.copy()
        found[free] = x
        return found

    if functions.bounded:
        constraints = [
            *constraints,
            {
                "type": "ineq",
                "fun": lambda x: -functions.slopes(full(x)).excess,
                "jac": lambda x: -functions.slopes(full(x)).excess_gradient[:, free],
            },
        ]
    with np.errstate(all="ignore"):
        result = minimize(
            lambda x: value(full(x)),
            start[free],
            jac=lambda x: gradient(full(x))[free],
            bounds=list(zip(part.low[free], part.high[free], strict=True)),
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": iterations, "ftol": 1e-7},
        )
    if not np.all(np.isfinite(result.x)):
        return None, False
    # 0: solved. 8: no descent at a kink, which tables have; what was found is compared with the starts.
    x = np.clip(full(np.asarray(result.x, np.float64)), part.low, part.high)
    return x, int(result.status) in (0, 8)


@cache
def _even(dimensions: int, count: int) -> FloatArray:
    """Evenly spread points of the unit cube, float64[dimensions, count]: multiples of powers of the root of
    x^(d+1) = x + 1 (Roberts, 2018), which generalise the golden ratio.
    """
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (dimensions + 1))
    steps = root ** -np.arange(1.0, dimensions + 1.0)
    return (0.5 + np.outer(steps, np.arange(count))) % 1.0
