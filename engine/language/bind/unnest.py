"""UNNEST in FROM: columns of the elements of arrays beside those of the rows that have them.

    FROM s, UNNEST(s.a) AS t(x)                     a row for each element; none of NULL and of an empty array
    FROM s LEFT JOIN UNNEST(s.a) AS t(x) ON TRUE    one with NULL there
    FROM s, UNNEST(s.a, s.b) WITH ORDINALITY AS t(x, y, n)

Conditions on other columns are asked before rows are made of elements (:mod:`engine.language.bind.relation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.algebra.unnest.stage import Unnest, parts_of
from engine.language.bind.conditions import conjuncts
from engine.language.bind.constants import bind_rows
from engine.language.bind.environment import Environment
from engine.language.bind.from_items import From, both_sides, check_names
from engine.language.bind.from_names import NamedItem
from engine.language.bind.placing import narrowed
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scalar import TRUE, bind_condition, bind_scalar
from engine.language.bind.scope import Scope
from engine.language.column_names import another
from engine.language.grammar import nodes, source_nodes
from engine.language.rules import rewrite
from engine.model.expressions import Column, Expression
from engine.model.types import STRING, Logical, Type
from tureen.errors import NotSupported, SyntaxRefused, TypeMismatch

_EXAMPLE = "write FROM s CROSS JOIN UNNEST(s.a) AS t(x)"


def bind_unnest(item: exp.Expr, env: Environment) -> From:
    """UNNEST that no source stands before: of constants."""
    nothing = bind_rows(source_nodes.ValueRows(expressions=[]), env)
    return _elements(From(nothing, (), {}, ()), item, env, keeps=False)


def join_unnest(left: From, join: exp.Expr, env: Environment) -> From:
    """UNNEST that is joined to what stands before it. Raises NotSupported for other joins than CROSS JOIN,
    JOIN and LEFT JOIN, and what binding expressions raises.
    """
    keeps = check_each_row(join, "UNNEST", env)
    both = _elements(left, join.this, env, keeps=keeps)
    check_names(left, replace(both, parts=both.parts[-1:]), join, env, inputs=left.relation.inputs)
    on = join.args.get("on")
    if on is None:
        return both
    scope = both.scope(env).at("ON")
    conditions = [bind_condition(part, scope) for part in conjuncts(on, scope)]
    conditions = [each for each in conditions if rewrite(each) != TRUE]
    if keeps and conditions:
        raise env.text.of_node(on).refuse(
            NotSupported,
            "LEFT JOIN UNNEST takes ON TRUE alone",
            hint="write LEFT JOIN UNNEST(s.a) AS t(x) ON TRUE, and the condition in WHERE",
        )
    return replace(both, relation=narrowed(both.relation, conditions))


def check_each_row(join: exp.Expr, what: str, env: Environment) -> bool:
    """Returns whether a join with what is worked out for each row keeps those that it gives nothing for.
    Raises NotSupported where it is no CROSS JOIN, JOIN ... ON or LEFT JOIN ... ON.
    """
    kind, place = str(join.args["kind"]), env.text.of_node(join)
    if kind not in ("cross", "inner", "left") or join.args.get("asof"):
        raise place.refuse(
            NotSupported,
            f"{'ASOF' if join.args.get('asof') else kind.upper()} JOIN {what} is not supported: "
            "it is about each row before it",
            hint=f"write CROSS JOIN {what}, or LEFT JOIN {what} ... ON TRUE, which keeps rows without one",
        )
    if join.args.get("natural") or join.args.get("using"):
        raise place.refuse(
            NotSupported,
            f"{what} is joined by ON",
            hint=f"write CROSS JOIN {what}, or JOIN {what} ... ON x = y",
        )
    return kind == "left"


def refuse_window(item: exp.Expr, what: str, env: Environment) -> None:
    """Raise NotSupported for a window or a SAMPLE of what comes and goes with the row before it."""
    hint = "write it behind the stream before: FROM s [RANGE 1 HOUR], UNNEST(s.a) AS t(x)"
    if what == "LATERAL":
        hint = "write it inside, behind the stream: LATERAL (SELECT ... FROM s [RANGE 1 HOUR] ...)"
    for part, name in (("window", "window"), ("sample", "SAMPLE")):
        written = item.args.get(part)
        if written is not None:
            raise env.text.of_node(written).refuse(
                NotSupported,
                f"{what} has no {name}: what it gives comes and goes with its row",
                hint=hint,
            )


def _elements(left: From, item: exp.Expr, env: Environment, *, keeps: bool) -> From:
    """What stands before, with the columns of the elements."""
    refuse_window(item, "UNNEST", env)
    tree, scope, place = item.this, left.scope(env).at("UNNEST"), env.text.of_node(item)
    is_hidden, ordinality = bool(tree.args.get("hidden")), bool(tree.args["ordinality"])
    arrays = [_array(node, scope, is_hidden=is_hidden) for node in tree.expressions]
    written = [str(name.this) for name in item.args.get("names") or ()]
    alias = item.args.get("alias")
    members = _members(arrays, len(written) - ordinality)
    names = _names(arrays, ordinality=ordinality)
    if alias is not None and not written and len(names) == 1 + ordinality:
        written = [str(alias.this)]  # as in PostgreSQL
    shown = written if not members else [*written[len(members) :]]
    if len(shown) > len(names) and not members:
        raise place.refuse(
            SyntaxRefused,
            f"{len(written)} names are given for {len(names)} columns",
            hint="name each column once, or leave the names out",
        )
    for at, name in enumerate(written):
        if name in written[:at]:
            raise place.refuse(SyntaxRefused, f"the name {name!r} is given twice", hint="rename one of them")
    given = _unique([*names[:1], *shown] if members else [*shown, *names[len(shown) :]])
    number = given.pop() if ordinality else None
    stage = Unnest(tuple(map(rewrite, arrays)), tuple(given), number, keeps)
    relation, places = _with_columns(left.relation, stage)
    if members:
        relation, places = _with_members(relation, places, written[: len(members)], tree, env)
    is_unnamed = not item.args.get("names") and not is_hidden
    part = NamedItem(None if alias is None else str(alias.this), places, is_unnamed)
    listed = {} if is_hidden else places
    right = From(relation, (part,), listed, tuple(listed.items()))
    return both_sides(relation, left, right, 0)


def _array(node: exp.Expr, scope: Scope, *, is_hidden: bool) -> Expression:
    """An ARRAY or a MAP. Raises TypeMismatch."""
    array = bind_scalar(node, scope)
    if array.type.logical is Logical.ARRAY or (array.type.logical is Logical.MAP and not is_hidden):
        return array
    hint = _EXAMPLE
    if array.type.logical is Logical.JSON:
        hint = "write UNNEST(CAST(j AS ARRAY<JSON>)), or MAP<STRING, JSON> for the members of an object"
    elif array.type.logical is Logical.MAP:
        hint = "write it in FROM, where it has two columns: FROM s, UNNEST(s.m) AS t(k, v)"
    elif array.type == STRING:
        hint = "write UNNEST(STRING_TO_ARRAY(s, ',')), or declare the column as an ARRAY"
    raise scope.place(node).refuse(
        TypeMismatch,
        f"UNNEST takes {'an ARRAY' if is_hidden else 'ARRAYs and MAPs'}, this is {array.type}",
        hint=hint,
    )


def _members(arrays: Sequence[Expression], wanted: int) -> tuple[tuple[str, Type], ...]:
    """The members of the STRUCTs of one ARRAY, where so many names are given; else none."""
    element = arrays[0].type.element
    if len(arrays) > 1 or element is None or arrays[0].type.logical is not Logical.ARRAY or wanted == 1:
        return ()
    return element.members if len(element.members) == wanted else ()


def _names(arrays: Sequence[Expression], *, ordinality: bool) -> list[str]:
    """What the columns are called that the text has no names for."""
    names: list[str] = []
    for array in arrays:
        names += ["key", "value"] if len(list(parts_of(array.type))) == 2 else ["unnest"]
    return [*names, "ordinality"] if ordinality else names


def _unique(names: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        found.append(another(name, found))
    return found


def _with_columns(relation: BoundRelation, stage: Unnest) -> tuple[BoundRelation, dict[str, int]]:
    """The relation with the columns of a stage; their places among its columns, by name."""
    places: dict[str, int] = {}
    outputs = list(relation.columns)
    for at, (name, type_) in enumerate(stage.own_columns):
        places[name] = len(outputs)
        called = another(name, {output.name for output in outputs})
        outputs.append(Output(called, Column(relation.width + at, called, type_)))
    return replace(relation.then(stage), columns=tuple(outputs), below=relation), places


def _with_members(
    relation: BoundRelation, places: dict[str, int], names: Sequence[str], tree: exp.Expr, env: Environment
) -> tuple[BoundRelation, dict[str, int]]:
    """With the members of the STRUCT that is the first of these columns in its place."""
    (struct, place), *others = places.items()
    output = relation.columns[place]
    assert output.type.members
    scope = env.scope(relation, None)
    scope = replace(scope, names=replace(scope.names, columns={struct: output}))
    found: dict[str, int] = {}
    outputs = list(relation.columns)
    for name, (member, _) in zip(names, output.type.members, strict=True):
        column = exp.Column(this=exp.Identifier(this=struct, quoted=True))
        call = nodes.Call(name=".", expressions=[column, exp.Literal(this=member, is_string=True)])
        for node in call.walk():
            node.meta.update(tree.meta)
        found[name] = len(outputs)
        outputs.append(Output(another(name, {one.name for one in outputs}), bind_scalar(call, scope)))
    return replace(relation, columns=tuple(outputs)), found | dict(others)
