"""SELECTs over the catalogue and over answers, evaluated by DuckDB in memory.

Catalogue browsers send long texts with joins, CASE and functions of PostgreSQL; which, nobody can list. So
they are evaluated, over tables that have what there is here, and so is what BI tools put around the answer of
a registered query: its columns, conditions, groups and LIMIT. DuckDB takes Arrow's columns as they are, reads
a language close to PostgreSQL's, and answers within milliseconds. It runs beside the shards, in threads of
its own, on an answer that was taken from a view, so no shard ever does anything for it.

It reaches nothing outside: no files, no network, no extensions, no variables of this process; its settings
are locked. Memory is bounded. What takes too long, or is waited for by nobody any more, is interrupted.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import duckdb
import pyarrow as pa
from sqlglot import exp

from broker.base.settings import Settings
from broker.node.request_work import RequestWork, caller
from broker.postgres import literals, rewriting
from broker.postgres.catalogue_columns import TABLES
from broker.postgres.catalogue_functions import DERIVED, MACROS, type_names
from broker.postgres.catalogue_tables import tables
from broker.postgres.relations import Relation, Relations
from broker.postgres.rewriting import CATALOGUES, Name
from engine.language.places import did_you_mean
from tureen.errors import LimitExceeded, TureenError, UnknownColumn, UnknownSource

MEMORY_BYTES = 256 * 1024**2
"""What all evaluations may take together."""


class EvaluationRefused(TureenError):
    """DuckDB refuses a SELECT."""

    code = "evaluation_refused"


class UnknownFunction(EvaluationRefused):
    """There is no such function, or not for these types."""

    code = "unknown_function"


class DivisionByZero(EvaluationRefused):
    """A whole number is divided by zero."""

    code = "division_by_zero"


class BadOperand(EvaluationRefused):
    """A value that cannot be converted."""

    code = "bad_value"


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT. sql: its text, in which the places of errors count. answers: by the names that it uses, the
    tables of answers that it reads. user: who asks.
    """

    sql: str
    tree: exp.Query
    answers: Mapping[Name, pa.Table]
    values: Sequence[object]
    user: str


class Evaluation:
    """Evaluates SELECTs. Used on the event loop."""

    def __init__(self, settings: Settings, relations: Relations) -> None:
        self._rows_max = settings.snapshot_rows_max
        self._bytes_max = settings.snapshot_bytes_max
        self._relations = relations
        self._held: tuple[Relation, ...] | None = None
        self._making = threading.Lock()
        self._opening = asyncio.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        """Made when it is first asked."""
        self._limit_s = settings.answer_ms_max / 1_000
        self.pool = RequestWork(
            "evaluation",
            settings.request_work_threads,
            settings.request_work_waiting_max,
            "answer_ms_max",
            settings.answer_ms_max,
        )

    async def evaluate(self, select: Select, rows_max: int | None = None) -> pa.Table:
        """Its rows. rows_max: so many of them, the first. Raises what refuses it, and what limits work."""
        found = self._relations.all()
        cursor = (await self._opened()).cursor()
        interrupt = partial(_interrupt, cursor)
        by = caller.get()
        if by is not None:
            by.watch(interrupt)
        late = asyncio.get_running_loop().call_later(self._limit_s, interrupt)
        try:
            return await self.pool.do(lambda: self._evaluated(cursor, found, select, rows_max))
        except BaseException:
            interrupt()
            raise
        finally:
            late.cancel()
            if by is not None:
                by.unwatch(interrupt)

    async def _opened(self) -> duckdb.DuckDBPyConnection:
        async with self._opening:
            if self._database is None:
                self._database = await self.pool.do(_database)
            return self._database

    def _evaluated(
        self,
        cursor: duckdb.DuckDBPyConnection,
        relations: tuple[Relation, ...],
        select: Select,
        rows_max: int | None,
    ) -> pa.Table:
        """In a thread of the pool."""
        try:
            self._bring_up_to(cursor, relations)
            places: dict[Name, str] = {}
            for number, (name, table) in enumerate(select.answers.items()):
                places[name] = f"answer_{number}"
                cursor.register(places[name], _plain(table))
            is_bytes = bytes_of(select)
            text = rewriting.rewritten(select.tree, partial(_place_of, places), select.user, is_bytes)
            limit = self._rows_max + 1 if rows_max is None else rows_max
            values = list(select.values)
            relation = cursor.sql(f"SELECT * FROM ({text}) LIMIT {limit}", params=values)
            found = _with_json(relation.to_arrow_table(), [str(one) for one in relation.types])
        except duckdb.Error as refused:
            raise _refusal(refused, select) from None
        finally:
            cursor.close()
        names = rewriting.column_names(select.tree)
        if len(names) == found.num_columns:
            found = found.rename_columns(names)
        if found.num_rows > self._rows_max:
            raise LimitExceeded("snapshot_rows_max", self._rows_max, hint="add a LIMIT, or a condition")
        if found.nbytes > self._bytes_max:
            raise LimitExceeded("snapshot_bytes_max", self._bytes_max, found.nbytes)
        return found

    def _bring_up_to(self, cursor: duckdb.DuckDBPyConnection, relations: tuple[Relation, ...]) -> None:
        """Fill the catalogue with what there is, where that has changed."""
        with self._making:
            if self._held is relations:
                return
            cursor.execute("BEGIN")
            for name, table in tables(relations).items():
                cursor.register("filling", table)
                cursor.execute(f"DELETE FROM {name}")
                cursor.execute(f"INSERT INTO {name} SELECT * FROM filling")
                cursor.unregister("filling")
            for one in DERIVED[1:]:
                cursor.execute(f"CREATE OR REPLACE TABLE catalogue.{one}")
            cursor.execute("COMMIT")
            self._held = relations

    def close(self) -> None:
        """No more is evaluated."""
        self.pool.close()


