"""What the broker tells about queries, sources and failures, as typed values.

Every value keeps the message it was made from in ``facts``, so that what a newer broker adds is not lost.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tureen.approximation import Approximation, approximations_of
from tureen.catching_up import CatchingUp, catching_up_of
from tureen.errors import TureenError

FACTS_KEY = "facts"
"""An error may carry the facts of its class (``name``, ``limit``, ``allowed``, ...) beside its text."""


def _classes(root: type[TureenError]) -> Iterator[type[TureenError]]:
    yield root
    for child in root.__subclasses__():
        yield from _classes(child)


def error_from(message: Mapping[str, Any]) -> TureenError:
    """The exception that an error message stands for; a code nobody knows gives the root class.

    Facts that the message does not carry are attributes as well, with the value None.

    >>> error_from({"code": "unknown_query", "message": "there is no query with this handle"})
    UnknownQuery('there is no query with this handle')
    >>> error_from({"code": "unknown_column", "message": "no 'x'", "line": 1, "column": 8}).column
    8
    """
    by_code = {kind.code: kind for kind in _classes(TureenError) if "code" in vars(kind)}
    kind = by_code.get(str(message.get("code")), TureenError)
    error = kind.__new__(kind)
    carried = message.get(FACTS_KEY) or {}
    for name, parameter in inspect.signature(kind.__init__).parameters.items():
        if name != "self" and parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            setattr(error, name, carried.get(name))
    TureenError.__init__(
        error,
        str(message.get("message") or "the broker gave no reason"),
        hint=message.get("hint"),
        line=message.get("line"),
        column=message.get("column"),
    )
    if "code" in message:
        vars(error)["code"] = str(message["code"])
    return error


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """A standing query as the broker lists it; no list holds handles.

    state: PENDING (a source is missing), RUNNING, PAUSED or ERROR, with ``error`` then. approximation: what
    of its answer is not exact; empty: it is exact. catching_up: of its sources those that have not read yet
    what their topics held; told of one query, not in lists. condition_errors: rows whose condition could not
    be computed, which its answer lacks.
    """

    query_id: str
    state: str
    sql: str | None = None
    sources: tuple[str, ...] = ()
    error: TureenError | None = None
    approximation: tuple[Approximation, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    catching_up: tuple[CatchingUp, ...] = ()
    condition_errors: int = 0

    @property
    def name(self) -> str | None:
        """What it is called; None: it has its id alone."""
        name = self.facts.get("name")
        return None if name is None else str(name)

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> QueryStatus:
        error = message.get("error")
        return cls(
            query_id=str(message.get("query_id", "")),
            state=str(message.get("state", "RUNNING")),
            sql=message.get("sql"),
            sources=tuple(message.get("sources") or ()),
            error=error_from(error) if error else None,
            approximation=approximations_of(message.get("approximation")),
            catching_up=catching_up_of(message.get("catching_up")),
            condition_errors=int(message.get("predicate_errors") or 0),
            facts={key: value for key, value in message.items() if key != "handle"},
        )


@dataclass(frozen=True, slots=True)
class Source:
    """A stream or a table as the broker lists it: NOW, since when it is retained, rows entered, waiting,
    late, refused, and records that gave no row.

    A view has no rows of its own; what it is, and over what, is in ``facts``: kind, reads.
    """

    name: str
    sql: str | None = None
    now_ms: int | None = None
    retained_from_ms: int | None = None
    rows: int | None = None
    pending: int | None = None
    late: int | None = None
    rejected: int | None = None
    dead_letters: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> Source:
        return cls(
            name=str(message.get("name", "")),
            sql=message.get("sql"),
            now_ms=message.get("now_ms"),
            retained_from_ms=message.get("retained_from_ms"),
            rows=message.get("rows"),
            pending=message.get("pending"),
            late=message.get("late"),
            rejected=message.get("rejected"),
            dead_letters=message.get("dead_letters"),
            facts=dict(message),
        )
