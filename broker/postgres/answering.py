"""How plans are answered, by what answers HTTP: one authority for both doors.

| what                             | who may (:mod:`broker.http.rights`) |
|----------------------------------|-------------------------------------|
| the catalogue, SHOW, EXPLAIN     | everybody who is let in             |
| a query's answer by its handle   | everybody who is let in             |
| a query's answer by its name     | the operator                        |
| SELECT over streams, CREATE, ... | who does not only read              |

Nothing here runs on a shard that HTTP would not run there: answers come of views, a SELECT over streams is a
query that is registered, asked and ended, as ``tureen sql`` does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from broker.base.settings import Settings
from broker.http.answers import Snapshots, TakenAnswer
from broker.http.carried import Carried as Requests
from broker.http.drops import said_of
from broker.http.feeds import Feeds
from broker.http.requests import RegisterRequest
from broker.http.rights import ReadToken
from broker.http.statements import READING
from broker.node.node import Node
from broker.postgres import rewriting, types
from broker.postgres.commands import words_of
from broker.postgres.errors import ReadOnlyTransaction, SourceIsRead, SourceOfAnotherKind, refused
from broker.postgres.evaluation import Evaluation, Select
from broker.postgres.messages import Field
from broker.postgres.parameters import Array, Value, constant
from broker.postgres.plans import Carried, Copied, Evaluated, Once, Plan, Subscribed, Whole, is_catalogue
from broker.postgres.relations import Columns, Relations, over_period
from broker.postgres.results import Done, Result, Rows, listed
from broker.postgres.subscription import LEADING, Subscription, schema_of
from engine.language.query import DropStream, Query
from engine.queries.definitions import kind_of
from topics.wording import Wording
from tureen.catching_up import FOR_NOW_S, CatchUpWait, catching_up_of
from tureen.errors import (
    BeingPrepared,
    BeingRegistered,
    LimitExceeded,
    SourceConflict,
    TureenError,
    UnknownQuery,
    UnknownSource,
)
from tureen.incomplete import incomplete
from tureen.not_computed import not_computed
from tureen.protocol import Handle, new_handle, query_id
from tureen.statements import keyword

ONCE = {"maintenance": "none"}
"""What a query has that is asked once: nothing of its answer is kept ready."""
LOOK_S = 0.02
PARAMETERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Services:
    """What all connections share."""

    settings: Settings
    node: Node
    snapshots: Snapshots
    requests: Requests
    relations: Relations
    evaluation: Evaluation
    feeds: Feeds

    @classmethod
    def made(cls, settings: Settings, requests: Requests, feeds: Feeds) -> Services:
        """feeds: with the node and its answers."""
        relations = Relations(feeds.node)
        evaluation = Evaluation(settings, relations)
        return cls(settings, feeds.node, feeds.snapshots, requests, relations, evaluation, feeds)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks. operator: may name queries. reads: the token only reads. user: the name that was given."""

    operator: bool
    reads: bool
    user: str


