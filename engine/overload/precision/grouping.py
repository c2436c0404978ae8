"""Queries that have one plan become one group of variables, and what is not connected falls apart.

Two queries of one shape over the same entities are one group; so are two of one shape, weight and bounds
whose entities nobody else reads and that cost the same: they get equal shares. A shared entity counts once,
with the losses of all its readers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.overload.precision.precision import FloatArray
from engine.overload.precision.problem import Entity, EntityId, PlannedQuery, Problem, QueryId
from engine.overload.precision.shape import PlanShape

_Bounds = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Group:
    """Queries with one plan. places: of its slots among the variables of its part. weight: the sum of theirs.
    heaviest: the largest of their weights, by which bounds are given up: the least first.
    """

    shape: PlanShape
    places: tuple[int, ...]
    weight: float
    heaviest: float
    bounds: _Bounds
    queries: tuple[QueryId, ...]

    @property
    def is_bounded(self) -> bool:
        return any(bound is not None for bound in self.bounds)


@dataclass(frozen=True, slots=True)
class VariablePart:
    """Variables that no other part touches.

    low, high, bytes, cpu_ns, held: float64[variables]; costs are those of all entities that a variable stands
    for. scaled_by: for each variable the variables whose shares multiply its costs. entities: for each
    variable, the entities that get its share.
    """

    groups: tuple[Group, ...]
    entities: tuple[tuple[EntityId, ...], ...]
    low: FloatArray
    high: FloatArray
    bytes: FloatArray
    cpu_ns: FloatArray
    held: FloatArray
    scaled_by: tuple[tuple[int, ...], ...]
    key: Hashable

    @property
    def variables(self) -> int:
        return len(self.low)


def parts_of(problem: Problem, together_max: int) -> tuple[VariablePart, ...]:
    """Every entity is in one part. together_max: with so few variables in all, they are one part.

    Cost: O(queries + entities).
    """
    entities = {entity.id: entity for entity in problem.entities}
    readers: dict[EntityId, int] = defaultdict(int)
    pinned: set[EntityId] = set()
    alike: dict[tuple[PlanShape, tuple[EntityId, ...], _Bounds], list[PlannedQuery]] = {}
    for query in problem.queries:
        if query.exact:
            pinned.update(query.entities)
            for name in query.entities:
                readers[name] += 1
            continue
        bounds = query.max_fp, query.max_fn, query.max_error
        alike.setdefault((query.shape, query.entities, bounds), []).append(query)
    for _, names, _ in alike:
        for name in set(names):
            readers[name] += 1
    scaling = {name for entity in problem.entities for name in entity.scaled_by}
    variables = _Variables()
    groups: dict[Hashable, list[PlannedQuery]] = {}
    for (shape, names, bounds), queries in alike.items():
        private = names and all(
            readers[name] == 1 and name not in scaling and not entities[name].scaled_by for name in names
        )
        if private and len(set(names)) == len(names):
            weight = sum(query.weight for query in queries)
            costs = tuple(_terms(entities[name]) for name in names)
            key: Hashable = shape, costs, bounds, weight
            variables.merge(key, names)
        else:
            key = shape, names, bounds
        groups.setdefault(key, []).extend(queries)
    for entity in problem.entities:
        variables.add(entity.id)
    return _assembled(problem, entities, readers, pinned, groups, variables, together_max)


def _terms(entity: Entity) -> tuple[float | str, ...]:
    return entity.kind, entity.low, entity.high, entity.bytes, entity.cpu_ns, entity.held


class _Variables:
    """Which entities share a variable."""

    def __init__(self) -> None:
        self.of: dict[EntityId, int] = {}
        self.entities: list[list[EntityId]] = []
        self._merged: dict[Hashable, list[int]] = {}

    def merge(self, key: Hashable, names: Iterable[EntityId]) -> None:
        """Entities of one group of equal plans: one variable for each slot."""
        found = self._merged.get(key)
        if found is None:
            self._merged[key] = [self.add(name) for name in names]
            return
        for name, variable in zip(names, found, strict=True):
            self.of[name] = variable
            self.entities[variable].append(name)

    def add(self, name: EntityId) -> int:
        if name not in self.of:
            self.of[name] = len(self.entities)
            self.entities.append([name])
        return self.of[name]


def _ranges(
    entities: Sequence[Entity], pinned: set[EntityId], readers: Mapping[EntityId, int], problem: Problem
) -> tuple[FloatArray, FloatArray]:
    """The lowest and the highest of each: pinned ones have their highest, those without use their lowest."""
    low = np.array([entity.low for entity in entities])
    high = np.array([entity.high for entity in entities])
    for variable, entity in enumerate(entities):
        if entity.id in pinned:
            low[variable] = high[variable]
        elif entity.id not in readers and not any(entity.id in one.scaled_by for one in problem.entities):
            high[variable] = low[variable]
    return low, high


def _group(queries: Sequence[PlannedQuery], places: tuple[int, ...]) -> Group:
    """Queries of one plan over the same variables, of their part's at these places."""
    some = queries[0]
    return Group(
        some.shape,
        places,
        sum(query.weight for query in queries),
        max(query.weight for query in queries),
        (some.max_fp, some.max_fn, some.max_error),
        tuple(query.id for query in queries),
    )


