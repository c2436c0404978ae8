"""A summary as its definition reads: all rows in lists, every counter made anew from the rows of its zone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from engine.model.summary import SummaryDefinition

WORD = 2**64 - 1
SEED = 0x5AD1A1C0DEC0FFEE
GAMMA = 0x9E3779B97F4A7C15


def mixed(z: int) -> int:
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def integer_hash(value: int) -> int:
    return mixed(value & WORD ^ SEED)


def bucket_of(hash_: int, buckets: int) -> int:
    return (hash_ >> 32) * buckets >> 32


def places_of(hash_: int, depth: int, width: int) -> list[tuple[int, int]]:
    """(counter, sign) of each sketch row."""
    found = []
    for r in range(depth):
        word = mixed(hash_ + GAMMA * (r // 2 + 1) & WORD)
        bits = word >> 32 if r % 2 else word & 0xFFFFFFFF
        found.append((r * width + ((bits >> 1) * width >> 31), -1 if bits & 1 else 1))
    return found


def median(numbers: list[int]) -> int:
    middle = sorted(numbers)
    return (middle[(len(middle) - 1) // 2] + middle[len(middle) // 2]) // 2


@dataclass
class PlainCells:
    """Counters by (bucket, counter), and rows by bucket."""

    depth: int
    width: int
    counters: defaultdict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    rows: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def enter(self, hash_: int, bucket: int) -> None:
        self.rows[bucket] += 1
        for counter, sign in places_of(hash_, self.depth, self.width):
            self.counters[bucket, counter] += sign

    def estimate(self, hash_: int, bucket: int) -> int:
        found = [
            sign * self.counters[bucket, counter]
            for counter, sign in places_of(hash_, self.depth, self.width)
        ]
        return min(max(median(found), 0), self.rows[bucket])

    def squares(self) -> list[int]:
        """The sum of squared counts of each sketch row, over all buckets."""
        found = [0] * self.depth
        for (_, counter), count in self.counters.items():
            found[counter // self.width] += count * count
        return found


def confidence(cells: PlainCells, reference: float | None, rows_min: int) -> tuple[float, float]:
    """(confidence, v0)."""
    n = float(sum(cells.rows.values()))
    v = max((median(cells.squares()) - n) / (n * (n - 1)), 1 / rows_min)
    reference = v if reference is None else reference
    return min(v / reference, reference / v), reference


def likeness(before: PlainCells, now: PlainCells, buckets: int, rows_min: int) -> float:
    """How like the rows that came since are to those before. buckets: how many there are of values; further
    ones are of rows without a value.
    """
    n = float(sum(before.rows[bucket] for bucket in range(buckets)))
    more = sum(now.rows[bucket] for bucket in range(buckets)) - n
    if n < 2 or more < 1:
        return 1.0
    v = max((median(before.squares()) - n) / (n * (n - 1)), 1 / rows_min)
    products = [0] * now.depth
    for (bucket, counter), count in now.counters.items():
        then = before.counters[bucket, counter]
        products[counter // now.width] += then * (count - then)
    u = max(median(products) / (n * more), 1 / rows_min)
    return min(u / v, v / u)


def cut(definition: SummaryDefinition, hashes: list[int | None], timestamp: list[int]) -> list[list[int]]:
    """Rows by zone of granularity 1. hashes: None where a row has no value."""
    settings, t1 = definition.settings, definition.granularity_ms
    rows_min = max(2, settings.zone_rows_min)
    zones: list[list[int]] = []
    is_open = False
    for row, (hash_, at) in enumerate(zip(hashes, timestamp, strict=True)):
        if is_open:
            begin = timestamp[zones[-1][0]]
            is_open = at < begin + definition.zone_length_max_ms and at // t1 == begin // t1
        if not is_open:
            zones.append([])
            cells, reference = PlainCells(settings.sketch_depth, settings.sketch_width), None
            is_open = True
        zones[-1].append(row)
        if hash_ is None:
            continue
        cells.enter(hash_, bucket_of(hash_, settings.buckets))
        if sum(cells.rows.values()) >= rows_min:
            now, reference = confidence(cells, reference, rows_min)
            is_open = now >= settings.theta
    return zones


def granularities(
    definition: SummaryDefinition, zones: list[list[int]], timestamp: list[int], now_ms: int
) -> list[tuple[int, list[int]]]:
    """(granularity, rows) of the zones that are left at NOW, oldest first."""
    lengths, found = definition.lengths_ms, dict[tuple[int, int], list[int]]()
    for place, rows in enumerate(zones):
        begin = timestamp[rows[0]]
        key, granularity, behind = (1, place), 1, lengths[0]
        nominal = begin
        while granularity < definition.depth and now_ms >= nominal + behind:
            length = lengths[granularity - 1]
            nominal = begin // length * length
            behind += lengths[granularity]
            granularity += 1
            key = (granularity, nominal)
        found[key] = found.get(key, []) + rows
    return [
        (granularity, rows)
        for (granularity, _), rows in found.items()
        if granularity < definition.depth or now_ms <= timestamp[rows[-1]] + definition.reach_ms
    ]
