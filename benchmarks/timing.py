"""Repeated timing of a call, told as a median and its spread.

One timing of a call says little on a machine that others use. The median of several ignores the few that
were disturbed, and the spread says whether to believe it: past 0.1 a figure wants more repeats or a quieter
machine.
"""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of each repeat of one call, in the order they ran."""

    seconds: tuple[float, ...]

    @property
    def median_s(self) -> float:
        """The middle repeat, in seconds."""
        return statistics.median(self.seconds)

    @property
    def median_ms(self) -> float:
        """The middle repeat, in milliseconds."""
        return self.median_s * 1e3

    @property
    def spread(self) -> float:
        """Distance between the quartiles, as a share of the median; 0 for fewer than two repeats."""
        if len(self.seconds) < 2:
            return 0.0
        lower, _, upper = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (upper - lower) / self.median_s

    def per_s(self, count: int) -> float:
        """How many a second, if each repeat handled `count`."""
        return count / self.median_s


def repeat(
    call: Callable[[], object],
    *,
    times: int = 5,
    warm_ups: int = 1,
    prepare: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Run `call` and time it, `times` times after `warm_ups` untimed ones.

    prepare: runs untimed before each repeat, warm-ups too, so that each starts from the same state.
    The collector of cycles runs between repeats and is off while one is timed.
    """
    seconds = []
    for number in range(warm_ups + times):
        if prepare is not None:
            prepare()
        gc.collect()
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            began = clock()
            call()
            ended = clock()
        finally:
            if was_enabled:
                gc.enable()
        if number >= warm_ups:
            seconds.append(ended - began)
    return Timing(tuple(seconds))
