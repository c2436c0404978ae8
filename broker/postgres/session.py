"""One connection's conversation after it is let in: simple and extended queries, portals, cursors, errors.

What is answered at once is written while its message is handled; what has to wait is given back to the
connection as a coroutine, and the next message is handled when that is done. An error ends its group of
messages: those until the next Sync are passed over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, NoReturn

from broker.base import logs
from broker.postgres import commands, messages, results
from broker.postgres.answering import Answering, Services
from broker.postgres.commands import Told, Transaction
from broker.postgres.errors import Canceled, TransactionFailed, fields_of, notice_of
from broker.postgres.held import Cursor, Held, Portal, Prepared, RowsCursor
from broker.postgres.messages import Field, Message, ProtocolViolation
from broker.postgres.parameters import Value, decoded
from broker.postgres.plans import (
    SHORT_TEXT,
    Carried,
    Command,
    Copied,
    Nothing,
    Plan,
    Subscribed,
    asked_of,
    known_plan_of,
    subscribed_of,
)
from broker.postgres.results import Done, Result, Rows
from broker.postgres.sending import FEW_ROWS, Out, Sender, each
from broker.postgres.settings import SessionSettings
from engine.model.defects import refusal_of
from tureen.errors import InternalError, LimitExceeded, NotSupported, TureenError
from tureen.statements import keyword, placed

log = logs.get()


class Session:
    """Handles messages."""

    def __init__(self, services: Services, answering: Answering, out: Out, settings: SessionSettings) -> None:
        self._services = services
        self._answering = answering
        self._out = out
        self._settings = settings
        self._transaction = Transaction(reads_only=settings.reads_only)
        self._held = Held()
        self._sender = Sender(out, services.snapshots.pool)
        self._skipping = False
        """Whether messages are passed over until Sync."""
        self.canceled = False
        """Whether the client asked to cancel what is being answered, whose task is cancelled for it."""

    # --- messages ---------------------------------------------------------------------------------

    def handle(self, message: Message) -> Coroutine[Any, Any, None] | None:
        """Handle a message; what has to wait. Raises ProtocolViolation."""
        match message:
            case messages.Sync():
                self._skipping = False
                if self._transaction.status == "I":
                    self._held.portals.clear()
                self._sender.ready(self._transaction.status)
                return None
            case messages.Simple(sql):
                return None if self._simple_at_once(sql) else self._simple(sql)
            case messages.Flush():
                self._out.flush()
                return None
            case messages.Copied():
                return None
            case messages.Password() | messages.Terminate():
                raise ProtocolViolation("this message is not for here")
        if self._skipping:
            return None
        try:
            return self._extended(message)
        except Exception as failed:  # noqa: BLE001
            self._fail_extended(failed, "")
            return None

    def refuse(self, error: TureenError, letter: bytes) -> None:
        """Tell that a message cannot be understood, and go on."""
        self._fail(error, "")
        if letter == b"Q":
            self._sender.ready(self._transaction.status)
        else:
            self._skipping = True

    def _extended(self, message: Message) -> Coroutine[Any, Any, None] | None:
        match message:
            case messages.Parse(name, sql, given):
                if len(sql) > SHORT_TEXT:
                    return self._guarded(self._parse(name, sql, given), sql)
                self._prepare(name, sql, given, self._planned(sql))
            case messages.Bind():
                self._bind(message)
            case messages.Describe(kind, name):
                described = self._described_at_once(kind, name)
                if not described:
                    of = self._held.statement(name) if kind == "S" else self._held.portal(name).statement
                    return self._guarded(self._describe(kind, name), of.sql)
            case messages.Execute(name, rows_max):
                portal = self._held.portal(name)
                if not self._execute_at_once(portal, rows_max):
                    return self._guarded(self._execute(portal, rows_max), portal.statement.sql)
            case messages.Close(kind, name):
                (self._held.statements if kind == "S" else self._held.portals).pop(name, None)
                self._out.write(messages.CLOSED)
        return None

    # --- simple queries ---------------------------------------------------------------------------

    def _simple_at_once(self, sql: str) -> bool:
        """Answer one statement that takes nothing; False: it is to be waited for."""
        if len(sql) > SHORT_TEXT or ";" in sql.rstrip("; \n\t"):
            return False
        try:
            plan = self._planned(sql)
            self._require_possible(plan, sql)
            rows = self._answering.at_once(plan, FEW_ROWS)
            if rows is None:
                return False
            self._sender.described(rows.in_digits(self._settings.float_digits))
        except TureenError:
            return False  # it fails the other way as well, which tells where
        self._sender.ready(self._transaction.status)
        return True

    async def _simple(self, sql: str) -> None:
        at = 0
        try:
            found = placed(sql)
            if not found:
                self._out.write(messages.EMPTY)
            for one in found:
                at = one.offset
                plan = await self._plan(one.sql)
                self._require_possible(plan, one.sql)
                await self._answer_simple(plan, one.sql)
        except (Exception, asyncio.CancelledError) as failed:  # noqa: BLE001
            text = sql[at:]
            self._fail(self._refusal(failed), text, at)
        self._sender.ready(self._transaction.status)

    async def _answer_simple(self, plan: Plan, sql: str) -> None:
        if isinstance(plan, Nothing):
            self._out.write(messages.EMPTY)
            return
        if (subscribed := _subscribed(plan)) is not None:
            fields = await self._answering.fields(subscribed, ())
            assert fields is not None
            if plan is subscribed:
                self._out.write(messages.row_description(fields, [0] * len(fields)))
            await self._follow(plan, subscribed, (), ())
        form = self._held.cursor_form(plan)
        result = await self._result(plan, ())
        if isinstance(plan, Copied) and isinstance(result, Rows):
            await self._sender.copy(result, plan)
        elif isinstance(result, Rows):
            formats = [form] * len(result.fields)
            self._out.write(messages.row_description(result.fields, formats))
            await self._sender.rows(result, formats, 0, result.n)
            self._sender.complete(result, result.n)
        else:
            self._sender.complete(result, 0)

    # --- extended queries -------------------------------------------------------------------------

    async def _parse(self, name: str, sql: str, given: tuple[int, ...]) -> None:
        self._prepare(name, sql, given, await self._plan(sql))

    def _prepare(self, name: str, sql: str, given: tuple[int, ...], plan: Plan) -> None:
        self._require_possible(plan, sql)
        if len(placed(sql)) > 1:
            raise NotSupported(
                "cannot insert multiple commands into a prepared statement", hint="send them one by one"
            )
        self._held.prepare(name, Prepared(sql, plan, given))
        self._out.write(messages.PARSED)

    def _bind(self, message: messages.Bind) -> None:
        statement = self._held.statement(message.statement)
        self._require_possible(statement.plan, statement.sql)
        oids = self._oids(statement, len(message.values))
        if len(oids) != len(message.values):
            raise ProtocolViolation(f"{len(message.values)} values are given for {len(oids)} parameters")
        values = decoded(message.values, oids, message.formats)
        self._held.bind(message.portal, Portal(statement, values, message.result_formats))
        self._out.write(messages.BOUND)

    def _oids(self, statement: Prepared, count: int = 0) -> tuple[int, ...]:
        if statement.oids is None or len(statement.oids) < count:
            statement.oids = self._answering.parameter_types(statement.plan, statement.given, count)
        return statement.oids

    def _described_at_once(self, kind: str, name: str) -> bool:
        """Describe what is known; False: it is to be waited for."""
        cursor = self._held.cursors.get(name) if kind == "P" and name not in self._held.portals else None
        if cursor is not None:  # a cursor is a portal, to who describes one
            fields = cursor.fields
            self._out.write(messages.row_description(fields, [cursor.form] * len(fields)))
            return True
        statement = self._held.statement(name) if kind == "S" else self._held.portal(name).statement
        if statement.fields is None or (kind == "P" and self._held.portal(name).result is not None):
            return False
        if kind == "S":
            self._out.write(messages.parameter_types(self._oids(statement)))
        formats = (0,) if kind == "S" else self._held.portal(name).formats
        self._out.write(messages.row_description(statement.fields, each(formats, len(statement.fields))))
        return True

    async def _describe(self, kind: str, name: str) -> None:
        portal = self._held.portal(name) if kind == "P" else None
        statement = self._held.statement(name) if portal is None else portal.statement
        plan = statement.plan
        oids = self._oids(statement)
        fields: tuple[Field, ...] | None = None
        if isinstance(plan, Command):
            fields = await self._command_fields(plan, portal)
        elif isinstance(plan, Carried) and plan.reads:
            result = await self._result(plan, () if portal is None else portal.values)
            if portal is not None:
                portal.result = result
            fields = result.fields if isinstance(result, Rows) else None
        else:
            fields = await self._answering.fields(plan, oids)
            statement.fields = fields
        if kind == "S":
            self._out.write(messages.parameter_types(oids))
        if fields is None:
            self._out.write(messages.NO_DATA)
            return
        formats = (0,) if portal is None else portal.formats
        self._out.write(messages.row_description(fields, each(formats, len(fields))))

    async def _command_fields(self, plan: Command, portal: Portal | None) -> tuple[Field, ...] | None:
        word = keyword(plan.sql)
        if word == "FETCH":
            return self._held.cursor(commands.fetched(plan.sql).name).fields
        if word != "SHOW":
            return None
        result = await self._command(plan.sql)
        if portal is not None:
            portal.result = result
        return result.fields if isinstance(result, Rows) else None

    def _execute_at_once(self, portal: Portal, rows_max: int) -> bool:
        if portal.result is not None or rows_max > 0:
            return False
        self._require_possible(portal.statement.plan, portal.statement.sql)
        rows = self._answering.at_once(portal.statement.plan, FEW_ROWS)
        if rows is None:
            return False
        rows = self._as_told(rows.in_digits(self._settings.float_digits), portal.statement)
        if rows.n:
            formats = each(portal.formats, len(rows.fields))
            self._out.write(results.messages_of(rows, formats, 0, rows.n))
        portal.result, portal.at = rows, rows.n
        self._sender.complete(rows, rows.n)
        return True

    async def _execute(self, portal: Portal, rows_max: int) -> None:
        statement = portal.statement
        self._require_possible(statement.plan, statement.sql)
        if isinstance(statement.plan, Nothing):
            self._out.write(messages.EMPTY)
            return
        if (subscribed := _subscribed(statement.plan)) is not None:
            if rows_max > 0:
                raise NotSupported(
                    "changes are not taken from a portal some at a time",
                    hint="DECLARE c CURSOR FOR SUBSCRIBE ..., and FETCH 100 FROM c",
                )
            await self._follow(statement.plan, subscribed, portal.values, portal.formats)
        first = portal.result is None
        if portal.result is None:
            portal.result = await self._result(statement.plan, portal.values)
        result = portal.result
        if isinstance(result, Done):
            self._sender.complete(result, 0)
            return
        if isinstance(statement.plan, Copied):
            await self._sender.copy(result, statement.plan)
            return
        if first:
            result = portal.result = self._as_told(result, statement)
        stop = min(result.n, portal.at + rows_max) if rows_max > 0 else result.n
        sent = stop - portal.at
        await self._sender.rows(result, each(portal.formats, len(result.fields)), portal.at, stop)
        portal.at = stop
        if rows_max > 0 and stop < result.n:
            self._out.write(messages.SUSPENDED)
        else:
            self._sender.complete(result, sent)

    def _as_told(self, rows: Rows, statement: Prepared) -> Rows:
        """Rows as their fields were described. Raises NotSupported where they are others now."""
        if statement.fields is None:
            return rows
        if len(statement.fields) != len(rows.fields):
            statement.fields = None
            raise NotSupported(
                "the columns have changed since the statement was prepared", hint="prepare it again"
            )
        return rows.as_fields(statement.fields)

    # --- what both share --------------------------------------------------------------------------

    def _planned(self, sql: str) -> Plan:
        return known_plan_of(sql, self._services.relations)

    async def _plan(self, sql: str) -> Plan:
        if len(sql) > self._services.settings.sql_bytes_max:
            raise LimitExceeded("sql_bytes_max", self._services.settings.sql_bytes_max, len(sql))
        return self._planned(sql) if len(sql) <= SHORT_TEXT else await asyncio.to_thread(self._planned, sql)

    def _require_possible(self, plan: Plan, sql: str) -> None:
        """Raise TransactionFailed for all but the end of a transaction that failed."""
        ends = isinstance(plan, Nothing) or (isinstance(plan, Command) and keyword(sql) in commands.ENDS)
        if self._transaction.status == "E" and not ends:
            raise TransactionFailed

    async def _result(self, plan: Plan, values: Sequence[Value]) -> Result:
        if isinstance(plan, Command):
            return await self._command(plan.sql)
        async with _limited(self._settings.timeout_ms):
            result = await self._answering.result(plan, values, self._transaction.reads_only)
        if isinstance(result, Done) and result.changes and self._transaction.status == "T":
            self._transaction.changed = True
        return result.in_digits(self._settings.float_digits)

    async def _follow(
        self, plan: Plan, subscribed: Subscribed, values: Sequence[Value], formats: Sequence[int]
    ) -> NoReturn:
        """Send an answer and its changes, until there is a reason to end, which is raised."""
        async with _limited(self._settings.timeout_ms):
            changes = await self._answering.subscription(subscribed, values)
            try:
                forms = each(formats, len(changes.fields))
                await self._sender.changes(changes, plan.options if isinstance(plan, Copied) else forms)
            finally:
                changes.close()

    async def _command(self, sql: str) -> Result:
        told = commands.transaction(sql, self._transaction, self._settings)
        if told is None:
            told = commands.setting(sql, self._transaction, self._settings)
        if told is not None:
            if keyword(sql) in (*commands.ENDS, "DISCARD"):
                self._held.close_cursors()
            if keyword(sql) == "DISCARD":
                self._held.statements.clear()
            return self._told(told)
        match keyword(sql):
            case "DECLARE":
                return await self._declare(sql)
            case "FETCH" | "MOVE":
                async with _limited(self._settings.timeout_ms):
                    fetched = await self._held.fetch(sql)
                return fetched.in_digits(self._settings.float_digits)
            case "CLOSE":
                return self._held.close(sql)
        return self._held.deallocate(sql)

    def _told(self, told: Told) -> Result:
        if told.columns:
            return results.listed(told.columns, told.rows, told.tag)
        if told.warning:
            self._out.write(notice_of(told.warning, severity="WARNING"))
        return Done(told.tag)

    async def _declare(self, sql: str) -> Result:
        self._services.relations.require_told()
        name, select, is_binary = commands.declared(sql)
        self._held.require_room(name)
        cursor: Cursor
        if keyword(select) == "SUBSCRIBE":
            plan = subscribed_of(select, self._services.relations)
            async with _limited(self._settings.timeout_ms):
                cursor = await self._answering.subscription(plan, (), int(is_binary))
        else:
            rows = await self._result(asked_of(select, self._services.relations), ())
            assert isinstance(rows, Rows)
            cursor = RowsCursor(rows, int(is_binary))
        try:
            self._held.declare(name, cursor, self._services.settings.snapshot_bytes_max)
        except TureenError:
            cursor.close()
            raise
        return Done("DECLARE CURSOR")

    def close(self) -> None:
        """The connection has ended."""
        self._held.close_cursors()

    # --- errors -----------------------------------------------------------------------------------

    async def _guarded(self, work: Coroutine[Any, Any, None], sql: str) -> None:
        try:
            await work
        except (Exception, asyncio.CancelledError) as failed:  # noqa: BLE001
            self._fail_extended(failed, sql)

    def _fail_extended(self, failed: BaseException, sql: str) -> None:
        self._skipping = True
        self._fail(self._refusal(failed), sql)

    def _refusal(self, failed: BaseException) -> TureenError:
        """What is told of it. Raises ConnectionError, and CancelledError where the client asked for none."""
        if isinstance(failed, ConnectionError):
            raise failed
        if self.canceled:
            self.canceled = False
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
            return Canceled()
        if not isinstance(failed, Exception):
            raise failed
        return refusal_of(failed)

    def _fail(self, error: TureenError, sql: str, offset: int = 0) -> None:
        if isinstance(error, InternalError):
            log.error("postgres_failed", incident=error.incident, trace=error.trace)
        self._transaction.fail()
        self._out.write(fields_of(error, sql, offset))
        if isinstance(error, ProtocolViolation):
            raise error


def _subscribed(plan: Plan) -> Subscribed | None:
    """What a plan subscribes to, by itself or by COPY; None of any other."""
    inner = plan.plan if isinstance(plan, Copied) else plan
    return inner if isinstance(inner, Subscribed) else None


@contextlib.asynccontextmanager
async def _limited(limit_ms: int | None) -> AsyncIterator[None]:
    """Raises Canceled where it takes longer; None: however long it takes."""
    try:
        async with asyncio.timeout(None if limit_ms is None else limit_ms / 1_000):
            yield
    except TimeoutError:
        raise Canceled("statement timeout") from None
