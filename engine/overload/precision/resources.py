"""What an operator loses by the resources it is given: its own precision on exact inputs.

Shares are float64[points] in [0, 1]. Losses need not fall as resources grow: :class:`MeasuredCurve` takes any
measured figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.overload.precision.precision import FloatArray, Precision, share_of


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """Measured figures, linear between two points and constant outside. places rise strictly."""

    places: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.places or len(self.places) != len(self.values):
            raise ValueError("a table has a value for each place, and at least one")
        if not all(np.isfinite(self.places)) or not all(np.isfinite(self.values)):
            raise ValueError("a table holds finite figures only")
        if any(one >= other for one, other in zip(self.places, self.places[1:], strict=False)):
            raise ValueError("the places of a table rise")

    def at(self, places: FloatArray) -> FloatArray:
        """float64[points]."""
        return np.interp(places, self.places, self.values)

    @classmethod
    def linear(cls, whole: float) -> MeasuredCurve:
        """From (0, 0) to (1, whole): what is kept is as the share that is kept."""
        return cls((0.0, 1.0), (0.0, whole))


def sampled(rate: FloatArray) -> Precision:
    """Returns the precision of SAMPLE. rate: the share of rows kept."""
    return Precision(np.zeros_like(rate), 1.0 - rate)


def window_kept(kept: FloatArray, whole: float) -> Precision:
    """Returns the precision of an operator that gives ``kept`` of ``whole`` rows due, because its windows are
    shorter than asked for.

    For a window join, kept is A1(w1') + A2(w2') and whole is A1(w1) + A2(w2), where A_i(x) counts the matches
    with stored rows of side i that are no older than x. If matches are spread evenly over age, A_i(x) is
    proportional to x.
    """
    return Precision(np.zeros_like(kept), 1.0 - np.clip(share_of(kept, np.asarray(whole)), 0.0, 1.0))


def window_join(kept_ms: tuple[float, float], whole_ms: tuple[float, float]) -> Precision:
    """Returns the precision, at one point, of a window join whose matches are spread evenly over age."""
    return window_kept(np.array([kept_ms[0] + kept_ms[1]]), whole_ms[0] + whole_ms[1])


def sampled_synopses(left_share: float, left: FloatArray, right: FloatArray) -> Precision:
    """Returns the precision of a join that keeps samples of its synopses and probes them with every row.

    left_share: share of the matches whose older row is on the left side. left, right: rates of the samples.
    """
    found = left_share * left + (1.0 - left_share) * right
    return Precision(np.zeros_like(found), 1.0 - found)


def bloom_rate(bits: FloatArray, hashes: int, values: float) -> FloatArray:
    """f: how often a Bloom filter says that it holds a value that it does not (Bloom, 1970).

    bits: float64[points], its size; values: those that it holds.
    """
    if values <= 0.0:
        return np.zeros_like(bits)
    with np.errstate(divide="ignore"):
        load = np.where(bits > 0.0, hashes * values / np.maximum(bits, 0.0), np.inf)
    return np.asarray((1.0 - np.exp(-load)) ** hashes, np.float64)


def bloom_distinct(bits: FloatArray, hashes: int, values: float) -> Precision:
    """Returns the precision of DISTINCT that remembers values in a Bloom filter; a false positive loses a
    value.
    """
    rate = bloom_rate(bits, hashes, values)
    return Precision(np.zeros_like(rate), rate)


def bloom_intersect(bits: FloatArray, hashes: int, values: float, overlap: float) -> Precision:
    """Returns the precision of A INTERSECT B that keeps B in a Bloom filter; a false positive gives a wrong
    row.

    overlap: share of A's rows that are in B.
    """
    wrong = (1.0 - overlap) * bloom_rate(bits, hashes, values)
    return Precision(share_of(wrong, overlap + wrong), np.zeros_like(wrong))


def remembered(older: FloatArray, due: float) -> Precision:
    """Returns the precision of DISTINCT that remembers values for a shorter time; a repeat that is older is
    given again, wrongly.

    older: such repeats a second, or in any other unit; due: distinct rows in the same unit.
    """
    return Precision(share_of(older, older + due), np.zeros_like(older))


def sum_variance(rate: FloatArray, spread: float) -> FloatArray:
    """Relative variance of SUM(v) over a sample, scaled by 1 / rate. spread: sum v^2 / (sum v)^2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.where(rate > 0.0, (1.0 - rate) / np.maximum(rate, 0.0), np.inf)
        return np.where(rate >= 1.0, 0.0, odds * spread)
