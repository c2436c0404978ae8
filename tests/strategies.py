"""Hypothesis strategies for what crosses the engine's border: schemas, rows, streams, steps.

Small and full of edges: NULL, NaN, both infinities and zeros, empty and non-ASCII strings, the bounds of
integers, ties in time, several partitions, rows late and far ahead, clocks that jump. SQL texts are in
:mod:`tests.sql_strategies`.

Profiles, by ``HYPOTHESIS_PROFILE``: ``same``, which is the default, takes few examples, the same ones for the
same test and the same code, of whose constants Hypothesis draws some; ``thorough`` takes new ones,
``HYPOTHESIS_EXAMPLES`` of them, or those of a ``--hypothesis-seed``. Neither makes a failure smaller, so that
a test has its limit of time for its examples alone; ``HYPOTHESIS_SHRINK=1`` does, with pytest's
``--timeout 0``, for the test that failed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from engine.model.batch import Batch, Column
from engine.model.source import Field, Schema, SourceName, Stream
from engine.model.step import (
    Body,
    CreateSource,
    DropSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    Unregister,
)
from engine.model.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, Kind, Type, decimal

EXAMPLES = 12
"""So many a test has in ``same`` that says nothing else."""
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
PHASES = [Phase.explicit, Phase.generate, Phase.target]  # explaining takes minutes here
if os.environ.get("HYPOTHESIS_SHRINK"):
    PHASES.append(Phase.shrink)
settings.register_profile(
    "same",
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=SLOW,
    phases=PHASES,
)
settings.register_profile(
    "thorough",
    settings.get_profile("same"),
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", 100 * EXAMPLES)),
    derandomize=False,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def examples(few: int) -> int:
    """How many a test has that has so many in ``same``."""
    return max(few, few * settings.default.max_examples // EXAMPLES)


Values = tuple[Any, ...]

DECIMALS = (decimal(5, 2), decimal(18, 0), decimal(18, 18), decimal(9, 4))
TYPES: tuple[Type, ...] = (INTEGER, BIGINT, DOUBLE, STRING, BOOLEAN, DATE, TIMESTAMP, *DECIMALS)

INTEGERS = (0, 1, 2, 3, -1, -7, 32, 2**31 - 1, -(2**31))
BIGINTS = (0, 1, 2, 3, -1, 1_000, 2**53, 2**53 + 1, 2**63 - 1, -(2**63) + 1, -(2**63))
DOUBLES = (
    0.0, -0.0, 1.0, 1.5, 2.0, -2.25, 0.1, 1e-7, 1e16, 1.7976931348623157e308, 5e-324, 2.0**53, 2.0**63,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
STRINGS = (
    "", "a", "A", "b", "ab", "aB", "abc", "a%b", "_", " a ", "ä", "ẞ", "ß", "日本", "😀", "e\u0301", "10",
    "-1.5", "1e3", "true", "NaN", "2024-02-29", "2024-02-30", "1970-01-01 00:00:01.005", "it's", "\\",
)  # fmt: skip
DAYS = (0, 1, -1, 19_782, 11_016, -719_162, 2_932_896)
INSTANTS = (0, 1, -1, 999, 1_000, 86_399_999, 86_400_000, 1_709_210_096_789, -62_135_596_800_000)


def values(type_: Type) -> st.SearchStrategy[Any]:
    """Values of a type as Python holds them, edges first; never NULL."""
    kind = type_.kind
    if kind is Kind.BOOLEAN:
        return st.booleans()
    if kind is Kind.INTEGER:
        return st.sampled_from(INTEGERS) | st.integers(-50, 300)
    if kind is Kind.BIGINT:
        return st.sampled_from(BIGINTS) | st.integers(-50, 300)
    if kind is Kind.DOUBLE:
        return st.sampled_from(DOUBLES) | st.integers(-40, 40).map(lambda n: n / 4)
    if kind is Kind.STRING:
        return st.sampled_from(STRINGS)
    if kind is Kind.DATE:
        return st.sampled_from(DAYS)
    if kind is Kind.TIMESTAMP:
        return st.sampled_from(INSTANTS)
    top = 10**type_.precision - 1
    some = {0, 1, -1, 5, 10, -25, 100, 150, 10**type_.scale, top, -top}
    return st.sampled_from(sorted(n for n in some if abs(n) <= top)).map(
        lambda n: Decimal(n).scaleb(-type_.scale)
    )


def tame(type_: Type) -> st.SearchStrategy[Any]:
    """Values whose sums neither overflow nor depend on the order of adding."""
    if type_.kind in (Kind.INTEGER, Kind.BIGINT):
        return st.integers(-3, 12)
    if type_.kind is Kind.DOUBLE:
        return st.sampled_from([0.0, -0.0, 0.5, 1.25, -3.75, 100.125, 100.125, float("nan"), float("inf")])
    return values(type_)


def tame_nullable(type_: Type) -> st.SearchStrategy[Any]:
    return st.one_of(tame(type_), tame(type_), tame(type_), st.none())


FAVOURITES: dict[Kind, tuple[Any, ...]] = {
    Kind.BOOLEAN: (True, False),
    Kind.INTEGER: (1, 2, 0, 7),
    Kind.BIGINT: (1, 2, 0, 7),
    Kind.DOUBLE: (1.5, 0.0, -0.0, float("nan")),
    Kind.STRING: ("a", "ab", "", "ä"),
    Kind.DATE: (1, 0, 19_782),
    Kind.TIMESTAMP: (1_000, 0, 1_709_210_096_789),
}


def favourite(type_: Type) -> st.SearchStrategy[Any]:
    """One of a few values, so that constants of queries meet the data, and groups have members."""
    if type_.kind is Kind.DECIMAL:
        return st.sampled_from([Decimal(n).scaleb(-type_.scale) for n in (1, 0, 10**type_.scale - 1)])
    return st.sampled_from(FAVOURITES[type_.kind])


def common(type_: Type) -> st.SearchStrategy[Any]:
    """Mostly favourites, some NULL, some anything."""
    return st.one_of(favourite(type_), favourite(type_), favourite(type_), st.none(), values(type_))


def nullable(type_: Type) -> st.SearchStrategy[Any]:
    return st.one_of(values(type_), values(type_), values(type_), st.none())


@st.composite
def schemas(draw: st.DrawFn, columns_max: int = 5, timestamp: bool = True) -> Schema:
    """A schema of a few columns; with ``timestamp`` the last one is ``ts``, the row's own timestamp."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=columns_max))
    fields = [Field(f"{type_.kind.value[0].lower()}{place}", type_) for place, type_ in enumerate(types)]
    if timestamp:
        fields.append(Field("ts", TIMESTAMP, nullable=False))
    return Schema(tuple(fields))


