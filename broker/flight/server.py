"""Listens for clients of Arrow Flight SQL.

    GetFlightInfo   a SELECT or another statement, a prepared one, or a question to the catalogue: its
                    columns, and the ticket that DoGet takes
    DoGet           the rows; of SUBSCRIBE the answer and its changes, for as long as the client reads
    DoPut           carries a statement out; gives a prepared one its parameters
    DoAction        CreatePreparedStatement, ClosePreparedStatement

Tickets and handles hold the statement itself, so that a client that leaves leaves nothing behind. A statement
that changes something is carried out by the call that asks for its rows, of which it has none, or by DoPut.

gRPC gives each call a thread, which waits for the event loop (:mod:`broker.flight.asking`); rows are written
by Arrow without Python. Source: Arrow's documentation, "Arrow Flight SQL".
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.flight as flight

from broker.base import logs
from broker.base.settings import Settings
from broker.flight import catalogue
from broker.flight.asking import Asking
from broker.flight.messages import BadMessage, message, packed, unpacked
from broker.flight.readers import Readers
from broker.flight.rights import KEY, Callers, Handshakes
from broker.flight.statement import Statement, parameter_schema
from broker.postgres.answering import Answering, Services
from broker.postgres.parameters import Value
from broker.postgres.plans import SHORT_TEXT, Command, Copied, Nothing, Plan, Subscribed, known_plan_of
from broker.postgres.results import Done, Rows
from broker.runtime.in_flight import InFlight
from tureen.errors import LimitExceeded, NotSupported
from tureen.protocol import METADATA_WARNINGS

QUERIES = ("CommandStatementQuery", "CommandPreparedStatementQuery")
UPDATES = ("CommandStatementUpdate", "CommandPreparedStatementUpdate")
PREPARE, CLOSE = "CreatePreparedStatement", "ClosePreparedStatement"
NO_COLUMNS = pa.schema([])
BATCH_ROWS = 65_536
BATCH_BYTES = 1024 * 1024
PARAMETER_ROWS_MAX = 100_000
UNKNOWN_COUNT = -1
TAKE_S = 1.0
"""How long changes are waited for before it is looked whether the client is still there."""

log = logs.get()


class FlightServer:
    """The door, on the event loop."""

    is_counted = False
    """Whether ``in_flight`` has its connections among all: gRPC accepts them itself."""

    def __init__(self, settings: Settings, services: Services, in_flight: InFlight) -> None:
        self._settings = settings
        self._services = services
        self._readers = Readers(in_flight)
        self._calls: _Calls | None = None
        self.port = settings.flight_port
        """Once it listens, the one that it has where any free one was asked for."""

    def facts(self) -> dict[str, Any]:
        """What is told of the door. connections: calls that are being answered, since only gRPC sees how its
        clients are connected.
        """
        return {
            "protocol": "flight-sql",
            "host": self._settings.http_host,
            "port": self.port,
            "tls": self._settings.http_tls_certificate is not None,
            "token": self._settings.http_token is not None,
            "connections": self.connections,
        }

    @property
    def connections(self) -> int:
        """Calls that are being answered, and SUBSCRIBEs that are followed."""
        if self._calls is None:
            return 0
        asking = self._calls.asking
        return asking.calls.taken + asking.followed.taken

    async def serve(self) -> None:
        """Listen until cancelled. Raises OSError: the port is in use."""
        given = self._settings
        asking = Asking(asyncio.get_running_loop(), given.flight_calls_max, given.flight_subscriptions_max)
        try:
            self._calls = await asyncio.to_thread(_Calls, given, self._services, asking, self._readers)
        except pa.ArrowException as failed:
            raise OSError(f"flight_port {self._settings.flight_port}: {failed}") from None
        self.port = self._calls.port
        self._readers.start(self._calls.port)
        log.info("flight_listens", host=self._settings.http_host, port=self.port)
        await asyncio.Event().wait()

    async def stop(self) -> None:
        """Listen no more; calls that go on are cut off."""
        self._readers.stop()
        if self._calls is not None:
            await asyncio.to_thread(self._calls.shutdown)
        self._services.evaluation.close()


class _Calls(flight.FlightServerBase):  # type: ignore[misc]
    """What gRPC calls, each call in a thread."""

    def __init__(self, settings: Settings, services: Services, asking: Asking, readers: Readers) -> None:
        certificate, key = settings.http_tls_certificate, settings.http_tls_key
        tls = None if certificate is None or key is None else [(_pem(certificate), _pem(key))]
        scheme = "grpc" if tls is None else "grpc+tls"
        host = f"[{settings.http_host}]" if ":" in settings.http_host else settings.http_host
        self.asking = asking
        self._readers = readers
        self._services = services
        self._has_tokens = settings.http_token is not None
        self._sql_bytes_max = settings.sql_bytes_max
        super().__init__(
            f"{scheme}://{host}:{settings.flight_port}",
            auth_handler=Handshakes(),
            tls_certificates=tls,
            middleware={KEY: Callers(settings)},
        )

    # --- what a client calls ----------------------------------------------------------------------

    def get_flight_info(self, context: Any, descriptor: Any) -> flight.FlightInfo:
        """The columns of what is asked, and its ticket."""
        with self.asking.call():
            name, asked = unpacked(descriptor.command or b"")
            if name not in QUERIES:
                schema, ticket = self._catalogue(context, name, asked).schema, descriptor.command
            else:
                statement = self._statement(asked)
                schema = self._schema(context, statement)
                ticket = packed("TicketStatementQuery", statement_handle=statement.handle)
            endpoint = flight.FlightEndpoint(ticket, [])
            return flight.FlightInfo(schema, descriptor, [endpoint], UNKNOWN_COUNT, UNKNOWN_COUNT)

    def get_schema(self, context: Any, descriptor: Any) -> flight.SchemaResult:
        """The columns of what is asked."""
        return flight.SchemaResult(self.get_flight_info(context, descriptor).schema)

    def do_get(self, context: Any, ticket: Any) -> flight.FlightDataStream:
        """The rows of a ticket."""
        leave = self.asking.calls.enter()
        try:
            with self.asking.told():
                name, asked = unpacked(ticket.ticket)
                if name != "TicketStatementQuery":
                    table = self._catalogue(context, name, asked)
                    return self._stream(context, table.schema, _batches(table), leave)
                statement = Statement.of_handle(asked.statement_handle, self._sql_bytes_max)  # type: ignore[attr-defined]
                plan, answering = self._planned(context, statement)
                values = statement.row()
                if isinstance(plan, Subscribed):
                    stream = self._followed(context, answering, plan, values)
                    leave()
                    return stream
                table = self._rows(context, answering, plan, values)
                return self._stream(context, table.schema, _batches(table), leave)
        except BaseException:
            leave()
            raise

    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Carry a statement out, once for each row of parameters; or take a query's parameters."""
        with self.asking.call():
            name, asked = unpacked(descriptor.command or b"")
            if name not in (*UPDATES, QUERIES[1]):
                raise BadMessage(f"{name} is not for DoPut")
            statement = self._statement(asked)
            given = _read(reader)
            if given.num_columns:
                statement = statement.with_values(given)
            if name in QUERIES:
                handle = message("DoPutPreparedStatementResult", prepared_statement_handle=statement.handle)
                _written(writer, handle)
                return
            plan, answering = self._planned(context, statement)
            if isinstance(plan, Subscribed):
                raise NotSupported("changes are read as a query's rows", hint="execute it as a query")
            count = 0
            for values in statement.rows():
                count += self._carried(context, answering, plan, values)
            _written(writer, message("DoPutUpdateResult", record_count=count))

    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Prepare a statement, or forget one."""
        with self.asking.call():
            if action.type not in (PREPARE, CLOSE):
                raise NotSupported(f"there is no action {action.type}", hint=f"{PREPARE}, {CLOSE}")
            _, asked = unpacked(action.body.to_pybytes())
            if action.type == CLOSE:
                return iter(())
            statement = Statement(self._text(asked.query))  # type: ignore[attr-defined]
            plan, answering = self._planned(context, statement)
            schema = self._schema(context, statement)
            oids = self.asking.wait(context, _done(partial(answering.parameter_types, plan, (), 0)))
            made = packed(
                "ActionCreatePreparedStatementResult",
                prepared_statement_handle=statement.handle,
                dataset_schema=b"" if schema is None else schema.serialize().to_pybytes(),
                parameter_schema=parameter_schema(oids).serialize().to_pybytes(),
            )
            return iter((made,))

    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """What DoAction does."""
        return [(PREPARE, "a statement and its parameters' types"), (CLOSE, "nothing of it is kept")]

    # --- on the way -------------------------------------------------------------------------------

    def _text(self, sql: str | bytes) -> str:
        if isinstance(sql, bytes):  # what protobuf gives where a text is none
            raise BadMessage("the statement is no UTF-8")
        size = len(sql.encode())
        if size > self._sql_bytes_max:
            raise LimitExceeded("sql_bytes_max", self._sql_bytes_max, size)
        return sql

    def _statement(self, asked: Any) -> Statement:
        if asked.DESCRIPTOR.fields_by_name.get("query") is not None:
            return Statement(self._text(asked.query))
        return Statement.of_handle(asked.prepared_statement_handle, self._sql_bytes_max)

    def _planned(self, context: Any, statement: Statement) -> tuple[Plan, Answering]:
        relations = self._services.relations
        planned = partial(known_plan_of, statement.sql, relations)
        is_short = len(statement.sql) <= SHORT_TEXT
        plan = self.asking.wait(context, _done(planned) if is_short else asyncio.to_thread(planned))
        if isinstance(plan, Command | Copied):
            raise NotSupported(
                "this statement is of PostgreSQL's protocol alone",
                hint="every statement stands for itself",
            )
        who = context.get_middleware(KEY).identity(context.peer(), self._has_tokens)
        return plan, Answering(self._services, who)

    def _schema(self, context: Any, statement: Statement) -> pa.Schema | None:
        """The columns of a statement's rows; None: they are known when it was carried out."""
        plan, answering = self._planned(context, statement)
        oids = self.asking.wait(context, _done(partial(answering.parameter_types, plan, (), 0)))
        found: pa.Schema | None = self.asking.wait(context, answering.schema(plan, oids))
        return found

    def _catalogue(self, context: Any, name: str, asked: Any) -> pa.Table:
        def table() -> pa.Table:
            self._services.relations.require_told()
            return catalogue.table_of(name, asked, self._services.relations)

        return self.asking.wait(context, _done(table))

    def _rows(self, context: Any, answering: Answering, plan: Plan, values: tuple[Value, ...]) -> pa.Table:
        if isinstance(plan, Nothing):
            return NO_COLUMNS.empty_table()
        found = self.asking.wait(context, answering.result(plan, values, reads_only=False))
        return _with_warnings(found) if isinstance(found, Rows) else _notices(found)

    def _carried(self, context: Any, answering: Answering, plan: Plan, values: tuple[Value, ...]) -> int:
        """How many rows a statement wrote; those that it gave, of one that gives rows."""
        if isinstance(plan, Nothing):
            return 0
        found = self.asking.wait(context, answering.result(plan, values, reads_only=False))
        if isinstance(found, Rows):
            return found.n
        words = found.tag.split()
        return int(words[-1]) if words[0] == "INSERT" else 0

    def _followed(
        self, context: Any, answering: Answering, plan: Subscribed, values: tuple[Value, ...]
    ) -> flight.FlightDataStream:
        leave = self.asking.followed.enter()
        try:
            changes = self.asking.wait(context, answering.subscription(plan, values))
        except BaseException:
            leave()
            raise

        def batches() -> Iterator[pa.RecordBatch]:
            with self.asking.told():
                while not context.is_cancelled():
                    taken = self.asking.wait(context, changes.take(None, TAKE_S), TAKE_S)
                    yield from _batches(taken.table)

        def end() -> None:
            self.asking.later(changes.close)
            leave()

        return self._stream(context, changes.schema, batches(), end)

    def _stream(
        self, context: Any, schema: pa.Schema, batches: Iterator[pa.RecordBatch], end: Callable[[], None]
    ) -> flight.FlightDataStream:
        """Rows on their way. end: called when they were read, or their client went or was cut off, though it
        had read none.
        """
        watched = self._readers.watched(context.peer(), batches)
        weakref.finalize(watched, end)
        return flight.GeneratorStream(schema, watched)


