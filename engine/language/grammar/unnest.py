"""``UNNEST(a, ...) [WITH ORDINALITY]`` in FROM, and ``UNNEST(a)`` or ``EXPLODE(a)`` among selected columns.

``SELECT k, UNNEST(a) AS x FROM s`` is read as ``SELECT k, u.x FROM s, UNNEST(a) AS u(x)``, of several of them
with all arrays in one UNNEST; GROUP BY may repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.column_names import another
from engine.language.grammar import nodes, source_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import parse_expression

USAGE = "write FROM s CROSS JOIN UNNEST(s.a) AS t(x)"
CALLS = ("UNNEST", "EXPLODE")
_HIDDEN = "UNNEST of SELECT"
"""What the arrays of selected columns are called in FROM; no name of a text has blanks without quotes."""


def starts_unnest(cursor: Cursor) -> bool:
    """Whether UNNEST is next in FROM."""
    return cursor.word == "UNNEST" and cursor.peek().token_type is TokenType.L_PAREN


def parse_unnest(cursor: Cursor) -> source_nodes.Unnest:
    """UNNEST, which is next."""
    token = cursor.advance()
    cursor.advance()
    with cursor.nested():
        arrays = cursor.listed(lambda: parse_expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma", USAGE)
    ordinality = cursor.take_words("WITH", "ORDINALITY")
    if cursor.word == "WITH":
        cursor.advance()
        raise cursor.expected("ORDINALITY after WITH", f"{USAGE}, or UNNEST(s.a) WITH ORDINALITY AS t(x, n)")
    return cursor.node(source_nodes.Unnest(expressions=arrays, ordinality=ordinality), token, *arrays)


def with_elements(cursor: Cursor, query: nodes.SelectQuery) -> nodes.SelectQuery:
    """The query, with the arrays that are unnested among its columns in FROM."""
    found = list(_calls(query.expressions))
    if not found:
        return query
    names = [exp.Identifier(this=name, quoted=True) for name in _names(found)]
    for name, call in zip(names, found, strict=True):
        cursor.node(name, call)
    arrays = [argument for call in found for argument in call.expressions]
    columns = {call: name for name, call in zip(names, found, strict=True)}
    query.set("expressions", [_replaced(cursor, each, columns) for each in query.expressions])
    query.set("group", [_replaced(cursor, each, columns) for each in query.args.get("group") or ()])
    unnest = cursor.node(
        source_nodes.Unnest(expressions=arrays, ordinality=False, hidden=True), found[0], *arrays
    )
    alias = cursor.node(exp.Identifier(this=_HIDDEN, quoted=True), found[0])
    item = cursor.node(nodes.FromItem(this=unnest, alias=alias, names=names), found[0], unnest)
    join = cursor.node(nodes.JoinItem(this=item, kind="cross", comma=True), found[0], item)
    source = query.args["source"]
    first, joins = (source.this, source.args["joins"]) if isinstance(source, nodes.FromList) else (source, [])
    query.set("source", cursor.node(nodes.FromList(this=first, joins=[*joins, join]), first, first, join))
    return query


def _calls(outputs: Sequence[exp.Expr]) -> Iterator[nodes.Call]:
    """The calls of one array among selected columns, each once."""
    found: dict[nodes.Call, None] = {}
    for output in outputs:
        for node in output.walk(prune=lambda one: isinstance(one, nodes.SUBQUERIES)):
            if isinstance(node, nodes.Call) and node.args["name"] in CALLS and len(node.expressions) == 1:
                found[node] = None
    yield from found


def _names(calls: Sequence[nodes.Call]) -> Iterator[str]:
    taken: list[str] = []
    for call in calls:
        taken.append(another(str(call.args["name"]).lower(), taken))
        yield taken[-1]


def _replaced(cursor: Cursor, node: exp.Expr, columns: dict[nodes.Call, exp.Identifier]) -> exp.Expr:
    """With columns in the place of calls."""

    def column(one: exp.Expr) -> exp.Expr:
        name = columns.get(one) if isinstance(one, nodes.Call) else None
        if name is None:
            return one
        table = cursor.node(exp.Identifier(this=_HIDDEN, quoted=True), one)
        return cursor.node(exp.Column(this=name.copy(), table=table), one)

    return node.transform(column, copy=False)
