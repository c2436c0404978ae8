"""Sources for a join without an engine: rows in Data SteMs, and what nested loops say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pyarrow as pa

from engine.joins.bounds import Reach
from engine.joins.shape import JoinEdge, Shape
from engine.model.batch import Batch
from engine.model.expressions import Column
from engine.model.source import Field, Schema, SourceName
from engine.model.types import BIGINT, DOUBLE, STRING, TIMESTAMP
from engine.stems.data_stem import DataStem
from engine.stems.query_stem import QueryStem
from engine.stems.rows import Rows
from engine.windows.clauses import Window

SCHEMA = Schema((Field("k", BIGINT), Field("s", STRING), Field("d", DOUBLE), Field("ts", TIMESTAMP)))
KEYS = {"k": Column(0, "k", BIGINT), "s": Column(1, "s", STRING), "d": Column(2, "d", DOUBLE)}

Row = tuple[int, int | None, str | None, float | None]
"""timestamp, k, s, d"""


@dataclass
class Sources:
    """Data SteMs by name, with the rows that were ever put in, by ordinal."""

    names: Sequence[str]
    stems: dict[str, DataStem] = field(init=False)
    rows: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        self.stems = {name: DataStem(SCHEMA, QueryStem(SCHEMA)) for name in self.names}
        self.rows = {name: [] for name in self.names}

    def append(self, name: str, rows: Sequence[Row]) -> None:
        """Rows enter, by ascending timestamp."""
        if not rows:
            return
        first = len(self.rows[name])
        stamps, *columns = zip(*rows, strict=True)
        arrays = [
            pa.array(column, f.type.arrow) for column, f in zip([*columns, stamps], SCHEMA, strict=True)
        ]
        table = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA.arrow)
        offsets = np.arange(first, first + len(rows))
        self.stems[name].append(Batch.from_arrow(SCHEMA, table, np.zeros(len(rows)), offsets, stamps))
        self.rows[name] += rows

    def now(self) -> tuple[Mapping[SourceName, Rows], Mapping[SourceName, int]]:
        """What a group advances over, all of it visible."""
        rows = {SourceName(name): stem.rows() for name, stem in self.stems.items()}
        return rows, {name: each.end for name, each in rows.items()}


def equal(one: object, other: object) -> bool:
    """As keys are compared: NULL equals nothing, NaN itself."""
    if one is None or other is None:
        return False
    return one == other or (one != one and other != other)


def value(row: Row, key: Column) -> object:
    """The value that a row has in a key column."""
    return row[1 + key.index]


def partners(edge: JoinEdge, one: Row, other: Row) -> bool:
    """Whether two rows satisfy an edge."""
    return all(
        equal(value(one, left), value(other, right))
        for left, right in zip(edge.left_keys, edge.right_keys, strict=True)
    )


def in_window(window: Window, ordinal: int, rows: Sequence[Row], now_ms: int) -> bool:
    """Whether the row is in the widest of what the window holds at an instant, or later."""
    reach = Reach.of(window)
    visible = sum(row[0] <= now_ms for row in rows)
    return (
        reach.everything
        or (reach.behind_ms is not None and rows[ordinal][0] >= now_ms - reach.behind_ms)
        or (reach.begin_ms is not None and rows[ordinal][0] >= reach.begin_ms)
        or (reach.rows is not None and ordinal >= visible - reach.rows)
    )


def nested_loops(sources: Sources, shape: Shape, ordinals: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Places of the partners in relations of these ordinals, in order."""
    lines = [
        [(place, sources.rows[name][ordinal]) for place, ordinal in enumerate(each)]
        for name, each in zip(shape.inputs, ordinals, strict=True)
    ]
    return [
        tuple(place for place, _ in chosen)
        for chosen in product(*lines)
        if all(partners(edge, chosen[edge.left][1], chosen[edge.right][1]) for edge in shape.edges)
    ]