def _written(writer: Any, told: bytes) -> None:
    with contextlib.suppress(OSError):  # the client has gone
        writer.write(pa.py_buffer(told))


async def _done(work: Any) -> Any:
    return work()


def _notices(done: Done) -> pa.Table:
    """What is told of a statement without rows: a line each, where there is any."""
    if not done.notices:
        return NO_COLUMNS.empty_table()
    messages, hints = zip(*done.notices, strict=True)
    return pa.table({"message": pa.array(messages, pa.string()), "hint": pa.array(hints, pa.string())})


def _with_warnings(found: Rows) -> pa.Table:
    """Rows, whose schema says what they lack, where that is anything."""
    if not found.warnings:
        return found.table
    told = found.table.schema.metadata or {}
    return found.table.replace_schema_metadata(told | {METADATA_WARNINGS: orjson.dumps(found.warnings)})


def _batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """So small that it is soon seen whether a client reads."""
    rows = min(BATCH_ROWS, max(1, BATCH_BYTES * table.num_rows // max(1, table.nbytes)))
    yield from table.to_batches(rows)


def _read(reader: Any) -> pa.Table:
    """The rows of parameters. Raises LimitExceeded."""
    found = []
    count = 0
    for chunk in reader:
        count += chunk.data.num_rows
        if count > PARAMETER_ROWS_MAX:
            raise LimitExceeded("rows of parameters", PARAMETER_ROWS_MAX, count)
        found.append(chunk.data)
    return pa.Table.from_batches(found, reader.schema)


def _pem(path: Path) -> bytes:
    return path.read_bytes()
