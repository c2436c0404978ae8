"""How many entries the paper's structures would have visited: linked lists, which are scanned.

The paper keeps windows and state in linked lists, those of the negative tuple approach hashed on the key, and
the partitions of a calendar as lists of their own (Golab and Oezsu, sections 2.3, 5.3 and 6.1). This engine
has indexes in their place, so that a probe meets its matches alone; the numbers here say what scanning would
have cost on the same rows, from rates and sizes that were measured or counted.

Each function gives the entries visited in a unit of time. Rates are rows a unit, sizes rows. Results that
left are looked for with each row that comes into the operator that makes them, as the paper has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np

from benchmarks.connection_answers import Answer, Answers
from benchmarks.connections import Connections

SAMPLES = 5

PARTITIONS = {"upa10": 10, "upa50": 50, "partitioned": 10, "indexed": 10, "auto": 10}


@dataclass(frozen=True, slots=True)
class Size:
    """rows: of an answer, on average. keys: its distinct sources."""

    rows: float
    keys: float

    @classmethod
    def of(cls, answer: Answer, rows: Connections, window: int) -> Size:
        """The mean of some full windows."""
        answers = Answers.of(rows, window)
        units = np.linspace(window, len(rows) - 1, SAMPLES).astype(int).tolist()
        found = [answer(answers, unit) for unit in units]
        held = float(np.mean([counts.sum() for counts in found]))
        return cls(held, float(np.mean([np.count_nonzero(counts) for counts in found])))


def fifo(rate: float) -> float:
    """Rows that leave in the order in which they came: in at the end of a list, out at its front."""
    return 2 * rate


def probes(rate: float, size: float, other_rate: float, other_size: float) -> float:
    """A join: each row that comes scans the state of the other side."""
    return rate * other_size + other_rate * size


def view(strategy: str, arrivals: float, rate: float, size: float, keys: float) -> float:
    """Results kept until they leave, in any order. arrivals: of rows into the operator that makes them. rate:
    of those that come, as many leave. keys: distinct ones.

    Negative tuples look theirs up among those of its key. With each arrival ``direct`` scans the list, which
    is in order of arrival, and a calendar that of the partition where NOW is.
    """
    if strategy not in ("direct", *PARTITIONS):
        return rate + rate * _half(size / max(1.0, keys))
    return rate + arrivals * size / PARTITIONS.get(strategy, 1)


def join(strategy: str, rates: tuple[float, float], sizes: tuple[float, float]) -> float:
    """A join of two windows, their rows stored; negative tuples probe again, and windows are kept apart."""
    (one, other), (one_size, other_size) = rates, sizes
    probed, stored = probes(one, one_size, other, other_size), fifo(one) + fifo(other)
    return probed + stored if _knows_exits(strategy) else 2 * probed + stored


def windows(strategy: str, links: int) -> float:
    """Windows with a row a unit, which the negative tuple approach keeps to find out who leaves."""
    return 0 if _knows_exits(strategy) else links * fifo(1)


def distinct(strategy: str, rate: float, size: float, values: float, came: float) -> float:
    """Duplicate elimination. size: of the input. values: distinct ones. came: rows of its output a unit.

    A row is compared with the output, half of which is scanned. A value that leaves is looked for in the
    input (by key with negative tuples), or in the auxiliary state of delta*, which is as large as the output.
    """
    compared = rate * _half(values)
    if strategy == "direct":
        return compared + fifo(rate) + came * size
    if _knows_exits(strategy):
        return compared + came * _half(values) + fifo(came)
    return 2 * compared + fifo(rate) + came * size / max(1.0, values)


def negation(
    strategy: str, rates: tuple[float, float], sizes: tuple[float, float], values: tuple[float, float]
) -> float:
    """Counters sorted by value, searched at each entry and exit, and both inputs stored."""
    searched = sum(2 * rate * log2(max(2.0, each)) for rate, each in zip(rates, values, strict=True))
    probed = rates[1] * sizes[0] / max(1.0, values[0])
    stored = fifo(rates[0]) + fifo(rates[1])
    return searched + probed + (stored if _knows_exits(strategy) else 2 * stored)


def strict_view(
    strategy: str, arrivals: float, rate: float, size: float, keys: float, premature: float
) -> float:
    """As :func:`view`, of rows some of which leave before their time, a share of the exits: each of those
    searches half of the partitions.
    """
    found = view(strategy, arrivals, rate, size, keys)
    return found + rate * premature * _half(size) if strategy in ("partitioned", "upa10", "upa50") else found


def _knows_exits(strategy: str) -> bool:
    return strategy in ("direct", *PARTITIONS)


def _half(size: float) -> float:
    return max(1.0, size / 2)
