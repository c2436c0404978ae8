"""What a job says of how far it is, by a clock that goes when it is told to; and what Spark says of one."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from spark_jobs.progress import PLAIN_EVERY_S, Figures, Tasks, shown, tasks, told_meanwhile
from tests.kafka import wait_until


def test_progress_in_words() -> None:
    figures = Figures("copy")
    assert figures.line(0.0) == "copy: 0 rows, no micro-batch is done yet"
    figures.began_s = 1.0
    assert figures.line(61.0) == "copy: 0 rows, at work on the first micro-batch for 60 s"
    figures.began_s = None
    figures.note(0, 1000, 500, 1.0)
    figures.note(1, 3000, 1500, 2.5)
    figures.lag = 7
    assert figures.line(2.5) == "copy: 4,000 rows, 2,000 rows/s, batch 1 in 1,500 ms, 7 behind"
    assert "0 rows/s" in figures.line(60.0)
    figures.waiting = "Kafka is away"
    assert figures.line(60.0) == "copy: 4,000 rows, waiting: Kafka is away"


def test_plain_lines_come_now_and_then_and_at_once_when_it_waits() -> None:
    out = io.StringIO()
    now_s = 0.0
    figures = Figures("copy")
    with shown(Console(file=out), lambda: now_s) as show:
        show(figures)
        figures.note(0, 10, 100, 0.1)
        show(figures)
        now_s = 11.0
        show(figures)
        now_s = 30.0
        show(figures)  # nothing has happened
        figures.waiting = "Kafka"
        show(figures)
        show(figures)
        figures.note(1, 5, 100, 30.1)
        now_s = 31.0
        show(figures)
    told: list[Any] = [line.split(",")[1].strip() for line in out.getvalue().splitlines()]
    assert told == ["0 rows/s", "waiting: Kafka", "5 rows/s"]


def test_a_terminal_has_one_line_that_changes() -> None:
    out = io.StringIO()
    with shown(Console(file=out, force_terminal=True, width=100), lambda: 0.0) as show:
        figures = Figures("copy")
        figures.note(3, 10, 100, 0.1)
        show(figures)
    assert "batch 3 in 100 ms" in out.getvalue()


class Passing:
    """A clock that goes when somebody waits, and tells when the lines' thread waits for the last time."""

    def __init__(self, waits: int) -> None:
        self.now_s = 100.0
        self.waits = waits
        self.through = threading.Event()

    def wait(self, ended: threading.Event, timeout_s: float) -> bool:
        if self.waits == 0:
            self.through.set()
            return ended.wait(30)
        self.waits -= 1
        self.now_s += timeout_s
        return ended.is_set()


def test_a_batch_says_now_and_then_how_far_it_is() -> None:
    out, world = io.StringIO(), Passing(waits=3)
    found = iter([Tasks(), Tasks(0, 1), Tasks(3, 8, 1_200_000)])
    with told_meanwhile("sources", lambda: next(found), Console(file=out), lambda: world.now_s, world.wait):
        assert world.through.wait(30)
    assert out.getvalue().splitlines() == [
        f"sources: at work for {PLAIN_EVERY_S:.0f} s",
        "sources: at work for 20 s, 0 of 1 task of this stage done",
        "sources: at work for 30 s, 3 of 8 tasks of this stage done, 1,200,000 rows read",
    ]


def test_a_batch_whose_spark_is_gone_says_no_more_and_ends_as_it_does() -> None:
    asked: list[float] = []
    out, world = io.StringIO(), Passing(waits=2)

    def gone() -> Tasks:
        asked.append(world.now_s)
        world.through.set()
        raise ConnectionError

    def run() -> None:
        with told_meanwhile("sources", gone, Console(file=out), lambda: world.now_s, world.wait):
            assert world.through.wait(30)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert (asked, out.getvalue()) == ([110.0], "")


def test_a_terminal_is_left_to_the_bar_of_spark() -> None:
    out, world = io.StringIO(), Passing(waits=1)
    console = Console(file=out, force_terminal=True)
    with told_meanwhile("sources", Tasks, console, lambda: world.now_s, world.wait):
        pass
    assert (out.getvalue(), world.waits) == ("", 1)


def test_what_spark_is_at(spark: SparkSession, tmp_path: Path) -> None:
    """Two tasks, of which the second goes on when it is told to."""
    go = tmp_path / "go"
    os.mkfifo(go)

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.column("id")[0].as_py() >= 50:
                go.open("rb").close()  # until somebody opens it to write
            yield batch

    rows = spark.range(100, numPartitions=2).mapInArrow(pass_on, "id BIGINT")
    counted: list[int] = []
    run = threading.Thread(target=lambda: counted.append(rows.count()))
    run.start()
    wait_until(lambda: tasks(spark).done == 1)
    assert tasks(spark).of == 2
    go.open("wb").close()
    run.join(30)
    assert counted == [100]
    wait_until(lambda: tasks(spark) == Tasks())
