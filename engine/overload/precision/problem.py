"""What is allocated, to whom, and what came of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NewType

import numpy as np

from engine.model.approximation import Expected
from engine.overload.precision.shape import PlanShape, PrecisionFlow, Reads
from tureen.errors import OptionRefused, PrecisionUnreachable

EntityId = NewType("EntityId", str)
QueryId = str
EntityKind = Literal["synopsis", "queue", "sampler"]


@dataclass(frozen=True, slots=True)
class Entity:
    """What may be given less: its share x is chosen from low to high, 1 is what exactness takes.

    bytes, cpu_ns: what it takes at share 1, of memory, and of each second. Both are as the share; where other
    entities decide too how much there is to keep (a window of sampled rows), they are as the product with the
    shares of ``scaled_by``. held: the share that an exact reader of the same rows makes stay in memory, so
    that it costs no bytes.
    """

    id: EntityId
    kind: EntityKind
    low: float = 0.0
    high: float = 1.0
    bytes: float = 0.0
    cpu_ns: float = 0.0
    scaled_by: tuple[EntityId, ...] = ()
    held: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.low <= self.high <= 1.0:
            raise OptionRefused(
                f"{self.id} cannot be given from {self.low} to {self.high}",
                hint="shares rise, and lie from 0 to 1",
            )
        if not 0.0 <= self.held <= 1.0:
            raise OptionRefused(f"{self.held} of {self.id} cannot be held", hint="a share lies from 0 to 1")
        for name, cost in (("bytes", self.bytes), ("cpu_ns", self.cpu_ns)):
            if not (np.isfinite(cost) and cost >= 0.0):
                raise OptionRefused(f"{name} of {self.id} cannot be {cost}", hint="0 or more")


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """A query that reads entities. entities: by the slots of its shape.

    max_fp, max_fn, max_error: bounds; None: any. exact: its entities are served in full, whoever else reads
    them.
    """

    id: QueryId
    shape: PlanShape
    entities: tuple[EntityId, ...]
    weight: float = 1.0
    max_fp: float | None = None
    max_fn: float | None = None
    max_error: float | None = None
    exact: bool = False

    def __post_init__(self) -> None:
        if len(self.entities) != self.shape.slots:
            raise ValueError(f"{self.id} has {len(self.entities)} entities for {self.shape.slots} slots")
        if not (np.isfinite(self.weight) and self.weight > 0.0):
            raise OptionRefused(f"weight cannot be {self.weight}", hint="a number above 0")
        for name, most in (("max_fp", self.max_fp), ("max_fn", self.max_fn)):
            if most is not None and not 0.0 <= most <= 1.0:
                raise OptionRefused(f"{name} cannot be {most}", hint="a share, from 0 to 1")
        if self.max_error is not None and not (np.isfinite(self.max_error) and self.max_error > 0.0):
            raise OptionRefused(f"max_error cannot be {self.max_error}", hint="a number above 0")


@dataclass(frozen=True, slots=True)
class Problem:
    """entities: all that queries name, each once. budget_bytes, budget_cpu_ns: None: without limit.

    fp_share: a of the loss a FP + (1 - a) FN of a query of rows.
    Raises OptionRefused: a budget or a share out of range; ValueError: names that do not fit together.
    """

    entities: Sequence[Entity]
    queries: Sequence[PlannedQuery]
    budget_bytes: float | None = None
    budget_cpu_ns: float | None = None
    fp_share: float = 0.5

    def __post_init__(self) -> None:
        if not 0.0 <= self.fp_share <= 1.0:
            raise OptionRefused(f"fp_share cannot be {self.fp_share}", hint="a share, from 0 to 1")
        for name, budget in (("budget_bytes", self.budget_bytes), ("budget_cpu_ns", self.budget_cpu_ns)):
            if budget is not None and not (np.isfinite(budget) and budget >= 0.0):
                raise OptionRefused(f"{name} cannot be {budget}", hint="0 or more")
        known = {entity.id for entity in self.entities}
        if len(known) != len(self.entities):
            raise ValueError("two entities have one id")
        for entity in self.entities:
            if entity.id in entity.scaled_by or not known.issuperset(entity.scaled_by):
                raise ValueError(f"{entity.id} is scaled by itself, or by an entity that is not there")
        for query in self.queries:
            if not known.issuperset(query.entities):
                raise ValueError(f"{query.id} reads an entity that is not there")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query may expect. fp, fn: of its answer. error: of aggregates, relative; None of
    rows, and where nothing tells. fn_changes: the share of the rows due to come or to leave that do not.
    """

    fp: float
    fn: float
    error: float | None = None
    fn_changes: float | None = None
    reads: Reads = "answer"

    @property
    def missing(self) -> float:
        """The share of the rows due that are missing to who reads them."""
        return self.fn if self.reads == "answer" or self.fn_changes is None else self.fn_changes

    @property
    def expected(self) -> Expected:
        """As tags have it."""
        same = self.fn_changes is None or abs(self.fn_changes - self.fn) < 1e-9
        return Expected(self.fp, self.fn, self.error, None if same else self.fn_changes)

    @classmethod
    def at(cls, flow: PrecisionFlow, point: int = 0) -> Outcome:
        """Reads the outcome of a plan off the flow that leaves it, at one point."""
        precision = flow.precision
        return cls(
            float(precision.fp[point]),
            float(precision.fn[point]),
            float(flow.error[point]) if flow.error is not None and flow.told else None,
            float(1.0 - flow.arriving[point]),
            flow.reads,
        )


@dataclass(frozen=True, slots=True)
class Solved:
    """A part of the problem, solved with some share of the budget.

    cost: the share of the whole budget it took; slope: loss that one more unit of cost would save; x:
    float64[variables of the part], a tuple.
    """

    cost: float
    loss: float
    slope: float
    x: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Solved points of a part. unit: (per byte, per ns) of their costs."""

    unit: tuple[float, float]
    points: tuple[Solved, ...]


@dataclass(frozen=True, slots=True)
class Allocation:
    """Who gets how much. memory: by what a part is, and by its entities, what the next time begins with.

    x: the share of each entity. expected: of each query. unreachable: queries whose bounds cannot be kept
    with the budget, the least weighty ones; the best is done for them without. fits: False where even the
    least shares take more than the budget. converged: False where the solver failed, and the last allocation
    stands, or else shares as the costs. kept: the last allocation stands because another one would gain too
    little.
    """

    x: Mapping[EntityId, float]
    expected: Mapping[QueryId, Outcome]
    unreachable: frozenset[QueryId]
    loss: float
    bytes: float
    cpu_ns: float
    fits: bool = True
    converged: bool = True
    kept: bool = False
    rounds: int = 0
    memory: Mapping[Hashable, Curve] = field(default_factory=dict, repr=False)

    def refusals(self) -> dict[QueryId, PrecisionUnreachable]:
        """What the queries are told whose bounds cannot be kept."""
        outcomes = {name: self.expected[name] for name in sorted(self.unreachable)}
        return {name: PrecisionUnreachable(one.fp, one.missing, one.error) for name, one in outcomes.items()}
