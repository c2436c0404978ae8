"""Overload: more comes than can be done; who loses rows, how many, and what still comes out a second.

Four streams of JSON records, each with tolerant queries of its own (weights 1, 2, 4 and 8, each allows to
lose 95 %), and on the last, which brings a tenth of the input, an exact one as well. Input comes at 2 and 5
times what the same streams and queries manage without loss (the capacity, measured first), until the time
is over; then what waits is caught up with. Records are decoded, go through the engine a step at a time, the
oldest first, and are shed by the broker's own controller. Arrivals go by a clock that moves by the
processor's time that all of this takes, so that what else runs on the machine moves nothing. Kafka has no
part in it: to take up a record that nobody reads costs 1 to 2 us more there.

Error of a query: the share of rows that it does not see; they are added up by weight. ``uniform`` sheds all
streams alike while some queue is too long, ``optimal`` those first whose queries lose least for the time
that is won. All answers are compared with those of an oracle, of exact queries over all rows.

Figures, each `.x<times>`: `rows_per_s`, of records that are not passed over unread, and `of_capacity`, the
same over the capacity (at least 0.9); `queue_bytes.max`, of the longest queue, and `of_budget`, the same
over what is reserved for it (at most 1); `weighted_error.optimal`, `weighted_error.uniform`, and
`error_ratio` (at most 0.8); `caught_up_s`, from the end of the input until nothing waited. Besides:
`capacity_rows_per_s`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from benchmarks.report import Figure, Report
from broker.shard.intake import Shedding
from broker.shard.shedder import Shedder
from broker.shard.taken import TakenRows
from engine.engine import Engine
from engine.language.query import CreateStream
from engine.language.statements import parse
from engine.model.limits import Limits
from engine.model.shed import Shed
from engine.model.source import SourceName, Stream
from engine.model.step import (
    Body,
    CreateSource,
    Heartbeat,
    Position,
    Records,
    Register,
    Registration,
    Step,
)
from engine.overload.shed_order import QueueLook, ShedOrder
from topics.codec import decode

SHARES = (0.3, 0.3, 0.3, 0.1)
"""Share of the input, by stream."""
WEIGHTS = (1.0, 2.0, 4.0, 8.0)
MAX_FN = 0.95
WINDOW_S = 2
RING = 1 << 14
"""So many records are made of each stream, and come again and again."""
BEGIN_MS = 1_700_000_000_000
Offsets = npt.NDArray[np.int64]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options besides those that every benchmark has."""
    parser.add_argument("--seconds", type=float, default=60.0, help="of input (default: %(default)s)")
    parser.add_argument("--times", type=float, nargs="+", default=[2.0, 5.0], help="the capacity")
    parser.add_argument("--queries", type=int, default=100, help="tolerant, a stream (default: %(default)s)")
    parser.add_argument("--step", type=int, default=8_192, help="records (default: %(default)s)")
    parser.add_argument(
        "--reserve", type=int, default=256 << 20, help="bytes of a queue (default: %(default)s)"
    )
    parser.add_argument(
        "--warm", type=float, default=3.0, help="s to measure the capacity (default: %(default)s)"
    )


class UniformOrder(ShedOrder):
    """Lets all that may shed shed alike, whatever they weigh."""

    def split(
        self, seen: Sequence[QueueLook], willing: Sequence[QueueLook], target: float
    ) -> Mapping[str, float]:
        """Give every stream the same share."""
        lacking = sum(one.load for one in seen) - target
        share = lacking / max(1e-9, sum(one.load * one.won for one in willing))
        return {one.name: min(one.share, max(0.01, share)) for one in willing}


@dataclass(slots=True)
class Feed:
    """A stream's input. values: the ring; numbers: column v of it; row_bytes: of a record, on average. rate:
    records a second. next: the first record that was not taken. read: records that were read. shed: runs of
    those that were shed, (first, behind the last).
    """

    stream: Stream
    values: list[bytes]
    numbers: Offsets
    row_bytes: float
    rate: float
    next: int = 0
    read: int = 0
    shed: list[tuple[int, int]] = field(default_factory=list)

    @property
    def name(self) -> SourceName:
        return self.stream.name

    def came(self, now_s: float) -> int:
        """Records up to an instant."""
        return int(self.rate * now_s)

    def since_s(self) -> float:
        """Since when the first that was not taken waits."""
        return self.next / self.rate

    def stamps(self, offsets: Offsets) -> Offsets:
        """Their instants, ms since 1970."""
        return BEGIN_MS + (offsets * (1_000 / self.rate)).astype(np.int64)


