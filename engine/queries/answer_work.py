"""How much work an answer is that is worked out whole, from what its expressions are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from engine.language.query import Query
from engine.model.expressions import Expression, calls_user
from engine.stems.residual import NODE_WORK, work

UNMEASURED_ROWS = 8
"""A user's function is taken to be dear for more rows than these: nobody knows what one call takes."""


def expressions_of(query: Query) -> Iterator[Expression]:
    """Yields the expressions of a query and of those below it, each whole. O(size)."""
    yield from _within((query.scan, query.stages))


def _within(part: Any) -> Iterator[Expression]:
    if isinstance(part, Expression):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from _within(one)
    elif is_dataclass(part):
        for one in fields(part):
            yield from _within(getattr(part, one.name))


def row_work(query: Query) -> float:
    """The work of all expressions of a query for a row, in about nanoseconds, and of its columns. O(size)."""
    return sum(map(work, expressions_of(query))) + NODE_WORK * len(query.columns)


def calls_user_anywhere(query: Query) -> bool:
    """Whether a query calls a user's function. O(size)."""
    return any(map(calls_user, expressions_of(query)))
