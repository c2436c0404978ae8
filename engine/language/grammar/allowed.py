"""``WITH (max_fp = 0.02, max_fn = 0.1, max_error = 0.05, weight = 3)`` behind a query: how far its answer may
be from exact where resources are short, and how much it counts beside others.

It stands behind LIMIT and before EMIT, and is said of a whole query alone.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.options import parse_options
from engine.language.grammar.words import EARLIER
from tureen.errors import SyntaxRefused

EXAMPLE = "max_fn = 0.1, weight = 3"


def parse_allowed(cursor: Cursor) -> nodes.AllowedClause | None:
    """What stands behind a query, None where that is no WITH."""
    if cursor.word != "WITH":
        return None
    token = cursor.token
    clause = cursor.node(nodes.AllowedClause(options=parse_options(cursor, EXAMPLE)), token)
    if cursor.word == "WITH" and cursor.peek().token_type is TokenType.L_PAREN:
        raise cursor.refuse(SyntaxRefused, "WITH is given twice", hint="write all options into one")
    if cursor.word in EARLIER:
        raise cursor.refuse(
            SyntaxRefused,
            f"{cursor.word} must come before WITH",
            hint=f"write WITH ({EXAMPLE}) at the end, before EMIT CHANGES",
        )
    return clause
