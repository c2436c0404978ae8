"""No answer says that it is complete where rows were gone before anybody read them: engines, no Kafka.

A topic had 60 records, a row every 10 ms, and lost the first ones before the stream was created.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from broker.archive.answers import ArchiveAnswers
from broker.shard.lost_prefixes import LostPrefixes, first_complete_ms
from engine.model.step import Heartbeat
from storage.archive.coverage import AFTER_A_GAP, STEPS_BACK_MS
from tests.archived import Archived
from tests.broker.archive.history_boundary import (
    BASE_MS,
    LATENESS_MS,
    WIDE,
    Kept,
    Log,
    S,
    archived,
    registered,
    sql,
)
from topics.consumer import Polled
from tureen.errors import InstantOutOfRange, KafkaUnavailable

ROWS = 60
LOST = 40


def begun_late(kept: Kept, archive: Archived | None) -> Log:
    """The stream has the rows from LOST on and knows that there were others; the archive has all."""
    log = Log(event_time=True)
    rows = [log.put(0, BASE_MS + 10 * i) for i in range(ROWS)]
    body = log.step(kept.stream, rows[LOST:])
    complete_from_ms = first_complete_ms(kept.stream, body.batch.timestamp[:1], rows[-1][2])
    kept.apply(replace(body, complete_from_ms=complete_from_ms), rows[-1][2])
    if archive is not None:
        archive.append(rows)
    return log


def offsets(rows: range) -> list[tuple[int, int]]:
    return [(0, offset) for offset in rows]


def test_a_window_that_reaches_before_the_first_row_is_not_complete() -> None:
    whole_ms = BASE_MS + 10 * LOST + LATENESS_MS + 1
    with archived(sql("1 HOUR")) as (kept, _):
        begun_late(kept, None)
        tumbling = "TUMBLE(s, INTERVAL '0.1' SECOND) GROUP BY window_end"
        texts = {
            "far": WIDE,
            "near": "SELECT p, o FROM s [RANGE 100 MILLISECONDS]",
            "all": "SELECT p, o FROM s",
            "few": "SELECT p, o FROM s [ROWS 5]",
            "many": "SELECT p, o FROM s [ROWS 50]",
            "keyed": "SELECT p, o FROM s [PARTITION BY p ROWS 2]",
            "tumbling": f"SELECT COUNT(*) AS n, window_end FROM {tumbling}",
        }
        for query_id, text in texts.items():
            kept.engine.register(query_id, text)
        view = kept.engine.view()
        found = {query_id: view.snapshot(query_id).complete_from_ms for query_id in texts}
        incomplete = dict.fromkeys(["far", "all", "many", "keyed", "tumbling"], whole_ms)
        assert found == incomplete | {"near": None, "few": None}
        assert kept.offsets("far") == kept.offsets("all") == offsets(range(LOST, ROWS - 1))  # none is hidden
        with pytest.raises(InstantOutOfRange) as refused:
            view.snapshot("near", at=whole_ms + 99)
        assert refused.value.earliest_ms == whole_ms + 100
        assert view.snapshot("near", at=whole_ms + 100).complete


def test_history_fills_what_lies_between_retention_and_the_first_row() -> None:
    with archived(sql("1 HOUR")) as (kept, archive):
        begun_late(kept, archive)
        kept.apply(registered("q", WIDE))
        kept.apply(registered("n", "SELECT p, o FROM s [ROWS 50]"))
        kept.bring_back()
        for query_id, first in (("q", 0), ("n", ROWS - 1 - 50)):
            answer = kept.engine.view().snapshot(query_id)
            assert kept.offsets(query_id) == offsets(range(first, ROWS - 1))
            assert answer.complete


def test_answers_from_the_archive_have_no_hole_before_the_first_row() -> None:
    with archived(sql("1 HOUR")) as (kept, archive):
        begun_late(kept, archive)
        kept.apply(registered("q", "SELECT p, o FROM s"))
        archive_answers = ArchiveAnswers(kept.settings, kept.archive)
        found = archive_answers.answer(kept.engine.view(), "q", None, 1_000)
        told = [column.to_pylist() for column in found.answer.table.columns]
        assert list(zip(*told, strict=True)) == offsets(range(ROWS - 1))
        assert (found.answer.complete, found.earliest_ms) == (True, None)
        early = archive_answers.answer(kept.engine.view(), "q", BASE_MS + 10 * LOST - 1, 1_000)
        assert len(early.answer.table) == LOST


@pytest.mark.parametrize("archived_from", [20, LOST])
def test_what_is_in_neither_is_said_to_be_missing(archived_from: int) -> None:
    with archived(sql("1 HOUR")) as (kept, archive):
        log = begun_late(kept, None)
        complete_ms = BASE_MS + 10 * archived_from + LATENESS_MS + 1
        archive.complete_from_ms = complete_ms
        archive.append(log.rows[archived_from:])
        kept.apply(registered("q", "SELECT p, o FROM s"))
        archive_answers = ArchiveAnswers(kept.settings, kept.archive)
        found = archive_answers.answer(kept.engine.view(), "q", None, 1_000)
        assert found.answer.complete_from_ms == found.earliest_ms == complete_ms
        first = archived_from + 1 if archived_from < LOST else LOST  # what is there is never taken away
        assert len(found.answer.table) == ROWS - 1 - first
        with pytest.raises(InstantOutOfRange):
            archive_answers.answer(kept.engine.view(), "q", BASE_MS + 300, 1_000)
        kept.apply(registered("w", WIDE))
        kept.bring_back("archive_begins")
        assert kept.engine.view().snapshot("w").complete_from_ms == complete_ms


def test_a_partition_without_a_row_left_weakens_the_claim_to_the_clock() -> None:
    """And history goes on to come as far as the stream's own rows."""
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = Log(event_time=True)
        rows = [log.put(0, BASE_MS + 10 * i) for i in range(ROWS)]
        none = np.empty(0, np.int64)
        clock_ms = BASE_MS + 10_000
        assert first_complete_ms(kept.stream, none, clock_ms) == clock_ms
        kept.apply(replace(log.step(kept.stream, rows), complete_from_ms=clock_ms), rows[-1][2])
        archive.append(rows)
        kept.apply(registered("q", WIDE))
        kept.bring_back()
        answer = kept.engine.view().snapshot("q")
        assert len(answer.table) == ROWS - 1
        assert answer.complete_from_ms == clock_ms
        found = ArchiveAnswers(kept.settings, kept.archive).answer(kept.engine.view(), "q", None, 1_000)
        assert found.answer.complete  # the archive has the records that are gone, up to NOW


