"""``WITH .. SELECT outputs FROM sources WHERE .. GROUP BY .. HAVING .. WINDOW .. QUALIFY .. BEGIN e END e
UNION .. ORDER BY .. LIMIT n OFFSET m WITH PREFERENCE .. WITH (..) EMIT ..``.

What stands behind several SELECTs with set operations between them is about their rows together:
``SELECT * FROM (them) ORDER BY ..``, which is how it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.allowed import EXAMPLE, parse_allowed
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.distinct_on import keep_first_of, sort_first_of
from engine.language.grammar.emit import OPERATORS, parse_emit, parse_operator, starts_operator
from engine.language.grammar.grouping import parse_group_by
from engine.language.grammar.ksql_windows import grouped_by_window, parse_group_window
from engine.language.grammar.ordering import parse_limits, parse_order
from engine.language.grammar.over import parse_named_windows, starts_named_windows
from engine.language.grammar.preferences import EXAMPLE as PREFERENCE
from engine.language.grammar.preferences import parse_preference, starts_preference
from engine.language.grammar.scalar import parse_expression, refuse_parameter
from engine.language.grammar.semicolons import semicolon_missing
from engine.language.grammar.set_operations import parse_sets, refuse_early_order
from engine.language.grammar.sources import parse_from, parse_names, refuse_clause
from engine.language.grammar.subqueries import parse_subquery, starts_in_brackets, starts_query, starts_values
from engine.language.grammar.unnest import with_elements
from engine.language.grammar.values import no_source, parse_values
from engine.language.grammar.windows import parse_begin_end
from engine.language.grammar.words import EARLIER, RESERVED, SET_OPERATIONS
from engine.language.places import near
from tureen.errors import SyntaxRefused


def parse_query(cursor: Cursor) -> nodes.SelectQuery:
    """A query with the WITH before it, a stream operator around it, WITH and EMIT behind; one of the first
    is next.
    """
    query = _within_operator(cursor) if cursor.word in OPERATORS else _query(cursor)
    allowed = None if starts_preference(cursor) else parse_allowed(cursor)
    preference = parse_preference(cursor, parse_expression)
    query.set("preference", preference)
    if cursor.word == "WITH" and allowed is not None:
        raise cursor.refuse(SyntaxRefused, "WITH is given twice", hint="write all options into one")
    query.set("allowed", parse_allowed(cursor) if allowed is None else allowed)
    if preference is not None and starts_preference(cursor):
        raise cursor.refuse(SyntaxRefused, "WITH PREFERENCE is given twice", hint="leave one of them out")
    query.set("emit", parse_emit(cursor))
    return query


def _within_operator(cursor: Cursor) -> nodes.SelectQuery:
    """``ISTREAM (query)``."""
    operator = parse_operator(cursor)
    usage = f"write {operator.this} (SELECT ...)"
    if cursor.word not in ("SELECT", "WITH") and not starts_in_brackets(cursor):
        raise cursor.expected("SELECT", usage)
    with cursor.nested():
        query = _query(cursor)
        if cursor.word in ("WITH", "EMIT"):
            word, rest = cursor.word, "EMIT CHANGES" if cursor.word == "EMIT" else f"WITH ({EXAMPLE})"
            if starts_preference(cursor):
                word, rest = "WITH PREFERENCE", PREFERENCE
            raise cursor.refuse(
                SyntaxRefused, f"{word} must come after the closing bracket", hint=f"{usage} {rest}"
            )
        cursor.expect(TokenType.R_PAREN, ") after the query", usage)
    if cursor.word in SET_OPERATIONS:
        raise cursor.refuse(
            SyntaxRefused,
            f"{operator.this} must enclose the whole query",
            hint=f"write {operator.this} (SELECT ... {cursor.word} SELECT ...)",
        )
    second = query.args["operator"]
    if second is not None:
        raise cursor.text.of_node(second).refuse(
            SyntaxRefused, "a query has one stream operator", hint="leave one of them out"
        )
    query.set("operator", operator)
    return query


def _query(cursor: Cursor) -> nodes.SelectQuery:
    tables = _with(cursor)
    token, in_brackets = cursor.token, cursor.at(TokenType.L_PAREN)
    sets = parse_sets(cursor, _select)
    if isinstance(sets, nodes.SelectQuery) and not in_brackets:
        query = sets
    elif isinstance(sets, nodes.SelectQuery) and not tables and cursor.word not in _OF_ALL_ROWS:
        return sets
    else:
        query = _all_of(cursor, token, sets)
    order = parse_order(cursor, parse_expression) if cursor.word == "ORDER" else []
    limit, offset, ties = parse_limits(cursor, ordered=bool(order))
    refuse_early_order(cursor)
    refuse_clause(cursor)
    query.set("tables", tables)
    query.set("order", order)
    if query.args.get("first_of") is not None:
        sort_first_of(query, order)
    for name, value in (("limit", limit), ("offset", offset), ("ties", ties)):
        query.set(name, value)
    return cursor.node(query, tables[0] if tables else token, query, *tables, *order)


_OF_ALL_ROWS = ("ORDER", "LIMIT", "OFFSET", "FETCH")


def _with(cursor: Cursor) -> list[nodes.CommonTable]:
    if cursor.word != "WITH":
        return []
    cursor.advance()
    if cursor.word == "RECURSIVE":
        raise cursor.not_supported("WITH RECURSIVE is not supported", "write one query for each step")
    tables = [_common_table(cursor, ())]
    while cursor.take(TokenType.COMMA):
        tables.append(_common_table(cursor, tables))
    if cursor.word != "SELECT" and not (starts_in_brackets(cursor) or starts_values(cursor)):
        raise cursor.expected("SELECT or a comma", "write WITH name AS (SELECT ...) SELECT ... FROM name")
    return tables


def _all_of(cursor: Cursor, token: Token, sets: exp.Expr) -> nodes.SelectQuery:
    """``SELECT * FROM (sets)``."""
    star = cursor.node(exp.Star(), token)
    source = cursor.node(nodes.FromItem(this=sets), token, sets)
    query = nodes.SelectQuery(expressions=[star], source=source, operator=None)
    return cursor.node(query, token, star, source)


def _common_table(cursor: Cursor, before: Sequence[nodes.CommonTable]) -> nodes.CommonTable:
    token = cursor.token
    name = cursor.name("a name after WITH")
    if any(table.this.name == name.name for table in before):
        message = f"there are two queries named {name.name!r} in this WITH"
        raise cursor.text.of_token(token).refuse(SyntaxRefused, message, hint="give one another name")
    names = parse_names(cursor)
    cursor.expect_word("AS", "write WITH name AS (SELECT ...)")
    if cursor.take_words("NOT", "MATERIALIZED") or cursor.take_words("MATERIALIZED"):
        pass  # whether it is kept is not for a text to say
    cursor.expect(TokenType.L_PAREN, "( and a query", "write WITH name AS (SELECT ...)")
    if not starts_query(cursor):
        raise cursor.expected("SELECT", "write WITH name AS (SELECT ...)")
    query = parse_subquery(cursor, is_stream=True)
    return cursor.node(nodes.CommonTable(this=name, query=query, names=names), token, query)


def _select(cursor: Cursor) -> nodes.SelectQuery:
    """A SELECT up to its ORDER BY, or VALUES."""
    if cursor.word == "VALUES":
        return parse_values(cursor)
    token = cursor.expect_word("SELECT")
    distinct, on = _distinct(cursor)
    operator = parse_operator(cursor) if starts_operator(cursor) else None
    if operator is not None:
        within, on_within = _distinct(cursor)
        distinct, on = distinct or within, on or on_within
    outputs = [_output(cursor)]
    while cursor.take(TokenType.COMMA):
        if len(outputs) >= cursor.limits.outputs_max:
            raise cursor.place.exceeded("outputs_max", cursor.limits.outputs_max, hint="select fewer columns")
        outputs.append(_output(cursor))
    if operator is not None:
        usage = f"write SELECT {operator.this}(a, b AS c, ...) FROM ..., all columns in the brackets"
        cursor.expect(TokenType.R_PAREN, ") or a comma", usage)
        if cursor.word != "FROM":
            raise cursor.expected(f"FROM after {operator.this}(...)", usage)
    if cursor.word == "INTO":
        refuse_clause(cursor)
    source = parse_from(cursor) if cursor.take_words("FROM") else _without_source(cursor, token, outputs[-1])
    window = parse_group_window(cursor)
    where = parse_expression(cursor) if cursor.take_words("WHERE") else None
    window = window or parse_group_window(cursor)
    group, sets = grouped_by_window(cursor, window, *parse_group_by(cursor))
    having = parse_expression(cursor) if cursor.take_words("HAVING") else None
    windows, qualify = _windows_and_qualify(cursor)
    ends = parse_begin_end(cursor) if cursor.word == "BEGIN" else None
    if ends is not None and cursor.word in ("WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY"):
        raise cursor.refuse(
            SyntaxRefused,
            f"{cursor.word} must come before BEGIN",
            hint="write WHERE ... GROUP BY ... HAVING ... BEGIN ... END ... ORDER BY ... LIMIT ...",
        )
    refuse_clause(cursor)
    parts: list[exp.Expr] = [*outputs, source, *group, *windows]
    parts += [part for part in (where, having, qualify) if part is not None]
    query = nodes.SelectQuery(
        distinct=distinct,
        expressions=outputs,
        source=source,
        where=where,
        group=group,
        sets=sets,
        having=having,
        windows=windows,
        qualify=qualify,
        ends=ends,
        operator=operator,
    )
    query = with_elements(cursor, cursor.node(query, token, *parts))
    return keep_first_of(cursor, query, on) if on else query


def _without_source(cursor: Cursor, token: Token, last: exp.Expr) -> nodes.FromItem:
    """What a SELECT that ends without FROM is over. Raises SyntaxRefused where something else follows."""
    hint = near(cursor.word, ["FROM"]) or near(last.alias.upper(), ["FROM"])
    ends = cursor.at_end or cursor.at(TokenType.R_PAREN) or cursor.at(TokenType.SEMICOLON)
    if hint is not None or not (ends or cursor.word in (*EARLIER, "WINDOW", "WITH", "EMIT")):
        refuse_parameter(cursor)
        hint = hint or semicolon_missing(cursor) or "write SELECT columns FROM stream"
        raise cursor.expected("FROM or a comma", hint)
    return no_source(cursor, token)


def _windows_and_qualify(cursor: Cursor) -> tuple[list[nodes.NamedWindow], exp.Expr | None]:
    """WINDOW and QUALIFY, in either order."""
    windows: list[nodes.NamedWindow] = []
    qualify: exp.Expr | None = None
    while True:
        if not windows and starts_named_windows(cursor):
            windows = parse_named_windows(cursor, parse_expression)
        elif qualify is None and cursor.take_words("QUALIFY"):
            qualify = parse_expression(cursor)
        else:
            return windows, qualify


def _distinct(cursor: Cursor) -> tuple[bool, list[exp.Expr]]:
    """What may stand between SELECT and the columns: (whether DISTINCT does, the keys of DISTINCT ON)."""
    if cursor.word == "TOP" and cursor.peek().token_type is TokenType.NUMBER:
        raise cursor.not_supported("TOP is not supported", "write LIMIT n at the end of the query")
    if cursor.word == "ALL" and cursor.peek().token_type is not TokenType.COMMA:
        cursor.advance()
    if cursor.word != "DISTINCT":
        return False, []
    cursor.advance()
    if cursor.word != "ON":
        return True, []
    if cursor.peek().token_type is not TokenType.L_PAREN:
        cursor.advance()
        raise cursor.expected("( behind DISTINCT ON", "write DISTINCT ON (k) k, v FROM s ORDER BY k, v")
    cursor.advance()
    cursor.advance()
    with cursor.nested():
        keys = cursor.listed(lambda: parse_expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma", "write DISTINCT ON (k) k, v FROM s ORDER BY k, v")
    return False, keys


def _output(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    if cursor.take(TokenType.STAR):
        return _star(cursor, token)
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    if (
        token.token_type in names
        and cursor.peek().token_type is TokenType.DOT
        and cursor.peek(2).token_type is TokenType.STAR
    ):
        table = cursor.name("a stream")
        cursor.advance()
        star = _star(cursor, cursor.advance())
        return cursor.node(exp.Column(this=star, table=table), token, star)
    expression = parse_expression(cursor)
    alias = None
    if cursor.take_words("AS"):
        if cursor.at(TokenType.STRING):
            raise cursor.expected(
                "a name after AS", "write names in double quotes; single quotes are for strings"
            )
        alias = cursor.name("a name after AS") if cursor.word == "FROM" else cursor.field("a name after AS")
    elif cursor.at(TokenType.IDENTIFIER) or (cursor.at(TokenType.VAR) and cursor.word not in RESERVED):
        alias = cursor.name("a name")
    if alias is None:
        return expression
    return cursor.node(exp.Alias(this=expression, alias=alias), token, expression)


def _star(cursor: Cursor, token: Token) -> exp.Star:
    """``* EXCEPT (a, ...) REPLACE (x AS b, ...) RENAME (c AS d, ...)``; the star is behind."""
    star = exp.Star(except_=[], replace=[], rename=[])
    while (word := _STAR_OPTIONS.get(cursor.word)) and not star.args[word]:
        if cursor.peek().token_type is not TokenType.L_PAREN:
            break  # EXCEPT of two queries; a column's name
        option = cursor.advance().text.upper()
        cursor.advance()
        with cursor.nested():
            items = cursor.listed(partial(_STAR_ITEMS[word], cursor))
            cursor.expect(TokenType.R_PAREN, ") or a comma", f"write * {option} (...)")
        star.set(word, items)
    children = [item for items in star.args.values() for item in items if "height" in item.meta]
    return cursor.node(star, token, *children)


def _replaced(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    expression = parse_expression(cursor)
    cursor.expect_word("AS", "write * REPLACE (x + 1 AS x)")
    name = cursor.name("the column that it replaces")
    return cursor.node(exp.Alias(this=expression, alias=name), token, expression)


def _renamed(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    old = cursor.name("a column's name")
    cursor.expect_word("AS", "write * RENAME (old AS new)")
    return cursor.node(exp.Alias(this=old, alias=cursor.name("its new name")), token)


_STAR_OPTIONS = {"EXCEPT": "except_", "EXCLUDE": "except_", "REPLACE": "replace", "RENAME": "rename"}
_STAR_ITEMS: dict[str, Callable[[Cursor], exp.Expr]] = {
    "except_": lambda cursor: cursor.name("a column's name"),
    "replace": _replaced,
    "rename": _renamed,
}
