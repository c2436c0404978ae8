"""What a connection holds: prepared statements, portals, cursors; so many of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

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


@dataclass(slots=True)
class Cursor:
    """Rows that FETCH gives out. form: 0 text, 1 binary."""

    rows: Rows
    form: int
    at: int = 0


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
        held = sum(one.rows.table.nbytes for one in (*self.cursors.values(), cursor))
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
            found = self.cursors.get(commands.fetched(plan.sql)[0])
            return 0 if found is None else found.form
        return 0

    def fetch(self, sql: str) -> Result:
        """Carry out FETCH or MOVE. Raises UnknownCursor, SyntaxRefused."""
        name, count = commands.fetched(sql)
        cursor = self.cursor(name)
        stop = cursor.rows.n if count is None else min(cursor.rows.n, cursor.at + count)
        part = cursor.rows.table.slice(cursor.at, stop - cursor.at)
        sent, cursor.at = stop - cursor.at, stop
        if keyword(sql) == "MOVE":
            return Done(f"MOVE {sent}")
        return Rows(cursor.rows.fields, part, tag="FETCH")

    def forget(self, sql: str, held: dict[str, Any], tag: str) -> Result:
        """Carry out CLOSE or DEALLOCATE. Raises UnknownCursor, SyntaxRefused."""
        name = commands.named(sql)
        if name is None:
            held.clear()
            return Done(f"{tag} ALL")
        if held.pop(name, None) is None:
            raise UnknownCursor(f'"{name}" does not exist')
        return Done(tag)
