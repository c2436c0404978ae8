"""What the parts of a worker count and time: plain integers, each written by one thread, and histograms.

Whoever does something counts it here and knows nothing of who reads it (:mod:`broker.observe.metrics`).
Histograms have a lock of their own and are the process's. Labels are shards and formats, no handles or ids.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Gauge, Histogram

from engine.model.batch import Batch, Column
from engine.model.source import Schema

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

SNAPSHOT_SECONDS = Histogram(
    "tureen_snapshot_seconds",
    "Time to compute and encode an answer.",
    ["format"],
    buckets=_SECONDS,
    registry=None,
)
QUERY_LIST_BYTES = Gauge(
    "tureen_query_list_bytes",
    "Memory of what queries are searched and sorted by; 0 while nobody asks.",
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
    "Time from a commit until its changes are written to a feed.",
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
    """What a shard has done in this life. Written by its thread alone. One field a figure that is told."""

    records: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    entered: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    late: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    dead_letters: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    violations: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    heartbeats: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """That came as records of the stream."""
    bytes: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    shed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Records that queries which tolerate it do not see; unread: of these, those that were not read."""
    unread: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    deltas: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    """By topic and operator, as the next two; a row that takes another's place is two."""
    result_records: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    result_bytes: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    forwarded_lost: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Late rows and dead letters that their topic refused, by topic; as the next."""
    forwarding_refused: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: int = 0
    transactions: int = 0
    revised: int = 0
    given: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """By stream whose rows were read: the places of columns that had a value."""

    def forget(self, name: str) -> None:
        """A stream is dropped: another of its name begins anew."""
        of_streams = (
            self.records, self.entered, self.late, self.dead_letters, self.violations, self.heartbeats,
            self.bytes, self.shed, self.unread, self.given,
        )  # fmt: skip
        for counted in of_streams:
            counted.pop(name, None)

    def read(self, name: str, batch: Batch) -> None:
        """Rows of a stream came. O(1) for columns that had values before."""
        if len(batch):
            given = self.given[name]
            if len(given) < len(batch.columns):
                columns = enumerate(batch.columns)
                given |= {at for at, one in columns if at not in given and _has_values(one)}

    def absent(self, name: str, schema: Schema) -> list[str]:
        """Columns without a value in any row that this life has read; none before the first row."""
        given = self.given.get(name)
        return [] if given is None else [one.name for at, one in enumerate(schema) if at not in given]


def _has_values(column: Column) -> bool:
    return column.valid is None or bool(column.valid.any())


@dataclass(slots=True)
class EventCounts:
    """What streams of events have done. Written by the event loop alone. listeners: that are open now.
    frames: that were written. skipped: that slow listeners missed. cut: listeners that took nothing.
    """

    listeners: int = 0
    frames: int = 0
    skipped: int = 0
    cut: int = 0


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
