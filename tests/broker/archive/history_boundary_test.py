"""History is brought back without a gap and without a duplicate: real engines, an archive on disk, no Kafka.

The same records go to an engine that keeps little and has an archive, and to one that keeps everything.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.archive.backfill import Backfills
from broker.archive.catalogue import ArchiveCatalogue
from broker.archive.history_boundary import HistoryBoundary
from broker.shard.recovery import ArchivedSteps
from engine.engine import Engine
from engine.model.step import Step
from storage.archive.coverage import Coverage, Covered
from tests.broker.archive.history_boundary import (
    BASE_MS,
    LATENESS_MS,
    WIDE,
    Kept,
    Log,
    archived,
    fed,
    registered,
    sql,
)
from tests.kafka import wait_until
from tests.strategies import examples
from topics.journal import HistoryNamed, decode_step

SETTLED = ("complete", "archive_behind", "archive_begins", "not_archived")


@settings(max_examples=examples(30))
@given(st.data())
def test_no_row_is_missed_and_none_is_there_twice(data: st.DataObject) -> None:
    """In event time; whatever the archive lacks at first, however rows are late, wherever pieces are cut."""
    partitions = data.draw(st.integers(1, 3), "partitions")
    with archived(sql("50 MILLISECONDS"), chunk=data.draw(st.integers(1, 9), "chunk")) as (kept, archive):
        whole = Engine()
        whole.create(sql("1 HOUR"))
        log = Log(event_time=True)
        late: set[tuple[int, int]] = set()
        at_ms = BASE_MS
        for _ in range(data.draw(st.integers(1, 8), "steps")):
            rows = []
            for back_ms in data.draw(
                st.lists(st.integers(0, 3 * LATENESS_MS), min_size=1, max_size=8), "back"
            ):
                at_ms += data.draw(st.integers(0, 20))
                rows.append(log.put(data.draw(st.integers(0, partitions - 1)), at_ms - back_ms))
            body = log.step(kept.stream, rows)
            kept.apply(body, at_ms)
            result = whole.ingest("s", body.batch, at_ms)
            late |= {(int(body.batch.partition[i]), int(body.batch.offset[i])) for i in result.late}
        kept.engine.register("q", WIDE)
        whole.register("q", WIDE)
        boundary = kept.engine.needs.history("s")
        assert boundary is not None
        table = whole.view().snapshot("q").table
        on_time = set(zip(table.column(0).to_pylist(), table.column(1).to_pylist(), strict=True))
        before = {row[:2] for row in log.rows if row[2] < boundary.until_ms}
        covered = {p: data.draw(st.integers(0, n), f"archived of {p}") for p, n in log.next.items()}
        archive.append([row for row in log.rows if row[1] < covered[row[0]]], covered)
        state = kept.bring_back(*SETTLED)
        found = kept.offsets("q")
        assert len(found) == len(set(found))
        assert set(found) <= on_time | (late & before)
        if state != "archive_behind":
            # what is missed came later than the lateness of its own partition allows
            largest = {
                p: max((r[2] for r in log.rows if r[0] == p and r[1] < n), default=0)
                for p, n in covered.items()
            }
            instant = {row[:2]: row[2] for row in log.rows}
            assert all(instant[one] < largest[one[0]] - LATENESS_MS for one in on_time - set(found))
        archive.append([row for row in log.rows if row[1] >= covered[row[0]]])
        if state == "archive_behind":
            kept.bring_back()
            assert set(kept.offsets("q")) == on_time | (late & before)
            assert len(kept.offsets("q")) == len(on_time | (late & before))
            answer = kept.engine.view().snapshot("q")
            assert answer.complete


@settings(max_examples=examples(15))
@given(st.data())
def test_in_arrival_time_offsets_decide(data: st.DataObject) -> None:
    """The log's times step back now and then, so that a row's instant is later than the archive says."""
    partitions = data.draw(st.integers(1, 2), "partitions")
    chunk = data.draw(st.integers(1, 9), "chunk")
    with archived(sql("50 MILLISECONDS", ""), chunk=chunk) as (kept, archive):
        log = Log(event_time=False)
        at_ms = BASE_MS
        for _ in range(data.draw(st.integers(2, 8), "steps")):
            rows = []
            for back_ms in data.draw(
                st.lists(st.sampled_from([0, 0, 1, 30]), min_size=1, max_size=6), "back"
            ):
                at_ms += data.draw(st.integers(0, 25))
                rows.append(log.put(data.draw(st.integers(0, partitions - 1)), at_ms - back_ms))
            kept.apply(log.step(kept.stream, rows), at_ms)
        kept.apply(log.step(kept.stream, []), at_ms + 1)
        kept.engine.register("q", WIDE)
        covered = {p: data.draw(st.integers(0, n), f"archived of {p}") for p, n in log.next.items()}
        archive.append([row for row in log.rows if row[1] < covered[row[0]]], covered)
        before = kept.offsets("q")
        if kept.bring_back(*SETTLED) == "archive_behind":
            assert kept.offsets("q") == before
            archive.append([row for row in log.rows if row[1] >= covered[row[0]]])
            kept.bring_back()
        assert sorted(kept.offsets("q")) == sorted(row[:2] for row in log.rows)


def replayed(kept: Kept, archive: ArchiveCatalogue | None) -> tuple[Engine, ArchivedSteps]:
    """An engine made of the journal alone."""
    engine = Engine()
    engine.create(kept.sql)
    history = ArchivedSteps(engine, archive, kept.settings)
    for value, body in kept.journal:
        record = decode_step(value)
        if isinstance(record.body, HistoryNamed):
            engine.enqueue(history.step(record, record.body))
        else:
            engine.enqueue(Step(record.position, record.clock_ms, body))
        engine.run()
    return engine, history


def test_a_replay_reads_the_same_rows_again_whatever_was_archived_since() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        kept.apply(registered("q", WIDE))
        kept.bring_back()
        answer = kept.engine.view().snapshot("q")
        assert answer.complete
        assert kept.offsets("q") == [row[:2] for row in log.rows[:58]]  # the others are above NOW
        archive.append([log.put(0, BASE_MS + 5)])  # it came too late for the stream and for the step
        engine, history = replayed(kept, kept.archive)
        assert not history.lost
        again = engine.view().snapshot("q")
        assert (again.table, again.position) == (answer.table, answer.position)


@pytest.mark.parametrize("gone", ["no archive", "moved", "other rows", "other topic"])
def test_a_replay_without_the_archive_goes_on_without_that_history(gone: str) -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        kept.apply(registered("q", WIDE))
        live = kept.offsets("q")
        kept.bring_back()
        row = log.put(0, BASE_MS + 600)
        kept.apply(log.step(kept.stream, [row]), row[2])
        whole = kept.offsets("q")
        catalogue: ArchiveCatalogue | None = kept.archive
        if gone == "no archive":
            catalogue = None
        elif gone == "moved":
            archive.root.joinpath("streams").rename(archive.root / "elsewhere")
            catalogue = ArchiveCatalogue(kept.settings)
        elif gone == "other rows":
            archive.retain(BASE_MS + 300, log.rows[30:])
            catalogue = ArchiveCatalogue(kept.settings)
        else:
            archive.stream = replace(archive.stream, topic="other")
            archive.retain(archive.complete_from_ms, log.rows)
            catalogue = ArchiveCatalogue(kept.settings)
        engine, history = replayed(kept, catalogue)
        assert "s" in history.lost
        answer = engine.view().snapshot("q")
        assert answer.position == kept.engine.position
        assert not answer.complete
        found = list(zip(answer.table.column(0).to_pylist(), answer.table.column(1).to_pylist(), strict=True))
        assert set(found) <= set(whole)
        assert len(found) >= len(live)
        if gone == "other topic":
            return
        if gone in ("no archive", "moved"):  # once it is there again, so is the history
            if gone == "moved":
                archive.root.joinpath("elsewhere").rename(archive.root / "streams")
            kept.engine, kept.backfills = (
                engine,
                Backfills(0, kept.settings, ArchiveCatalogue(kept.settings), lambda: None),
            )
            kept.bring_back()
            assert kept.offsets("q") == whole


def test_a_window_of_rows_is_filled_while_now_goes_on() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 100)
        kept.apply(registered("q", "SELECT p, o FROM s [ROWS 40]"))
        assert len(kept.offsets("q")) < 10

        def busy() -> bool:
            """Rows come while pieces are read: each takes the history boundary on."""
            row = log.put(len(log.rows) % 2, BASE_MS + 10 * len(log.rows))
            kept.apply(log.step(kept.stream, [row]), row[2])
            archive.append([row])
            for body, named in kept.backfills.ready(kept.engine):
                assert not kept.apply(body, read=named).failed
            return len(kept.offsets("q")) == 40

        wait_until(busy, what="the window is full")
        kept.bring_back()
        expected = [row[:2] for row in log.rows][:-2][-40:]
        assert kept.offsets("q") == expected
        assert kept.engine.view().snapshot("q").complete
        engine, history = replayed(kept, kept.archive)
        assert not history.lost
        assert engine.view().snapshot("q").table == kept.engine.view().snapshot("q").table


def test_the_archive_may_begin_later_than_the_window() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        archive.retain(BASE_MS + 200, log.rows[20:])
        kept.apply(registered("q", WIDE))
        kept.bring_back("archive_begins")
        answer = kept.engine.view().snapshot("q")
        assert (answer.complete, answer.complete_from_ms) == (False, BASE_MS + 200)
        assert kept.offsets("q") == [row[:2] for row in log.rows[20:58]]
        kept.apply(registered("r", "SELECT p, o FROM s [ROWS 1000]"))
        kept.bring_back("archive_begins", "complete")
        assert len(kept.offsets("r")) == 38


def test_history_stops_at_the_limit_of_rows() -> None:
    with archived(sql("50 MILLISECONDS"), chunk=5, backfill_rows_max=20) as (kept, archive):
        fed(kept, archive, 60)
        kept.apply(registered("q", WIDE))
        kept.bring_back("rows_limit")
        answer = kept.engine.view().snapshot("q")
        assert 15 <= len(answer.table) <= 20
        assert answer.complete_from_ms == BASE_MS + 10 * (58 - len(answer.table)) - 9


def test_an_archive_that_cannot_be_read_is_told_of_and_tried_again() -> None:
    with archived(sql("50 MILLISECONDS"), archive_retry_ms=20) as (kept, archive):
        log = Log(event_time=True)
        rows = [log.put(0, BASE_MS + 10 * i) for i in range(60)]
        kept.apply(log.step(kept.stream, rows), BASE_MS)
        kept.apply(registered("q", WIDE))
        table = archive.root / "streams" / "s" / "_delta_log"
        table.mkdir(parents=True)
        (table / "00000000000000000000.json").write_text("not a log")
        kept.bring_back("unreadable")
        facts = kept.backfills.facts("s")
        assert facts is not None
        assert facts["error"]["code"] == "archive_unreadable"
        assert kept.archive.facts()["reachable"] is False
        (table / "00000000000000000000.json").unlink()
        archive.append(rows)
        kept.bring_back()
        assert kept.archive.facts()["reachable"] is True
        assert len(kept.offsets("q")) == 59


@pytest.mark.parametrize(
    ("covered", "closed"),
    [
        (Covered(0, 100, None), True),  # as far as the stream has read
        (Covered(0, 50, BASE_MS + LATENESS_MS + 1), True),  # what comes after that is late by its own account
        (Covered(0, 50, BASE_MS + LATENESS_MS), False),
        (Covered(0, 50, BASE_MS + 400 * 86_400_000), False),  # a row that the stream refused
        (Covered(0, 99, None), False),
        (None, False),
    ],
)
def test_when_a_seam_is_closed(covered: Covered | None, closed: bool) -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, _):
        partitions = {0: Covered(0, 7, 0)} if covered is None else {0: Covered(0, 7, 0), 1: covered}
        boundary = HistoryBoundary(kept.stream, BASE_MS, BASE_MS + 100, {0: 7, 1: 100, 2: 0})
        assert boundary.behind(Coverage("s", partitions)) == ([] if closed else [1])


def test_the_archive_of_an_earlier_topic_is_not_taken_for_the_streams() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        archive.topic_id = "earlier"
        fed(kept, archive, 60)
        kept.archive.topic_ids["s"] = "later"
        kept.apply(registered("q", WIDE))
        kept.bring_back("unreadable")
        facts = kept.backfills.facts("s")
        assert facts is not None
        assert facts["error"]["code"] == "archive_mismatch"
        kept.archive.topic_ids["s"] = "earlier"
        kept.bring_back()
