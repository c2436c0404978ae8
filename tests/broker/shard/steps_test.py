"""Steps that are made together write what they write when they are made one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np

from broker.base.counts import Counts
from broker.base.settings import Settings
from broker.memory.budget import Budget
from broker.memory.held import HeldMemory
from broker.memory.levels import Memory
from broker.runtime.liveness import UNWATCHED, Liveness
from broker.shard.context import ShardContext
from broker.shard.emission import Emission
from broker.shard.outbox import Outbox, Outgoing
from broker.shard.stalls import Stalls
from broker.shard.steps import Steps
from engine.engine import Engine
from engine.model.batch import Batch, Column
from engine.model.source import Field, Schema
from engine.model.step import Records, Register, Registration, Unregister
from engine.model.types import BIGINT, TIMESTAMP
from topics.admin import Admin
from topics.journal import decode_step
from topics.outputs import Outputs, OutputSettings

NAMES = ("one", "two", "three")
BEGIN_MS = 1_700_000_000_000
SCHEMA = Schema((Field("id", BIGINT), Field("ts", TIMESTAMP, nullable=False)))
WIDE = 1_000
"""Bytes that no result record may have."""


def test_steps_that_are_made_together_write_what_steps_one_by_one_write(kafka: str, service_id: str) -> None:
    apart, together = made(kafka, service_id), made(kafka, service_id)
    gone = 0
    for turn in range(4):
        bodies = [body(name, turn) for name in NAMES]
        outgoing = Outgoing(), Outgoing()
        results = [apart.make(one, outgoing[0]) for one in bodies]
        at_once = together.make_together([(one, ()) for one in bodies], outgoing[1])
        assert [each.entered for each in at_once] == [each.entered for each in results]
        assert told(outgoing[0]) == told(outgoing[1])
        steps = [[decode_step(one.value) for one in each.letters if one.value] for each in outgoing]
        for each, made_steps in zip(outgoing, steps, strict=True):
            sequences = [step.position.sequence for step in made_steps]
            assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
            assert each.last == made_steps[-1].position
        removed = [[step.body for step in each if isinstance(step.body, Unregister)] for each in steps]
        assert removed[0] == removed[1]
        if removed[1]:  # a query whose record is too large goes behind all steps
            gone += 1
            assert isinstance(steps[1][-1].body, Unregister)
    assert gone == 1
    for name in ("one", "two", "three"):
        assert apart.next_offsets(name) == together.next_offsets(name)


def made(kafka: str, service_id: str) -> Steps:
    """Streams, each with a query that emits each row; that of the first is refused what is wide."""
    settings = Settings(service_id=service_id)
    outputs = Outputs(OutputSettings(result_record_bytes_max=WIDE), Admin({"bootstrap.servers": kafka}))
    stalls, counts = Stalls(0, settings.retry_ms), Counts()
    memory = Memory(Budget(1 << 40, 1 << 40, "this machine", True), Liveness(None), HeldMemory())
    context = ShardContext(0, settings, stalls, counts, UNWATCHED, memory)
    engine = Engine()
    emission = Emission(settings.names, outputs, counts, settings.changes_max)
    outbox = Outbox(0, settings, {"bootstrap.servers": kafka}, stalls, lambda _: {})

    def forget(_: Iterable[str]) -> None:
        return

    steps = Steps(context, engine, emission, outbox, forget)
    for name in NAMES:
        columns = "(id BIGINT, ts TIMESTAMP NOT NULL)"
        engine.create(f"CREATE STREAM {name} {columns} WITH (topic = '{name}', timestamp = 'ts')")
    wide = f"'{'w' * WIDE}'"
    texts = {
        "wide": f"SELECT id, {wide} AS w FROM one WHERE id >= 4 EMIT CHANGES",
        **{name: f"SELECT id FROM {name} EMIT CHANGES" for name in NAMES},
    }
    steps.make(Register(tuple(Registration(name, sql) for name, sql in texts.items())), Outgoing())
    return steps


def told(outgoing: Outgoing) -> list[tuple[str, list[str], list[bytes]]]:
    """What tells changes, in order; of the keys, which count steps, the query."""
    return [
        (one.topic, [json.loads(key)["query"] for key in one.keys.to_pylist()], one.values.to_pylist())
        for one in outgoing.records
    ]


def body(name: str, turn: int) -> Records:
    """Two rows a turn, the second of which brings the first in."""
    first = 2 * turn
    ids = np.arange(first, first + 2)
    instants = BEGIN_MS + 10 * ids
    columns = Column(BIGINT, ids), Column(TIMESTAMP, instants)
    return Records(name, Batch(SCHEMA, columns, np.zeros(2, np.int32), ids, instants), {0: first + 2})
