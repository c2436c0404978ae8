"""Steps over several streams and tables whose values meet: the same few types, and few values of each.

All streams of a world are of one kind of time; a table may be of the other. Times are a few dozen
milliseconds, rows few, since joins multiply them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from engine.model.batch import Batch, versions
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import CreateSource, Heartbeat, Step
from engine.model.types import BIGINT, DOUBLE, INTEGER, STRING, Type
from tests.strategies import Script, Values, batch_of, common, create_text, streams

Text = Callable[[st.DrawFn, Mapping[str, Stream]], str]
JOINED_TYPES = (INTEGER, BIGINT, DOUBLE, STRING)
ONE: dict[Type, Any] = {INTEGER: 1, BIGINT: 1, DOUBLE: 1.0, STRING: "a"}


@dataclass
class World(Script):
    """A script whose texts are over all of its sources."""

    of_all: Text = field(kw_only=True)
    types: tuple[Type, ...] = ()
    pools_of: dict[Type, list[Any]] = field(default_factory=dict)
    rows_max: int = 6
    roomy: bool = False

    def begin(self, names: str, tables: str) -> None:
        """Create streams of these names, a letter each, and tables."""
        if self.event_time is None:
            self.event_time = self.draw(st.sampled_from([True, True, False]))
        self.types = tuple(self.draw(st.lists(st.sampled_from(JOINED_TYPES), min_size=1, max_size=2)))
        for type_ in self.types:
            self.pools_of[type_] = self.draw(st.lists(self.favourites(type_), min_size=2, max_size=4))
        for name in names:
            self.create(name)
        for name in tables:
            self.create_table(name)

    def create(self, name: str) -> None:
        self.place(self.draw(streams(name, self.event_time)))

    def place(self, stream: Stream) -> None:
        """Give it columns of the world's types and one of its own, and begin with it."""
        own_time = [f for f in stream.schema if f.name == "ts"]
        others = [f.type for f in stream.schema if f.name != "ts"][:1]
        names = [f"{stream.name}{n}" for n in range(len(self.types) + len(others))]
        types = zip(names, (*self.types, *others), strict=True)
        fields = [Field(name, type_, nullable=name not in stream.key) for name, type_ in types]
        stream = replace(stream, schema=Schema((*fields, *own_time)))
        if self.orderly:
            stream = replace(stream, future_max_ms=100_000, lateness_ms=min(stream.lateness_ms, 5))
        if self.roomy:
            stream = replace(stream, retain_ms=100_000)
        pools = [self.pools_of[type_] for type_ in self.types]
        pools += [self.draw(st.lists(self.favourites(type_), min_size=3, max_size=4)) for type_ in others]
        for place, _ in enumerate(stream.key):
            pools[place] = [value for value in pools[place] if value is not None] or [ONE[self.types[place]]]
        self.pools[stream.name] = pools
        self.streams[stream.name] = stream
        self.add(CreateSource(stream, create_text(stream)))

    def create_table(self, name: str) -> None:
        """Its key is its first column, or its first two."""
        of_stream = self.event_time if self.draw(st.integers(1, 3)) < 3 else not self.event_time
        stream = self.draw(streams(name, of_stream))
        beside_streams = of_stream and self.event_time and not all(s.is_table for s in self.streams.values())
        retroactive = not beside_streams or self.draw(st.booleans())
        wide = len(self.types) > 1 and self.draw(st.booleans())
        key = tuple(f"{name}{n}" for n in range(1 + wide))
        self.place(replace(stream, key=key, retroactive=retroactive))

    def write(self) -> tuple[str, tuple[str, ...]]:
        text = self.of_all(self.draw, self.streams)
        return text, tuple(name for name in self.streams if f'"{name}"' in text)

    def round(self) -> None:
        """Rows of every source, of the same few milliseconds."""
        for name in self.streams:
            self.records(name)

    def settle(self) -> None:
        """Time passes until every partition is idle."""
        for _ in range(2):
            self.clock += 2_000
            for name in self.streams:
                self.add(Heartbeat(SourceName(name)))

    def batch(
        self, stream: Stream, rows: Sequence[tuple[int, int, int, Values]], rng: random.Random
    ) -> Batch:
        if not stream.is_table:
            return batch_of(stream.schema, rows)
        return table_batch(stream, rows, [rng.random() < 0.25 for _ in rows])


def table_batch(
    stream: Stream, rows: Sequence[tuple[int, int, int, Values]], deleted: Sequence[bool]
) -> Batch:
    """Versions of rows as :func:`tests.strategies.batch_of` takes them; of one that is deleted there is the
    key alone.
    """
    kept = batch_of(stream.schema, rows)
    columns = []
    for f, column in zip(stream.schema, kept.columns, strict=True):
        if f.name not in stream.key:
            present = ~np.array(deleted, np.bool_)
            column = replace(column, valid=present if column.valid is None else column.valid & present)
        columns.append(column)
    return versions(stream, replace(kept, columns=tuple(columns)), np.array(deleted, np.bool_))


@st.composite
def worlds(
    draw: st.DrawFn,
    text: Text,
    steps_max: int = 10,
    streams_count: int = 2,
    tables_count: int = 0,
    changes: bool = True,
    roomy: bool = False,
    favourites: Callable[[Type], st.SearchStrategy[Any]] = common,
) -> list[Step]:
    """Steps that create sources, then register, remove, bring rows and let time pass in any order.

    changes: queries get other options; roomy: every row is retained.
    """
    orderly = draw(st.sampled_from([True, True, False]))
    world = World(draw, no_text, orderly=orderly, favourites=favourites, of_all=text, roomy=roomy)
    world.begin("stu"[:streams_count], "hk"[:tables_count])
    often = [world.records] * 2 + [world.round] * 3 + [world.register] * 2
    seldom = [world.heartbeat, world.unregister]
    if changes:
        seldom.append(world.change)
    world.register()
    for _ in range(steps_max):
        world.tick()
        draw(st.sampled_from([*often, *seldom]))()
    return world.steps


@st.composite
def eventful_worlds(
    draw: st.DrawFn,
    text: Text,
    rounds: int = 4,
    streams_count: int = 2,
    tables_count: int = 1,
    roomy: bool = False,
    changes: bool = True,
    rows_max: int = 5,
) -> list[Step]:
    """Steps that bring rows to every source in turn, most of them while queries stand over it."""
    orderly = draw(st.sampled_from([True, True, True, False]))
    world = World(draw, no_text, orderly=orderly, of_all=text, roomy=roomy, rows_max=rows_max)
    world.begin("stu"[:streams_count], "hk"[:tables_count])
    world.register()
    for _ in range(rounds):
        world.tick()
        world.round()
        draw(st.sampled_from([world.register, world.heartbeat, *([world.change] if changes else [])]))()
    world.unregister()
    world.settle()
    return world.steps


@st.composite
def settled_worlds(
    draw: st.DrawFn, tables_count: int, favourites: Callable[[Type], st.SearchStrategy[Any]]
) -> list[Step]:
    """Two streams and tables with rows of the same time, all of them retained and at or before NOW."""
    world = World(
        draw, no_text, orderly=True, favourites=favourites, of_all=no_texts, roomy=True, rows_max=10
    )
    world.begin("st", "hk"[:tables_count])
    for _ in range(2):
        world.round()
        world.clock += 20
    world.settle()
    return world.steps


def no_texts(draw: st.DrawFn, sources: Mapping[str, Stream]) -> str:
    raise AssertionError("nothing is registered here")


def no_text(draw: st.DrawFn, stream: Stream) -> str:
    raise AssertionError("a world's texts are over all of its sources")
