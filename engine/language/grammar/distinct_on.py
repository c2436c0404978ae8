"""``SELECT DISTINCT ON (k) .. ORDER BY k, x``: the first row of each k, by ORDER BY.

It is read as ``SELECT .. QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY k, x) = 1 ORDER BY k, x``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from tureen.errors import NotSupported


def keep_first_of(cursor: Cursor, query: nodes.SelectQuery, keys: list[exp.Expr]) -> nodes.SelectQuery:
    """The query with the first row of each combination of keys alone; in the order of rows so far."""
    first = keys[0]
    window = cursor.node(nodes.WindowSpecification(partition=keys, order=[]), first, *keys)
    number = cursor.node(nodes.WindowFunctionOver(name="ROW_NUMBER", window=window), first, window)
    one = cursor.node(exp.Literal(this="1", is_string=False), first)
    kept: exp.Expr = cursor.node(exp.EQ(this=number, expression=one), first, number, one)
    qualify = query.args.get("qualify")
    if qualify is not None:
        raise cursor.text.of_node(qualify).refuse(
            NotSupported,
            "QUALIFY beside DISTINCT ON is not supported",
            hint="put QUALIFY into a subquery: SELECT DISTINCT ON (k) * FROM (SELECT ... QUALIFY ...)",
        )
    query.set("qualify", kept)
    query.set("first_of", window)
    return cursor.node(query, query, kept)


def sort_first_of(query: nodes.SelectQuery, order: Sequence[nodes.OrderItem]) -> None:
    """The first row is that by ORDER BY, where a number or a name means the column that SELECT has there."""
    named = {one.alias: one.this for one in query.expressions if isinstance(one, exp.Alias)}
    items = []
    for item in order:
        copied = item.copy()
        key = copied.this
        if isinstance(key, exp.Literal) and not key.is_string and key.this.isdigit():
            place = int(key.this) - 1
            if place < len(query.expressions) and not query.expressions[place].is_star:
                copied.set("this", query.expressions[place].unalias().copy())
        elif isinstance(key, exp.Column) and not key.args.get("table") and key.name in named:
            copied.set("this", named[key.name].copy())
        items.append(copied)
    query.args["first_of"].set("order", items)
