"""The parts of a shard: made once, each with those of the others that it needs.

    inbox -> execution  \
                          steps -> outbox -> journal, topics
    streams -> ingestion /   \
                              saving -> store

How they begin with what came back is :mod:`broker.shard.starting`, the order in which they are called from
then on :mod:`broker.shard.serving`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from broker.archive.backfill import Backfills
from broker.archive.notes import HistoryNotes
from broker.base.counts import Counts
from broker.memory.levels import Level
from broker.runtime.liveness import Pulse
from broker.shard.context import ShardContext
from broker.shard.emission import Emission
from broker.shard.execution import Execution
from broker.shard.grants import Grants
from broker.shard.inbox import Inbox
from broker.shard.ingestion import Ingestion
from broker.shard.outbox import Outbox
from broker.shard.preparations import Preparations
from broker.shard.saving import Saving
from broker.shard.setup import ShardSetup
from broker.shard.shard_state import ShardState
from broker.shard.stalls import Stalls
from broker.shard.steps import Steps
from broker.shard.streams import Streams
from broker.shard.trials import Trials


@dataclass(frozen=True, slots=True)
class ShardParts:
    """The parts of one shard, which live as long as it does."""

    context: ShardContext
    """What all of them are made with."""
    inbox: Inbox
    """What other threads want."""
    state: ShardState
    """What stands, as commands are compared with it."""
    trials: Trials
    """Notes registrations that may end the worker."""
    preparations: Preparations
    """Works commands out before their step."""
    execution: Execution
    """Carries commands out."""
    streams: Streams
    """What is read."""
    ingestion: Ingestion
    """Takes up records, history and the clock."""
    emission: Emission
    """What queries tell of steps."""
    steps: Steps
    """Makes steps; the engine is theirs."""
    outbox: Outbox
    """Writes transactions."""
    saving: Saving
    """Writes the store."""

    @classmethod
    def build(cls, number: int, setup: ShardSetup, pulse: Pulse) -> ShardParts:
        """Make the parts of a shard that has nothing yet. pulse: its thread's signs of life."""
        settings, archive, memory = setup.settings, setup.archive, setup.memory
        folder = settings.data_dir / "shards"
        stalls = Stalls(number, settings.retry_ms, pulse)
        context = ShardContext(number, settings, stalls, Counts(), pulse, memory)
        inbox, state, saving = Inbox(number), ShardState(), Saving(context)
        emission = Emission(settings.names, setup.outputs, context.counts, settings.changes_max)
        outbox = Outbox(number, settings, setup.kafka, stalls, setup.outputs.look, pulse)
        steps = Steps(context, setup.engines.fresh(), emission, outbox, state.forget)
        topic_ids = {} if archive is None else archive.topic_ids
        streams = Streams(context, setup.reading, inbox, steps.next_offsets, topic_ids)
        trials = Trials(folder / f"{number}.trials.json", number, lambda: memory.look() >= Level.REFUSE)
        preparations = Preparations(number, settings, trials, state, pulse, inbox.wake)
        return cls(
            context=context,
            inbox=inbox,
            state=state,
            trials=trials,
            preparations=preparations,
            execution=Execution(state, steps, streams, emission, saving, preparations, context.counts),
            streams=streams,
            ingestion=Ingestion(
                context,
                streams,
                steps,
                saving,
                None if archive is None else Backfills(number, settings, archive, inbox.wake),
                HistoryNotes(folder / f"{number}.history.json"),
                Grants.of(settings, time.perf_counter_ns()),
            ),
            emission=emission,
            steps=steps,
            outbox=outbox,
            saving=saving,
        )
