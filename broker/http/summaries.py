"""Summaries over HTTP: created, altered and dropped by way of the topic of streams, listed, described.

What can be refused on sight is refused before anything is written. The definitions are the directory's, what
a summary counted is asked of its home shard between two steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from broker.base.entries import SummaryEntry
from broker.base.internal import Outcome
from broker.base.settings import Settings
from broker.http.errors import status_of
from broker.http.writes import Answer, Writes
from broker.node.node import Node
from broker.observe.entities import Entities
from engine.language.query import AlterSummary, CreateSummary, DropSummary
from engine.language.summary_text import summary_text
from engine.model.attributes import AttributeValue, edits
from engine.model.summary import SummaryDefinition, SummaryName, SummarySettings
from engine.queries.definitions import Create, Decision, Drop, decide
from tureen.errors import BrokerUnavailable, TureenError, UnknownEntity, UnknownSummary
from tureen.protocol import SUMMARY_KEY

ENTITY = "summary/"


class SummaryRequests:
    """Used on the event loop."""

    def __init__(self, settings: Settings, node: Node, writes: Writes) -> None:
        self._topic = settings.names.sources
        self._node = node
        self._writes = writes

    # --- changes ----------------------------------------------------------------------------------

    async def make(self, statement: CreateSummary | AlterSummary | DropSummary) -> Answer:
        """(status, what became of it). Raises UnknownSummary, SummaryConflict, KafkaUnavailable,
        BrokerUnavailable.
        """
        match statement:
            case CreateSummary():
                return await self._create(statement)
            case AlterSummary(name):
                entry = self._standing(name)
                return await self._alter(entry, statement.applied(entry.definition.settings))
            case DropSummary(name, if_exists):
                return await self.drop(name, if_exists=if_exists)

    async def _create(self, statement: CreateSummary) -> Answer:
        wanted = statement.definition
        directory = self._node.directory
        asked = Create(wanted, if_not_exists=statement.if_not_exists)
        if decide(wanted.name, asked, directory.definitions) is Decision.SAME:
            there = directory.summaries[wanted.name].definition
            told = _made(wanted.name, {"state": "RUNNING"}, there)
            skipped = {"skipped": True, "differs": there != wanted} if statement.if_not_exists else {}
            return 200, told | skipped
        outcome = await self._written(wanted.name, statement.sql)
        return _answer(wanted, outcome, 201)

    async def _alter(self, entry: SummaryEntry, settings: SummarySettings) -> Answer:
        wanted = replace(entry.definition, settings=settings)
        asked = Create(wanted, replaces=True)
        if decide(wanted.name, asked, self._node.directory.definitions) is Decision.SAME:
            return 200, _made(wanted.name, {"state": "RUNNING"}, wanted)
        return _answer(wanted, await self._written(wanted.name, summary_text(wanted)), 200)

    async def set(
        self, entities: Entities, id_: str, values: Mapping[str, AttributeValue], version: int | None
    ) -> int:
        """Set attributes of the entity of a summary, which alters it wherever it stands. version: that the
        entity must still have. Returns 200, or 202 where the outcome is not known yet.

        Raises UnknownEntity, AttributeRefused, EditConflict, KafkaUnavailable, BrokerUnavailable, and the
        refusal of its shard.
        """
        entity = await entities.one(id_)
        changed = edits(id_, entity.attributes, values, version)
        entry = self._node.directory.summaries.get(id_.partition(ENTITY)[2])
        if entry is None:
            raise UnknownEntity(id_)
        settings = replace(entry.definition.settings, **changed)  # type: ignore[arg-type]
        status, told = await self._alter(entry, settings)
        if status >= 400:
            raise TureenError(told["message"], hint=told.get("hint"))
        entities.outdate()
        return status

    async def drop(self, name: SummaryName, *, if_exists: bool = False) -> Answer:
        """Raises UnknownSummary, SummaryConflict, KafkaUnavailable."""
        directory = self._node.directory
        told: dict[str, Any] = {"name": name, "kind": "summary"}
        decision = decide(name, Drop("summary"), directory.definitions)
        if decision is Decision.ABSENT and name not in directory.waiting_summaries:
            if if_exists:
                return 200, told | {"state": "GONE", "skipped": True}
            raise _unknown(name)
        outcome = await self._writes.written(self._topic, SUMMARY_KEY + name, None)
        if outcome is None:
            return 202, told | {"state": "PENDING"}
        if outcome["state"] == "ERROR":
            error = outcome.get("error") or {}
            return status_of(error), told | {"state": "ERROR"} | error
        return 200, told | {"state": "GONE"}

    async def _written(self, name: SummaryName, sql: str) -> Outcome | None:
        if not self._node.life.reconciled:
            raise BrokerUnavailable("the registry is still being read", hint="try again in a second")
        return await self._writes.written(self._topic, SUMMARY_KEY + name, orjson.dumps({"sql": sql}))

    # --- lists ------------------------------------------------------------------------------------

    async def listed(self) -> list[dict[str, Any]]:
        """Every summary, standing or not, by name."""
        directory = self._node.directory
        found = []
        homes = {entry.shard for entry in directory.summaries.values()}
        known: dict[str, dict[str, Any]] = {}
        for number in sorted(homes):
            if self._node.shards[number].state == "live":
                known |= await self._node.shards.ask(number, lambda engine: engine.summary_facts())
        for name, entry in directory.summaries.items():
            found.append(self._facts(entry) | known.get(name, {"rows": None, "zones": None, "bytes": None}))
        for name, waiting in directory.waiting_summaries.items():
            found.append(
                {"name": name, "sql": waiting.sql, "state": waiting.state, "error": waiting.error}
                | dict.fromkeys(_OF_STANDING)
                | {"queries": 0}
            )
        return sorted(found, key=lambda one: str(one["name"]))

    async def described(self, name: SummaryName) -> dict[str, Any]:
        """One with all that is known of it. Raises UnknownSummary, BrokerUnavailable."""
        entry = self._standing(name)
        facts = await self._node.shards.ask(entry.shard, lambda engine: engine.summary_facts(name))
        return self._facts(entry) | facts.get(name, {})

    def _facts(self, entry: SummaryEntry) -> dict[str, Any]:
        definition = entry.definition
        return {
            "name": definition.name,
            "stream": definition.stream,
            "attribute": definition.attribute,
            "sql": entry.sql,
            "state": "RUNNING",
            "error": None,
            "shard": entry.shard,
            "granularity_ms": definition.granularity_ms,
            "rate": definition.rate,
            "depth": definition.depth,
            "reach_ms": definition.reach_ms,
            "settings": settings_as_dict(definition),
            "queries": len(self._node.directory.users(definition.name)),
        }

    def _standing(self, name: SummaryName) -> SummaryEntry:
        entry = self._node.directory.summaries.get(name)
        if entry is None:
            raise _unknown(name)
        return entry


_OF_STANDING = (
    "stream",
    "attribute",
    "shard",
    "granularity_ms",
    "rate",
    "depth",
    "reach_ms",
    "settings",
    "rows",
    "zones",
    "bytes",
)


def settings_as_dict(definition: SummaryDefinition) -> dict[str, Any]:
    """As SETTINGS has them; the longest zone in ms, as it is."""
    settings = definition.settings
    return {
        "kind": settings.kind,
        "sketch_depth": settings.sketch_depth,
        "sketch_width": settings.sketch_width,
        "buckets": settings.buckets,
        "bucket_function": settings.bucket_function,
        "theta": settings.theta,
        "zone_length_max_ms": definition.zone_length_max_ms,
        "zone_rows_min": settings.zone_rows_min,
    }


def _unknown(name: SummaryName) -> UnknownSummary:
    return UnknownSummary(
        name, f"there is no summary named {name!r}", hint="SHOW SUMMARIES lists those there are"
    )


def _answer(definition: SummaryDefinition, outcome: Outcome | None, made: int) -> Answer:
    """made: the status of a success."""
    told = _made(definition.name, outcome or {"state": "PENDING"}, definition)
    if outcome is None or outcome["state"] == "PENDING":
        return 202, told
    if outcome["state"] == "ERROR":
        error = outcome.get("error") or {}
        return status_of(error), told | error
    return made, told


def _made(name: SummaryName, outcome: Outcome, definition: SummaryDefinition) -> dict[str, Any]:
    return {
        "name": name,
        "kind": "summary",
        "stream": definition.stream,
        "attribute": definition.attribute,
        "reach_ms": definition.reach_ms,
        "state": outcome["state"],
        "error": outcome.get("error"),
    }
