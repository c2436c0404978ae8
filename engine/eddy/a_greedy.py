"""A-Greedy: an order of filters that holds where what they drop is correlated.

Babu, Motwani, Munagala, Nishizawa and Widom, Adaptive Ordering of Pipelined Stream Filters, SIGMOD 2004. Of
the rows that nobody wants any more some are run through all filters, in the order or not, and what each
filter did is kept. From that it is known what a filter would drop of the rows that those before it let pass,
wherever it stands now; a measurement of visits tells that of one order only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from engine.eddy.policies import COST_MIN, M, ModuleFacts, Optimal, Visit
from engine.model.batch import BoolArray, Int64Array

PROFILED_SHARE = 0.01
"""The share of dropped rows that are run through all filters."""

PROFILED_AT_ONCE = 2_000
"""Rows picked in one batch, where it has so many: a visit has a cost of its own, whatever its rows."""

WINDOW = 1_000
"""Outcomes that count, the last ones."""

THRASHING = 0.9
"""The paper's alpha: an order is right as long as no later filter is better by more than 1 / alpha."""

COSTS = 5
"""The least of so many measurements counts: what else runs on the machine only ever adds to one."""

SPREAD = 0.6180339887498949
"""Multiples of it, modulo 1, are spread evenly and have no period that a stream could share."""


class Outcomes:
    """What each filter did with each of the last WINDOW profiled rows.

    Lines are filters by name; a filter that was not there when a row came did not drop it.
    """

    def __init__(self) -> None:
        self._dropped = np.zeros((0, WINDOW), np.bool_)
        self._line: dict[str, int] = {}
        self._next = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: str) -> bool:
        return name in self._line

    def add(self, names: Sequence[str], dropped: BoolArray) -> None:
        """dropped: bool[names, rows]. O(rows * filters)."""
        for name in names:
            if name not in self._line:
                self._line[name] = len(self._line)
        missing = len(self._line) - len(self._dropped)
        if missing:
            self._dropped = np.vstack((self._dropped, np.zeros((missing, WINDOW), np.bool_)))
        dropped = dropped[:, -WINDOW:]
        rows = dropped.shape[1]
        places = (self._next + np.arange(rows)) % WINDOW
        self._dropped[:, places] = False
        lines = np.array([self._line[name] for name in names], np.int64)
        self._dropped[lines[:, None], places] = dropped
        self._next = (self._next + rows) % WINDOW
        self._count = min(WINDOW, self._count + rows)

    def forget(self, name: str) -> None:
        """The filter is gone. O(WINDOW * filters)."""
        place = self._line.pop(name, None)
        if place is None:
            return
        self._dropped = np.delete(self._dropped, place, axis=0)
        for other, line in self._line.items():
            self._line[other] = line - (line > place)
        if not self._line:
            self._next = self._count = 0

    def of(self, names: Sequence[str]) -> BoolArray:
        """bool[names, rows]."""
        return self._dropped[[self._line[name] for name in names], : self._count]


def right_order(dropped: BoolArray, costs: Sequence[float]) -> list[int]:
    """The present order 0 .. filters - 1 where it is right, else one that is re-ordered from where it is not.

    dropped: bool[filters, rows]. V[i, j] are the rows that j drops and none of 0 .. i - 1. Right means that
    V[i, i] / t[i] >= alpha * V[i, j] / t[j] for all j > i. From the first i that breaks it each place
    is taken by the filter that drops most for its cost of what those before it let pass; of two alike by the
    one that was first. costs: of a row, above 0. O(filters * (rows + filters)).
    """
    order = list(range(len(dropped)))
    t = np.asarray(costs, np.float64)
    drops = np.count_nonzero(dropped, axis=1)
    staying = np.ones(dropped.shape[1], np.bool_)
    broken = False
    for place in range(len(order)):
        ahead = np.array(order[place:], np.int64)
        worth = drops[ahead] / t[ahead]
        best = int(np.argmax(worth))
        if not worth[best]:
            break  # nothing is left to drop
        broken = broken or bool(worth[0] < THRASHING * worth[best])
        if broken:
            order.insert(place, order.pop(place + best))
        going = staying & dropped[order[place]]
        drops = drops - np.count_nonzero(dropped[:, going], axis=1)
        staying &= ~going
    return order


