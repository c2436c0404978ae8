"""What the bodies of steps do to the parts of an engine, each by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.lifecycle import Lifecycle
from engine.model.source import SourceName
from engine.model.step import (
    Allocate,
    Alter,
    AlterSummary,
    Backfill,
    Body,
    Claim,
    CreateDerived,
    CreateSource,
    CreateSummary,
    DropSource,
    DropSummary,
    Heartbeat,
    Position,
    Records,
    Register,
    Rejoin,
    SetApart,
    StepResult,
    Unregister,
    Written,
)
from engine.parts import Parts
from engine.queries.telling import PendingOutput
from engine.standing.query import SetKey, StandingQuery
from tureen.errors import BackfillRefused, TureenError


class StepBodies:
    """Carries them out. ``work_ns``: how long the units of all grants took, by the engine's timer."""

    def __init__(self, parts: Parts, lifecycle: Lifecycle) -> None:
        self._parts = parts
        self._lifecycle = lifecycle
        self.work_ns = 0.0

    def carry_out(self, body: Body, position: Position, told: PendingOutput) -> StepResult:
        """Returns what became of it. told: takes what followers are told of queries that come, change and
        go.
        """
        match body:
            case Records() | Heartbeat():
                return self._move(body, position)
            case Register():
                return self._lifecycle.register(body, position, told)
            case Alter(registrations):
                return self._lifecycle.alter(registrations, position, told)
            case Allocate(allotments):
                return self._lifecycle.allocate(allotments, position, told)
            case Unregister(query_ids):
                self._lifecycle.unregister(query_ids, told)
                return StepResult(position, gone=query_ids)
            case CreateSummary() | AlterSummary() | DropSummary():
                return StepResult(position, failed=self._summarise(body, told))
            case CreateSource() | CreateDerived() | DropSource():
                return StepResult(position, failed=self._define(body))
            case Backfill(source=name):
                try:
                    self._refuse_history(name)
                    return self._parts.source(name).backfill(body, position)
                except BackfillRefused as refusal:
                    return StepResult(position, failed={name: refusal})
            case SetApart(query_ids):
                self._set_apart(query_ids)
                return StepResult(position)
            case Rejoin(query_ids):
                standing = {
                    name: self._parts.queries[name] for name in query_ids if name in self._parts.queries
                }
                self._parts.following.graphs.rejoin(standing, told, tells=self._parts.progress.tells)
                return StepResult(position)
            case Claim() | Written():
                return StepResult(position)

    def _set_apart(self, query_ids: Iterable[str]) -> None:
        """Have changes of queries worked out beside, those over the same sources together."""
        parts = self._parts
        by_set: dict[SetKey, list[StandingQuery]] = {}
        for query_id in query_ids:
            standing = parts.queries.get(query_id)
            if standing is not None:
                by_set.setdefault(standing.set_key, []).append(standing)
        for key, queries in by_set.items():
            parts.following.graphs.set_apart(queries, parts.sets.seen(key))

    # --- sources ----------------------------------------------------------------------------------

    def _refuse_history(self, name: SourceName) -> None:
        """Raise BackfillRefused while queries over a source are set apart: what is told of history is how
        their answers differ by it.
        """
        if any(name in key for key in self._parts.following.graphs.nurseries.apart.keys):
            boundary_ms = self._parts.source(name).boundary_ms
            raise BackfillRefused(name, "what queries over it need is being made", boundary_ms)

    def _move(self, body: Records | Heartbeat, position: Position) -> StepResult:
        """Rows come to a source, or its clock moves: so do the queries over it, then queries with a
        preference use what the step grants. The result has the rows as well of which it is known now that
        they lack the row that they refer to.
        """
        name, parts = body.source, self._parts
        source = parts.source(name)
        with parts.settings.watch.on(source.usage):
            if isinstance(body, Records):
                result = source.records(body, position, parts.progress.clock_ms)
            else:
                result = source.heartbeat(body, position, parts.progress.clock_ms)
        parts.sets.advance(name)
        if body.grant:
            result = replace(result, spent=self._spend(body.grant))
        lacking = parts.catalogue.references.advance(name, position)
        parts.tags.tag_again(name)
        return replace(result, violations=(*result.violations, *lacking)) if lacking else result

    def _spend(self, grant: int) -> int:
        timer = self._parts.settings.timer
        began_ns = 0.0 if timer is None else timer()
        spent = self._parts.spend(grant)
        self.work_ns += 0.0 if timer is None else timer() - began_ns
        return spent

    # --- the catalogue ----------------------------------------------------------------------------

    def _define(self, body: CreateSource | CreateDerived | DropSource) -> Mapping[str, Exception]:
        """Change the catalogue; what refused it, by name."""
        parts = self._parts
        try:
            match body:
                case CreateSource(stream, sql):
                    name = stream.name
                    parts.catalogue.create(stream, sql, parts.progress.clock_ms)
                    parts.catalogue.references.changed()
                case CreateDerived(derived):
                    name = derived.name
                    parts.catalogue.derive(derived, self._readers)
                case DropSource(name):
                    parts.catalogue.drop(name, self._readers)
                    parts.catalogue.references.changed()
                    parts.scheduler.remove(f"source/{name}")
        except TureenError as refusal:
            return {SourceName(name): refusal}
        return {}

    def _readers(self, name: str) -> int:
        """How many queries read a stream or a view, also of those that are swapped out. O(queries)."""
        standing = self._parts.queries.values()
        warm = sum(name in (*one.sources, *one.template.uses) for one in standing)
        return warm + self._parts.sets.swapped_readers(name)

    def _summarise(
        self, body: CreateSummary | AlterSummary | DropSummary, told: PendingOutput
    ) -> Mapping[str, Exception]:
        """Change the summaries; what refused it, by name."""
        parts = self._parts
        catalogue, summaries = parts.catalogue, parts.catalogue.summaries
        name = body.definition.name if isinstance(body, CreateSummary) else body.name
        try:
            match body:
                case CreateSummary(definition, sql):
                    lost = self._without_summary()
                    catalogue.refuse_if_unclear(definition, parts.queries.values())
                    if summaries.create(definition, sql):
                        catalogue.changed()
                        parts.sets.prefer_anew(name)
                        self._lifecycle.revive(lost, told)
                case AlterSummary(_, settings):
                    summaries.alter(name, settings)
                    catalogue.changed()
                case DropSummary(_, forced):
                    users = sum(name in one.template.summaries for one in parts.queries.values())
                    summaries.drop(name, users, forced=forced)
                    catalogue.changed()
                    parts.sets.prefer_anew(name)
        except TureenError as refusal:
            return {name: refusal}
        return {}

    def forget_summaries(self) -> None:
        """Dropped summaries that no query uses any more are forgotten."""
        used = {name for one in self._without_summary() for name in one.template.summaries}
        if self._parts.catalogue.summaries.forget_absent(used):
            self._parts.catalogue.changed()

    def _without_summary(self) -> list[StandingQuery]:
        """The queries that use a summary which was dropped. O(queries) where there is such a summary."""
        absent = self._parts.catalogue.summaries.absent
        if not absent:
            return []
        return [
            one
            for one in self._parts.queries.values()
            if not absent.keys().isdisjoint(one.template.summaries)
        ]
