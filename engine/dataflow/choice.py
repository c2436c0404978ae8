"""Which of the plans that mean the same a query gets, and how their operators keep rows: by cost.

A candidate is a query (as written, or rewritten by :mod:`engine.dataflow.rewrites`) and a policy. All have
the same answers and changes, so a choice may be made again at any time, as rates change: a query keeps its
own until another one costs a good deal less (:data:`CHANGE_GAIN`), so that a load near a border does not
swing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from engine.dataflow.buffers.settings import StateSettings
from engine.dataflow.cost.estimate import PlanCost, estimate
from engine.dataflow.cost.statistics import Statistics
from engine.dataflow.physical import physical
from engine.dataflow.plan import plan_of
from engine.dataflow.policy import ONE_STORE, Policy
from engine.dataflow.rewrites import alternatives
from engine.dataflow.rewrites.rule import Sources
from engine.language.query import Query
from engine.model.maintenance import QueryOptions, Structure, UnitCosts

CHANGE_GAIN = 1.25
"""A query gets another plan or policy where that costs less by this factor."""

REWRITTEN_GAIN = 1.02
"""A query is rewritten where that costs less by this factor: what is no better is not worth a second look."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to work a query out. rules: that lead from the text to it."""

    query: Query
    rules: tuple[str, ...]
    policy: Policy
    estimate: PlanCost

    @property
    def name(self) -> str:
        """As EXPLAIN says it."""
        policy = self.policy
        words: list[str] = [policy.strategy]
        if policy.strategy == "upa" and self.estimate.is_strict:
            words.append(policy.structure)
        return ", ".join([" ".join(words), *self.rules])


@dataclass(frozen=True, slots=True)
class Choice:
    """chosen: the cheapest, but for hysteresis. asked_for: its strategy, by an option."""

    chosen: Candidate
    others: tuple[Candidate, ...]
    asked_for: bool = False

    @property
    def runner_up(self) -> Candidate | None:
        """The cheapest of the others."""
        return min(self.others, key=lambda other: other.estimate.ns, default=None)

    @property
    def reason(self) -> str:
        """One line for EXPLAIN: why the runner-up lost."""
        other = self.runner_up
        if other is None:
            return "no other would change the plan" if not self.asked_for else "set by an option"
        cost, lost = self.chosen.estimate.ns, other.estimate.ns
        factor = f"{lost / cost:.3g}" if cost else "1"
        told = f"{other.name} would cost as much"
        if factor != "1":
            told = f"{other.name} would cost {factor} times as much{_because(self.chosen, other)}"
        if self.asked_for:
            return f"set by an option; {told}"
        if lost < cost and factor != "1":
            told += f"; the plan changes when another one costs less by a factor of {CHANGE_GAIN}"
        return told


def _because(one: Candidate, other: Candidate) -> str:
    """What weighs most in the difference."""
    here, there = _by_name(one), _by_name(other)
    more = {name: there.get(name, 0.0) - here.get(name, 0.0) for name in {*here, *there}}
    sign = 1 if other.estimate.ns >= one.estimate.ns else -1
    name = max(sorted(more), key=lambda each: sign * more[each], default=None)
    if name is None or sign * more[name] <= 0:
        return ""
    return f", the difference mostly by {name}"


def _by_name(candidate: Candidate) -> dict[str, float]:
    found: dict[str, float] = {}
    for term in candidate.estimate.all_terms():
        found[term.name] = found.get(term.name, 0.0) + term.ns
    return found


def choose(
    query: Query,
    sources: Sources,
    known: Statistics,
    units: UnitCosts,
    options: QueryOptions,
    present: tuple[tuple[str, ...], Policy] | None = None,
    settings: StateSettings | None = None,
) -> Choice:
    """The cheapest way of those that the options leave open. present: the rules and the policy in use,
    which stay unless others cost a good deal less. settings: what state is made with.
    """
    tables = frozenset(name for name, stream in sources.items() if stream.is_table)
    found: list[Candidate] = []
    for text, rules in alternatives(query, sources):
        told = plan_of(text, tables)
        for policy in _policies(options):
            made = physical(told, policy)
            cost = estimate(made, known, units, tables, settings)
            if _is_apart(policy, options, cost, exits_known=made != told):
                found.append(Candidate(text, rules, policy, cost))
    chosen = min(found, key=_cost)
    stays = (
        None
        if present is None
        else next((each for each in found if (each.rules, each.policy) == present), None)
    )
    if stays is not None and chosen.estimate.ns * CHANGE_GAIN > stays.estimate.ns:
        chosen = stays
    others = tuple(each for each in found if each is not chosen)
    return Choice(chosen, others, options.strategy is not None)


def _is_apart(policy: Policy, options: QueryOptions, cost: PlanCost, *, exits_known: bool) -> bool:
    """Whether a policy makes a plan of its own, and may be chosen."""
    if options.strategy is not None and (options.structure is not None or policy.strategy != "upa"):
        return True
    if policy == ONE_STORE:
        return True
    if not exits_known and options.strategy is None:
        return False
    if policy.strategy == "direct":
        return not cost.is_strict
    return cost.is_strict or policy.structure == "partitioned"


def _cost(candidate: Candidate) -> float:
    return candidate.estimate.ns * (REWRITTEN_GAIN ** bool(candidate.rules))


def _policies(options: QueryOptions) -> Iterable[Policy]:
    """Those that the options leave open."""
    if options.strategy is None:
        yield ONE_STORE
    if options.strategy == "nt":
        yield Policy("nt")
    if options.strategy in (None, "direct"):
        yield Policy("direct")
    if options.strategy in (None, "upa"):
        structures = get_args(Structure) if options.structure is None else (options.structure,)
        for structure in structures:
            yield Policy("upa", structure, options.partitions)
