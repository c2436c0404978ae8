"""Data and helpers that ``isolation_test.py`` shares with other tests."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engine.engine import Engine
from engine.model.batch import versions
from engine.model.source import SourceName, Stream
from engine.model.step import Body, Position, Records, Register, Registration, Step, StepResult, Unregister
from tests.changes.ways import TEXTS as CREATES
from tests.engine.feed import plain
from tests.memory_state import MemoryState
from tests.strategies import batch_of
from tureen.errors import InternalError

RELEASING = """CREATE STREAM {0} (id BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP, CONSTRAINT UNIQUE (id){1})
WITH (timestamp = 'ts') RETAIN 3 MILLISECONDS"""

STREAMS = (
    *CREATES,
    RELEASING.format("o", ""),
    RELEASING.format(
        "f", ", CONSTRAINT CLUSTERED (k) WITHIN 0 ROWS, CONSTRAINT REFERENCES (k) TO o (id) WITHIN 1 ROWS"
    ),
)

NAMES = ("s", "u", "h", "m", "o", "f")

Told = Mapping[str, Counter[Any]]


class Driven:
    """An engine driven as a shard does it: a query whose work failed is removed by the next step."""

    def __init__(self, moving: Sequence[str] = NAMES) -> None:
        """moving: the sources that get rows."""
        self.engine = Engine()
        self.moving = moving
        self.rng = random.Random(7)
        self.told: list[Told] = []
        """What was told of each step, without the steps that remove."""
        self.errors: dict[str, InternalError] = {}
        self.offset, self.clock_ms = 0, 10
        for sql in STREAMS:
            self.engine.create(sql)

    def step(self, body: Body) -> StepResult:
        result = self._step(body)
        self.told.append(told_of(result))
        self.engine.view()
        while failed := self.engine.defects:
            self.errors |= failed
            removal = self._step(Unregister(tuple(failed)))
            assert not set(told_of(removal)) - set(failed)
            assert failed.keys() <= removal.broken.keys()
            self.engine.view()
        return result

    def _step(self, body: Body) -> StepResult:
        position = Position(0, self.engine.position.sequence + 1)
        self.engine.enqueue(Step(position, self.clock_ms, body))
        (result,) = self.engine.run()
        return result

    def register(self, name: str, text: str, **options: str) -> StepResult:
        text += "" if "EMIT" in text else " EMIT CHANGES WITH (format = 'diff')"
        return self.step(Register((Registration(name, text, options=options),)))

    def rows(self) -> None:
        """Some of each source."""
        rng = self.rng
        self.clock_ms += rng.choice((1, 2, 5))
        for name in self.moving:
            stream = self.engine.catalogue[name]
            assert isinstance(stream, Stream)
            at = self.clock_ms
            rows = []
            for _ in range(rng.randint(1, 5)):
                self.offset += 1
                at += rng.choice((0, 0, 1))
                rows.append((0, self.offset, at, self._values(name, at)))
            batch = batch_of(stream.schema, rows)
            if stream.is_table:
                batch = versions(stream, batch, np.zeros(len(rows), np.bool_))
            self.step(Records(SourceName(name), batch, {0: self.offset + 1}))

    def _values(self, name: str, at: int) -> tuple[Any, ...]:
        rng = self.rng
        if name == "s":
            return rng.choice((0, 1, 2, None)), rng.choice((0.5, 1.5, -2.0, None)), rng.choice("ab"), at
        if name in ("o", "f"):
            return self.offset, self.offset - 5, rng.randint(0, 3), at
        return rng.choice((0, 1, 2)), rng.randint(-2, 3), at

    def restart(self) -> None:
        store = MemoryState()
        self.engine.save(store)
        self.engine = Engine.restore(store)

    def answers(self) -> dict[str, Counter[Any]]:
        view = self.engine.view()
        return {
            name: Counter(map(repr, view.snapshot(name).table.to_pylist())) for name in self.engine._queries
        }


def told_of(result: StepResult) -> Told:
    found: dict[str, Counter[Any]] = {}
    for changes in result.changes:
        rows = list(zip(*(plain(column) for column in changes.table.columns), strict=True))
        for place, query_id in enumerate(changes.query_ids):
            of = range(*changes.starts[place : place + 2].tolist())
            keys = zip(
                changes.weights[of.start : of.stop].tolist(),
                changes.at_ms[of.start : of.stop].tolist(),
                map(repr, rows[of.start : of.stop]),
                strict=True,
            )
            found.setdefault(query_id, Counter()).update(keys)
    return {name: counted for name, counted in found.items() if counted}
