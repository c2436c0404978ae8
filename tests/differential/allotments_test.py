"""Queries that are given less, against the reference, which gets the text that says what is given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.allotment import Allotment, ScanAllotment
from engine.model.limits import Limits
from engine.model.source import SourceName
from engine.model.step import (
    Allocate,
    Alter,
    Body,
    CreateSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
    StepResult,
)
from engine.reference import Reference
from tests.differential.agreement import EngineSubject, assert_same_answers, cut, numbered
from tests.memory_state import MemoryState
from tests.queries.subscriptions import folded, spelled
from tests.strategies import batch_of

SOME = settings(max_examples=max(15, settings.default.max_examples // 4), deadline=None)
ASKED_MS = 60
OPTIONS = {"max_fn": "1", "max_fp": "1", "max_error": "1"}


@dataclass(frozen=True)
class Source:
    """What a scan is given, as a text says it."""

    name: str
    window_ms: int = ASKED_MS
    percent: Decimal = Decimal(100)
    down_to: bool = False

    @property
    def sampled(self) -> str:
        if self.percent == 100:
            return f"{self.name} SAMPLE(100 DOWN TO 1)" if self.down_to else self.name
        return f"{self.name} SAMPLE({self.percent})"

    def __str__(self) -> str:
        return f"{self.sampled} [RANGE {self.window_ms} MILLISECONDS"

    def times(self, call: str, type_: str, other: Source | None = None) -> str:
        """An aggregate over all rows, by the rows of the sample; other: that these are joined with."""
        share = float(self.percent / 100)
        if other is not None:
            share *= float(other.percent / 100)
        return call if share == 1 else f"CAST(CAST({call} AS DOUBLE) * {1 / share!r} AS {type_})"


Text = Callable[[Source, Source], str]

SHAPES: dict[str, tuple[Text, str]] = {
    "rows": (lambda s, t: f"SELECT k, v FROM {s}] WHERE v > 1", "s*"),
    "steps": (lambda s, t: f"SELECT k, v FROM {s} SLIDE 20 MILLISECONDS]", "s*"),
    "groups": (
        lambda s, t: (
            f"SELECT k, {s.times('COUNT(v)', 'BIGINT')} AS n, AVG(v) AS mean, "
            f"{s.times('SUM(v)', 'BIGINT')} AS total FROM {s}] GROUP BY k"
        ),
        "s*",
    ),
    "doubles": (
        lambda s, t: (
            f"SELECT {s.times('SUM(w)', 'DOUBLE')} AS total, {s.times('COUNT(*)', 'BIGINT')} AS n "
            f"FROM {s}] WHERE v <> 3"
        ),
        "s*",
    ),
    "count": (lambda s, t: f"SELECT {s.times('COUNT(*)', 'BIGINT')} AS n FROM {s}]", "s*"),
    "joined": (lambda s, t: f"SELECT a.k, a.v, b.w FROM {s}] a JOIN {t}] b ON a.k = b.k", "st"),
    "joined_twice": (lambda s, t: f"SELECT a.v, b.v AS w FROM {s}] a JOIN {t}] b ON a.k = b.k", "ss"),
    "among": (lambda s, t: f"SELECT k, v FROM {s}] WHERE k IN (SELECT k FROM {t}])", "st"),
    "most": (
        lambda s, t: (
            f"SELECT k, MAX(v) AS most, COUNT(DISTINCT v) AS kinds, {s.times('COUNT(*)', 'BIGINT')} "
            f"AS n FROM {s}] GROUP BY k"
        ),
        "s!",
    ),
    "pairs": (
        lambda s, t: f"SELECT {s.times('COUNT(*)', 'BIGINT', t)} AS n FROM {s}] a JOIN {t}] b ON a.k = b.k",
        "s!t!",
    ),
    "last": (lambda s, t: f"SELECT k, v FROM {s.sampled} [ROWS 4] WHERE v > 1", "s!-"),
    "united": (lambda s, t: f"SELECT k, v FROM {s}] UNION ALL SELECT k, v FROM {t}]", "s*t*"),
}
"""By name: the text, and its sources in order, with * where they may be sampled, with ! where the text says
so, with - where the window stays.
"""


@dataclass
class Play:
    """Plays a course to the engine and to the reference. told: results of the engine's steps."""

    subject: EngineSubject = field(default_factory=EngineSubject)
    reference: Reference = field(default_factory=Reference)
    told: list[StepResult] = field(default_factory=list)
    clock_ms: int = 1_000
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)

    def apply(self, body: Body, other: Body | None = None, cuts: tuple[int, ...] = ()) -> StepResult:
        """other: what the reference gets instead."""
        position, mine = self.reference.position, self.subject.engine.position
        self.reference.apply(
            Step(Position(1, position.sequence + 1), self.clock_ms, body if other is None else other)
        )
        whole = Step(Position(1, mine.sequence + 1), self.clock_ms, body)
        for part in numbered(cut(whole, cuts), after=mine.sequence):
            self.told.append(self.subject.apply(part))
        return self.told[-1]

    def create(self) -> None:
        for name in "st":
            sql = (
                f"CREATE STREAM {name} (k INTEGER, v BIGINT, w DOUBLE, ts TIMESTAMP) WITH (timestamp = 'ts', "
                "idle_timeout = '30 milliseconds', idle_advances = true, lateness = '5 milliseconds') "
                "RETAIN 10 MILLISECONDS"
            )
            self.told.append(self.subject.engine.create(sql, self.clock_ms))
            self.reference.apply(
                Step(
                    Position(1, self.reference.position.sequence + 1),
                    self.clock_ms,
                    self._created(sql),
                )
            )

    def _created(self, sql: str) -> Body:
        statement = parse(sql, {}, Limits())
        assert isinstance(statement, CreateStream)
        return CreateSource(statement.stream, sql)

    def records(self, name: str, rows: list[tuple[int, int, int, float]], cuts: tuple[int, ...]) -> None:
        schema = self.subject.engine.view().stream(SourceName(name)).schema
        found = []
        for back, k, v, w in rows:
            partition = v % 2
            offset = self.offsets.get((name, partition), 0)
            self.offsets[name, partition] = offset + 1
            ts = self.clock_ms - back
            found.append((partition, offset, ts, (k, v, w, ts)))
        batch = batch_of(schema, found)
        following = {p: o for (of, p), o in self.offsets.items() if of == name}
        self.apply(Records(SourceName(name), batch, following), cuts=cuts)