def _interrupt(cursor: duckdb.DuckDBPyConnection) -> None:
    with contextlib.suppress(duckdb.Error):  # it is done
        cursor.interrupt()


def _database() -> duckdb.DuckDBPyConnection:
    """An empty catalogue; its settings cannot be changed any more."""
    made = duckdb.connect(":memory:")
    for schema in CATALOGUES.values():
        made.execute(f"CREATE SCHEMA {schema}")
    empty = tables(())
    for name in TABLES:
        made.register("filling", empty[name])
        made.execute(f"CREATE TABLE {name} AS SELECT * FROM filling")
        made.unregister("filling")
    made.register("given_type_names", type_names())
    for one in DERIVED:
        made.execute(f"CREATE TABLE catalogue.{one}")
    made.unregister("given_type_names")
    for macro in MACROS:
        made.execute(f"CREATE OR REPLACE MACRO {macro}")
    for name, value in (
        ("threads", "1"),
        ("integer_division", "true"),
        ("memory_limit", f"'{MEMORY_BYTES}B'"),
        ("temp_directory", "''"),
        ("TimeZone", "'UTC'"),
        ("autoinstall_known_extensions", "false"),
        ("autoload_known_extensions", "false"),
        ("python_enable_replacements", "false"),
        ("enable_external_access", "false"),
        ("lock_configuration", "true"),
    ):
        made.execute(f"SET GLOBAL {name} = {value}")
    return made


def _plain(table: pa.Table) -> pa.Table:
    """A table whose columns DuckDB has: JSON as text."""
    columns = [
        column.cast(pa.string()) if isinstance(column.type, pa.JsonType) else column
        for column in table.columns
    ]
    return pa.table(columns, names=table.column_names)


def _with_json(table: pa.Table, kinds: Sequence[str]) -> pa.Table:
    """A table whose columns of JSON say so, and numbers without a sign are such as clients have. kinds:
    DuckDB's types.
    """
    type_ = pa.json_(pa.string())
    for place, kind in enumerate(kinds):
        if kind == "UBIGINT":
            wide = table.column(place).cast(pa.decimal128(20, 0))
            table = table.set_column(place, table.column_names[place], wide)
        if kind == "JSON":
            chunks = [pa.ExtensionArray.from_storage(type_, one) for one in table.column(place).chunks]
            table = table.set_column(place, table.column_names[place], pa.chunked_array(chunks, type_))
    return table


