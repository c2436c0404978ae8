"""What a text says that is allowed, and hardly meant.

A notice refuses nothing: texts that stand go on standing. O(text), and nothing for a text without NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import TokenType

from engine.language.dialect import tokenize
from engine.language.places import Place, Text
from engine.language.query import Scan
from engine.language.render import render_span
from engine.model.source import SourceName
from engine.windows.assignment import Hop

_SUSPECT = re.compile(r"[=>]\s*NULL\b|\bNULL\s*[=<!]", re.IGNORECASE)
_WINDOWS = re.compile(r"\b(TUMBLE|HOP)\b", re.IGNORECASE)
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


def has_windows(sql: str) -> bool:
    """Whether a text may have windows that :func:`of_windows` speaks of. O(text)."""
    return _WINDOWS.search(sql) is not None


def of_windows(sql: str, scans: Iterable[Scan], retained_ms: Mapping[SourceName, int]) -> tuple[Notice, ...]:
    """Notices of windows of TUMBLE and HOP that are longer than what their stream retains: none of them can
    close over what is there.

    sql: the text of these scans. retained_ms: RETAIN by stream. O(text) where there is such a window.
    """
    found: dict[str, Notice] = {}
    for scan in scans:
        retained = retained_ms.get(scan.source)
        if not isinstance(scan.assignment, Hop) or retained is None or scan.assignment.size_ms <= retained:
            continue
        size, held = render_span(scan.assignment.size_ms), render_span(retained)
        place = _of_function(Text(sql))
        message = (
            f"windows of {size} are longer than the {held} that {scan.source} retains: one is in the answer "
            "once it closes, so there is none until as much has come"
        )
        hint = f"a stream with RETAIN {size}, or shorter windows, gives some from what is there"
        found[scan.source] = Notice("window_beyond_retention", message, hint, place.line, place.column)
    return tuple(found.values())


def _of_function(text: Text) -> Place:
    """Where a text names TUMBLE or HOP first, else its beginning: a view may."""
    named = (one for one in tokenize(text) if one.text.upper() in ("TUMBLE", "HOP"))
    return next((text.of_token(one) for one in named), text.at(0))


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