class AGreedy(Optimal):
    """See the module. Without outcomes, as at the start and between the inputs of a join, it is `optimal`."""

    name = "a-greedy"

    def __init__(self) -> None:
        super().__init__()
        self.profiled = 0
        self._outcomes = Outcomes()
        self._profiles = 0
        self._costs: dict[str, deque[float]] = {}
        self._order: list[str] = []
        self._place: dict[str, int] = {}
        self._owed = 0.0
        self._picked = 0

    # --- profiles, asked for by the eddy ----------------------------------------------------------

    def picks(self, rows: int, *, waits: bool = False) -> Int64Array:
        """Which of a batch's rows are profiled if they are dropped, ascending; chosen by count alone. waits:
        none of these, and of batches that wait no more are made up for than one profile takes.
        """
        self._owed += rows * PROFILED_SHARE
        if waits:
            self._owed = min(self._owed, float(PROFILED_AT_ONCE))
        if waits or self._owed < PROFILED_AT_ONCE or not rows:
            return np.zeros(0, np.int64)
        wanted = min(PROFILED_AT_ONCE, rows)
        numbers = self._picked + np.arange(wanted, dtype=np.int64)
        places: Int64Array = np.unique((numbers * SPREAD % 1.0 * rows).astype(np.int64))
        self._picked += wanted
        self._owed -= len(places)
        return places

    def turn(self, modules: Sequence[M]) -> Sequence[M]:
        """The order in which a profile visits modules: another one is the first, which meets cold caches."""
        first = self._profiles % len(modules)
        return [*modules[first:], *modules[:first]]

    def profile(self, modules: Sequence[ModuleFacts], dropped: BoolArray, visits: Sequence[Visit]) -> None:
        """The order is made right. dropped: bool[modules, rows]: whether a module alone would drop a row.

        visits: what each module did with these rows. Costs come of them alone, since all met the same rows: a
        module that few rows reach seems dear by its other visits.
        """
        if not dropped.shape[1]:
            return
        self._profiles += 1
        self.profiled += dropped.shape[1]
        self._outcomes.add([module.name for module in modules], dropped)
        for module, visit in zip(modules, visits, strict=True):
            if visit.given:
                costs = self._costs.setdefault(module.name, deque(maxlen=COSTS))
                costs.append(max(COST_MIN, visit.cost / visit.given))
        known = set(self._order)
        self._order += [module.name for module in modules if module.name not in known]
        known_costs = {name: min(costs) for name, costs in self._costs.items()}
        mean = sum(known_costs.values()) / len(known_costs) if known_costs else 1.0
        costs_a_row = [known_costs.get(name, mean) for name in self._order]
        order = right_order(self._outcomes.of(self._order), costs_a_row)
        self._put([self._order[place] for place in order])

    @property
    def order(self) -> tuple[str, ...]:
        """The filters that have outcomes, the first first."""
        return tuple(self._order)

    def _put(self, order: list[str]) -> None:
        self._order = order
        self._place = {name: place for place, name in enumerate(order)}

    # --- what every policy does -------------------------------------------------------------------

    def choose(self, ready: Sequence[M]) -> M:
        """By the order; what has no outcomes yet comes after it."""
        if not self._order:
            return super().choose(ready)
        return min(ready, key=self._place_of)

    def forget(self, name: str) -> None:
        super().forget(name)
        self._outcomes.forget(name)
        self._costs.pop(name, None)
        if name in self._place:
            self._put([other for other in self._order if other != name])

    def tickets(self, module: ModuleFacts) -> float:
        if not self._order:
            return super().tickets(module)
        return 1.0 / (1 + self._place_of(module))

    def _place_of(self, module: ModuleFacts) -> int:
        return self._place.get(module.name, len(self._place))
