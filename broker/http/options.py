"""PATCH of a query while it runs: pause, resume, maintenance, weight, tolerance, latency, strategy, text.

The topic is the truth: the registration is published again with the options merged, and the answer waits
until the shard has applied it. Changes of one query are made one after another, so that none undoes another.
"""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from broker.base import options as query_options
from broker.base.entries import QueryEntry
from broker.http.altering import Alterations, Altered
from broker.http.described import described, standing, staying
from broker.http.errors import BadRequest, QueryNotRunning, status_of
from broker.http.requests import body_object
from broker.http.writes import Answer, Writes, is_on_its_way
from broker.node.node import Node
from engine.language.places import did_you_mean
from engine.model.query_name import NAME_OPTION
from topics.wording import FIELDS, Wording, checked_name, wording_of
from tureen.errors import NameInUse, OptionRefused, PreparationTooLong, UnknownSource

_TYPES: dict[str, tuple[type, ...]] = {
    "paused": (bool,),
    "active": (bool,),
    "release": (bool,),
    "maintenance": (str,),
    "weight": (int, float),
    "max_fp": (int, float),
    "max_fn": (int, float),
    "max_error": (int, float),
    "latency_ms_max": (int,),
    "strategy": (str,),
    "structure": (str,),
    "partitions": (int, str),
    "fade": (int, float),
    "priority": (str,),
    "name": (str,),
}
CHANGEABLE = tuple(name for name in _TYPES if name not in ("active", "name"))
"""Options that can be changed while a query runs; ``active`` is the opposite of ``paused``."""
_HINT = 'for example {"paused": true}, {"maintenance": "eager"}, {"weight": 2} or {"sql": "SELECT ..."}'
_JSON = {bool: "true or false", str: "a text", int: "a number"}
_OF_OPERATORS = {"strategy", "structure", "partitions", "fade", "priority", "max_fp", "max_fn", "max_error"}
"""Whether a query can have these depends on what it does."""


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """options: those that are set; None: to the default. wording: the new text; None: it stays."""

    options: dict[str, Any]
    wording: Wording | None = None


def change_request(body: bytes, sql_bytes_max: int) -> ChangeRequest:
    """What a body sets. Raises BadRequest, OptionRefused, LimitExceeded."""
    given = body_object(body, hint=_HINT)
    if not given:
        raise BadRequest("there is nothing to change", hint=_HINT)
    if "active" in given and "paused" in given:
        raise BadRequest("active and paused say the same", hint="give one of them")
    if "plan" in given:
        raise BadRequest("a plan is applied whole", hint='send {"plan": {...}} and nothing else')
    fields = {name: value for name, value in given.items() if name not in FIELDS}
    for name, value in fields.items():
        if name not in _TYPES:
            raise _unknown(name)
        if value is not None and type(value) not in _TYPES[name]:  # true is no number
            raise _of_another_type(name, value)
    if "name" in fields:
        name = fields.pop("name")
        fields[NAME_OPTION] = None if name is None else checked_name(name, BadRequest)
    query_options.check(query_options.given(fields))
    if "active" in fields:
        active = fields.pop("active")
        fields["paused"] = None if active is None else not active
    wording = wording_of(given, sql_bytes_max, BadRequest) if len(fields) < len(given) else None
    return ChangeRequest(fields, wording)


def _of_another_type(name: str, value: object) -> BadRequest:
    hint: str | None = f"JSON has {_JSON[_TYPES[name][0]]} here"
    try:
        query_options.check({name: value})
    except OptionRefused as refused:  # which says what values there are
        hint = refused.hint
    return BadRequest(f"{name} cannot be {value!r}", hint=hint)


def _unknown(name: str) -> BadRequest:
    names = (*_TYPES, "sql")
    meant = did_you_mean(name[:100], names)
    known = f"{', '.join(names)} can"
    return BadRequest(f"{name[:100]!r} cannot be changed", hint=f"{meant} {known}" if meant else known)


class QueryChanges:
    """Changes options and texts of queries that are registered."""

    def __init__(self, node: Node, writes: Writes) -> None:
        self._alterations = Alterations(node, writes)
        self._node = node
        self._writes = writes
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    async def change(
        self, name: str, request: ChangeRequest, require: Callable[[QueryEntry], None] | None = None
    ) -> Answer:
        """(status, the query as GET gives it). require: raises where the query is not as it must be, when it
        is this change's turn.

        Raises UnknownQuery, QueryNotRunning, NameInUse, KafkaUnavailable, and for another text what
        refuses it.
        """
        changes = request.options
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            if require is not None:
                require(standing(self._node, name))
            self._node.directory.queries.names.require(changes.get(NAME_OPTION), name)
            if request.wording is not None:
                return await self._alterations.alter(name, request.wording, changes)
            entry, record = await self._checked(name, changes)
            if record["options"] == dict(entry.newest.options):
                return 200 if entry.coming is None else 202, described(self._node, name)
            before = orjson.dumps(query_options.published(entry.record({})))
            outcome = await self._writes.written_query(name, orjson.dumps(query_options.published(record)))
            error = {} if outcome is None else outcome.get("error") or {}
            refused = error.get("code") in (PreparationTooLong.code, NameInUse.code)
            if refused:
                await self._writes.written_query(name, before)
            if outcome is None:
                entry.comes(entry.newest.wording, record["options"])
        if outcome is None:
            return 202, {"query_id": name, "state": "PENDING"}
        if is_on_its_way(outcome):
            return 202, described(self._node, name)
        if refused or outcome["state"] == "ERROR":
            return status_of(error), {"query_id": name, "state": outcome["state"], "error": error} | error
        return 200, described(self._node, name)

    async def checked(self, name: str, request: ChangeRequest) -> tuple[QueryEntry, dict[str, Any]]:
        """A query, and the options that a change would give it; nothing changes. Raises as :meth:`change`,
        but for another text.
        """
        self._node.directory.queries.names.require(request.options.get(NAME_OPTION), name)
        entry, record = await self._checked(name, request.options)
        return entry, record["options"]

    async def altered(self, name: str, request: ChangeRequest) -> Altered:
        """What another text would make of a query; nothing changes. Raises as :meth:`change`."""
        assert request.wording is not None
        return await self._alterations.checked(name, request.wording, request.options)

    async def _checked(self, name: str, changes: dict[str, Any]) -> tuple[QueryEntry, dict[str, Any]]:
        """The query, and its record with these options."""
        entry = staying(self._node, name)
        if entry.state == "ERROR":
            raise QueryNotRunning(entry.state, entry.error)
        record = entry.record(changes)
        if "paused" in changes:
            record["options"].pop(query_options.PAUSED_BECAUSE, None)  # it is the user's word from now on
        if changes.keys() & _OF_OPERATORS and record["options"] != dict(entry.newest.options):
            await asyncio.to_thread(self._check, entry.newest, record["options"])
        return entry, record

    def _check(self, entry: QueryEntry, options: dict[str, Any]) -> None:
        """Raises OptionRefused. What a text over a missing source means is not known yet."""
        if entry.sql is not None:
            with contextlib.suppress(UnknownSource):
                self._node.directory.admitted(options, entry.sql, entry.parameters)
