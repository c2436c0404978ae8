"""What a summary of a stream is made of: the statement CREATE SUMMARY, as data.

A summary describes one attribute of a stream over the recent past, finer for recent rows than for older
ones: granularity 1 covers the last ``granularity_ms``, granularity i the ``granularity_ms * rate ** (i - 1)``
before what granularity i - 1 covers, up to ``depth`` granularities. It belongs to the stream, whatever
queries stand.

Source: Ali, Aref, ElTabakh, *Scalability via Summaries: Stream Query Processing using Promising Tuples*,
section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from engine.model.source import SourceName

SummaryName = str
SummaryKind = Literal["count_sketch", "histogram"]
BucketFunction = Literal["hash", "range"]


@dataclass(frozen=True, slots=True)
class SummarySettings:
    """How a summary is built; the defaults are those of the repeated experiments of the paper."""

    kind: SummaryKind = "count_sketch"
    # Rows of a sketch, t: its estimates are the median of so many.
    sketch_depth: int = 5
    # Counters in a row of a sketch, b; of a histogram its intervals.
    sketch_width: int = 64
    # Value buckets; a cell is a bucket in a zone.
    buckets: int = 16
    # How a value finds its bucket: by hash, or by cut points of an ordered type.
    bucket_function: BucketFunction = "hash"
    # The confidence in [0, 1] below which a zone of granularity 1 ends.
    theta: float = 0.7
    # The longest zone of granularity 1, ms; None: a quarter of the granularity.
    zone_length_max_ms: int | None = None
    # Rows of a zone before its confidence is looked at.
    zone_rows_min: int = 64


@dataclass(frozen=True, slots=True)
class SummaryDefinition:
    """CREATE SUMMARY name ON stream (attribute) WITH GRANULARITY t AND COLLAPSE (rate, depth)."""

    name: SummaryName
    stream: SourceName
    # The column of the stream that is summarised.
    attribute: str
    # The length of granularity 1, T1, ms.
    granularity_ms: int
    # How many times longer each granularity is than the one before, n >= 2.
    rate: int
    # How many granularities there are, m >= 1.
    depth: int
    settings: SummarySettings = field(default=SummarySettings())

    @property
    def lengths_ms(self) -> tuple[int, ...]:
        """The lengths of the granularities in ms, the most recent granularity first."""
        return tuple(self.granularity_ms * self.rate**level for level in range(self.depth))

    @property
    def reach_ms(self) -> int:
        """How far behind NOW the summary reaches, ms: T1 (n^m - 1) / (n - 1)."""
        return sum(self.lengths_ms)

    @property
    def zone_length_max_ms(self) -> int:
        """The longest zone of granularity 1, ms."""
        asked = self.settings.zone_length_max_ms
        return max(1, self.granularity_ms // 4) if asked is None else asked
