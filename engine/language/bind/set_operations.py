"""UNION, INTERSECT and EXCEPT of SELECTs: their columns meet one by one, in the type that they share.

The result has the names of the first SELECT. What has to be cast is computed below the operation; EXCEPT ALL
ON compares columns of that type beside its left rows, which it gives as they are. A row of which a column
that is compared is an error equals nothing, not even NULL: a condition below leaves it out and counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.algebra.set_operation.stage import SetOperation
from engine.language.bind.calls import coerce
from engine.language.bind.environment import Environment
from engine.language.bind.matched_names import matched_by_name
from engine.language.bind.placing import narrowed
from engine.language.bind.relation import BoundRelation
from engine.language.literals import instant_literal
from engine.language.places import Place, shown
from engine.language.promotion import common
from engine.model.expressions import Cast, Column, Expression, IsNull, Literal, Not, Or
from engine.model.types import BIGINT, DOUBLE, STRING, Kind
from tureen.errors import SyntaxRefused, TypeMismatch

Select = Callable[[exp.Expr, Environment], BoundRelation]
Pair = tuple[Output, Output]


def bind_sets(tree: exp.Expr, env: Environment, select: Select) -> BoundRelation:
    """What a SetQuery gives; ``select`` binds a SELECT. Raises TypeMismatch, NotSupported, UnknownColumn."""
    relation = select(tree.this, env)
    steps = tree.args["steps"]
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        right = select(step.args["query"], env)
        bind = _of_columns if step.args.get("on") else _of_rows
        relation = bind(relation, right, step, env)
        if _is_distinct_union(step) and not (following is not None and _is_distinct_union(following)):
            relation = relation.distinct()
    return relation


def _is_distinct_union(step: exp.Expr) -> bool:
    return step.args["kind"] == "union" and not step.args["all"]


def _of_rows(left: BoundRelation, right: BoundRelation, step: exp.Expr, env: Environment) -> BoundRelation:
    """Bind a set operation that compares whole rows."""
    place, word = env.text.of_node(step.args["query"]), step.args["kind"].upper()
    places: Sequence[Place] | None = None
    if step.args.get("matched"):
        left, right = matched_by_name(left, right, step, env)
        places = [place] * len(right.columns)
    if len(left.columns) != len(right.columns):
        raise place.refuse(
            TypeMismatch,
            f"columns before {word}: {len(left.columns)}, behind it: {len(right.columns)}",
            hint="select as many columns on both sides",
        )
    compares = step.args["kind"] != "union" or not step.args["all"]
    pairs = [
        _fit(
            pair,
            f"column {number}" if places is None else f"column {shown(pair[0].name)!r}",
            compares,
            word,
            _place_of(step.args["query"], number, right, env) if places is None else places[number - 1],
        )
        for number, pair in enumerate(zip(left.columns, right.columns, strict=True), start=1)
    ]
    inner = replace(right, columns=tuple(other for _, other in pairs))
    kept = replace(left, columns=tuple(one for one, _ in pairs))
    if compares:
        inner, kept = _without_errors(inner, inner.columns), _without_errors(kept, kept.columns)
    inner, kept = inner.computed(), kept.computed()
    is_union = step.args["kind"] == "union"
    operation = SetOperation(step.args["kind"], inner.query(env.text.sql), is_union or step.args["all"])
    return kept.combined(operation, inner)


def _of_columns(left: BoundRelation, right: BoundRelation, step: exp.Expr, env: Environment) -> BoundRelation:
    """Bind a set operation that compares the columns that ON names. The right side gives these alone.

    Raises SyntaxRefused for one that is named twice, UnknownColumn, TypeMismatch, NotSupported.
    """
    given = len(left.columns)
    columns, others, on = list(left.columns), list[Output](), list[tuple[int, int]]()
    named = set[str]()
    for name in step.args["on"]:
        place = env.text.of_node(name)
        if name.name in named:
            message = f"ON names the column {shown(name.name)!r} twice"
            raise place.refuse(SyntaxRefused, message, hint="leave one of them out")
        named.add(name.name)
        pair = _named(name, left, "before", place), _named(name, right, "behind", place)
        one, other = _fit(pair, f"column {shown(pair[0].name)!r}", True, "EXCEPT", place)
        if one is pair[0]:
            at = left.columns.index(one)
        else:
            at = len(columns)
            columns.append(replace(one, name=_free(f"compared_{len(others) + 1}", columns)))
        on.append((at, len(others)))
        others.append(replace(other, name=_free(other.name, others)))
    inner = _without_errors(replace(right, columns=tuple(others)), others).computed()
    kept = replace(left, columns=tuple(columns))
    kept = _without_errors(kept, [columns[at] for at, _ in on]).computed()
    relation = kept.combined(SetOperation("except", inner.query(env.text.sql), True, tuple(on)), inner)
    return replace(relation, columns=relation.columns[:given])


def _place_of(query: exp.Expr, number: int, relation: BoundRelation, env: Environment) -> Place:
    """Where a column of a SELECT stands, from 1; the SELECT itself where they are not written one by one."""
    written = query.expressions
    is_each = len(written) == len(relation.columns) and not any(part.is_star for part in written)
    return env.text.of_node(written[number - 1] if is_each else query)


def _named(name: exp.Expr, side: BoundRelation, where: str, place: Place) -> Output:
    """The column of ON, of one side. Raises UnknownColumn."""
    column = str(name.this)
    for output in side.columns:
        if output.name == column:
            return output
    there = ", ".join(shown(output.name) for output in side.columns[:12])
    raise place.unknown_column(column, (), hint=f"ON names columns of both sides; {where} EXCEPT are {there}")


def _free(name: str, columns: Iterable[Output]) -> str:
    """The name, with a number where a column has it."""
    taken = {output.name for output in columns}
    other, count = name, 1
    while other in taken:
        count += 1
        other = f"{name}_{count}"
    return other


def _fit(pair: Pair, what: str, compares: bool, word: str, place: Place) -> Pair:
    """Both columns in the type that they share, each itself where it has that. Raises TypeMismatch,
    NotSupported.
    """
    one, other = _instants(pair, place)
    type_ = common([one.type, other.type])
    if type_ is None:
        raise place.refuse(
            TypeMismatch,
            f"{what} is {one.type} before {word} and {other.type} behind it",
            hint="cast one of them: CAST(x AS TYPE)",
        )
    left, right = (
        output if output.type == type_ else replace(output, expression=coerce(output.expression, type_))
        for output in (one, other)
    )
    return left, right


def _without_errors(relation: BoundRelation, compared: Sequence[Output]) -> BoundRelation:
    """Only rows of which no compared column is an error; the others are counted."""
    conditions: list[Expression] = []
    for output in compared:
        if _may_err(output.expression):
            is_null = IsNull(output.expression)
            conditions.append(Or((is_null, Not(is_null))))
    return narrowed(relation, conditions) if conditions else relation


def _may_err(expression: Expression) -> bool:
    if isinstance(expression, Cast):
        widens = expression.operand.type.is_integer and expression.type in (BIGINT, DOUBLE)
        return not widens or _may_err(expression.operand)
    return not isinstance(expression, Column | Literal)


def _instants(pair: Pair, place: Place) -> Iterator[Output]:
    """The two; a text beside a DATE or TIMESTAMP is read as one."""
    for output, beside in (pair, pair[::-1]):
        expression: Expression = output.expression
        if (
            isinstance(expression, Literal)
            and expression.type == STRING
            and beside.type.kind in (Kind.DATE, Kind.TIMESTAMP)
        ):
            yield replace(output, expression=instant_literal(expression, beside.type, place))
        else:
            yield output
