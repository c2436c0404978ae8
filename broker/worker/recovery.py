"""A shard comes back: its store, then the journalled steps past the store's position, output suppressed.

Local state is a cache of the journal. The owner before is fenced first, so that the journal stands still
while it is read. Source records are read again from the ranges that the steps name, by one reader, so that a
replay costs what ingestion costs.

A store that is gone is built anew from the whole journal. Where the journal's or the topics' retention has
passed, the shard begins anew after the journal's last step: its streams are created and read again, its
queries registered again, from the registry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from broker import logs
from broker.settings import Settings
from broker.worker.engines import Engines
from engine.engine import Engine
from engine.model.batch import Batch
from engine.model.source import Derived, SourceName, Stream
from engine.model.step import BEGINNING, Position
from engine.persistence import QueryState, SourceState
from storage.store import Store
from topics.consumer import OffsetLost
from topics.journal import JournalUnreadable, RangeReader, RecordsNamed, last_position, read_steps
from tureen.errors import TopicMissing

log = logs.get()


@dataclass(frozen=True, slots=True)
class Recovered:
    """The engine as it was, the epoch of its new owner, and how many steps were replayed."""

    engine: Engine
    epoch: int
    replayed: int


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


def recover(
    number: int, store: Store, settings: Settings, kafka: dict[str, str], engines: Engines
) -> Recovered:
    """Restore and replay. The shard must be fenced.

    Raises StoreCorrupt, StoreVersionUnknown, JournalUnreadable, OffsetLost, KafkaUnavailable, TopicMissing.
    """
    stored = store.position()
    try:
        return _replayed(number, engines.restored(store), settings, kafka)
    except (JournalUnreadable, OffsetLost, TopicMissing) as gone:
        if stored is not None:
            raise
        last = last_position(kafka, settings.names.steps, number)
        log.warning("shard_begins_anew", shard=number, after=str(last), reason=gone.message)
        return Recovered(engines.restored(_EmptyAt(last or BEGINNING)), (last or BEGINNING).epoch + 1, 0)


def _replayed(number: int, engine: Engine, settings: Settings, kafka: dict[str, str]) -> Recovered:
    stored = engine.position
    reader = RangeReader(kafka)
    replayed = 0
    engine.tells = False
    try:
        for record in read_steps(kafka, settings.names.steps, number, stored):
            batch, compacted = None, False
            if isinstance(record.body, RecordsNamed):
                stream = engine.catalogue[record.body.source]
                assert isinstance(stream, Stream)
                batch, compacted = reader.read(stream, record.body.ranges), stream.is_table
            engine.enqueue(record.step(batch, compacted=compacted))
            engine.run()
            replayed += 1
    finally:
        engine.tells = True
        reader.close()
    if engine.position != BEGINNING:
        log.info(
            "shard_recovered",
            shard=number,
            stored=str(stored),
            position=str(engine.position),
            replayed=replayed,
        )
    return Recovered(engine, engine.position.epoch + 1, replayed)
