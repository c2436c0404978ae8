"""SAMPLE: the engine against the reference, which keeps rows by definition; samples nest, and are as large as
they say.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import sampling as kernels
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.batch import Batch, Column
from engine.model.limits import Limits
from engine.model.sample import topic_seed
from engine.model.source import SourceName, Stream
from engine.model.step import CreateSource, Records, Step
from engine.model.types import BIGINT
from engine.reference import Reference
from engine.reference.samples import sample_key, seeded_key
from tests.differential.agreement import EngineSubject, assert_same_answers, cut, numbered, told
from tests.differential.changes import agree
from tests.memory_state import MemoryState
from tests.sql_selects import Selects
from tests.strategies import journeys, scripts
from tests.worlds import eventful_worlds, worlds

SOME = settings(max_examples=max(10, settings.default.max_examples // 4))
BACKS = st.lists(st.sampled_from([-1, 0, 1, 7, 30, 90]), max_size=2)


class Sampled(Selects):
    """Windows with a sample before or behind them, which most texts have."""

    def brackets(self) -> str:
        window = super().brackets()
        if self.chance(4):
            return window
        share = self.pick("50", "50", "80.5", "20", "100", "0.001", "50 DOWN TO 5")
        sample = f"SAMPLE({share}{self.pick('', '', ', 0', ', 7')})"
        return self.pick(f"{sample} {window}", f"{window} {sample}")


def any_sample(draw: st.DrawFn, stream: Stream, instant: int = 1_000) -> str:
    return Sampled(draw, stream, instant).statement()


def joined_samples(draw: st.DrawFn, sources: Mapping[str, Stream], instant: int = 1_000) -> str:
    """An equijoin of two sources, each of them a sample or not, with a window or not."""
    names = sorted(sources)
    parts = []
    for alias in ("a", "b"):
        name = draw(st.sampled_from(names))
        stream = sources[name]
        window = draw(st.sampled_from(["", "[RANGE 90 MILLISECONDS]", "[ROWS 4]"]))
        sample = draw(st.sampled_from(["", "SAMPLE(50)", "SAMPLE(80)", "SAMPLE(50, 3)"]))
        clauses = sample if stream.is_table else f"{window} {sample}"
        parts.append((f'"{name}" {alias} {clauses}', f"{alias}.{stream.schema.fields[0].name}"))
    (one, left), (other, right) = parts
    kind = draw(st.sampled_from(["JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]))
    if kind in ("SEMI JOIN", "ANTI JOIN") and "SAMPLE" not in one and not one.startswith(('"h"', '"k"')):
        return f"SELECT {left} AS l FROM ({one} {kind} {other} ON {left} = {right}) SAMPLE(50)"
    outputs = left if kind in ("SEMI JOIN", "ANTI JOIN") else f"{left} AS l, {right} AS r"
    return f"SELECT {outputs} FROM {one} {kind} {other} ON {left} = {right}"


@SOME
@given(steps=scripts(any_sample), backs=BACKS)
def test_answers_are_the_references(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)


@SOME
@given(steps=worlds(joined_samples, streams_count=2, tables_count=1), backs=BACKS)
def test_joins_of_samples_are_the_references(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)


@SOME
@given(steps=scripts(any_sample, steps_max=8), cuts=st.lists(st.integers(0, 8), min_size=1, max_size=3))
def test_neither_cuts_nor_restarts_change_a_sample(steps: list[Step], cuts: list[int]) -> None:
    engine, reference, store, sequence = EngineSubject(), Reference(), MemoryState(), 0
    for step, whole in zip(steps, numbered(steps), strict=True):
        reference.apply(whole)
        parts = numbered(cut(step, cuts), after=sequence)
        sequence += len(parts)
        for part in parts:
            engine.apply(part)
        engine = engine.restarted(store)
        assert_same_answers(engine, reference, [0, 5])


@SOME
@given(steps=journeys(any_sample))
def test_changes_of_samples_are_told_as_defined(steps: list[Step]) -> None:
    agree(steps)


def sampled_windows(draw: st.DrawFn, stream: Stream, instant: int = 1_000) -> str:
    """Windows of a table function over a sample, which is taken before them."""
    function = draw(
        st.sampled_from(
            [
                "TUMBLE(s, 7 MILLISECONDS)",
                "HOP(s, 5 MILLISECONDS, 20 MILLISECONDS)",
                "SESSION(s, 6 MILLISECONDS)",
            ]
        )
    ).replace("(s,", f'("{stream.name}",')
    share = draw(st.sampled_from(["50", "80", "100", "50, 3"]))
    window = draw(st.sampled_from(["", "[RANGE 30 MILLISECONDS]"]))
    outputs = "window_start, window_end, COUNT(*) AS n"
    return f"SELECT {outputs} FROM {function} {window} SAMPLE({share}) GROUP BY window_start, window_end"


@SOME
@given(steps=scripts(sampled_windows), backs=BACKS)
def test_windows_over_samples_are_the_references(steps: list[Step], backs: list[int]) -> None:
    engine, reference = EngineSubject(), Reference()
    for step in steps:
        assert told(engine.apply(step)) == told(reference.apply(step))
        assert_same_answers(engine, reference, backs)


@settings(max_examples=max(6, settings.default.max_examples // 8))
@given(steps=eventful_worlds(joined_samples, rounds=3))
def test_changes_of_joined_samples_are_told_as_defined(steps: list[Step]) -> None:
    agree(steps)


# --- what a sample is -------------------------------------------------------------------------------------

N = 10_000


def create_stream(text: str) -> Stream:
    statement = parse(text, {}, Limits())
    assert isinstance(statement, CreateStream)
    return statement.stream


def subject_of(*names: str) -> EngineSubject:
    """Streams with N rows each, half of them of either partition; column v numbers them."""
    subject = EngineSubject()
    for name in names:
        create = f"CREATE STREAM {name} (v BIGINT)"
        stream = create_stream(create)
        subject.apply(subject.next_step(0, CreateSource(stream, create)))
        place = np.arange(N)
        rows = Batch(
            stream.schema,
            (Column(BIGINT, place),),
            (place // (N // 2)).astype(np.int32),
            (place % (N // 2)).astype(np.int64),
            np.zeros(N, np.int64),
        )
        subject.apply(
            subject.next_step(N, Records(SourceName(name), rows, {0: N // 2, 1: N // 2}, frozenset()))
        )
    return subject


def answers(subject: EngineSubject, *texts: str) -> list[list[Any]]:
    for number, text in enumerate(texts):
        subject.register(f"q{number}", text, {})
    return [[row[0] for row in subject.answer(f"q{number}").rows] for number in range(len(texts))]


def keys(topic: str, partition: np.ndarray, offset: np.ndarray) -> np.ndarray:
    found = np.empty(len(offset), np.int64)
    kernels.sample_keys(
        np.uint64(topic_seed(topic)), partition.astype(np.int32), offset.astype(np.int64), found
    )
    return found


@given(
    topic=st.text(max_size=8),
    places=st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=20),
)
def test_keys_are_those_of_the_definition(topic: str, places: list[tuple[int, int]]) -> None:
    partition = np.array([place[0] for place in places], np.int32)
    offset = np.array([place[1] for place in places], np.int64)
    expected = [sample_key(topic, *place) for place in places]
    assert keys(topic, partition, offset).tolist() == expected


@given(seed=st.integers(0, 2**63 - 1), given_=st.lists(st.integers(0, 2**63 - 1), max_size=20).map(np.array))
def test_keys_with_a_seed_are_those_of_the_definition(seed: int, given_: np.ndarray) -> None:
    found = np.empty(len(given_), np.int64)
    kernels.seeded_keys(np.uint64(seed), given_.astype(np.int64), found)
    assert found.tolist() == [seeded_key(seed, int(key)) for key in given_]


def test_samples_with_a_seed_nest_and_are_independent_of_all_others() -> None:
    plain, zero, one, more = answers(
        subject_of("s"), *(f"SELECT v FROM s SAMPLE({said})" for said in ("20", "20, 0", "20, 1", "60, 1"))
    )
    assert set(one) < set(more)
    for rows in (plain, zero, one):
        assert abs(len(rows) - N * 0.2) <= 4 * (N * 0.2 * 0.8) ** 0.5
    for left, right in ((plain, zero), (plain, one), (zero, one)):
        assert abs(len(set(left) & set(right)) - N * 0.04) <= 4 * (N * 0.04 * 0.96) ** 0.5


def test_samples_nest_and_have_their_size() -> None:
    shares = (0.5, 2, 10, 50, 100)
    found = answers(subject_of("s"), *(f"SELECT v FROM s SAMPLE({share})" for share in shares))
    for less, more in pairwise(found):
        assert set(less) < set(more)
    for share, rows in zip(shares, found, strict=True):
        p = share / 100
        assert abs(len(rows) - N * p) <= 4 * (N * p * (1 - p)) ** 0.5


def test_streams_are_sampled_independently() -> None:
    one, other = answers(subject_of("s", "t"), "SELECT v FROM s SAMPLE(20)", "SELECT v FROM t SAMPLE(20)")
    both = len(set(one) & set(other))
    assert abs(both - N * 0.04) <= 4 * (N * 0.04 * 0.96) ** 0.5


def test_a_sample_comes_before_the_window() -> None:
    every, last, behind = answers(
        subject_of("s"),
        "SELECT v FROM s SAMPLE(1)",
        "SELECT v FROM s SAMPLE(1) [ROWS 7]",
        "SELECT v FROM s [ROWS 7] x SAMPLE(1)",
    )
    assert last == behind == every[-7:]


def test_keys_are_uniform_in_each_partition() -> None:
    """Chi-square over 64 cells; 63 degrees of freedom leave 131.4 with probability 1e-6."""
    for partition in range(8):
        offset = np.arange(64_000)
        found = keys("topic", np.full(len(offset), partition), offset)
        cells = np.bincount((found >> np.int64(57)).astype(np.int64), minlength=64)
        assert len(cells) == 64
        assert ((cells - 1_000.0) ** 2 / 1_000).sum() < 131.4
