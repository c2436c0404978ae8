"""More than a hundred EXCEPT ALL over thousands of rows and ever new strings: changes add up to answers, and
those are the reference's.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from engine.engine import Engine
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch
from engine.model.limits import Limits
from engine.model.source import Stream
from engine.model.step import Body, CreateSource, Position, Records, Register, Registration, Step, Unregister
from engine.reference import Reference
from tests.capacities import small_engine
from tests.large.course import Folded
from tests.strategies import batch_of

pytestmark = pytest.mark.slow

AT = "ts TIMESTAMP NOT NULL) WITH (timestamp = 'ts', idle_timeout = '100 days')"
SOURCES = f"CREATE STREAM s (k STRING, v DOUBLE, n BIGINT, {AT}", f"CREATE STREAM u (k STRING, v DOUBLE, {AT}"
WINDOWS = "[RANGE 700 MILLISECONDS]", "[RANGE 400 MILLISECONDS]"
FORMS = (
    "SELECT k, v, n FROM s {w} WHERE {p} EXCEPT ALL ON (k) SELECT k, v, 0 AS n FROM u {r} WHERE {p}",
    "SELECT k FROM s {w} WHERE {p} EXCEPT ALL SELECT k FROM u {r} WHERE {p}",
)
QUERIES = 66
"""Of each form."""
ROWS = 400
"""Of a batch."""
BATCHES = 6
CLOCK_MS = 10**6


def texts(rng: np.random.Generator, form: str, few: int) -> dict[str, str]:
    """Queries that differ in an interval of values."""
    found = {}
    for place in range(few):
        low = int(rng.integers(0, 80))
        bounds = f"v >= {low} AND v < {low + int(rng.integers(1, 30))}"
        found[f"q{FORMS.index(form)}x{place}"] = form.format(w=WINDOWS[0], r=WINDOWS[1], p=bounds)
    return found


class Both:
    """An engine and the reference, which take the same steps."""

    def __init__(self, engine: Engine, options: dict[str, str]) -> None:
        self.engine, self.reference, self.folded = engine, Reference(), Folded()
        self._options = options
        self._sequence = 0
        self._offset = 0

    def take(self, body: Body, of_reference: Body | None = None) -> None:
        """One step. of_reference: where the reference is told something else."""
        self._sequence += 1
        position = Position(0, self._sequence)
        self.engine.enqueue(Step(position, CLOCK_MS, body))
        for result in self.engine.run():
            assert not result.failed, result.failed
            self.folded.add(result)
        self.reference.apply(Step(position, CLOCK_MS, of_reference or body))

    def register(self, queries: dict[str, str]) -> None:
        """They come together; the engine follows them, the reference is asked for answers."""
        options = self._options
        followed, asked = (
            tuple(Registration(name, text + more, options=options) for name, text in queries.items())
            for more in (" EMIT CHANGES WITH (format = 'diff')", "")
        )
        self.take(Register(followed), Register(asked))

    def records(self, name: str, rng: np.random.Generator, first_ms: int) -> None:
        """A batch: some keys again and again, others once; NULL, NaN and both zeros among the values."""
        stamps = np.sort(rng.integers(first_ms, first_ms + 150, ROWS))
        stamps[-1] = first_ms + 150
        rows = []
        for place, at in enumerate(stamps.tolist()):
            self._offset += 1
            new = rng.random() < 0.3
            key = f"{rng.integers(0, 2**62):x}" if new else f"k{rng.zipf(1.4) % 40}"
            edge = (None, float("nan"), 0.0, -0.0)[rng.integers(0, 4)]
            value = edge if rng.random() < 0.1 else float(rng.integers(0, 100))
            values: tuple[Any, ...] = (None if rng.random() < 0.03 else key, value)
            if name == "s":
                values = (*values, place)
            rows.append((0, self._offset, at, (*values, at)))
        self.take(Records(name, self._batch(name, rows), {0: self._offset + 1}))

    def _batch(self, name: str, rows: list[Any]) -> Batch:
        stream = self.engine.catalogue[name]
        assert isinstance(stream, Stream)
        return batch_of(stream.schema, rows)


@pytest.mark.parametrize("structure", ["negative", "partitioned"])
def test_changes_add_up_to_the_answers_of_the_reference(structure: str) -> None:
    rng = np.random.default_rng(7)
    engine = Engine() if structure == "negative" else small_engine()
    both = Both(engine, {"strategy": "upa", "structure": structure})
    for sql in SOURCES:
        made = parse(sql, {}, Limits())
        assert isinstance(made, CreateStream)
        both.take(CreateSource(made.stream, sql))
    queries = {}
    for form in FORMS:
        some = texts(rng, form, QUERIES)
        both.register(some)
        queries |= some
    for place in range(BATCHES):
        for name in "su":
            both.records(name, rng, 1_000 + 150 * place)
        if place == 2:  # some go, others come while there is state
            gone = [name for name in queries if rng.random() < 0.3]
            both.take(Unregister(tuple(gone)))
            later = {f"{name}b": queries[name] for name in gone[::2]}
            queries = {name: text for name, text in queries.items() if name not in gone} | later
            both.register(later)
    engine._check()
    filled = 0
    for name in queries:
        answer = both.reference.answer(name)
        assert both.folded.of(name) == Counter(answer.rows), queries[name]
        filled += bool(answer.rows)
    assert filled > QUERIES
