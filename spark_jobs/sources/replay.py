"""Rows written in the order of time, each at its turn: the part of a time warp that reads and writes.

The driver fetches the rows piece by piece, sorted by Spark, and sends them itself: at most two pieces are in
its memory, however long the input is. A turn that has come is sent at once; what was sent is confirmed by
Kafka before it is told as reached, so that where a run stopped or failed, all rows up to there are on the
topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from rich.console import Console
from rich.status import Status

from engine.model.source import Stream
from engine.model.types import Kind
from spark_jobs.sources.fitting import TIMESTAMP_MS_MAX, TIMESTAMP_MS_MIN
from spark_jobs.sources.pacing import Pace
from topics.producer import BatchProducer
from tureen.errors import TureenError

ROWS_A_PIECE = 20_000
PIECES_MAX = 10_000
CONFIRM_EVERY_S = 1.0
PLAIN_EVERY_S = 10.0


class Turn(NamedTuple):
    """A record to write when the time ``at_ms`` of its row has come."""

    at_ms: int
    topic: str
    key: bytes | None
    value: bytes


class Sender(Protocol):
    """Where records go; ``topics.producer.BatchProducer`` is one."""

    def send(self, topic: str, value: bytes | None, key: bytes | None = None) -> None: ...

    def flush(self) -> None: ...


class Asked(Protocol):
    """Whether the run was asked to stop; ``spark_jobs.running.Stop`` is one."""

    @property
    def asked(self) -> bool: ...

    def wait(self, timeout_s: float) -> bool: ...


@dataclass(slots=True)
class Reached:
    """How far a replay is: rows that Kafka has, timestamps of the first and the last one.

    stopped: it was asked to stop before its end. behind_s: how late the last row was, in real time.
    """

    rows: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    stopped: bool = False
    behind_s: float = 0.0

    def line(self) -> str:
        """It in words."""
        if self.last_ms is None:
            return "no row yet"
        behind = f", {self.behind_s:,.1f} s behind" if self.behind_s >= CONFIRM_EVERY_S else ""
        return f"{self.rows:,} row{'' if self.rows == 1 else 's'}, event time {text_of(self.last_ms)}{behind}"


def sender(kafka: Mapping[str, str]) -> Sender:
    """Records to Kafka; the partition is that of the key, as Java's clients have it."""
    return BatchProducer({**kafka, "partitioner": "murmur2_random"})


@contextmanager
def showing(job: str, console: Console | None = None) -> Iterator[Callable[[Reached], None]]:
    """What shows how far a replay is: on a terminal a line that changes, elsewhere one now and then."""
    console = console or Console(stderr=True, highlight=False, soft_wrap=True)
    if console.is_terminal:
        with Status(f"{job}: no row yet", console=console) as status:
            yield lambda reached: status.update(f"{job}: {reached.line()}")
        return
    told_s = time.monotonic()

    def plain(reached: Reached) -> None:
        nonlocal told_s
        if time.monotonic() - told_s >= PLAIN_EVERY_S:
            console.print(f"{job}: {reached.line()}", markup=False)
            told_s = time.monotonic()

    yield plain


def text_of(at_ms: int) -> str:
    """A timestamp as people read it, in UTC."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    return at.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")


def replay(
    turns: Iterable[Turn],
    pace: Pace,
    sender: Sender,
    stop: Asked,
    clock: Callable[[], float],
    tell: Callable[[Reached], None],
) -> Reached:
    """Send every record at its turn, until the end or until it is asked to stop.

    tell: called with what Kafka has confirmed, about every second while records are sent. Raises what
    ``flush`` raises, with what was reached in the hint.
    """
    reached, sent = Reached(), Reached()
    confirmed_s = clock()

    def confirm(at_ms: int | None) -> None:
        nonlocal reached, confirmed_s
        try:
            sender.flush()
        except TureenError as error:
            error.hint = _so_far(reached) + (f"; {error.hint}" if error.hint else "")
            raise
        behind_s = 0.0 if at_ms is None else pace.behind_s(at_ms)
        reached = Reached(sent.rows, sent.first_ms, sent.last_ms, sent.stopped, behind_s)
        tell(reached)
        confirmed_s = clock()

    for turn in turns:
        while not stop.asked and (wait_s := pace.wait_s(turn.at_ms)) > 0:
            if reached.rows < sent.rows:
                confirm(sent.last_ms)
                continue
            stop.wait(wait_s)
        if stop.asked:
            sent.stopped = True
            break
        sender.send(turn.topic, turn.value, turn.key)
        sent.rows += 1
        sent.last_ms = turn.at_ms
        if sent.first_ms is None:
            sent.first_ms = turn.at_ms
        if clock() - confirmed_s >= CONFIRM_EVERY_S:
            confirm(sent.last_ms)
    confirm(sent.last_ms)
    return reached


def in_turn(records: DataFrame, rows: int, *order: str) -> Iterator[Turn]:
    """Records ``at`` (ms), ``topic``, ``key``, ``value`` (texts), in the order of these columns.

    rows: about how many there are. Two pieces of them are in memory at a time.
    """
    pieces = min(PIECES_MAX, max(1, -(-rows // ROWS_A_PIECE)))
    cut = records.repartition(1) if pieces == 1 else records.repartitionByRange(pieces, *order)
    ordered = cut.sortWithinPartitions(*order)
    for row in ordered.select("at", "topic", "key", "value").toLocalIterator(prefetchPartitions=True):
        yield Turn(row.at, row.topic, None if row.key is None else row.key.encode(), row.value.encode())


def timed(written: DataFrame, stream: Stream) -> DataFrame:
    """``at``, ``topic``, ``key``, ``value`` of the rows with messages that fit; a stream in event time."""
    assert stream.timestamp_column is not None
    return written.where(F.col("reason").isNull()).select(
        F.unix_millis(F.col("row").getField(stream.timestamp_column)).alias("at"),
        F.lit(stream.topic).alias("topic"),
        "key",
        F.col("message").alias("value"),
    )


def first_ms(checked: DataFrame, stream: Stream) -> int | None:
    """The earliest timestamp of the rows that fit, None without one. Reads the input."""
    assert stream.timestamp_column is not None
    at = F.unix_millis(F.col("row").getField(stream.timestamp_column))
    found = checked.where(F.col("reason").isNull()).agg(F.min(at)).first()
    return None if found is None else found[0]


def shifted(checked: DataFrame, stream: Stream, shift_ms: int) -> DataFrame:
    """Checked rows with every TIMESTAMP moved by as much; refused where one leaves the years 1 to 9999."""
    row, reasons = F.col("row"), []
    moved: Column = row
    for field in stream.schema:
        if field.type.kind is not Kind.TIMESTAMP:
            continue
        at = F.unix_millis(row.getField(field.name)) + shift_ms
        inside = at.between(TIMESTAMP_MS_MIN, TIMESTAMP_MS_MAX)
        moved = moved.withField(_quoted(field.name), F.when(inside, F.timestamp_millis(at)))
        reasons.append(F.when(~inside, F.lit(f"{field.name}: moved out of the years 1 to 9999")))
    return checked.withColumns({"row": moved, "reason": F.coalesce("reason", *reasons)})


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _so_far(reached: Reached) -> str:
    if reached.last_ms is None:
        return "no row was confirmed before"
    return f"{reached.rows:,} rows, up to {text_of(reached.last_ms)}, are on the topic"
