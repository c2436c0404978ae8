"""``CONSTRAINT kind (columns) ...`` behind the columns of CREATE STREAM."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.places import near
from tureen.errors import SyntaxRefused

FORMS = {
    "ORDERED": "CONSTRAINT ORDERED (column) WITHIN 5 ROWS",
    "CLUSTERED": "CONSTRAINT CLUSTERED (column) WITHIN 5 ROWS",
    "UNIQUE": "CONSTRAINT UNIQUE (column)",
    "MANY": "CONSTRAINT MANY ONE (column) TO stream (column)",
    "REFERENCES": "CONSTRAINT REFERENCES (column) TO stream (column) WITHIN 5 ROWS",
}
"""What each kind looks like, by its first word."""

_DIGITS_MAX = 18


def starts_constraint(cursor: Cursor) -> bool:
    """Whether a clause is next: CONSTRAINT, a word that is no type, and a bracket or another word. A column
    may be named so.
    """
    if cursor.word != "CONSTRAINT":
        return False
    ahead = cursor.word_ahead()
    return ahead in FORMS or ahead in ("PRIMARY", "FOREIGN", "CHECK") or cursor.word_ahead(2) in FORMS


def parse_constraint(cursor: Cursor, what: str) -> nodes.ConstraintNode:
    """One clause; the next token is CONSTRAINT. what: STREAM or TABLE."""
    token = cursor.advance()
    if what == "TABLE":
        raise cursor.not_supported(
            "constraints are for streams only", "leave it out: a table has one row for each key", token
        )
    kind = cursor.word
    form = FORMS.get(kind)
    if form is None:
        if cursor.word_ahead() in FORMS:
            raise cursor.not_supported("a constraint has no name", f"write {FORMS[cursor.word_ahead()]}")
        hint = near(kind, FORMS) or "there are ORDERED, CLUSTERED, UNIQUE, MANY ONE and REFERENCES"
        raise cursor.not_supported(f"CONSTRAINT {kind} is not supported", hint)
    hint = f"write {form}"
    cursor.advance()
    if kind == "MANY":
        cursor.expect_word("ONE", hint)
    columns = _columns(cursor, hint)
    target = target_columns = None
    if kind in ("MANY", "REFERENCES"):
        cursor.expect_word("TO", hint)
        target = cursor.name("the name of the other stream")
        target_columns = _columns(cursor, hint)
    rows = duration = None
    if cursor.word == "WITHIN":
        if kind in ("MANY", "UNIQUE"):
            raise cursor.not_supported(f"WITHIN is not for {kind}", f"leave it out: {form}")
        cursor.advance()
        rows, duration = _within(cursor, kind, hint)
    node = nodes.ConstraintNode(
        kind=kind, columns=columns, target=target, target_columns=target_columns, rows=rows, duration=duration
    )
    return cursor.node(node, token)


def _columns(cursor: Cursor, hint: str) -> list[exp.Identifier]:
    cursor.expect(TokenType.L_PAREN, "( and the columns", hint)
    names = cursor.listed(lambda: cursor.name("a column's name"))
    cursor.expect(TokenType.R_PAREN, ") or a comma", hint)
    return names


def _within(cursor: Cursor, kind: str, hint: str) -> tuple[nodes.RowCountNode | None, nodes.Duration | None]:
    """Parse what stands behind WITHIN: a number of rows, or a duration."""
    if cursor.at(TokenType.DASH):
        raise cursor.refuse(SyntaxRefused, "WITHIN counts from 0, which is strict", hint=hint)
    token = cursor.token
    if cursor.at(TokenType.NUMBER) and cursor.word_ahead() in ("ROWS", "ROW"):
        cursor.advance()
        cursor.advance()
        if not token.text.isdecimal() or not token.text.isascii() or len(token.text) > _DIGITS_MAX:
            raise cursor.text.of_token(token).refuse(
                SyntaxRefused, "this is not a number of rows", hint="write a whole number: WITHIN 5 ROWS"
            )
        return cursor.node(nodes.RowCountNode(this=int(token.text)), token), None
    if kind != "REFERENCES":
        raise cursor.expected("a number and ROWS", hint)
    return None, parse_duration(cursor)
