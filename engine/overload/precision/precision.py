"""The precision of a stream of rows, or of an operator (STREAM, section 5.3).

All figures are long-run means, in arrays: one entry for each allocation that is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Precision:
    """fp: wrong rows by rows given; fn: missing rows by rows due. float64[points], in [0, 1].

    The precision of an operator is the precision of what it gives on exact inputs.
    """

    fp: FloatArray
    fn: FloatArray

    @classmethod
    def of(cls, fp: float, fn: float) -> Precision:
        """At one point. Raises ValueError: a figure that is no share."""
        for share in (fp, fn):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"{share} is no share: it is not in [0, 1]")
        return cls(np.array([fp]), np.array([fn]))

    @property
    def right(self) -> FloatArray:
        """Right rows by rows given."""
        return 1.0 - self.fp

    @property
    def found(self) -> FloatArray:
        """Rows given rightly by rows due."""
        return 1.0 - self.fn

    @property
    def wrong_by_right(self) -> FloatArray:
        """Wrong rows for each right one; infinite where no row is right."""
        some = self.right > 0.0
        return np.divide(self.fp, self.right, out=np.where(self.fp > 0.0, np.inf, 0.0), where=some)

    @property
    def wrong_by_due(self) -> FloatArray:
        """Wrong rows for each row due; 0 where no row due is given, since that tells nothing of the wrong."""
        some = (self.right > 0.0) & (self.found > 0.0)
        rate = np.divide(self.fp, self.right, out=np.zeros(self.fp.shape), where=self.right > 0.0)
        return np.where(some, rate * self.found, 0.0)

    def with_own(self, own: Precision) -> Precision:
        """Returns the precision of an operator's output, where this one is what its inputs alone would give.
        own: the precision of the operator on exact inputs.
        """
        return Precision(1.0 - self.right * own.right, 1.0 - self.found * own.found)


EXACT = Precision.of(0.0, 0.0)


def share_of(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole; 0 where there is nothing, 1 where both are infinite."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    ended = np.isinf(part)
    some = (whole > 0.0) & ~ended
    return np.where(ended, 1.0, np.divide(part, whole, out=np.zeros(part.shape), where=some))