def batch_of(schema: Schema, rows: Sequence[tuple[int, int, int, Values]]) -> Batch:
    """A batch of (partition, offset, timestamp, values); ``values`` without a last column ``ts``."""
    own_time = schema.fields[-1].name == "ts"
    columns = []
    for place, column in enumerate(schema):
        if own_time and place == len(schema) - 1:
            plain = [row[2] for row in rows]
        else:
            plain = [row[3][place] for row in rows]
        columns.append(column_of(column.type, plain))
    return Batch(
        schema,
        tuple(columns),
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.int64),
    )


def column_of(type_: Type, plain: Sequence[Any]) -> Column:
    """A column of Python values; built by hand, so that from_arrow and to_arrow are not trusted here."""
    present = [value is not None for value in plain]
    valid = None if all(present) else np.array(present, np.bool_)
    if type_.kind is Kind.STRING:
        distinct = dict.fromkeys(value for value in plain if value is not None)
        place_of = {value: place for place, value in enumerate(distinct)}
        codes = [0 if value is None else place_of[value] for value in plain]
        return Column(type_, np.array(codes, np.int32), valid, pa.array(list(distinct), pa.string()))
    if type_.kind is Kind.DECIMAL:
        plain = [None if value is None else int(value.scaleb(type_.scale)) for value in plain]
    filled = [0 if value is None else value for value in plain]
    return Column(type_, np.array(filled, type_.dtype), valid)


@st.composite
def batches(draw: st.DrawFn, schema: Schema, rows_max: int = 12) -> Batch:
    """A batch for expressions alone: one partition, offsets and timestamps counting up."""
    columns = [f for f in schema if f.name != "ts"]
    rows = draw(st.lists(st.tuples(*(nullable(f.type) for f in columns)), min_size=1, max_size=rows_max))
    return batch_of(schema, [(0, place, 1_000 + place, row) for place, row in enumerate(rows)])


# --- streams and steps --------------------------------------------------------------------------------

CLOCK_START = 1_000
PARTITIONS = (0, 1, 2)
REFUSED_COLUMN = "no_such_column"
OPTIONS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"maintenance": "none"},
    {"maintenance": "lazy"},
    {"maintenance": "eager"},
)
PAUSED = {"paused": "true"}


@st.composite
def streams(draw: st.DrawFn, name: str = "s", event_time: bool | None = None) -> Stream:
    """A stream whose times are a few dozen milliseconds, so that a handful of rows meets every rule.

    What keeps rows stands first among choices, here and below: the first ones are drawn most.
    """
    if event_time is None:
        event_time = draw(st.sampled_from([True, True, False]))
    return Stream(
        name=SourceName(name),
        schema=draw(schemas(columns_max=3, timestamp=event_time)),
        topic=name,
        timestamp_column="ts" if event_time else None,
        lateness_ms=draw(st.sampled_from([0, 0, 1, 5, 20])) if event_time else 0,
        idle_timeout_ms=draw(st.sampled_from([1, 10, 30, 1_000])),
        idle_advances=draw(st.booleans()) if event_time else False,
        retain_ms=draw(st.sampled_from([100_000, 100, 20, 5])),
        future_max_ms=draw(st.sampled_from([100_000, 100_000, 0, 20])),
    )