class Ends:
    """Where partitions begin, as Kafka says it; None: it does not answer."""

    def __init__(self, *begins: dict[int, int] | None) -> None:
        self._begins = list(begins)

    def begins(self, partitions: dict[str, list[int]]) -> dict[str, dict[int, int]]:
        found = self._begins.pop(0)
        if found is None:
            raise KafkaUnavailable("away")
        return {topic: {number: found.get(number, 0) for number in partitions[topic]} for topic in partitions}


@pytest.mark.parametrize(
    ("begins", "first", "lost"),
    [
        (({0: 0},), 0, False),
        (({0: 7},), 7, True),
        (({0: 0}, {0: 0}), 3, False),  # records of an aborted transaction came first
        (({0: 0}, {0: 3}), 3, True),  # retention went on meanwhile
        (({0: 0}, None), 3, True),  # nobody knows
        (({1: 9},), 0, False),  # of a partition that comes later
    ],
)
def test_when_a_partition_has_lost_records(begins: Any, first: int, lost: bool) -> None:
    with archived(sql("1 HOUR")) as (kept, _):
        kafka: Any = Ends(*begins)
        lost_prefixes = LostPrefixes(kept.stream, kafka, kafka.begins({"s": [0]})["s"])
        log = Log(event_time=True, next={0: first})
        times = [5, 0, 400 * 86_400_000_000, *range(2, 2 * AFTER_A_GAP)]  # a late one, one too far ahead
        rows = log.step(kept.stream, [log.put(0, BASE_MS + ms) for ms in times]).batch
        polled = Polled("s", [], rows.partition, rows.offset, rows.timestamp, [], log.next, frozenset())
        found = lost_prefixes.complete_from_ms(polled, rows)
        assert found == (BASE_MS + AFTER_A_GAP - 1 + LATENESS_MS + 1 if lost else None)
        assert lost_prefixes.complete_from_ms(polled, rows) is None  # told once


def test_in_arrival_time_a_log_may_step_back_at_its_beginning() -> None:
    with archived(sql("1 HOUR", "")) as (kept, _):
        assert first_complete_ms(kept.stream, np.array([BASE_MS]), 0) == BASE_MS + STEPS_BACK_MS + 1


# --- the history boundary ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("retain", "enough"), [("50 MILLISECONDS", 55), ("1 MILLISECOND", ROWS)])
def test_a_row_that_was_refused_as_too_far_ahead_does_not_close_the_seam(retain: str, enough: int) -> None:
    """The archive saw it when the clock had come so far, and lags: rows behind it came later, on time."""
    future = ", future_max = '1 second'"
    with archived(sql(retain, EVENT_TIME + future)) as (kept, archive):
        log = Log(event_time=True)
        for i in range(ROWS):
            ahead_ms = 5_000 if i == 10 else 0
            row = log.put(0, BASE_MS + 10 * i + ahead_ms)
            result = kept.apply(log.step(kept.stream, [row]), BASE_MS + 10 * i)
            assert len(result.rejected) == (1 if ahead_ms else 0)
        on_time = [row[:2] for row in log.rows if row[1] != 10]
        archive.append(log.rows[:11])
        kept.apply(registered("q", WIDE))
        assert kept.bring_back("archive_behind", "complete") == "archive_behind"
        archive.append(log.rows[11:enough])  # past the history boundary, by a row that the stream took
        kept.bring_back()
        assert kept.offsets("q") == on_time[:-1]


EVENT_TIME = f"timestamp = 'ts', idle_timeout = '1 hour', lateness = '{LATENESS_MS} milliseconds'"


def test_a_row_that_waits_above_now_comes_once_though_the_log_stepped_back() -> None:
    with archived(sql("50 MILLISECONDS", "")) as (kept, archive):
        log = Log(event_time=False)
        first, back = log.put(0, BASE_MS + 100), log.put(0, BASE_MS + 20)
        kept.apply(log.step(kept.stream, [first]), BASE_MS + 101)
        kept.apply(log.step(kept.stream, [back]), BASE_MS + 101)
        assert kept.engine.view().sources()[0].pending == 1
        archive.append(log.rows)
        kept.apply(registered("q", WIDE))
        kept.bring_back()
        kept.apply(Heartbeat(S), BASE_MS + 200)
        assert sorted(kept.offsets("q")) == [(0, 0), (0, 1)]
        found = ArchiveAnswers(kept.settings, kept.archive).answer(kept.engine.view(), "q", None, 1_000)
        assert len(found.answer.table) == 2
