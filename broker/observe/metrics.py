"""Prometheus metrics of the worker. Labels are streams, shards, states and formats, never handles or ids.

What is counted (:mod:`broker.base.counts`) and what stands on the node is read where it is kept, when
Prometheus asks. O(shards * streams + queries).
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from broker.base.counts import (
    COLD_SECONDS,
    FEED_SECONDS,
    QUERY_LIST_BYTES,
    SAVE_SECONDS,
    SNAPSHOT_SECONDS,
    STEP_SECONDS,
    TRANSACTION_SECONDS,
    EventCounts,
    FeedCounts,
)
from broker.memory.spill import disk_waits
from broker.node.node import Node
from broker.observe.function_metrics import of_functions
from broker.runtime.in_flight import InFlight
from engine.dataflow.strategy_state import StrategyState
from engine.model.maintenance import Maintenance, Strategy

RATE_WINDOW_S = 5.0


class Metrics:
    """The registry that ``/metrics`` prints, and rates for ``/status``."""

    def __init__(self, in_flight: InFlight) -> None:
        self._registry = CollectorRegistry()
        self._in_flight = in_flight
        self.feeds = FeedCounts()
        self.doors: Callable[[], list[dict[str, Any]]] = list
        """Where clients connect: see ``GET /status``."""
        self.events = EventCounts()
        for measured in (
            SNAPSHOT_SECONDS,
            COLD_SECONDS,
            STEP_SECONDS,
            TRANSACTION_SECONDS,
            SAVE_SECONDS,
            FEED_SECONDS,
            QUERY_LIST_BYTES,
        ):
            self._registry.register(measured)
        self._snapshots = 0
        self._archive_rows = 0
        self.pauses: Callable[[], int] = lambda: 0
        """How many queries the broker has paused for memory."""
        self._samples: deque[tuple[float, float, dict[str, int]]] = deque()

    def snapshot(self, form: str, seconds: float, size: int) -> None:
        SNAPSHOT_SECONDS.labels(form).observe(seconds)
        self._snapshots += 1

    def archive_answers(self, seconds: float, rows: int) -> None:
        """An answer with so many rows of the archive."""
        COLD_SECONDS.observe(seconds)
        self._archive_rows += rows

    def totals(self, node: Node) -> dict[str, int]:
        totals = {"records": 0, "entered": 0, "late": 0, "dead_letters": 0}
        for shard in node.shards:
            for name in totals:
                totals[name] += sum(list(getattr(shard.counts, name).values()))
        deltas = sum(sum(list(shard.counts.deltas.values())) for shard in node.shards)
        return totals | {"snapshots": self._snapshots, "deltas": deltas}

    def sample(self, node: Node) -> None:
        """Called about once a second, for the rates."""
        now_s = time.monotonic()
        self._samples.append((now_s, time.process_time(), self.totals(node)))
        while len(self._samples) > 2 and now_s - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()

    def rates(self, node: Node) -> dict[str, float]:
        """Per second over the last seconds: records, entered, late, dead_letters, snapshots; deltas, the
        changes of answers that were written to result topics.
        """
        if not self._samples:
            return {}
        then_s, _, before = self._samples[0]
        now_s, totals = time.monotonic(), self.totals(node)
        elapsed_s = max(now_s - then_s, 1e-3)
        return {name: round((totals[name] - before[name]) / elapsed_s, 1) for name in totals}

    def cpu_share(self) -> float | None:
        """Computing time of the process over the last seconds, as a share of one core; None before the
        first.
        """
        if not self._samples:
            return None
        then_s, before_s, _ = self._samples[0]
        elapsed_s = time.monotonic() - then_s
        return (time.process_time() - before_s) / elapsed_s if elapsed_s > 0 else None

    def text(self, node: Node) -> bytes:
        """The exposition, all of it."""
        collector = _FromShards(
            node, self.feeds, self.events, self._archive_rows, self._in_flight, self.pauses()
        )
        self._registry.register(collector)
        try:
            return generate_latest(self._registry)
        finally:
            self._registry.unregister(collector)


class _FromShards:
    """Reads counters and gauges where they are kept."""

    def __init__(
        self,
        node: Node,
        feeds: FeedCounts,
        events: EventCounts,
        archive_rows: int,
        in_flight: InFlight,
        pauses: int,
    ) -> None:
        self._node = node
        self._in_flight = in_flight
        self._feeds = feeds
        self._events = events
        self._archive_rows = archive_rows
        self._pauses = pauses

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        yield from _of_streams(self._node)
        yield from _of_queues(self._node)
        yield from _of_letters(self._node)
        yield from _of_results(self._node)
        yield from _of_shards(self._node)
        yield from _of_queries(self._node)
        yield from _of_preferences(self._node)
        yield from _of_requests(self._in_flight)
        yield from _of_work(self._node)
        yield from of_functions(self._node.setup.engines.functions)
        yield from _of_rows(self._node)
        yield from _of_archive(self._node, self._archive_rows)
        yield from _of_feeds(self._feeds)
        yield from _of_events(self._events)
        yield from _of_memory(self._node, self._pauses)


def _of_streams(node: Node) -> Iterator[Metric]:
    for name, attribute, text in (
        ("tureen_records", "records", "Records read."),
        ("tureen_record_bytes", "bytes", "Bytes of the records read."),
        ("tureen_rows_entered", "entered", "Rows that became visible."),
        ("tureen_late_records", "late", "Records at or before NOW."),
        ("tureen_dead_letters", "dead_letters", "Records that gave no row."),
        ("tureen_constraint_violations", "violations", "Rows that broke a constraint of their stream."),
        ("tureen_heartbeats", "heartbeats", "Records that were heartbeats."),
        ("tureen_shed_records", "shed", "Records that queries which tolerate it do not see."),
        ("tureen_unread_records", "unread", "Of these, records that nobody sees and that were not read."),
    ):
        family = CounterMetricFamily(name, text, labels=["stream"])
        for shard in node.shards:
            for stream, count in list(getattr(shard.counts, attribute).items()):
                family.add_metric([stream], count)
        yield family


def _of_work(node: Node) -> Iterator[Metric]:
    ended = CounterMetricFamily(
        "tureen_request_work",
        "Plans, checks, matches, dry runs: done, refused, over their limit, left by their caller (gone), or "
        "not begun in time (busy).",
        labels=["ended"],
    )
    for how, count in dict(node.work.counts).items():
        ended.add_metric([how], count)
    yield ended
    yield GaugeMetricFamily(
        "tureen_request_work_running", "How many of these are worked out now.", node.work.running
    )


def _of_queues(node: Node) -> Iterator[Metric]:
    rows = GaugeMetricFamily("tureen_queue_rows", "Records that wait to be taken up.", labels=["stream"])
    size = GaugeMetricFamily("tureen_queue_bytes", "Bytes of these.", labels=["stream"])
    age = GaugeMetricFamily(
        "tureen_queue_oldest_seconds", "How long the oldest of these has waited.", labels=["stream"]
    )
    spent = CounterMetricFamily("tureen_step_time_seconds", "Time that steps took.", labels=["stream"])
    behind = GaugeMetricFamily(
        "tureen_backlog_bytes",
        "By how much what a topic has for a stream grew beyond the least it had; rows are shed by this.",
        labels=["stream"],
    )
    sheds = GaugeMetricFamily(
        "tureen_shedding_share", "Which share of its records a stream sheds now.", labels=["stream"]
    )
    now_ns = time.perf_counter_ns()
    for shard in node.shards:
        for stream, queue in shard.ingestion.queues():
            rows.add_metric([stream], queue.rows)
            size.add_metric([stream], queue.nbytes)
            waited_ns = 0.0 if queue.since_ns is None else max(0.0, now_ns - queue.since_ns)
            age.add_metric([stream], waited_ns / 1e9)
            spent.add_metric([stream], queue.spent_ns / 1e9)
            behind.add_metric([stream], shard.ingestion.shedder.backlog_bytes(stream))
            sheds.add_metric([stream], shard.ingestion.shedder.shares.get(stream, 0.0))
    yield from (rows, size, age, spent, behind, sheds)


def _of_letters(node: Node) -> Iterator[Metric]:
    lost = CounterMetricFamily(
        "tureen_forwarded_records_lost",
        "Late rows and dead letters that their topic refused.",
        labels=["topic"],
    )
    totals: Counter[str] = Counter()
    for shard in node.shards:
        totals.update(dict(shard.counts.forwarded_lost))
    for topic, count in totals.items():
        lost.add_metric([topic], count)
    yield lost


def _of_results(node: Node) -> Iterator[Metric]:
    for name, attribute, text in (
        ("tureen_result_deltas", "deltas", "Changes of answers written to result topics."),
        ("tureen_result_records", "result_records", "Records of these changes."),
        ("tureen_result_bytes", "result_bytes", "Bytes of their keys and values."),
    ):
        family = CounterMetricFamily(name, text, labels=["topic", "operator"])
        totals: Counter[tuple[str, str]] = Counter()
        for shard in node.shards:
            totals.update(dict(getattr(shard.counts, attribute)))
        for labels, count in totals.items():
            family.add_metric(list(labels), count)
        yield family


def _of_shards(node: Node) -> Iterator[Metric]:
    for name, attribute, text in (
        ("tureen_steps", "steps", "Steps applied."),
        ("tureen_transactions", "transactions", "Transactions committed."),
        ("tureen_maintenance_changes", "revised", "Choices of maintenance that were revised."),
    ):
        family = CounterMetricFamily(name, text, labels=["shard"])
        for shard in node.shards:
            family.add_metric([str(shard.number)], getattr(shard.counts, attribute))
        yield family
    for name, attribute, text in (
        ("tureen_queries_went_to_disk", "went", "Times that a query was swapped out."),
        ("tureen_queries_came_from_disk", "came", "Times that one came back because it was asked for."),
    ):
        family = CounterMetricFamily(name, text, labels=["shard"])
        for shard in node.shards:
            family.add_metric([str(shard.number)], getattr(shard.upkeep.swapper, attribute))
        yield family
    swapped = GaugeMetricFamily("tureen_queries_swapped_out", "Queries on disk alone.", labels=["shard"])
    for shard in node.shards:
        swapped.add_metric([str(shard.number)], shard.upkeep.swapper.count)
    yield swapped
    ready = GaugeMetricFamily("tureen_shard_live", "1 while a shard makes progress.", labels=["shard"])
    for shard in node.shards:
        ready.add_metric([str(shard.number)], float(shard.stall is None))
    yield ready
    waiting = GaugeMetricFamily(
        "tureen_changes_waiting", "Changes that are still to be written to result topics.", labels=["shard"]
    )
    for shard in node.shards:
        waiting.add_metric([str(shard.number)], float(shard.waiting()))
    yield waiting


def _of_queries(node: Node) -> Iterator[Metric]:
    queries = GaugeMetricFamily("tureen_queries", "Queries by state.", labels=["state"])
    for state, count in node.directory.queries.states().items():
        queries.add_metric([state], count)
    yield queries
    modes: Counter[str] = Counter()
    for shard in node.shards:
        modes.update(one.maintenance for one in shard.view().standing.in_any_order())
    maintained = GaugeMetricFamily(
        "tureen_queries_maintained", "Queries by mode of maintenance.", labels=["mode"]
    )
    for mode in get_args(Maintenance):
        maintained.add_metric([mode], modes.get(mode, 0))
    yield maintained
    yield from _of_strategies(node)


def _of_preferences(node: Node) -> Iterator[Metric]:
    for name, attribute, text in (
        ("tureen_preference_units_granted", "granted", "Units of work that steps were granted."),
        ("tureen_preference_units_spent", "spent", "Units of these that queries with a preference used."),
    ):
        family = CounterMetricFamily(name, text, labels=["shard"])
        for shard in node.shards:
            family.add_metric([str(shard.number)], getattr(shard.ingestion.grants, attribute))
        yield family
    left = GaugeMetricFamily(
        "tureen_preference_units_left", "Units of work that are left for them, at least.", labels=["shard"]
    )
    for shard in node.shards:
        left.add_metric([str(shard.number)], float(shard.ingestion.grants.left))
    yield left
    for name, count, text in (
        (
            "tureen_promising_entries_left",
            "entries_left",
            "Entries of promising sets that are left.",
        ),
        ("tureen_promising_entries_cut", "cut", "Entries that did not fit the promising sets there are."),
        ("tureen_promising_rows_visited", "visited", "Stored rows visited for the sets there are."),
        ("tureen_promising_rows_short", "short", "Stored rows that are left to visit."),
        ("tureen_promising_found", "hits", "Rows and pairs found for the sets there are."),
    ):
        gauge = GaugeMetricFamily(name, text, labels=["shard"])
        for shard in node.shards:
            gauge.add_metric([str(shard.number)], float(getattr(shard.upkeep.promising, count)))
        yield gauge


def _of_strategies(node: Node) -> Iterator[Metric]:
    counted = node.setup.memory.accounts.by_strategy()
    followed = GaugeMetricFamily(
        "tureen_followed_queries", "Queries whose changes are followed, by strategy.", labels=["strategy"]
    )
    kept = GaugeMetricFamily(
        "tureen_followed_state_bytes", "What their operators keep, by strategy.", labels=["strategy"]
    )
    early = GaugeMetricFamily(
        "tureen_followed_premature_share",
        "Of rows in answers of negations those that left before their time, by strategy.",
        labels=["strategy"],
    )
    for strategy in get_args(Strategy):
        state = counted.get(strategy, StrategyState())
        followed.add_metric([strategy], state.queries)
        kept.add_metric([strategy], state.nbytes)
        early.add_metric([strategy], state.premature_share or 0.0)
    yield from (followed, kept, early)


def _of_rows(node: Node) -> Iterator[Metric]:
    lag = GaugeMetricFamily("tureen_now_lag_seconds", "How far NOW is behind the clock.", labels=["stream"])
    rows = GaugeMetricFamily("tureen_rows", "Rows retained and visible.", labels=["stream"])
    pending = GaugeMetricFamily("tureen_rows_pending", "Rows that wait for NOW.", labels=["stream"])
    for shard in node.shards:
        replicas = node.hosting.replicas_on(shard.number)
        for info in shard.view().sources():
            if info.name in replicas:
                continue  # its home tells of it
            rows.add_metric([info.name], info.rows)
            pending.add_metric([info.name], info.pending)
            if info.now_ms is not None:
                lag.add_metric([info.name], time.time() - info.now_ms / 1_000)
    yield from (lag, rows, pending)


def _of_archive(node: Node, read: int) -> Iterator[Metric]:
    if node.setup.archive is None:
        return
    reachable = node.setup.archive.facts()["reachable"]
    yield GaugeMetricFamily(
        "tureen_archive_reachable", "1 while the archive can be read.", value=float(reachable is True)
    )
    yield CounterMetricFamily(
        "tureen_archive_rows_read", "Rows of the archive in answers.", value=float(read)
    )
    rows = CounterMetricFamily(
        "tureen_backfilled_rows", "Rows backfilled from the archive.", labels=["stream"]
    )
    under_way = 0
    totals: Counter[str] = Counter()  # a stream may be a replica of other shards
    for backfills in (shard.ingestion.backfills for shard in node.shards):
        for stream, count, reading in backfills.totals() if backfills is not None else ():
            totals[stream] += count
            under_way += reading
    for stream, count in totals.items():
        rows.add_metric([stream], count)
    yield rows
    yield GaugeMetricFamily(
        "tureen_backfills", "Streams whose history is being backfilled.", value=float(under_way)
    )


def _of_memory(node: Node, pauses: int) -> Iterator[Metric]:
    memory = node.setup.memory
    for name, value, text in (
        ("tureen_memory_used_bytes", memory.used, "Memory of the worker, counted or held, the larger."),
        ("tureen_memory_budget_bytes", memory.budget.budget_bytes, "How much it may use."),
        (
            "tureen_memory_uncounted_bytes",
            memory.uncounted,
            "Held and counted nowhere: compiled code, what answers work with.",
        ),
        ("tureen_memory_level", int(memory.level), "0 normal, 1 refuse, 2 hold, 3 shed."),
    ):
        yield GaugeMetricFamily(name, text, value=float(value))
    if memory.spill is not None:
        spill = memory.spill
        for name, value, text in (
            ("tureen_memory_spilled_bytes", spill.nbytes, "Rows on disk, for which memory had no room."),
            (
                "tureen_memory_spilled_resident_bytes",
                spill.resident(),
                "Of them, what the system has in memory.",
            ),
        ):
            yield GaugeMetricFamily(name, text, value=float(value))
        yield CounterMetricFamily(
            "tureen_disk_waits", "How often a thread waited for a page from disk.", value=float(disk_waits())
        )
    counted = GaugeMetricFamily("tureen_memory_counted_bytes", "By structure.", labels=["structure"])
    for name, value in memory.accounts.structures().items():
        counted.add_metric([name], float(value))
    yield counted
    yield CounterMetricFamily(
        "tureen_memory_pauses", "Queries that the broker paused for memory.", value=float(pauses)
    )
    given = node.allocation
    for name, amount, text in (
        ("tureen_allocation_queries", float(given.given_less), "Queries that are given less for memory."),
        (
            "tureen_allocation_unreachable",
            float(len(given.unreachable)),
            "Queries whose bounds cannot be kept.",
        ),
        ("tureen_allocation_solve_seconds", given.solve_s, "Time of the last allocation's solution."),
    ):
        yield GaugeMetricFamily(name, text, value=amount)
    for name, count, text in (
        ("tureen_allocation_rounds", given.rounds, "Times that an allocation was solved."),
        ("tureen_allocation_steps", given.steps, "Allotments that were given."),
        ("tureen_allocation_failed", given.failed, "Solutions and allotments that failed."),
    ):
        yield CounterMetricFamily(name, text, value=float(count))


def _of_feeds(feeds: FeedCounts) -> Iterator[Metric]:
    for name, value, text in (
        ("tureen_feeds_open", feeds.open, "Change feeds and polls that are open."),
        ("tureen_feeds_followed", feeds.followed(), "Queries whose changes are kept for feeds."),
        ("tureen_feeds_memory_bytes", feeds.size(), "Recent changes that are kept."),
    ):
        yield GaugeMetricFamily(name, text, value=float(value))
    for name, value, text in (
        ("tureen_feeds_changes", feeds.changes, "Changes of answers that were passed on."),
        ("tureen_feeds_bytes", feeds.bytes, "Bytes written to feeds."),
        ("tureen_feeds_cut", feeds.cut, "Feeds closed because their reader did not read."),
        ("tureen_feeds_must_refetch", feeds.must_refetch, "Readers that came too late to resume."),
    ):
        yield CounterMetricFamily(name, text, value=float(value))
    ended = CounterMetricFamily(
        "tureen_feeds_ended", "Feeds that ended without an error of the reader.", labels=["reason"]
    )
    for reason, count in sorted(feeds.ended.items()):
        ended.add_metric([reason], count)
    yield ended


def _of_events(events: EventCounts) -> Iterator[Metric]:
    yield GaugeMetricFamily("tureen_event_listeners", "Streams of events that are open.", events.listeners)
    for name, value, text in (
        ("tureen_event_frames", events.frames, "Frames of events that were written."),
        ("tureen_event_frames_skipped", events.skipped, "Frames that slow listeners missed."),
        ("tureen_event_listeners_cut", events.cut, "Streams of events closed as their reader did not read."),
    ):
        yield CounterMetricFamily(name, text, value=float(value))


def _of_requests(in_flight: InFlight) -> Iterator[Metric]:
    yield GaugeMetricFamily("tureen_http_connections", "Open connections.", in_flight.connections)
    yield GaugeMetricFamily(
        "tureen_http_requests_bytes", "Bodies of requests that are in memory.", in_flight.bytes
    )
    refused = CounterMetricFamily(
        "tureen_http_refused", "Requests and connections cut off or refused, by reason.", labels=["reason"]
    )
    for reason in ("connections", "bytes", "head", "body", "answer"):
        refused.add_metric([reason], in_flight.refused[reason])
    yield refused
