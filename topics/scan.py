"""One pass over the bytes of many JSON records that says which of them are one object each.

The column-wise reader takes any sequence of values as rows, and reads some that are not JSON; this pass
lets it see balanced, single objects only. Grammar and types remain the reader's to check.

Cost: O(bytes), about 1 ns a byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

FINE, EMPTY, NO_OBJECT, MARK, TOO_DEEP, UNFINISHED, TRAILING, NO_NUMBER = range(8)

REASONS = {
    EMPTY: "the value is empty",
    NO_OBJECT: "not a JSON object",
    MARK: "begins with a byte order mark",
    TOO_DEEP: "nested too deeply",
    UNFINISHED: "the JSON object does not end",
    TRAILING: "more than one JSON value in the record",
    NO_NUMBER: "NaN and Infinity are not JSON",
}


def _kernel(function: Kernel) -> Kernel:
    return cast("Kernel", numba.njit(cache=True, nogil=True)(function))


@_kernel
def scan(data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], depth_max: int) -> npt.NDArray[np.uint8]:
    """Judge each record.

    data: uint8, the records one after another with one byte between them.
    ends: int64[n], where each record ends; the next begins one byte later.
    Returns uint8[n] of FINE, EMPTY, NO_OBJECT, ...
    """
    verdicts = np.zeros(len(ends), np.uint8)
    at = 0
    for record in range(len(ends)):
        end = ends[record]
        while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
            at += 1
        verdict = 0
        if at >= end:
            verdict = 1
        elif data[at] != 123:
            mark = end - at >= 3 and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF
            verdict = 3 if mark else 2
        else:
            depth = 0
            while at < end:
                byte = data[at]
                at += 1
                if byte == 34:  # a string, to its closing quote
                    while at < end and data[at] != 34:
                        at += 2 if data[at] == 92 else 1
                    at += 1
                elif byte == 123 or byte == 91:
                    depth += 1
                    if depth > depth_max:
                        verdict = 4
                        break
                elif byte == 125 or byte == 93:
                    depth -= 1
                    if depth == 0:
                        break
                elif byte == 78 or byte == 73:  # N, I: NaN, Infinity
                    verdict = 7
            if at > end or (depth > 0 and verdict != 4):
                verdict = 5
            elif verdict == 0:
                while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
                    at += 1
                if at < end:
                    verdict = 6
        verdicts[record] = verdict
        at = end + 1
    return verdicts