class Answering:
    """Answers plans for one caller. Used on the event loop."""

    def __init__(self, services: Services, who: Identity) -> None:
        self._services = services
        self._who = who
        self._ending: set[asyncio.Task[None]] = set()

    # --- rows -------------------------------------------------------------------------------------

    def at_once(self, plan: Plan, most: int) -> Rows | None:
        """The rows of a plan that takes little; None: they are more, or are waited for.

        Raises what refuses it.
        """
        if not isinstance(plan, Whole) or plan.first is not None or plan.period is not None:
            return None
        identifier = self._opened(plan)
        taken = self._services.snapshots.at_once(identifier, "rows")
        return None if taken is None or taken.answer.rows.n > most else self._whole(identifier, taken)

    async def result(self, plan: Plan, values: Sequence[Value], reads_only: bool) -> Result:
        """What a plan gives. reads_only: nothing may be changed. Raises what refuses it."""
        match plan:
            case Whole():
                return await self._answer(plan)
            case Evaluated():
                return await self._evaluated(plan, values)
            case Once():
                return await self._once(plan, values)
            case Carried():
                return await self._carried(plan, values, reads_only)
            case Copied():
                return await self.result(plan.plan, values, reads_only)
        raise AssertionError(plan)  # the connection follows what is subscribed to

    def _opened(self, plan: Whole) -> str:
        """The id of the query, for who may have its answer. Raises UnknownQuery, HandleNeeded."""
        identifier = self._services.relations.query(plan.name, plan.schema)
        if identifier is None:
            raise UnknownQuery(hint="SELECT table_name FROM information_schema.tables lists what there is")
        return self._services.relations.open(plan.name, self._who.operator)

    async def _answer(self, plan: Whole) -> Rows:
        identifier = self._opened(plan)
        taken = await self._services.snapshots.take(identifier, "rows", plan.period, None, plan.first)
        columns = self._services.relations.query_columns(identifier)
        return _rows(taken, over_period(columns, plan.period))

    def _whole(self, identifier: str, taken: TakenAnswer) -> Rows:
        return _rows(taken, self._services.relations.query_columns(identifier))

    async def _evaluated(self, plan: Evaluated, values: Sequence[Value], *, empty: bool = False) -> Rows:
        """empty: its columns alone, over answers without rows."""
        answers = {}
        for schema, name in plan.queries:
            whole = Whole(name, schema, 0 if empty else None)
            answers[schema, name] = (await self._answer(whole)).table
        plain = [_evaluated_value(value) for value in values]
        select = Select(plan.sql, plan.tree, answers, plain, self._who.user)
        table = await self._services.evaluation.evaluate(select, 0 if empty else None)
        return Rows(tuple(types.field(one.name, one.type) for one in table.schema), table)

    async def _once(self, plan: Once, values: Sequence[Value]) -> Rows:
        name, columns, told = await self._begun(plan, values, ONCE)
        try:
            taken = await self._services.snapshots.take(name, "rows", plan.period)
            return _rows(taken, over_period(columns, plan.period), told.get("warnings") or ())
        finally:
            self._end_later(name)

    async def _begun(
        self, plan: Once, values: Sequence[Value], options: Mapping[str, Any]
    ) -> tuple[str, Columns, dict[str, Any]]:
        """Register a query that is ended later, and wait until it has read what is there: its id, columns,
        and what was told. Raises what refuses it.
        """
        if self._who.reads:
            raise ReadToken
        wording = _wording(plan.sql, values)
        columns = await self._columns(plan, wording)
        handle = Handle(new_handle())
        name = query_id(handle)
        try:
            request = RegisterRequest(wording, handle, dict(options), is_handle_ours=True)
            status, told = await self._services.requests.writes.register(request)
            if status >= 400:
                raise refused(told)
            await self._stands(name)
            await self._caught_up(name)
        except BaseException:
            self._end_later(name)
            raise
        return name, columns, told

    async def subscription(self, plan: Subscribed, values: Sequence[Value], form: int = 0) -> Subscription:
        """A query's answer and changes, to be closed. form: of its rows. Raises what refuses it."""
        if isinstance(plan.plan, Whole):
            name = self._opened(plan.plan)
            columns = self._services.relations.query_columns(name)
            leave: Callable[[], None] = _nothing
        else:
            name, columns, _ = await self._begun(plan.plan, values, {})
            leave = partial(self._end_later, name)
        made = Subscription(self._services.feeds, columns, leave, form)
        try:
            await made.open(name, plan.since, snapshot=plan.snapshot)
        except BaseException:
            made.close()
            raise
        return made

    def _end_later(self, name: str) -> None:
        ending = asyncio.ensure_future(self._end(name))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def _end(self, name: str) -> None:
        with contextlib.suppress(TureenError):
            await self._services.requests.writes.unregister(name)

    async def _stands(self, name: str) -> None:
        """Return once a query that is on its way stands. Raises why it does not."""
        deadline_s = time.monotonic() + self._services.settings.answer_ms_max / 1_000
        while True:
            entry = self._services.node.directory.found(name)
            if entry is not None and entry.shard is not None:
                return
            error = {} if entry is None else entry.error or {}
            if error and error.get("code") not in (BeingPrepared.code, BeingRegistered.code):
                raise refused(error)
            if time.monotonic() > deadline_s:
                raise LimitExceeded("answer_ms_max", self._services.settings.answer_ms_max)
            await asyncio.sleep(LOOK_S)

    async def _caught_up(self, name: str) -> None:
        """Return once its sources have what their topics held, or after a while: the answer tells of it."""
        node = self._services.node
        end_s = time.monotonic() + self._services.settings.outcome_wait_ms / 1_000
        waiting = CatchUpWait(FOR_NOW_S, time.monotonic())
        while time.monotonic() < end_s:
            entry = node.directory.found(name)
            if entry is None or entry.shard is None:
                return
            view = node.shards[entry.shard].view()
            with contextlib.suppress(UnknownQuery):
                behind = view.catching_up(view.query(name).sources)
                if waiting.is_over(behind, time.monotonic()):
                    return
            await asyncio.sleep(LOOK_S)

    # --- statements -------------------------------------------------------------------------------

    async def _carried(self, plan: Carried, values: Sequence[Value], reads_only: bool) -> Result:
        wording = _wording(plan.sql, values)
        try:
            if plan.registers:
                status, told = await self._registered(wording, reads_only)
            else:
                status, told = await self._executed(wording, reads_only)
        except UnknownSource as unknown:
            raise self._perhaps_a_query(unknown, plan) from None
        if status >= 400:
            raise refused(told)
        if "columns" in told:
            return listed(told["columns"], told["rows"], words_of(plan.sql)[0])
        return Done(_tag(plan, told), tuple(_notices(told)), changes=True)

    async def _registered(self, wording: Wording, reads_only: bool) -> tuple[int, dict[str, Any]]:
        if self._who.reads:
            raise ReadToken
        if reads_only:
            raise ReadOnlyTransaction
        request = RegisterRequest(wording, Handle(new_handle()), {}, is_handle_ours=True)
        return await self._services.requests.writes.register(request)

    async def _executed(self, wording: Wording, reads_only: bool) -> tuple[int, dict[str, Any]]:
        statement = await self._services.node.understand(wording.sql, wording.parameters)
        if reads_only and not isinstance(statement, READING):
            raise ReadOnlyTransaction
        try:
            requests = self._services.requests
            status, told = await requests.statements.carry_out(statement, self._who.operator, self._who.reads)
            if isinstance(statement, DropStream) and requests.drops.is_under_way(statement.name):
                wait_s = self._services.settings.answer_ms_max / 1_000  # clients do not look again
                return await requests.drops.awaited(statement.name, wait_s)
            return status, told
        except SourceConflict as conflict:
            if not isinstance(statement, DropStream):
                raise
            there = kind_of(self._services.node.directory.catalogue.get(statement.name))
            error = SourceIsRead if said_of(statement) == there else SourceOfAnotherKind
            raise error(conflict.message, hint=conflict.hint) from None

    def _perhaps_a_query(self, unknown: UnknownSource, plan: Carried) -> UnknownSource:
        """What is told of a name that no source has, where a query has it."""
        name = unknown.name
        if keyword(plan.sql) == "DROP" or self._services.relations.query(name) is None:
            return unknown
        hint = f"it is the name of a query: CREATE VIEW with the text of {name}, and read that"
        if keyword(plan.sql) == "EXPLAIN":
            hint = f"it is the name of a query: write EXPLAIN QUERY {name}"
        return UnknownSource(name, hint=hint, line=unknown.line, column=unknown.column)

    # --- what is told before ----------------------------------------------------------------------

    def parameter_types(self, plan: Plan, given: Sequence[int], count: int) -> tuple[int, ...]:
        """The types of a statement's parameters: as the client said, else as they are used, else text."""
        inner = plan.plan if isinstance(plan, Copied | Subscribed) else plan
        inner = inner.plan if isinstance(inner, Subscribed) else inner
        tree = inner.tree if isinstance(inner, Evaluated) else None
        if isinstance(inner, Once):
            tree = rewriting.select_of(inner.sql)
        found = {} if tree is None else rewriting.parameter_uses(tree)
        columns = {} if tree is None else self._columns_of(tree)
        oids = []
        for place in range(max(count, max(found, default=0), len(given))):
            oid = given[place] if place < len(given) else 0
            if oid in (0, types.UNKNOWN):
                oid = _used_as(found.get(place + 1), columns)
            oids.append(oid)
        return tuple(oids)

    def _columns_of(self, tree: Any) -> dict[str, int]:
        """Types of the columns of the relations of a SELECT, by name."""
        relations = self._services.relations
        found: dict[str, int] = {}
        for schema, name in rewriting.relations_of(tree):
            with contextlib.suppress(TureenError):
                identifier = relations.query(name, schema)
                if schema != "queries" and relations.is_source(name):
                    columns = relations.source_columns(name)
                elif identifier is not None:
                    columns = relations.query_columns(identifier)
                else:
                    continue
                found |= {column.lower(): types.field_of(column, type_).oid for column, type_ in columns}
        return found

    async def fields(self, plan: Plan, oids: Sequence[int]) -> tuple[Field, ...] | None:
        """The columns of a plan's rows; None: it has none, or they are known when it was carried out."""
        match plan:
            case Whole():
                identifier = self._opened(plan)
                columns = self._services.relations.query_columns(identifier)
                return _fields(over_period(columns, plan.period))
            case Evaluated():
                return (await self._evaluated(plan, [None] * len(oids), empty=True)).fields
            case Subscribed(inner):
                found = await self.fields(inner, oids)
                return None if found is None else (*LEADING, *found)
            case Once():
                return _fields(over_period(await self._once_columns(plan, oids), plan.period))
        return None

    async def schema(self, plan: Plan, oids: Sequence[int]) -> pa.Schema | None:
        """What :meth:`fields` tells, as Arrow has it."""
        match plan:
            case Whole():
                return (await self._answer(replace(plan, first=0))).table.schema
            case Evaluated():
                return (await self._evaluated(plan, [None] * len(oids), empty=True)).table.schema
            case Subscribed(Whole() as whole):
                return schema_of(self._services.relations.query_columns(self._opened(whole)))
            case Subscribed(Once() as once):
                return schema_of(await self._once_columns(once, oids))
            case Once():
                columns = over_period(await self._once_columns(plan, oids), plan.period)
                return pa.schema([(name, type_.arrow) for name, type_ in columns])
        return None

    async def _once_columns(self, plan: Once, oids: Sequence[int]) -> Columns:
        """The columns of a SELECT before its values are known."""
        if self._who.reads:
            raise ReadToken
        return await self._columns(plan, _wording(plan.sql, [_EXAMPLES.get(oid, "") for oid in oids]))

    async def _columns(self, plan: Once, wording: Wording) -> Columns:
        """Raises LimitExceeded of a text over queries that is too long to be looked at for these."""
        relations = self._services.relations
        try:
            statement = await self._services.node.understand(wording.sql, wording.parameters)
        except UnknownSource as unknown:
            is_query = relations.query(unknown.name) is not None or is_catalogue(
                (None, unknown.name), relations
            )
            if is_query and len(plan.sql) > rewriting.TEXT_MAX:
                raise rewriting.too_long(plan.sql) from None
            raise
        return tuple(statement.columns) if isinstance(statement, Query) else ()


