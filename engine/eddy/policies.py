"""Routing policies: which of the modules that rows in flight still need comes next (CACQ section 4).

A policy is told what each visit did and asked where to go next; whatever it answers, the rows that come out
are the same. What was measured counts for some tens of batches and fades, so that drift is followed. None
reads a clock or shares a generator: the cost of a visit is handed in, lots are drawn from a seed of its own,
so the same visits lead to the same routes.

A choice costs O(modules), and so does a batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

FADING = 0.9
"""What is left of a measurement a batch later: half after 7, a hundredth after 44."""

PRIOR_ROWS, PRIOR_ENDED = 256.0, 64.0
"""Rows that a module is taken to have met before it met any, and how many of them it ended: one that was not
visited for long comes back to that, and is tried again where the others are no better."""

COST_MIN = 1e-9
"""The least cost of a row: no visit counts as free."""

DELAYED = 2.0
"""A visit counts at most so many times as dear as those before: more is what something else did meanwhile."""


class ModuleFacts(Protocol):
    """What a policy knows of a stop. name: unique, and stays. queries: how many it serves."""

    @property
    def name(self) -> str: ...

    @property
    def queries(self) -> int: ...


M = TypeVar("M", bound=ModuleFacts)


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visit did.

    given, passed: rows or tuples that went in and came out; a join may let out more than went in. ended:
    wishes (a row, a query) that ended there. cost: in any unit, the same for all modules of a policy.
    errors: of the rows given, those for which a predicate is an error.
    """

    given: int
    passed: int
    ended: int
    cost: float
    errors: int = 0


class RoutingPolicy(Protocol):
    """See the module."""

    name: str

    def begin(self) -> None:
        """A batch begins: what was measured fades."""

    def choose(self, ready: Sequence[M]) -> M:
        """One of them; there is at least one."""

    def expect(self, module: ModuleFacts, cost: float) -> None:
        """What a row of a module that was not visited yet will cost; until its first visit."""

    def observe(self, module: ModuleFacts, visit: Visit) -> None:
        """What the visit that was chosen did."""

    def forget(self, name: str) -> None:
        """A module is gone."""

    def tickets(self, module: ModuleFacts) -> float:
        """How much the policy thinks of a module now; the more the sooner. For those who look on."""


@dataclass(slots=True)
class VisitSums:
    """Sums over visits of one module, fading. batch: the last one that counted. expected: the cost of a row
    before the first visit; None: nothing is known of it.
    """

    batch: int = 0
    given: float = 0.0
    passed: float = 0.0
    ended: float = 0.0
    cost: float = 0.0
    expected: float | None = None

    def fade(self) -> None:
        self.given *= FADING
        self.passed *= FADING
        self.ended *= FADING
        self.cost *= FADING

    def add(self, visit: Visit) -> None:
        cost = visit.cost
        if self.given:
            cost = min(cost, DELAYED * self.cost / self.given * visit.given)
        self.given += visit.given
        self.passed += visit.passed
        self.ended += visit.ended
        self.cost += cost

    def passed_a_row(self) -> float:
        """Rows let pass a row given."""
        return (self.passed + PRIOR_ROWS - PRIOR_ENDED) / (self.given + PRIOR_ROWS)


class Measurements:
    """What was measured of each module; it fades in batches in which the module was a choice."""

    def __init__(self) -> None:
        self._of: dict[str, VisitSums] = {}
        self._batch = 0

    def begin(self) -> None:
        self._batch += 1

    def observe(self, module: ModuleFacts, visit: Visit) -> None:
        self.current(module).add(visit)

    def forget(self, name: str) -> None:
        self._of.pop(name, None)

    def current(self, module: ModuleFacts) -> VisitSums:
        """What counts in this batch, of a module that is a choice in it."""
        measured = self.of(module)
        if measured.batch < self._batch:
            measured.batch = self._batch
            measured.fade()
        return measured

    def of(self, module: ModuleFacts) -> VisitSums:
        """For those who look on."""
        measured = self._of.get(module.name)
        if measured is None:
            measured = self._of[module.name] = VisitSums()
        return measured

    def cost_a_row(self, measured: VisitSums) -> float:
        """The cost of a module per row, above 0; for a module that was never visited what is expected of it,
        else the mean of the others, or 1.
        """
        if measured.given:
            return measured.cost / measured.given or COST_MIN
        if measured.expected is not None:
            return measured.expected or COST_MIN
        known = [each.cost / each.given for each in self._of.values() if each.given]
        return (sum(known) / len(known) if known else 1.0) or COST_MIN


SHARPNESS = 12
"""A module's chance is its tickets to this power: the best one comes first in all but a few batches, those
that come near it get their share, the others a batch now and then. Drawn by the tickets themselves, as in the
paper, half the batches would pass the best one by."""

WISH = 1 / 8
"""The worth of a row that one query gives up and others of the module keep, where a row given up by all is
worth 1: the row is nearer its end, but no visit is spared yet.
"""

