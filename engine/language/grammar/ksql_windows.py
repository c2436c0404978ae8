"""Windows of groups as ksqlDB writes them, between FROM and GROUP BY:

WINDOW TUMBLING (SIZE 1 HOUR)                       GROUP BY ..., TUMBLE(INTERVAL '1' HOUR)
WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES)  GROUP BY ..., HOP(INTERVAL '5' MINUTE, INTERVAL '1' HOUR)
WINDOW SESSION (5 MINUTES)                          GROUP BY ..., SESSION(INTERVAL '5' MINUTE)
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.durations import parse_duration
from engine.language.grammar.grouping import KeySet
from tureen.errors import SyntaxRefused

_USAGE = {
    "TUMBLING": "write WINDOW TUMBLING (SIZE 1 HOUR)",
    "HOPPING": "write WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES)",
    "SESSION": "write WINDOW SESSION (5 MINUTES)",
}


def parse_group_window(cursor: Cursor) -> nodes.WindowCall | None:
    """The window that is next, as a key of GROUP BY; None where there is none."""
    if (
        cursor.word != "WINDOW"
        or cursor.word_ahead() not in _USAGE
        or cursor.peek(2).token_type is not TokenType.L_PAREN
    ):
        return None
    token = cursor.advance()
    word = cursor.advance().text.upper()
    cursor.advance()
    usage = _USAGE[word]
    if word != "SESSION":
        cursor.expect_word("SIZE", usage)
    durations: list[exp.Expr] = [parse_duration(cursor)]
    if word == "HOPPING":
        cursor.expect(TokenType.COMMA, "a comma and ADVANCE BY", usage)
        cursor.expect_word("ADVANCE", usage)
        cursor.expect_word("BY", usage)
        durations.insert(0, parse_duration(cursor))
    if cursor.at(TokenType.COMMA) and cursor.word_ahead() in ("RETENTION", "GRACE"):
        cursor.advance()
        written, option = (
            ("RETENTION", "RETAIN") if cursor.word == "RETENTION" else ("GRACE PERIOD", "lateness")
        )
        raise cursor.not_supported(
            f"{written} of a window is not supported", f"it is said of the stream: {option} in CREATE STREAM"
        )
    cursor.expect(TokenType.R_PAREN, ")", usage)
    name = {"TUMBLING": "TUMBLE", "HOPPING": "HOP"}.get(word, word)
    return cursor.node(nodes.WindowCall(name=name, durations=durations), token)


def grouped_by_window(
    cursor: Cursor,
    window: nodes.WindowCall | None,
    group: list[exp.Expr],
    sets: tuple[KeySet, ...] | None,
) -> tuple[list[exp.Expr], tuple[KeySet, ...] | None]:
    """The keys of GROUP BY and its grouping sets with the window among each. Raises SyntaxRefused without
    GROUP BY.
    """
    if window is None:
        return group, sets
    if not group and sets is None:
        raise cursor.text.of_node(window).refuse(
            SyntaxRefused, "WINDOW needs GROUP BY", hint="write GROUP BY and the columns behind it"
        )
    place = len(group)
    return [*group, window], None if sets is None else tuple((*one, place) for one in sets)
