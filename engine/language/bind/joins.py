"""Several sources in FROM: one relation of all their columns, and what names mean in it.

Joins are taken from left to right, as they are written. ON is bound over the columns of both sides; its
conditions and those of WHERE then go where they can stand (:mod:`engine.language.bind.placing`). Joins in
brackets on the right are a relation of their own, whose sources keep their names. A name of USING stands for
the column of the side that is kept whole; of a FULL JOIN, for the one that is not NULL.

Cost: O(columns) for each source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlglot import exp

from engine.algebra.join.stage import JoinKind
from engine.language.bind.calls import coerce
from engine.language.bind.conditions import Subselect, bind_parts, conjuncts
from engine.language.bind.environment import Environment
from engine.language.bind.from_items import From, both_sides, check_names
from engine.language.bind.from_names import NamedItem
from engine.language.bind.lateral import join_lateral
from engine.language.bind.latest import Asked, as_of
from engine.language.bind.placing import asked_of_pairs
from engine.language.bind.scalar import bind_scalar, compare
from engine.language.bind.scope import Scope
from engine.language.bind.sources import Select, bind_item, sampled_join
from engine.language.bind.subqueries.in_on import asked_before, asked_of, with_queries
from engine.language.bind.temporal_filters import TemporalFilter, asked_of_partners
from engine.language.bind.unnest import bind_unnest, join_unnest
from engine.language.bind.versions import BoundVersions
from engine.language.grammar import nodes, source_nodes
from engine.language.places import shown
from engine.language.promotion import common
from engine.model.expressions import Expression, Function
from tureen.errors import NotSupported, SyntaxRefused


class Selects(NamedTuple):
    """What binds a SELECT. item: as an item of FROM. lateral: with what is before it in FROM around."""

    item: Select
    lateral: Subselect


def bind_from(tree: exp.Expr, ends: exp.Expr | None, env: Environment, selects: Selects) -> From:
    """What FROM gives. selects: bind a SELECT; ends: BEGIN ... END ..., the window of all streams.

    Raises UnknownSource, SyntaxRefused, NotSupported, LimitExceeded, and what binding expressions raises.
    """
    first = tree.this if isinstance(tree, nodes.FromList) else tree
    if first.args.get("as_of") is not None:
        raise env.text.of_node(first.args["as_of"]).refuse(
            NotSupported,
            "FOR SYSTEM_TIME AS OF stands behind a table that a stream is joined with",
            hint="write FROM s JOIN t FOR SYSTEM_TIME AS OF s.at ON s.key = t.key; an answer of an earlier "
            "instant is fetched by at=",
        )
    if not isinstance(tree, nodes.FromList):
        return _bind_item(tree, ends, env, selects)
    found = _bind_item(tree.this, ends, env, selects, alone=False)
    for join in tree.args["joins"]:
        found = _joined(found, join, ends, env, selects)
    relations = [found.relation, *(join.inner for join in found.relation.joins)]
    if ends is not None and all(relation.stream.is_table for relation in relations):
        raise env.text.of_node(ends).refuse(
            NotSupported, "tables have one row for each key, and no window", hint="leave the window out"
        )
    return found


def _bind_item(
    item: exp.Expr, ends: exp.Expr | None, env: Environment, selects: Selects, *, alone: bool = True
) -> From:
    if isinstance(item.this, source_nodes.Unnest):
        return bind_unnest(item, env)
    if not isinstance(item.this, nodes.FromList):
        relation, name = bind_item(item, ends, env, selects.item, alone=alone)
        places = {output.name: place for place, output in enumerate(relation.columns)}
        return From(relation, (NamedItem(name, places),), places, tuple(places.items()))
    for part, message in (
        ("window", "a window is allowed after a stream, not after joins"),
        ("alias", ""),
    ):
        written = item.args.get(part)
        if written is not None:
            raise env.text.of_node(written).refuse(
                NotSupported,
                message or "joins in brackets have no name of their own",
                hint="write it after the stream"
                if message
                else f"use the names inside, or write (SELECT * FROM ...) AS {shown(str(written.this))}",
            )
    found, sample = bind_from(item.this, ends, env, selects), item.args.get("sample")
    if sample is None:
        return found
    return replace(found, relation=sampled_join(found.relation, sample, env.text.of_node(sample)))


def _joined(left: From, join: exp.Expr, ends: exp.Expr | None, env: Environment, selects: Selects) -> From:
    """One join more."""
    if isinstance(join.this.this, source_nodes.Unnest):
        return join_unnest(left, join, env)
    if join.this.args.get("lateral"):
        return join_lateral(left, join, env, selects.lateral)
    kind: JoinKind = "inner" if join.args["kind"] == "cross" else join.args["kind"]
    right = _bind_item(join.this, ends, env, selects, alone=False)
    check_names(left, right, join, env)
    queries = [] if join.args.get("asof") else with_queries(join.args.get("on"))
    if queries and kind != "inner":
        left, right = asked_before(kind, left, right, queries, env, selects.lateral)
    instant = join.this.args.get("as_of")
    if instant is not None:
        instant = bind_scalar(instant, left.scope(env).at("FOR SYSTEM_TIME AS OF"))
    versions = BoundVersions.of(left.relation, right.relation, join, env, left.parts, right.parts, instant)
    count = len(left.relation.columns)
    inner = right.relation if versions is None else versions.inner
    relation = left.relation.joined(inner, kind, env.text.sql)
    both = both_sides(relation, left, right, count)
    scope = both.scope(env).at("ON")
    written, merged = _on(join, left, right, both, env, scope, queries)
    on: list[Asked] = [(each, node) for each, node in written if not isinstance(each, TemporalFilter)]
    if versions is not None:
        relation = versions.joined(relation, on)
    elif join.args.get("asof"):
        relation, on = as_of(relation, on, join, scope)
    relation = asked_of_partners(relation, [each for each, _ in written if isinstance(each, TemporalFilter)])
    relation = asked_of_pairs(relation, [condition for condition, _ in on])
    if kind in ("semi", "anti"):
        relation = replace(relation, columns=relation.columns[:count])
        return replace(left, relation=relation, hidden=(*left.hidden, *(part.name for part in right.parts)))
    both = _merged(replace(both, relation=relation), kind, merged)
    return asked_of(both, queries, env, selects.lateral) if queries and kind == "inner" else both


def _on(
    join: exp.Expr,
    left: From,
    right: From,
    both: From,
    env: Environment,
    scope: Scope,
    queries: Sequence[exp.Expr],
) -> tuple[list[tuple[Expression | TemporalFilter, exp.Expr]], dict[str, tuple[int, int]]]:
    """The conditions of ON or USING but for those that hold subqueries, and the places of the columns that
    USING makes one.
    """
    if join.args.get("on") is not None:
        apart = {id(part) for part in queries}
        parts = [part for part in conjuncts(join.args["on"], scope) if id(part) not in apart]
        return [(bound, part) for part in parts for bound in bind_parts(part, scope)], {}
    columns, count = both.relation.columns, len(left.relation.columns)
    using: Sequence[exp.Expr] = join.args.get("using") or ()
    if join.args.get("natural"):
        using = _shared_columns(join, left, right, env)
    on: list[tuple[Expression | TemporalFilter, exp.Expr]] = []
    merged: dict[str, tuple[int, int]] = {}
    for place, name in enumerate(using):
        column = str(name.this)
        if any(str(other.this) == column for other in using[:place]):
            raise env.text.of_node(name).refuse(
                SyntaxRefused, f"USING names {shown(column)!r} twice", hint="leave one of them out"
            )
        before, behind = left.place(name, env), right.place(name, env) + count
        sides = columns[before].expression, columns[behind].expression
        if join.args.get("asof") and name is using[-1]:
            on.append((compare(">=", *sides, name, name, scope), name))
        else:
            on.append((compare("=", *sides, name, name, scope), name))
            merged[column] = before, behind
    return on, merged


def _shared_columns(join: exp.Expr, left: From, right: From, env: Environment) -> list[exp.Identifier]:
    """The columns that NATURAL JOIN is about, in the order of the left side. Raises SyntaxRefused."""
    there = {name for name, _ in right.star}
    shared = [name for name, _ in left.star if name in there]
    if not shared:
        raise env.text.of_node(join).refuse(
            SyntaxRefused,
            "the sides of NATURAL JOIN have no column in common",
            hint="write JOIN ... ON a condition, or CROSS JOIN",
        )
    names = []
    for name in shared:
        identifier = exp.to_identifier(name)
        identifier.meta.update(join.meta)
        names.append(identifier)
    return names


def _merged(both: From, kind: JoinKind, merged: Mapping[str, tuple[int, int]]) -> From:
    """With one column for both of a name; ``*`` gives it first."""
    if not merged:
        return both
    relation, names = both.relation, dict(both.names)
    first: list[tuple[str, int]] = []
    for name, (before, behind) in merged.items():
        place = behind if kind == "right" else before
        if kind == "full":
            sides = [relation.columns[at].expression for at in (before, behind)]
            place = len(relation.columns)
            relation = relation.with_column(name, _coalesced(sides))
        names[name] = place
        first.append((name, place))
    gone = {place for pair in merged.values() for place in pair}
    star = (*first, *((name, place) for name, place in both.star if place not in gone))
    return From(relation, both.parts, names, star, both.hidden)


def _coalesced(sides: Sequence[Expression]) -> Expression:
    type_ = common([side.type for side in sides])
    assert type_ is not None  # they were compared
    return Function("COALESCE", tuple(coerce(side, type_) for side in sides), type_)
