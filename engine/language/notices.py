"""What a text says that is allowed, and hardly meant.

A notice refuses nothing: texts that stand go on standing. O(text), and nothing for a text without NULL.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from engine.language.dialect import tokenize
from engine.language.places import Text

_SUSPECT = re.compile(r"[=>]\s*NULL\b|\bNULL\s*[=<!]", re.IGNORECASE)
_EQUALITIES = {TokenType.EQ: "IS NULL", TokenType.NEQ: "IS NOT NULL"}


@dataclass(frozen=True, slots=True)
class Notice:
    """line, column: as of an error."""

    code: str
    message: str
    hint: str
    line: int
    column: int

    def as_dict(self) -> dict[str, str | int]:
        return asdict(self)


def notices(sql: str) -> tuple[Notice, ...]:
    """The notices of a text that was understood.

    >>> [(one.message, one.hint) for one in notices("SELECT a FROM s WHERE b = NULL")]
    [('= NULL is never true: NULL is no value to compare with', 'write IS NULL')]
    """
    if _SUSPECT.search(sql) is None:
        return ()
    text = Text(sql)
    found = []
    for left, right in pairwise(tokenize(text)):
        operator = next((one for one in (left, right) if one.token_type in _EQUALITIES), None)
        other = right if operator is left else left
        if operator is None or other.token_type is not TokenType.VAR or other.text.upper() != "NULL":
            continue
        place = text.of_token(operator)
        message = f"{operator.text} NULL is never true: NULL is no value to compare with"
        hint = f"write {_EQUALITIES[operator.token_type]}"
        found.append(Notice("null_comparison", message, hint, place.line, place.column))
    return tuple(found)