def sources_of(names: str, scans: tuple[ScanAllotment, ...]) -> list[Source]:
    found = [
        Source(name, scan.window_ms or ASKED_MS, scan.percent or Decimal(100), "!" in marks)
        for (name, marks), scan in zip(marked(names), scans, strict=False)
    ]
    return [*found, Source("t")] if len(found) < 2 else found


def text_of(reference: Reference, query_id: str) -> str:
    return reference.queries[query_id].registration.sql


def marked(names: str) -> list[tuple[str, str]]:
    """Each source with its marks."""
    return [(part[0], part[1:]) for part in re.findall("[st][*!-]*", names)]


def draws(draw: st.DrawFn, names: str) -> Allotment:
    scans = []
    for _, marks in marked(names):
        window = None if "-" in marks else draw(st.sampled_from([None, None, 1, 20, 30, 45]))
        sampled = bool(marks.strip("-"))
        percent = draw(st.sampled_from([None, "1", "50", "80.5", "25"])) if sampled else None
        scans.append(ScanAllotment(window, None if percent is None else Decimal(percent)))
    return Allotment(tuple(scans), by_hand=draw(st.booleans()))


ROWS = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(0, 2), st.integers(0, 5), st.sampled_from([0.5, 1e16, -1.25, 3.0])
    ),
    min_size=1,
    max_size=9,
)


@SOME
@given(st.data())
def test_answers_are_those_of_the_text_that_says_what_is_given(data: st.DataObject) -> None:
    draw = data.draw
    play, store = Play(), MemoryState()
    play.create()
    played = draw(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=3, unique=True))
    for name in played:
        text, names = SHAPES[name]
        sql = text(*sources_of(names, (ScanAllotment(),) * 2))
        options = OPTIONS | {"maintenance": draw(st.sampled_from(["auto", "eager", "none", "lazy"]))}
        emits = Registration(f"emits_{name}", f"{sql} EMIT CHANGES WITH (format = 'diff')", options=options)
        exact = Registration(f"exact_{name}", sql, options={"maintenance": options["maintenance"]})
        play.apply(Register((Registration(name, sql, options=options), exact, emits)))
    for _ in range(draw(st.integers(4, 14))):
        play.clock_ms += draw(st.sampled_from([0, 7, 15, 31]))
        what = draw(
            st.sampled_from(["rows", "rows", "rows", "allot", "allot", "beat", "restart", "revoke", "pause"])
        )
        if what == "rows":
            cuts = tuple(draw(st.lists(st.integers(0, 8), max_size=2)))
            play.records(draw(st.sampled_from("st")), draw(ROWS), cuts)
        elif what == "beat":
            play.apply(Heartbeat(SourceName(draw(st.sampled_from("st")))))
        elif what == "restart":
            play.subject = play.subject.restarted(store)
        elif what == "revoke":
            name = draw(st.sampled_from(played))
            if "!" in SHAPES[name][1]:  # its text still tolerates it
                continue
            stands = play.subject.engine.view().query(name)
            for ask in ({}, OPTIONS):
                registration = Registration(name, stands.sql, options=ask)
                play.apply(Register((registration,)), Alter((registration,)))
        elif what == "pause":
            name = f"emits_{draw(st.sampled_from(played))}"
            stands = play.subject.engine.view().query(name)
            is_paused = stands.options.get("paused") == "true"
            options = {**stands.options, "paused": str(not is_paused).lower()}
            play.apply(
                Register((Registration(name, stands.sql, options=options),)),
                Register((Registration(name, text_of(play.reference, name), options=options),)),
            )
        else:
            name = draw(st.sampled_from(played))
            text, names = SHAPES[name]
            allotment = draws(draw, names)
            ids = (name, f"emits_{name}")
            says = text(*sources_of(names, allotment.scans))
            result = play.apply(
                Allocate(tuple((one, allotment) for one in ids)),
                Alter(
                    tuple(
                        Registration(one, says, options=play.subject.engine.view().query(one).options)
                        for one in ids
                    )
                ),
            )
            assert not result.failed
            assert result.continued in ((), (f"emits_{name}",))
        assert_same_answers(play.subject, play.reference)
        for name in played:
            emits = f"emits_{name}"
            if not play.subject.engine.view().query(emits).paused:
                assert folded(spelled(play.told), emits) == Counter(play.subject.answer(emits).rows)
    play.subject.engine._check()