def bytes_of(select: Select) -> literals.IsBytes:
    """Whether each answer that has a column of the name has bytes there, of those that its table names."""
    aliases = {one.alias_or_name.lower(): one.name for one in select.tree.find_all(exp.Table)}

    def is_bytes(column: exp.Column) -> bool:
        table = aliases.get(column.table.lower(), column.table)
        kinds = {
            pa.types.is_binary(one.schema.field(column.name).type)
            for (_, name), one in select.answers.items()
            if column.name in one.column_names and (not table or name.lower() == table.lower())
        }
        return kinds == {True}

    return is_bytes


def _place_of(names: Mapping[Name, str], name: Name) -> tuple[str, str]:
    schema, relation = name
    if name in names:
        return "temp", names[name]
    place = f"{CATALOGUES.get(schema or 'pg_catalog', '')}.{relation}"
    if place in TABLES:
        return CATALOGUES[schema or "pg_catalog"], relation
    raise UnknownSource(f"{schema}.{relation}" if schema else relation)


_CALLED = re.compile(
    r"Function with name \"?(\w+)|No function matches the given name and argument types '(\w+)\("
)
_DEPTH = re.compile(r"expression depth limit of (\d+)")
_COLUMN = re.compile(r'column (?:named )?"([^"]+)"')
_FUNCTION: tuple[tuple[type[duckdb.Error], type[TureenError]], ...] = (
    (duckdb.ConversionException, BadOperand),
    (duckdb.OutOfRangeException, BadOperand),
    (duckdb.InvalidInputException, BadOperand),
)


def _refusal(refused: duckdb.Error, select: Select) -> TureenError:
    """What is told of an error of DuckDB's: its message, without the text that it shows, which is not the
    client's.
    """
    message = str(refused).split("\n\n")[0].split("\nLINE ")[0].strip()
    head, _, rest = message.partition(": ")
    message = rest if head.endswith("Error") else message
    hint = next((line for line in message.split("\n") if line.startswith(("Did you", "Candidate"))), None)
    message = message.split("\n")[0]
    if isinstance(refused, duckdb.OutOfMemoryException):
        return LimitExceeded("memory of evaluations", MEMORY_BYTES, hint="ask for less, or register a query")
    if isinstance(refused, duckdb.InterruptException):
        return EvaluationRefused("it took too long, or was called off")
    if isinstance(refused, duckdb.BinderException) and (found := _COLUMN.search(message)) is not None:
        if "not found" in message or "does not have" in message:
            return _unknown_column(found[1], select)
        return EvaluationRefused(message)
    if (called := _CALLED.search(message)) is not None:
        return _unknown_function(message, called[1] or called[2], hint, select)
    if (deep := _DEPTH.search(message)) is not None:
        return LimitExceeded("operators within each other", int(deep[1]), hint="use IN, or fewer operators")
    if "Division by zero" in message:
        return DivisionByZero("division by zero", hint="x / NULLIF(y, 0) is NULL there")
    for kind, error in _FUNCTION:
        if isinstance(refused, kind):
            return error(message, hint=hint)
    return EvaluationRefused(message, hint=hint)


def _unknown_function(message: str, name: str, hint: str | None, select: Select) -> UnknownFunction:
    place = rewriting.place_of_function(select.tree, select.sql, name)
    given = re.search(r"argument types '([^']*)'", message)
    if given is not None:
        return UnknownFunction(f"function {given[1]} does not exist", hint=_ADD_CASTS, **place)
    return UnknownFunction(f"function {name} does not exist", hint=hint, **place)


_ADD_CASTS = "it is not there for these types: add a cast, x::text"


def _unknown_column(name: str, select: Select) -> UnknownColumn:
    names = {column for table in select.answers.values() for column in table.column_names}
    return UnknownColumn(
        name, hint=did_you_mean(name, names), **rewriting.place_of_column(select.tree, select.sql, name)
    )
