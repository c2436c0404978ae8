"""How the changes of a query are worked out and why, as EXPLAIN shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.dataflow.choice import Choice
from engine.dataflow.cost.estimate import PlanCost
from engine.dataflow.operator_tree import CostTerm, EstimatedState, OperatorCost, OperatorTree
from engine.dataflow.policy import Policy


@dataclass(frozen=True, slots=True)
class WeighedStrategy:
    """One way of several. listed, entries, ns: what it costs a second, as terms of operators say."""

    name: str
    listed: float
    entries: float
    ns: float
    state_bytes: float


@dataclass(frozen=True, slots=True)
class StrategyPlan:
    """How operators keep rows. strategy: nt, direct or upa. structure: of upa where rows leave before their
    time. rules: rewrites that led to the plan. reason: why the runner-up lost. premature: the largest share
    of rows that leave an edge before their time. cost: None where nothing was measured; others: what the
    other ways would cost, the cheapest first.
    """

    strategy: str
    structure: str | None
    rules: tuple[str, ...]
    asked_for: bool
    reason: str
    premature: float | None
    cost: WeighedStrategy | None
    others: tuple[WeighedStrategy, ...]


@dataclass(frozen=True, slots=True)
class Explained:
    """The operators of a query's changes, and why they are these."""

    tree: OperatorTree
    strategy: StrategyPlan


def with_costs(tree: OperatorTree, cost: PlanCost) -> OperatorTree:
    """Returns the tree with what each operator costs."""
    below = tuple(with_costs(one, other) for one, other in zip(tree.inputs, cost.inputs, strict=True))
    kept = tuple(EstimatedState(each.of, each.structure, each.partitions, each.rows) for each in cost.kept)
    terms = tuple(CostTerm(each.name, each.listed, each.entries, each.ns) for each in cost.terms)
    flow = cost.flow
    return replace(tree, inputs=below, cost=OperatorCost(flow.rate, flow.rows, flow.premature, kept, terms))


def strategy_of(policy: Policy, choice: Choice | None, cost: PlanCost | None) -> StrategyPlan:
    """Explains the strategy of a query whose plan follows a policy. choice: the ways that were weighed; None:
    none were.
    """
    strict = cost is not None and cost.is_strict
    structure = policy.structure if strict and policy.strategy == "upa" else None
    if choice is None or cost is None:
        why = "no costs were measured yet" if cost is None else "it keeps no rows besides its windows"
        return StrategyPlan(policy.strategy, structure, (), False, why, None, None, ())
    chosen = choice.chosen
    others = sorted(choice.others, key=lambda other: other.estimate.ns)
    cut = "retention takes rows before they leave their windows, so each exit is told"
    return StrategyPlan(
        policy.strategy,
        structure,
        chosen.rules,
        choice.asked_for,
        choice.reason if policy == chosen.policy else cut,
        cost.premature,
        _weighed(chosen.name, cost),
        tuple(_weighed(other.name, other.estimate) for other in others),
    )


def _weighed(name: str, cost: PlanCost) -> WeighedStrategy:
    return WeighedStrategy(name, cost.listed, cost.entries, cost.ns, cost.state_bytes)
