"""What a connection holds: prepared statements, portals, cursors; so many of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

from broker.postgres import commands
from broker.postgres.messages import Field
from broker.postgres.parameters import Value
from broker.postgres.plans import Command, Plan
from broker.postgres.results import Done, Result, Rows
from tureen.errors import LimitExceeded, TureenError
from tureen.statements import keyword

STATEMENTS_MAX, PORTALS_MAX, CURSORS_MAX = 1_000, 100, 100
"""How many one connection may have."""


class UnknownStatement(TureenError):
    """No statement or portal has the name."""

    code = "unknown_statement"


class UnknownCursor(TureenError):
    """No cursor has the name."""

    code = "unknown_cursor"


class DuplicateCursor(TureenError):
    """A cursor has the name already."""

    code = "duplicate_cursor"


class DuplicateStatement(TureenError):
    """A prepared statement has the name already."""

    code = "duplicate_statement"


class TooManyStatements(TureenError):
    """A connection holds more than it may."""

    code = "too_many_statements"


@dataclass(slots=True)
class Prepared:
    """A statement. oids: of its parameters; None: not decided yet. fields: of its rows, once told."""

    sql: str
    plan: Plan
    given: tuple[int, ...]
    oids: tuple[int, ...] | None = None
    fields: tuple[Field, ...] | None = None


@dataclass(slots=True)
class Portal:
    """A statement with values. rows: what it gave, of which ``at`` are sent."""

    statement: Prepared
    values: tuple[Value, ...]
    formats: tuple[int, ...]
    result: Result | None = None
    at: int = 0


class Cursor(Protocol):
    """What FETCH gives out. fields: its columns. form: 0 text, 1 binary. nbytes: what it holds."""

    @property
    def fields(self) -> tuple[Field, ...]: ...

    @property
    def form(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    async def take(self, count: int | None, wait_s: float | None) -> Rows:
        """The next rows, ``count`` at most. wait_s: for how long they are waited for; None: any."""

    def close(self) -> None:
        """Nobody asks it any more."""


@dataclass(slots=True)
class RowsCursor:
    """Rows that are there."""

    rows: Rows
    form: int
    at: int = 0

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.rows.fields

    @property
    def nbytes(self) -> int:
        return int(self.rows.table.nbytes)

    async def take(self, count: int | None, wait_s: float | None) -> Rows:
        """None waits: there are all that will be."""
        stop = self.rows.n if count is None else min(self.rows.n, self.at + count)
        part = self.rows.table.slice(self.at, stop - self.at)
        self.at = stop
        return replace(self.rows, table=part, tag="FETCH")

    def close(self) -> None:
        pass


@dataclass(slots=True)
class Held:
    """By name: the name of a portal or a statement may be empty, each replaces the one before."""

    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)

    def prepare(self, name: str, statement: Prepared) -> None:
        """Keep a statement. Raises DuplicateStatement, TooManyStatements."""
        if name and name in self.statements:
            raise DuplicateStatement(f'prepared statement "{name}" already exists', hint="close it first")
        if len(self.statements) >= STATEMENTS_MAX and name not in self.statements:
            raise TooManyStatements(
                f"a connection has {STATEMENTS_MAX:,} prepared statements at most", hint="DEALLOCATE ALL"
            )
        self.statements[name] = statement

    def bind(self, name: str, portal: Portal) -> None:
        """Keep a portal. Raises TooManyStatements."""
        if len(self.portals) >= PORTALS_MAX and name not in self.portals:
            raise TooManyStatements(f"a connection has {PORTALS_MAX} portals at most", hint="close some")
        self.portals[name] = portal

    def declare(self, name: str, cursor: Cursor, bytes_max: int) -> None:
        """Keep a cursor. Raises LimitExceeded: its rows with those of others fill too much."""
        held = sum(one.nbytes for one in (*self.cursors.values(), cursor))
        if held > bytes_max:
            raise LimitExceeded("snapshot_bytes_max", bytes_max, held)
        self.cursors[name] = cursor

    def require_room(self, name: str) -> None:
        """Raise DuplicateCursor, TooManyStatements where no cursor can have the name."""
        if name in self.cursors:
            raise DuplicateCursor(f'cursor "{name}" already exists', hint=f"CLOSE {name}")
        if len(self.cursors) >= CURSORS_MAX:
            raise TooManyStatements(f"a connection has {CURSORS_MAX} cursors at most", hint="CLOSE ALL")

    def statement(self, name: str) -> Prepared:
        """Raises UnknownStatement."""
        found = self.statements.get(name)
        if found is None:
            raise UnknownStatement(f'prepared statement "{name}" does not exist')
        return found

    def portal(self, name: str) -> Portal:
        """Raises UnknownCursor."""
        found = self.portals.get(name)
        if found is None:
            raise UnknownCursor(f'portal "{name}" does not exist')
        return found

    def cursor(self, name: str) -> Cursor:
        """Raises UnknownCursor."""
        found = self.cursors.get(name)
        if found is None:
            raise UnknownCursor(f'cursor "{name}" does not exist')
        return found

    def cursor_form(self, plan: Plan) -> int:
        """The form in which a cursor's rows are written: 1 of one that is BINARY."""
        if isinstance(plan, Command) and keyword(plan.sql) == "FETCH":
            found = self.cursors.get(commands.fetched(plan.sql).name)
            return 0 if found is None else found.form
        return 0

    async def fetch(self, sql: str) -> Result:
        """Carry out FETCH or MOVE. Raises UnknownCursor, SyntaxRefused, and what its cursor raises."""
        asked = commands.fetched(sql)
        wait_s = None if asked.timeout_ms is None else asked.timeout_ms / 1_000
        rows = await self.cursor(asked.name).take(asked.count, wait_s)
        return Done(f"MOVE {rows.n}") if keyword(sql) == "MOVE" else rows

    def close(self, sql: str) -> Result:
        """Carry out CLOSE. Raises UnknownCursor, SyntaxRefused."""
        name = commands.named(sql)
        if name is None:
            self.close_cursors()
            return Done("CLOSE CURSOR ALL")
        self.cursor(name).close()
        del self.cursors[name]
        return Done("CLOSE CURSOR")

    def close_cursors(self) -> None:
        """Close all of them."""
        for one in self.cursors.values():
            one.close()
        self.cursors.clear()

    def deallocate(self, sql: str) -> Result:
        """Carry out DEALLOCATE. Raises UnknownStatement, SyntaxRefused."""
        name = commands.named(sql)
        if name is None:
            self.statements.clear()
            return Done("DEALLOCATE ALL")
        self.statement(name)
        del self.statements[name]
        return Done("DEALLOCATE")
