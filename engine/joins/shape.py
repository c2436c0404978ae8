"""Shapes: what queries must have in common to share the work of a join.

A shape is the equalities among the sources that a query's leading joins name, and nothing else: windows,
predicates of scans, conditions, what is selected and what follows may differ. A join belongs to the *chain*
as long as its inputs are rows of a source and each side of its keys is decided by one row:

    scan of s, JOIN t ON s.k = t.k, JOIN u ON t.m = u.m AND s.v < u.v, Filter, ...
    inputs  s, t, u          edges  s.k = t.k, t.m = u.m          the condition is the query's own

The chain is that of :mod:`engine.operators.chain`, as far as its keys go: it ends before a join with a key
that may be an error (errors are counted query by query) or that takes columns of more than one input.

Cost: O(size of the keys).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from engine.algebra.join.stage import Join
from engine.language.query import Query
from engine.language.render import render_expression
from engine.model import expressions as ex
from engine.model.source import SourceName
from engine.model.types import BIGINT, Kind, Type
from engine.operators.chain import leading_joins
from engine.operators.maintained.measure import can_err
from engine.stems.match_place import Place, slot_at
from engine.windows.clauses import Window

INPUTS_MAX = 8


@dataclass(frozen=True, slots=True)
class JoinEdge:
    """Rows of inputs ``left`` < ``right`` are partners where all keys equal, pair by pair, none of them NULL.

    left_keys, right_keys: over the columns of either input's source.
    """

    left: int
    right: int
    left_keys: tuple[ex.Expression, ...]
    right_keys: tuple[ex.Expression, ...]

    def other(self, place: int) -> int:
        """The input at its other end."""
        return self.right if place == self.left else self.left


def edges_to(place: int, bound: Collection[int], edges: Sequence[JoinEdge]) -> tuple[int, ...]:
    """The numbers of the edges between an input and those that are bound."""
    return tuple(
        number
        for number, edge in enumerate(edges)
        if place in (edge.left, edge.right) and edge.other(place) in bound
    )


@dataclass(frozen=True, slots=True)
class Shape:
    """inputs: 2 to 8 sources in the order of FROM, one perhaps more than once. edges: every input but the
    first has one to an earlier input; two inputs have one at most between them.
    """

    inputs: tuple[SourceName, ...]
    edges: tuple[JoinEdge, ...]

    def __str__(self) -> str:
        """Its edges, inputs numbered from 0 as FROM names them: ``s#0.k = t#1.k``."""
        return ", ".join(
            f"{self.inputs[edge.left]}#{edge.left}.{render_expression(one)} = "
            f"{self.inputs[edge.right]}#{edge.right}.{render_expression(other)}"
            for edge in self.edges
            for one, other in zip(edge.left_keys, edge.right_keys, strict=True)
        )


def shape_of(query: Query, widths: Mapping[SourceName, int]) -> Shape | None:
    """The shape of a query's chain; None where it has none. widths: how many columns each source has."""
    if query.scan.assignment is not None or query.scan.history or not leading_joins(query):
        return None
    if query.last_stream is not None:  # its joins are evaluated at many instants
        return None
    owners = [_Owner(0, place) for place in range(widths[query.scan.source])]
    inputs, edges = [query.scan.source], list[JoinEdge]()
    for stage in leading_joins(query)[: INPUTS_MAX - 1]:
        assert stage.inner.outputs is not None
        columns = [o.expression for o in stage.inner.outputs if isinstance(o.expression, ex.Column)]
        inner = [_Owner(len(inputs), column.index, column.name) for column in columns]
        found = _edges(stage, owners, inner)
        if found is None:
            break
        owners += inner
        inputs.append(stage.inner.scan.source)
        edges += found
    return Shape(tuple(inputs), tuple(edges)) if edges else None


def windows_of(query: Query, shape: Shape) -> tuple[Window, ...]:
    """The window of each input of the shape, which is the query's or one that begins as it does."""
    joins = leading_joins(query)[: len(shape.inputs) - 1]
    return (query.scan.window, *(join.inner.scan.window for join in joins))


def wanted_slots(query: Query, shape: Shape, places: Sequence[Place]) -> tuple[int | None, ...]:
    """The slot of the predicate of each input of the shape; None where it has none, or no matches of it are
    kept. places: of each of the query's predicates.
    """
    joins = leading_joins(query)[: len(shape.inputs) - 1]
    scans = [query.scan, *(join.inner.scan for join in joins)]
    kept = list(zip(query.predicates(), places, strict=True)) if places else []

    def slot_of(source: SourceName, predicate: ex.Expression | None) -> int | None:
        for (name, known), place in kept:
            if name == source and (known is predicate or known == predicate):
                return slot_at(place)
        return None

    return tuple(None if s.predicate is None else slot_of(s.source, s.predicate) for s in scans)


@dataclass(frozen=True, slots=True)
class _Owner:
    """The origin of a column of a relation: an input, its place in that input's source, and its name there if
    the relation may call it otherwise.
    """

    input: int
    place: int
    name: str | None = None


def _edges(stage: Join, owners: Sequence[_Owner], inner: Sequence[_Owner]) -> list[JoinEdge] | None:
    """The keys of a join, those of one earlier input together; None where one of them is not to be shared."""
    by_input: dict[int, list[tuple[ex.Expression, ex.Expression]]] = {}
    for left_key, right_key in stage.keys:
        here, there = _local(left_key, owners), _local(right_key, inner)
        if here is None or there is None:
            return None
        (left, left_local), (_, right_local) = here, there
        if not _alike(left_local.type, right_local.type):
            return None
        by_input.setdefault(left, []).append((left_local, right_local))
    edges = []
    for left, pairs in by_input.items():
        pairs = sorted(set(pairs), key=repr)  # however the text orders them
        edges.append(JoinEdge(left, inner[0].input, tuple(a for a, _ in pairs), tuple(b for _, b in pairs)))
    return edges


def _alike(one: Type, other: Type) -> bool:
    """Whether values of the two equal where the numbers do that stand for them."""
    if one.kind is Kind.NULL:
        return False
    return (one.is_integer and other.is_integer) or (one.kind is other.kind and one.scale == other.scale)


def _local(key: ex.Expression, owners: Sequence[_Owner]) -> tuple[int, ex.Expression] | None:
    """The one input whose columns a key takes, and the key over them."""
    taken: set[int] = set()

    def moved(node: Any) -> Any:
        if isinstance(node, ex.Column):
            owner = owners[node.index]
            taken.add(owner.input)
            return replace(node, index=owner.place, name=owner.name or node.name)
        if isinstance(node, tuple):
            return tuple(moved(part) for part in node)
        if isinstance(node, ex.Cast) and node.type == BIGINT and node.operand.type.is_integer:
            return moved(node.operand)  # the same number
        if isinstance(node, ex.Function | ex.Literal) or not is_dataclass(node) or isinstance(node, type):
            return node  # functions may err, and their keys are not shared
        parts = {part.name: moved(getattr(node, part.name)) for part in fields(node)}
        return replace(node, **parts)

    local: ex.Expression = moved(key)
    return (taken.pop(), local) if len(taken) == 1 and not can_err(local) else None
