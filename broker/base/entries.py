"""What the worker knows of each query, each stream and each view, standing or not.

Written by the event loop alone, from outcomes; readers on the loop need no lock. The rows, NOW and answers
of what stands are in the shards' views.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.base.internal import Outcome, State
from broker.base.options import merged, query_name
from engine.model.source import Derived, Stream
from engine.model.summary import SummaryDefinition
from topics.wording import Values, Wording, said
from tureen.errors import BeingPrepared, BeingRegistered, BeingRemoved, UnknownSource, UnknownSummary

ON_ITS_WAY = (BeingPrepared.code, BeingRegistered.code, BeingRemoved.code)
"""Codes of what a query waits for that needs nothing from outside."""


@dataclass(slots=True)
class QueryEntry:
    """A registration and what became of it. error: why it does not run, or what it waits for; of one that
    runs, why it was not changed. shard: where it stands, None while it does not. sources: the
    streams and tables that it reads. uses: the views that its text names. parameters: of the placeholders in
    ``sql``, where it is a template. output: where its changes go, if it emits them. summaries: those that its
    preference uses; where one was dropped, it is PENDING and stands all the same, with the answer it has.
    tried: the shard that works it out, or would not try it again; None while none does. coming: what it is to
    be, while a change of it is on its way or waits for what it needs.
    """

    sql: str | None
    state: State
    error: dict[str, Any] | None = None
    shard: int | None = None
    sources: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    parameters: Values | None = None
    output: dict[str, Any] | None = None
    summaries: tuple[str, ...] = ()
    tried: int | None = None
    coming: QueryEntry | None = None

    @property
    def query_name(self) -> str | None:
        """What it is called; None: it has its id alone."""
        return query_name(self.options) if self.options else None

    @property
    def newest(self) -> QueryEntry:
        """As it was changed last: what further changes build on."""
        return self if self.coming is None else self.coming

    def comes(self, wording: Wording, options: Mapping[str, Any]) -> None:
        """A change to this was written, and is not known to be carried out."""
        self.coming = QueryEntry(wording.sql, self.state, options=options, parameters=wording.parameters)

    @property
    def holds_sources(self) -> bool:
        """Whether its sources cannot be dropped without it: it stands, or is worked out before it does."""
        return self.shard is not None or (self.state == "PENDING" and self.tried is not None)

    @property
    def waits(self) -> bool:
        """Whether it is to come, to change or to go as soon as something is made, or carried out."""
        return (self.error or {}).get("code") in ON_ITS_WAY

    @property
    def is_leaving(self) -> bool:
        """Whether it was removed, and stands until its end can be told."""
        return self.shard is not None and (self.error or {}).get("code") == BeingRemoved.code

    @property
    def wording(self) -> Wording:
        """Its text with its parameters; it has one."""
        assert self.sql is not None
        return Wording(self.sql, self.parameters)

    @property
    def said(self) -> str | None:
        """Equal for equal texts and parameters; None where there is no text."""
        return None if self.sql is None else said(self.sql, self.parameters)

    def is_tried_on(self, shard: int, again: QueryEntry) -> bool:
        """Whether a query that does not stand is worked out, or was refused, by a shard, and what is said
        again of it is the same.
        """
        return self.tried == shard and self.said == again.said

    def record(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The value that publishes it again, as it was changed last, with some options changed; None: to the
        default.
        """
        newest = self.newest
        return newest.wording.fields() | {"options": merged(newest.options, changes)}

    def outcome(self, position: str | None = None) -> Outcome:
        return {"state": self.state, "error": self.error, "position": position}


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A stream or a table that stands; shard: its home."""

    stream: Stream
    sql: str
    shard: int


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """A view, or a stream derived from a query, that stands.

    sources: the streams and tables that it selects from in the end. uses: the views on the way there.
    """

    derived: Derived
    shard: int
    sources: tuple[str, ...]
    uses: tuple[str, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """All that it depends on."""
        return (*self.sources, *self.uses)

    @property
    def sql(self) -> str:
        """A statement that makes it."""
        name = str(self.derived.name)
        if not re.fullmatch(r"[a-z_][a-z0-9_]*", name):
            name = '"' + name.replace('"', '""') + '"'
        return f"CREATE {self.derived.kind.upper()} {name} AS {self.derived.sql}"


_MISSING = (UnknownSource.code, UnknownSummary.code)
"""Codes of what may still come."""


@dataclass(frozen=True, slots=True)
class SummaryEntry:
    """A summary that stands; shard: the home of its stream."""

    definition: SummaryDefinition
    sql: str
    shard: int


@dataclass(slots=True)
class WaitingView:
    """A view or a summary that cannot stand yet: a stream is missing, or was of another kind when it came."""

    sql: str
    error: dict[str, Any]

    @property
    def state(self) -> State:
        return "PENDING" if self.error.get("code") in _MISSING else "ERROR"
