"""``?dry_run=true``: what an edit would set, and what that would do to answers, state and memory.

Everything is checked as the edit itself checks it: types, ranges, rights, versions, tolerances, texts. Then
nothing is done. The answer is ``{"values": {name: {"from", "to"}}, "consequences": [{"code", "text"}]}``,
where consequences come from one table (:mod:`broker.allotment.consequences`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from broker.allotment.consequence import Change, Consequence, together
from broker.allotment.consequences import consequences
from broker.base import options as query_options
from broker.base.entries import QueryEntry
from broker.http.options import CHANGEABLE, ChangeRequest, QueryChanges
from broker.node.node import Node
from broker.observe.allotments import WINDOW, allotment_attributes, source_of
from broker.observe.entities import Entities
from broker.observe.query_attributes import query_attributes
from engine.model.approximation import NOT_KNOWN
from engine.model.attributes import Attribute, AttributeValue, edits
from engine.model.source import SourceName
from engine.queries.kept_rows import KeptRows
from engine.standing.query import StandingQuery
from tureen.errors import UnknownQuery

Told = dict[str, Any]

REFETCH = Consequence(
    "feeds_must_refetch",
    "Feeds end with must_refetch: the answer is to be fetched again. A result topic takes the old one back.",
)
DIFFERENCE = Consequence(
    "feeds_get_difference", "Whoever follows the query gets the difference of both answers as one change."
)
TEXT = (
    Consequence("answers_change", "From the step of the change on the answer is that of the new text."),
    Consequence("journalled", "It is a step of the journal: a replay gives the same answers."),
    Consequence("registered", "It is kept with the registration, and outlives a restart."),
)


class DryRuns:
    """Used on the event loop."""

    def __init__(self, node: Node, entities: Entities, changes: QueryChanges) -> None:
        self._node = node
        self._entities = entities
        self._changes = changes

    async def of_shared(
        self, id_: str, values: Mapping[str, AttributeValue], version: int | None, summary: bool
    ) -> Told:
        """Tell what an edit of an entity that is no query would do. summary: the entity is a summary's.

        Raises UnknownEntity, AttributeRefused, EditConflict, BrokerUnavailable.
        """
        if summary:
            attributes = (await self._entities.one(id_)).attributes
            read = edits(id_, attributes, values, version)
        else:
            attributes, read = await self._entities.checked(id_, values, version)
        module = id_.split("/")[1] if "/" in id_ else id_
        facts = {one.name: one.value for one in attributes}
        return _told([Change(module, name, facts[name], after, facts) for name, after in read.items()])

    async def of_allotment(
        self, name: str, values: Mapping[str, AttributeValue], version: int | None
    ) -> Told:
        """Tell what an edit of a query's allotment would do, which is what the query is given of what it asks
        for. Raises UnknownQuery, AttributeRefused, AllotmentRefused, EditConflict, BrokerUnavailable.
        """
        standing, expected, kept = await self._entities.expecting(name, values, version)
        known = {one.name: one for one in self._given(standing)}
        changes = []
        for attribute, given in values.items():
            one = known[attribute]
            assert one.bounds is not None
            after = one.bounds.high if (read := one.read(given)) is None else read
            after = int(after) if one.kind == "integer" and isinstance(after, float) else after
            changes.append(
                Change(
                    "query",
                    attribute,
                    one.value,
                    after,
                    {f"{attribute}.asked": one.bounds.high},
                    _window_bytes(kept, standing, one, after),
                    expected.expected if expected else NOT_KNOWN,
                )
            )
        return _told(changes)

    def _given(self, standing: StandingQuery) -> tuple[Attribute, ...]:
        return allotment_attributes(standing, self._node.directory.streams())

    async def of_query(
        self, name: str, request: ChangeRequest, require: Callable[[QueryEntry], None] | None = None
    ) -> Told:
        """Tell what a change of a query's options, or of its text and options, would do. require: raises
        where the query is not as it must be.

        Raises what :meth:`broker.http.options.QueryChanges.change` raises before it writes.
        """
        if require is not None:
            require(self._entry(name))
        if request.wording is None:
            entry, options = await self._changes.checked(name, request)
            return _renamed(entry, options, _told(self._of_options(name, entry, options, request.options)))
        altered = await self._changes.altered(name, request)
        entry = altered.entry
        told = _told(self._of_options(name, entry, altered.options, request.options))
        if not altered.same and entry.said != request.wording.said:
            fields = request.wording.fields()
            before: Told = {"sql": entry.sql}
            if entry.parameters is not None:
                before["parameters"] = entry.parameters
            found = [*TEXT, DIFFERENCE if altered.continues else REFETCH]
            passed = {"answers_stay", "nothing_changes"} | {each.code for each in found}
            rest = [one for one in told["consequences"] if one["code"] not in passed]
            told = {
                "values": {"text": {"from": before, "to": fields}} | told["values"],
                "consequences": [one.as_dict() for one in found] + rest,
            }
        return told

    def _entry(self, name: str) -> QueryEntry:
        entry = self._node.directory.queries.get(name)
        if entry is None:
            raise UnknownQuery()
        return entry

    def _of_options(
        self, name: str, entry: QueryEntry, options: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> list[Change]:
        """List the changes of the options that are asked for, and of the attributes that change with them."""
        standing = None
        if entry.shard is not None:
            standing = self._node.shards[entry.shard].view().standing.get(name)
        paused = query_options.is_paused(options)
        state = "PAUSED" if paused else "RUNNING" if entry.state == "PAUSED" else entry.state
        coming = replace(entry, options=options, state=state)
        before = _values(query_attributes(entry, standing, CHANGEABLE))
        after = _values(query_attributes(coming, standing, CHANGEABLE))
        return [
            Change("query", one, before.get(one), value, before)
            for one, value in after.items()
            if one != "state" and (one in asked or value != before.get(one))
        ]


def merged(parts: Mapping[str, Told]) -> Told:
    """Merge the dry runs of a plan: those of its options and of each entity that it sets, by their paths in
    it.
    """
    values: Told = {}
    found: list[Told] = []
    for path, told in parts.items():
        values |= {f"{path}.{name}": value for name, value in told["values"].items()}
        found += [one | {"of": path} for one in told["consequences"]]
    return {"values": values, "consequences": found}


def _told(changes: list[Change]) -> Told:
    return {
        "values": {one.name: {"from": one.before, "to": one.after} for one in changes},
        "consequences": together({one.name: consequences(one) for one in changes}),
    }


def _renamed(entry: QueryEntry, options: Mapping[str, Any], told: Told) -> Told:
    """Add the name that the query gets, where it is another; nothing else follows from it."""
    before, after = entry.query_name, query_options.query_name(options)
    values = {} if before == after else {"name": {"from": before, "to": after}}
    return told | {"values": values | told["values"]}


def _values(attributes: tuple[Attribute, ...]) -> dict[str, AttributeValue]:
    return {one.name: one.value for one in attributes}


def _window_bytes(
    kept: Mapping[SourceName, KeptRows], standing: StandingQuery, attribute: Attribute, after: AttributeValue
) -> int | None:
    """What another length of a window takes more, or frees; None: it is no window, or nothing tells."""
    if not attribute.name.startswith(WINDOW):
        return None
    rows = kept.get(source_of(standing, attribute.name))
    if rows is None or not isinstance(after, int | float) or not isinstance(attribute.value, int):
        return None
    before, then = rows.bytes_of(attribute.value, attribute.value), rows.bytes_of(attribute.value, int(after))
    return None if before is None or then is None else then - before
