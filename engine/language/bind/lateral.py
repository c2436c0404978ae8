"""LATERAL: what is worked out for each row of what stands before it in FROM.

LATERAL (VALUES (a.x), (a.y)) AS t(v)             as many rows, by UNNEST of their numbers
LATERAL (SELECT a.x + 1 AS y)                     a column more
LATERAL (SELECT b.v FROM b WHERE b.k = a.k)       a join on the conditions that have columns of both
LATERAL (SELECT MAX(b.v) FROM b WHERE b.k = a.k)  LEFT JOIN of the groups of b.k, as values are joined
LATERAL (... WHERE b.k = a.k ORDER BY t LIMIT 3)  a join with the first rows of each b.k
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.algebra.unnest.stage import Unnest
from engine.language.bind.calls import coerce
from engine.language.bind.conditions import Correlation, Subselect, conjuncts, nested
from engine.language.bind.constants import column_of_rows
from engine.language.bind.environment import Environment
from engine.language.bind.from_items import From, both_sides, check_names
from engine.language.bind.from_names import NamedItem
from engine.language.bind.outputs import unique, written_outputs
from engine.language.bind.placing import asked_of_pairs, narrowed
from engine.language.bind.relation import BoundRelation, Extent
from engine.language.bind.scalar import TRUE, bind_condition, bind_scalar
from engine.language.bind.scope import OUTER, Scope
from engine.language.bind.sources import renamed
from engine.language.bind.subqueries.nothing import where_missing
from engine.language.bind.unnest import check_each_row, refuse_window
from engine.language.column_names import another
from engine.language.grammar import nodes, source_nodes
from engine.language.rules import rewrite
from engine.language.rules.tree import transform
from engine.model.expressions import Case, Column, Compare, Expression, Literal, columns_of
from engine.model.types import INTEGER, array
from tureen.errors import NotSupported

_LATERAL = "LATERAL (...)"


def join_lateral(left: From, join: exp.Expr, env: Environment, subselect: Subselect) -> From:
    """LATERAL that is joined to what stands before it. Raises NotSupported for what no rule takes, and what
    binding a SELECT raises.
    """
    keeps, item = check_each_row(join, _LATERAL, env), join.this
    refuse_window(item, "LATERAL", env)
    tree, scope, place = item.this, left.scope(env).at("LATERAL"), env.text.of_node(item)
    rows = _rows(tree)
    is_joined = rows is None
    if rows is None:
        relation, is_joined = _of_query(left.relation, tree, scope, env, subselect, keeps=keeps)
    elif rows.expressions:
        relation = _of_values(left.relation, rows.expressions, scope)
    else:
        relation = _computed(left.relation, tree, scope)
    own = replace(relation, columns=relation.columns[len(left.relation.columns) :])
    own = renamed(own, item.args.get("names") or (), place)
    alias = item.args.get("alias")
    relation, part = _beside(left.relation, replace(relation, columns=own.columns), alias)
    right = From(relation, (part,), part.columns, tuple(part.columns.items()))
    check_names(left, right, join, env, inputs=relation.inputs)
    both = both_sides(relation, left, right, 0)
    on = join.args.get("on")
    if on is None:
        return both
    conditions = [bind_condition(each, both.scope(env).at("ON")) for each in conjuncts(on, scope)]
    conditions = [each for each in conditions if rewrite(each) != TRUE]
    if conditions and keeps and not is_joined:
        raise env.text.of_node(on).refuse(
            NotSupported,
            "LEFT JOIN LATERAL of rows that are there in any case takes ON TRUE alone",
            hint="write ON TRUE, and the condition in WHERE",
        )
    asked = asked_of_pairs if is_joined else narrowed
    return replace(both, relation=asked(relation, conditions) if conditions else relation)


def _rows(tree: exp.Expr) -> source_nodes.ValueRows | None:
    """The rows of a query that is VALUES, or a SELECT without FROM, and no more; None: it is another one."""
    if not isinstance(tree, nodes.SelectQuery):
        return None
    more = {name for name, part in tree.args.items() if part} - {"expressions", "source"}
    rows = tree.args["source"].this
    return rows if not more and isinstance(rows, source_nodes.ValueRows) else None


def _beside(
    left: BoundRelation, relation: BoundRelation, alias: exp.Expr | None
) -> tuple[BoundRelation, NamedItem]:
    """The columns of a relation, which it has behind those of the left side, with these before them."""
    outputs, places = list(left.columns), dict[str, int]()
    for output in relation.columns:
        places[output.name] = len(outputs)
        called = another(output.name, {each.name for each in outputs})
        outputs.append(Output(called, output.expression))
    name = None if alias is None else str(alias.this)
    return replace(relation, columns=tuple(outputs)), NamedItem(name, places)


def _of_values(left: BoundRelation, rows: Sequence[exp.Expr], scope: Scope) -> BoundRelation:
    """As many rows as VALUES has, by the numbers of its rows."""
    numbers = array(INTEGER)
    text = f"[{','.join(str(number) for number in range(1, len(rows) + 1))}]"
    stage = Unnest((Literal(text, numbers),), ("row",))
    number = Column(left.width, "row", INTEGER)
    outputs = []
    for place in range(len(rows[0].expressions)):
        type_, values = column_of_rows(place, [row.expressions[place] for row in rows], scope)
        *before, last = [coerce(value, type_) for value in values]
        branches = tuple(
            (Compare("=", number, Literal(at, INTEGER)), value) for at, value in enumerate(before, start=1)
        )
        value = scope.binding.sized(Case(branches, last, type_) if branches else last, rows[0])
        outputs.append(Output(f"column_{place + 1}", value))
    return replace(left.then(stage), columns=(*left.columns, *outputs), below=left)


def _computed(left: BoundRelation, tree: exp.Expr, scope: Scope) -> BoundRelation:
    """A SELECT of one row: its columns."""
    written = written_outputs(tree.expressions, scope)
    values = [bind_scalar(column.node, scope) for column in written]
    names = unique([column.name for column in written])
    outputs = [Output(name, value) for name, value in zip(names, values, strict=True)]
    return replace(left, columns=(*left.columns, *outputs))


def _of_query(
    left: BoundRelation,
    tree: exp.Expr,
    scope: Scope,
    env: Environment,
    subselect: Subselect,
    *,
    keeps: bool,
) -> tuple[BoundRelation, bool]:
    """A join with what a query gives, and whether conditions may be asked in it."""
    correlation = Correlation(scope, mixed=[], domain=left, is_lateral=True)
    inner = nested(tree, subselect(tree, env, correlation), scope)
    count = len(inner.columns) - len(correlation.pairs)
    selected, equal = inner.columns[:count], inner.columns[count:]
    is_mixed = any(column.index <= OUTER for one in selected for column in columns_of(one.expression))
    if is_mixed and keeps:
        raise env.text.of_node(tree).refuse(
            NotSupported,
            "LEFT JOIN LATERAL selects columns of its own query alone",
            hint="select them in the query around, where they are there too",
        )
    given = [Output(column.name, column) for column in inner.given()] if correlation.mixed or is_mixed else []
    inner = replace(inner, columns=(*(() if is_mixed else selected), *equal, *given))
    empties = correlation.empties
    joined = left.joined(inner, "left" if keeps or empties else "inner", scope.binding.text.sql)
    own = [output.expression for output in joined.columns[len(left.columns) :]]
    plain, around = own[len(own) - len(given) :], left.given()

    def settled(node: Expression) -> Expression:
        if not isinstance(node, Column):
            return node
        return around[OUTER - node.index] if node.index <= OUTER else plain[node.index]

    keys = own[0 if is_mixed else count :]
    conditions: list[Expression] = [
        Compare("=", outer, key) for (_, outer), key in zip(correlation.pairs, keys, strict=False)
    ]
    conditions += [transform(condition, settled) for condition in correlation.mixed or ()]
    joined = asked_of_pairs(joined, conditions)
    outputs = [
        Output(one.name, transform(one.expression, settled) if is_mixed else own[at])
        for at, one in enumerate(selected)
    ]
    if empties:
        outputs = [
            Output(one.name, where_missing(one.expression, keys[0], empty))
            for one, empty in zip(outputs, empties, strict=True)
        ]
    extent = Extent(joined.extent.stages, left.extent.over(0, inner.extent.nested()).depth)
    joined = replace(joined, columns=(*left.columns, *outputs), extent=extent)
    return joined, not empties
