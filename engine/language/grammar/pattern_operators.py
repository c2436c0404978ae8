"""PostgreSQL's operators for patterns, which are read as functions and as LIKE.

| written                    | read as                                           |
|----------------------------|---------------------------------------------------|
| ``s ~ 'p'``, ``s !~ 'p'``  | ``REGEXP_LIKE(s, '(?s)p')``, NOT of that           |
| ``s ~* 'p'``, ``s !~* 'p'`` | ``REGEXP_LIKE(s, '(?is)p')``, NOT of that          |
| ``s ~~ 'p'``, ``s !~~ 'p'`` | ``s LIKE 'p'``, NOT of that                        |
| ``s ~~* 'p'``, ``s !~~* 'p'`` | ``s ILIKE 'p'``, NOT of that                     |

A dot matches an end of line there, and ^ and $ those of the whole text alone. Where the pattern is NULL
they are NULL, as LIKE is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor

Parse = Callable[[Cursor], exp.Expr]

_OPERATOR = re.compile(r"(!?)(~~?)(\*?)")
_LIKES: dict[str, type[exp.Expr]] = {"": exp.Like, "*": exp.ILike}
_FLAGS = {"": "(?s)", "*": "(?is)"}


def parse_pattern_operator(cursor: Cursor, left: exp.Expr, operand: Parse) -> exp.Expr | None:
    """The test, where the next token begins such an operator; None: it does not. operand: reads a pattern."""
    written = _OPERATOR.match(cursor.text.sql, cursor.token.start)
    if written is None:
        return None
    for _ in written[0]:
        cursor.advance()
    pattern = operand(cursor)
    test: exp.Expr
    if written[2] == "~~" or isinstance(pattern, exp.Null):
        make: Any = _LIKES[written[3]]
        test = cursor.node(make(this=left, expression=pattern), left, left, pattern)
    else:
        if isinstance(pattern, exp.Literal) and pattern.is_string:
            pattern.set("this", _FLAGS[written[3]] + pattern.name)
        elif written[3]:
            raise cursor.not_supported(
                "the pattern of ~* is a text in quotes", "write s ~* 'abc', or REGEXP_LIKE(s, '(?i)abc')"
            )
        call = nodes.Call(name="REGEXP_LIKE", expressions=[left, pattern])
        test = cursor.node(call, left, left, pattern)
    return cursor.node(exp.Not(this=test), left, test) if written[1] else test
