"""The sources that a text names, each with its place in the text and what stands above it.

Where a source stands decides which rules may touch it. STREAM (section 5.1) names two bad cases: a smaller
window at or below duplicate elimination, and one in the right subtree of a negation, both of which may make
the output grow. LIMIT, ROW_NUMBER and the side of an outer join that is filled up with NULL are bad in the
same way: a row that is missing there lets another one in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.language.aggregates import AGGREGATES
from engine.language.grammar import nodes
from engine.model.source import Derived, Stream

Catalogue = Mapping[str, Stream | Derived]


@dataclass(frozen=True, slots=True)
class StagesAbove:
    """What stands between a source and the answer.

    distinct: DISTINCT, or a set operation without ALL. negated: the right of EXCEPT, NOT IN or NOT EXISTS, or
    what an outer join fills up. ranked: LIMIT or ROW_NUMBER. grouped: GROUP BY or an aggregate. joined: a
    join, IN, EXISTS or a set operation, but for a join with a table by its key, on the side of the many.
    unwindowed: a join of which some side may grow for ever.
    """

    distinct: bool = False
    negated: bool = False
    ranked: bool = False
    grouped: bool = False
    joined: bool = False
    unwindowed: bool = False

    @property
    def grows_by_loss(self) -> bool:
        """Whether a row that is missing here may bring others into the answer."""
        return self.distinct or self.negated or self.ranked


@dataclass(frozen=True, slots=True)
class SourceInText:
    """A stream that FROM names. item: its node; outer: the item of a subquery that it is the only source of,
    through selections and projections alone, or None.
    """

    item: nodes.FromItem
    stream: Stream
    above: StagesAbove
    outer: nodes.FromItem | None = None

    @property
    def name(self) -> str:
        """As the text writes it."""
        return str(self.item.args["this"].this)

    @property
    def window(self) -> exp.Expr | None:
        """Its clause in brackets."""
        found: exp.Expr | None = self.item.args.get("window")
        return found


def sources_of(tree: exp.Expr, catalogue: Catalogue) -> Iterator[SourceInText]:
    """The streams of a SELECT, in order; tables and views are left out. Cost: O(nodes)."""
    if isinstance(tree, nodes.SelectQuery | nodes.SetQuery):
        yield from _of_query(tree, catalogue, StagesAbove(), None)


def _of_query(
    query: exp.Expr, catalogue: Catalogue, above: StagesAbove, outer: nodes.FromItem | None
) -> Iterator[SourceInText]:
    if isinstance(query, nodes.SetQuery):
        yield from _of_set(query, catalogue, above)
        return
    args = query.args
    grouped = bool(args.get("group")) or any(map(_has_aggregate, args["expressions"]))
    inside = replace(
        above,
        distinct=above.distinct or bool(args.get("distinct")),
        ranked=above.ranked
        or args.get("limit") is not None
        or bool(args.get("offset"))
        or any(each.find(nodes.WindowFunctionOver) is not None for each in args["expressions"]),
        grouped=above.grouped or grouped,
    )
    plain = not grouped and not args.get("distinct") and inside.ranked == above.ranked
    holders = [args.get("where"), args.get("having"), *args["expressions"], *(args.get("order") or ())]
    semi = [found for holder in holders for found in _inner_queries(holder)]
    below = replace(inside, joined=inside.joined or bool(semi))
    yield from _of_from(args["source"], catalogue, below, outer if plain and not semi else None)
    for inner, negated in semi:
        of = replace(inside, joined=True, negated=inside.negated or negated)
        yield from _of_query(inner, catalogue, of, None)
    for table in args.get("tables") or ():
        # How a table of WITH is used is not followed: nothing below it is touched.
        yield from _of_query(table.args["query"], catalogue, replace(inside, negated=True, joined=True), None)


def _of_set(query: nodes.SetQuery, catalogue: Catalogue, above: StagesAbove) -> Iterator[SourceInText]:
    steps = query.args["steps"]
    removes = any(not step.args["all"] for step in steps)
    below = replace(above, distinct=above.distinct or removes, joined=True)
    yield from _of_query(query.args["this"], catalogue, below, None)
    for step in steps:
        negated = below.negated or step.args["kind"] == "except"
        yield from _of_query(step.args["query"], catalogue, replace(below, negated=negated), None)


def _of_from(
    source: exp.Expr, catalogue: Catalogue, above: StagesAbove, outer: nodes.FromItem | None
) -> Iterator[SourceInText]:
    if isinstance(source, nodes.FromItem):
        yield from _of_item(source, catalogue, above, outer)
        return
    items = [source.args["this"], *(join.args["this"] for join in source.args["joins"])]
    kinds = ["", *(join.args["kind"] for join in source.args["joins"])]
    by_key = [False, *(_is_by_key(join, catalogue) for join in source.args["joins"])]
    # A left row that has one partner at most, in a table, is there once whatever else is.
    many_one = all(by_key[1:]) and all(kind in ("inner", "left") for kind in kinds[1:])
    for place, item in enumerate(items):
        filled = kinds[place] in ("left", "full", "anti") or any(
            kind in ("right", "full") for kind in kinds[place + 1 :]
        )
        inside = replace(
            above,
            negated=above.negated or filled,
            joined=above.joined or not (many_one and place == 0),
            unwindowed=above.unwindowed or not many_one,
        )
        yield from _of_item(item, catalogue, inside, outer if many_one and place == 0 else None)


def _of_item(
    item: nodes.FromItem, catalogue: Catalogue, above: StagesAbove, outer: nodes.FromItem | None
) -> Iterator[SourceInText]:
    this = item.args["this"]
    if isinstance(this, nodes.FromList):
        yield from _of_from(this, catalogue, replace(above, joined=True), None)
    elif isinstance(this, nodes.SelectQuery | nodes.SetQuery):
        # A window or a sample of a subquery is about its rows as they come: whose these are matters above it.
        windowed = item.args.get("window") is not None
        inside = replace(above, negated=above.negated or windowed, unwindowed=False)
        yield from _of_query(this, catalogue, inside, item if not windowed else None)
    elif isinstance(this, exp.Identifier):
        stream = catalogue.get(this.this if this.args.get("quoted") else this.this.lower())
        if isinstance(stream, Stream) and not stream.is_table:
            yield SourceInText(item, stream, above, outer)


def _is_by_key(join: nodes.JoinItem, catalogue: Catalogue) -> bool:
    """Whether the right side is a table that is joined by all of its key."""
    item = join.args["this"]
    this = item.args["this"]
    if not isinstance(this, exp.Identifier) or join.args.get("asof"):
        return False
    table = catalogue.get(this.this if this.args.get("quoted") else this.this.lower())
    if not isinstance(table, Stream) or not table.is_table:
        return False
    alias = item.args.get("alias")
    name = (this if alias is None else alias).this.lower()
    equal = {one.this.lower() for one in join.args.get("using") or ()}
    on = join.args.get("on")
    for each in () if on is None else _conjuncts(on):
        sides = (each.this, each.expression) if isinstance(each, exp.EQ) else ()
        for side in sides:
            of = side.args.get("table") if isinstance(side, exp.Column) else None
            if of is not None and of.this.lower() == name:
                equal.add(side.this.this.lower())
    return {column.lower() for column in table.key} <= equal


def _conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(condition, exp.And | exp.Paren):
        for each in (condition.this, condition.args.get("expression")):
            if each is not None:
                yield from _conjuncts(each)
    else:
        yield condition


def _inner_queries(node: exp.Expr | None, negated: bool = False) -> Iterator[tuple[exp.Expr, bool]]:
    """The queries of IN and EXISTS in a condition, and those in the place of a value; and whether they are
    negated. Of a value, and under CASE and the like, nothing tells, so that these count as negated.
    """
    if node is None:
        return
    if isinstance(node, nodes.SUBQUERIES):
        yield node.args["query"], negated or isinstance(node, nodes.ValueQuery)
        return
    plain = isinstance(node, exp.And | exp.Or | exp.Paren)
    for child in node.iter_expressions():
        yield from _inner_queries(child, negated or not plain)


def _has_aggregate(node: exp.Expr) -> bool:
    return any(str(call.args.get("name")).upper() in AGGREGATES for call in node.find_all(nodes.Call))
