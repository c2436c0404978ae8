"""Two streams with summaries and a promising join over them, without an engine; and what nested loops say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.algebra.join.stage import Join
from engine.algebra.project.stage import Output, Project
from engine.joins.bounds import timestamps
from engine.language.preference import COUNT, Preference, PreferenceOrder, Priority, PriorityForm
from engine.language.query import Query, Scan
from engine.model.capacities import SMALLEST
from engine.model.expressions import Column, Expression
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.summary import SummaryDefinition, SummarySettings
from engine.model.types import BIGINT
from engine.operators.scan import ScanAt
from engine.promising.group import Member
from engine.promising.join_members import join_key
from engine.promising.joins import PromisingJoin
from engine.summaries.summary import Summary
from engine.windows.clauses import UNBOUNDED, Window
from tests.joins.sources import KEYS, SCHEMA, Row, Sources, equal, value

COUNTED = Column(COUNT, "count", BIGINT)
LIMITS = Limits()
WIDTHS = {SourceName("a"): len(SCHEMA), SourceName("b"): len(SCHEMA)}


def join_query(
    order: PreferenceOrder = "desc",
    windows: Sequence[Window] = (UNBOUNDED, UNBOUNDED),
    keys: Sequence[str] = ("k",),
    fade: float = 1.0,
    form: PriorityForm = "count",
    expression: Expression = COUNTED,
    predicates: Sequence[Expression | None] = (None, None),
    sources: Sequence[str] = ("a", "b"),
) -> Query:
    """SELECT * FROM a [window], b [window] WHERE a.k = b.k AND ... WITH PREFERENCE order p, p FADE FACTOR."""
    one, other = map(SourceName, sources)
    outputs = tuple(Output(f.name, Column(place, f.name, f.type)) for place, f in enumerate(SCHEMA))
    inner = Query("", Scan(other, windows[1], predicates[1]), (Project(outputs),))
    join = Join(inner, "inner", tuple((KEYS[key], KEYS[key]) for key in keys))
    column = KEYS[keys[0]].index
    priorities = tuple(
        Priority(place, source, f"of_{source}", column, expression)
        for place, source in enumerate((one, other))
    )
    preference = Preference(order, priorities, fade, form)
    return Query("", Scan(one, windows[0], predicates[0]), (join, Project(outputs)), preference=preference)


@dataclass
class Streams:
    """Two streams, a and b, with summaries of one column."""

    column: str = "k"
    granularity_ms: int = 8
    rate: int = 2
    depth: int = 4
    settings: SummarySettings = field(
        default_factory=lambda: SummarySettings(zone_rows_min=2, sketch_width=8, buckets=4)
    )
    now_ms: int | None = None
    sources: Sources = field(default_factory=lambda: Sources(("a", "b")))
    summaries: dict[str, Summary] = field(init=False)

    def __post_init__(self) -> None:
        self.summaries = {}
        for name in self.sources.names:
            definition = SummaryDefinition(
                f"of_{name}",
                SourceName(name),
                self.column,
                self.granularity_ms,
                self.rate,
                self.depth,
                self.settings,
            )
            self.summaries[definition.name] = Summary(definition, KEYS[self.column].type, SMALLEST)

    def step(self, rows: dict[str, Sequence[Row]], now_ms: int) -> None:
        """Rows enter, each summary takes them in, and NOW goes on."""
        self.now_ms = now_ms
        for name in self.sources.names:
            stem, summary = self.sources.stems[name], self.summaries[f"of_{name}"]
            start = stem.end
            self.sources.append(name, rows.get(name, ()))
            stored = stem.rows()
            for ordinal, batch in stored.slices(start, stem.end):
                values = batch.columns[KEYS[self.column].index]
                summary.enter(values, timestamps(stored, ordinal, ordinal + len(batch)), ordinal)
            summary.advance(now_ms)

    def at(self) -> dict[SourceName, ScanAt]:
        """As the streams stand."""
        return {
            SourceName(name): ScanAt.now(stem.rows(), self.now_ms, None)
            for name, stem in self.sources.stems.items()
        }

    def group(self, *queries: Query, limits: Limits = LIMITS) -> PromisingJoin:
        """A group of these queries, q0, q1, ..."""
        group = PromisingJoin(join_key(queries[0], WIDTHS), self.summaries, limits)
        for number, query in enumerate(queries):
            group.add(Member(f"q{number}", query), self.at())
        return group

    def drop_below(self, name: str, ordinal: int) -> None:
        """Retention lets rows go."""
        self.sources.stems[name].drop_below(ordinal)
        self.summaries[f"of_{name}"].drop_below(ordinal)

    def exact(self, begins: Sequence[int], keys: Sequence[str] = ("k",)) -> set[tuple[int, int]]:
        """Ordinals of all retained pairs with equal keys and timestamps from these instants on."""
        one, other = (
            [
                (ordinal, row)
                for ordinal, row in enumerate(self.sources.rows[name])
                if ordinal >= self.sources.stems[name].base and row[0] >= begin
            ]
            for name, begin in zip(self.sources.names, begins, strict=True)
        )
        return {
            (left, right)
            for left, first in one
            for right, second in other
            if all(equal(value(first, KEYS[key]), value(second, KEYS[key])) for key in keys)
        }


def pairs_of(group: PromisingJoin, query_id: str = "q0") -> list[tuple[int, int]]:
    """What was found, in order."""
    pairs = group.found(query_id).pairs()
    return list(zip(pairs.left.tolist(), pairs.right.tolist(), strict=True))


def spend_all(group: PromisingJoin, streams: Streams, units: int = 1 << 40) -> int:
    """Spend so many units."""
    return group.spend(units, streams.at())


def rows_of(stamps: Sequence[int], keys: Sequence[int | None]) -> list[Row]:
    """Rows with these timestamps and keys."""
    return [(stamp, key, None, None) for stamp, key in zip(stamps, keys, strict=True)]


def script_of(seed: int, steps_made: int = 6, rows: int = 60) -> list[tuple[dict[str, list[Row]], int]]:
    """Skewed rows, ten milliseconds a step."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(steps_made):
        drawn = {}
        for name in "ab":
            stamps = np.sort(rng.integers(10 * number + 1, 10 * number + 11, rows)).tolist()
            drawn[name] = rows_of(stamps, np.minimum(rng.zipf(1.5, rows), 20).tolist())
        made.append((drawn, 10 * number + 10))
    return made
