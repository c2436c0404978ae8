"""What feeds read from: memory of recent changes, positions, lines. Fed with changes made by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.base.cursor import Birth, Cursor
from broker.feeds.lines import (
    FEW_ROWS,
    LINE_ROWS,
    change_lines,
    change_texts,
    changes_within,
    framed,
    progress_line,
    row_texts,
    snapshot_line,
)
from broker.feeds.memory import RecentChanges, Ring, Told
from engine.changes.transition import NEVER
from engine.model.approximation import Approximation
from engine.model.changes import Changes, Occasion
from engine.model.step import Position
from tureen.errors import MustRefetch, PositionRefused
from tureen.protocol import query_id

LIFE = "k5tq2a"
IDS = [query_id(f"handle {i}") for i in range(4)]
KEEP_S = 10.0


def changes(counts: dict[str, int], first: int = 0, now_ms: int = 5, occasion: Occasion = "step") -> Changes:
    """So many rows of each query, numbered."""
    starts = np.concatenate([[0], np.cumsum(list(counts.values()))]).astype(np.int64)
    total = int(starts[-1])
    return Changes(
        tuple(counts),
        starts,
        pa.table({"n": pa.array(range(first, first + total), pa.int64())}),
        np.ones(total, np.int8),
        np.full(total, now_ms),
        np.full(len(counts), now_ms),
        occasion,
    )


def followed(*names: str, since: int = 0) -> dict[str, RecentChanges]:
    return {name: RecentChanges(name, 3, since, [Birth(name, 3, 1, LIFE)]) for name in names}


def numbers(lines: Sequence[bytes]) -> list[int]:
    """The rows that lines of changes tell."""
    return [row[0] for line in lines for _, _, row in json.loads(line)["changes"]]


def test_each_query_finds_its_own_changes_after_a_step() -> None:
    one, two, other, _ = IDS
    memories = followed(one, two)
    ring = Ring(1_000_000, KEEP_S)
    ring.put(Told(Position(1, 7), [changes({one: 2, other: 3, two: 1})], memories, 0.0))
    ring.put(Told(Position(1, 9), [changes({two: 2}, 10), changes({two: 1}, 20)], memories, 0.0))
    found = memories[two].after(0, 10)
    assert found is not None
    for entry in found:
        entry.told.encode()
    assert [numbers(entry.lines) for entry in found] == [[5], [10, 11, 20]]
    assert [str(entry.cursor) for entry in found] == [
        f"1-7-5-3.1.{LIFE}-{two[:6]}",
        f"1-9-5-3.1.{LIFE}-{two[:6]}",
    ]
    assert [numbers(entry.lines) for entry in memories[two].after(7, 10) or ()] == [[10, 11, 20]]
    assert memories[two].after(9, 10) == []
    assert [numbers(entry.lines) for entry in memories[one].after(6, 10) or ()] == [[0, 1]]
    ring._check(memories.values())


def test_lines_have_the_tags_of_their_query() -> None:
    sampled, exact = IDS[:2]
    tag = Approximation("sample", "trips", "declared", 10.0, "percent")
    given = replace(changes({sampled: LINE_ROWS + 1, exact: 1}), approximation={sampled: (tag,)})
    told = Told(Position(1, 7), [given], followed(sampled, exact), 0.0)
    told.encode()
    lines = [[json.loads(line) for line in entry.lines] for entry in told.entries]
    assert [[line.get("approximation") for line in mine] for mine in lines] == [
        [[tag.as_dict()], [tag.as_dict()]],
        [None],
    ]
    assert numbers(told.entries[0].lines) == list(range(LINE_ROWS + 1))
    cursor, head = told.entries[0].cursor, b',"operator":"changes"'
    rows = pa.table({"n": [1]})
    for tags, member in (((), None), ((tag,), [tag.as_dict()])):
        snapshot = json.loads(snapshot_line(rows, cursor, head, None, False, tags))
        progress = json.loads(progress_line(cursor, head, tags))
        assert (snapshot.get("approximation"), progress.get("approximation")) == (member, member)
        assert (snapshot["rows"], progress["operator"]) == ([[1]], "changes")


def test_whole_answers_and_queries_that_nobody_follows_are_passed_over() -> None:
    one, two, *_ = IDS
    memories = followed(one) | {two: RecentChanges(two, 3)}  # the second is not followed yet
    for occasion in ("snapshot", "end"):
        assert not Told(Position(1, 7), [changes({one: 2}, occasion=occasion)], memories, 0.0).entries
    assert not Told(Position(1, 7), [changes({one: 0, two: 2, IDS[2]: 1})], memories, 0.0).entries


def test_before_now_has_come() -> None:
    memories = followed(IDS[0])
    told = Told(Position(1, 7), [changes({IDS[0]: 1}, now_ms=NEVER)], memories, 0.0)
    assert str(told.entries[0].cursor) == f"1-7-n-3.1.{LIFE}-{IDS[0][:6]}"


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.sampled_from(IDS), st.integers(0, 40), min_size=1),
            st.booleans(),
            st.integers(0, 6),
        ),
        max_size=40,
    ),
    st.integers(2_000, 20_000),
)
def test_a_reader_misses_nothing_or_is_told_so(
    steps: list[tuple[dict[str, int], bool, int]], bytes_max: int
) -> None:
    memories = followed(*IDS[:3])
    ring = Ring(bytes_max, KEEP_S)
    told: dict[str, list[tuple[int, list[int]]]] = {name: [] for name in memories}
    first, now_s = 0, 0.0
    for sequence, (counts, encodes, pause_s) in enumerate(steps, 1):
        now_s += pause_s
        one = Told(Position(1, sequence), [changes(counts, first)], memories, now_s)
        if one.entries:
            ring.put(one)
        for name, count in counts.items():
            if count and name in told:
                told[name].append((sequence, list(range(first, first + count))))
            first += count
        if encodes:
            one.encode()
            ring.encoded(one)
        ring.expire(now_s)
        ring._check(memories.values())
        for name, memory in memories.items():
            assert memory.since is not None
            for since in range(sequence + 1):
                found = memory.after(since, 1_000)
                expected = [rows for at, rows in told[name] if at > since]
                if found is None:
                    assert since < memory.since
                    assert expected
                    continue
                for entry in found:
                    entry.told.encode()
                    ring.encoded(entry.told)
                    if memory.after(since, 1_000) != found:
                        break  # lines took more room than there was
                else:
                    assert [numbers(entry.lines) for entry in found] == expected


def test_what_is_larger_than_the_ring_stays_until_the_next_comes() -> None:
    memories = followed(IDS[0])
    ring = Ring(10_000, KEEP_S)
    for sequence, count in ((1, 5), (2, 50_000)):
        ring.put(Told(Position(1, sequence), [changes({IDS[0]: count})], memories, 0.0))
        ring._check(memories.values())
    assert memories[IDS[0]].after(0, 10) is None
    assert [entry.rows for entry in memories[IDS[0]].after(1, 10) or ()] == [50_000]
    ring.put(Told(Position(1, 3), [changes({IDS[0]: 5})], memories, 0.0))
    ring._check(memories.values())
    assert memories[IDS[0]].after(1, 10) is None
    ring.expire(KEEP_S + 1.0)
    assert (ring.size, memories[IDS[0]].after(3, 10)) == (0, [])


def test_positions_there_and_back() -> None:
    birth = Birth(IDS[0], 3, 17, LIFE)
    for cursor in (Cursor(Position(2, 40), 1_700_000_000_000, birth), Cursor(Position(1, 18), None, birth)):
        assert Cursor.parse(str(cursor), [birth], Position(2, 40)) == cursor
    assert Cursor.parse(str(Cursor(Position(1, 9), -5, birth)), [birth], Position(2, 40)).now_ms == -5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a change position"),
        ("1-2", "not a change position"),
        ("1-2-3-3.17-" + "é" * 6, "not a change position"),
        (f"1-2-3-3.17-{IDS[0][:6]} ", "not a change position"),
        (f"1-²-3-3.17-{IDS[0][:6]}", "not a change position"),
        (f"1-40-3-3.17.{LIFE}-{IDS[1][:6]}", "another query"),
    ],
)
def test_positions_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(PositionRefused, match=words):
        Cursor.parse(text, [Birth(IDS[0], 3, 17, LIFE)], Position(2, 40))


@pytest.mark.parametrize(
    "text",
    [
        f"1-40-3-3.16.{LIFE}",  # an earlier query under the same handle
        f"1-40-3-4.17.{LIFE}",
        "1-40-3-3.17.abcdef",  # another journal
        "1-40-3-3.17",  # of a version before
        f"2-41-3-3.17.{LIFE}",  # steps that were lost
        f"3-40-3-3.17.{LIFE}",
    ],
)
def test_positions_that_are_no_longer_known(text: str) -> None:
    with pytest.raises(MustRefetch):
        Cursor.parse(f"{text}-{IDS[0][:6]}", [Birth(IDS[0], 3, 17, LIFE)], Position(2, 40))


VALUES: list[tuple[pa.DataType, Any]] = [
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    (pa.decimal128(6, 2), st.integers(-999_999, 999_999).map(lambda n: Decimal(n).scaleb(-2))),
    (pa.date32(), st.dates(date(1000, 1, 1))),
    (pa.timestamp("ms"), st.datetimes(datetime(1000, 1, 1)).map(lambda at: at.replace(microsecond=5_000))),
    (pa.list_(pa.int64()), st.lists(st.integers(-5, 5), max_size=3)),
]


@given(st.data())
def test_few_rows_and_many_are_told_alike(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    columns = [
        pa.array(data.draw(st.lists(st.none() | values, min_size=count, max_size=count)), type_)
        for type_, values in VALUES
    ]
    few = pa.table(columns, names=[str(type_) for type_, _ in VALUES])
    many = pa.concat_tables([few] * (FEW_ROWS + 1))
    weights, at_ms = np.array([1, -1, 1, 1][:count], np.int8), np.arange(count)
    times = FEW_ROWS + 1
    for one, all_ in (
        (row_texts(few), row_texts(many)),
        (
            change_texts(few, weights, at_ms),
            change_texts(many, np.tile(weights, times), np.tile(at_ms, times)),
        ),
    ):
        assert [json.loads(text) for text in all_] == [json.loads(text) for text in one] * times


def test_what_is_long_comes_in_lines_of_which_only_the_last_has_a_position() -> None:
    cursor = Cursor(Position(1, 4), 7, Birth(IDS[0], 0, 2, LIFE))
    total = 2 * LINE_ROWS + 1
    told = Told(Position(1, 4), [changes({IDS[0]: total})], followed(IDS[0]), 0.0)
    told.encode()
    (entry,) = told.entries
    lines = [json.loads(line) for line in entry.lines]
    assert [(line["more"], "position" in line) for line in lines] == [
        (True, False),
        (True, False),
        (False, True),
    ]
    assert numbers(entry.lines) == list(range(total))
    within = b",".join(changes_within(line) for line in entry.lines)
    assert [row for _, _, (row,) in json.loads(b"[" + within + b"]")] == list(range(total))
    whole = list(
        change_lines(
            change_texts(pa.table({"n": range(LINE_ROWS)}), np.ones(LINE_ROWS), np.zeros(LINE_ROWS)), cursor
        )
    )
    assert [json.loads(line)["more"] for line in whole] == [False]
    events = framed("changes", entry.lines, entry.cursor, "sse").split(b"\n\n")
    assert [event.startswith(b"id: ") for event in events] == [False, False, True, False]
    assert framed("changes", entry.lines, entry.cursor, "ndjson") == b"".join(entry.lines)
