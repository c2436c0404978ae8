"""How many rows a subquery has for each value of what it must equal around it, and the first of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from engine.algebra.row_number.stage import RowNumber
from engine.algebra.sort.stage import SortKey
from engine.language.bind.conditions import BoundSubquery, Condition, Correlation, SubqueryJoin
from engine.language.bind.environment import Environment
from engine.language.bind.grouping import Grouping
from engine.language.bind.relation import BoundRelation
from engine.language.bind.scope import Scope
from engine.language.bind.subqueries.nothing import over_nothing
from engine.language.bind.temporal_filters import TemporalFilter
from engine.language.grammar import nodes
from engine.language.rules import rewrite
from engine.model.expressions import Case, Column, Compare, Expression, Literal, conjunction
from engine.model.types import BIGINT
from tureen.errors import NotSupported


def equal_columns(
    tree: exp.Expr,
    grouping: Grouping | None,
    has_keys: bool,
    is_numbered: bool,
    correlation: Correlation,
    env: Environment,
) -> list[Expression]:
    """What must equal something around a subquery: a column more of it for each. has_keys: whether it has
    GROUP BY, and each grouping set a column; is_numbered: whether it has OVER. Raises NotSupported for what
    it cannot do, as its rows differ for each row around it.
    """
    place, limited = env.text.of_node(tree), is_limited(tree)
    distinct = correlation.is_lateral and bool(tree.args.get("distinct"))
    if correlation.mixed and (grouping is not None or limited or is_numbered or distinct):
        hint = "write x IN (SELECT key FROM s GROUP BY key HAVING ...), which uses no such column"
        if correlation.is_lateral:
            hint = "write an equality, b.key = a.key, or ASOF JOIN for the last row before another"
        raise place.refuse(
            NotSupported,
            "a subquery that uses a column of the query around it, but for an equality, can only select"
            if correlation.is_lateral
            else "a subquery that uses a column of the query around it can only select",
            hint=hint,
        )
    if is_numbered or (limited and tree.args.get("ties")):
        raise place.refuse(
            NotSupported,
            "a subquery that uses a column of the query around it has no OVER and no WITH TIES",
            hint="write ORDER BY ... LIMIT 1, which gives the first row for each row around it",
        )
    if grouping is None:
        return [inner for inner, _ in correlation.pairs]
    if not has_keys and (grouping.sets is not None or not (correlation.is_value or correlation.is_lateral)):
        what = "an aggregate without GROUP BY" if grouping.sets is None else "a grouping set without columns"
        raise place.refuse(
            NotSupported,
            f"{what} has a row in any case, here one for each row around it",
            hint="compare its value: x = (SELECT MAX(v) FROM s WHERE ...)",
        )
    return [grouping.column(inner) for inner, _ in correlation.pairs]


def value_of_groups(
    tree: exp.Expr,
    grouping: Grouping,
    output: Expression,
    having: Sequence[Condition],
    correlation: Correlation,
    scope: Scope,
) -> tuple[Expression, list[Condition]]:
    """The value of an aggregate without GROUP BY, and what its groups must satisfy. Where it correlates, rows
    are grouped by what they must equal; a group that HAVING rejects stays, its value NULL, so that it is told
    from one that has no rows. Raises NotSupported for subqueries in it then.
    """
    correlation.rows = "at most one" if correlation.is_used or having or is_limited(tree) else "one"
    if not correlation.is_used:
        return output, list(having)
    conditions = [
        each for each in having if not isinstance(each, SubqueryJoin | BoundSubquery | TemporalFilter)
    ]
    if len(conditions) < len(having):
        raise scope.place(tree.args["having"]).refuse(
            NotSupported,
            "HAVING of a value that uses a column of the query around has no IN and EXISTS",
            hint="write CASE WHEN ... THEN ... END around the value",
        )
    if conditions:
        output = Case(((conjunction(conditions), output),), Literal(None, output.type), output.type)
    stage = grouping.stage(grouping.plain_names())
    empty = over_nothing(output, stage.calls, len(stage.keys), _around(grouping, correlation, scope))
    limit = tree.args.get("limit")
    gives_none = (limit is not None and limit < 1) or tree.args.get("offset")
    correlation.empty = None if gives_none or (isinstance(empty, Literal) and empty.is_null) else empty
    return output, []


def note_empties(
    tree: exp.Expr,
    grouping: Grouping,
    outputs: Sequence[Expression],
    having: Sequence[Condition],
    correlation: Correlation,
    scope: Scope,
) -> None:
    """Note what the columns of an aggregate without GROUP BY are where it is over no rows, of LATERAL, which
    has a row then too. Raises NotSupported where HAVING, LIMIT or OFFSET may take it.
    """
    if not correlation.is_lateral:
        return
    limit = tree.args.get("limit")
    if having or (limit is not None and limit < 1) or tree.args.get("offset"):
        raise scope.place(tree).refuse(
            NotSupported,
            "an aggregate without GROUP BY that uses a column of the query around has no HAVING and OFFSET",
            hint="write the condition in the query around",
        )
    stage = grouping.stage(grouping.plain_names())
    around = _around(grouping, correlation, scope)
    correlation.empties = [over_nothing(output, stage.calls, len(stage.keys), around) for output in outputs]


def _around(grouping: Grouping, correlation: Correlation, scope: Scope) -> Mapping[int, Expression]:
    """The columns around that are keys of the groups, by their places there. scope: of the rows."""
    if scope.outer is None or correlation.domain is None:
        return {}
    given = correlation.domain.given()
    found: dict[int, Expression] = {}
    for place, own in scope.outer.columns.items():
        key = grouping.column(own)
        assert isinstance(key, Column)
        found[key.index] = given[place]
    return found


def only_selects(tree: exp.Expr, grouping: Grouping | None) -> bool:
    """Whether each row of a SELECT is one of FROM, so that it may be computed beside what is around."""
    more = [tree.args.get(name) for name in ("distinct", "windows", "qualify", "order", "offset")]
    is_numbered = any(each.find(nodes.WindowFunctionOver) is not None for each in tree.expressions)
    return not (grouping or is_numbered or any(more) or tree.args.get("limit") is not None)


def is_limited(tree: exp.Expr) -> bool:
    """Whether a SELECT has LIMIT or OFFSET."""
    return tree.args.get("limit") is not None or bool(tree.args.get("offset"))


def note_rows(tree: exp.Expr, relation: BoundRelation, correlation: Correlation) -> None:
    """Note where there is one row at most: by LIMIT 1, or by all of a table's key."""
    inner = {value.name for value, _ in correlation.pairs if isinstance(value, Column)}
    stream = relation.stream
    plain = not relation.stages and not relation.joins and relation.scan.assignment is None
    by_key = stream.is_table and plain and not relation.scan.history and inner >= set(stream.key)
    if by_key or tree.args.get("limit") in (0, 1):
        correlation.rows = "at most one"


def first_of_each(
    relation: BoundRelation,
    keys: Sequence[Expression],
    order: tuple[SortKey, ...],
    limit: int | None,
    offset: int,
) -> BoundRelation:
    """LIMIT and OFFSET for each value of the keys."""
    relation = relation.then(RowNumber(tuple(rewrite(key) for key in keys), order))
    number = Column(relation.width - 1, "row_number", BIGINT)
    conditions: list[Expression] = []
    if limit is not None:
        conditions.append(Compare("<=", number, Literal(limit + offset, BIGINT)))
    if offset:
        conditions.append(Compare(">", number, Literal(offset, BIGINT)))
    return relation.narrowed(conditions)
