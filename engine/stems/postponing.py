"""Which conditions new rows of a source meet before they are joined, and which only once they have a partner.

A condition that calls users' functions may stand after the probe of a join (pull-up) as well as before it
(push-down): a row without a partner is in no answer of an inner join, whatever the function says. After the
probe the function is called once for each row that has a partner, however many it has, since lineage is kept
by row; but rows that it refuses are put into indexes and combined. So it pays to postpone a condition where

    cost of a call * (1 - share of rows with a partner)  >  share refused * cost of joining a row / queries

all of which are measured; a row is spared the join where all queries that share it refuse it. A condition may
be postponed while all who share it ask nothing but a join that finds combinations as rows come; see
:class:`engine.stems.postponed.PostponedMatches` for what becomes of it.

Cost: O(conditions that call users' functions) a batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from engine.eddy.eddy import Eddy
from engine.stems.predicate_slots import PredicateSlots
from engine.stems.residual import ResidualPredicate
from engine.stems.residual_set import ResidualSet

PLACEMENTS = ("eddy", "push-down", "pull-up")
"""The first is the default."""

ABOUT = (
    "whether users' functions are called before rows are joined (push-down), for rows with a partner alone "
    "(pull-up), or as measured costs say (eddy)"
)

DEAR_NS = 2_000.0
"""A function that takes less is called before the join: a row that is postponed is looked at twice."""

POSTPONING_NS = 500.0
"""What it takes to look at a row again."""

TRIAL = 64
"""Once in so many batches a condition is postponed though that did not pay when it was last."""

FADING = 0.9
"""What is left of counts of rows a batch later."""


class PostponingJoin(Protocol):
    """A join, as its conditions are placed. finds: whether it finds combinations as rows come. row_ns: the
    share of one query in what joining a row took lately; None: it was not measured.
    """

    @property
    def placement(self) -> str: ...

    @property
    def finds(self) -> bool: ...

    @property
    def row_ns(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class PostponedConditions:
    """Conditions that rows meet once one of these joins has a partner for them."""

    modules: tuple[ResidualPredicate, ...]
    joins: frozenset[PostponingJoin]


@dataclass(slots=True)
class PostponedRows:
    """Counts of one condition, fading: rows that were postponed, and those of them that have a partner.
    before: batches since it was postponed.
    """

    postponed: float = 0.0
    met: float = 0.0
    before: int = 0
    is_later: bool = False

    @property
    def share(self) -> float:
        """Which share of rows has a partner; 0 before any was postponed, so that it is tried."""
        return min(1.0, self.met / self.postponed) if self.postponed else 0.0


class Postponing:
    """One owner, as the Query SteM whose slots and residuals these are."""

    def __init__(self, slots: PredicateSlots, residuals: ResidualSet, eddy: Eddy) -> None:
        self._slots = slots
        self._residuals = residuals
        self._eddy = eddy
        self._joins: dict[int, Counter[PostponingJoin]] = {}
        """By slot, the joins of those who hold it and may wait."""
        self._pinned: set[int] = set()
        """Slots whose matches somebody needs at once."""
        self._rows: dict[str, PostponedRows] = {}

    # --- who holds a slot -------------------------------------------------------------------------

    def hold(self, slot: int, join: PostponingJoin) -> None:
        """One of those who hold a slot asks for nothing but a join of its rows."""
        self._joins.setdefault(slot, Counter())[join] += 1

    def release(self, slot: int, join: PostponingJoin) -> None:
        """It does so no more."""
        joins = self._joins.get(slot)
        if joins is not None:
            joins[join] -= 1
            if not joins[join]:
                del joins[join]
            if not joins:
                del self._joins[slot]

    def pin(self, slots: Iterable[int]) -> None:
        """Conditions of these slots are not postponed any more, as long as they stand."""
        self._pinned.update(slots)

    def forget(self, slot: int) -> None:
        """A slot goes."""
        self._joins.pop(slot, None)
        self._pinned.discard(slot)

    def gone(self, module: str) -> None:
        """A condition goes."""
        self._rows.pop(module, None)

    # --- decisions --------------------------------------------------------------------------------

    def later(self) -> tuple[PostponedConditions, ...]:
        """The conditions that the next batch is to meet later, those for the same joins together."""
        found: dict[frozenset[PostponingJoin], list[ResidualPredicate]] = {}
        for module in self._residuals.calling.values() if self._joins else ():
            joins = self._joins_of(module)
            if joins and self._is_later(module, joins):
                found.setdefault(joins, []).append(module)
        return tuple(PostponedConditions(tuple(modules), joins) for joins, modules in found.items())

    def _joins_of(self, module: ResidualPredicate) -> frozenset[PostponingJoin]:
        """The joins of all who share a condition; none where somebody asks for something else."""
        found = set[PostponingJoin]()
        if module.selective or not module.users:
            return frozenset()
        for slot in module.dense:
            joins = self._joins.get(slot)
            if joins is None or slot in self._pinned or joins.total() != int(self._slots.holders[slot]):
                return frozenset()
            found.update(joins)
        return frozenset(found if all(join.finds for join in found) else ())

    def _is_later(self, module: ResidualPredicate, joins: Collection[PostponingJoin]) -> bool:
        placements = {join.placement for join in joins}
        rows = self._rows.setdefault(module.name, PostponedRows())
        if len(placements - {"eddy"}):
            rows.is_later = "push-down" not in placements
        else:
            rows.is_later = self._pays(module, joins, rows)
            rows.before = 0 if rows.is_later else rows.before + 1
            if rows.before >= TRIAL and (module.measured_ns or 0.0) >= DEAR_NS:
                rows.before = 0
                return True
        return rows.is_later

    def _pays(
        self, module: ResidualPredicate, joins: Collection[PostponingJoin], rows: PostponedRows
    ) -> bool:
        cost = module.measured_ns
        if cost is None or cost < DEAR_NS:
            return False
        return cost * (1 - rows.share) > POSTPONING_NS + self._refused(module) * _join_ns(joins)

    def _refused(self, module: ResidualPredicate) -> float:
        passed = self._eddy.passed(module.name)
        return 0.5 if passed is None else 1.0 - passed

    # --- what is measured -------------------------------------------------------------------------

    def came(self, module: ResidualPredicate, rows: int) -> None:
        """So many rows of a batch were postponed."""
        known = self._rows.setdefault(module.name, PostponedRows())
        known.postponed, known.met = FADING * known.postponed + rows, FADING * known.met

    def met(self, module: ResidualPredicate, rows: int) -> None:
        """So many of those that were postponed have a partner now."""
        known = self._rows.get(module.name)
        if known is not None:
            known.met += rows

    def facts(self, slot: int) -> dict[str, Any]:
        """Where the conditions of a slot that call users' functions stand, and why, by module."""
        return {m.name: self._facts(m) for m in self._residuals.of(slot) if m.users}

    def _facts(self, module: ResidualPredicate) -> dict[str, Any]:
        joins, rows, cost = self._joins_of(module), self._rows.get(module.name), module.measured_ns
        told: dict[str, Any] = {"placement": "before the join"}
        if not joins:
            told["why"] = "not all who share it ask for a join that finds combinations as rows come"
            return told
        placements = sorted({join.placement for join in joins})
        if rows is not None and rows.is_later:
            told["placement"] = "after the join"
        told["policy"] = placements
        told["call_ns"] = None if cost is None else round(cost)
        told["join_ns_per_row"] = round(_join_ns(joins))
        told["refused_share"] = float(f"{self._refused(module):.3g}")
        if rows is not None and rows.postponed:
            told["partner_share"] = float(f"{rows.share:.3g}")
        return told


def _join_ns(joins: Iterable[PostponingJoin]) -> float:
    return max((join.row_ns or 0.0 for join in joins), default=0.0)
