"""How queries come, change and go: what the steps Register, Alter, Allocate and Unregister do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from engine.changes.output import continues
from engine.model.allotment import NOTHING_LESS, Allotment
from engine.model.defects import refusal_of
from engine.model.maintenance import QueryOptions
from engine.model.step import (
    BEGINNING,
    Position,
    Register,
    Registration,
    StepResult,
)
from engine.overload.tolerated import levels_of
from engine.parts import Parts
from engine.queries.admitted_query import AdmittedQuery
from engine.queries.allotting import allotted, tolerates
from engine.queries.registrations import admitted, bound, classify, classify_altered
from engine.queries.telling import PendingOutput
from engine.standing.query import SetKey, StandingQuery, set_key
from engine.swapping import Swapping
from tureen.errors import BeingPrepared, TureenError


class Lifecycle:
    """Registers, alters, allocates and removes the queries of an engine."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.swapping = Swapping(parts)
        """Queries that only the store has."""
        self._queries = parts.queries
        self._sources = parts.sources
        self._sets = parts.sets
        self._catalogue = parts.catalogue
        self._following = parts.following
        self._shed = parts.tags.shed

    def register(self, body: Register, position: Position, told: PendingOutput) -> StepResult:
        """Queries come; those that stand already get other options. What is refused of them is in the result.
        told: takes what their followers are told.
        """
        registrations = self.swapping.back_for(body.registrations)
        limits = self._parts.settings.limits
        room = limits.queries_max - self.swapping.count
        asked = classify(registrations, position, self._queries, self._catalogue, limits, room)
        asked.refuse(self._following.graphs.nurseries.apart)
        pausing = [one.query_id for one in asked.changed if self._is_to_pause(one)]
        if pausing and body.takes_back:
            self._tell_end(pausing, told)
        elif pausing:
            view = self._parts.view()
            self._parts.outdate()  # the step is not over
            for query_id in pausing:
                self._following.answers.pause(query_id, view)
        for registration in asked.changed:
            try:
                self._change(registration, told)
            except TureenError as refusal:
                asked.failed[registration.query_id] = refusal
            except Exception as defect:  # noqa: BLE001  (nobody knows how much of it was done)
                self._parts.defects.note([registration.query_id], defect)
        self._give_all([one.query_id for one in asked.changed], position, told)
        for standing, one in self._come(asked.coming):
            if one.template.emits:
                self._following.came(standing, one.query)
                if self._parts.progress.tells and not standing.paused:
                    told.began.append(standing)
        return StepResult(position, failed=asked.failed)

    def alter(
        self, registrations: tuple[Registration, ...], position: Position, told: PendingOutput
    ) -> StepResult:
        """Give queries other texts; one whose answer cannot be told stays as it was."""
        self.swapping.back_where_possible(one.query_id for one in registrations)
        asked = classify_altered(registrations, position, self._queries, self._catalogue)
        asked.refuse(self._following.graphs.nurseries.apart)
        names = [one.query_id for one in asked.coming]
        continued = self._exchange(asked.coming, self._come_instead, asked.failed, told)
        stayed = {*continued, *asked.failed}
        gone = tuple(name for name in names if name not in stayed)
        return StepResult(position, failed=asked.failed, continued=continued, gone=gone)

    def allocate(
        self, allotments: Iterable[tuple[str, Allotment]], position: Position, told: PendingOutput
    ) -> StepResult:
        """Give queries other shares of what they ask for; one whose answer cannot be told stays as it was."""
        coming: list[AdmittedQuery] = []
        failed: dict[str, Exception] = {}
        allotments = list(allotments)
        self.swapping.back_where_possible(query_id for query_id, _ in allotments)
        for query_id, allotment in allotments:
            try:
                if query_id in self._following.graphs.nurseries.apart:
                    raise BeingPrepared(0.0)
                coming.append(allotted(self._parts.query(query_id), allotment, position, self._catalogue))
            except Exception as error:  # noqa: BLE001  (nothing was done yet)
                failed[query_id] = refusal_of(error)
        return StepResult(position, failed=failed, continued=self._replace(coming, failed, told))

    def continues(self, registration: Registration) -> bool:
        """Whether changes of a query continue if its text becomes this one; see
        :func:`engine.changes.output.continues`. False for paused queries. True also for a text that is
        refused: altering the query to it changes nothing.
        """
        standing = self._queries.get(registration.query_id)
        if standing is None:
            return False
        try:
            paused = QueryOptions.of(registration.options).paused
            query = bound(registration, self._catalogue).query
        except Exception:  # noqa: BLE001  (it is refused, by the step)
            return True
        if standing.paused or paused:
            return False
        try:
            before = standing.query
            streams = {name: self._sources[name].stream for name in (*before.sources, *query.sources)}
            return continues(before, query, streams)
        except Exception:  # noqa: BLE001  (the step will tell)
            return True

    def unregister(self, query_ids: Sequence[str], told: PendingOutput) -> None:
        """Queries go; those that are not there are passed over."""
        self._tell_end(query_ids, told)
        for query_id in query_ids:
            self._gone(query_id)

    def revive(self, lost: Iterable[StandingQuery], told: PendingOutput) -> None:
        """A summary has come: queries that lost the one they used stand anew, with nothing found yet, where
        their texts can be bound to what there is now. The others stay as they are.
        """
        coming: list[AdmittedQuery] = []
        for standing in lost:
            try:
                read = admitted(standing.registration, self._catalogue)
            except Exception:  # noqa: BLE001  (it stays as it is)
                continue
            coming.append(AdmittedQuery.of(standing.registration, read, standing.born))
        self._replace(coming, told.broken, told)

    def _gone(self, query_id: str) -> None:
        self._parts.defects.gone(query_id)
        query = self._queries.pop(query_id, None)
        if query is not None:
            self._following.gone(query)
            self._shed.gone(query_id)
            self._parts.tags.approximations.gone(query_id)
            for promises, _ in self._parts.tags.promises_of(query):
                promises.violations.touched.discard(query_id)
            self._sets.unregister(query)
            self._parts.stored.unsaved_queries.discard(query_id)
            if query.born <= self._parts.stored.position:
                self._parts.stored.dropped_queries.add(query_id)
        elif self.swapping.forget(query_id) or self._parts.stored.position != BEGINNING:
            self._parts.stored.dropped_queries.add(query_id)  # or it was left out when this was restored

    def _tell_end(self, query_ids: Iterable[str], told: PendingOutput) -> None:
        """Answers of followed queries go."""
        ending = [self._queries[name] for name in query_ids if name in self._following]
        if ending and self._parts.progress.tells:
            self._following.tell_whole(ending, self._parts.view(), "end", told)
            self._parts.outdate()

    def _come(self, coming: Sequence[AdmittedQuery]) -> list[tuple[StandingQuery, AdmittedQuery]]:
        """Put queries in their sets."""
        return self._put(
            coming,
            lambda one: set_key(one.template.sources),
            lambda key, queries: self._sets.joined(key).register(queries),
        )

    def _put(
        self,
        coming: Sequence[AdmittedQuery],
        key_of: Callable[[AdmittedQuery], SetKey],
        put: Callable[[SetKey, list[AdmittedQuery]], Sequence[StandingQuery]],
    ) -> list[tuple[StandingQuery, AdmittedQuery]]:
        """Have queries stand, those of a set together."""
        by_set: dict[SetKey, list[AdmittedQuery]] = {}
        for one in coming:
            by_set.setdefault(key_of(one), []).append(one)
        came: list[tuple[StandingQuery, AdmittedQuery]] = []
        for key, queries in by_set.items():
            for standing, one in zip(put(key, queries), queries, strict=True):
                self._stands(standing)
                came.append((standing, one))
        self._parts.outdate()
        return came

    def _give_all(self, query_ids: Iterable[str], position: Position, told: PendingOutput) -> None:
        """Those whose options do not allow any more what they are given, or let other rows be shed, are given
        all that they ask for. One whose answer cannot be told is told of no more: a replay, which tells
        nothing, would not have it stay as it was.
        """
        coming = [
            allotted(self._queries[name], NOTHING_LESS, position, self._catalogue)
            for name in query_ids
            if not tolerates(self._queries[name], self._catalogue)
            or self._sheds_otherwise(self._queries[name])
        ]
        if coming:
            self._replace(coming, told.broken, told)

    def _replace(
        self, coming: Sequence[AdmittedQuery], failed: dict[str, Exception], told: PendingOutput
    ) -> tuple[str, ...]:
        """Have queries answered by others over the same sources; as :meth:`_exchange`."""
        talking: list[AdmittedQuery] = []
        for one in coming:
            standing = self._queries[one.query_id]
            if self._following.is_silent(standing):
                self._following.replace_silently(
                    standing,
                    one.query,
                    lambda: self._stand_in([one])[0][0],  # noqa: B023
                )
            else:
                talking.append(one)
        return self._exchange(talking, self._stand_in, failed, told)

    def _exchange(
        self,
        coming: Sequence[AdmittedQuery],
        put: Callable[[Sequence[AdmittedQuery]], list[tuple[StandingQuery, AdmittedQuery]]],
        failed: dict[str, Exception],
        told: PendingOutput,
    ) -> tuple[str, ...]:
        """Have queries that stand answered by others, which ``put`` puts in their places. failed: takes those
        that stay as they were. Returns those that are followed on, with the difference of both answers.
        """
        old = {name: self._queries[name] for one in coming if (name := one.query_id)}
        view = (
            self._parts.view()
            if self._parts.progress.tells and any(name in self._following for name in old)
            else None
        )
        followed = {
            name: before
            for name, query in old.items()
            if view is not None and (before := self._following.before(query, view)) is not None
        }
        came = put(coming)
        if view is not None:
            view = self._parts.view()
            self._parts.outdate()  # the step is not over
        continued: list[str] = []
        for standing, one in came:
            name, query = standing.query_id, one.query
            if name not in followed:
                if (
                    self._following.came(standing, query)
                    and self._parts.progress.tells
                    and not standing.paused
                ):
                    told.began.append(standing)
                continue
            assert view is not None
            try:
                if self._following.altered(followed[name], standing, query, view, told):
                    continued.append(name)
            except TureenError as refusal:
                failed[name] = refusal
                put([AdmittedQuery.again(old[name])])
                self._following.back(followed[name], self._queries[name])
        return tuple(continued)

    def _come_instead(self, coming: Sequence[AdmittedQuery]) -> list[tuple[StandingQuery, AdmittedQuery]]:
        """Queries in the places of those with their ids, over other sources perhaps."""
        for one in coming:
            self._gone(one.query_id)
        return self._come(coming)

    def _stand_in(self, coming: Sequence[AdmittedQuery]) -> list[tuple[StandingQuery, AdmittedQuery]]:
        """Put queries in the places of those with their ids, over the same sources, with other shares of
        them.
        """
        for one in coming:
            self._following.gone(self._queries[one.query_id])
        return self._put(
            coming,
            lambda one: self._queries[one.query_id].set_key,
            lambda key, queries: self._sets.seen(key).exchange(queries),
        )

    def _stands(self, standing: StandingQuery) -> None:
        """A query stands so from now on."""
        if standing.query_id not in self._queries:
            for promises, retained_from_ms in self._parts.tags.promises_of(standing):
                promises.violations.stands(standing.query_id, retained_from_ms)
        self._queries[standing.query_id] = standing
        self._parts.stored.unsaved_queries.add(standing.query_id)
        self._parts.tags.tag(standing)

    def _is_to_pause(self, registration: Registration) -> bool:
        """Whether a followed query runs and is to be paused by its new options."""
        query_id = registration.query_id
        if query_id not in self._following or self._queries[query_id].paused:
            return False
        return QueryOptions.of(registration.options).paused

    def _sheds_otherwise(self, standing: StandingQuery) -> bool:
        """Whether the options of a query let other rows be shed than it does not see."""
        meant = bound(standing.registration, self._catalogue).query
        streams = {name: self._sources[name].stream for name in meant.sources}
        return levels_of(standing.query, streams) != levels_of(meant, streams)

    def _change(self, registration: Registration, told: PendingOutput) -> None:
        before = self._queries[registration.query_id]
        after = self._sets.of(before).change(registration)
        self._queries[registration.query_id] = after
        self._parts.tags.tag(after)
        self._following.changed(after)
        if before.paused and not after.paused:
            if self._parts.progress.tells:
                told.resumed.append(after)
            else:
                self._following.answers.paused.pop(after.query_id, None)
        self._parts.stored.unsaved_queries.add(registration.query_id)
