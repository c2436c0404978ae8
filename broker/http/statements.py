"""POST /statements: every statement but a SELECT, over one door.

| statement                              | answered with                                        |
|----------------------------------------|------------------------------------------------------|
| SHOW QUERIES, TABLES, FUNCTIONS, ...    | a table                                             |
| DESCRIBE name                          | a table of columns, and ``source``                   |
| EXPLAIN [ANALYZE] SELECT ... or 'handle' | a table of operators, and ``plan``                 |
| PAUSE 'handle' [RELEASE]               | the query, as PATCH does                             |
| RESUME, TERMINATE 'handle'             | the query, as PATCH and DELETE do                    |
| ALTER QUERY 'handle' AS SELECT ...     | the query, as PATCH does                             |
| ALTER QUERY name RENAME TO name        | the query, as PATCH does                             |
| CREATE QUERY name AS SELECT ...        | the query, as POST /queries does                     |
| INSERT INTO name VALUES (...), ...     | how many records are written, and where              |
| INSERT INTO name SELECT ...            | the query, as POST /queries does                     |
| DROP QUERY name                        | the query, as DELETE does                            |
| CREATE, DROP of a stream, table or view | what became of it, as POST /sources does            |
| CREATE, ALTER, DROP of a summary       | what became of it, as POST /sources does             |
| DESCRIBE SUMMARY name                  | a table of its granularities, and ``summary``        |

A table is ``{"columns": [name], "rows": [[value]]}``. Queries are shown by their public ids and names, by
which the operator may pause, rename and end them; ALTER QUERY ... AS needs the handle.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from broker.base.settings import Settings
from broker.http.creations import Creations
from broker.http.described import described, listed
from broker.http.endings import Endings
from broker.http.formats import tag_words
from broker.http.inserts import insert
from broker.http.named import known, opened
from broker.http.options import ChangeRequest, QueryChanges
from broker.http.plans import plan_for, plan_of, proposals_for, proposals_of
from broker.http.requests import RegisterRequest, body_object, sql_of
from broker.http.rights import ReadToken
from broker.http.summaries import SummaryRequests
from broker.http.summary_tables import described_table, listed_table
from broker.http.writes import Answer, Writes
from broker.node.node import Node
from broker.observe.status import source_list
from broker.runtime.functions import counted, facts
from engine.language.aggregates import AGGREGATES, AggregateFunction
from engine.language.functions import FUNCTIONS, FunctionCatalogue
from engine.language.instants import timestamp_text
from engine.language.query import (
    AlterQuery,
    AlterSummary,
    Control,
    CreateFromQuery,
    CreateFromTopic,
    CreateQuery,
    CreateStream,
    CreateSummary,
    Describe,
    DescribeSummary,
    DropStream,
    DropSummary,
    Emit,
    Explain,
    Insert,
    InsertTarget,
    Query,
    RenameQuery,
    Show,
    Statement,
)
from engine.language.scalar_functions.function import ScalarFunction
from engine.model.query_name import NAME_OPTION
from topics.wording import Wording
from tureen import plans
from tureen.errors import NotAllowed, NotSupported, UnknownQuery
from tureen.protocol import new_handle

QUERIES_MAX = 10_000
"""Rows of SHOW QUERIES; GET /queries has pages."""

SOURCE_KINDS = ("stream", "table", "view")

READING = (Describe, DescribeSummary, Explain, Query, Show)
"""Statements that change nothing; a query is refused here."""

_REGISTERED = "register it, or ask it once; EXPLAIN SELECT ... shows its plan"
_READS_BY_HANDLE = (
    "this token registers nothing: fetch the answer of a query by its handle, or ask whoever has the "
    "broker's own token; EXPLAIN SELECT ... shows the plan"
)

Table = dict[str, Any]


class Statements:
    """Carries out statements."""

    def __init__(
        self,
        settings: Settings,
        node: Node,
        endings: Endings,
        creations: Creations,
        changes: QueryChanges,
        summaries: SummaryRequests,
        writes: Writes,
    ) -> None:
        self._writes = writes
        self._settings = settings
        self._node = node
        self._endings = endings
        self._creations = creations
        self._changes = changes
        self._summaries = summaries

    async def run(self, body: bytes, operator: bool, only_reads: bool = False) -> Answer:
        """(status, answer). operator: asks. only_reads: the caller may change nothing. Raises QueryError for
        a refused text, ReadToken, and what carrying it out raises.
        """
        sql = sql_of(body_object(body), self._settings.sql_bytes_max)
        return await self.carry_out(await self._node.understand(sql), operator, only_reads)

    async def carry_out(self, statement: Statement, operator: bool, only_reads: bool = False) -> Answer:
        """As :meth:`run`, of a text that was understood."""
        if only_reads and not isinstance(statement, READING):
            raise ReadToken
        match statement:
            case CreateStream() | CreateFromTopic() | CreateFromQuery() | DropStream():
                return await self._creations.make(statement, operator)
            case CreateSummary() | AlterSummary() | DropSummary():
                return await self._summaries.make(statement)
            case DescribeSummary(definition):
                return 200, described_table(await self._summaries.described(definition.name))
            case Show("summaries"):
                return 200, listed_table(await self._summaries.listed())
            case Show(what, extended):
                return 200, self._show(what, extended)
            case Describe():
                return 200, self._described(statement)
            case Explain():
                return 200, await self._explained(statement, operator, only_reads)
            case Insert():
                return await insert(statement, self._writes.publisher)
            case CreateQuery():
                return await self._create_query(statement)
            case RenameQuery(handle, name):
                return await self._changes.change(
                    known(self._node, handle, operator), ChangeRequest({NAME_OPTION: name})
                )
            case Control("terminate", handle, if_exists=True):
                with contextlib.suppress(UnknownQuery):
                    return await self._endings.one(handle, operator)
                return 200, {"query_id": None, "name": handle, "state": "GONE", "skipped": True}
            case Control("terminate", handle):
                return await self._endings.one(handle, operator)
            case Control("pause", handle, release):
                name = known(self._node, handle, operator)
                return await self._changes.change(name, ChangeRequest({"paused": True, "release": release}))
            case Control(_, handle):
                name = known(self._node, handle, operator)
                return await self._changes.change(name, ChangeRequest({"paused": False}))
            case AlterQuery(handle, query):
                name = opened(self._node, handle)
                return await self._changes.change(name, ChangeRequest({}, Wording(query.sql)))
            case Query(emit=Emit(insert=InsertTarget())):
                return await self._insert_query(statement)
            case Query():
                raise NotSupported(
                    "a SELECT is registered as a query, it is not run once",
                    hint=_READS_BY_HANDLE if only_reads else _REGISTERED,
                    line=1,
                    column=1,
                )

    async def _create_query(self, statement: CreateQuery) -> Answer:
        """CREATE QUERY; with IF NOT EXISTS the query that has the name, which is told without its handle.

        Raises NameInUse, and what a registration raises.
        """
        there = self._node.directory.queries.names.id_of(statement.name)
        if there is not None and statement.if_not_exists:
            told = described(self._node, there)
            return 200, told | {"skipped": True, "differs": told["sql"] != statement.query.sql}
        handle, options = new_handle(), {NAME_OPTION: statement.name}
        request = RegisterRequest(Wording(statement.query.sql), handle, options, is_handle_ours=True)
        status, told = await self._writes.register(request)
        return status, told | {"name": statement.name}

    async def _insert_query(self, statement: Query) -> Answer:
        """INSERT INTO stream SELECT: a registered query. Raises what a registration raises."""
        request = RegisterRequest(Wording(statement.sql), new_handle(), is_handle_ours=True)
        return await self._writes.register(request)

    def _show(self, what: str, extended: bool) -> Table:
        if what == "queries":
            return self._queries(extended)
        if what == "functions":
            return _functions(self._node.setup.engines.functions)
        kinds = {"streams": ("stream",), "tables": ("table",), "views": ("view",)}
        sources = [one for one in source_list(self._node) if one["kind"] in kinds.get(what, SOURCE_KINDS)]
        shown: dict[str, Callable[[dict[str, Any]], Any]] = {"name": lambda one: one["name"]}
        if what == "sources":
            shown["kind"] = lambda one: one["kind"]
        shown["state"] = lambda one: one["state"]
        if what != "views":
            shown |= {
                "topic": lambda one: one["topic"],
                **({"key": lambda one: ", ".join(one["key"])} if what == "tables" else {}),
                "now": lambda one: None if one["now_ms"] is None else timestamp_text(one["now_ms"]),
                "now_ms": lambda one: one["now_ms"],
                "rows": lambda one: one["rows"],
            }
        shown["queries"] = lambda one: one["queries"]
        if what in ("sources", "views"):
            shown["statement"] = lambda one: one["sql"]
        return _table(shown, sources)

    def _queries(self, extended: bool) -> Table:
        queries = self._node.directory.queries
        names = sorted(queries)
        found = [listed(self._node, name, queries[name]) for name in names[:QUERIES_MAX]]
        shown: dict[str, Callable[[dict[str, Any]], Any]] = {
            "query": lambda one: one["query_id"],
            "name": lambda one: one["name"],
            "state": lambda one: one["state"],
            "sources": lambda one: ", ".join(one["sources"]),
        }
        if extended:
            shown |= {
                "maintenance": lambda one: one["maintenance"],
                "strategy": lambda one: one["strategy"],
                "weight": lambda one: one["weight"],
                "approximation": lambda one: tag_words(one["approximation"]) or None,
                "output": lambda one: one["output"] and one["output"]["topic"],
                "error": lambda one: one["error"] and one["error"].get("message"),
            }
        shown["statement"] = lambda one: " ".join((one["sql"] or "").split())
        return _table(shown, found) | {"total": len(names)}

    def _described(self, statement: Describe) -> Table:
        (source,) = (one for one in source_list(self._node) if one["name"] == statement.name)
        nullable = {one["name"]: one["nullable"] for one in source["columns"]}
        rows = [[name, str(type_), nullable.get(name, True)] for name, type_ in statement.columns]
        return {"columns": ["column", "type", "nullable"], "rows": rows, "source": source}

    async def _explained(self, statement: Explain, operator: bool, only_reads: bool) -> Table:
        if statement.query is not None:
            if only_reads and statement.analyze:
                raise NotAllowed("evaluate a SELECT over rows: leave ANALYZE out")
            plan = await plan_for(self._node, statement.query, statement.analyze, of_rows=not only_reads)
            proposals = await proposals_for(self._node, statement.query, of_rows=not only_reads)
        else:
            assert statement.handle is not None
            given = statement.handle
            name = known(self._node, given, operator)
            plan = await plan_of(self._node, name, statement.analyze)
            proposals = await proposals_of(self._node, name)
        columns, rows = plans.columns(plan), plans.rows(plan)
        return {"columns": columns, "rows": rows, "plan": plan, "proposals": proposals}


def _table(shown: dict[str, Callable[[dict[str, Any]], Any]], found: Iterable[dict[str, Any]]) -> Table:
    return {"columns": list(shown), "rows": [[value(one) for value in shown.values()] for one in found]}


def _functions(catalogue: FunctionCatalogue) -> Table:
    """Built-in ones, and the users' with their types and what their calls came to."""
    known: list[tuple[str, ScalarFunction | AggregateFunction]] = [
        *(("aggregate", one) for one in AGGREGATES.values()),
        *(("scalar", one) for one in FUNCTIONS.values()),
    ]
    rows = [[one.name, kind, one.usage, one.doc] for kind, one in known]
    for one in facts(catalogue):
        usage = f"{one['name']}({', '.join(one['arguments'])}) -> {one['returns']}"
        marks = [mark for mark in ("vectorised", "arrow", "deterministic", "isolated") if one[mark]]
        about = "; ".join(filter(None, [", ".join(marks), counted(one)]))
        rows.append([one["name"], "user", usage, about])
    rows.sort(key=lambda row: (row[1] != "user", *row))  # one's own first
    return {"columns": ["function", "kind", "usage", "description"], "rows": rows}
