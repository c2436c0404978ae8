"""Whether rows keep the promises of their stream, row by row in the order in which they enter.

A row that breaks one does not count for any. Values of CLUSTERED and UNIQUE columns are *ids*, numbers from 0
that differ between constraints; NO_ID where a row has NULL.

A clustered value is *over* when more than k rows with others have come since its first. Each open one waits
in ``due`` at the number of the row with which it would be over if none of its own came until then; if some
did it is put off by so many, so that a row costs O(1) however many values are open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from engine.kernels.compiled import borrowing, kernel, step

Int8Array = npt.NDArray[np.int8]
Int64Array = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

ORDERED, CLUSTERED, UNIQUE = 0, 1, 2
NOTHING = -(2**63)
"""In the place of NULL in an ordered column, and of a bound where there is none."""
NO_ID = -1
KEPT = -1
KNOWN, FRESH, AGAIN = 0, 1, 2
"""What a value is when a row enters with it. KNOWN: it is there, or the row has none. FRESH: it was never
there, or is forgotten. AGAIN: it was there longer ago than RETAIN, and comes again where it should not.
"""


class Promised(NamedTuple):
    """The promises of a stream, one constraint an item.

    kind: int8[c]. rows: int64[c], k. first: int64[c], where its part of ``ring`` (ORDERED: k long) or of
    ``due`` (CLUSTERED: k + 2 long) begins. retain_ms: a value whose last row is older is forgotten.
    """

    kind: Int8Array
    rows: Int64Array
    first: Int64Array
    retain_ms: int


class State(NamedTuple):
    """bound: int64[c], of an ordered column the largest value of all but the last k rows.

    ring: int64: values of the last k rows, by their number modulo k. due: int64: by the number of a row
    modulo k + 2, the first id that waits for it; ``after`` leads to the next, NO_ID ends. By id, int64[ids]:
    born: the number of the first row; own: rows of it since, 0: it was never there or is forgotten; last: the
    number, last_ms: the instant of the last row. over: bool[ids].
    """

    bound: Int64Array
    ring: Int64Array
    due: Int64Array
    after: Int64Array
    born: Int64Array
    own: Int64Array
    last: Int64Array
    last_ms: Int64Array
    over: BoolArray


@kernel
def _breaks(kind: int, value: int, timestamp: int, bound: int, retain_ms: int, state: State) -> bool:
    """Whether a row breaks a constraint."""
    if kind == ORDERED:
        return bool(value != NOTHING and value < bound)
    if value == NO_ID or state.own[value] == 0:
        return False
    if kind == CLUSTERED and not state.over[value]:
        return False
    return bool(state.last_ms[value] >= timestamp - retain_ms)


@kernel
def _wait(value: int, at: int, first: int, rows: int, state: State) -> None:
    """An open value waits for the row with this number."""
    place = first + at % (rows + 2)
    state.after[value] = state.due[place]
    state.due[place] = value


@step
def _status(value: int, kind: int, state: State) -> int:
    """What a value is when a row enters with it, which breaks nothing."""
    status = KNOWN
    if state.own[value] == 0:
        status = FRESH
    elif kind == UNIQUE or state.over[value]:
        status = AGAIN  # it is older than RETAIN, else the row would break the promise
    return status


@borrowing
def enforce(
    values: Int64Array,
    timestamp: Int64Array,
    count: int,
    rules: Promised,
    state: State,
    broken: Int8Array,
    came: Int8Array,
) -> int:
    """broken[i] = the first constraint that row i breaks, KEPT: none. came[c, i]: of a row that enters, and
    its value for each constraint but ORDERED: KNOWN, FRESH or AGAIN.

    values: int64[c, n], of ORDERED the column itself, NOTHING where NULL; else ids. timestamp: int64[n].
    count: rows that entered before. Returns how many have then. O(n * c), amortised.
    """
    constraints = values.shape[0]
    for row in range(values.shape[1]):
        broken[row] = KEPT
        came[:, row] = KNOWN
        for c in range(constraints):
            if _breaks(rules.kind[c], values[c, row], timestamp[row], state.bound[c], rules.retain_ms, state):
                broken[row] = c
                break
        if broken[row] != KEPT:
            continue
        for c in range(constraints):
            value, rows, first = values[c, row], rules.rows[c], rules.first[c]
            if rules.kind[c] == ORDERED:
                passed = value
                if rows > 0:
                    place = first + count % rows
                    passed = state.ring[place]
                    state.ring[place] = value
                state.bound[c] = max(state.bound[c], passed)
                continue
            if value != NO_ID:
                came[c, row] = _status(value, rules.kind[c], state)
                if rules.kind[c] == UNIQUE:
                    state.own[value] = 1
                elif state.own[value] == 0 or state.over[value]:
                    state.born[value], state.own[value], state.over[value] = count, 1, False
                    _wait(value, count + 1 + rows, first, rows, state)
                else:
                    state.own[value] += 1
                state.last[value], state.last_ms[value] = count, timestamp[row]
            if rules.kind[c] == CLUSTERED:
                place = first + count % (rows + 2)
                due = state.due[place]
                state.due[place] = NO_ID
                while due != NO_ID:
                    ahead = state.after[due]
                    at = state.born[due] + state.own[due] + rows
                    if at <= count:
                        state.over[due] = True
                    else:
                        _wait(due, at, first, rows, state)
                    due = ahead
        count += 1
    return count
