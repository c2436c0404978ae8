"""The precision of aggregates: by how much their values are off, and which groups are missed.

A value is off by the rows that are missing or wrong, which shift it, and by chance: which rows are left. Over
pairs of joins chance is that of each input's rows, all pairs of which come and go together, and that of pairs
of the rows that are left on either side. Cost: O(points), and what the nodes below cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engine.overload.precision import resources
from engine.overload.precision.precision import FloatArray, Precision
from engine.overload.precision.shape import LossNode, PrecisionFlow

INTERVAL = 1.959963984540054
"""Half the width of the 95 % interval of a normal variable, in standard deviations."""


@dataclass(frozen=True, slots=True)
class InputChance:
    """How much an input of joins adds to the scatter of aggregates over their pairs. spread, scatter: as of
    :class:`Aggregated`, of the rows of the input that make a group.
    """

    below: LossNode
    spread: float
    scatter: float

    def variance(self, x: FloatArray, *, scaled: bool) -> FloatArray:
        """By the share of its rows that is left, float64[points]."""
        kept, present = _present(self.below.at(x), x.shape[1], scaled=scaled)
        left = np.clip(present, 0.0, 1.0)
        found = resources.sum_variance(kept, self.spread) + (1.0 - left) * self.scatter
        return found / np.maximum(left, 1e-12)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """GROUP BY, or one group. spread: the largest sum v^2 / (sum v)^2 of its sums, 1 / rows of COUNT.

    Rows that samples keep give an unbiased value with a variance; others that are missing or wrong shift a
    sum, and leave a mean what it is but for the variance of the rows that are left. The error is the sum of
    the shift and of half the interval; of sums and means the larger one. scaled: COUNT and SUM are divided by
    the share that samples keep; where they are not, what a sample drops is a shift too. groups: (rows, share
    of the groups that have so many), of which a group is missed when all its rows are. sums: whether there
    are any; mean_spread: as spread, of means, of v less its mean; 0: there are none. Of other calls nothing
    tells how far off they are. scatter: as spread, by which a part of the rows that no sample chose differs
    from an even part; 0 of COUNT where rows come evenly.
    """

    below: LossNode
    spread: float
    groups: tuple[tuple[int, float], ...] = ()
    scaled: bool = True
    sums: bool = True
    mean_spread: float = 0.0
    scatter: float = 0.0
    inputs: tuple[InputChance, ...] = ()

    def at(self, x: FloatArray) -> PrecisionFlow:
        flow = self.below.at(x)
        precision, points = flow.precision, x.shape[1]
        one = np.ones(points)
        kept, present = _present(flow, points, scaled=self.scaled)
        error = np.zeros(points)
        told = self.sums or self.mean_spread > 0.0
        if self.sums or not told:
            # The share of rows that other losses than samples leave: ``present`` of those due.
            left = np.clip(present, 0.0, 1.0)
            variance = np.maximum(left, 1e-12) * resources.sum_variance(kept, self.spread)
            variance = variance + left * (1.0 - left) * self.scatter
            for each in self.inputs:
                variance = variance + left**2 * each.variance(x, scaled=self.scaled)
            error = np.abs(present - 1.0) + INTERVAL * np.sqrt(variance)
        if self.mean_spread:
            given = present * kept
            share = np.clip(given if self.scaled else given * flow.sampled, 0.0, 1.0)
            mean = INTERVAL * np.sqrt(resources.sum_variance(np.maximum(share, 1e-9), self.mean_spread))
            error = np.maximum(error, mean + precision.fp)
        missing = sum((share * precision.fn**count for count, share in self.groups), np.zeros(points))
        found = Precision(np.zeros(points), np.broadcast_to(missing, (points,)))
        return PrecisionFlow(found, one, error, told=told)


def _present(flow: PrecisionFlow, points: int, *, scaled: bool) -> tuple[FloatArray, FloatArray]:
    """Returns the share of the rows that samples keep, and the share of those due that other losses leave.
    scaled: whether what samples drop is made up for; where it is not, it is a loss as others are.
    """
    one = np.ones(points)
    kept = flow.sampled * one if scaled else one
    given = (flow.precision.found + flow.precision.wrong_by_due) * one
    return kept, np.where(kept > 0.0, given / np.maximum(kept, 1e-300), 0.0)
