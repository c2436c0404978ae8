"""LIKE and ILIKE of several patterns, read as one LIKE for each, with OR or AND.

| written                               | read as                                    |
|---------------------------------------|--------------------------------------------|
| ``s LIKE ANY ('a%', 'b%')``           | ``s LIKE 'a%' OR s LIKE 'b%'``             |
| ``s LIKE ALL (ARRAY['a%', '%b'])``    | ``s LIKE 'a%' AND s LIKE '%b'``            |
| ``s NOT LIKE ANY (...)``, ``ALL``     | as these, of ``s NOT LIKE``                |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from engine.language.grammar import nodes
from engine.language.grammar.cursor import Cursor
from engine.language.grammar.operators import balanced
from engine.language.grammar.subqueries import starts_query
from tureen.errors import SyntaxRefused

JOINED = {"ANY": "OR", "SOME": "OR", "ALL": "AND"}
"""What stands between the tests, by quantifier."""
_MAKES: dict[str, Callable[..., Any]] = {"LIKE": exp.Like, "ILIKE": exp.ILike}


def starts_like_any(cursor: Cursor, word: str) -> bool:
    """Whether patterns come next. word: the operator, which is behind."""
    return word in _MAKES and cursor.word in JOINED


def parse_like_any(
    cursor: Cursor, left: exp.Expr, word: str, negated: bool, expression: Callable[[Cursor], exp.Expr]
) -> exp.Expr:
    """The tests; the quantifier is next. word: LIKE or ILIKE. Raises NotSupported of a subquery."""
    token = cursor.advance()
    quantifier = token.text.upper()
    cursor.expect(TokenType.L_PAREN, f"( after {quantifier}", f"write s {word} {quantifier} ('a%', 'b%')")
    if starts_query(cursor):
        raise cursor.not_supported(
            f"{word} {quantifier} of a subquery is not supported",
            "patterns are texts in quotes: write those that are meant",
            token,
        )
    with cursor.nested():
        patterns = cursor.listed(lambda: expression(cursor))
        cursor.expect(TokenType.R_PAREN, ") or a comma")
    if cursor.word == "ESCAPE":
        raise cursor.not_supported(
            f"ESCAPE of {word} {quantifier} is not supported",
            f"write s {word} 'a!%' ESCAPE '!' for each pattern, with {JOINED[quantifier]} between them",
        )
    first = patterns[0]
    if len(patterns) == 1 and isinstance(first, nodes.Call) and first.args["name"] == "ARRAY":
        patterns = first.args["expressions"]
        if not patterns:
            raise cursor.text.of_node(first).refuse(
                SyntaxRefused, "there are no patterns", hint="write at least one"
            )
    tests: list[exp.Expr] = []
    for pattern in patterns:
        test: exp.Expr = cursor.node(_MAKES[word](this=left.copy(), expression=pattern), left, left, pattern)
        tests.append(cursor.node(exp.Not(this=test), left, test) if negated else test)
    return balanced(cursor, exp.And if quantifier == "ALL" else exp.Or, tests)