@dataclass(slots=True)
class Run:
    """A run of one engine. queue_bytes: size of the longest queue. spent_s: seconds until the input ended.
    caught_up_s: seconds from then until nothing waited.
    """

    engine: Engine
    feeds: Sequence[Feed]
    handles: dict[str, list[str]] = field(default_factory=dict)
    queue_bytes: float = 0.0
    spent_s: float = 0.0
    caught_up_s: float = 0.0
    read: int = 0


def feeds_of(rng: np.random.Generator, rate: float) -> list[Feed]:
    """The streams, with so many records a second together."""
    found = []
    for name, share in zip("abcd", SHARES, strict=True):
        sql = f"CREATE STREAM {name} (k BIGINT, v BIGINT) WITH (retain = '{2 * WINDOW_S} seconds')"
        statement = parse(sql, {}, Limits())
        assert isinstance(statement, CreateStream)
        keys, numbers = rng.integers(0, 64, RING), rng.integers(0, 1_000, RING)
        values = [
            b'{"k":%d,"v":%d}' % (key, number)
            for key, number in zip(keys.tolist(), numbers.tolist(), strict=True)
        ]
        size = sum(map(len, values)) / RING
        found.append(Feed(statement.stream, values, numbers, size, rate * share))
    return found


def standing(engine: Engine, feeds: Sequence[Feed], queries: int) -> dict[str, list[str]]:
    """Create streams, register queries; ids of tolerant ones by stream, of exact ones under ``exact``."""
    ids: dict[str, list[str]] = {"exact": []}
    registrations = []
    window = f"[RANGE {WINDOW_S} SECONDS]"
    for feed, weight in zip(feeds, WEIGHTS, strict=True):
        apply(engine, CreateSource(feed.stream, f"CREATE STREAM {feed.name} (...)"), BEGIN_MS)
        allowed = f"WITH (max_fn = {MAX_FN}, weight = {weight / queries})"
        texts = [f"SELECT COUNT(*) AS n, SUM(v) AS v FROM {feed.name} {window} {allowed}"]
        for number in range(queries - 1):
            what = ("COUNT(*) AS n", "SUM(v) AS n", "MAX(v) AS n")[number % 3]
            texts.append(
                f"SELECT k, {what} FROM {feed.name} {window} WHERE v < {number} GROUP BY k {allowed}"
            )
        ids[feed.name] = [f"{feed.name}{number}" for number in range(queries)]
        registrations += [
            Registration(one, text, options={"maintenance": "eager"})
            for one, text in zip(ids[feed.name], texts, strict=True)
        ]
    exact = feeds[-1].name
    ids["exact"] = [f"exact {exact}"]
    text = f"SELECT COUNT(*) AS n, SUM(v) AS v FROM {exact} {window}"
    registrations.append(Registration(f"exact {exact}", text))
    apply(engine, Register(tuple(registrations)), BEGIN_MS)
    return ids


def apply(engine: Engine, body: Body, clock_ms: int) -> None:
    """Make a step and run it."""
    engine.enqueue(Step(Position(1, engine.position.sequence + 1), clock_ms, body))
    (result,) = engine.run()
    assert not result.failed, result.failed


def take(engine: Engine, feed: Feed, shedding: Shedding | None, rows: int, now_s: float) -> TakenRows:
    """Make a step of the next records of a stream, as the broker's intake does, and run it."""
    came = feed.came(now_s)
    first, until = feed.next, min(came, feed.next + rows)
    read_from = until - 1 if shedding is not None and shedding.unread else first
    offsets = np.arange(read_from, until)
    values = [feed.values[place] for place in (offsets % RING).tolist()]
    batch = decode(feed.stream, values, np.zeros(len(offsets), np.int32), offsets, feed.stamps(offsets)).batch
    shed = None if shedding is None else Shed(shedding.level, {0: (first, until)}, read_from - first)
    lagging = frozenset({0} if until < came else ())
    body = Records(feed.name, batch, {0: until}, lagging, shed=shed)
    apply(engine, body, BEGIN_MS + int(1_000 * now_s))
    feed.next = until
    feed.read += len(batch)
    if shedding is not None:
        feed.shed.append((first, until))
    size = int((until - first) * feed.row_bytes)
    return TakenRows(body, [None] * len(batch), offsets, [], size, ())


