"""CREATE STREAM | TABLE ... FROM TOPIC, whose columns are inferred from the topic's records."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.options import parse_options
from engine.language.grammar.scalar import string
from tureen.errors import SyntaxRefused


def parse_from_topic(
    cursor: Cursor, token: Token, what: str, name: exp.Identifier, if_not_exists: bool
) -> nodes.CreateFromTopicNode:
    """``FROM TOPIC 'name' [WITH (options)] [RETAIN duration]``; the next token is FROM."""
    usage = f"write CREATE {what} name FROM TOPIC 'topic'"
    cursor.advance()
    cursor.expect_word("TOPIC", usage)
    if not cursor.at(TokenType.STRING):
        raise cursor.refuse(SyntaxRefused, "the topic's name stands in single quotes", hint=usage)
    topic = string(cursor)
    options: list[nodes.OptionSetting] = []
    retain = None
    while True:
        if cursor.word == "WITH" and not options:
            options = parse_options(cursor, "timestamp = 'column'")
        elif cursor.word == "RETAIN" and retain is None:
            cursor.advance()
            retain = parse_duration(cursor)
        else:
            break
    node = nodes.CreateFromTopicNode(
        this=name, what=what, topic=topic, options=options, retain=retain, if_not_exists=if_not_exists
    )
    return cursor.node(node, token)
