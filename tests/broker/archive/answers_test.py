"""Answers from the archive mean what they always mean; no broker, no Kafka."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.archive.answers import ArchiveAnswers
from engine.engine import Engine
from engine.model.source import SourceName, Stream
from engine.model.step import Records
from tests.archived import Archived
from tests.broker.archive.history_boundary import BASE_MS, Log, archived, fed, registered, sql
from tests.strategies import batch_of, examples
from tureen.errors import HistoryUnavailable, InstantOutOfRange, LimitExceeded, NotArchived

QUERIES = (
    "SELECT p, o FROM s",
    "SELECT p, o FROM s [RANGE 200 MILLISECONDS]",
    "SELECT COUNT(*) AS n, MIN(o) AS m FROM s [RANGE 300 MILLISECONDS SLIDE 100 MILLISECONDS]",
    "SELECT p, o FROM s [ROWS 7]",
    "SELECT p, o FROM s [PARTITION BY p ROWS 2]",
    "SELECT p, COUNT(*) AS n, window_end FROM TUMBLE(s, INTERVAL '0.1' SECOND) GROUP BY p, window_end",
    "SELECT p, o FROM s BEGIN TIMESTAMP '2023-11-14 22:13:20.100' END NOW",
)


@settings(max_examples=examples(25))
@given(st.sampled_from(QUERIES), st.integers(0, 570))
def test_an_answer_is_that_of_an_engine_that_kept_everything(text: str, back_ms: int) -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        kept.apply(registered("q", text))
        whole = Engine()
        whole.create(sql("1 HOUR"))
        for row in log.rows:
            whole.ingest("s", log.step(kept.stream, [row]).batch, row[2])
        whole.register("q", text)
        archive_answers = ArchiveAnswers(kept.settings, kept.archive)
        at_ms = BASE_MS + 574 - back_ms if back_ms else None
        expected = whole.view().snapshot("q", at=at_ms)
        found = archive_answers.answer(kept.engine.view(), "q", at_ms, 1_000)
        assert found.answer.table == expected.table
        assert found.answer.complete
        assert found.answer.position == kept.engine.position
        assert found.answer.now_ms == expected.now_ms


def test_an_instant_before_the_archive_is_refused_with_the_first_that_can_be() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        archive.retain(BASE_MS + 200, log.rows[20:])
        kept.apply(registered("q", "SELECT p, o FROM s [RANGE 100 MILLISECONDS]"))
        archive_answers = ArchiveAnswers(kept.settings, kept.archive)
        view = kept.engine.view()
        with pytest.raises(InstantOutOfRange) as refused:
            archive_answers.answer(view, "q", BASE_MS + 299, 1_000)
        assert refused.value.earliest_ms == BASE_MS + 300
        found = archive_answers.answer(view, "q", BASE_MS + 300, 1_000)
        assert (len(found.answer.table), found.rows, found.earliest_ms) == (11, 11, BASE_MS + 200)
        kept.apply(registered("r", "SELECT p, o FROM s"))
        partly = archive_answers.answer(kept.engine.view(), "r", None, 1_000).answer
        assert (partly.complete, partly.complete_from_ms) == (False, BASE_MS + 200)
        with pytest.raises(InstantOutOfRange, match="after NOW"):
            archive_answers.answer(view, "q", BASE_MS + 10_000, 1_000)


def test_what_limits_an_answer() -> None:
    with archived(sql("50 MILLISECONDS"), archive_rows_max=20, archive_waiting_max=0) as (kept, archive):
        kept.apply(registered("q", "SELECT p, o FROM s"))
        log = fed(kept, archive, 30, archived_rows=0)
        archive_answers = ArchiveAnswers(kept.settings, kept.archive)
        archive.append(log.rows[:10])
        with pytest.raises(HistoryUnavailable, match="are not in the archive yet"):
            archive_answers.answer(kept.engine.view(), "q", None, 1_000)
        archive.append(log.rows[10:])
        with pytest.raises(LimitExceeded, match="archive_rows_max"):
            archive_answers.answer(kept.engine.view(), "q", None, 1_000)
        with pytest.raises(LimitExceeded, match="snapshot_rows_max"):
            archive_answers.answer(kept.engine.view(), "q", BASE_MS + 100, 5)
        archive_answers.waiting = kept.settings.archive_answers_max
        with pytest.raises(HistoryUnavailable, match="wait for the archive"):
            archive_answers.refuse_if_busy()


def test_a_stream_that_is_not_archived() -> None:
    with archived(sql("50 MILLISECONDS")) as (kept, _):
        log = Log(event_time=True)
        rows = [log.put(0, BASE_MS + 10 * i) for i in range(30)]
        kept.apply(log.step(kept.stream, rows), BASE_MS)
        kept.apply(registered("q", "SELECT p, o FROM s"))
        with pytest.raises(NotArchived):
            ArchiveAnswers(kept.settings, kept.archive).answer(kept.engine.view(), "q", None, 1_000)


def test_a_join_reaches_into_both_archives() -> None:
    text = (
        "SELECT s.o, r.o AS other FROM s [RANGE 50 MILLISECONDS], r [RANGE 50 MILLISECONDS] WHERE s.o = r.o"
    )
    with archived(sql("50 MILLISECONDS")) as (kept, archive):
        log = fed(kept, archive, 60)
        second = sql("50 MILLISECONDS").replace("STREAM s", "STREAM r")
        kept.engine.create(second)
        stream = kept.engine.catalogue["r"]
        assert isinstance(stream, Stream)
        other = Archived(archive.root, stream)
        other.append(log.rows)
        told = [
            (row[0], row[1], row[2], (row[3]["p"], row[3]["o"]))
            for row in sorted(log.rows, key=lambda r: r[:2])
        ]
        for p in (0, 1):
            lagging = frozenset({1}) if p == 0 else frozenset()
            mine = batch_of(stream.schema, [row for row in told if row[0] == p])
            kept.apply(Records(SourceName("r"), mine, {}, lagging), BASE_MS + 600)
        kept.engine.register("q", text)
        at_ms = BASE_MS + 200
        found = ArchiveAnswers(kept.settings, kept.archive).answer(kept.engine.view(), "q", at_ms, 1_000)
        inside = [row for row in log.rows if at_ms - 50 <= row[2] <= at_ms]
        expected = sorted((a[1], b[1]) for a in inside for b in inside if a[1] == b[1])
        columns = (found.answer.table.column(i).to_pylist() for i in (0, 1))
        assert sorted(zip(*columns, strict=True)) == expected
        assert found.rows == 2 * len(inside)
