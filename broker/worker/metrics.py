"""Prometheus metrics of the worker. Labels are streams, shards, states and formats, never handles or ids.

Shards count in plain integers in their own threads (:class:`Counts`); what Prometheus sees is read from
them when it asks. Histograms have a lock of their own.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from engine.maintenance import Maintenance

if TYPE_CHECKING:
    from broker.worker.node import Node

RATE_WINDOW_S = 5.0
_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

SNAPSHOT_SECONDS = Histogram(
    "tureen_snapshot_seconds",
    "Time to compute and encode an answer.",
    ["format"],
    buckets=_SECONDS,
    registry=None,
)
STEP_SECONDS = Histogram(
    "tureen_step_seconds",
    "Time the engine took for the steps of a commit.",
    ["shard"],
    buckets=_SECONDS,
    registry=None,
)
TRANSACTION_SECONDS = Histogram(
    "tureen_transaction_seconds", "Time to journal steps.", ["shard"], buckets=_SECONDS, registry=None
)
FEED_SECONDS = Histogram(
    "tureen_feed_seconds",
    "Time from a commit to its changes being written to a feed.",
    buckets=_SECONDS,
    registry=None,
)
SAVE_SECONDS = Histogram(
    "tureen_save_seconds", "Time to save to the store.", ["shard"], buckets=_SECONDS, registry=None
)


COLD_SECONDS = Histogram(
    "tureen_archive_snapshot_seconds",
    "Time to compute and encode an answer with rows of the archive.",
    buckets=(*_SECONDS, 25.0, 60.0),
    registry=None,
)


@dataclass(slots=True)
class Counts:
    """What a shard has done in this life. Written by its thread alone."""

    records: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    entered: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    late: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    dead_letters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    deltas: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """By topic and operator, as the next two; a row that takes another's place is two."""
    result_records: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    result_bytes: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    steps: int = 0
    transactions: int = 0
    revised: int = 0


@dataclass(slots=True)
class FeedCounts:
    """What change feeds have done. Written by the event loop alone. followed, size: told when asked."""

    open: int = 0
    changes: int = 0
    bytes: int = 0
    cut: int = 0
    must_refetch: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    followed: Callable[[], int] = int
    size: Callable[[], int] = int


