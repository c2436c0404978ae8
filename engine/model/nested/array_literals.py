"""Arrays as PostgreSQL writes them in text, of one dimension: ``{1,NULL,"a, b"}``.

Source: PostgreSQL's documentation, "Array Input and Output Syntax". Cost: O(characters).
"""

from __future__ import annotations

import re

_SPACE = " \t\n\r\v\f"
"""What is passed over around elements: other spaces are part of them."""
_ELEMENT = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^{}",\\]|\\.)*?))\s*(?:,|\Z)', re.DOTALL | re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def elements_of_text(text: str) -> list[str | None]:
    r"""The texts of the elements. Raises ValueError.

    >>> elements_of_text('{1, NULL,"a, \\"b\\"", null}')
    ['1', None, 'a, "b"', None]
    """
    inner = text.strip(_SPACE)
    if not (inner.startswith("{") and inner.endswith("}")):
        raise ValueError(text)
    inner = inner[1:-1]
    if not inner.strip(_SPACE):
        return []
    found: list[str | None] = []
    at = 0
    while True:
        one = _ELEMENT.match(inner, at)
        if one is None:
            raise ValueError(text)
        if one[1] is None and not one[2]:
            raise ValueError(text)
        is_null = one[1] is None and one[2].upper() == "NULL"
        found.append(None if is_null else _ESCAPE.sub(r"\1", one[2] if one[1] is None else one[1]))
        if one.end() == len(inner) and not one[0].endswith(","):
            return found
        at = one.end()