LEAST = 1e-3
"""Credit a row of a module that ends nothing, a query it serves. Among such ones the cheaper comes first."""

FANNED_OUT = 1e-18
"""So little that a module which lets out more than went in comes after all others, whatever they cost; among
such ones the order is that of (1 - passed) / cost."""

DRAWN = 256
"""Lots drawn at once."""


class _Learning:
    """A policy that goes by what was measured: what it thinks of a module holds for a batch."""

    def __init__(self) -> None:
        self._measurements = Measurements()
        self._thought: dict[str, float] = {}

    def begin(self) -> None:
        self._measurements.begin()
        self._thought.clear()

    def expect(self, module: ModuleFacts, cost: float) -> None:
        self._measurements.of(module).expected = cost

    def observe(self, module: ModuleFacts, visit: Visit) -> None:
        self._measurements.observe(module, visit)

    def forget(self, name: str) -> None:
        self._measurements.forget(name)

    def tickets(self, module: ModuleFacts) -> float:
        return self._worth(module, self._measurements.of(module))

    def _worth(self, module: ModuleFacts, measured: VisitSums) -> float:
        raise NotImplementedError


class _Unlearning:
    """A policy to which visits say nothing."""

    def begin(self) -> None:
        """Nothing fades."""

    def expect(self, module: ModuleFacts, cost: float) -> None:
        """Nothing is expected."""

    def observe(self, module: ModuleFacts, visit: Visit) -> None:
        """Nothing is learnt."""

    def forget(self, name: str) -> None:
        """Nothing is known."""


class Tickets(_Learning):
    """A lottery (CACQ section 4): tickets for rows ended, weighted by queries, and for wishes ended, by cost.

    Back-pressure: where modules have queues, a slow one's is full and rows go to a quick one meanwhile. Here
    a visit ends before the next begins, and the same comes of dividing by what a row cost.
    """

    name = "tickets"

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._generator = np.random.default_rng(seed)
        self._drawn: list[float] = []

    def choose(self, ready: Sequence[M]) -> M:
        """The least lot; one is drawn a batch, which is the same as drawing anew at each choice."""
        return min(ready, key=self._lot)

    def _lot(self, module: ModuleFacts) -> float:
        """The logarithm of a time that is the shorter the greater the chance: exponential, so that each of
        any set is the first as often as its chance is a share of theirs.
        """
        lot = self._thought.get(module.name)
        if lot is None:
            if not self._drawn:
                self._drawn = np.log(self._generator.exponential(size=DRAWN)).tolist()
            tickets = self._worth(module, self._measurements.current(module))
            lot = self._thought[module.name] = self._drawn.pop() - SHARPNESS * math.log(tickets)
        return lot

    def _worth(self, module: ModuleFacts, measured: VisitSums) -> float:
        queries = max(1, module.queries)
        rows = measured.given + PRIOR_ROWS
        killed = (measured.given - measured.passed + PRIOR_ENDED) / rows
        if killed < 0:
            return FANNED_OUT * queries * self._measurements.cost_a_row(measured) / -killed
        wishes = (measured.ended / queries + PRIOR_ENDED) / rows
        return queries * max(LEAST, killed + WISH * wishes) / self._measurements.cost_a_row(measured)


class Random(_Unlearning):
    """Any of them, alike: what learning nothing costs."""

    name = "random"

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def choose(self, ready: Sequence[M]) -> M:
        return ready[int(self._generator.integers(len(ready)))]

    def tickets(self, module: ModuleFacts) -> float:
        return 1.0


class FixedOrder(_Unlearning):
    """An order of names, and after those the order in which modules came. A name keeps its place."""

    name = "fixed"

    def __init__(self, order: Sequence[str] = ()) -> None:
        self._place = {name: place for place, name in enumerate(order)}

    def choose(self, ready: Sequence[M]) -> M:
        return min(ready, key=self._place_of)

    def tickets(self, module: ModuleFacts) -> float:
        return 1.0 / (1 + self._place_of(module))

    def _place_of(self, module: ModuleFacts) -> int:
        return self._place.get(module.name, len(self._place))


class Optimal(_Learning):
    """The greatest rank (1 - share passed) / cost a row over what was measured lately; ties to the first.

    The best order where what modules let pass is independent, as far as it was measured; it never tries
    another, except that what was not visited for long is thought of as ending a quarter.
    """

    name = "optimal"

    def choose(self, ready: Sequence[M]) -> M:
        return max(ready, key=self._rank)

    def _rank(self, module: ModuleFacts) -> float:
        rank = self._thought.get(module.name)
        if rank is None:
            rank = self._thought[module.name] = self._worth(module, self._measurements.current(module))
        return rank

    def _worth(self, module: ModuleFacts, measured: VisitSums) -> float:
        return (1.0 - measured.passed_a_row()) / self._measurements.cost_a_row(measured)
