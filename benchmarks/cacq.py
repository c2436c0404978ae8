"""What CACQ's experiments have in common: its stream, queries over it, and the Query SteM they stand in.

A stream S has five integer columns of uniform values 0..99. Rows come in batches of 8,192 and go through the
engine's own Query SteM with its grouped filters as modules of the eddy, `split`, unless said otherwise. A
visit is a row that is given to a grouped filter because some query it serves wants it still.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.eddy.eddy import Timer
from engine.eddy.policies import M, Optimal, RoutingPolicy
from engine.engine import Engine
from engine.language.functions import BUILT_IN, FunctionCatalogue
from engine.model.batch import BATCH_ROWS_MAX, Batch, Column
from engine.model.expressions import Expression
from engine.model.source import Field, Schema
from engine.model.types import INTEGER
from engine.stems.query_stem import QueryStem
from engine.store.matches.segment_bits import Matrix

COLUMNS = ("a", "b", "c", "d", "e")
VALUES = 100
SCHEMA = Schema(tuple(Field(name, INTEGER, nullable=False) for name in COLUMNS))
CREATE = f"CREATE STREAM s ({', '.join(f'{name} INTEGER NOT NULL' for name in COLUMNS)}) WITH (topic='s')"

Values = npt.NDArray[np.int32]

TABLE3 = [
    "a > 90",
    "a > 90 AND b > 70",
    "a > 90 AND b > 70 AND c > 50",
    "a > 90 AND b > 70 AND c > 50 AND d > 30",
    "a > 90 AND b > 70 AND c > 50 AND d > 30 AND e > 10",
]
"""The predicates of the paper's table 3."""


class Worst(Optimal):
    """The opposite: first what lets most through for its cost."""

    name = "worst"

    def choose(self, ready: Sequence[M]) -> M:
        """The one that is thought least of."""
        return min(ready, key=self._rank)


def uniform(rng: np.random.Generator, n: int = BATCH_ROWS_MAX) -> Values:
    """int32[5, n]."""
    return rng.integers(0, VALUES, (len(COLUMNS), n), np.int32)


def batch_of(values: Values) -> Batch:
    """A batch of S."""
    n = values.shape[1]
    columns = tuple(Column(INTEGER, line) for line in values)
    numbers = np.arange(n, dtype=np.int64)
    return Batch(SCHEMA, columns, np.zeros(n, np.int32), numbers, numbers)


@dataclass(frozen=True, slots=True)
class Routed:
    """What one batch met. given: rows by module. bits: uint64[words, n]."""

    given: dict[str, int]
    bits: npt.NDArray[np.uint64]


class Standing:
    """A Query SteM with predicates, and rows that go through it."""

    def __init__(
        self,
        texts: Sequence[str],
        policy: RoutingPolicy | None = None,
        *,
        grouped_filters: str = "split",
        timer: Timer | None = None,
        functions: FunctionCatalogue = BUILT_IN,
        create: str = CREATE,
    ) -> None:
        self._binder = Engine(functions=functions)
        self._binder.create(create)
        (source,) = self._binder.catalogue
        self._from = source
        self.stem = QueryStem(self._binder.catalogue[source].schema)
        self.predicates: list[Expression] = []
        self.slots: list[int] = []
        self.stem.eddy.set_attribute("grouped_filters", grouped_filters)
        if policy is not None:
            self.stem.eddy.policy = policy
        self.stem.eddy.timer = timer
        for text in texts:
            self.add(text)

    def add(self, text: str) -> None:
        """One more query."""
        predicate = self._binder.prepare(f"SELECT * FROM {self._from} WHERE {text}").scan.predicate
        self.predicates.append(predicate)
        self.slots.extend(self.stem.add([predicate]).slots)

    def match(self, batch: Batch) -> npt.NDArray[np.uint64]:
        """uint64[words, n]: who wants each row."""
        out = np.empty((self.stem.words, len(batch)), np.uint64)
        self.stem.match(batch, Matrix(out), 0)
        return out

    def route(self, batch: Batch) -> Routed:
        """Match, and tell how many rows each module was given."""
        before = self._given()
        bits = self.match(batch)
        after = self._given()
        return Routed({name: rows - before.get(name, 0) for name, rows in after.items()}, bits)

    def _given(self) -> dict[str, int]:
        return {each.name: each.given for each in self.stem.eddy.statistics()}

    def tickets(self) -> dict[str, float]:
        """The share of all tickets that each module holds."""
        held = {each.name: each.tickets or 0.0 for each in self.stem.eddy.statistics()}
        return {name: tickets / sum(held.values()) for name, tickets in held.items()}

    def wants(self, bits: npt.NDArray[np.uint64], query: int) -> npt.NDArray[np.bool_]:
        """bool[n]: which rows a query wants."""
        place = self.stem.cohorts.of(self.slots[query])
        found: npt.NDArray[np.bool_] = (bits[place >> 6] >> np.uint64(place & 63) & np.uint64(1)).astype(bool)
        return found
