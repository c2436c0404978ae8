"""What the registrations of a step ask for: new queries, or other options for queries that stand."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from engine.language.parameters import refused_at, text_of
from engine.language.templates import FixedQuery, Read
from engine.model.defects import refusal_of
from engine.model.limits import Limits
from engine.model.maintenance import QueryOptions
from engine.model.step import Position, Registration
from engine.overload.tolerated import unseen_if_shed
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.catalogue import Catalogue
from engine.queries.possible_options import require_possible
from engine.queries.promising_groups import require_group
from engine.standing.query import StandingQuery
from tureen.errors import BeingPrepared, HandleInUse, LimitExceeded, NotSupported, TureenError, UnknownQuery


@dataclass(slots=True)
class ClassifiedRegistrations:
    """Sorts registrations by what they change. changed: those of standing queries, with the same text and
    other options. coming: those of new queries. failed: why a registration was refused, by query id. One that
    stands as it is asked for is in none of these.
    """

    changed: list[Registration] = field(default_factory=list)
    coming: list[AdmittedQuery] = field(default_factory=list)
    failed: dict[str, Exception] = field(default_factory=dict)

    def refuse(self, apart: Container[str]) -> None:
        """Refuse the changes of standing queries that are set apart."""
        names = [one.query_id for one in self.changed] + [one.query_id for one in self.coming]
        self.failed |= {name: BeingPrepared(0.0) for name in names if name in apart}
        self.changed = [one for one in self.changed if one.query_id not in apart]
        self.coming = [one for one in self.coming if one.query_id not in apart]


def classify(
    registrations: Sequence[Registration],
    position: Position,
    standing: Mapping[str, StandingQuery],
    catalogue: Catalogue,
    limits: Limits,
    room: int,
) -> ClassifiedRegistrations:
    """Look at each in turn; O(1) a text that a template serves. position: of the step. room: for so many
    queries, those that stand among them, without those that are swapped out.
    """
    asked = ClassifiedRegistrations()
    seen: dict[str, Registration] = {}
    for registration in registrations:
        query_id = registration.query_id
        try:
            query = standing.get(query_id)
            there = seen.get(query_id) if query is None else query.registration
            if there is None:
                coming = AdmittedQuery.of(registration, admitted(registration, catalogue), position)
                _room_for(len(standing) + len(asked.coming) + 1, room, limits)
                seen[query_id] = registration
                asked.coming.append(coming)
            elif not _is_same_text(there, registration):
                raise HandleInUse(query_id, hint="unregister it first, or make a new handle")
            elif query is not None and there != registration:
                require_possible(registration.options, lambda: query.query, catalogue.definitions)  # noqa: B023
                asked.changed.append(registration)
        except Exception as error:  # noqa: BLE001  (nothing was done yet)
            asked.failed[query_id] = refusal_of(error)
    return asked


def classify_altered(
    registrations: tuple[Registration, ...],
    position: Position,
    standing: Mapping[str, StandingQuery],
    catalogue: Catalogue,
) -> ClassifiedRegistrations:
    """The new texts of an :class:`engine.model.step.Alter`, as ``coming``, and those that are refused."""
    asked = ClassifiedRegistrations()
    for registration in registrations:
        try:
            if registration.query_id not in standing:
                raise UnknownQuery()
            asked.coming.append(AdmittedQuery.of(registration, admitted(registration, catalogue), position))
        except Exception as error:  # noqa: BLE001  (nothing was done yet)
            asked.failed[registration.query_id] = refusal_of(error)
    return asked


def admitted(registration: Registration, catalogue: Catalogue) -> Read:
    """The query that a registration means, with options that it can have, over summaries that stand. Raises
    QueryError, LimitExceeded, OptionRefused.
    """
    QueryOptions.of(registration.options)
    read = bound(registration, catalogue)
    assert read.template is not None
    catalogue.summaries.require(read.template.summaries)
    if read.template.summaries:
        require_group(read.query, catalogue.definitions)
    require_possible(registration.options, lambda: read.query, catalogue.definitions)
    return read


def bound(registration: Registration, catalogue: Catalogue) -> Read:
    """The query that a registration means, which does not see rows that are shed where it lets them be.

    Raises QueryError, LimitExceeded, OptionRefused.
    """
    try:
        read = catalogue.read(text_of(registration))
    except TureenError as refusal:
        raise refused_at(refusal, registration.sql, registration.parameters) from None
    if read.template is None:
        raise NotSupported(
            "only SELECT can be registered", hint="send CREATE and DROP as sources", line=1, column=1
        )
    tolerance = read.template.tolerance.under(QueryOptions.of(registration.options).tolerance)
    if not tolerance and not read.template.has_down_to:
        return read
    query = read.query
    streams = {name: catalogue.sources[name].stream for name in query.sources}
    unseeing = unseen_if_shed(query, streams, tolerance)
    return read if unseeing is query else Read(read.text, FixedQuery.of(unseeing), unseeing)


def _room_for(queries: int, room: int, limits: Limits) -> None:
    if queries > room:
        hint = "unregister queries that are no longer needed, or raise the limit"
        there = queries + limits.queries_max - room
        raise LimitExceeded("queries_max", limits.queries_max, there, hint=hint)


def _is_same_text(one: Registration, other: Registration) -> bool:
    if one.sql == other.sql and one.parameters is None and other.parameters is None:
        return True
    return text_of(one) == text_of(other)
