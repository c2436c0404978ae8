"""A shard comes back: its store, then the journalled steps past the store's position, output suppressed.

Local state is a cache of the journal. The owner before is fenced first, so that the journal stands still
while it is read. Source records are read again from the ranges that the steps name, by one reader, so that a
replay costs what ingestion costs.

Rows that a step took from the archive are read from there again. Where that cannot be, since the archive has
moved or its retention has passed, the step changes nothing: the stream comes back without that history, which
is then wanted again as if it had never been there.

A store that is gone is built anew from the whole journal. Where the journal's or the topics' retention has
passed, the shard begins anew after the journal's last step: its streams are created and read again, its
queries registered again, from the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from broker.archive.backfill import boundary_at, read_again, up_to
from broker.archive.catalogue import ArchiveCatalogue
from broker.archive.history_boundary import HistoryBoundary
from broker.base import logs
from broker.base.settings import Settings
from broker.runtime.engines import Engines
from broker.shard.held import Remaining, Removals, Rowless, begins_without
from broker.shard.pending import Pending
from broker.shard.replay import Output
from broker.shard.setup import ShardSetup
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.persistence import HeldState, QueryState, SourceState, StateSource
from engine.model.source import Derived, SourceName, Stream
from engine.model.state_tree import Tree
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
    Position,
    Register,
    Step,
    Unregister,
)
from storage.archive.errors import ArchiveMismatch, ArchiveUnreadable
from storage.store import Store
from topics.consumer import OffsetLost
from topics.journal import HistoryNamed, JournalUnreadable, RecordsNamed, StepRecord
from topics.journal_reader import RangeReader, read_steps
from tureen.errors import TopicMissing, TureenError

log = logs.get()

_STANDS = (
    Register
    | Alter
    | Allocate
    | Unregister
    | CreateSource
    | CreateDerived
    | DropSource
    | CreateSummary
    | AlterSummary
    | DropSummary
)
"""Steps that say what stands."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The engine as it was, and how many steps were replayed.

    pending: changes of these steps that are still to be written. lost_output: queries whose changes of them
    cannot be made again, and why.
    history: of streams, the sequence number of the last replayed step that brought rows of the archive.
    lost_history: streams that came back without such rows, and why.
    """

    engine: Engine
    replayed: int
    pending: Pending = field(default_factory=Pending)
    lost_output: Mapping[str, TureenError] = field(default_factory=dict)
    history: Mapping[str, int] = field(default_factory=dict)
    lost_history: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _EmptyAt:
    """The state of an engine that holds nothing, after this step."""

    at: Position

    def position(self) -> Position | None:
        return self.at

    def sources(self) -> Iterable[SourceState]:
        return ()

    def derived(self) -> Iterable[Derived]:
        return ()

    def rows(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        return ()

    def pending(self, source: SourceName) -> Iterable[tuple[int, Batch]]:
        return ()

    def queries(self) -> Iterable[QueryState]:
        return ()

    def held(self) -> Iterable[HeldState]:
        return ()

    def state_parts(self, prefix: str) -> Iterable[tuple[str, Tree]]:
        return ()


@dataclass(frozen=True, slots=True)
class _Checked:
    """What is stored; ``check`` is called ahead of every piece of rows."""

    stored: StateSource
    check: Callable[[], None]

    def position(self) -> Position | None:
        return self.stored.position()

    def sources(self) -> Iterable[SourceState]:
        return self.stored.sources()

    def derived(self) -> Iterable[Derived]:
        return self.stored.derived()

    def rows(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        for piece in self.stored.rows(source):
            self.check()
            yield piece

    def pending(self, source: SourceName) -> Iterator[tuple[int, Batch]]:
        for piece in self.stored.pending(source):
            self.check()
            yield piece

    def queries(self) -> Iterable[QueryState]:
        return self.stored.queries()

    def held(self) -> Iterable[HeldState]:
        return self.stored.held()

    def state_parts(self, prefix: str) -> Iterable[tuple[str, Tree]]:
        return self.stored.state_parts(prefix)


def recover(
    number: int,
    store: Store,
    claimed: Position,
    setup: ShardSetup,
    check: Callable[[], None],
    removals: Removals,
) -> Recovered:
    """Restore and replay, up to the claim of the owner that does. check: called between pieces of the store
    and between steps; what it raises ends this. removals: are left out, with what only they need; to be
    removed by steps after this.

    Raises StoreCorrupt, StoreVersionUnknown, JournalUnreadable, OffsetLost, KafkaUnavailable, TopicMissing.
    """
    stored, engines = store.position(), setup.engines
    try:
        stood: StateSource = store
        if removals:
            rowless = engines.restored(Rowless(store, removals))
            stood = Remaining(store, removals, begins_without(store, removals, rowless))
        engine = engines.restored(_Checked(stood, check))
        engine.swapping.store = store
        return _replayed(number, engine, claimed, setup, check, removals)
    except (JournalUnreadable, OffsetLost, TopicMissing) as gone:
        if stored is not None:
            raise
        log.warning("shard_begins_anew", shard=number, after=str(claimed), reason=gone.message)
        return Recovered(engines.restored(_EmptyAt(claimed)), 0)


def rowless(
    number: int,
    store: Store,
    claimed: Position,
    settings: Settings,
    kafka: dict[str, str],
    engines: Engines,
    removals: Removals,
) -> Engine:
    """What stands on a shard after its last step, without a row: for lists, not for answers.

    Raises as :func:`recover`.
    """
    engine = engines.restored(Rowless(store, removals))
    engine.swapping.store = store
    engine.tells = False
    for record in read_steps(kafka, settings.names.steps, number, engine.position):
        body: Body = Unregister(())
        if isinstance(record.body, _STANDS):
            body = record.body
        engine.enqueue(without(Step(record.position, record.clock_ms, body), removals))
        engine.run()
        if record.position == claimed:
            break
    return engine


def without(step: Step, removals: Removals) -> Step:
    """A step that registers nothing of what is removed."""
    if not isinstance(step.body, Register) or not removals.queries:
        return step
    kept = tuple(one for one in step.body.registrations if one.query_id not in removals.queries)
    return replace(step, body=Register(kept))


def _replayed(
    number: int,
    engine: Engine,
    claimed: Position,
    setup: ShardSetup,
    check: Callable[[], None],
    removals: Removals,
) -> Recovered:
    stored, settings, kafka = engine.position, setup.settings, setup.kafka
    reader = RangeReader(kafka)
    history = ArchivedSteps(engine, setup.archive, settings)
    replayed = 0
    output = Output(engine, settings.names, check)
    engine.tells = False
    try:
        for record in read_steps(kafka, settings.names.steps, number, stored):
            check()
            batch, compacted = None, False
            if isinstance(record.body, RecordsNamed):
                stream = engine.catalogue[record.body.source]
                assert isinstance(stream, Stream)
                batch = reader.read(stream, record.body)
                compacted = stream.is_table
                if len(batch) < record.body.rows:
                    output.differs(record.body.source)
            if isinstance(record.body, HistoryNamed):
                step = history.step(record, record.body)
                if record.body.source in history.lost:
                    output.differs(record.body.source)
            else:
                step = without(record.step(batch, compacted=compacted), removals)
            output.replay(record, step)
            replayed += not isinstance(record.body, Claim)
            if record.position == claimed:
                break
    finally:
        engine.tells = True
        reader.close()
    if engine.catalogue or replayed:
        log.info(
            "shard_recovered",
            shard=number,
            stored=str(stored),
            position=str(engine.position),
            replayed=replayed,
        )
    return Recovered(engine, replayed, output.pending, output.lost(), history.steps, history.lost)


class ArchivedSteps:
    """Steps of rows that the archive gave. steps: the last of each stream. lost: streams whose rows were not
    to be had again, and why.
    """

    def __init__(self, engine: Engine, archive: ArchiveCatalogue | None, settings: Settings) -> None:
        self.lost: dict[str, dict[str, Any]] = {}
        self.steps: dict[str, int] = {}
        self._engine = engine
        self._archive = archive
        self._rows_max = settings.archive_rows_max
        self._timeout_s = settings.archive_timeout_ms / 1_000

    def step(self, record: StepRecord, named: HistoryNamed) -> Step:
        """As it was; or one that changes nothing, where its rows are not to be had."""
        self.steps[named.source] = record.position.sequence
        stream = self._engine.catalogue[named.source]
        assert isinstance(stream, Stream)
        wanted = self._engine.needs.history(named.source)
        boundary_ms = named.until_ms if wanted is None else wanted.until_ms
        try:
            if self._archive is None:
                raise ArchiveMismatch(f"{named.rows:,} rows are in an archive, and no archive is configured")
            if boundary_ms < named.until_ms or self.lost.get(named.source) is not None:
                raise ArchiveMismatch(f"rows of {named.source} that come after these are lost")
            view = self._engine.view()
            found = self._read(
                self._archive, boundary_at(stream, view, named.until_ms, record.clock_ms), named
            )
            named.check(found)
            rows = up_to(boundary_ms, found, named.until_ms, stream, view)
            return self._made(record, named.source, rows, named.from_ms, boundary_ms)
        except TureenError as gone:
            self.lost.setdefault(named.source, gone.as_dict())
            log.warning(
                "history_lost",
                stream=named.source,
                step=str(record.position),
                rows=named.rows,
                code=gone.code,
                reason=gone.message,
            )
        nothing = Batch.empty(stream.stored_schema)
        return self._made(record, named.source, nothing, boundary_ms, boundary_ms)

    def _made(
        self, record: StepRecord, source: SourceName, rows: Batch, from_ms: int, boundary_ms: int
    ) -> Step:
        return Step(record.position, record.clock_ms, Backfill(source, rows, from_ms, boundary_ms))

    def _read(self, archive: ArchiveCatalogue, boundary: HistoryBoundary, named: HistoryNamed) -> Batch:
        reading = archive.pool.submit(read_again, archive, boundary, named, named.rows + self._rows_max)
        try:
            return reading.result(self._timeout_s)
        except TimeoutError:
            raise ArchiveUnreadable(archive.root, f"nothing came for {self._timeout_s:g} s") from None
