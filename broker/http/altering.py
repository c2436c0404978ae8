"""Another text for a query under the same handle, while it runs.

The text is checked first: one that is refused leaves everything as it is. Then the registration is published
again with the new text and the same options; while another change of the query waits, with those of that one.
Where the worker refuses it all the same, it keeps running the text before, which is then published again, so
that the topic says what runs.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

import orjson

from broker.base import options as query_options
from broker.base.entries import QueryEntry
from broker.http.described import described, standing, staying
from broker.http.errors import status_of
from broker.http.writes import Answer, Writes, is_on_its_way
from broker.node.node import Node
from engine.changes.output import continues
from engine.language.query import Query, Statement
from topics.wording import Wording
from tureen.errors import NotSupported, TureenError


class Altered(NamedTuple):
    """entry: the query as it is. options: those that it will have. same: it has them, and the text, already,
    or is to have them. continues: feeds go on with the difference of both answers, else they are to be
    fetched again.
    """

    entry: QueryEntry
    options: dict[str, Any]
    same: bool
    continues: bool


class Alterations:
    """Alters queries by way of their topic. Its caller has alterations of one query take turns."""

    def __init__(self, node: Node, writes: Writes) -> None:
        self._node = node
        self._writes = writes

    async def alter(self, name: str, wording: Wording, options: dict[str, Any]) -> Answer:
        """(status, the query as GET gives it, and what its change feeds do).

        options: those that change with it. Raises UnknownQuery, QueryError, LimitExceeded, OptionRefused,
        KafkaUnavailable.
        """
        entry, merged, same, goes_on = await self.checked(name, wording, options)
        changes = "continue" if goes_on else "must_refetch"
        if same:
            return 200 if entry.coming is None else 202, described(self._node, name) | {"changes": changes}
        before = orjson.dumps(query_options.published(entry.record({})))
        with self._writes.reserved(name, wording):
            value = orjson.dumps(query_options.published(wording.fields() | {"options": merged}))
            outcome = await self._writes.written_query(name, value)
            if outcome is None:
                entry.comes(wording, merged)
                return 202, {"query_id": name, "state": "PENDING"}
            if is_on_its_way(outcome):
                return 202, described(self._node, name) | {"changes": changes}
            refused = standing(self._node, name).said != wording.said
            if refused:
                await self._writes.written_query(name, before)
        if refused or outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), {"query_id": name, "state": outcome["state"], "error": error} | error
        return 200, described(self._node, name) | {"changes": changes}

    async def checked(self, name: str, wording: Wording, options: dict[str, Any]) -> Altered:
        """What an alteration would make of a query; nothing changes. Raises UnknownQuery, QueryError,
        LimitExceeded, OptionRefused.
        """
        entry = staying(self._node, name)
        newest = entry.newest
        merged = query_options.merged(newest.options, options)
        query = await asyncio.to_thread(self._understood, wording, merged)
        if not isinstance(query, Query):
            raise NotSupported("only a SELECT can be a query's text", hint="CREATE and DROP are statements")
        same = newest.said == wording.said and merged == dict(newest.options) and entry.state != "ERROR"
        goes_on = (same and newest is entry) or await self._continues(entry, query, merged)
        return Altered(entry, merged, same, goes_on)

    def _understood(self, wording: Wording, options: dict[str, Any]) -> Statement:
        return self._node.directory.admitted(options, wording.sql, wording.parameters).read.statement

    async def _continues(self, entry: QueryEntry, query: Query, options: dict[str, Any]) -> bool:
        """Whether feeds go on with the difference of both answers."""
        directory = self._node.directory
        if entry.shard is None or entry.sql is None or entry.shard != directory.home_of(query.sources):
            return False
        if query_options.is_paused(entry.options) or query_options.is_paused(options):
            return False
        with contextlib.suppress(TureenError):  # the text before may mean nothing any more
            before = await self._node.understand(entry.sql, entry.parameters)
            return isinstance(before, Query) and continues(before, query, directory.streams())
        return False
