"""What PSoup's experiments have in common: queries as the paper draws them, and answers in three modes.

Values are uniform in 0..255. A constant is a multiple of 32 with probability 0.2, otherwise any value. An
interval begins at a constant and is 0 to 255 wide. The systems compared are the three ways in which this
engine maintains a query: NoMat runs it when it is asked (`none`), PSoup-P keeps matches and imposes the
window when asked (`lazy`), PSoup-C keeps the answer itself (`eager`).
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from benchmarks.psoup import COLUMNS, Bounds
from benchmarks.report import Series
from benchmarks.timing import repeat
from engine.engine import Engine
from engine.model.batch import Batch
from engine.views.view import View

VALUES = 256
SYSTEMS: Mapping[str, str] = {"nomat": "none", "psoup_p": "lazy", "psoup_c": "eager"}
WARM = 3
"""Batches that are not timed."""
LABELS: Mapping[str, str] = {"nomat": "NoMat", "psoup_p": "PSoup-P", "psoup_c": "PSoup-C"}


def constants(rng: np.random.Generator, n: int) -> np.ndarray:
    """int[n] in 0..255."""
    preferred = rng.random(n) < 0.2
    return np.where(preferred, 32 * rng.integers(0, VALUES // 32, n), rng.integers(0, VALUES, n))


def equalities(rng: np.random.Generator, factors: Sequence[int]) -> Bounds:
    """int64[queries, 4, 2]: a query has `factors[i]` columns, each equal to a constant."""
    return _bounds(rng, factors, lambda n: np.ones(n, np.int64))


def intervals(rng: np.random.Generator, factors: Sequence[int]) -> Bounds:
    """int64[queries, 4, 2]: a query has an interval on `factors[i]` of its columns."""
    return _bounds(rng, factors, lambda n: rng.integers(0, VALUES, n) + 1)


def _bounds(rng: np.random.Generator, factors: Sequence[int], width: Callable[[int], np.ndarray]) -> Bounds:
    bounds = np.tile(np.array([0, VALUES]), (len(factors), len(COLUMNS), 1))
    for query, n in enumerate(factors):
        columns = rng.permutation(len(COLUMNS))[:n]
        low = constants(rng, n)
        bounds[query, columns, 0] = low
        bounds[query, columns, 1] = np.minimum(low + width(n), VALUES)
    return bounds


def respond(engines: Mapping[str, Engine], names: Sequence[str], times: int) -> dict[str, float]:
    """Milliseconds of one answer by system, the median of `times` sweeps over the named queries.

    Raises RuntimeError unless all systems give the same answers.
    """
    views = {system: engine.view() for system, engine in engines.items()}
    for name in names:
        first, *others = (view.snapshot(name).table for view in views.values())
        if not all(first.equals(other) for other in others):
            raise RuntimeError(f"{name} has not the same answer in all modes")
    return {
        system: repeat(lambda view=view: ask(view, names), times=times).median_ms / len(names)
        for system, view in views.items()
    }


def sustained(engines: Sequence[Engine], source: str, batches: Iterable[Batch], budget_s: float) -> float:
    """Seconds that all engines take for a batch: the median behind :data:`WARM` batches. A view is taken
    after each, in which the answers of eager queries are current. budget_s: the last batch is that behind
    which so many seconds have passed.
    """
    seconds: list[float] = []
    for number, batch in enumerate(batches):
        clock_ms = int(batch.timestamp[-1])
        began = time.perf_counter()
        for engine in engines:
            engine.ingest(source, batch, clock_ms)
            engine.view()
        if number >= WARM:  # the window is full
            seconds.append(time.perf_counter() - began)
            if sum(seconds) > budget_s:
                break
    return median(seconds)


def ask(view: View, names: Sequence[str]) -> None:
    """Fetch each answer once."""
    for name in names:
        view.snapshot(name)


def curves(points: Mapping[float, Mapping[str, float]], suffix: str = "") -> list[Series]:
    """A line for each system over what was varied."""
    return [
        Series(label + suffix, list(points), [by_system[system] for by_system in points.values()])
        for system, label in LABELS.items()
    ]


def tell(varied: str, by_system: Mapping[str, float]) -> None:
    """One line for whoever watches."""
    times = ", ".join(f"{LABELS[system]} {ms:.4f}" for system, ms in by_system.items())
    print(f"{varied}: {times} ms", file=sys.stderr)