@dataclass
class Script:
    """Makes steps one after another, with offsets, clock and registered ids kept straight."""

    draw: st.DrawFn
    text: Callable[[st.DrawFn, Stream], str]
    event_time: bool | None = None
    rows_max: int = 8
    favourites: Callable[[Type], st.SearchStrategy[Any]] = common
    streams: dict[str, Stream] = field(default_factory=dict)
    clock: int = CLOCK_START
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    standing: dict[str, Registration] = field(default_factory=dict)
    reads: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pools: dict[str, list[list[Any]]] = field(default_factory=dict)
    orderly: bool = False
    born: int = 0

    def add(self, body: Body) -> None:
        self.steps.append(Step(Position(1, len(self.steps) + 1), self.clock, body))

    def tick(self) -> None:
        """Often by just what makes a partition idle."""
        if self.orderly:
            self.clock += self.draw(st.sampled_from([30, 30, 30, 45, 200]))
            return
        timeouts = [stream.idle_timeout_ms for stream in self.streams.values()]
        self.clock += self.draw(st.sampled_from([0, 0, 1, 3, 10, 40, 200, -5, *timeouts, *timeouts]))

    def lagging(self) -> frozenset[int]:
        if self.orderly:
            return frozenset()
        return self.draw(st.sampled_from([frozenset(), frozenset(), frozenset({0}), frozenset({1, 2})]))

    def create(self, name: str) -> None:
        stream = self.draw(streams(name, self.event_time))
        if self.orderly:
            stream = replace(stream, future_max_ms=100_000, lateness_ms=min(stream.lateness_ms, 5))
        self.streams[name] = stream
        own = [f for f in stream.schema if f.name != "ts"]
        self.pools[name] = [self.draw(st.lists(self.favourites(f.type), min_size=3, max_size=5)) for f in own]
        self.add(CreateSource(stream, create_text(stream)))

    def register(self) -> None:
        registrations = []
        for _ in range(self.draw(st.integers(1, 3))):
            query_id = f"q{self.born}"
            self.born += 1
            text, names = self.write()
            if self.draw(st.integers(0, 30)) == 30:
                registrations.append(Registration(query_id, f"SELECT {REFUSED_COLUMN} FROM {names[0]}"))
                continue
            registration = Registration(query_id, text, options=self.draw(st.sampled_from(OPTIONS)))
            self.standing[query_id] = registration
            self.reads[query_id] = names
            registrations.append(registration)
            if self.draw(st.integers(0, 20)) == 20:
                registrations.append(registration)
        self.add(Register(tuple(registrations)))

    def write(self) -> tuple[str, tuple[str, ...]]:
        """A text, and which streams it may read."""
        name = self.draw(st.sampled_from(sorted(self.streams)))
        return self.text(self.draw, self.streams[name]), (name,)

    def change(self) -> None:
        """A query gets another maintenance, is paused, or goes on."""
        if self.standing:
            query_id = self.draw(st.sampled_from(sorted(self.standing)))
            options = self.draw(st.sampled_from(OPTIONS)) | self.draw(st.sampled_from([{}, {}, PAUSED]))
            self.standing[query_id] = replace(self.standing[query_id], options=options)
            self.add(Register((self.standing[query_id],)))

    def unregister(self) -> None:
        if self.standing:
            gone = self.draw(st.sampled_from(sorted(self.standing)))
            del self.standing[gone]
            self.add(Unregister((gone, "never-registered")))

    def drop(self) -> None:
        """A stream goes, and another takes its name."""
        name = self.draw(st.sampled_from(sorted(self.streams)))
        gone = tuple(query_id for query_id in self.standing if name in self.reads[query_id])
        for query_id in gone:
            del self.standing[query_id]
        if gone:
            self.add(Unregister(gone))
        self.add(DropSource(SourceName(name)))
        self.tick()
        self.create(name)

    def heartbeat(self) -> None:
        name = self.draw(st.sampled_from(sorted(self.streams)))
        self.add(Heartbeat(SourceName(name), self.lagging(), self.promises()))

    def promises(self) -> dict[int, int]:
        """Promises of some partitions; now and then too far ahead, or long since kept."""
        if self.orderly or self.draw(st.booleans()):
            return {}
        ahead = st.sampled_from([-200, -20, -5, -1, 0, 1, 2, 5, 10, 40, 200_000_000])
        return {p: self.clock + self.draw(ahead) for p in self.draw(st.sets(st.integers(0, 3), max_size=3))}

    def records(self, name: str | None = None) -> None:
        """Values from the stream's few favourites, so that groups have members and keys meet.

        Where all is orderly rows come in the order of time, from one partition, and none is late. Which row
        has which value comes from a seed: a choice a cell would leave room for few rows.
        """
        name = name or self.draw(st.sampled_from(sorted(self.streams)))
        stream, pools = self.streams[name], self.pools[name]
        count = self.draw(st.sampled_from([self.rows_max, self.rows_max, self.rows_max // 2, 1, 0]))
        rng = random.Random(self.draw(st.integers(0, 1_000)))
        if self.orderly:
            places = [(0, ahead) for ahead in sorted(rng.choices(range(30), k=count))]
        else:
            places = [(rng.choice(PARTITIONS), rng.randint(-60, 30)) for _ in range(count)]
        drawn = [(*place, tuple(rng.choice(pool) for pool in pools)) for place in places]
        rows = []
        next_offsets: dict[int, int] = {}
        for partition, ahead, plain in drawn:
            offset = self.offsets.get((name, partition), 0)
            rows.append((partition, offset, self.clock + ahead, plain))
            next_offsets[partition] = self.offsets[(name, partition)] = offset + 1
        self.add(Records(SourceName(name), self.batch(stream, rows, rng), next_offsets, self.lagging()))

    def batch(
        self, stream: Stream, rows: Sequence[tuple[int, int, int, Values]], rng: random.Random
    ) -> Batch:
        """The rows as a step brings them."""
        return batch_of(stream.schema, rows)


@st.composite
def scripts(
    draw: st.DrawFn,
    text: Callable[[st.DrawFn, Stream], str],
    steps_max: int = 12,
    streams_max: int = 2,
    event_time: bool | None = None,
    drops: bool = True,
    changes: bool = True,
) -> list[Step]:
    """Steps that create streams, then register, remove, bring rows and let time pass in any order.

    drops: streams go as well; changes: queries get other options.
    """
    script = Script(draw, text, event_time, orderly=draw(st.sampled_from([True, False])))
    for name in ["s", "t"][: draw(st.integers(1, streams_max))]:
        script.create(name)
    often = [script.records, script.records, script.records, script.records, script.register, script.register]
    seldom = [script.heartbeat, script.heartbeat, script.unregister]
    if drops:
        seldom.append(script.drop)
    if changes:
        seldom += [script.change, script.change]
    for _ in range(draw(st.sampled_from([steps_max, steps_max, steps_max // 2, 2]))):
        script.tick()
        draw(st.sampled_from([*often, *often, *seldom]))()
    return script.steps


@st.composite
def journeys(
    draw: st.DrawFn,
    text: Callable[[st.DrawFn, Stream], str],
    legs: int = 4,
    changes: bool = True,
    favourites: Callable[[Type], st.SearchStrategy[Any]] = common,
) -> list[Step]:
    """Steps over one stream that see to it that every query meets rows, and rows every query.

    Each leg registers queries and brings rows twice; at its end some query changes or the clock goes on.
    """
    orderly = draw(st.sampled_from([True, True, False]))
    script = Script(draw, text, rows_max=12, favourites=favourites, orderly=orderly)
    script.create("s")
    for _ in range(legs):
        script.register()
        for _ in range(2):
            script.tick()
            script.records()
        script.tick()
        draw(st.sampled_from([script.heartbeat, script.change] if changes else [script.heartbeat]))()
    return script.steps


def create_text(stream: Stream) -> str:
    """The CREATE STREAM or CREATE TABLE statement of a source."""
    columns = [f'"{f.name}" {f.type}' + ("" if f.nullable else " NOT NULL") for f in stream.schema]
    if stream.is_table:
        columns.append(f"PRIMARY KEY ({', '.join(stream.key)})")
    options = [f"topic = '{stream.topic}'", f"idle_timeout = '{stream.idle_timeout_ms} milliseconds'"]
    if stream.timestamp_column is not None:
        options.append(f"timestamp = '{stream.timestamp_column}'")
        options.append(f"lateness = '{stream.lateness_ms} milliseconds'")
        options.append(f"idle_advances = {str(stream.idle_advances).lower()}")
        options.append(f"future_max = '{stream.future_max_ms} milliseconds'")
    what = "TABLE" if stream.is_table else "STREAM"
    create = f'CREATE {what} "{stream.name}" ({", ".join(columns)}) WITH ({", ".join(options)})'
    return (
        f"{create} RETAIN {stream.retain_ms} MILLISECONDS{'' if stream.retroactive else ' NON RETROACTIVE'}"
    )
