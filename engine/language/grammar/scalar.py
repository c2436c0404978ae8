"""Scalar expressions, by precedence as in PostgreSQL.

OR  <  AND  <  NOT  <  IS  <  = <> < <= > >=  <  BETWEEN IN LIKE  <  || & | # << >> ~  <  + -  <  * / %  <  ^
<  unary + -  <  ::
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.calls import parse_call, parse_clock
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.escaped import parse_escaped
from engine.language.grammar.intervals import parse_interval_literal, starts_interval
from engine.language.grammar.like_any import parse_like_any, starts_like_any
from engine.language.grammar.nested import (
    parse_any_element,
    parse_bracketed,
    parse_bytes,
    parse_group_of_match,
    parse_member,
    parse_subscript,
)
from engine.language.grammar.operators import (
    COMPARISONS,
    FOREIGN,
    WORDS,
    balanced,
    refuse_foreign,
    take_operator,
)
from engine.language.grammar.pattern_operators import parse_pattern_operator
from engine.language.grammar.preferences import parse_estimate, starts_estimate
from engine.language.grammar.rows import compare_rows, parse_row_call, parse_row_value, row_among
from engine.language.grammar.subqueries import (
    parse_quantified,
    parse_subquery,
    refuse_values,
    starts_quantified,
    starts_query,
)
from engine.language.grammar.time_calls import parse_zone
from engine.language.grammar.typenames import parse_type_name, starts_typed_literal
from engine.language.grammar.words import CLOCKS, RESERVED
from tureen.errors import SyntaxRefused

_OPERANDS = (
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.VAR,
    TokenType.IDENTIFIER,
    TokenType.L_PAREN,
)
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def parse_expression(cursor: Cursor) -> exp.Expr:
    """``a OR b OR ...``. Chains of OR and AND become balanced trees, so that they may be long."""
    operands = [_conjunction(cursor)]
    while cursor.word == "OR":
        cursor.advance()
        operands.append(_conjunction(cursor))
    return balanced(cursor, exp.Or, operands)


def _conjunction(cursor: Cursor) -> exp.Expr:
    operands = [_negation(cursor)]
    while cursor.word == "AND":
        cursor.advance()
        operands.append(_negation(cursor))
    return balanced(cursor, exp.And, operands)


def _negation(cursor: Cursor) -> exp.Expr:
    if cursor.word != "NOT":
        return _comparison(cursor)
    with cursor.nested():
        token = cursor.advance()
        operand = _negation(cursor)
    return cursor.node(exp.Not(this=operand), token, operand)


def _comparison(cursor: Cursor) -> exp.Expr:
    left = _range(cursor)
    while True:
        kind = cursor.token.token_type
        if make := COMPARISONS.get(kind):
            if isinstance(left, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
                raise cursor.refuse(
                    SyntaxRefused, "comparisons cannot be chained", hint="write a < b AND b < c"
                )
            cursor.advance()
            if kind is TokenType.EQ and (cursor.at(TokenType.GT) or cursor.at(TokenType.LT)):
                raise cursor.expected("an expression", "write >= or <=")
            if isinstance(left, nodes.RowValue):
                return compare_rows(cursor, left, make, parse_expression)
            if starts_quantified(cursor):
                left = parse_quantified(cursor, left, make)
                continue
            if cursor.word in ("ANY", "SOME", "ALL") and cursor.peek().token_type is TokenType.L_PAREN:
                left = parse_any_element(cursor, left, make, parse_expression)
                continue
            right = _range(cursor)
            left = cursor.node(make(this=left, expression=right), left, left, right)
        elif cursor.word == "IS":
            left = _is(cursor, left)
        elif cursor.word == "NOT" and cursor.word_ahead() == "NULL":
            raise cursor.expected("IS", "write IS NOT NULL")
        elif (
            cursor.word in WORDS
            and cursor.peek().token_type in _OPERANDS
            and cursor.word_ahead() not in RESERVED
        ):
            raise cursor.not_supported(f"the operator {cursor.word} is not supported", WORDS[cursor.word])
        elif kind in FOREIGN:
            what, hint = FOREIGN[kind]
            raise cursor.not_supported(f"the operator {what} is not supported", hint)
        else:
            return left


def _is(cursor: Cursor, left: exp.Expr) -> exp.Expr:
    cursor.advance()
    negated = cursor.take_words("NOT")
    test: exp.Expr
    if cursor.word in ("NULL", "UNKNOWN"):
        null = cursor.node(exp.Null(), cursor.advance())
        test = cursor.node(exp.Is(this=left, expression=null), left, left)
    elif cursor.word in ("TRUE", "FALSE"):
        value = cursor.advance().text.upper() == "TRUE"
        test = cursor.node(nodes.IsTruth(this=left, value=value), left, left)
    elif cursor.word == "JSON":
        cursor.advance()
        test = cursor.node(nodes.Call(name="JSON_VALID", expressions=[left]), left, left)
    elif cursor.take_words("DISTINCT", "FROM"):
        right = _range(cursor)
        test = cursor.node(nodes.DistinctFrom(this=left, expression=right), left, left, right)
    else:
        raise cursor.expected("NULL, TRUE, FALSE or DISTINCT FROM after IS", "write = to compare")
    return cursor.node(exp.Not(this=test), left, test) if negated else test


def _range(cursor: Cursor) -> exp.Expr:
    left = _binary(cursor, 1)
    while True:
        test = parse_pattern_operator(cursor, left, _operand)
        if test is not None:
            left = test
            continue
        negated = cursor.word == "NOT" and cursor.word_ahead() in _RANGES
        word = cursor.word_ahead() if negated else cursor.word
        if word not in (
            "BETWEEN",
            "IN",
            "LIKE",
            "ILIKE",
            "SIMILAR",
            "RLIKE",
            "REGEXP",
            "GLOB",
            "COLLATE",
        ):
            return left
        if word in ("RLIKE", "REGEXP", "GLOB"):
            raise cursor.not_supported(
                f"{word} is not supported", "write REGEXP_LIKE(s, pattern), or LIKE with % and _"
            )
        if word == "COLLATE":
            raise cursor.not_supported(
                "COLLATE is not supported", "strings compare by code point; use LOWER(...)"
            )
        if negated:
            cursor.advance()
        cursor.advance()
        if starts_like_any(cursor, word):
            left = parse_like_any(cursor, left, word, negated, parse_expression)
            continue
        test = _RANGES[word](cursor, left)
        left = cursor.node(exp.Not(this=test), left, test) if negated else test


def _between(cursor: Cursor, left: exp.Expr) -> exp.Expr:
    symmetric = cursor.take_words("SYMMETRIC")
    if not symmetric:
        cursor.take_words("ASYMMETRIC")
    low = _binary(cursor, 1)
    cursor.expect_word("AND", "write x BETWEEN low AND high")
    high = _binary(cursor, 1)
    if symmetric:
        low, high = (
            cursor.node(nodes.Call(name=name, expressions=[low.copy(), high.copy()]), low, low, high)
            for name in ("LEAST", "GREATEST")
        )
    return cursor.node(exp.Between(this=left, low=low, high=high), left, left, low, high)


def _in(cursor: Cursor, left: exp.Expr) -> exp.Expr:
    cursor.expect(TokenType.L_PAREN, "( after IN", "write x IN (1, 2, 3)")
    if starts_query(cursor):
        query = parse_subquery(cursor)
        return cursor.node(nodes.InQuery(this=left, query=query), left, left, query)
    if isinstance(left, nodes.RowValue):
        return row_among(cursor, left, parse_expression)
    refuse_values(cursor)
    if cursor.at(TokenType.R_PAREN):
        raise cursor.refuse(
            SyntaxRefused, "the list of IN is empty", hint="write at least one value, or FALSE"
        )
    with cursor.nested():
        choices = cursor.listed(lambda: parse_expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    return cursor.node(exp.In(this=left, expressions=choices), left, left, *choices)


def _like(cursor: Cursor, left: exp.Expr, make: Callable[..., Any] = exp.Like) -> exp.Expr:
    pattern = _binary(cursor, 1)
    test: exp.Expr = cursor.node(make(this=left, expression=pattern), left, left, pattern)
    if cursor.take_words("ESCAPE"):
        escape = _binary(cursor, 1)
        return cursor.node(exp.Escape(this=test, expression=escape), left, test, escape)
    return test


def _similar(cursor: Cursor, left: exp.Expr) -> exp.Expr:
    cursor.expect_word("TO", "write s SIMILAR TO '(a|b)%'")
    pattern = _binary(cursor, 1)
    if cursor.word == "ESCAPE":
        raise cursor.not_supported("ESCAPE of SIMILAR TO is not supported", "the escape character is \\")
    return cursor.node(nodes.Call(name="SIMILAR_TO", expressions=[left, pattern]), left, left, pattern)


def _ilike(cursor: Cursor, left: exp.Expr) -> exp.Expr:
    return _like(cursor, left, exp.ILike)


_RANGES: dict[str, Callable[[Cursor, exp.Expr], exp.Expr]] = {
    "BETWEEN": _between,
    "IN": _in,
    "LIKE": _like,
    "ILIKE": _ilike,
    "SIMILAR": _similar,
}


def _operand(cursor: Cursor) -> exp.Expr:
    """What binds tighter than comparisons, BETWEEN, IN and LIKE."""
    return _binary(cursor, 1)


def _binary(cursor: Cursor, tightness: int) -> exp.Expr:
    left = _unary(cursor)
    while operator := take_operator(cursor, tightness):
        right = _binary(cursor, operator[0] + 1)
        left = cursor.node(operator[1](this=left, expression=right), left, left, right)
    return left


def _unary(cursor: Cursor) -> exp.Expr:
    kind = cursor.token.token_type
    if kind is TokenType.DASH or kind is TokenType.PLUS:
        with cursor.nested():
            token = cursor.advance()
            operand = _unary(cursor)
        if kind is TokenType.PLUS:
            return operand
        return cursor.node(exp.Neg(this=operand), token, operand)
    if kind is TokenType.TILDE:
        with cursor.nested():
            token = cursor.advance()
            operand = _binary(cursor, 2)
        return cursor.node(nodes.Call(name="~", expressions=[operand]), token, operand)
    operand = _primary(cursor)
    if cursor.at(TokenType.L_BRACKET):
        operand = parse_group_of_match(cursor, operand, number)
    while True:
        if cursor.take(TokenType.DCOLON):
            target = parse_type_name(cursor)
            operand = cursor.node(exp.Cast(this=operand, to=target), operand, operand)
        elif cursor.word == "AT" and cursor.word_ahead() == "TIME":
            operand = parse_zone(cursor, operand, _primary)
        elif cursor.at(TokenType.L_BRACKET):
            operand = parse_subscript(cursor, operand, parse_expression)
        elif cursor.at(TokenType.DOT) and not isinstance(operand, exp.Literal):
            operand = parse_member(cursor, operand)
        else:
            return operand


def _primary(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    kind = token.token_type
    if kind is TokenType.VAR:
        return _word(cursor, token)
    if kind is TokenType.IDENTIFIER:
        return _column(cursor)
    if kind is TokenType.NUMBER or (kind is TokenType.DOT and cursor.peek().token_type is TokenType.NUMBER):
        return number(cursor)
    if kind is TokenType.STRING:
        return string(cursor)
    if kind is TokenType.L_PAREN:
        cursor.advance()
        if starts_query(cursor):
            query = parse_subquery(cursor)
            return cursor.node(nodes.ValueQuery(query=query), token, query)
        refuse_values(cursor)
        with cursor.nested():
            inside = parse_expression(cursor)
            if cursor.at(TokenType.COMMA):
                return parse_row_value(cursor, token, inside, parse_expression)
            cursor.expect(TokenType.R_PAREN, ")")
        return cursor.node(exp.Paren(this=inside), token, inside)
    refuse_parameter(cursor)
    if kind is TokenType.NATIONAL_STRING:
        raise cursor.not_supported("N'...' is not supported", "write '...'; all strings are Unicode")
    if kind is TokenType.STAR:
        raise cursor.refuse(
            SyntaxRefused, "* is allowed only directly after SELECT, where it means all columns"
        )
    if kind is TokenType.L_BRACKET:
        raise cursor.refuse(
            SyntaxRefused, "an expression cannot begin with [", hint='write names in double quotes: "name"'
        )
    if kind in FOREIGN:
        what, hint = FOREIGN[kind]
        raise cursor.not_supported(f"the operator {what} is not supported", hint)
    raise cursor.expected("an expression")


def _word(cursor: Cursor, token: Token) -> exp.Expr:
    word = token.text.upper()
    if word.startswith("$"):
        refuse_parameter(cursor)
    if word in ("LEFT", "RIGHT") and cursor.peek().token_type is TokenType.L_PAREN:
        return parse_call(cursor, parse_expression, _operand)
    if word in ("TRUE", "FALSE"):
        return cursor.node(exp.Boolean(this=word == "TRUE"), cursor.advance())
    if word == "NULL":
        return cursor.node(exp.Null(), cursor.advance())
    if word == "CASE":
        return _case(cursor)
    if word in ("CAST", "TRY_CAST") and cursor.peek().token_type is TokenType.L_PAREN:
        return _cast(cursor)
    if word == "EXISTS":
        cursor.advance()
        cursor.expect(TokenType.L_PAREN, "( and a query", "write EXISTS (SELECT ...)")
        if not starts_query(cursor):
            raise cursor.expected("SELECT", "write EXISTS (SELECT ...)")
        query = parse_subquery(cursor)
        return cursor.node(nodes.ExistsQuery(query=query), token, query)
    if word in ("ANY", "ALL", "SOME") and cursor.peek().token_type is TokenType.L_PAREN:
        raise cursor.not_supported(
            f"{word} (...) is not supported",
            "write x IN (SELECT ...), or x IN (1, 2, 3), or compare with MIN or MAX",
        )
    if word == "INTERVAL" and starts_interval(cursor):
        return parse_interval_literal(cursor)
    if starts_typed_literal(cursor):
        target = parse_type_name(cursor)
        literal = string(cursor)
        return cursor.node(exp.Cast(this=literal, to=target), token, literal)
    ahead = cursor.peek().token_type
    if ahead is TokenType.L_PAREN and word == "ROW":
        return parse_row_call(cursor, parse_expression)
    if ahead is TokenType.L_PAREN and word not in RESERVED:
        return parse_call(cursor, parse_expression, _operand)
    if ahead is TokenType.L_BRACKET and word in ("ARRAY", "MAP"):
        return parse_bracketed(cursor, token, parse_expression)
    glued = ahead is TokenType.STRING and cursor.peek().start == token.end + 1
    if glued and word == "X":
        return parse_bytes(cursor, token, string)
    if glued and word == "E":
        return parse_escaped(cursor, token)
    if glued and word in ("B", "R", "U"):
        raise cursor.not_supported(f"{word}'...' is not supported", "write '...'; a quote inside is doubled")
    if word in CLOCKS - {"NOW", "TODAY"}:
        return parse_clock(cursor)
    return _column(cursor)


def _column(cursor: Cursor) -> exp.Expr:
    token = cursor.token
    first = cursor.name("an expression")
    if not cursor.at(TokenType.DOT):
        return cursor.node(exp.Column(this=first), token)
    cursor.advance()
    if cursor.at(TokenType.STAR):
        raise cursor.refuse(
            SyntaxRefused, "* is allowed only directly after SELECT, where it means all columns"
        )
    second = cursor.field("a column after the dot")
    if cursor.at(TokenType.DOT) and starts_estimate(cursor, second):
        return parse_estimate(cursor, token, first)
    end = cursor.word_ahead().lower()
    if (
        cursor.at(TokenType.DOT)
        and end in ("start", "end")
        and cursor.peek(2).token_type is not TokenType.DOT
    ):
        cursor.advance()
        cursor.advance()
        field = exp.Identifier(this=f"{second.name}_{end}", quoted=True)  # of a window
        second = cursor.node(field, second)
    return cursor.node(exp.Column(this=second, table=first), token)


def _case(cursor: Cursor) -> exp.Expr:
    token = cursor.advance()
    with cursor.nested():
        subject = None if cursor.word == "WHEN" else parse_expression(cursor)
        if cursor.word != "WHEN":
            raise cursor.expected("WHEN", "write CASE WHEN condition THEN value ELSE value END")
        branches = []
        while cursor.take_words("WHEN"):
            condition = parse_expression(cursor)
            cursor.expect_word("THEN")
            value = parse_expression(cursor)
            branches.append(cursor.node(exp.If(this=condition, true=value), condition, condition, value))
        default = parse_expression(cursor) if cursor.take_words("ELSE") else None
        cursor.expect_word("END", "CASE ends with END")
    children: list[exp.Expr] = [*branches]
    children += [node for node in (subject, default) if node is not None]
    return cursor.node(exp.Case(this=subject, ifs=branches, default=default), token, *children)


def _cast(cursor: Cursor) -> exp.Expr:
    token = cursor.advance()
    cursor.advance()
    with cursor.nested():
        operand = parse_expression(cursor)
        cursor.expect_word("AS", "write CAST(value AS type)")
        target = parse_type_name(cursor)
        cursor.expect(TokenType.R_PAREN, ")")
    make = exp.TryCast if token.text.upper() == "TRY_CAST" else exp.Cast
    return cursor.node(make(this=operand, to=target), token, operand)


# --- literals


def number(cursor: Cursor) -> exp.Expr:
    """An unsigned number as written."""
    token = cursor.advance()
    text = token.text
    if token.token_type is TokenType.DOT:
        fraction = cursor.advance()
        if fraction.start != token.end + 1 or "." in fraction.text:
            raise cursor.text.of_token(token).refuse(SyntaxRefused, "unexpected .")
        token_end, text = fraction.end, "0." + fraction.text
    else:
        token_end = token.end
    follows = cursor.token
    glued = follows.token_type in (TokenType.VAR, TokenType.NUMBER) and follows.start == token_end + 1
    if glued or _NUMBER.fullmatch(text) is None:
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, "this is not a number", hint="write digits, such as 42, 0.5 or 1e6"
        )
    return cursor.node(exp.Literal(this=text, is_string=False), token)


def string(cursor: Cursor) -> exp.Expr:
    """A string literal."""
    token = cursor.expect(TokenType.STRING, "a string in single quotes")
    if "\x00" in token.text:
        raise cursor.text.of_token(token).refuse(
            SyntaxRefused, "a string cannot contain the character U+0000"
        )
    return cursor.node(exp.Literal(this=token.text, is_string=True), token)


# --- what is not supported


def refuse_parameter(cursor: Cursor) -> None:
    """Raise NotSupported where a parameter stands, or an operator of other systems."""
    refuse_foreign(cursor)
    kinds = (TokenType.PLACEHOLDER, TokenType.PARAMETER, TokenType.COLON, TokenType.DOLLAR)
    word = cursor.token.text if cursor.at(TokenType.VAR) else ""
    if cursor.token.token_type in kinds or word.startswith("$"):
        raise cursor.not_supported(
            "a text has no parameters",
            "write the value into it, or register a template and its parameters",
        )
