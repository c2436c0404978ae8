"""``SELECT outputs FROM stream [window] alias WHERE condition BEGIN e END e``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.scalar import parse_expression
from engine.language.grammar.windows import parse_begin_end, parse_bracket_window
from engine.language.grammar.words import CLAUSES_REFUSED, RESERVED
from tureen.errors import SyntaxRefused


def parse_select(cursor: Cursor) -> nodes.StreamQuery:
    """A query; the next token is SELECT."""
    token = cursor.advance()
    if cursor.word == "DISTINCT":
        raise cursor.not_supported("DISTINCT is not served", "remove duplicates where you fetch the answer")
    if cursor.word == "ALL" and cursor.peek().token_type is not TokenType.COMMA:
        cursor.advance()
    if cursor.word == "TOP" and cursor.peek().token_type is TokenType.NUMBER:
        raise cursor.not_supported("TOP is not served", "use a window such as [ROWS 100]")
    if cursor.word in ("ISTREAM", "DSTREAM", "RSTREAM") and cursor.peek().token_type is TokenType.L_PAREN:
        raise cursor.not_supported(
            f"{cursor.word} is not served", "leave it out and fetch snapshots by handle"
        )
    outputs = [_output(cursor)]
    while cursor.take(TokenType.COMMA):
        if len(outputs) >= cursor.limits.outputs_max:
            raise cursor.place.exceeded("outputs_max", cursor.limits.outputs_max, hint="select fewer columns")
        outputs.append(_output(cursor))
    if cursor.word == "INTO":
        _refuse_clause(cursor)
    if cursor.word != "FROM":
        raise cursor.expected("FROM or a comma", "write SELECT columns FROM stream")
    cursor.advance()
    source = _source(cursor)
    where = None
    if cursor.take_words("WHERE"):
        where = parse_expression(cursor)
    ends = parse_begin_end(cursor) if cursor.word == "BEGIN" else None
    if ends is not None and cursor.word == "WHERE":
        raise cursor.refuse(
            SyntaxRefused, "WHERE stands before BEGIN", hint="write WHERE ... BEGIN ... END ..."
        )
    _refuse_clause(cursor)
    return cursor.node(
        nodes.StreamQuery(expressions=outputs, source=source, where=where, ends=ends), token, *outputs
    )


def _output(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    if cursor.take(TokenType.STAR):
        _refuse_star_options(cursor)
        return cursor.node(exp.Star(), token)
    names = (TokenType.VAR, TokenType.IDENTIFIER)
    if (
        token.token_type in names
        and cursor.peek().token_type is TokenType.DOT
        and cursor.peek(2).token_type is TokenType.STAR
    ):
        table = cursor.name("a stream")
        cursor.advance()
        star = cursor.node(exp.Star(), cursor.advance())
        _refuse_star_options(cursor)
        return cursor.node(exp.Column(this=star, table=table), token)
    expression = parse_expression(cursor)
    alias = None
    if cursor.take_words("AS"):
        if cursor.at(TokenType.STRING):
            raise cursor.expected("a name after AS", "names stand in double quotes, strings in single ones")
        alias = cursor.name("a name after AS")
    elif cursor.at(TokenType.IDENTIFIER) or (cursor.at(TokenType.VAR) and cursor.word not in RESERVED):
        alias = cursor.name("a name")
    if alias is None:
        return expression
    return cursor.node(exp.Alias(this=expression, alias=alias), token, expression)


def _refuse_star_options(cursor: Cursor) -> None:
    if cursor.word in ("EXCEPT", "EXCLUDE", "REPLACE", "RENAME"):
        raise cursor.not_supported(f"* {cursor.word} is not served", "name the columns")


def _source(cursor: Cursor) -> nodes.StreamReference:
    token = cursor.token
    if cursor.at(TokenType.L_PAREN):
        raise cursor.not_supported("a subquery is not served", "write FROM and the name of a stream")
    if cursor.word == "LATERAL":
        _refuse_clause(cursor)
    name = cursor.name("a stream after FROM")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported(
            "a stream's name has one part",
            "leave the part before the dot out, or quote a name that holds a dot",
        )
    if cursor.at(TokenType.L_PAREN):
        raise cursor.not_supported(
            "table functions are not served",
            "write the stream's name and a window, such as [RANGE 10 MINUTES]",
        )
    window = parse_bracket_window(cursor) if cursor.at(TokenType.L_BRACKET) else None
    alias = None
    if cursor.take_words("AS"):
        alias = cursor.name("a name after AS")
    elif cursor.at(TokenType.IDENTIFIER) or (
        cursor.at(TokenType.VAR) and cursor.word not in RESERVED and cursor.word not in CLAUSES_REFUSED
    ):
        alias = cursor.name("a name")
    if cursor.at(TokenType.L_BRACKET):
        if window is not None:
            raise cursor.refuse(SyntaxRefused, "a stream has one window")
        window = parse_bracket_window(cursor)
    if cursor.at(TokenType.COMMA):
        raise cursor.not_supported("a join is not served", "select from one stream")
    return cursor.node(nodes.StreamReference(this=name, window=window, alias=alias), token)


def _refuse_clause(cursor: Cursor) -> None:
    """Raise NotSupported where a clause of SQL begins that is not served."""
    refused = CLAUSES_REFUSED.get(cursor.word)
    if refused is not None:
        raise cursor.not_supported(f"{refused[0]} is not served", refused[1])
    if cursor.at(TokenType.COMMA):
        raise cursor.not_supported("a join is not served", "select from one stream")