_EXAMPLES: dict[int, Value] = {
    types.BOOL: True,
    types.INT2: 1,
    types.INT4: 1,
    types.INT8: 1,
    types.FLOAT4: 1e300,
    types.FLOAT8: 1e300,
    types.NUMERIC: 1.5,
    types.DATE: "2000-01-01",
    types.TIMESTAMP: "2000-01-01 00:00:00",
    types.TIMESTAMPTZ: "2000-01-01 00:00:00",
    types.UUID: "00000000-0000-0000-0000-000000000000",
}
_EXAMPLES |= {array: Array(element, ()) for array, element in types.ELEMENTS.items()}
"""A value of each type, to know the columns of a SELECT before its values."""


def _nothing() -> None:
    """A registered query stays when nobody follows it any more."""


def _used_as(use: tuple[str, str] | None, columns: Mapping[str, int]) -> int:
    """The oid of a parameter by its use. columns: types by name."""
    if use is None:
        return types.TEXT
    kind, name = use
    if kind == "type":
        return types.oid_of_name(name)
    oid = columns.get(name.lower(), types.TEXT)
    return types.ARRAYS.get(oid, oid) if kind == "elements" else oid


def _evaluated_value(value: Value) -> object:
    """A value as DuckDB takes it: instants without their zone, as columns have them; arrays as lists."""
    if isinstance(value, Array):
        return [_evaluated_value(one) for one in value.elements]
    return value.astimezone(UTC).replace(tzinfo=None) if isinstance(value, datetime) else value