class Metrics:
    """The registry that ``/metrics`` prints, and rates for ``/status``."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.feeds = FeedCounts()
        for histogram in (
            SNAPSHOT_SECONDS,
            COLD_SECONDS,
            STEP_SECONDS,
            TRANSACTION_SECONDS,
            SAVE_SECONDS,
            FEED_SECONDS,
        ):
            self._registry.register(histogram)
        self._snapshots = 0
        self._snapshot_bytes = 0
        self._archive_rows = 0
        self._samples: deque[tuple[float, dict[str, int]]] = deque()

    def snapshot(self, form: str, seconds: float, size: int) -> None:
        SNAPSHOT_SECONDS.labels(form).observe(seconds)
        self._snapshots += 1
        self._snapshot_bytes += size

    def cold(self, seconds: float, rows: int) -> None:
        """An answer with so many rows of the archive."""
        COLD_SECONDS.observe(seconds)
        self._archive_rows += rows

    def totals(self, node: Node) -> dict[str, int]:
        totals = {"records": 0, "entered": 0, "late": 0, "dead_letters": 0}
        for shard in list(node.shards.values()):
            for name in totals:
                totals[name] += sum(list(getattr(shard.counts, name).values()))
        return totals | {"snapshots": self._snapshots}

    def sample(self, node: Node) -> None:
        """Called about once a second, for the rates."""
        now_s = time.monotonic()
        self._samples.append((now_s, self.totals(node)))
        while len(self._samples) > 2 and now_s - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()

    def rates(self, node: Node) -> dict[str, float]:
        """Per second over the last seconds: records, entered, late, dead_letters, snapshots."""
        if not self._samples:
            return {}
        then_s, before = self._samples[0]
        now_s, totals = time.monotonic(), self.totals(node)
        elapsed_s = max(now_s - then_s, 1e-3)
        return {name: round((totals[name] - before[name]) / elapsed_s, 1) for name in totals}

    def text(self, node: Node) -> bytes:
        """The exposition, all of it."""
        collector = _FromShards(node, self.feeds, self._archive_rows)
        self._registry.register(collector)
        try:
            return generate_latest(self._registry)
        finally:
            self._registry.unregister(collector)


class _FromShards:
    """Reads counters and gauges where they are kept."""

    def __init__(self, node: Node, feeds: FeedCounts, archive_rows: int) -> None:
        self._node = node
        self._feeds = feeds
        self._archive_rows = archive_rows

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        node = self._node
        shards = list(node.shards.values())
        for name, attribute, text in (
            ("tureen_records", "records", "Records read."),
            ("tureen_record_bytes", "bytes", "Bytes of the records read."),
            ("tureen_rows_entered", "entered", "Rows that became visible."),
            ("tureen_late_records", "late", "Records at or before NOW."),
            ("tureen_dead_letters", "dead_letters", "Records that gave no row."),
        ):
            family = CounterMetricFamily(name, text, labels=["stream"])
            for shard in shards:
                for stream, count in list(getattr(shard.counts, attribute).items()):
                    family.add_metric([stream], count)
            yield family
        for name, attribute, text in (
            ("tureen_result_deltas", "deltas", "Changes of answers written to result topics."),
            ("tureen_result_records", "result_records", "Records that they are."),
            ("tureen_result_bytes", "result_bytes", "Bytes of their keys and values."),
        ):
            family = CounterMetricFamily(name, text, labels=["topic", "operator"])
            totals: Counter[tuple[str, str]] = Counter()
            for shard in shards:
                totals.update(dict(getattr(shard.counts, attribute)))
            for labels, count in totals.items():
                family.add_metric(list(labels), count)
            yield family
        for name, attribute, text in (
            ("tureen_steps", "steps", "Steps applied."),
            ("tureen_transactions", "transactions", "Transactions committed."),
            ("tureen_maintenance_changes", "revised", "Choices of maintenance that were revised."),
        ):
            family = CounterMetricFamily(name, text, labels=["shard"])
            for shard in shards:
                family.add_metric([str(shard.number)], getattr(shard.counts, attribute))
            yield family
        states = Counter(entry.state for entry in list(node.queries.values()))
        queries = GaugeMetricFamily("tureen_queries", "Queries by state.", labels=["state"])
        for state in ("RUNNING", "PAUSED", "PENDING", "ERROR"):
            queries.add_metric([state], states.get(state, 0))
        yield queries
        modes: Counter[str] = Counter()
        for shard in shards:
            modes.update(shard.view().modes())
        maintained = GaugeMetricFamily(
            "tureen_queries_maintained", "Queries by mode of maintenance.", labels=["mode"]
        )
        for mode in get_args(Maintenance):
            maintained.add_metric([mode], modes.get(mode, 0))
        yield maintained
        lag = GaugeMetricFamily(
            "tureen_now_lag_seconds", "How far NOW is behind the clock.", labels=["stream"]
        )
        rows = GaugeMetricFamily("tureen_rows", "Rows retained and visible.", labels=["stream"])
        pending = GaugeMetricFamily("tureen_rows_pending", "Rows that wait for NOW.", labels=["stream"])
        for shard in shards:
            guests = node.guests.on(shard.number)
            for info in shard.view().sources():
                if info.name in guests:
                    continue  # its home tells of it
                rows.add_metric([info.name], info.rows)
                pending.add_metric([info.name], info.pending)
                if info.now_ms is not None:
                    lag.add_metric([info.name], time.time() - info.now_ms / 1_000)
        yield from (lag, rows, pending)
        ready = GaugeMetricFamily("tureen_shard_live", "1 while a shard makes progress.", labels=["shard"])
        for shard in shards:
            ready.add_metric([str(shard.number)], float(shard.trouble is None))
        yield ready
        yield from _of_archive(node, self._archive_rows)
        yield from _of_feeds(self._feeds)


def _of_archive(node: Node, read: int) -> Iterator[Metric]:
    if node.shelf is None:
        return
    reachable = node.shelf.facts()["reachable"]
    yield GaugeMetricFamily(
        "tureen_archive_reachable", "1 while the archive can be read.", value=float(reachable is True)
    )
    yield CounterMetricFamily(
        "tureen_archive_rows_read", "Rows of the archive in answers.", value=float(read)
    )
    rows = CounterMetricFamily(
        "tureen_backfilled_rows", "Rows that were brought back from the archive.", labels=["stream"]
    )
    under_way = 0
    totals: Counter[str] = Counter()  # a stream may be a guest of other shards
    for shard in list(node.shards.values()):
        for stream, count, reading in shard.backfills.totals() if shard.backfills is not None else ():
            totals[stream] += count
            under_way += reading
    for stream, count in totals.items():
        rows.add_metric([stream], count)
    yield rows
    yield GaugeMetricFamily(
        "tureen_backfills", "Streams whose history is being brought back.", value=float(under_way)
    )


def _of_feeds(feeds: FeedCounts) -> Iterator[Metric]:
    for name, value, text in (
        ("tureen_feeds_open", feeds.open, "Change feeds and polls that are open."),
        ("tureen_feeds_followed", feeds.followed(), "Queries that are followed for them."),
        ("tureen_feeds_memory_bytes", feeds.size(), "Recent changes that are remembered."),
    ):
        yield GaugeMetricFamily(name, text, value=float(value))
    for name, value, text in (
        ("tureen_feeds_changes", feeds.changes, "Changes of answers that were passed on."),
        ("tureen_feeds_bytes", feeds.bytes, "Bytes written to feeds."),
        ("tureen_feeds_cut", feeds.cut, "Feeds that were cut off, since nobody read."),
        ("tureen_feeds_must_refetch", feeds.must_refetch, "Readers that came too late to go on."),
    ):
        yield CounterMetricFamily(name, text, value=float(value))
    ended = CounterMetricFamily("tureen_feeds_ended", "Feeds that ended by themselves.", labels=["reason"])
    for reason, count in sorted(feeds.ended.items()):
        ended.add_metric([reason], count)
    yield ended
