"""Statements about what is registered: SHOW, DESCRIBE, EXPLAIN, PAUSE, RESUME, TERMINATE, ALTER."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import command_nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.inserts import parse_registered, starts_registered
from engine.language.grammar.queries import NAMES, names_query, parse_query_name
from engine.language.grammar.subqueries import starts_query
from engine.language.grammar.summaries import parse_alter_summary, parse_summary_name

_SHOWN = ("QUERIES", "STREAMS", "TABLES", "SOURCES", "VIEWS", "FUNCTIONS", "SUMMARIES")
_SHOW_HINT = "write SHOW QUERIES [EXTENDED], STREAMS, TABLES, SOURCES, VIEWS, FUNCTIONS or SUMMARIES"

_INSTEAD = {
    "COLUMNS": "write DESCRIBE name",
    "TOPICS": "tureen topic list shows them; SHOW SOURCES has the topics that are read",
}


def parse_show(cursor: Cursor) -> exp.Expr:
    """SHOW | LIST what."""
    token = cursor.advance()
    what = cursor.word
    if what not in _SHOWN:
        if what in ("TOPICS", "DATABASES", "SCHEMAS", "COLUMNS", "VARIABLES"):
            hint = _INSTEAD.get(what, _SHOW_HINT)
            raise cursor.not_supported(f"SHOW {what} is not supported", hint)
        raise cursor.expected(", ".join(_SHOWN[:-1]) + " or SUMMARIES", _SHOW_HINT)
    cursor.advance()
    extended = cursor.word == "EXTENDED"
    if extended and what != "QUERIES":
        raise cursor.not_supported(f"SHOW {what} EXTENDED is not supported", f"write SHOW {what}")
    if extended:
        cursor.advance()
    return cursor.node(command_nodes.ShowNode(what=what, extended=extended), token)


def parse_describe(cursor: Cursor) -> exp.Expr:
    """DESCRIBE | DESC [STREAM | TABLE | VIEW | SUMMARY] name."""
    token = cursor.advance()
    if cursor.word == "SUMMARY" and cursor.peek().token_type in NAMES:
        cursor.advance()
        return cursor.node(command_nodes.DescribeNode(this=parse_summary_name(cursor), summary=True), token)
    if cursor.word in ("STREAM", "TABLE", "VIEW") and cursor.peek().token_type in NAMES:
        cursor.advance()
    if cursor.word == "EXTENDED" and cursor.peek().token_type in NAMES:
        raise cursor.not_supported("DESCRIBE EXTENDED is not supported", "write DESCRIBE name")
    if starts_query(cursor):
        raise cursor.not_supported("DESCRIBE of a SELECT is not supported", "write EXPLAIN SELECT ...")
    name = cursor.name("the name of a stream, a table or a view")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported("a name with a dot is not supported", "leave out the part before the dot")
    return cursor.node(command_nodes.DescribeNode(this=name), token)


def parse_explain(cursor: Cursor) -> exp.Expr:
    """EXPLAIN [ANALYZE] query, EXPLAIN [ANALYZE] [QUERY] 'handle or id', EXPLAIN [ANALYZE] QUERY name."""
    token = cursor.advance()
    analyze = cursor.word in ("ANALYZE", "ANALYSE")
    if analyze:
        cursor.advance()
    if cursor.at(TokenType.L_PAREN) and not starts_query(cursor):
        raise cursor.not_supported("options of EXPLAIN are not supported", "write EXPLAIN or EXPLAIN ANALYZE")
    is_named = cursor.take_words("QUERY")
    if cursor.at(TokenType.STRING) or (is_named and names_query(cursor)):
        handle = parse_query_name(cursor)
        return cursor.node(command_nodes.ExplainNode(handle=handle, analyze=analyze), token)
    if not starts_registered(cursor):
        raise cursor.expected(
            "SELECT, or a handle in quotes",
            "write EXPLAIN SELECT ..., EXPLAIN QUERY name, or EXPLAIN 'handle'",
        )
    begin = cursor.token.start
    query = parse_registered(cursor)
    node = command_nodes.ExplainNode(query=query, analyze=analyze, begin=begin, end=cursor.end)
    return cursor.node(node, token, query)


def parse_control(cursor: Cursor) -> exp.Expr:
    """PAUSE | RESUME | TERMINATE [QUERY] 'handle or id' or name; behind that of PAUSE may stand RELEASE."""
    token = cursor.advance()
    action = token.text.lower()
    if cursor.word == "QUERY":
        cursor.advance()
    if cursor.word == "ALL":
        raise cursor.not_supported(f"{action.upper()} ALL is not supported", "name one query, or its handle")
    if not names_query(cursor):
        raise cursor.expected(
            "a query's name, or a handle in single quotes",
            f"write {action.upper()} name, or {action.upper()} 'handle'",
        )
    handle = parse_query_name(cursor)
    release = action == "pause" and cursor.take_words("RELEASE")
    return cursor.node(command_nodes.ControlNode(action=action, handle=handle, release=release), token)


def parse_alter(cursor: Cursor) -> exp.Expr:
    """ALTER QUERY 'handle' AS query, ALTER QUERY name RENAME TO name, ALTER SUMMARY name SET (settings)."""
    hint = "write ALTER QUERY 'handle' AS SELECT ..., or ALTER QUERY name RENAME TO name"
    token = cursor.advance()
    if cursor.word == "SUMMARY":
        return parse_alter_summary(cursor, token)
    if cursor.word != "QUERY":
        raise cursor.not_supported(
            f"ALTER {cursor.word or 'of this'} is not supported",
            "a query's text can be altered, ALTER QUERY 'handle' AS SELECT ..., and a summary's theta, "
            "ALTER SUMMARY name SET (theta = 0.5); drop a stream, a table or a view and create it anew",
        )
    cursor.advance()
    if not names_query(cursor):
        raise cursor.expected("a handle in single quotes", hint)
    handle = parse_query_name(cursor)
    if cursor.take_words("RENAME", "TO"):
        return cursor.node(
            command_nodes.RenameQueryNode(this=cursor.name("the new name"), handle=handle), token
        )
    if not cursor.take_words("AS") or not starts_registered(cursor):
        raise cursor.expected("AS and a SELECT", hint)
    begin = cursor.token.start
    query = parse_registered(cursor)
    node = command_nodes.AlterNode(query=query, handle=handle, begin=begin, end=cursor.end)
    return cursor.node(node, token, query)
