"""CREATE STREAM and DROP STREAM."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.typenames import parse_type_name
from tureen.errors import SyntaxRefused

_OTHERS = (
    "TABLE",
    "VIEW",
    "SUMMARY",
    "MATERIALIZED",
    "SOURCE",
    "INDEX",
    "TYPE",
    "FUNCTION",
    "SCHEMA",
    "DATABASE",
)


def parse_create(cursor: Cursor) -> nodes.CreateStreamNode:
    """CREATE STREAM [IF NOT EXISTS] name (columns) [WITH (options)] [RETAIN duration]."""
    token = cursor.advance()
    if cursor.word == "OR":
        raise cursor.not_supported("CREATE OR REPLACE is not served", "DROP STREAM, then CREATE STREAM")
    if cursor.word in _OTHERS:
        raise cursor.not_supported(f"CREATE {cursor.word} is not served", "write CREATE STREAM")
    cursor.expect_word("STREAM", "write CREATE STREAM name (column TYPE, ...)")
    if_not_exists = _existence(cursor, "NOT")
    name = cursor.name("the stream's name")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported("a stream's name has one part", "leave the part before the dot out")
    if cursor.word == "AS":
        raise cursor.not_supported("CREATE STREAM ... AS SELECT is not served", "register the query itself")
    cursor.expect(TokenType.L_PAREN, "( and the columns", "write CREATE STREAM name (column TYPE, ...)")
    columns = [_column(cursor)]
    while cursor.take(TokenType.COMMA):
        if len(columns) >= cursor.limits.columns_max:
            raise cursor.place.exceeded("columns_max", cursor.limits.columns_max)
        columns.append(_column(cursor))
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    options: list[nodes.OptionSetting] = []
    retain = None
    while True:
        if cursor.word == "WITH" and not options:
            options = _options(cursor)
        elif cursor.word == "RETAIN" and retain is None:
            cursor.advance()
            retain = parse_duration(cursor)
        else:
            break
    node = nodes.CreateStreamNode(
        this=name, columns=columns, options=options, retain=retain, if_not_exists=if_not_exists
    )
    return cursor.node(node, token)


def parse_drop(cursor: Cursor) -> nodes.DropStreamNode:
    """DROP STREAM [IF EXISTS] name."""
    token = cursor.advance()
    if cursor.word in _OTHERS:
        raise cursor.not_supported(f"DROP {cursor.word} is not served", "write DROP STREAM")
    cursor.expect_word("STREAM", "write DROP STREAM name")
    if_exists = _existence(cursor, None)
    name = cursor.name("the stream's name")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported("a stream's name has one part", "leave the part before the dot out")
    if cursor.word in ("CASCADE", "RESTRICT"):
        raise cursor.not_supported(
            f"{cursor.word} is not served", "unregister the queries over the stream first"
        )
    return cursor.node(nodes.DropStreamNode(this=name, if_exists=if_exists), token)


def _existence(cursor: Cursor, negation: str | None) -> bool:
    if cursor.word != "IF":
        return False
    words = ("IF", "NOT", "EXISTS") if negation else ("IF", "EXISTS")
    if cursor.take_words(*words):
        return True
    if cursor.word_ahead() in ("NOT", "EXISTS"):
        cursor.advance()
        raise cursor.expected(" ".join(words[1:]))
    return False


def _column(cursor: Cursor) -> nodes.ColumnDeclaration:
    token = cursor.token
    if cursor.word in ("PRIMARY", "FOREIGN") and cursor.word_ahead() == "KEY":
        raise cursor.not_supported("a key is not served: a stream only grows", "leave it out")
    name = cursor.name("a column's name")
    kind = parse_type_name(cursor)
    not_null = cursor.take_words("NOT", "NULL")
    if not not_null:
        cursor.take_words("NULL")
    if cursor.word in ("PRIMARY", "UNIQUE", "DEFAULT", "CHECK", "REFERENCES", "GENERATED", "COLLATE"):
        raise cursor.not_supported(f"{cursor.word} on a column is not served", "leave it out")
    return cursor.node(nodes.ColumnDeclaration(this=name, kind=kind, not_null=not_null), token)


def _options(cursor: Cursor) -> list[nodes.OptionSetting]:
    cursor.advance()
    cursor.expect(TokenType.L_PAREN, "( after WITH", "write WITH (topic = 'name', timestamp = 'column')")
    options = [_option(cursor)]
    while cursor.take(TokenType.COMMA):
        options.append(_option(cursor))
    cursor.expect(TokenType.R_PAREN, ") or a comma")
    return options


def _option(cursor: Cursor) -> nodes.OptionSetting:
    token = cursor.token
    if not cursor.at(TokenType.VAR):
        raise cursor.expected("an option's name", "write WITH (topic = 'name', timestamp = 'column')")
    cursor.check_word(token)
    cursor.advance()
    cursor.expect(TokenType.EQ, "= after the option's name")
    place = cursor.token
    value: exp.Expr
    if cursor.word in ("TRUE", "FALSE"):
        value = cursor.node(exp.Boolean(this=cursor.advance().text.upper() == "TRUE"), place)
    elif cursor.word == "INTERVAL" or (
        cursor.at(TokenType.NUMBER) and cursor.peek().token_type is TokenType.VAR
    ):
        value = parse_duration(cursor)
    elif cursor.at(TokenType.NUMBER):
        value = cursor.node(exp.Literal(this=cursor.advance().text, is_string=False), place)
    elif cursor.at(TokenType.STRING):
        value = cursor.node(exp.Literal(this=cursor.advance().text, is_string=True), place)
    elif cursor.at(TokenType.VAR) or cursor.at(TokenType.IDENTIFIER):
        raise cursor.refuse(
            SyntaxRefused, "an option's value stands in single quotes", hint="write timestamp = 'ts'"
        )
    else:
        raise cursor.expected("a value")
    return cursor.node(nodes.OptionSetting(name=token.text.lower(), value=value), token)