def overloaded(options: argparse.Namespace, rate: float, order: ShedOrder) -> Run:
    """Input at a rate for some seconds, and what waits then."""
    engine, seconds = Engine(), options.seconds
    feeds = feeds_of(np.random.default_rng(options.seed), rate)
    run = Run(engine, feeds, standing(engine, feeds, options.queries))
    shedder = Shedder(0, order)
    began, idle_s, ended = time.thread_time(), 0.0, False
    while True:
        now_s = time.thread_time() - began + idle_s
        if not ended and now_s >= seconds:
            ended, run.spent_s, run.read = True, now_s, sum(feed.read for feed in feeds)
        coming_s = min(now_s, seconds)
        waiting = [feed for feed in feeds if feed.came(coming_s) > feed.next]
        shedder.look(engine, {one.name: one.came(coming_s) - one.next for one in feeds}, now_s)
        if not waiting:
            if ended:
                break
            idle_s += max(1e-6, min((one.next + 1) / one.rate for one in feeds) - now_s)
            continue
        longest = max((one.came(coming_s) - one.next) * one.row_bytes for one in waiting)
        run.queue_bytes = max(run.queue_bytes, longest)
        feed = min(waiting, key=Feed.since_s)
        shedding, rows = shedder.shedding(engine, feed.name, options.step)
        before_ns = time.thread_time_ns()
        taken = take(engine, feed, shedding, rows, coming_s)
        shedder.took(feed.name, taken, time.thread_time_ns() - before_ns)
    run.caught_up_s = now_s - run.spent_s
    for feed in feeds:
        apply(engine, Heartbeat(feed.name), BEGIN_MS + int(1_000 * now_s) + 1_000)
    return run


def require_answers(run: Run) -> None:
    """Exact queries answer as the oracle does over all rows, tolerant ones over those that were not shed."""
    view = run.engine.view()
    for feed in run.feeds:
        assert feed is not run.feeds[-1] or view.stored(feed.name).end == feed.next
        for handle, sheds in ((run.handles[feed.name][0], True), (f"exact {feed.name}", False)):
            if not sheds and handle not in run.handles["exact"]:
                continue
            now_ms = view.now_ms(handle)
            assert now_ms is not None
            numbers = np.arange(max(0, feed.next - int(feed.rate * (WINDOW_S + 2))), feed.next)
            stamps = feed.stamps(numbers)
            numbers = numbers[(stamps >= now_ms - 1_000 * WINDOW_S) & (stamps <= now_ms)]
            for first, until in feed.shed if sheds else ():
                numbers = numbers[(numbers < first) | (numbers >= until)]
            (row,) = view.snapshot(handle).table.to_pylist()
            due = int(feed.numbers[numbers % RING].sum()) if len(numbers) else None
            assert row == {"n": len(numbers), "v": due}, (handle, row, len(numbers), due)
            assert sheds or not view.approximation(handle)


def weighted_error(run: Run) -> float:
    """The sum over tolerant queries of weight and share of rows missing, over that of weights."""
    lost = 0.0
    for feed, weight in zip(run.feeds, WEIGHTS, strict=True):
        share = sum(until - first for first, until in feed.shed) / feed.next
        assert share <= MAX_FN
        lost += weight * share
    return lost / sum(WEIGHTS)


def capacity_of(options: argparse.Namespace) -> float:
    """Records a second that are managed without loss, roughly: windows are smaller here."""
    engine = Engine()
    feeds = feeds_of(np.random.default_rng(options.seed), 1e6)
    standing(engine, feeds, options.queries)
    done, spent_s = 0, 1.0
    for _ in ("warm", "measured"):
        began, done, spent_s = time.thread_time(), 0, 0.0
        while spent_s < options.warm:
            feed = min(feeds, key=Feed.since_s)
            done += take(engine, feed, None, options.step, feed.since_s() + 1.0).count
            spent_s = time.thread_time() - began
    return done / spent_s


def run(options: argparse.Namespace) -> Report:
    """Measure the capacity, then each overload by both orders."""
    rough = overloaded(options, 2 * capacity_of(options), ShedOrder(1 << 62))
    capacity = rough.read / rough.spent_s
    figures: dict[str, Figure] = {"capacity_rows_per_s": capacity}
    for times in options.times:
        orders = {"optimal": ShedOrder(options.reserve), "uniform": UniformOrder(options.reserve)}
        runs = {name: overloaded(options, times * capacity, order) for name, order in orders.items()}
        for one in runs.values():
            require_answers(one)
        errors = {name: weighted_error(one) for name, one in runs.items()}
        best, label = runs["optimal"], f"x{times:g}"
        figures |= {
            f"rows_per_s.{label}": best.read / best.spent_s,
            f"of_capacity.{label}": best.read / best.spent_s / capacity,
            f"queue_bytes.max.{label}": best.queue_bytes,
            f"of_budget.{label}": best.queue_bytes / options.reserve,
            f"weighted_error.optimal.{label}": errors["optimal"],
            f"weighted_error.uniform.{label}": errors["uniform"],
            f"error_ratio.{label}": errors["optimal"] / errors["uniform"] if errors["uniform"] else 1.0,
            f"caught_up_s.{label}": best.caught_up_s,
        }
    return Report(figures)
