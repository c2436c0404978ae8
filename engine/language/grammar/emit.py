"""What a text says of changes of its answer: which leave it, and where to.

    query EMIT CHANGES [INTO name] [ON WINDOW CLOSE] [WITH (options)]
    query EMIT ON WINDOW CLOSE, query EMIT FINAL         the same, ON WINDOW CLOSE
    ISTREAM (query), SELECT ISTREAM(outputs) FROM ...    also DSTREAM, RSTREAM

EMIT is said of a whole query alone, a stream operator also of one in FROM or WITH, or that a view or a
stream is defined by. They are read wherever a query stands, and refused by what reads queries inside of
others (:func:`refuse_changes`).
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.options import parse_options
from engine.language.grammar.words import EARLIER
from tureen.errors import NotSupported, QueryError, SyntaxRefused

OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")

_USAGE = "write EMIT CHANGES [INTO name] [ON WINDOW CLOSE] [WITH (format = 'upsert')] at the end of the query"
_OTHER_SYSTEMS = {
    "STREAM": "write EMIT CHANGES",
    "CHANGE": "write EMIT CHANGES",
    "CHANGELOG": "write EMIT CHANGES",
    "UPDATES": "write EMIT CHANGES",
    "AFTER": "write EMIT CHANGES ON WINDOW CLOSE",
}
"""What may follow EMIT elsewhere -> what to write instead."""

_LIMIT_HINT = (
    "write LIMIT before EMIT CHANGES: it bounds the answer; how many changes are read is up to whoever "
    "follows them"
)


def starts_operator(cursor: Cursor) -> bool:
    """Whether ``ISTREAM (`` or one of its kind is next. Raises SyntaxRefused for one without brackets."""
    if cursor.word not in OPERATORS:
        return False
    following = cursor.peek().token_type
    if following is TokenType.STAR and cursor.word_ahead(2) == "FROM":
        word = cursor.word
        cursor.advance()
        raise cursor.expected("( and all columns", f"write SELECT {word}(*) FROM ...")
    return following is TokenType.L_PAREN


def parse_operator(cursor: Cursor) -> nodes.StreamOperatorWord:
    """The operator, which is next, and the bracket behind it."""
    token = cursor.advance()
    word = token.text.upper()
    cursor.expect(TokenType.L_PAREN, "( and a query", f"write {word} (SELECT ...)")
    return cursor.node(nodes.StreamOperatorWord(this=word), token)


def parse_emit(cursor: Cursor) -> nodes.EmitClause | None:
    """What stands behind a query, None where that is no EMIT."""
    if cursor.word != "EMIT":
        return None
    token = cursor.advance()
    clause = nodes.EmitClause(into=None, on_close=None, options=[])
    if cursor.word == "FINAL":
        clause.set("on_close", cursor.node(nodes.OnWindowClose(), cursor.advance()))
    elif not cursor.take_words("CHANGES") and not _starts_close(cursor):
        raise _no_changes(cursor)
    while True:
        word = cursor.word
        if word == "INTO":
            _check_once(cursor, clause.args["into"] is not None)
            cursor.advance()
            clause.set("into", _topic(cursor))
        elif word == "ON" or (word == "EMIT" and cursor.word_ahead() == "ON"):
            _check_once(cursor, clause.args["on_close"] is not None)
            clause.set("on_close", _on_close(cursor))
        elif word == "WITH" and cursor.word_ahead() == "PREFERENCE":
            raise cursor.refuse(
                SyntaxRefused,
                "WITH PREFERENCE must come before EMIT CHANGES",
                hint="write SELECT ... WITH PREFERENCE desc ... EMIT CHANGES",
            )
        elif word == "WITH":
            _check_once(cursor, bool(clause.args["options"]))
            clause.set("options", parse_options(cursor, "format = 'upsert'"))
        else:
            break
    if cursor.word in EARLIER:
        raise cursor.refuse(
            SyntaxRefused,
            f"{cursor.word} must come before EMIT CHANGES",
            hint=_LIMIT_HINT if cursor.word == "LIMIT" else "write EMIT CHANGES at the end",
        )
    if cursor.word == "EMIT":
        raise cursor.refuse(SyntaxRefused, "EMIT is given twice", hint="leave one of them out")
    return cursor.node(clause, token)


def _no_changes(cursor: Cursor) -> QueryError:
    word = cursor.word
    if word in _OTHER_SYSTEMS:
        return cursor.not_supported(f"EMIT {word} is not supported", _OTHER_SYSTEMS[word])
    return cursor.expected("CHANGES after EMIT", _USAGE)


def _starts_close(cursor: Cursor) -> bool:
    return cursor.word == "ON" and cursor.word_ahead() == "WINDOW"


def _on_close(cursor: Cursor) -> nodes.OnWindowClose:
    """``[EMIT] ON WINDOW CLOSE``."""
    cursor.take_words("EMIT")
    token = cursor.advance()
    if not cursor.take_words("WINDOW", "CLOSE"):
        raise cursor.expected("WINDOW CLOSE after ON", "write EMIT CHANGES ON WINDOW CLOSE")
    return cursor.node(nodes.OnWindowClose(), token)


def _topic(cursor: Cursor) -> exp.Identifier:
    if cursor.at(TokenType.STRING):
        raise cursor.expected(
            "a name after INTO", "write INTO name; put the name in double quotes if it contains -"
        )
    name = cursor.name("a name after INTO")
    if cursor.at(TokenType.DOT):
        raise cursor.not_supported(
            "the name after INTO has one part",
            "leave out the part before the dot; the topic is that of the service's results, with this name",
        )
    if cursor.at(TokenType.DASH):
        raise cursor.expected("the end of the name", "write a name with - in it in double quotes")
    return name


def _check_once(cursor: Cursor, again: bool) -> None:
    if again:
        word = "ON WINDOW CLOSE" if cursor.word in ("ON", "EMIT") else cursor.word
        raise cursor.refuse(SyntaxRefused, f"{word} is given twice", hint="leave one of them out")


def refuse_changes(cursor: Cursor, query: exp.Expr, what: str, hint: str, *, is_stream: bool = False) -> None:
    """Raise NotSupported where a query that is part of something else says what becomes of its changes, or
    what its answer allows.

    what: of what it is part. hint: what to write instead, with {} for what it says. is_stream: a stream may
    stand there, so that a stream operator is none of it.
    """
    for name, word in (
        ("operator", ""),
        ("preference", "WITH PREFERENCE"),
        ("allowed", "WITH (...)"),
        ("emit", "EMIT CHANGES"),
    ):
        node = query.args.get(name)
        if node is None or (name == "operator" and is_stream):
            continue
        where = "in a query that is registered" if word else "around a query that is registered, or in FROM"
        said = word or str(node.this)
        raise cursor.text.of_node(node).refuse(
            NotSupported,
            f"{said} is allowed only {where}, this is {what}",
            hint=hint.format(said),
        )
