"""``/plans``: plans as files. Exported, checked, registered, compared and applied to queries that run.

Applying a plan changes how a query runs: its options, and what is set of entities that it shares. State
carries over, no answer changes. A plan that means another query is refused.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson

from broker.base import options as query_options
from broker.http.described import described, standing
from broker.http.dry_runs import merged
from broker.http.entities import EntityRequests
from broker.http.errors import BadRequest
from broker.http.named import known, require_operator
from broker.http.options import CHANGEABLE, QueryChanges, change_request
from broker.http.requests import body_object
from broker.http.writes import Answer
from broker.node.node import Node
from broker.node.plan_files import canonical, exported, plan_for, query_of
from engine.language.query import Query
from tureen.errors import PlanIsAnother, PlanRefused
from tureen.plan_files.check import Plan, check
from tureen.plan_files.text import text_of, with_shared

_OF_PAUSES = ("paused", "release")
"""A plan that says nothing of a pause leaves it."""

HINT = 'send {"plan": {"version": 1, "nodes": {...}, "output": "..."}}'


class PlanFiles:
    """Plans over HTTP."""

    def __init__(
        self, node: Node, changes: QueryChanges, entities: EntityRequests, sql_bytes_max: int
    ) -> None:
        self._node = node
        self._changes = changes
        self._entities = entities
        self._sql_bytes_max = sql_bytes_max

    async def exported(self, given: str) -> dict[str, Any]:
        """The plan of a query, by its handle or id. Raises UnknownQuery, PlanRefused."""
        entry = standing(self._node, known(self._node, given, operator=True))
        return await asyncio.to_thread(exported, self._node.directory, entry)

    async def validated(self, body: bytes) -> dict[str, Any]:
        """``{"plan"}``: its text, its columns, and the plan as it is exported.

        Raises BadRequest, PlanRefused, LimitExceeded, OptionRefused.
        """
        plan = self._plan(body_object(body, hint=HINT))
        return await asyncio.to_thread(self._validated, plan)

    def _validated(self, plan: Plan) -> dict[str, Any]:
        directory, sql = self._node.directory, text_of(plan).sql
        query = query_of(directory, plan)
        query_options.check(query_options.given(plan.get("options", {})))
        return {
            "sql": sql,
            "columns": [{"name": name, "type": str(type_)} for name, type_ in query.columns],
            "plan": plan_for(directory, sql),
        }

    def whole(self, body: bytes) -> bytes:
        """A registration with the operators of other plans that its own names. Raises PlanRefused."""
        if b'"shared"' not in body:
            return body
        fields = body_object(body)
        return orjson.dumps(fields | {"plan": self._plan(fields)}) if "plan" in fields else body

    def checked(self, body: bytes) -> None:
        """Raises PlanRefused, with the path, for a registration whose plan is refused; any other passes."""
        if b'"plan"' in body:
            fields = body_object(body)
            if "plan" in fields:
                query_of(self._node.directory, fields["plan"])

    def _plan(self, fields: dict[str, Any]) -> Plan:
        if "plan" not in fields:
            raise BadRequest("plan is missing", hint=HINT)
        plan = check(fields["plan"])
        if any(node["op"] == "shared" for node in plan.get("nodes", {}).values()):
            plan = check(with_shared(plan, self._resolved))
        return plan

    def _resolved(self, query: str, node: str) -> tuple[Plan, str]:
        entry = self._node.directory.queries.get(query)
        if entry is None:
            raise PlanRefused("nodes", f"there is no query {query!r}", hint="name it by its public id")
        return exported(self._node.directory, entry), node

    async def apply(self, given: str, body: bytes, operator: bool) -> Answer:
        """``{"plan"}`` for a query that runs, by its handle; the operator by its id.

        Raises BadRequest, UnknownQuery, HandleNeeded, PlanRefused, PlanIsAnother, OptionRefused, and what
        setting attributes raises.
        """
        name, options, operators = await self._applied(given, body, operator)
        status = 200
        if options:
            request = change_request(orjson.dumps(options), self._sql_bytes_max)
            status, told = await self._changes.change(name, request)
            if status >= 400:
                return status, told
        for id_, values in operators.items():
            await self._entities.edit(id_, orjson.dumps(values), operator)
        return status, described(self._node, name)

    async def dry_run(self, given: str, body: bytes, operator: bool) -> dict[str, Any]:
        """What :meth:`apply` would set, and what that would do; nothing is done. Raises as that."""
        name, options, operators = await self._applied(given, body, operator)
        parts: dict[str, dict[str, Any]] = {}
        if options:
            request = change_request(orjson.dumps(options), self._sql_bytes_max)
            parts["options"] = await self._entities.dry_runs.of_query(name, request)
        for id_, values in operators.items():
            parts[f"operators.{id_}"] = await self._entities.dry_run(id_, orjson.dumps(values), operator)
        return merged(parts)

    async def _applied(
        self, given: str, body: bytes, operator: bool
    ) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """The id of the query, the options that the plan changes, and what it sets of entities."""
        name = known(self._node, given, operator)
        plan = self._plan(body_object(body, hint=HINT))
        entry = standing(self._node, name)
        await asyncio.to_thread(self._require_same, name, plan)
        wanted = plan.get("options", {})
        strange = [option for option in wanted if option not in CHANGEABLE]
        if strange and wanted[strange[0]] != entry.options.get(strange[0]):
            can = ", ".join(CHANGEABLE)
            raise PlanRefused(
                f"options.{strange[0]}", "it cannot be changed while it runs", hint=f"{can} can"
            )
        operators = plan.get("operators", {})
        if operators:
            require_operator(operator)
        options = {one: wanted.get(one) for one in CHANGEABLE if one in wanted or one not in _OF_PAUSES}
        options = {one: value for one, value in options.items() if value != entry.options.get(one)}
        return name, options, operators

    def _require_same(self, name: str, plan: Plan) -> None:
        directory = self._node.directory
        entry = standing(self._node, name)
        assert entry.sql is not None
        before = directory.parse(entry.sql, entry.parameters)
        assert isinstance(before, Query)
        was, now = canonical(directory, before), canonical(directory, query_of(directory, plan))
        if was != now:
            raise PlanIsAnother(_difference(was, now))


def _difference(was: Any, now: Any) -> str:
    """The path to the first thing that differs.

    >>> _difference({"nodes": {"s": {"op": "scan"}}}, {"nodes": {"s": {"op": "scan", "where": "a"}}})
    'nodes.s.where'
    """
    path: list[str] = []
    while isinstance(was, dict) and isinstance(now, dict):
        name = next(
            (name for name in (*now, *was) if name not in was or name not in now or was[name] != now[name]),
            None,
        )
        if name is None:
            break
        path.append(name)
        was, now = was.get(name), now.get(name)
    return ".".join(path) or "plan"
