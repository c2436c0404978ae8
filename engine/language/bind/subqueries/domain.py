"""Columns around a subquery wherever they stand in it: joined to it are the different values that they have.

    (SELECT COUNT(*) FROM b WHERE b.t <= a.t)
    LEFT JOIN (SELECT COUNT(*), d.t FROM b JOIN (SELECT DISTINCT t FROM a) d ON b.t <= d.t GROUP BY d.t)
    ON d.t = a.t

Then they are columns of the subquery, which has one more equality for each: of what Neumann and Kemper call
the domain (Unnesting Arbitrary Queries, BTW 2015). Subqueries within it may use them too. NULL is a value as
any other.

What the other rules of this package serve needs no domain: equalities, and conditions of a join. The answer
costs what the join on these conditions costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from engine.algebra.project.stage import Output
from engine.language.bind.conditions import Correlation, conjuncts, holds_query, is_equality
from engine.language.bind.environment import Environment
from engine.language.bind.grouping import holds_aggregate
from engine.language.bind.relation import BoundRelation, is_not_null
from engine.language.bind.scope import Around, Scope
from engine.language.bind.subqueries.rows import is_limited, only_selects
from engine.language.grammar import nodes
from engine.language.null_equality import equal_keys
from engine.model.expressions import columns_of
from engine.model.source import Stream
from tureen.errors import SyntaxRefused

_CLAUSES = ("expressions", "where", "group", "having", "windows", "qualify", "order")


def with_domain(
    relation: BoundRelation, tree: exp.Expr, rows: Scope, correlation: Correlation, env: Environment
) -> tuple[BoundRelation, Scope]:
    """The relation of FROM of a subquery, and what names mean in it: with the domain of the columns around it
    that it needs, if it needs one. O(nodes).
    """
    around = correlation.domain
    if around is None or any(join.key is not None for join in around.joins):
        return relation, rows
    places = sorted(_needed(tree, rows, correlation, env))
    if not places:
        return relation, rows
    given = around.given()
    outputs = tuple(Output(given[place].name, given[place]) for place in places)
    domain = replace(around, columns=outputs).distinct()
    joined = relation.joined(domain, "inner", env.text.sql)
    own = [output.expression for output in joined.columns[len(relation.columns) :]]
    for place, column in zip(places, own, strict=True):
        if is_not_null(around, given[place]):
            correlation.pairs.append((column, given[place]))
        else:
            correlation.pairs += equal_keys(column, given[place])
    outer = Around(correlation.around, columns=dict(zip(places, own, strict=True)))
    return replace(joined, columns=relation.columns), replace(rows, outer=outer)


def _needed(tree: exp.Expr, rows: Scope, correlation: Correlation, env: Environment) -> set[int]:
    """The places of the columns around that a subquery uses, where it uses one as no other rule serves."""
    uses = ColumnUses(rows, correlation.around, env)
    is_grouped = bool(tree.args.get("group") or tree.args.get("sets") or tree.args.get("having")) or any(
        holds_aggregate(each) for each in tree.expressions
    )
    plain = not is_grouped and not is_limited(tree)
    if correlation.is_lateral:
        plain = plain and not tree.args.get("distinct")
    served: set[int] = set()
    is_needed = False
    where = tree.args.get("where")
    for part in () if where is None else conjuncts(where, rows):
        found = uses.of(part)
        served |= found
        if found and not _is_served(part, rows, correlation, plain=plain):
            is_needed = True
    selects = correlation.is_lateral and only_selects(tree, None) and not is_grouped
    for name in _CLAUSES:
        if name == "where":
            continue
        for each in _clause(tree, name):
            found = uses.of(each)
            served |= found
            if found and not (selects and name == "expressions" and not holds_query(each)):
                is_needed = True
    return served if is_needed else set()


def _is_served(part: exp.Expr, rows: Scope, correlation: Correlation, *, plain: bool) -> bool:
    """Whether a condition is one that correlates without a domain."""
    if holds_query(part):
        return False
    return is_equality(part.unnest(), rows, correlation) or (plain and correlation.mixed is not None)


@dataclass(frozen=True, slots=True)
class _Names:
    """What FROM of a subquery names. columns: None: all that has no dot before it."""

    items: frozenset[str]
    columns: frozenset[str] | None

    def has(self, column: exp.Column) -> bool:
        qualifier = column.args.get("table")
        if qualifier is not None:
            return str(qualifier.this) in self.items
        return self.columns is None or str(column.this.this) in self.columns


@dataclass(frozen=True, slots=True)
class ColumnUses:
    """Finds columns in expressions, and in the subqueries in these, that one scope has and another has not.

    rows: what has other names; around: whose columns are found.
    """

    rows: Scope
    around: Scope
    env: Environment

    def of(self, node: exp.Expr) -> set[int]:
        """Their places, also of those in subqueries within."""
        found: set[int] = set()
        for column in self._columns(node, ()):
            if not self._is_own(column):
                outer = self.around.find(column)
                if outer is not None:
                    found |= {each.index for each in columns_of(outer)}
        return found

    def _is_own(self, column: exp.Column) -> bool:
        try:
            return self.rows.find(column) is not None
        except SyntaxRefused:  # several have it
            return True

    def _columns(self, node: exp.Expr, within: Sequence[_Names]) -> Iterator[exp.Column]:
        if isinstance(node, exp.Column):
            if not any(names.has(node) for names in within):
                yield node
            return
        if isinstance(node, nodes.SelectQuery):
            within = (*within, self._names(node))
            parts = [part for name in _CLAUSES for part in _clause(node, name)]
        else:
            parts = [*node.iter_expressions()]
        for part in parts:
            yield from self._columns(part, within)

    def _names(self, query: nodes.SelectQuery) -> _Names:
        source = query.args["source"]
        items = [source]
        if isinstance(source, nodes.FromList):
            items = [source.this, *(join.this for join in source.args["joins"])]
        named: set[str] = set()
        columns: set[str] | None = set()
        for item in items:
            if not isinstance(item, nodes.FromItem):
                columns = None
                continue
            name = str(item.this.this) if isinstance(item.this, exp.Identifier) else ""
            alias = item.args.get("alias")
            named.add(name if alias is None else str(alias.this))
            stream = self.env.catalogue.get(name)
            if item.args.get("names"):
                own = {str(each.this) for each in item.args["names"]}
            elif isinstance(stream, Stream) and name not in self.env.tables:
                own = {field.name for field in stream.schema}
            else:
                columns = None
                continue
            columns = None if columns is None else columns | own
        return _Names(frozenset(named), None if columns is None else frozenset(columns))


def _clause(tree: exp.Expr, name: str) -> list[exp.Expr]:
    """The expressions of a clause."""
    part = tree.args.get(name)
    return part if isinstance(part, list) else [] if part is None else [part]