def _wording(sql: str, values: Sequence[Value]) -> Wording:
    """A text with its values. Bytes are base64 in rows that are written, else what decodes them stands for
    them; what reads an array from JSON for an array.
    """
    if keyword(sql) == "INSERT":
        values = [b64encode(one).decode() if isinstance(one, bytes) else one for one in values]
    forms = {
        place: "DECODE({}, 'hex')" if isinstance(one, bytes) else f"CAST({{}} AS {one.type})"
        for place, one in enumerate(values, 1)
        if isinstance(one, bytes | Array)
    }
    if forms:
        sql = rewriting.with_placeholders(sql, forms)
    return Wording(sql, [constant(one) for one in values] if values else None)


def _fields(columns: Columns) -> tuple[Field, ...]:
    return tuple(types.field_of(name, type_) for name, type_ in columns)


def _rows(taken: TakenAnswer, columns: Columns, notices: Sequence[dict[str, Any]] = ()) -> Rows:
    answer = taken.answer
    schema = answer.rows.schema
    if [name for name, _ in columns] == schema.names:
        fields = _fields(columns)
    else:
        fields = tuple(types.field(one.name, one.type) for one in schema)
    warnings = [str(one.get("message")) for one in notices]
    behind = catching_up_of(one.as_dict() for one in answer.catching_up)
    warnings += incomplete(behind, answer.complete_from_ms)
    if answer.approximation:
        warnings.append("the answer is approximate: " + ", ".join(one.kind for one in answer.approximation))
    warnings += not_computed(answer.condition_errors, answer.errors)
    return Rows(fields, answer.rows.table, tuple(warnings))


def _tag(plan: Carried, told: dict[str, Any]) -> str:
    if told.get("state") == "WRITTEN":
        return f"INSERT 0 {told['written']}"
    if plan.registers:
        return "REGISTER"
    words = [word for word in words_of(plan.sql)[:5] if word not in ("OR", "REPLACE")]
    return " ".join(words[: 3 if words[1:2] == ["MATERIALIZED"] else 2])


def _notices(told: dict[str, Any]) -> list[tuple[str, str | None]]:
    """What a client is told besides the tag; the handle of a new query, which is told this once."""
    found: list[tuple[str, str | None]] = []
    if "handle" in told:
        found.append((f"handle: {told['handle']}", "it opens the answer, and is not shown again"))
    if "topic_existed" in told and "sql" in told:
        found.append((f"it means: {told['sql']}", "its columns were inferred from records, and stay so"))
    if told.get("skipped"):
        found.append(("nothing was done: it exists already, or does not exist", None))
    error = told.get("error")
    if error:
        found.append((f"{told.get('state')}: {error.get('message')}", error.get("hint")))
    found += [(str(one.get("message")), one.get("hint")) for one in told.get("warnings") or ()]
    return found