def _joined(scaled_by: Sequence[Sequence[int]], groups: Iterable[Sequence[int]]) -> _Sets:
    """The variables that one group reads together, or of which one scales another."""
    joined = _Sets(len(scaled_by))
    for variable, others in enumerate(scaled_by):
        for other in others:
            joined.join(variable, other)
    for places in groups:
        for place in places[1:]:
            joined.join(places[0], place)
    return joined


def _assembled(
    problem: Problem,
    entities: Mapping[EntityId, Entity],
    readers: Mapping[EntityId, int],
    pinned: set[EntityId],
    groups: Mapping[Hashable, list[PlannedQuery]],
    variables: _Variables,
    together_max: int,
) -> tuple[VariablePart, ...]:
    count = len(variables.entities)
    first = [entities[names[0]] for names in variables.entities]
    copies = np.array([len(names) for names in variables.entities], np.float64)
    low, high = _ranges(first, pinned, readers, problem)
    scaled_by = [tuple(variables.of[name] for name in entity.scaled_by) for entity in first]
    lists = [(queries, [variables.of[name] for name in queries[0].entities]) for queries in groups.values()]
    joined = _joined(scaled_by, [places for _, places in lists])
    if int(np.sum(high > low)) <= together_max:
        for variable in range(1, count):
            joined.join(0, variable)
    members: dict[int, list[int]] = defaultdict(list)
    for variable in range(count):
        members[joined.root(variable)].append(variable)
    within: dict[int, list[Group]] = defaultdict(list)
    unread: list[Group] = []
    places_in = {variable: place for names in members.values() for place, variable in enumerate(names)}
    for queries, places in lists:
        group = _group(queries, tuple(places_in[place] for place in places))
        if places:
            within[joined.root(places[0])].append(group)
        else:
            unread.append(group)
    parts = []
    for root, inside in members.items():
        index = np.array(inside)
        costs = [np.array([getattr(first[each], name) for each in inside]) for name in ("bytes", "cpu_ns")]
        part_groups = tuple(within[root])
        scales = tuple(tuple(places_in[other] for other in scaled_by[each]) for each in inside)
        held = np.array([first[each].held for each in inside])
        parts.append(
            VariablePart(
                part_groups,
                tuple(tuple(variables.entities[each]) for each in inside),
                low[index],
                high[index],
                costs[0] * copies[index],
                costs[1] * copies[index],
                held,
                scales,
                _key(part_groups, low[index], high[index], costs, copies[index], held, scales),
            )
        )
    if unread:
        none = np.zeros(0)
        parts.append(VariablePart(tuple(unread), (), none, none, none, none, none, (), None))
    return tuple(parts)


def _key(
    groups: Sequence[Group],
    low: FloatArray,
    high: FloatArray,
    costs: Sequence[FloatArray],
    copies: FloatArray,
    held: FloatArray,
    scales: Hashable,
) -> Hashable:
    """Equal for parts whose losses and costs are the same functions."""
    arrays = (low, high, *costs, copies, held)
    return (
        tuple((group.shape, group.places, group.weight, group.bounds) for group in groups),
        tuple(array.tobytes() for array in arrays),
        scales,
    )


class _Sets:
    """Disjoint sets of numbers."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def root(self, one: int) -> int:
        while self._above[one] != one:
            self._above[one] = one = self._above[self._above[one]]
        return one

    def join(self, one: int, other: int) -> None:
        self._above[self.root(one)] = self.root(other)
